"""What `check` says of macro steps that are stable and wrong: factors per step beside those of the coupled system."""

import numpy as np
import pytest
from tests.signal.models import driven, heat, network, tanks, two_bars, two_capacities, two_masses

import cosolve as cs
from cosolve.analysis.modes import coupled_factors, wrong_modes

BDF2, BDF3 = cs.SemiImplicit(1, signal="bdf"), cs.SemiImplicit(2, signal="bdf")


@pytest.mark.parametrize("case", [two_capacities(1.0), two_capacities(1e4), driven(30.0), two_masses(300.0, 1.0)])
@pytest.mark.parametrize("H", [0.002, 0.02])
def test_factors_of_the_coupled_system(case, H):
    """Against the eigenvalues of the whole, which is written down by itself."""
    ours = coupled_factors(case.system, H)
    wanted = np.exp(np.linalg.eigvals(case.A) * H)
    for factor in wanted:
        assert np.abs(ours - factor).min() < 2e-3
    assert len(ours) == len(wanted)


@pytest.mark.covers("ST-06", "ST-20")
def test_a_run_that_rings_is_not_called_ok():
    """53 % wrong after a second at a spectral radius of 0.9973: once it was '[ok] stable'."""
    case = two_capacities(1e4)
    late = case.error(cs.SemiImplicit(1), T=4.0, after=1.0)
    assert late > 0.3
    advice = cs.check(case.system, cs.SemiImplicit(1), step=0.02)
    assert "stable" not in advice.codes()
    (said,) = (finding for finding in advice.findings if finding.code == "ringing")
    assert said.level == "warning"
    assert "'q' rings: the factor -0.993 per step" in said.text
    assert len(said.text) < 300
    (other,) = (finding.text for finding in advice.findings if finding.code == "alternatives")
    for label in ("SemiImplicit(0)", "SemiImplicit(BDF2)", "SemiImplicit(BDF3)"):
        assert label in other
    assert "SemiImplicit(1)" not in other


@pytest.mark.covers("ST-20")
@pytest.mark.parametrize("method", [BDF2, BDF3, cs.SemiImplicit(0)], ids=lambda m: m.label)
def test_what_it_recommends_is_right(method):
    case = two_capacities(1e4)
    assert "stable" in cs.check(case.system, method, step=0.02).codes()
    assert case.error(method, T=4.0, after=1.0) < 1e-3


@pytest.mark.parametrize("method", [cs.SemiImplicit(1), cs.SemiImplicit(2), BDF2], ids=lambda m: m.label)
def test_nothing_is_said_where_motions_are_resolved(method):
    for case in (two_capacities(1.0), driven(1.0), two_masses(100.0, 1.0)):
        advice = cs.check(case.system, method, step=0.01)
        assert "stable" in advice.codes()
        assert not advice.codes() & {"ringing", "wrong-motion", "unresolved-motion"}


@pytest.mark.parametrize(("build", "degree"), [(lambda: tanks(1010), 1), (lambda: tanks(1013), 2)])
def test_tanks_that_backward_differences_serve_are_not_warned_about(build, degree):
    """Far from equilibrium a single correction has factors of its own, here 0.73; runs repeat it, and show none."""
    case, method = build(), cs.SemiImplicit(degree, signal="bdf")
    once = cs.analysis.amplification_matrix(case.system, method, 0.02)
    assert not any(mode.spoils for mode in wrong_modes(case.system, method, 0.02, once))
    assert case.error(method, after=0.1) < 2e-3


def test_a_network_that_forgets_in_seven_steps_is_not_warned_about():
    """BDF3 has factors of up to 0.505 of its own beside motions of 1.2 / H."""
    case, method = two_capacities(20.0), cs.SemiImplicit(2, signal="bdf")
    factors = cs.analysis.amplification_matrix(case.system, method, 0.02).eigenvalues
    assert 0.5 < max(abs(factors[np.abs(factors.imag) > 1e-3])) < 0.51
    assert "stable" in cs.check(case.system, method, step=0.02).codes()
    assert case.error(method, after=0.1) < 0.02


@pytest.mark.parametrize("seed", [1013, 1030])
def test_tanks_that_ring_are_warned_about(seed):
    """The first was called stable and is off by 3 % after a tenth of the run."""
    system, method = tanks(seed).system, cs.SemiImplicit(1)
    once = cs.analysis.amplification_matrix(system, method, 0.02)
    assert any(mode.rings for mode in wrong_modes(system, method, 0.02, once))


def test_a_motion_that_the_step_does_not_resolve():
    """Degree 1 on an undamped oscillator, `q = w^2`, `w H` = 1.8: a good part of the phase is missing per radian."""

    def spring(w):
        system = cs.System(
            {"mass": cs.Linear([[0, 1], [0, 0]], [[0], [1]], [[1, 0]], x0=[1, 0], inputs=["f"], outputs=["x"])}
        )
        system.law({"mass.f": 1}, lambda x: -(w**2) * x, of=["mass.x"], name="f")
        return system

    fine, coarse = (cs.check(spring(w), cs.SemiImplicit(1), step=1.0) for w in (0.3, 1.8))
    assert "unresolved-motion" not in fine.codes()
    assert coarse.codes() & {"unresolved-motion", "wrong-motion", "ringing"}


def test_methods_are_compared_by_what_they_do_to_stiff_parts():
    advice = cs.check(two_capacities(1e4).system, step=0.02)
    said = {finding.text.split(":")[0]: finding.level for finding in advice.findings}
    assert said["SemiImplicit(1)"] == "note"
    assert said["SemiImplicit(BDF2)"] == said["SemiImplicit(0)"] == "good"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::cosolve.errors.StabilityWarning")
@pytest.mark.parametrize("kind", [network, heat, tanks], ids=lambda make: make.__name__)
def test_stiff_networks_at_random(kind):
    """100 of each: where `check` says ok, no run is wrong by 10 % after a tenth of its time."""
    warned = wrong = 0
    for seed in range(100):
        case = kind(1000 + seed)
        for signal, degree in (("lagrange", 1), ("bdf", 1), ("bdf", 2)):
            method = cs.SemiImplicit(degree, signal=signal)
            found = cs.analysis.amplification_matrix(case.system, method, 0.02)
            said = found.unstable or any(mode.spoils for mode in wrong_modes(case.system, method, 0.02, found))
            try:
                error = case.error(method, after=0.1)
            except cs.errors.SimulationError:  # which is told
                continue
            assert said or error < 0.1, (seed, method.label, error)
            warned += said
            wrong += said and error > 0.02
    assert warned > 30
    if kind is not tanks:  # which are linearised where they start
        assert wrong > 0.6 * warned


def test_two_bars_with_good_contact():
    assert "ringing" in cs.check(two_bars("conductance", n=8).system, cs.SemiImplicit(1), step=0.1).codes()
    assert "stable" in cs.check(two_bars("conductance", n=8).system, BDF2, step=0.1).codes()


@pytest.mark.parametrize(("frequency", "told"), [(100.0, True), (10.0, False)])
def test_a_fast_motion_that_looks_slow_at_macro_points_is_named(frequency, told):
    """Factors agree with those of the coupled system, and the slow part is driven by what is no motion of the fast."""

    def mass(w, x):
        own = [[0, 1], [-w * w, -0.1 * w]]
        return cs.Linear(own, [[0], [1]], [[1, 0]], x0=[x, 0], inputs=["f"], outputs=["x"])

    system = cs.System({"slow": mass(1.0, 0.001), "fast": mass(frequency, 1.0)})
    system.law({"slow.f": 1, "fast.f": -1}, lambda a, b: 0.3 * (b - a), of=["slow.x", "fast.x"], name="F")
    advice = cs.check(system, cs.SemiImplicit(1), step=0.1)
    assert ("aliased-motion" in advice.codes()) is told
    assert "stable" in advice.codes()
    coarse, fine = (
        cs.simulate(system, t_end=2.0, method=cs.SemiImplicit(1), step=step)["slow.x"] for step in (0.1, 0.001)
    )
    error = np.abs(coarse - fine[::100]).max() / np.abs(fine).max()
    assert error > 1.0 if told else error < 0.5
