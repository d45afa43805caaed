"""Parallel (Jacobi) and serial (Gauss-Seidel) sweeps on the two-mass model of section 4, both sides backward Euler."""

import itertools

import numpy as np
import pytest
from tests.accuracy.zoo import CASES
from tests.choice import quick

import cosolve as cs
from cosolve.corrector import Aitken, Broyden, IqnIls, Relaxation
from cosolve.engine.python.executor import bind
from cosolve.engine.python.subsystem_caller import SubsystemCaller
from cosolve.method import Window
from cosolve.signal import History


class Mass(cs.Subsystem):
    """m x'' + k x = force by backward Euler, x(0) = 0, x'(0) = 1; either side may be the input."""

    def __init__(self, m, k, causality):
        self.m, self.k, self.causality = m, k, causality
        self.inputs, self.outputs = (["f"], ["x"]) if causality == "force" else (["x"], ["f"])

    def start(self, t0):
        self.x, self.v = 0.0, 1.0
        return 0.0

    def advance(self, t0, t1, u):
        h, given = u.H, u.end[0]
        if self.causality == "force":
            x = (given + self.m * (self.x / h**2 + self.v / h)) / (self.m / h**2 + self.k)
        else:
            x = given
        v = (x - self.x) / h
        force = self.m * (v - self.v) / h + self.k * x
        self.x, self.v = x, v
        return x if self.causality == "force" else -force

    def save(self):
        return self.x, self.v

    def restore(self, state):
        self.x, self.v = state


class ExactMass(Mass):
    """The same, with its interface Jacobian."""

    def jacobian(self, t0, t1, u, weight):
        stiffness = self.m / u.H**2 + self.k
        return np.array([[1.0 / stiffness if self.causality == "force" else -stiffness]]) * weight.sum()


def two_mass(beta1, beta2, m=1.0, k=1.0, kind=Mass):
    system = cs.System(
        {"one": kind(beta1 * m, beta2 * k, "force"), "two": kind((1 - beta1) * m, (1 - beta2) * k, "displacement")}
    )
    system.connect("two.f", "one.f")
    system.connect("one.x", "two.x")
    return system


def contraction(system, h, serial):
    """Spectral radius of `z -> z - r(z)`, measured on the engine's own trial subsystem steps."""
    caller = SubsystemCaller(system.plan())
    _, z = caller.start(0.0)
    sweep = "gauss-seidel" if serial else "jacobi"
    method = cs.Implicit(degree=0, corrector=Relaxation(), sweep=sweep, order=["two", "one"])
    executor = bind(method, caller)
    executor.begin(History(z, depth=1), Window(0.0, h, h))
    active = np.flatnonzero(executor.serial.lagging) if serial else np.arange(len(z))
    base = executor.equations.residual(z[active])
    scale = 1.0 / h**2  # forces are larger than displacements by about this much
    H = np.empty((len(active), len(active)))
    for j, m in enumerate(active):
        step = scale if m == 0 else 1.0
        moved = z.copy()
        moved[m] += step
        change = (executor.equations.residual(moved[active]) - base) / step
        H[:, j] = -change
        H[j, j] += 1.0
    return H


@pytest.mark.covers("IJ-09")
def test_parallel_sweeps_contract_like_the_root_of_serial_ones():
    rng = np.random.default_rng(9)
    for _ in range(300):
        beta1, beta2 = rng.uniform(0.05, 0.95, 2)
        m, k, h = rng.uniform(0.1, 10, 3)
        s = k / m * h**2
        H_gs = contraction(two_mass(beta1, beta2, m, k), h, serial=True)
        assert H_gs.shape == (1, 1)
        formula = -((1 - beta1) + (1 - beta2) * s) / (beta1 + beta2 * s)
        assert H_gs[0, 0] == pytest.approx(formula, rel=1e-8)
        radius = np.abs(np.linalg.eigvals(contraction(two_mass(beta1, beta2, m, k), h, serial=False))).max()
        assert radius**2 == pytest.approx(abs(formula), rel=1e-8)


@pytest.mark.covers("IJ-09")
def test_serial_sweeps_need_half_the_iterations():
    """Counted between two tolerances, since a parallel sweep has the residual of the force to bring down as well."""

    def corrections(sweep, tol):
        method = cs.Implicit(
            degree=0, tol=tol, max_iterations=200, corrector=Relaxation(1.0), sweep=sweep, order=["two", "one"]
        )
        return cs.simulate(two_mass(0.6, 0.6), t_end=1.0, method=method, step=0.1).iterations.mean()

    parallel, serial = (corrections(s, 1e-12) - corrections(s, 1e-5) for s in ("jacobi", "gauss-seidel"))
    assert parallel / serial == pytest.approx(2.0, abs=0.05)


@pytest.mark.covers("IJ-09")
def test_concurrent_calls_give_the_same_bits():
    method = cs.Implicit(degree=1, tol=1e-11, max_iterations=200, corrector=Relaxation(0.5))
    one, two = (
        cs.simulate(two_mass(0.6, 0.4), t_end=1.0, method=method, step=0.05, workers=workers) for workers in (1, 2)
    )
    assert (one["one.x"] == two["one.x"]).all()
    assert (one.iterations == two.iterations).all()


@pytest.mark.parametrize("corrector", [Aitken(), Broyden(), IqnIls()], ids=repr)
def test_what_lags_is_all_a_corrector_sees_of_a_serial_sweep(corrector):
    """One lagging number makes these secant methods: a linear step takes three evaluations, later ones two or so."""
    method = cs.Implicit(degree=1, tol=1e-10, corrector=corrector, sweep="gauss-seidel", order=["two", "one"])
    result = cs.simulate(two_mass(0.2, 0.3), t_end=1.0, method=method, step=0.1)  # |H_GS| = 4: plain sweeps diverge
    assert result.iterations.max() <= 3
    s = 0.1**2
    x, old = 0.0, -0.1
    for found in result["one.x"][1:]:
        x, old = (2 * x - old) / (1 + s), x
        assert found == pytest.approx(x, abs=1e-9)


@pytest.mark.parametrize("order", list(itertools.permutations(["one", "two", "three"])), ids="-".join)
@pytest.mark.parametrize("two", list(itertools.combinations(["one", "two", "three"], 2)), ids="-".join)
def test_a_serial_sweep_converges_to_the_same_in_every_order(order, two):
    """A law of two subsystems that all three read lags for subsystems that run before both have."""

    def run(**options):
        tanks = {
            name: cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[x], inputs=["f"], outputs=["x"])
            for name, x in (("one", 1.0), ("two", 0.5), ("three", 0.0))
        }
        system = cs.System(tanks)
        readers = {"one.f": 1, "two.f": -1, "three.f": 1}
        system.law(readers, lambda a, b: b - a, of=[f"{name}.x" for name in two], name="flow")
        return cs.simulate(system, t_end=0.5, step=0.1, method=cs.Implicit(1, tol=1e-12, **options))

    found, expected = run(corrector=Aitken(), sweep="gauss-seidel", order=order), run()
    for name in ("one.x", "two.x", "three.x"):
        assert np.abs(found[name] - expected[name]).max() < 1e-11


@pytest.mark.covers("IJ-11")
@pytest.mark.parametrize("count", quick([16, 50], 16))
def test_plain_iteration_converges_where_the_formula_says(count):
    """Section 4: convergent iff beta1 + beta2 s > (1 + s) / 2; no mismatch on 50 x 50 x 5 grids."""
    grid = (np.arange(count) + 0.5) / count
    converging = 0
    for s in (0.01, 0.3, 1.0, 4.0, 100.0):
        for beta1 in grid:
            for beta2 in grid:
                margin = beta1 + beta2 * s - (1 + s) / 2
                if abs(margin) > 1e-6:
                    measured = abs(contraction(two_mass(beta1, beta2), np.sqrt(s), serial=True)[0, 0])
                    assert (measured < 1) == (margin > 0)
                    converging += measured < 1
    assert 2 * count**2 < converging < 3 * count**2  # both sides are there


@pytest.mark.covers("IJ-12")
@pytest.mark.parametrize("seed", range(12))
def test_newton_needs_one_correction_whatever_the_masses(seed):
    """IJCSA on a linear problem: two evaluations a step for every split and step, also where others diverge."""
    beta1, beta2 = np.random.default_rng(seed).uniform(0.02, 0.98, 2)
    h = 10.0 ** (seed % 4 - 2)
    method = cs.Implicit(degree=0, tol=1e-11)
    result = cs.simulate(two_mass(beta1, beta2, kind=ExactMass), t_end=10 * h, method=method, step=h)
    assert (result.iterations <= 1).all()
    size = np.abs(result["two.f"]).max() + 1.0
    assert result.residual.max() <= 1e-12 * size
    x, v = 0.0, 1.0  # the monolithic backward Euler solution
    for n in range(10):
        x_new = (x + h * v) / (1 + h**2)
        x, v = x_new, (x_new - x) / h
        assert result["one.x"][n + 1] == pytest.approx(x, rel=1e-9, abs=1e-12)


def test_absolute_tolerance_counts_small_numbers_too():
    """Forces of 1e5 N with tol = 1e-3: relative to its size a residual of 10 N passes, absolutely it must be 1e-3."""
    for absolute in (False, True):
        method = cs.Implicit(degree=0, tol=1e-3, absolute=absolute, corrector=Relaxation(0.9), max_iterations=500)
        result = cs.simulate(two_mass(0.9, 0.1, 2e6, 2e6), t_end=0.5, method=method, step=0.05)
        assert np.abs(result["two.f"]).max() > 1e5
        assert (result.residual.max() <= 1e-3) == absolute


def test_an_iteration_that_fails_in_a_parallel_sweep_names_the_sweep_that_converges():
    case = CASES["bar"]
    run = {"t_end": case.t_end / 256, "step": case.t_end / 1024}
    with pytest.raises(cs.errors.ConvergenceError, match="did not converge") as failed:
        cs.simulate(case.build(), method=cs.Implicit(degree=1, corrector=cs.Aitken()), **run)
    assert "sweep='gauss-seidel'" in str(failed.value)
    result = cs.simulate(case.build(), method=cs.Implicit(degree=1, corrector=cs.Aitken(), sweep="gauss-seidel"), **run)
    assert result.iterations[1:].mean() < 4


def test_a_serial_sweep_is_not_told_to_be_serial():
    tank = lambda h: cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[h], inputs=["q"], outputs=["h"])  # noqa: E731
    system = cs.System({"one": tank(1.0), "two": tank(0.0)})
    system.connect("one.h", "two.q")
    system.connect("two.h", "one.q")
    method = cs.Implicit(degree=1, corrector=cs.Relaxation(0.1), max_iterations=2, sweep="gauss-seidel")
    with pytest.raises(cs.errors.ConvergenceError) as failed:
        cs.simulate(system, t_end=1.0, method=method, step=0.5)
    assert "sweep" not in str(failed.value)
