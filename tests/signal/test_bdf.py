"""Signals by backward differences: weights, factors, orders and errors of stiffly damped couplings.

Numbers without another source come from a reference code in numpy and scipy that advances subsystems by expm.
"""

from dataclasses import replace
from itertools import pairwise

import numba
import numpy as np
import pytest
from tests.signal.models import (
    capacity,
    driven,
    network,
    radiation,
    ringing,
    scalar,
    two_bars,
    two_capacities,
    two_masses,
)

import cosolve as cs
from cosolve.signal import MeanHistory
from cosolve.signal.bdf import bdf_weights, mean, mean_weights

BDF2, BDF3 = cs.SemiImplicit(1, signal="bdf"), cs.SemiImplicit(2, signal="bdf")
BOTH = pytest.mark.parametrize("method", [BDF2, BDF3], ids=lambda m: m.label)


def means(weights):
    """Weights of the mean over the new step."""
    return weights.T @ (1.0 / np.arange(1, len(weights) + 1))


@pytest.mark.covers("ST-01")
def test_weights_on_equal_steps():
    np.testing.assert_allclose(means(bdf_weights((1.0, 0.0))), [1.0], atol=1e-14)
    np.testing.assert_allclose(means(bdf_weights((1.0, 0.0, -1.0))), [2 / 3, 1 / 3], atol=1e-14)
    np.testing.assert_allclose(means(bdf_weights((1.0, 0.0, -1.0, -2.0))), [6 / 11, 7 / 11, -2 / 11], atol=1e-14)


@pytest.mark.covers("ST-02")
@pytest.mark.parametrize("r", [0.3, 1.0, 2.5])
def test_weights_on_two_steps(r):
    np.testing.assert_allclose(means(bdf_weights((1.0, 0.0, -r))), [(1 + r) / (2 + r), 1 / (2 + r)], atol=1e-14)


@pytest.mark.covers("ST-02")
def test_the_signal_ends_in_z_and_has_the_means_of_the_steps_before():
    """By quadrature, on steps of lengths that have nothing to do with each other."""
    edges = np.array([0.0, -0.37, -1.92])
    z, kept = 5.0, np.array([2.0, -1.0])
    c = bdf_weights((1.0, *edges)) @ np.array([z, *kept])
    p = np.polynomial.Polynomial(c)
    assert p(1.0) == pytest.approx(z, abs=1e-13)
    for j in range(2):
        inside = p.integ()(edges[j]) - p.integ()(edges[j + 1])
        assert inside / (edges[j] - edges[j + 1]) == pytest.approx(kept[j], abs=1e-13)
    past = np.polynomial.Polynomial(mean_weights(tuple(edges)) @ kept).integ()
    np.testing.assert_allclose(
        [(past(a) - past(b)) / (a - b) for a, b in ((0, -0.37), (-0.37, -1.92))], kept, atol=1e-13
    )
    assert mean(c[:, np.newaxis])[0] == pytest.approx(p.integ()(1.0), abs=1e-13)


@pytest.mark.covers("ST-02")
@pytest.mark.parametrize("k", [1, 2, 3])
def test_an_integrator_takes_the_step_of_the_bdf_method(k):
    """`y' = z` on steps of any length: polynomials of degree k are exact."""
    history = MeanHistory(np.zeros(1), depth=k)

    def y(t):
        return (t + 2.0) ** k

    for a, b in pairwise([0.0, 0.7, 1.7, 2.1]):
        base, weight = history.interpolation(k - 1, b - a)
        signal = base + np.outer(weight, [k * (b + 2.0) ** (k - 1)])
        if len(history.steps) >= k - 1:
            assert (b - a) * mean(signal)[0] == pytest.approx(y(b) - y(a), rel=1e-12)
        history.push(np.array([(y(b) - y(a)) / (b - a)]), b - a)


@pytest.mark.covers("ST-03")
def test_the_first_order_equals_degree_0():
    """To the rounding of the largest flux, 1e4 after a jump; only the first guesses differ."""
    start = cs.RisingDegree()
    for case, rounding in ((two_capacities(1e4, 1.0, 1.0), 2e-15), (two_capacities(1e4), 1e-13)):
        one = case.run(cs.SemiImplicit(0, signal="bdf"), startup=start)
        other = case.run(cs.SemiImplicit(0), startup=start)
        for name in case.states:
            np.testing.assert_allclose(one[name], other[name], rtol=0, atol=rounding)


@pytest.mark.covers("ST-04")
def test_factors_of_the_scalar_pair():
    found = [cs.analysis.amplification_matrix(scalar(10.0), m, 1.0).eigenvalues for m in (BDF2, BDF3)]
    by_size = [mu[np.argsort(-np.abs(mu))] for mu in found]
    assert by_size[0][0] == pytest.approx(0.0870 + np.sign(by_size[0][0].imag) * 0.1895j, abs=1e-4)
    assert by_size[1][0] == pytest.approx(0.0110 + np.sign(by_size[1][0].imag) * 0.3486j, abs=1e-4)


@pytest.mark.covers("ST-04")
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("q", [0.3, 2.0, 50.0])
def test_factors_are_roots_of_the_characteristic_polynomial(k, q):
    """`sum alpha_j y_{n+1-j} = -q y_{n+1}` with the coefficients of the textbooks."""
    alpha = {2: np.array([1.5, -2.0, 0.5]), 3: np.array([11 / 6, -3.0, 1.5, -1 / 3])}[k]
    alpha[0] += q
    wanted = np.sort_complex(np.roots(alpha))
    mu = cs.analysis.amplification_matrix(scalar(q), {2: BDF2, 3: BDF3}[k], 1.0).eigenvalues
    mu = np.sort_complex(mu[np.argsort(-np.abs(mu))][:k])
    np.testing.assert_allclose(mu, wanted, atol=1e-7)


@pytest.mark.covers("ST-05")
def test_damping_at_infinity():
    """Of the state and the means that signals are drawn from; beside them the map has zeros, defective ones."""
    for method, least in ((BDF2, 1e-4), (BDF3, 2e-3)):
        k = method.degree + 1
        mu = np.linalg.eigvals(cs.analysis.amplification_matrix(scalar(1e8), method, 1.0).matrix[:k, :k])
        assert 0.5 * least < np.abs(mu).max() < least


@pytest.mark.covers("ST-06")
def test_no_ringing():
    system = two_capacities(1e4).system
    assert ringing(system, BDF2, 0.02) == pytest.approx(0.0288, abs=1e-4)
    assert ringing(system, BDF3, 0.02) == pytest.approx(0.0869, abs=1e-4)
    assert ringing(system, cs.SemiImplicit(1), 0.02) == pytest.approx(0.9929, abs=1e-4)


@pytest.mark.covers("ST-07")
@pytest.mark.parametrize(
    ("method", "wanted"),
    [(BDF2, [9.2e-2, 2.7e-2, 7.2e-3, 1.8e-3]), (BDF3, [4.5e-2, 4.0e-3, 3.7e-4, 3.8e-5])],
    ids=["BDF2", "BDF3"],
)
def test_order_of_the_flux_where_stiff(method, wanted):
    errors = [driven(1e4).errors(method, H)[1] for H in (0.1, 0.05, 0.025, 0.0125)]
    np.testing.assert_allclose(errors, wanted, rtol=0.05)
    assert np.log2(errors[-2] / errors[-1]) > method.degree + 0.9


@BOTH
def test_order_of_the_states_where_nothing_is_stiff(method):
    errors = [driven(1.0).error(method, H) for H in (0.02, 0.01, 0.005)]
    assert np.log2(errors[-2] / errors[-1]) == pytest.approx(method.degree + 1, abs=0.15)


@pytest.mark.covers("ST-08")
@pytest.mark.parametrize(("method", "worst"), [(BDF2, 7.5e-3), (BDF3, 4.3e-3)], ids=["BDF2", "BDF3"])
def test_networks(method, worst):
    errors = [network(seed).error(method, after=0.1) for seed in range(12)]
    assert max(errors) == pytest.approx(worst, rel=0.03)


@pytest.mark.covers("ST-09")
def test_feed_through_keeps_the_order():
    """Temperature against flux: both outputs react at once; holding the mean instead gives 9.8e-3."""
    errors = [two_bars("face").error(BDF2, H, after=0.1) for H in (0.02, 0.01)]
    assert errors[0] == pytest.approx(2.3e-3, rel=0.03)
    assert errors[1] == pytest.approx(9.8e-4, rel=0.03)


@BOTH
def test_two_bars_with_good_contact(method):
    wanted = {1: [3.3e-4, 1.0e-4], 2: [4.9e-4, 1.4e-4]}[method.degree]
    errors = [two_bars("conductance").error(method, H, after=0.1) for H in (0.04, 0.02)]
    np.testing.assert_allclose(errors, wanted, rtol=0.05)


@pytest.mark.covers("ST-10")
def test_damped_start():
    case = two_capacities(1e4)
    assert case.error(BDF2, after=0.1) == pytest.approx(6.1e-6, rel=0.03)
    assert case.error(BDF2, after=0.1, startup=cs.RisingDegree()) == pytest.approx(3.6e-4, rel=0.03)


def test_the_damped_start_leaves_macro_points_where_they_are():
    result = two_capacities(1e4).run(BDF3, H=0.1)
    np.testing.assert_allclose(result.t, np.arange(11) / 10, atol=1e-15)


@pytest.mark.covers("ST-12")
@pytest.mark.parametrize(("method", "wanted"), [(BDF2, 2.4e-3), (BDF3, 5.7e-5)], ids=["BDF2", "BDF3"])
def test_order_on_steps_that_alternate(method, wanted):
    """Lengths 1 : 2 in turn, 80 of them."""
    case, errors = driven(1e4), []
    for n in (40, 80):
        lengths = np.where(np.arange(n) % 2 == 0, 1.0, 2.0)
        lengths /= lengths.sum()
        running = cs.Stepper(case.system, method=method, step=float(lengths[0]))
        for H in lengths:
            running.step(float(H))
        true = case.fluxes["q"] @ case.exact(np.array([running.t]))[0]
        errors.append(abs(running["q"] - true) / abs(true))
    assert errors[1] == pytest.approx(wanted, rel=0.05)
    assert np.log2(errors[0] / errors[1]) > method.degree + 0.9


@pytest.mark.covers("ST-13")
def test_growth_of_steps():
    """A factor above 1 of `H * mean` per step would amplify the past: 0.80 and 0.878 at the limits."""
    system = scalar(1e6)
    for method, limit, factor in ((BDF2, 2.0, 0.80), (BDF3, 1.5, 0.878)):
        k = method.degree + 1
        edges = [1.0, 0.0]
        for j in range(1, k):
            edges.append(edges[-1] - limit**-j)
        mu = means(bdf_weights(tuple(edges)))[1:]
        M = np.diag(np.ones(k - 2), -1) if k > 2 else np.zeros((1, 1))
        M[0] = mu
        assert limit * np.abs(np.linalg.eigvals(M)).max() == pytest.approx(factor, abs=2e-3)
        result = cs.simulate(system, t_end=10.0, method=method, step=cs.Adaptive(rtol=1e-3, first_step=1e-6))
        H = result.column("H")[1:-1]  # the last one is cut
        growth = (H[1:] / H[:-1]).max()
        assert growth == pytest.approx(limit, rel=1e-6)
        free = cs.simulate(system, t_end=10.0, method=cs.SemiImplicit(0), step=cs.Adaptive(rtol=1e-3, first_step=1e-6))
        assert (free.column("H")[2:-1] / free.column("H")[1:-2]).max() > 3.0


@pytest.mark.covers("ST-14")
@pytest.mark.parametrize(
    ("k", "G", "wanted"),
    [
        *((1, 1.0, [1.06, 1.03]), (2, 1.0, [0.82, 0.91]), (3, 1.0, [1.05, 1.03])),
        *((1, 1e4, [2.01, 1.01]), (2, 1e4, [0.81, 0.82]), (3, 1e4, [1.46, 1.21])),
    ],
)
def test_free_estimate(k, G, wanted):
    """`z - predicted` after exact data, times its constant, over the true error: of the mean at G = 1, of z at 1e4."""
    from cosolve.engine.python.executor import bind
    from cosolve.engine.python.subsystem_caller import SubsystemCaller
    from cosolve.method import Window

    def h(n):
        return sum(1 / j for j in range(1, n + 1))

    ratios = []
    for H in (0.02, 0.01):
        case, method = driven(G), cs.SemiImplicit(k - 1, signal="bdf")
        plan = case.system.plan()
        caller = SubsystemCaller(plan)
        _, z = caller.start(0.0)
        exact = case.exact(0.5 - H * np.arange(k + 1))
        a, b = case.system.subsystems.values()
        a.set_state(exact[0, :3])
        b.set_state(exact[0, 3:])
        means_before = [np.array([0.5 * (exact[j, 3] - exact[j + 1, 3]) / H]) for j in range(k)]
        history = method.history(z).past([*means_before, z], H)
        history.steps = [H] * k
        outcome = bind(method, caller)(history, Window(0.5, 0.5 + H, H))
        true, d = case.exact(np.array([0.5 + H]))[0], (outcome.z - outcome.predicted)[0]
        if G == 1.0:
            error = 0.5 * (outcome.y[1] - true[3]) / H
            ratios.append(d / ((k + 1) * h(k) * h(k + 1)) / error)
        else:
            error = outcome.z[0] - case.fluxes["q"] @ true
            ratios.append(-d / ((k + 1) * h(k + 1)) / error)
    np.testing.assert_allclose(np.abs(ratios), wanted, rtol=0.05)


@pytest.mark.covers("ST-15")
@pytest.mark.parametrize("step", [0.02, cs.Adaptive(rtol=1e-4)], ids=["equal", "adaptive"])
@BOTH
def test_resumed_after_any_step(method, step, tmp_path):
    def trace(running, last=12):
        found = []
        while len(found) < last:
            running.step()
            found.append((running.t, running["a.T"], running["b.T"], running["q"]))
        return found

    def fresh():
        return cs.Stepper(driven(1e4).system, method=method, step=step, t_end=1.0)

    whole = trace(fresh())
    running = fresh()
    for n in range(1, 12):
        running.step()
        running.save_file(tmp_path / "state")
        again = cs.Stepper(driven(1e4).system, method=method, step=step, t_end=1.0)
        again.restore_file(tmp_path / "state")
        assert trace(again, 12 - n) == whole[n:]


@pytest.mark.covers("ST-16")
@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("unconverged", [False, True])
def test_conservation(degree, unconverged):
    """What one loses the other gains, also where the correction is wrong by far."""
    system = cs.System({"a": capacity(1.0, 0.0, 1.2), "b": capacity(0.5, 0.0, 0.8)})
    system.law({"a.q": -1, "b.q": 1}, lambda x, y: 2.0 * (x**4 - y**4), of=["a.T", "b.T"], name="q")
    method = cs.SemiImplicit(degree, signal="bdf")
    if unconverged:
        method = cs.Implicit(
            degree, signal="bdf", corrector=cs.Relaxation(0.3), max_iterations=1, accept_unconverged=True, predictor=0
        )
    result = cs.simulate(system, t_end=0.4, method=method, step=0.02)
    assert result.stats.max_residual > 1e-4  # far from converged
    np.testing.assert_allclose(result["a.T"] + 0.5 * result["b.T"], 1.6, rtol=0, atol=2e-15)


@pytest.mark.covers("ST-11")
@pytest.mark.parametrize(
    ("method", "wanted"),
    [(BDF2, 4.5e-6), (BDF3, 3.0e-6), (cs.SemiImplicit(signal="collocation"), 2.1e-5)],
    ids=lambda one: getattr(one, "label", ""),
)
def test_a_stiff_nonlinear_law_from_a_jump(method, wanted):
    """Radiation, `1e3 (T1^4 - T2^4)`: guesses come from values that were used, and the start is corrected again.

    Few steps are: there are two subsystem steps per macro step and a few more for the start.
    """
    system, exact = radiation()
    result = cs.simulate(system, t_end=1.0, method=method, step=0.02)
    late = result.t > 0.0999
    gap = np.array([result["a.T"], result["b.T"]]) - exact(result.t)
    assert np.abs(gap[:, late]).max() < wanted
    assert result.stats.calls["a"] < 2 * 50 + 40


def test_a_stiff_damper_between_masses():
    """The force as a law of the velocities, d = 1e4: 4.4e-5 and 5.8e-6 of the amplitude."""
    case = two_masses(0.0, 1e4)
    assert case.error(BDF2) / 0.1 == pytest.approx(4.4e-5, rel=0.03)
    assert case.error(BDF3) / 0.1 == pytest.approx(5.8e-6, rel=0.03)


def test_a_stiff_spring_as_a_subsystem():
    assert two_masses(1e6, 0.0, "element").error(BDF2) / 0.1 == pytest.approx(4.8e-5, rel=0.03)


@pytest.mark.parametrize(
    "method",
    [BDF2, BDF3, cs.SemiImplicit(signal="collocation"), cs.Implicit(signal="radau")],
    ids=lambda m: m.label,
)
@pytest.mark.parametrize("step", [0.02, cs.Adaptive(rtol=1e-4)], ids=["equal", "adaptive"])
def test_compiled_with_the_same_bits(method, step):
    """Steps that begin in pieces, then in machine code."""

    @numba.njit
    def flow(x, y):
        return 1e4 * (x - y)

    system = cs.System({"a": capacity(1.0, 0.2, 1.0), "b": capacity(0.5, 0.0, 0.0)})
    system.law({"a.q": -1, "b.q": 1}, flow, of=["a.T", "b.T"], name="q")
    method = replace(method, jacobian="difference")
    runs = [cs.simulate(system, t_end=2.0, method=method, step=step, compiled=c) for c in (True, False)]
    assert runs[0].stats.compiled_steps > 0.9 * runs[0].stats.steps
    for name in ("a.T", "b.T", "q"):
        np.testing.assert_array_equal(runs[0][name], runs[1][name])


@BOTH
@pytest.mark.parametrize("G", [1.0, 1e4])
def test_error_bar(method, G):
    """The shadow draws its deviation by backward differences too: bars hold, and are not far off where not stiff.

    Where a time constant is 1 % of the step, steps twice as long do not prove the bar: it is not given, its size shown.
    """
    case = driven(G)
    result = case.run(method, error_bar=True)
    exact = case.exact(result.t)
    if G > 1.0:
        assert "something is faster than the steps" in result.error_bar.reason
        assert set(result.error_bar.unproven) == {"a.T", "b.T"}
        return
    assert result.error_bar.reason is None
    for name, column in (("a.T", 0), ("b.T", 3)):
        error, bar = np.abs(result[name] - exact[:, column]), result.error_bar.bar[name]
        assert (error <= bar).all()
        assert bar.max() < 3.0 * error.max()


def test_refusals():
    with pytest.raises(cs.errors.SetupError, match=r"degree must be 0, 1 or 2 with signal='bdf'"):
        cs.SemiImplicit(3, signal="bdf")
    with pytest.raises(cs.errors.SetupError, match="signal must be"):
        cs.SemiImplicit(1, signal="adams")
    case = two_capacities(1.0)
    with pytest.raises(cs.errors.SetupError, match="gives values at past macro points"):
        case.run(BDF2, startup=cs.KnownHistory(lambda t: {"a.T": 1.0, "b.T": 0.0}))
    assert cs.check(case.system, "semi-implicit:bdf2", 0.02).ok
