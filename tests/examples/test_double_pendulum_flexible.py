"""The flexible double pendulum against its oracles (docs/validation/schweizer-lu.md)."""

from functools import cache

import numpy as np
import pytest
from examples.double_pendulum_flexible.model import joint_force, reference, reference_force, split
from examples.double_pendulum_flexible.run import errors, main, run
from tests.choice import quick

import cosolve as cs

SEMI, EXPLICIT = cs.SemiImplicit, cs.Jacobi
#: reference code: max error of phi1 (rad) and lam (N) at H = 1e-3, 5e-4, 2.5e-4
TABLE = {
    (SEMI, 0): ((1.10e-4, 5.91e-5, 3.10e-5), (12.0, 6.5, 3.4)),
    (SEMI, 1): ((9.79e-6, 2.47e-6, 6.23e-7), (1.11, 0.278, 0.070)),
    (SEMI, 2): ((2.05e-6, 2.53e-7, 3.29e-8), (0.242, 0.042, 0.0059)),
    (EXPLICIT, 0): ((1.55e-4, 7.01e-5, 3.37e-5), (18.1, 8.0, 3.8)),
    (EXPLICIT, 1): ((5.39e-5, 1.44e-5, 3.68e-6), (6.4, 1.7, 0.43)),
    (EXPLICIT, 2): ((None, 1.24e-5, 2.98e-6), (None, 1.6, 0.37)),
}
STEPS = (1e-3, 5e-4, 2.5e-4)
#: the same for foreign motion as input: max error of phi1 at H = 1e-3, 5e-4
MOTION = {
    (SEMI, "F/D"): ((45, 18), (2.61e-3, 6.50e-4), (3.14e-5, 3.90e-6)),
    (SEMI, "D/D"): ((61, 33), (5.20e-3, 1.30e-3), (6.19e-5, 7.70e-6)),
    (EXPLICIT, "F/D"): ((0.17, 0.12), (1.34e-2, 3.31e-3), (2.95e-4, 3.58e-5)),
    (EXPLICIT, "D/D"): ((0.22, 0.17), (2.69e-2, 6.67e-3), (6.6e-4, 1.4e-4)),
}


#: The start of the sources, to which their tables belong; the default start is better (test_default_start...).
RISING = cs.RisingDegree()


@cache
def found(method, k, H, kind="F/F", startup=RISING):
    return errors(run(kind, method(degree=k), H, startup=startup), H)


@cache
def half(k, H, final_update=True):
    """The runs of Lu (2015), 2.3.2, T = 0.5."""
    return run("F/F", SEMI(degree=k, final_update=final_update), H, 0.5)


@pytest.mark.covers("SL-15", "LU-17")
def test_reference():
    """The monolithic solution to 1e-6 (eight digits are given), and the largest force."""
    times = np.linspace(0.0, 1.0, 1001)
    states = reference(times)
    expected = {
        100: (0.99953024, -0.80196358),
        200: (1.05655304, -0.94636201),
        500: (1.00133577, -1.57081362),
        1000: (0.96551845, -2.07815200),
    }
    for index, angles in expected.items():
        assert states[index, [0, 4]] == pytest.approx(angles, abs=2e-8)
    fine = reference(np.linspace(0.0, 0.1, 2001))
    assert np.abs(reference_force(fine)).max() == pytest.approx(73.9, abs=0.1)


def test_counts():
    """Reduced planar copies: n_g = 2 (one force vector), 4 and 8."""
    assert {kind: split(kind).plan().n_z for kind in ("F/F", "F/D", "D/F", "D/D")} == {
        "F/F": 2,
        "F/D": 4,
        "D/F": 8,
        "D/D": 8,
    }


@pytest.mark.filterwarnings(
    "ignore:values grow without bound:cosolve.errors.StabilityWarning"
)  # beyond the limit on purpose
@pytest.mark.covers("SL-15")
@pytest.mark.parametrize(
    ("method", "k", "index"),
    quick([(*row, index) for row in TABLE for index in (0, 1, 2)], *((*row, 0) for row in TABLE if row[1] == 1)),
    ids=lambda v: getattr(v, "__name__", str(v)),
)
def test_error_table(method, k, index):
    """The table of 3.2 to 5 % for phi1 and lam."""
    phi, force = (column[index] for column in TABLE[method, k])
    result = found(method, k, STEPS[index])
    if phi is None:  # explicit, k = 2, H = 1e-3: how far it runs away is chaotic, that it does is not
        assert result.phi1 > 1.0
        assert result.force > 1e5
        return
    assert result.phi1 == pytest.approx(phi, rel=0.05)
    assert result.force == pytest.approx(force, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "gain"), [("F/F", 5.0), ("D/D", 3.0)])
def test_the_default_start_removes_the_error_of_the_first_steps(kind, gain):
    """Explicit, k = 2: the rising start costs an order (slope 2, also in the tables), the default one does not."""
    rising, default = ([found(EXPLICIT, 2, H, kind, s).phi1 for H in STEPS[1:]] for s in (RISING, None))
    assert np.log2(rising[0] / rising[1]) == pytest.approx(2.1, abs=0.1)
    assert np.log2(default[0] / default[1]) == pytest.approx(2.9, abs=0.15)
    assert rising[1] > gain * default[1]


@pytest.mark.covers("SL-15", "LU-17")
@pytest.mark.parametrize(("k", "slope"), quick([(0, 0.9), (1, 2.0), (2, 3.0)], (1, 2.0)))
def test_order(k, slope):
    """Slopes .9/2/3 of phi1 between 1e-3 and 5e-4 (+-0.05; the first is the rounded 0.895)."""
    measured = np.log2(found(SEMI, k, 1e-3).phi1 / found(SEMI, k, 5e-4).phi1)
    assert measured == pytest.approx(slope, abs=0.05)


@pytest.mark.slow
@pytest.mark.covers("SL-15")
@pytest.mark.parametrize(("k", "slope"), [(0, 0.93), (1, 1.99), (2, 3.0)])
def test_order_at_the_finest_steps(k, slope):
    """Between 5e-4 and 2.5e-4 (k = 2: 2.94, between 1e-3 and 5e-4 3.02; +-0.07)."""
    measured = np.log2(found(SEMI, k, 5e-4).phi1 / found(SEMI, k, 2.5e-4).phi1)
    assert measured == pytest.approx(slope, abs=0.07)


@pytest.mark.covers("LU-17")
@pytest.mark.parametrize(
    ("k", "phi1", "phi2"),
    quick([(0, 6.4e-5, 2.9e-5), (1, 5.6e-6, 4.0e-7), (2, 1.4e-6, 8.3e-8)]),
)
def test_errors_sampled_every_ten_milliseconds(k, phi1, phi2):
    """Lu's table was taken at t = 0.01, 0.02, ...: both printed digits (see docs/validation/schweizer-lu.md)."""
    sampled = errors(half(k, 1e-3), 1e-3, 0.5, every=10)
    assert sampled.phi1 == pytest.approx(phi1, abs=0.05 * 10 ** np.floor(np.log10(phi1)))
    assert sampled.phi2 == pytest.approx(phi2, abs=0.05 * 10 ** np.floor(np.log10(phi2)))
    order = np.log2(errors(half(k, 1e-3), 1e-3, 0.5).phi1 / errors(half(k, 5e-4), 5e-4, 0.5).phi1)
    assert order == pytest.approx(k + 1, abs=0.15)


@pytest.mark.covers("LU-07", "SL-18")
@pytest.mark.parametrize("k", quick([0, 1, 2], 0))
def test_final_update_hardly_matters(k):
    """Max change of the angle error < 1e-3 relative; k = 0 sampled every 10 ms is 6.43496e-5 either way.

    The angle error is that of phi1. Taken alone, the 20 times smaller error of phi2 also changes by less than 1e-3
    for k = 0 (the measured case) and k = 1, and by 1.2e-3 for k = 2 (docs/validation/schweizer-lu.md).
    """
    on, off = (errors(half(k, 1e-3, update), 1e-3, 0.5) for update in (True, False))
    assert max(on[:2]) == pytest.approx(max(off[:2]), rel=1e-3)
    if k < 2:
        assert on.phi2 == pytest.approx(off.phi2, rel=1e-3)
    if k == 0:
        for update in (True, False):
            sampled = errors(half(k, 1e-3, update), 1e-3, 0.5, every=10)
            assert sampled.phi1 == pytest.approx(6.43496e-5, abs=5.1e-10)


@pytest.mark.covers("SL-18")
def test_final_update_closes_the_law():
    """Residual 3.1e-4 N before the final evaluation (k = 0, H = 1e-3), below 1e-12 N after it."""
    result = half(0, 1e-3)
    assert result.residual.max() == pytest.approx(3.1e-4, rel=0.02)
    names = ["one.phi", "one.w", *(f"two.{n}" for n in ("x", "y", "phi", "vx", "vy", "w"))]
    law = np.array([joint_force(*row) for row in np.array([result[n] for n in names]).T])
    assert np.abs(result["joint"] - law).max() < 1e-12


@pytest.mark.covers("SL-21")
def test_a_second_correction_closes_the_nonlinear_interface():
    """H = 2e-3, k = 0, T = 0.2: 7.3e-3 N after one correction, below 1e-8 N after two.

    Increment 1e-2 N as in the reference code; differences at 1e-5 N (our default while the force is 0) give 7.6e-3.
    """
    H, options = 2e-3, {"degree": 0, "increment": 1e-2}
    one = cs.simulate(split("F/F", h=H / 4), t_end=0.2, method=SEMI(**options), step=H)
    assert one.residual.max() == pytest.approx(7.3e-3, abs=5e-5)
    full = cs.Implicit(tol=1e-10, corrector=cs.Newton(refresh="iteration"), **options)
    two = cs.simulate(split("F/F", h=H / 4), t_end=0.2, method=full, step=H)
    assert two.iterations.max() == 2
    assert two.residual.max() < 1e-8


@pytest.mark.filterwarnings(
    "ignore:values grow without bound:cosolve.errors.StabilityWarning"
)  # beyond the limit on purpose
@pytest.mark.covers("SL-12")
@pytest.mark.parametrize(("kind", "k"), quick([(kind, k) for kind in ("F/D", "D/D") for k in (0, 1, 2)], ("F/D", 1)))
def test_motion_as_input(kind, k):
    """k = 0 is off by more than 10 rad; k = 1 and 2 meet the table to 5 % with orders 2 and 3."""
    coarse = found(SEMI, k, 1e-3, kind).phi1
    if k == 0:
        assert coarse > 10.0
        return
    fine = found(SEMI, k, 5e-4, kind).phi1
    assert (coarse, fine) == pytest.approx(MOTION[SEMI, kind][k], rel=0.05)
    assert np.log2(coarse / fine) == pytest.approx(k + 1, abs=0.05)
    assert coarse > 10 * found(SEMI, k, 1e-3).phi1  # constants far above those of the force split


@pytest.mark.covers("SL-12")
@pytest.mark.parametrize("kind", ["F/D", "D/D"])
def test_motion_held_constant_is_recognised_before_the_run(kind):
    """Linearised at the start: k = 0 is unstable at H = 1e-3, k = 1 neutral (the hanging rod turns freely)."""
    assert cs.analysis.amplification_matrix(split(kind), SEMI(degree=0), 1e-3).unstable
    assert not cs.analysis.amplification_matrix(split(kind), SEMI(degree=1), 1e-3).unstable
    assert "held-displacement" in cs.check(split(kind), SEMI(degree=0)).codes()


@pytest.mark.covers("SL-15")
def test_why_the_explicit_run_diverges():
    """k = 2, H = 1e-3: the macro step is stable at the start and unstable (rho 1.14) once the rods are in line.

    Half the step is stable there, and so is the semi-implicit method.
    """

    def unstable(method, H, state):
        return cs.analysis.amplification_matrix(
            split("F/F", h=H / 4), method, H, state={"one": state[:2], "two": state[2:]}
        ).unstable

    at_start, in_line = reference(np.array([0.0, 0.8]))
    assert not unstable(EXPLICIT(degree=2), 1e-3, at_start)
    assert unstable(EXPLICIT(degree=2), 1e-3, in_line)
    assert not unstable(EXPLICIT(degree=2), 5e-4, in_line)
    assert not unstable(SEMI(degree=2), 1e-3, in_line)


@pytest.mark.covers("SL-12")
@pytest.mark.parametrize(
    ("kind", "k"), quick([(kind, k) for kind in ("F/D", "D/D") for k in (0, 1, 2)], ("F/D", 0), ("D/D", 1))
)
def test_motion_as_input_explicit(kind, k):
    """The explicit columns to 5 %: wrong with k = 0 (half-step lag), converging with k >= 1."""
    assert [found(EXPLICIT, k, H, kind).phi1 for H in STEPS[:2]] == pytest.approx(MOTION[EXPLICIT, kind][k], rel=0.05)


@pytest.mark.slow
def test_adaptive_inner_solver_gives_the_same():
    """dopri5 at 1e-10 instead of RK4: the error of k = 1 is the coupling's, not the solver's (1 %)."""
    result = cs.simulate(split("F/F", integrator="dopri5"), t_end=0.1, method=SEMI(degree=1), step=1e-3)
    assert errors(result, 1e-3).phi1 == pytest.approx(9.79e-6, rel=1e-2)


@pytest.mark.filterwarnings(
    "ignore:values grow without bound:cosolve.errors.StabilityWarning"
)  # beyond the limit on purpose
@pytest.mark.slow
def test_the_script(tmp_path, capsys):
    """Three pictures and a table."""
    main(["--quick", "--out", str(tmp_path)])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["convergence.png", "displacement.png", "motion.png"]
    assert "semi, k = 2" in capsys.readouterr().out
