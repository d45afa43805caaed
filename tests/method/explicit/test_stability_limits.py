"""Stability limits of explicit coupling: spectral radius, closed form (docs/theory.md), and runs on both sides."""

import warnings

import numpy as np
import pytest
from examples.two_mass.model import BAR, SCHMOLL, TwoMass, force_displacement
from examples.two_mass.study import coupling, known_past
from tests.choice import quick

import cosolve as cs


def jacobi_b(p: int) -> cs.Jacobi:
    return cs.Jacobi(p, outputs="exchanged")


def gauss_seidel_21(p: int) -> cs.GaussSeidel:
    return cs.GaussSeidel(p, order=["two", "one"])


def gauss_seidel_21_b(p: int) -> cs.GaussSeidel:
    return cs.GaussSeidel(p, order=["two", "one"], outputs="exchanged")


# Reference code (docs/validation/schmoll.md): limits for p = 0..5.
TABLE_2_1 = {
    cs.Jacobi: [1.435e-5, 2.463e-4, 5.665e-4, 3.822e-4, 2.016e-4, 1.185e-4],
    jacobi_b: [4.406e-5, 3.197e-4, 7.302e-4, 7.747e-4, 6.605e-4, 4.930e-4],
    cs.GaussSeidel: [1.562e-5, 3.708e-4, 7.663e-4, 8.716e-4, 7.786e-4, 5.428e-4],
    gauss_seidel_21: [1.562e-5, 2.908e-4, 6.353e-4, 6.588e-4, 5.025e-4, 3.414e-4],
    gauss_seidel_21_b: [1.562e-5, 3.709e-4, 7.676e-4, 8.723e-4, 7.788e-4, 5.427e-4],
}
TABLE_3_1 = {
    cs.Jacobi: [2.38e-5, 5.16e-4, 1.23e-3, 8.18e-4, 4.17e-4, 2.30e-4],
    cs.GaussSeidel: [4.14e-5, 7.64e-4, 1.57e-3, 1.87e-3, 1.71e-3, 1.11e-3],
}


@pytest.mark.covers("SC-08")
@pytest.mark.parametrize(
    ("scheme", "p"),
    quick([(s, p) for s in TABLE_2_1 for p in range(6)], *zip(TABLE_2_1, (2, 0, 3, 0, 1), strict=True)),
    ids=lambda v: getattr(v, "__name__", v),
)
def test_limits_of_table_2_1(scheme, p: int) -> None:
    """The smallest step at which the spectral radius of the macro step passes 1: the printed value within 0.5 %."""
    printed = TABLE_2_1[scheme][p]
    found = cs.analysis.critical_step(force_displacement(), scheme(p), step_range=(printed / 4, printed * 1.2))
    assert found == pytest.approx(printed, rel=0.005)


@pytest.mark.sample(2)
@pytest.mark.covers("SC-08")
@pytest.mark.parametrize(
    ("scheme", "p"), [(s, p) for s in TABLE_3_1 for p in range(6)], ids=lambda v: getattr(v, "__name__", v)
)
def test_limits_of_table_3_1(scheme, p: int) -> None:
    """The same for the bar's parameters; three printed digits allow for 0.5 %."""
    printed = TABLE_3_1[scheme][p]
    found = cs.analysis.critical_step(force_displacement(BAR), scheme(p), step_range=(printed / 4, printed * 1.2))
    assert found == pytest.approx(printed, rel=0.005)


@pytest.mark.covers("SC-08")
def test_spectral_radius_passes_one_at_the_limit() -> None:
    """Both sides of the limit, and far below it: the radius is that of the slowest exact mode."""
    system, method = force_displacement(), cs.Jacobi(2)
    assert (
        cs.analysis.spectral_radius(system, method, 0.99 * 5.665e-4)
        < 1
        < cs.analysis.spectral_radius(system, method, 1.01 * 5.665e-4)
    )
    slowest = np.linalg.eigvals(SCHMOLL.A).real.max()
    assert cs.analysis.spectral_radius(system, method, 1e-5) == pytest.approx(np.exp(slowest * 1e-5), abs=1e-9)


@pytest.mark.covers("SC-08")
@pytest.mark.parametrize("p", range(6))
def test_gauss_seidel_is_more_stable_than_jacobi(p: int) -> None:
    """Schmoll (2015), 2.6.1: Gauss-Seidel is the more stable; at 1.01 of Jacobi's limit Gauss-Seidel still decays."""
    H = 1.01 * TABLE_2_1[cs.Jacobi][p]
    assert cs.analysis.spectral_radius(force_displacement(), cs.Jacobi(p), H) > 1
    assert cs.analysis.spectral_radius(force_displacement(), cs.GaussSeidel(p), H) < 1


def closed_form(p: TwoMass, scheme: str) -> float:
    """Energy balance per undamped mode for held inputs (docs/theory.md, "Stability"); `r` = amplitude ratio x2 / x1."""
    K = np.array([[p.c1 + p.ck, -p.ck], [-p.ck, p.c2 + p.ck]])
    omega2 = np.linalg.eigvals(np.diag([1 / p.m1, 1 / p.m2]) @ K).real
    r = (p.c1 + p.ck - p.m1 * omega2) / p.ck
    gamma = {"J a": 1.5 - r, "J b": 0.5 - r, "GS12": np.full(2, 0.5)}[scheme]
    limits = (p.d1 + p.d2 * r**2 + p.dk * (1 - r) ** 2) / (p.ck * gamma)
    return float(limits[gamma > 0].min())


@pytest.mark.sample(2)
@pytest.mark.covers("SC-09")
@pytest.mark.parametrize(
    ("p", "name", "method", "printed"),
    [
        (SCHMOLL, "J a", cs.Jacobi(0), 1.435e-5),
        (SCHMOLL, "GS12", cs.GaussSeidel(0), 1.562e-5),
        (SCHMOLL, "J b", jacobi_b(0), 4.406e-5),
        (BAR, "J a", cs.Jacobi(0), 2.385e-5),
        (BAR, "GS12", cs.GaussSeidel(0), 4.14e-5),
    ],
    ids=["J a", "GS", "J b", "bar J a", "bar GS"],
)
def test_closed_form_for_held_inputs(p: TwoMass, name: str, method: cs.Method, printed: float) -> None:
    """Formula, spectral radius and printed value within 0.5 % of each other."""
    formula = closed_form(p, name)
    radius = cs.analysis.critical_step(force_displacement(p), method, step_range=(printed / 4, printed * 1.2))
    assert formula == pytest.approx(radius, rel=0.005)
    assert formula == pytest.approx(printed, rel=0.005)


# -- runs on both sides of the limit -----------------------------------------------------------------------


def amplitudes(method: cs.Method, H: float, t_end: float, every: int = 1) -> tuple[float, float, float]:
    """Largest displacement of mass 1 in the first tenth, the last but one and the last tenth of a run."""
    result = cs.simulate(force_displacement(), t_end=t_end, method=method, step=H, startup=known_past(), every=every)
    x = np.abs(result["one.x"])
    tenth = len(x) // 10
    return float(x[:tenth].max()), float(x[-2 * tenth : -tenth].max()), float(x[-tenth:].max())


QUICK = {(cs.GaussSeidel, 3)}
RUNS = [
    pytest.param(kind(p), TABLE_2_1[kind][p], id=f"{name}{p}", marks=() if (kind, p) in QUICK else pytest.mark.slow)
    for name, kind in (("J", cs.Jacobi), ("GS", cs.GaussSeidel))
    for p in (1, 2, 3, 4, 5)
]


@pytest.mark.covers("SC-10")
@pytest.mark.parametrize(("method", "limit"), RUNS)
def test_runs_decay_below_the_limit(method: cs.Method, limit: float) -> None:
    """6 s at 0.97 of the limit end smaller than they began, and still fall."""
    first, before, last = amplitudes(method, 0.97 * limit, 6.0)
    assert last < before < first


@pytest.mark.covers("SC-10")
@pytest.mark.parametrize(("method", "limit"), RUNS)
def test_runs_grow_above_the_limit(method: cs.Method, limit: float) -> None:
    """6 s at 1.03 of the limit end larger than they began, and still rise (GS 4 too, not in the reference)."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        first, before, last = amplitudes(method, 1.03 * limit, 6.0)
    assert last > before
    assert last > first
    if last > 1e6 * first:  # four decades after the first quarter are what the monitor wants to see
        assert "is unstable here: take a step of about" in str(said[0].message)


HELD = [
    pytest.param(cs.Jacobi(0), 1.435e-5, id="J0"),
    pytest.param(cs.GaussSeidel(0), 1.562e-5, id="GS0"),
]
LONG = [*HELD, *(pytest.param(cs.Jacobi(p), TABLE_2_1[cs.Jacobi][p], id=f"J{p}") for p in (4, 5))]


@pytest.mark.covers("SC-10")
@pytest.mark.parametrize(("method", "limit"), LONG)
def test_long_runs_by_powers_of_the_amplification_matrix(method: cs.Method, limit: float) -> None:
    """p = 0 needs 2 million steps to tell (30 s, growth 6-fold): here the engine's own matrix takes them."""
    t_end, take = (30.0, 1009) if method.degree == 0 else (6.0, 7)
    for factor in (0.97, 1.03):
        H = factor * limit
        past = [coupling(SCHMOLL.exact(-j * H))[0] for j in range(method.degree + 1)]
        state = np.concatenate([SCHMOLL.z0, *past])
        stride = np.linalg.matrix_power(cs.analysis.amplification_matrix(force_displacement(), method, H).matrix, take)
        x = [abs(state[0])]
        for _ in range(int(t_end / H) // take):
            state = stride @ state
            x.append(abs(state[0]))
        tenth = len(x) // 10
        first, earlier, later = max(x[:tenth]), max(x[4 * tenth : 5 * tenth]), max(x[-tenth:])
        assert (later > earlier) == (factor > 1)
        if factor < 1:
            assert later < 0.5 * first


@pytest.mark.slow
@pytest.mark.covers("SC-10")
@pytest.mark.parametrize(("method", "limit"), HELD)
@pytest.mark.parametrize("factor", [0.97, 1.03])
def test_held_inputs_over_thirty_seconds(method: cs.Method, limit: float, factor: float) -> None:
    """The same with two million macro steps of the engine."""
    first, before, last = amplitudes(method, factor * limit, 30.0, every=101)
    if factor < 1:
        assert last < before < first
    else:
        assert last > before
