"""The lubrication film: closed-form limits, convergence in the grid, exact derivatives, cavitation, bad input."""

import doctest

import numpy as np
import pytest
from examples.rotor_bearing import elrod, journal_bearing, limits, reynolds
from examples.rotor_bearing.elrod import Elrod, Groove
from examples.rotor_bearing.journal_bearing import JournalBearing
from examples.rotor_bearing.limits import long_bearing, short_bearing, short_bearing_coefficients
from examples.rotor_bearing.reynolds import Reynolds
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.sparse import coo_array
from scipy.sparse.linalg import spsolve

import cosolve as cs

LONG = 1e4  # B/R so large that the edges do not matter


def bearing(**changes):
    return JournalBearing(**({"R": 0.01, "c": 20e-6, "B": 0.01, "eta": 4e-3} | changes))


# -- closed-form limits ------------------------------------------------------------------------------------


@pytest.mark.covers("SC-38")
@pytest.mark.parametrize(("cells", "ratios"), [(48, (1.0066, 1.0007)), (96, (1.0016, 1.0001)), (192, (1.0004, 1.0000))])
def test_long_bearing_with_whole_cells_gives_the_table_of_the_reference_code(cells, ratios):
    force = Reynolds(LONG, cells, 2, cavitation="guembel-cells").polar(0.6).force
    np.testing.assert_allclose(force / long_bearing(0.6), ratios, atol=1.0e-4)


@pytest.mark.covers("SC-38")
@pytest.mark.parametrize("cavitation", ["guembel", "guembel-cells"])
def test_long_bearing_converges_with_second_order(cavitation):
    cells = np.array([192, 384, 768])
    errors = [np.abs(Reynolds(LONG, int(n), 2, cavitation).polar(0.6).force - long_bearing(0.6)) for n in cells]
    slopes = -np.polyfit(np.log(cells), np.log(errors), 1)[0]
    assert slopes == pytest.approx([2, 2], abs=0.1)


@pytest.mark.covers("SC-38")
@pytest.mark.parametrize(("width", "share"), [(0.1, 0.006), (0.25, 0.04)])
def test_short_bearing(width, share):
    force = Reynolds(width, 384, 32).polar(0.6).force
    np.testing.assert_allclose(force, short_bearing(0.6, width), rtol=share)


@pytest.mark.covers("SC-38")
def test_bearing_as_wide_as_its_radius():
    np.testing.assert_allclose(Reynolds(1.0, 256, 64).polar(0.5).force, [-0.0519, 0.0840], atol=6e-5)


@pytest.mark.covers("SC-38")
@pytest.mark.parametrize("motion", [(0.5, 0.0, 0.0), (0.5, 0.07, 0.1), (0.8, -0.05, 0.3)])
def test_second_order_in_the_grid_for_a_bearing_of_finite_width(motion):
    forces = np.array([Reynolds(1.0, 8 * n, n).polar(*motion).force for n in (8, 16, 32, 64)])
    changes = np.linalg.norm(np.diff(forces, axis=0), axis=1)
    orders = np.log2(changes[:-1] / changes[1:])
    assert orders == pytest.approx([2, 2], abs=0.12)


@pytest.mark.covers("SC-38")
@pytest.mark.parametrize("eps", [0.05, 0.5, 0.95])
def test_no_force_when_the_whirl_is_half_the_speed(eps):
    film = Reynolds(1.0).polar(eps, deps=0.0, ddelta=0.5)
    assert not film.force.any()
    assert not film.pressure.any()


@pytest.mark.covers("SC-38")
@pytest.mark.parametrize("cavitation", ["guembel", "guembel-cells"])
def test_guembel_pressure_is_the_positive_part_of_the_linear_solution(cavitation):
    motion = (0.7, -0.1, 0.2)
    linear = Reynolds(1.0, cavitation="none").polar(*motion).pressure
    cut = Reynolds(1.0, cavitation=cavitation).polar(*motion).pressure
    assert linear.min() < 0
    np.testing.assert_array_equal(cut, np.maximum(linear, 0.0))


# -- the discrete solution ---------------------------------------------------------------------------------


def assembled(width, n, m, e, s, c):
    """The same finite volumes as one sparse matrix."""
    d, dz = 2 * np.pi / n, 0.5 / m
    gap = lambda angle: 1 + e[0] * np.cos(angle) + e[1] * np.sin(angle)  # noqa: E731
    rows, columns, values, load = [], [], [], np.empty(n * m)
    for i in range(n):
        angle = (i + 0.5) * d
        mean_sin, mean_cos = (
            np.cos(angle - d / 2) - np.cos(angle + d / 2),
            np.sin(angle + d / 2) - np.sin(angle - d / 2),
        )
        for j in range(m):
            load[i * m + j] = -(s * mean_sin + c * mean_cos) * dz
            neighbours = {((i + 1) % n) * m + j: gap(angle + d / 2) ** 3 / d * dz}
            neighbours[((i - 1) % n) * m + j] = gap(angle - d / 2) ** 3 / d * dz
            axial = gap(angle) ** 3 * d / dz / width**2
            if j > 0:
                neighbours[i * m + j - 1] = axial
            if j < m - 1:
                neighbours[i * m + j + 1] = axial
            edge = 2 * axial if j == m - 1 else 0.0
            for k, value in [*((k, -v) for k, v in neighbours.items()), (i * m + j, sum(neighbours.values()) + edge)]:
                rows.append(i * m + j)
                columns.append(k)
                values.append(value)
    return spsolve(coo_array((values, (rows, columns))).tocsc(), load).reshape(n, m)


def test_modes_give_the_solution_of_the_assembled_matrix():
    e, s, c = (0.3, -0.5), -0.8, 0.3
    film = Reynolds(0.8, 24, 6, cavitation="none").solve(e, s, c)
    expected = assembled(0.8, 24, 6, e, s, c)
    np.testing.assert_allclose(film.pressure, expected, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("cavitation", ["none", "guembel", "guembel-cells"])
def test_derivatives_are_those_of_the_discrete_forces(cavitation):
    film, x, h = Reynolds(0.8, cavitation=cavitation), np.array([0.55, 0.08, 0.15]), 1e-6
    differences = [(film.polar(*(x + d)).force - film.polar(*(x - d)).force) / (2 * h) for d in h * np.eye(3)]
    np.testing.assert_allclose(film.polar(*x).derivative, np.array(differences).T, atol=1e-8)


@pytest.mark.parametrize("cavitation", ["guembel", "elrod"])
def test_chain_rule_to_displacement_velocity_and_speed(cavitation):
    b = bearing(cavitation=cavitation)
    x, size = np.array([5e-6, -8e-6, 2e-3, -1e-3, 700.0]), np.array([1e-11, 1e-11, 1e-8, 1e-8, 1e-3])
    force = lambda x: b.force(x[:2], x[2:4], x[4])  # noqa: E731
    up, down = (np.array([force(x + k * d) for d in np.diag(size)]) for k in (1, -1))
    J = b.jacobian(x[:2], x[2:4], x[4])
    np.testing.assert_allclose(J * size, (up - down).T / 2, rtol=1e-5, atol=1e-5 * np.abs(J * size).min())


def test_differentiable_cut_has_no_kinks_and_whole_cells_have():
    """Along a path in eps' the slope of F_r is continuous with the cut between cells; whole cells make it jump."""
    path = np.linspace(0.0, 0.05, 4001)
    jumps = {}
    for cavitation in ("guembel", "guembel-cells"):
        film = Reynolds(1.0, 48, 8, cavitation)
        slopes = np.array([film.polar(0.4, deps, 0.1).derivative[0, 1] for deps in path])
        jumps[cavitation] = np.abs(np.diff(slopes)).max() / np.ptp(slopes)
    assert jumps["guembel"] < 5e-3
    assert jumps["guembel-cells"] > 2e-2


def test_polar_and_cartesian_forms_are_the_same_film_on_a_turned_grid():
    D, V, omega = (4e-6, -9e-6), (1e-3, 2e-3), 600.0
    gaps = []
    for n in (32, 64, 128):
        b = bearing(n_theta=n)
        polar = b.to_cartesian(b.polar(*b.kinematics(D, V, omega)).force, D, omega)
        gaps.append(np.abs(polar - b.force(D, V, omega)).max() / np.abs(polar).max())
    assert gaps[-1] < 1e-4
    assert gaps[0] / gaps[-1] > 12  # second order


def test_the_work_of_a_solve_grows_with_the_number_of_cells_and_no_faster(monkeypatch):
    """One factorisation per axial mode serves its border and four right-hand sides, each by one pass over the cells."""
    passes = []

    def counted(cube, d, pivot, x):
        passes.append(x.size)
        solved(cube, d, pivot, x)

    solved = reynolds._tridiagonal
    monkeypatch.setattr(reynolds, "_tridiagonal", counted)
    monkeypatch.setattr(reynolds, "_solve_modes", reynolds._solve_modes.py_func)
    for n_theta, n_z in ((64, 16), (32, 4)):
        passes.clear()
        Reynolds(1.0, n_theta, n_z).polar(0.5, 0.1, 0.2)
        assert passes == 5 * n_z * [n_theta]


# -- coefficients ------------------------------------------------------------------------------------------


def short_film_force(e, rate):
    """Guembel forces of the short film for gap `1 + e . (cos, sin)` at speed 1, by quadrature; width 1."""

    def density(angle, wave):
        load = (2 * rate[1] - e[0]) * np.sin(angle) + (2 * rate[0] + e[1]) * np.cos(angle)
        gap = 1 + e[0] * np.cos(angle) + e[1] * np.sin(angle)
        return -load / gap**3 / 12 * wave(angle)

    start = np.arctan2(2 * rate[0] + e[1], -(2 * rate[1] - e[0]))  # where the load changes sign
    force = [quad(density, start, start + np.pi, args=(wave,), epsabs=1e-14)[0] for wave in (np.cos, np.sin)]
    other = [quad(density, start - np.pi, start, args=(wave,), epsabs=1e-14)[0] for wave in (np.cos, np.sin)]
    middle = density(start + np.pi / 2, lambda angle: 1.0)
    return np.array(force if middle > 0 else other)


@pytest.mark.parametrize("eps", [0.2, 0.5, 0.8])
def test_classical_coefficients_are_derivatives_of_the_short_film(eps):
    F_r, F_delta = short_bearing(eps, 1.0)
    W = np.hypot(F_r, F_delta)
    delta = np.pi / 2 - np.arctan2(F_delta, F_r)  # then the force points to +y
    e, h = eps * np.array([np.cos(delta), np.sin(delta)]), 1e-5
    np.testing.assert_allclose(short_film_force(e, (0.0, 0.0)), [0.0, W], atol=1e-10)
    rest = np.zeros(2)
    K = -np.array([short_film_force(e + d, rest) - short_film_force(e - d, rest) for d in h * np.eye(2)]).T / (2 * h)
    C = -np.array([short_film_force(e, d) - short_film_force(e, -d) for d in h * np.eye(2)]).T / (2 * h)
    classical = short_bearing_coefficients(eps)
    np.testing.assert_allclose(K / W, classical[0], rtol=1e-5)
    np.testing.assert_allclose(C / W, classical[1], rtol=1e-4)


@pytest.mark.covers("SC-38")
@pytest.mark.parametrize("eps", [0.2, 0.5, 0.7])
def test_stiffness_and_damping_of_a_short_bearing(eps):
    b, omega = bearing(B=0.05 * 0.01, n_theta=512), 600.0
    W = b.scale * omega * np.hypot(*short_bearing(eps, 0.05))
    D = b.equilibrium(W, omega)
    K, C = b.coefficients(D, omega)
    classical = short_bearing_coefficients(np.hypot(*D) / b.c)
    np.testing.assert_allclose(K * b.c / W, classical[0], rtol=0.005, atol=0.005)
    np.testing.assert_allclose(C * b.c * omega / W, classical[1], rtol=0.005, atol=0.005)


# -- mass-conserving cavitation ----------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [(0.0, 0.0), (0.05, -0.1)])
@pytest.mark.parametrize("speed", [1.0, -0.7])
@pytest.mark.parametrize("e", [(0.6, 0.0), (-0.2, 0.75)])
def test_oil_is_conserved(e, speed, rate):
    film = Elrod(1.0, groove=Groove(0.3, 0.8, 0.02)).solve(e, speed, rate)
    assert film.defect < 1e-10
    assert film.supplied == pytest.approx(film.leaked + film.stored, abs=1e-10)
    assert film.leaked > 0
    # complementarity: gas only where there is no pressure
    assert film.pressure.min() >= 0
    assert 0 <= film.fill.min() < 1
    assert film.fill.max() == 1
    assert not (film.pressure * (1 - film.fill)).any()


def long_film(eps, angle, supply):
    """Rupture, reformation, carried gap and forces of the infinitely long bearing with a groove (JFO conditions).

    `H^3 p' = H - H_c` in the film with the flow `H_c` of the rupture, where pressure and slope vanish; in the cavity
    `fill H = H_c`; the film forms again where its pressure, followed back from the groove, is zero.
    """
    gap = lambda a: 1 + eps * np.cos(a)  # noqa: E731
    rise = lambda a, b, carried: quad(lambda x: (gap(x) - carried) / gap(x) ** 3, a, b, epsabs=1e-12)[0]  # noqa: E731
    rupture = brentq(lambda b: supply + rise(angle, b, gap(b)), np.pi + 1e-6, 2 * np.pi - 1e-3)
    carried, around = gap(rupture), angle + 2 * np.pi
    reformed = brentq(lambda a: rise(a, around, carried) - supply, rupture + 1e-9, around) if supply else around
    force = []
    for wave in (np.cos, np.sin):
        behind = quad(lambda a, w=wave: (supply + rise(angle, a, carried)) * w(a), angle, rupture)[0]
        ahead = quad(lambda a, w=wave: rise(reformed, a, carried) * w(a), reformed, around)[0] if supply else 0.0
        force.append(behind + ahead)
    return rupture, reformed, carried, np.array(force)


@pytest.mark.parametrize(("angle", "supply"), [(0.0, 0.0), (1.0, 0.0), (0.0, 0.3)])
def test_rupture_and_reformation_of_the_infinitely_long_bearing(angle, supply):
    eps = 0.6
    rupture, reformed, carried, force = long_film(eps, angle, supply)
    errors = []
    for n in (127, 511):
        d = 2 * np.pi / n
        centre = (round(angle / d - 0.5) + 0.5) * d
        turn = centre - angle  # so that a cell centre lies on the groove
        film = Elrod(LONG, n, 2, Groove(centre, 1.0, supply)).solve((eps * np.cos(turn), eps * np.sin(turn)), 1.0)
        place = (np.arange(n) + 0.5) * d - turn
        broken = film.fill[:, 0] < 1
        cavity = (place[broken] - angle) % (2 * np.pi) + angle
        assert cavity.min() - d / 2 == pytest.approx(rupture, abs=2 * d)
        assert cavity.max() + d / 2 == pytest.approx(reformed, abs=2 * d)
        flow = (film.fill[:, 0] * (1 + eps * np.cos(place + d / 2)))[broken]
        assert np.sort(flow)[:-1] == pytest.approx(carried, abs=5e-5)  # but for the cell in which it forms again
        back = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
        errors.append(np.abs(back @ film.force - force).max())
    assert errors[1] < 5e-5
    assert errors[0] / errors[1] > 8  # better than first order


def test_mass_conserving_film_reverses_with_the_speed():
    forward = Elrod(1.0, 64, 8, Groove(0.0)).solve((0.5, 0.2), 1.0)
    # mirrored at theta = 0: the first cell becomes the last
    backward = Elrod(1.0, 64, 8, Groove(2 * np.pi - 1e-9)).solve((0.5, -0.2), -1.0)
    np.testing.assert_allclose(backward.force, forward.force * [1, -1], rtol=1e-10)


# -- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("eps", [1.0, 1.3, float("nan")])
def test_contact_is_refused_with_the_eccentricity(eps):
    for solve in (lambda: Reynolds(1.0).polar(eps), lambda: Elrod(1.0).solve((0.0, eps), 1.0)):
        with pytest.raises(cs.errors.SubsystemError, match=f"touches the bush: eccentricity {eps:.6g}"):
            solve()


def test_zero_speed():
    b = bearing()
    assert np.isfinite(b.force((5e-6, 0.0), (1e-3, 0.0), 0.0)).all()  # squeeze film
    for omega in (0.0, -100.0):
        with pytest.raises(cs.errors.SubsystemError, match=rf"need omega > 0, not {omega:g}; use force"):
            b.kinematics((5e-6, 0.0), (1e-3, 0.0), omega)
    with pytest.raises(cs.errors.SetupError, match="speed omega must be a positive number"):
        b.equilibrium(9.81, 0.0)
    with pytest.raises(cs.errors.SubsystemError, match="moving surface"):
        Elrod(1.0).solve((0.5, 0.0), 0.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"eta": -1e-3}, "viscosity eta must be a positive number, not -0.001"),
        ({"B": 0.0}, "width B must be a positive number"),
        ({"R": "10 mm"}, "radius R must be a positive number, not '10 mm'"),
        ({"c": 0.02}, "clearance c = 0.02 must be below the radius"),
        ({"n_theta": 4}, "n_theta must be a whole number of at least 8, not 4"),
        ({"n_z": 1}, "n_z must be a whole number of at least 2, not 1"),
        ({"cavitation": "reynolds"}, "cavitation must be one of none, guembel, guembel-cells, elrod"),
        ({"groove": Groove()}, "give cavitation='elrod' with it"),
    ],
)
def test_bad_bearings_are_refused(changes, message):
    with pytest.raises(cs.errors.SetupError, match=message):
        bearing(**changes)


@pytest.mark.parametrize("bad", [{"length": 0.0}, {"length": 1.5}, {"pressure": -1.0}, {"theta": np.inf}])
def test_bad_grooves_are_refused(bad):
    with pytest.raises(cs.errors.SetupError, match="Groove: "):
        Groove(**bad)


def test_a_load_that_is_not_finite_is_refused():
    with pytest.raises(cs.errors.SubsystemError, match="not finite"):
        Reynolds(1.0).polar(0.5, deps=float("nan"))


def test_a_gap_that_changes_too_fast_for_the_quasi_steady_fill():
    with pytest.raises(cs.errors.SubsystemError, match="no quasi-steady film"):
        Elrod(1.0).solve((0.6, -0.73), 0.1, (-6.7, 1.8))


# -- the examples in the docstrings ------------------------------------------------------------------------


@pytest.mark.parametrize("module", [reynolds, elrod, journal_bearing, limits], ids=lambda module: module.__name__)
def test_docstring_examples_run(module):
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
