"""Blocks of variants give the numbers of `simulate`: the same bits from the same propagators, 1e-12 otherwise."""

import sys

import numpy as np
import pytest
import xarray as xr
from tests.sweeps.models import free, oscillator, oscillator_matrices, symmetric, tanks

import cosolve as cs
from cosolve.engine.blocks import block_run
from cosolve.engine.blocks.block_run import BlockTask
from cosolve.engine.blocks.blocks import advance_blocks, why_not_blocks
from cosolve.engine.blocks.propagators import propagators
from cosolve.engine.blocks.variants import gather

EXPLICIT = [
    cs.Jacobi(0),
    cs.Jacobi(1),
    cs.Jacobi(3),
    cs.Jacobi(4),
    cs.GaussSeidel(0),
    cs.GaussSeidel(1),
    cs.GaussSeidel(2, order=["two"]),
]
CORRECTED = [
    cs.SemiImplicit(0),
    cs.SemiImplicit(2),
    cs.SemiImplicit(3),
    cs.SemiImplicit(1, predictor=0),
    cs.SemiImplicit(0, predictor=1),
    cs.SemiImplicit(1, final_update=False),
    cs.SemiImplicit(1, refresh="run"),
]
SYSTEMS = {
    "feed-through": lambda r: oscillator(1e3 * (1 + r.random()), 1 + r.random(), r.random()),
    "plain": lambda r: symmetric(1e3 * (1 + r.random()), 10 * r.random()),
    "vectors and constants": lambda r: tanks(0.2 + r.random(), r.random()),
}
NAMES = {
    "feed-through": ("one.x", "one.v", "two.F", "two.x", "one.f", "two.x1"),
    "plain": ("one.x", "two.v", "two.foreign_x"),
    "vectors and constants": ("two.h", "mix.out", "one.h", "one.extra", "mix.in", "one.q"),
}


def variants(kind: str, count: int) -> list[cs.System]:
    random = np.random.default_rng(count)
    return [SYSTEMS[kind](random) for _ in range(count)]


def simulated(system: cs.System, wanted: BlockTask) -> np.ndarray:
    run = cs.simulate(
        system,
        method=wanted.method,
        step=wanted.step,
        t_end=wanted.t_end,
        every=wanted.every,
        record=wanted.record,
        compiled=False,
    )
    return np.concatenate([run[name].reshape(len(run.t), -1).T for name in wanted.record])


def library_propagators(systems):
    """The exponentials that `simulate` uses."""

    def propagate(ensemble, H, degree):
        names = list(systems[0].subsystems)
        found = [np.array([s.subsystems[n]._propagator(H, degree) for s in systems]) for n in names]
        return [np.ascontiguousarray(np.moveaxis(P, 0, 2)) for P in found]

    return propagate


@pytest.mark.sample(12)
@pytest.mark.parametrize("t_end", [0.06, 0.0405])  # the last step of the second one is shorter
@pytest.mark.parametrize("kind", SYSTEMS)
@pytest.mark.parametrize("method", EXPLICIT + CORRECTED, ids=repr)
def test_same_numbers_as_simulate(method, kind, t_end) -> None:
    """Start-up, ordinary steps one by one (every = 1) and together (every = 25), and the last one."""
    systems = variants(kind, 3)
    if isinstance(method, cs.GaussSeidel) and kind == "vectors and constants":
        method = cs.GaussSeidel(method.degree, order=["mix"])
    for every in (1, 25):
        wanted = BlockTask(method, 1e-3, 0.0, t_end, NAMES[kind], every, "trajectory")
        expected = np.array([simulated(s, wanted) for s in systems])
        plan = systems[0].plan()
        given = advance_blocks(plan, gather(systems), wanted, propagate=library_propagators(systems)).values
        own = advance_blocks(plan, gather(systems), wanted).values
        size = np.abs(expected).max(axis=2, keepdims=True)
        assert np.all(np.abs(own - expected) <= 1e-12 * size)
        if method in CORRECTED:  # the interface Jacobian is solved by another route than LAPACK's substitution
            assert np.all(np.abs(given - expected) <= 1e-14 * size)
        else:
            np.testing.assert_array_equal(given, expected)


def triangle(rate: float) -> cs.System:
    """Each of three reads both others, through ports of one number and of two."""
    parts = {}
    for k, name in enumerate("abc"):
        A = -np.diag([rate, 0.5 + k])
        B = np.array([[1.0, 0.3, -0.2], [0.1 * k, 1.0, 0.4]])
        outputs = ["y", "w"] if name == "b" else [cs.Port("y", 2)]
        inputs = ["p", cs.Port("q", 2)] if name != "b" else [cs.Port("p", 2), "q"]
        B = B if name != "b" else np.roll(B, 1, axis=1)
        parts[name] = cs.Linear(A, B, np.eye(2), x0=[1.0 + k, -0.5], inputs=inputs, outputs=outputs)
    system = cs.System(parts)
    for source, target in (("b.y", "a.p"), ("c.y", "a.q"), ("a.y", "b.p"), ("b.w", "c.p"), ("a.y", "c.q")):
        system.connect(source, target)
    system.set("b.q", 0.3)
    return system


@pytest.mark.parametrize("order", ["abc", "acb", "bac", "bca", "cab", "cba"])
@pytest.mark.parametrize("degree", [0, 1])
def test_any_order_of_a_serial_sweep(order, degree) -> None:
    """What has run in this step, and nothing else, is taken at its new value."""
    systems = [triangle(rate) for rate in (1.0, 2.5)]
    method = cs.GaussSeidel(degree, order=list(order))
    wanted = BlockTask(method, 0.05, 0.0, 1.0, ("a.y", "b.y", "b.w", "c.y", "a.q"), 1, "trajectory")
    expected = np.array([simulated(s, wanted) for s in systems])
    own = advance_blocks(systems[0].plan(), gather(systems), wanted).values
    np.testing.assert_allclose(own, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("count", [1, 63, 64, 65, 130])
def test_block_boundaries(count) -> None:
    """Filled and unfilled blocks, on one and several threads: every variant has the bits it has alone."""
    systems = variants("feed-through", count)
    wanted = BlockTask(cs.Jacobi(1), 1e-3, 0.0, 0.2, ("one.x", "two.F"), 1, "end")
    together = advance_blocks(systems[0].plan(), gather(systems), wanted, workers=1).values
    threaded = advance_blocks(systems[0].plan(), gather(systems), wanted, workers=3).values
    np.testing.assert_array_equal(together, threaded)
    for v in {0, count // 2, count - 1}:
        alone = advance_blocks(systems[v].plan(), gather([systems[v]]), wanted).values
        np.testing.assert_array_equal(alone[0], together[v])


@pytest.mark.slow
def test_long_runs_stay_with_simulate() -> None:
    """1000 steps, most of them in machine code of their own, at the steps of the benchmark."""
    systems = variants("feed-through", 4)
    for method in (cs.Jacobi(0), cs.Jacobi(1), cs.SemiImplicit(1)):
        wanted = BlockTask(method, 1e-4, 0.0, 0.1, NAMES["feed-through"], 1000, "trajectory")
        expected = np.array([simulated(s, wanted) for s in systems])
        found = advance_blocks(systems[0].plan(), gather(systems), wanted)
        assert found.seconds.keys() == {"propagators", "preparing", "loop", "collecting"}
        scale = np.abs(expected[:, :, :1])  # of the start: both decay
        assert np.all(np.abs(found.values - expected) <= 1e-12 * np.maximum(scale, np.abs(expected)))


def test_instructions_and_machine_code_agree(monkeypatch) -> None:
    systems = variants("plain", 5)
    wanted = BlockTask(cs.SemiImplicit(2), 1e-3, 0.0, 0.5, NAMES["plain"], 1, "end")
    fast = advance_blocks(systems[0].plan(), gather(systems), wanted).values
    monkeypatch.setattr(block_run, "_WORTH_COMPILING", 10**9)
    slow = advance_blocks(systems[0].plan(), gather(systems), wanted).values
    np.testing.assert_array_equal(fast, slow)


@pytest.mark.parametrize("reduce", ["end", "max", "min", "peak"])
def test_reductions(reduce) -> None:
    build = lambda ck: oscillator(ck)  # noqa: E731
    found = cs.sweep(build, {"ck": [1e3, 2e3]}, methods=cs.Jacobi(1), steps=1e-3, t_end=0.3, reduce=reduce, every=7)
    assert "in compiled blocks" in found.attrs["how"]
    for k, ck in enumerate([1e3, 2e3]):
        run = cs.simulate(build(ck), method=cs.Jacobi(1), step=1e-3, t_end=0.3, every=7)
        names = [name for name in found.data_vars if name in run.names]
        rows = np.array([run[name] for name in names])
        kept = {"end": rows[:, -1], "max": rows.max(1), "min": rows.min(1), "peak": np.abs(rows).max(1)}[reduce]
        given = [found[name].values[k] for name in names]
        np.testing.assert_allclose(given, kept, rtol=1e-11, atol=1e-12 * np.abs(rows).max())


def test_nothing_coupled() -> None:
    found = cs.sweep(free, {"decay": [1.0, 2.0]}, methods=cs.Jacobi(2), steps=0.1, t_end=1.0, record="tank.h")
    assert "in compiled blocks" in found.attrs["how"]
    np.testing.assert_allclose(found["tank.h"], np.exp([-1.0, -2.0]), rtol=1e-14)


def test_matrices_of_all_variants_at_once() -> None:
    grid = {"ck": [1e3, 1.5e3, 2e3], "dk": [1.0, 2.0]}
    run = {"methods": [cs.Jacobi(1), cs.SemiImplicit(1)], "steps": 1e-3, "t_end": 0.2}
    built = cs.sweep(oscillator, grid, **run)
    given = cs.sweep(oscillator, grid, **run, matrices=oscillator_matrices)
    xr.testing.assert_equal(built, given)


@pytest.mark.covers("PF-5")
def test_neither_variants_nor_steps_cost_calls_of_python() -> None:
    """With their matrices given, each further variant and each further macro step of all costs less than one call."""

    def calls(variants: int, t_end: float) -> int:
        found = 0

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal found
            found += event in ("call", "c_call")

        grid = {"ck": np.linspace(1e3, 2e3, variants), "dk": [1.0]}
        run = {"methods": cs.Jacobi(1), "steps": 1e-3, "matrices": oscillator_matrices, "executor": "serial"}
        sys.setprofile(count)
        try:
            cs.sweep(oscillator, grid, t_end=t_end, **run)
        finally:
            sys.setprofile(None)
        return found

    calls(64, 0.1)  # what is imported and compiled at the first use
    few = calls(64, 0.1)
    assert calls(640, 0.1) - few < 640 - 64
    assert calls(64, 1.0) - few < 1000 - 100


def test_matrices_that_are_not_those_of_build() -> None:
    wrong = lambda ck, dk: {"two": {"A": [[0, 1], [-(2e3 + 2 * ck), -(1.0 + dk)]]}}  # noqa: E731
    with pytest.raises(cs.errors.SetupError, match="matrices: A of 'two' is not the one of build for"):
        cs.sweep(
            oscillator,
            {"ck": [1e3, 2e3], "dk": [1.0]},
            methods=cs.Jacobi(1),
            steps=1e-3,
            t_end=0.1,
            matrices=wrong,
        )
    with pytest.raises(cs.errors.SetupError, match="there is no subsystem 'tow'"):
        cs.sweep(oscillator, {"ck": [1e3]}, methods=cs.Jacobi(), steps=1e-3, t_end=1, matrices=lambda ck: {"tow": {}})


def test_a_nan_in_matrices_fails_its_variant_only() -> None:
    rows = [{"ck": ck, "dk": 1.0} for ck in (1e3, np.nan, 2e3, 1.5e3)]
    run = {"methods": [cs.Jacobi(1), cs.SemiImplicit(1)], "steps": 1e-3, "t_end": 0.2}
    found = cs.sweep(oscillator, rows, **run, matrices=oscillator_matrices)
    np.testing.assert_array_equal(found["error"] != "", [[False] * 2, [True] * 2, [False] * 2, [False] * 2])
    assert "holds a NaN" in cs.failed_runs(found)[0].message
    good = cs.sweep(oscillator, [rows[k] for k in (0, 2, 3)], **run, matrices=oscillator_matrices)
    xr.testing.assert_equal(found.isel(variant=[0, 2, 3]).drop_vars("variant"), good.drop_vars("variant"))


@pytest.mark.parametrize(
    ("matrices", "words"),
    [
        ({}, "matrices must be a function that returns"),
        (lambda ck: {}, "matrices takes no parameter 'dk'; it takes ck"),
        (lambda ck, dk: None, "matrices must return .* not a NoneType"),
        (lambda ck, dk: ck.nothing, "matrices failed: .*nothing.* \\(AttributeError\\)"),
        (lambda ck, dk: {"two": 1.0}, "'two' must have {'A': ...}, not a float"),
        (lambda ck, dk: {"two": {"E": 1.0}}, "'two' has no 'E'; it has A, B, C, D and x0"),
        (lambda ck, dk: {"two": {"A": [[0, 1], [0, 1], [0, 1]]}}, "'two' A must be nested lists of shape \\(2, 2\\)"),
        (lambda ck, dk: {"two": {"A": [[0, 1], [ck[:2], 1]]}}, "arrays of 3 numbers, one per variant"),
    ],
)
def test_matrices_that_make_no_sense(matrices, words) -> None:
    rows = [{"ck": ck, "dk": 1.0} for ck in (1e3, 2e3, 3e3)]
    with pytest.raises(cs.errors.SetupError, match=words):
        cs.sweep(oscillator, rows, methods=cs.Jacobi(1), steps=1e-3, t_end=0.1, matrices=matrices)


def test_matrices_for_what_cannot_be_built() -> None:
    def picky(ck, dk):
        return oscillator(ck, dk) if ck < 2.5e3 else 1 / 0

    run = {"methods": cs.Jacobi(1), "steps": 1e-3, "t_end": 0.1, "matrices": oscillator_matrices}
    with pytest.raises(
        cs.errors.SetupError, match=r"given for \{'ck': 3000.0, 'dk': 1.0\}, but build failed: division by zero"
    ):
        cs.sweep(picky, {"ck": [1e3, 2e3, 3e3], "dk": [1.0]}, **run)


def test_matrices_may_change_what_they_are_given() -> None:
    def careless(ck, dk):
        found = oscillator_matrices(ck.copy(), dk.copy())
        ck *= 0.0
        return found

    grid = {"ck": [1e3, 2e3], "dk": [1.0]}
    rows = [{"ck": ck, "dk": 1.0} for ck in grid["ck"]]
    run = {"methods": cs.Jacobi(1), "steps": 1e-3, "t_end": 0.1, "matrices": careless}
    assert cs.sweep(oscillator, rows, **run)["ck"].values.tolist() == grid["ck"]
    assert cs.sweep(oscillator, grid, **run)["ck"].values.tolist() == grid["ck"]


def test_many_systems_gathered_piece_by_piece(monkeypatch) -> None:
    """Matrices and constants of all variants are the same, however many systems are gathered at a time."""
    grid = {"k": np.linspace(0.2, 1.0, 5), "q": [0.0, 0.3]}
    run = {"methods": cs.Jacobi(1), "steps": 1e-3, "t_end": 0.05}
    once = cs.sweep(tanks, grid, **run)
    monkeypatch.setattr("cosolve.sweeps.sorting._AT_A_TIME", 3)
    pieces = cs.sweep(tanks, grid, **run)
    assert "in compiled blocks" in pieces.attrs["how"]
    xr.testing.assert_equal(once, pieces)


def test_what_does_not_run_in_blocks_says_why() -> None:
    linear = oscillator()
    assert "is not a Linear subsystem" in why_not_blocks(
        cs.System({"a": cs.Static(lambda t, u: t, inputs=[], outputs=["y"])}), cs.Jacobi(), 0.1, "end"
    )
    assert "Implicit does not run in blocks" in why_not_blocks(linear, cs.Implicit(1), 0.1, "end")
    assert "not all of one length" in why_not_blocks(linear, cs.Jacobi(1), cs.Adaptive(), "end")
    assert "function of a whole result" in why_not_blocks(linear, cs.Jacobi(1), 0.1, len)
    mass = cs.Linear([[0, 1], [0, 0]], [[0], [1]], [[1, 0]], x0=[1, 0], inputs=["f"], outputs=["x"])
    law = cs.System({"a": mass})
    law.law("a.f", lambda x: -x, of="a.x")
    assert "no plain connection" in why_not_blocks(law, cs.Jacobi(1), 0.1, "end")
    loop = cs.System({"a": cs.Linear([[-1]], [[1]], [[1]], [[0.5]], x0=[1], inputs=["u"], outputs=["y"])})
    loop.connect("a.y", "a.u")
    assert "feed-through runs in a loop" in why_not_blocks(loop, cs.Jacobi(1), 0.1, "end")
    assert why_not_blocks(linear, cs.Jacobi(1), 0.1, "end") is None


def test_propagators_against_quadrature() -> None:
    """`F_j` is the integral of `exp(A H (1 - s)) B H s^j`; stiff, badly scaled and nilpotent matrices."""
    from scipy.linalg import expm

    nodes, weights = np.polynomial.legendre.leggauss(40)
    s, w = 0.5 * (nodes + 1.0), 0.5 * weights
    cases = [
        (np.array([[0.0, 1.0], [-1e6, -20.0]]), np.array([[0.0, 0.0], [1e6, 20.0]]), 1e-3),
        (np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]]), 0.7),
        (np.array([[-30.0, 3.0, 0.0], [1.0, -2.0, 5.0], [0.0, 1e-3, 1.0]]), np.ones((3, 1)), 0.5),
        (np.zeros((1, 1)), np.ones((1, 1)), 0.3),
    ]
    for A, B, H in cases:
        n, p = B.shape
        P = np.empty((n, n + 4 * p, 1))
        propagators(A[:, :, np.newaxis].copy(), B[:, :, np.newaxis].copy(), H, 3, 0, 1, P)
        flow = expm(A * H)
        flows = [expm(A * H * (1.0 - node)) @ B * H for node in s]
        # entries in units of the largest one in their row: scipy's exponential is no better than that
        np.testing.assert_allclose(P[:, :n, 0], flow, rtol=1e-12, atol=1e-13 * np.abs(flow).max())
        for j in range(4):
            exact = sum(weight * node**j * F for weight, node, F in zip(w, s, flows, strict=True))
            np.testing.assert_allclose(P[:, n + j * p : n + (j + 1) * p, 0], exact, rtol=1e-10, atol=1e-15)


def test_propagators_do_not_depend_on_their_neighbours() -> None:
    """Side by side are tiny, stiff, badly scaled and hopeless matrices: each has the bits that it has alone."""
    from scipy.linalg import expm

    random = np.random.default_rng(5)
    count = 150  # more than two rows of lanes
    A = random.normal(size=(3, 3, count)) * 10.0 ** random.uniform(-6, 3, count)
    A[0] *= 10.0 ** random.uniform(0, 4, count)
    A[:, 0] /= 10.0 ** random.uniform(0, 4, count)
    A[..., 17], A[..., 70], A[..., 90] = np.inf, np.nan, 0.0
    A[0, 1, 33] = 1e200
    A -= 2.0 * np.abs(np.where(np.isfinite(A), A, 0.0)).sum(axis=1).max(axis=0) * np.eye(3)[:, :, np.newaxis]  # stable
    B = random.normal(size=(3, 2, count))
    P = np.empty((3, 3 + 2 * 2, count))
    propagators(A, B, 0.1, 1, 0, count, P)
    hopeless = [17, 33, 70]
    assert np.isnan(P[..., hopeless]).all()
    doublings = set()
    for v in sorted(set(range(count)) - set(hopeless)):
        alone = np.empty((*P.shape[:2], 1))
        propagators(A[..., v : v + 1].copy(), B[..., v : v + 1].copy(), 0.1, 1, 0, 1, alone)
        np.testing.assert_array_equal(alone[..., 0], P[..., v])
        flow = expm(A[..., v] * 0.1)
        np.testing.assert_allclose(P[:, :3, v], flow, rtol=1e-11, atol=1e-14 * max(1.0, np.abs(flow).max()))
        doublings.add(int(np.log2(np.abs(A[..., v]).max() + 1e-9)))
    assert len(doublings) > 8


def test_variants_that_grow_out_of_all_bounds_are_noted() -> None:
    """Jacobi is unstable for stiff springs at this step; semi-implicit coupling is not."""
    found = cs.sweep(
        oscillator,
        {"ck": [1.0, 1e3, 1e5]},
        methods=[cs.Jacobi(1), cs.SemiImplicit(1)],
        steps=0.02,
        t_end=8.0,
        record="one.x",
    )
    assert "6 runs in compiled blocks" in found.attrs["how"]
    grown = np.abs(found["one.x"].values) > 1e9
    assert grown.any()
    assert not grown.all()
    notes = found["note"].values
    assert [["have grown" in str(note) for note in row] for row in notes.reshape(grown.shape)] == grown.tolist()
