"""Time integrators of structures: orders, amplification, energy, limit of the explicit one (Sicklinger (2014), 3.1)."""

import numpy as np
import pytest
from examples.three_mass_chain.model import exact, monolithic
from scipy.linalg import eigh

import cosolve as cs
from cosolve.signal import Polynomial
from cosolve.structures import (
    DofPort,
    SecondOrder,
    Structure,
    StructureIntegrator,
)
from cosolve.structures.truss import Bar

BAR = Bar(elements=6, length=1.0, E=40.0, rho=2.0)
SECOND_ORDER = [
    StructureIntegrator.generalised_alpha(),
    StructureIntegrator.generalised_alpha(rho_inf=0.8),
    StructureIntegrator.hht(0.1),
    StructureIntegrator.trapezoidal(),
    StructureIntegrator.bdf2(),
    StructureIntegrator.central_differences(),
]


def no_input(t: float, H: float) -> Polynomial:
    return Polynomial(t, H, np.zeros((1, 0)))


def advance(subsystem: SecondOrder, h: float, steps: int) -> None:
    subsystem.start(0.0)
    for n in range(steps):
        subsystem.advance(n * h, (n + 1) * h, no_input(n * h, h))


def oscillator(rule: StructureIntegrator, omega: float = 1.0, **options: object) -> cs.System:
    """One mass on a spring, given one step of the past where the rule needs it."""
    x = DofPort("x", 0)
    mass = SecondOrder(Structure([1.0], K=[[omega**2]]), rule, inputs=[], outputs=[x], q0=[1.0], **options)
    return cs.System({"mass": mass})


@pytest.mark.sample(2)
@pytest.mark.covers("IJ-13")
@pytest.mark.parametrize(("rule", "order"), [("BE", 1), ("GA", 2), ("TR", 2), ("BDF2", 2)])
def test_orders_on_the_three_mass_chain(rule: str, order: int) -> None:
    """Error of all displacements and velocities at T = 1 over h = 0.01 ... 0.000625: the last two halvings."""
    steps = [0.0025, 0.00125, 0.000625]
    q, v, _ = exact(1.0)
    errors = []
    for h in steps:
        result = cs.simulate(monolithic(rule, h), t_end=1.0, method=cs.Jacobi(degree=0), step=h)
        found = [result[f"chain.{name}{level}"][-1] for level in "dv" for name in "uvw"]
        errors.append(float(np.linalg.norm(found - np.concatenate([q, v]))))
    assert cs.analysis.convergence_order(steps, errors) == pytest.approx(order, abs=0.1)


@pytest.mark.covers("IJ-13")
@pytest.mark.parametrize(("s", "printed"), [(0.01, 0.99504), (1.0, 0.70711), (100.0, 0.09950)])
def test_amplification(s: float, printed: float) -> None:
    """Backward Euler damps by 1/sqrt(1 + s) a step, s = (omega h)^2; the trapezoidal rule not at all."""
    h = s**0.5
    damped = cs.analysis.spectral_radius(oscillator(StructureIntegrator.backward_euler()), cs.Jacobi(0), h)
    assert damped == pytest.approx(1 / np.sqrt(1 + s), rel=1e-12)
    assert damped == pytest.approx(printed, abs=6e-6)
    for restart in ("kept", "balanced"):
        system = oscillator(StructureIntegrator.trapezoidal(), restart=restart)
        kept = cs.analysis.spectral_radius(system, cs.Jacobi(0), h)
        assert kept == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, 1.0])
def test_generalised_alpha_damps_infinite_frequencies_as_asked(rho: float) -> None:
    radius = cs.analysis.spectral_radius(
        oscillator(StructureIntegrator.generalised_alpha(rho_inf=rho), omega=1e5), cs.Jacobi(0), 1.0
    )
    assert radius == pytest.approx(rho, abs=1e-3)


@pytest.mark.covers("SC-28")
@pytest.mark.parametrize("rule", SECOND_ORDER, ids=lambda r: r.name)
@pytest.mark.parametrize("damping", [0.0, 0.01])
def test_order_two_on_a_bar(rule: StructureIntegrator, damping: float) -> None:
    """A bar swinging in its first two modes, against modal superposition; the past of BDF2 comes from its starter."""
    M, K = BAR.mass(), BAR.stiffness()
    squared, modes = eigh(K, np.diag(M))
    omega, delta = np.sqrt(squared[:2]), 0.5 * damping * squared[:2]
    free = np.sqrt(omega**2 - delta**2)
    T = 1.0
    decay = np.exp(-delta * T)
    q = modes[:, :2] @ (decay * (np.cos(free * T) + delta / free * np.sin(free * T)))
    v = modes[:, :2] @ (-decay * omega**2 / free * np.sin(free * T))
    steps, errors = [80, 160, 320], []
    for count in steps:
        bar = SecondOrder(
            Structure(M, K=K, D=damping * K), rule, inputs=[], outputs=[DofPort("tip", -1)], q0=modes[:, :2].sum(axis=1)
        )
        advance(bar, T / count, count)
        end = bar.save()
        errors.append(float(np.linalg.norm(np.concatenate([end.q - q, (end.v - v) / omega[1]]))))
    assert cs.analysis.convergence_order([T / n for n in steps], errors) == pytest.approx(2.0, abs=0.1)


@pytest.mark.covers("SC-28")
def test_trapezoidal_rule_keeps_the_energy() -> None:
    """Undamped bar, all modes, 2000 steps far beyond the explicit limit: relative drift below 1e-10."""
    M, K = BAR.mass(), BAR.stiffness()
    q0 = np.random.default_rng(1).standard_normal(BAR.n)
    rule, tip = StructureIntegrator.trapezoidal(), DofPort("tip", -1)
    bar = SecondOrder(Structure(M, K=K), rule, inputs=[], outputs=[tip], q0=q0)
    bar.start(0.0)
    energies, h = [], 0.05
    for n in range(2000):
        bar.advance(n * h, (n + 1) * h, no_input(n * h, h))
        end = bar.save()
        energies.append(0.5 * (end.v @ (M * end.v) + end.q @ K @ end.q))
    assert np.abs(np.array(energies) / (0.5 * q0 @ K @ q0) - 1.0).max() < 1e-10


@pytest.mark.covers("SC-28")
@pytest.mark.parametrize(("share", "stable"), [(0.99, True), (1.01, False)])
def test_central_differences_up_to_their_limit(share: float, stable: bool) -> None:
    """The limit is 2 / omega_max; with HHT the same step is no limit."""
    K = BAR.stiffness()
    omega = np.sqrt(eigh(K, np.diag(BAR.mass()), eigvals_only=True)[-1])

    def radius(rule: StructureIntegrator) -> float:
        bar = SecondOrder(
            Structure(BAR.mass(), K=K),
            rule,
            inputs=[],
            outputs=[DofPort("tip", -1)],
            q0=np.ones(BAR.n),
            restart="balanced",
        )
        return cs.analysis.spectral_radius(cs.System({"bar": bar}), cs.Jacobi(0), share * 2 / omega)

    explicit = radius(StructureIntegrator.central_differences())
    assert explicit == pytest.approx(1.0, abs=1e-9) if stable else explicit > 1.05
    assert radius(StructureIntegrator.hht(0.1)) <= 1.0 + 1e-12


@pytest.mark.parametrize("z", [1e-3, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("before", [None, (0.01, [0.5], [0.0])])
def test_stability_analysis_sees_bdf2_and_not_its_starter(z: float, before: object) -> None:
    """Roots of (3/2 mu^2 - 2 mu + 1/2)^2 = -z^2 mu^4, the rule applied to q and v of x'' = -x, z = omega h."""
    found = cs.analysis.spectral_radius(oscillator(StructureIntegrator.bdf2(), before=before), cs.Jacobi(0), z)
    rule = np.polymul([1.5, -2.0, 0.5], [1.5, -2.0, 0.5])
    assert found == pytest.approx(np.abs(np.roots(np.polyadd(rule, [z**2, 0, 0, 0, 0]))).max(), rel=1e-6)


def test_bdf2_with_changing_steps_keeps_order_two() -> None:
    """Steps that alternate 2:1, one after the other, on x'' = -x."""
    errors = []
    for count in (100, 200, 400):
        mass = SecondOrder(
            Structure([1.0], K=[[1.0]]), StructureIntegrator.bdf2(), inputs=[], outputs=[DofPort("x", 0)], q0=[1.0]
        )
        mass.start(0.0)
        t = 0.0
        for n in range(count):
            h = (2.0 if n % 2 else 1.0) * 2.0 / (1.5 * count)
            (x,) = mass.advance(t, t + h, no_input(t, h))
            t += h
        errors.append(abs(x - np.cos(t)))
    assert cs.analysis.convergence_order([1 / 100, 1 / 200, 1 / 400], errors) == pytest.approx(2.0, abs=0.15)
