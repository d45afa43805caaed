"""The second-order subsystem keeps the contract: exact rollback, exact Jacobians, dense like sparse, clear refusals."""

import pickle
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from scipy import sparse

import cosolve as cs
from cosolve.signal import Polynomial
from cosolve.structures import (
    DofPort,
    SecondOrder,
    Structure,
    StructureIntegrator,
)
from cosolve.structures.truss import Bar

BAR = Bar(elements=5, length=1.0, E=30.0, rho=2.0)
H = 0.02
IMPLICIT = [
    StructureIntegrator.backward_euler,
    StructureIntegrator.generalised_alpha,
    lambda: StructureIntegrator.hht(0.1),
    StructureIntegrator.trapezoidal,
    StructureIntegrator.bdf2,
]
START = {"q0": 0.01 * np.arange(1, 6), "v0": np.linspace(0.2, -0.1, 5)}


def structure(linear: bool = False) -> Structure:
    D, load = 0.002 * BAR.stiffness(), lambda t: np.full(5, 0.3 * np.sin(3 * t))
    if linear:
        return Structure(BAR.mass(), K=BAR.stiffness(), D=D, load=load)
    return Structure(BAR.mass(), D=D, internal_force=BAR.internal_force, tangent=BAR.tangent, load=load)


def two_forces(rule: StructureIntegrator, linear: bool = False, **options: object) -> SecondOrder:
    outputs = [DofPort("x", -1), DofPort("v", [0, 4], "velocity"), DofPort("a", 2, "acceleration")]
    inputs = [DofPort("f", -1, "force"), DofPort("g", [1, 2], "force", factor=2.0)]
    return SecondOrder(structure(linear), rule, inputs=inputs, outputs=outputs, **START, **options)


def driven(level: str) -> Callable[..., SecondOrder]:
    def build(rule: StructureIntegrator, linear: bool = False, **options: object) -> SecondOrder:
        inputs = [DofPort("u", -1, level), DofPort("f", 2, "force")]
        reaction = DofPort("R", -1, "reaction", factor=-1.0)
        outputs = [reaction, DofPort("x", [2, 4]), DofPort("a", [1, 4], "acceleration")]
        return SecondOrder(structure(linear), rule, inputs=inputs, outputs=outputs, **START, **options)

    return build


def acceleration_free(rule: StructureIntegrator, linear: bool = False, **options: object) -> SecondOrder:
    inputs = [DofPort("v", -1, "velocity"), DofPort("x", -1, "displacement")]
    return SecondOrder(
        structure(linear),
        rule,
        inputs=inputs,
        outputs=[DofPort("R", -1, "reaction"), DofPort("x2", 2)],
        **START,
        u0=[-0.1, 0.05],
        **options,
    )


BUILDS = {
    "forces": two_forces,
    "displacement": driven("displacement"),
    "velocity": driven("velocity"),
    "acceleration": driven("acceleration"),
    "acceleration-free": acceleration_free,
}


def signal(width: int, degree: int = 1, t: float = 0.0) -> Polynomial:
    """Small inputs that suit every kind: near the start values where motion is prescribed."""
    coefficients = 1e-3 * np.cos(1.0 + np.arange((degree + 1) * width)).reshape(degree + 1, width)
    coefficients[0, 0] += 0.05
    return Polynomial(t, H, coefficients)


def width(subsystem: SecondOrder) -> int:
    return len(subsystem.u0)


@pytest.mark.parametrize("rule", [*IMPLICIT, StructureIntegrator.central_differences], ids=lambda r: r().name)
@pytest.mark.parametrize("restart", ["kept", "balanced"])
def test_rollback_repeats_bit_for_bit(rule: Callable[[], StructureIntegrator], restart: str) -> None:
    subsystem = two_forces(rule(), restart=restart, substeps=2)
    subsystem.start(0.0)
    u = signal(3)
    subsystem.advance(0.0, H, u)
    saved = subsystem.save()
    runs = []
    for _ in range(2):
        subsystem.restore(saved)
        runs.append([subsystem.advance(n * H, (n + 1) * H, signal(3, t=n * H)) for n in range(1, 4)])
        subsystem.restore(saved)
        subsystem.jacobian(H, 2 * H, signal(3, t=H), np.array([0.0, 1.0]))
        subsystem.advance(H, 2 * H, signal(3, 2, t=H))  # something else in between
    assert all(np.array_equal(a, b) for a, b in zip(*runs, strict=True))
    subsystem.start(0.0)
    assert np.array_equal(subsystem.advance(0.0, H, u), _fresh(two_forces(rule(), restart=restart, substeps=2), u))


def _fresh(subsystem: SecondOrder, u: Polynomial) -> np.ndarray:
    subsystem.start(0.0)
    return subsystem.advance(0.0, H, u)


RULES_AND_BUILDS = [(rule, build) for rule in IMPLICIT for build in BUILDS] + [
    (StructureIntegrator.central_differences, build) for build in BUILDS if build != "displacement"
]


@pytest.mark.sample(30)
@pytest.mark.parametrize(("rule", "build"), RULES_AND_BUILDS, ids=lambda v: v if isinstance(v, str) else v().name)
@pytest.mark.parametrize(
    "options",
    [{}, {"load": "end"}, {"restart": "balanced"}, {"substeps": 3}, {"substeps": 2, "restart": "balanced"}],
    ids=str,
)
@pytest.mark.parametrize("linear", [True, False], ids=["linear", "Hencky"])
def test_jacobian_against_differences(
    rule: Callable[[], StructureIntegrator], build: str, options: dict, linear: bool
) -> None:
    """For holds, ramps and parabolas, in the second step (so that a past exists); relative to the largest entry."""
    subsystem = BUILDS[build](rule(), linear, tol=1e-13, **options)
    subsystem.start(0.0)
    p = width(subsystem)
    subsystem.advance(0.0, H, signal(p))
    saved, u = subsystem.save(), signal(p, 2, t=H)
    for weight in (np.ones(1), np.array([0.0, 1.0]), np.array([0.0, 0.5, 0.5])):
        subsystem.restore(saved)
        J = subsystem.jacobian(H, 2 * H, u, weight)
        differences = np.empty_like(J)
        for k in range(p):
            moved = []
            for eps in (1e-6, -1e-6):
                coefficients = np.zeros((3, p))
                coefficients += u.coefficients
                coefficients[: len(weight), k] += eps * weight
                subsystem.restore(saved)
                moved.append(subsystem.advance(H, 2 * H, Polynomial(H, H, coefficients)))
            differences[:, k] = (moved[0] - moved[1]) / 2e-6
        size = np.abs(J).max(axis=1, keepdims=True) + 1e-30
        assert np.abs((J - differences) / size).max() < 2e-6


@pytest.mark.parametrize("rule", [*IMPLICIT, StructureIntegrator.central_differences], ids=lambda r: r().name)
def test_sparse_matrices_give_the_dense_result(rule: Callable[[], StructureIntegrator]) -> None:
    def build(convert: Callable[[np.ndarray], object]) -> SecondOrder:
        K = BAR.stiffness()
        matrices = Structure(convert(np.diag(BAR.mass())), K=convert(K), D=convert(0.01 * K))
        inputs, outputs = [DofPort("f", [1, 4], "force")], [DofPort("x", [0, 3])]
        return SecondOrder(matrices, rule(), inputs=inputs, outputs=outputs, **START)

    dense, thin = build(np.array), build(sparse.csc_array)
    for subsystem in (dense, thin):
        subsystem.start(0.0)
    for n in range(3):
        u = signal(2, t=n * H)
        a, b = (s.advance(n * H, (n + 1) * H, u) for s in (dense, thin))
        assert a == pytest.approx(b, rel=1e-12)
    u = signal(2, t=3 * H)
    a, b = (s.jacobian(3 * H, 4 * H, u, np.ones(1)) for s in (dense, thin))
    assert a == pytest.approx(b, rel=1e-11)


def test_copies_travel_to_other_processes() -> None:
    """A pickled subsystem, factorisations left behind, continues bit for bit."""
    bar = SecondOrder(
        Structure(BAR.mass(), internal_force=BAR.internal_force, tangent=BAR.tangent),
        "bdf2",
        inputs=[DofPort("f", -1, "force")],
        outputs=[DofPort("x", -1)],
        **START,
    )
    bar.start(0.0)
    bar.advance(0.0, H, signal(1))
    twin = pickle.loads(pickle.dumps(bar))
    u = signal(1, t=H)
    assert np.array_equal(bar.advance(H, 2 * H, u), twin.advance(H, 2 * H, u))


def test_linear_structures_are_solved_however_small_the_forces() -> None:
    """The tolerance of the local iteration is a force; a linear structure does not iterate."""
    tiny, normal = (
        SecondOrder(
            Structure(BAR.mass(), K=BAR.stiffness()),
            "trapezoidal",
            inputs=[DofPort("f", [1, 2, 4], "force")],
            outputs=[DofPort("x", [0, 4])],
            **START,
        )
        for _ in range(2)
    )
    for subsystem in (tiny, normal):
        subsystem.start(0.0)
    scale = 2.0**-60
    tiny.set_state(tiny.get_state() * scale)
    u = signal(3)
    found = tiny.advance(0.0, H, Polynomial(0.0, H, u.coefficients * scale))
    assert found / scale == pytest.approx(normal.advance(0.0, H, u), rel=1e-12)


def test_ports_given_as_matrices() -> None:
    """A load spread over nodes and the mean of a motion, the transpose of it."""
    shape = np.array([[0.2], [0.3], [0.5], [0.0], [0.0]])
    spread, single = (
        SecondOrder(structure(True), "trapezoidal", inputs=[DofPort("f", dofs, "force")], outputs=[DofPort("x", dofs)])
        for dofs in (shape, [0, 1, 2])
    )
    (mean,) = _fresh(spread, Polynomial(0.0, H, np.array([[2.0]])))
    three = _fresh(single, Polynomial(0.0, H, 2.0 * shape[:3].T))
    assert mean == pytest.approx(shape[:3, 0] @ three, rel=1e-13)


def test_state_jacobian_is_a_by_product() -> None:
    subsystem = two_forces(StructureIntegrator.backward_euler())
    subsystem.start(0.0)
    with pytest.raises(cs.errors.SubsystemError, match="ask for the jacobian"):
        subsystem.state_jacobian()
    J = subsystem.jacobian(0.0, H, signal(3), np.ones(1))
    dq, dv, da = subsystem.state_jacobian()
    assert J == pytest.approx(np.vstack([dq[4], dv[0], dv[4], da[2]]))


def test_large_sparse_structure_is_factorised_once() -> None:
    """20 000 degrees of freedom, field in and field out, 50 steps."""
    n = 20_000
    K = sparse.diags_array([2.0, -1.0, -1.0], offsets=[0, 1, -1], shape=(n, n)) * 1e4
    every = np.arange(n)
    field = SecondOrder(
        Structure(sparse.eye_array(n), K=K),
        "trapezoidal",
        inputs=[DofPort("f", every, "force")],
        outputs=[DofPort("x", every)],
        u0=np.ones(n),
    )
    field.start(0.0)
    for k in range(50):
        x = field.advance(k * H, (k + 1) * H, Polynomial(k * H, H, np.ones((1, n))))
    assert field.local_iterations == 50
    assert field.factorisations == 1
    assert x[n // 2] == pytest.approx(0.5, rel=1e-9)  # far from the ends: t^2 / 2


def test_large_nonlinear_truss_stays_sparse() -> None:
    """5 000 Hencky elements pulled at the end: local Newton with sparse tangents, a Jacobian by differences.

    One dense tangent would be an array of 200 MB; all arrays together take 7 MB at most.
    """
    bar = Bar(elements=5000, length=10.0, E=30.0, rho=2.0)
    truss = SecondOrder(
        Structure(bar.mass(), internal_force=bar.internal_force, tangent=bar.tangent),
        StructureIntegrator.generalised_alpha(rho_inf=0.8),
        inputs=[DofPort("f", -1, "force")],
        outputs=[DofPort("u", -1), DofPort("v", -1, "velocity")],
    )
    tracemalloc.start()
    try:
        truss.start(0.0)
        for n in range(3):
            saved = truss.save()
            truss.advance(n * H, (n + 1) * H, Polynomial(n * H, H, np.array([[1.0]])))
        found = []
        for f in (1.001, 0.999):
            truss.restore(saved)
            found.append(truss.advance(2 * H, 3 * H, Polynomial(2 * H, H, np.array([[f]]))))
        truss.restore(saved)
        J = truss.jacobian(2 * H, 3 * H, Polynomial(2 * H, H, np.array([[1.0]])), np.ones(1))
        assert J[:, 0] == pytest.approx((found[0] - found[1]) / 2e-3, rel=1e-6)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


# -- refusals ------------------------------------------------------------------------------------------------

PORTS = {"inputs": [DofPort("f", 0, "force")], "outputs": [DofPort("x", 0)]}


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: Structure([1.0, 1.0], K=np.eye(3)), r"K has shape \(3, 3\), expected \(2, 2\) like the mass matrix"),
        (lambda: Structure(np.ones((2, 3)), K=np.eye(2)), r"M has shape \(2, 3\)"),
        (lambda: Structure([1.0], K=[[np.nan]]), "K holds a NaN"),
        (lambda: Structure([1.0]), "either K, or internal_force"),
        (lambda: Structure([1.0], internal_force=lambda q: q), "belong together"),
        (lambda: Structure([1.0], K=[[1.0]], load=[1.0, 2.0]), r"load has shape \(2,\), expected \(1,\)"),
        (lambda: DofPort("x", 7).index(3), "no degree of freedom 7; the structure has 0 to 2"),
        (lambda: DofPort("x", [1, 1]).index(3), "listed twice"),
        (lambda: DofPort("x", 0, factor=0.0), "factor must be a number other than 0"),
        (lambda: SecondOrder(Structure([1.0], K=[[1.0]]), "bdf2", before=(0.0, [1], [0]), **PORTS), "before must be"),
        (
            lambda: SecondOrder(Structure([1.0, 0.0], K=np.eye(2)), "central-differences", **PORTS),
            "cannot move degree of freedom 1, which has no mass",
        ),
        (
            lambda: SecondOrder(Structure([[2, 1], [1, 2]], K=np.eye(2)), "central-differences", **PORTS),
            "need a lumped",
        ),
        (
            lambda: SecondOrder(
                Structure([1.0], K=[[1.0]]),
                "central-differences",
                inputs=[DofPort("u", 0, "displacement")],
                outputs=[DofPort("R", 0, "reaction")],
            ),
            "cannot follow the displacement of degree of freedom 0 alone",
        ),
        (
            lambda: SecondOrder(
                Structure([[2, 1], [1, 2]], K=np.eye(2)),
                "trapezoidal",
                inputs=[DofPort("x", 0, "displacement"), DofPort("v", 0, "velocity")],
                outputs=[],
            ),
            "use a lumped",
        ),
        (
            lambda: SecondOrder(
                Structure([1.0], K=[[1.0]]), "trapezoidal", inputs=[], outputs=[DofPort("R", 0, "reaction")]
            ),
            "whose motion is not prescribed",
        ),
        (
            lambda: SecondOrder(Structure([1.0], K=[[1.0]]), "back-euler", **PORTS),
            "no integrator 'back-euler'; did you mean 'backward-euler'",
        ),
        (
            lambda: SecondOrder(Structure([1.0], K=[[1.0]]), "bdf2", q0=[1, 2], **PORTS),
            "q0 holds 2 numbers, expected 1",
        ),
        (lambda: SecondOrder(Structure([1.0], K=[[1.0]]), "bdf2", substeps=0, **PORTS), "substeps must be a whole"),
        (lambda: SecondOrder(Structure([1.0], K=[[1.0]]), "bdf2", inputs=["f"], outputs=[]), "given as DofPort"),
        (lambda: StructureIntegrator.generalised_alpha(rho_inf=1.5), "between 0 and 1"),
        (lambda: StructureIntegrator.generalised_alpha(beta=0.0), "for explicit steps use .central-differences"),
        (lambda: StructureIntegrator.hht(0.5), "between 0 and 1/3"),
    ],
)
def test_refusals(build: Callable[[], object], sentence: str) -> None:
    with pytest.raises(cs.errors.SetupError, match=sentence):
        build()


def test_missing_initial_acceleration_is_asked_for() -> None:
    massless = SecondOrder(Structure([0.0, 1.0], K=[[1, -1], [-1, 2]]), "trapezoidal", **PORTS)
    with pytest.raises(cs.errors.SetupError, match="give a0"):
        massless.start(0.0)


def test_structure_that_nothing_holds_is_named() -> None:
    loose = SecondOrder(Structure([0.0, 1.0], K=[[0, 0], [0, 1]]), "backward-euler", **PORTS)
    system = cs.System({"part": loose})
    system.set("part.f", 1.0)
    with pytest.raises(cs.errors.SubsystemError, match=r"'part' failed.*nothing determines degree of freedom 0"):
        cs.simulate(system, t_end=0.1, method=cs.Jacobi(), step=0.1)


def test_local_newton_that_fails_names_place_and_time() -> None:
    """A tangent with the wrong sign; the sentence names the degree of freedom, the time and the residuals."""
    wrong = SecondOrder(
        Structure([1.0], internal_force=lambda q: q + q**3, tangent=lambda q: -np.diag(1e4 + 3 * q**2)),
        "backward-euler",
        inputs=[DofPort("f", 0, "force")],
        outputs=[DofPort("x", 0)],
    )
    system = cs.System({"part": wrong})
    system.set("part.f", 1.0)
    with pytest.raises(cs.errors.SubsystemError, match=r"converge in the step to t = 0.1: .* at degree of freedom 0"):
        cs.simulate(system, t_end=0.1, method=cs.Jacobi(), step=0.1)


def test_resolve_refuses_substeps() -> None:
    subsystem = two_forces("backward-euler", substeps=2)
    subsystem.start(0.0)
    with pytest.raises(cs.errors.SubsystemError, match="one substep"):
        subsystem.resolve(0.0, H, signal(3))
