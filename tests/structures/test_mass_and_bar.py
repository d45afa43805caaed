"""Mass and finite-element bar: acceleration-free boundary, stability, penalty variant (Schmoll (2015), 3.3.3)."""

import numpy as np
import pytest
from examples.mass_and_bar.model import DRIVEN_MASS, RAYLEIGH, direct, exact_direct, exact_penalty, penalty
from examples.two_mass.model import BAR
from examples.two_mass.study import by_map, engine, global_error, known_past

import cosolve as cs

# Reference code: global NRMSE at H = 1e-4, 5e-5, 2.5e-5, 1.25e-5 s; Jacobi, trivial start, T = 0.05 s.
TABLE_4_4 = {
    0: [3.6e-1, 1.7e-1, 8.2e-2, 4.0e-2],
    1: [1.12e-2, 2.80e-3, 7.0e-4, 1.75e-4],
    2: [6.1e-4, 8.6e-5, 1.4e-5, 2.8e-6],
    3: [3.4e-4, 5.9e-5, 1.2e-5, 2.7e-6],
}
# Reference code: stability limits for the bar's parameters (Schmoll (2015), Table 3.1), degrees 0 to 5.
TABLE_3_1 = {
    cs.Jacobi: [2.38e-5, 5.16e-4, 1.23e-3, 8.18e-4, 4.17e-4, 2.30e-4],
    cs.GaussSeidel: [4.14e-5, 7.64e-4, 1.57e-3, 1.87e-3, 1.71e-3, 1.11e-3],
}
T_END = 0.05


@pytest.mark.covers("SC-27")
def test_bar_is_the_second_mass() -> None:
    """The bar's lumped matrices are the parameters of Table 3.1, so the two-mass formula is its exact reference."""
    path = engine(cs.Jacobi(2), 1e-5, 0.01, system=direct(substeps=4))
    exact = exact_direct(path.t)
    assert exact == pytest.approx(BAR.exact(path.t)[:, 0], abs=1e-13)
    assert np.abs(path.y[:, 0] - exact).max() < 2e-8


@pytest.mark.sample(2)
@pytest.mark.covers("SC-27")
@pytest.mark.parametrize("p", TABLE_4_4)
def test_error_table(p: int) -> None:
    """Trapezoidal micro steps of 1e-6 s, printed values within 5 %."""
    for H, printed in zip((1e-4, 5e-5, 2.5e-5, 1.25e-5), TABLE_4_4[p], strict=True):
        path = by_map(cs.Jacobi(p), H, T_END, system=direct(substeps=round(H / 1e-6)), first=p + 4)
        assert global_error(path, BAR) == pytest.approx(printed, rel=0.05)


@pytest.mark.sample(2)
@pytest.mark.covers("SC-27")
@pytest.mark.parametrize(
    ("scheme", "p"), [(s, p) for s in TABLE_3_1 for p in range(6)], ids=lambda v: getattr(v, "__name__", v)
)
def test_stability_limits(scheme, p: int) -> None:
    """Spectral radius of the macro step with ten trapezoidal micro steps: the printed limit within 1 %."""
    printed = TABLE_3_1[scheme][p]
    found = cs.analysis.critical_step(direct(substeps=10), scheme(p), step_range=(printed * 0.97, printed * 1.03))
    assert found == pytest.approx(printed, rel=0.01)


@pytest.mark.covers("SC-28")
def test_explicit_micro_steps_in_the_coupled_run() -> None:
    """Central differences inside Gauss-Seidel, degree 3: what is left is the micro-step error, of order 2."""
    errors = []
    for n in (1, 2, 4):
        system = direct("central-differences", substeps=n)
        path = by_map(cs.GaussSeidel(3), 5e-5, T_END, system=system, startup=known_past(BAR))
        errors.append(global_error(path, BAR))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)
    assert np.log2(errors[1] / errors[2]) == pytest.approx(2.0, abs=0.1)


@pytest.mark.covers("SC-29")
def test_penalty_error_is_inverse_to_its_stiffness() -> None:
    """Against the bar attached directly (its nodal mass given to the driving mass): exact solutions, slope -1."""
    t = np.linspace(0.0, T_END, 2001)
    rigid = exact_direct(t, DRIVEN_MASS)
    stiffness = [1e8, 1e9, 1e10]
    errors = [np.abs(exact_penalty(t, c, 1e-6 * c) - rigid).max() for c in stiffness]
    assert cs.analysis.convergence_order(stiffness, errors) == pytest.approx(-1.0, abs=0.05)


@pytest.mark.slow
@pytest.mark.covers("SC-29")
def test_penalty_run_follows_the_penalty_model() -> None:
    """The run with the penalty element is near the exact motion with that spring, not near the rigid one."""
    c, d = 1e7, 100.0
    result = cs.simulate(penalty(c, d, substeps=4), t_end=0.01, method=cs.GaussSeidel(2), step=5e-6)
    own = np.abs(result["one.x"] - exact_penalty(result.t, c, d)).max()
    rigid = np.abs(result["one.x"] - exact_direct(result.t, DRIVEN_MASS)).max()
    assert own < 1e-6
    assert rigid > 40 * own


@pytest.mark.slow
@pytest.mark.covers("SC-29")
def test_penalty_shrinks_the_stable_step() -> None:
    """The stiffer the penalty spring, the smaller the critical macro step; all below the direct coupling's."""

    def limit(c: float) -> float:
        return cs.analysis.critical_step(penalty(c, RAYLEIGH * c, substeps=4), cs.Jacobi(1), step_range=(4e-5, 4e-4))

    by_stiffness = [limit(c) for c in (1e6, 1e7, 1e8)]
    attached = cs.analysis.critical_step(
        direct(substeps=10, extra_mass=DRIVEN_MASS), cs.Jacobi(1), step_range=(5e-4, 7e-4)
    )
    assert by_stiffness == sorted(by_stiffness, reverse=True)
    assert 0 < by_stiffness[-1]
    assert by_stiffness[0] < 0.5 * attached
