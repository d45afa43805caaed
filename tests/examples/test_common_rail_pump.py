"""The common-rail pump: its steady operation, its balance, its resonance, and what coupling it costs.

Reference: both sides in one system of equations, by a Runge-Kutta loop of the example that knows nothing of the engine.
Steady operation takes a dozen revolutions to reach; quick tests begin there (`running`), slow ones show how it is got.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise

import numpy as np
import pytest
from examples.common_rail_pump.model import (
    COUPLED,
    LIQUID,
    STROKES,
    Course,
    Pump,
    density_of,
    running,
    split,
    undivided,
)
from examples.common_rail_pump.study import (
    chatter,
    coupled,
    error,
    last,
    order,
    resonance,
    revolutions,
    steps_over_angle,
    torque,
)
from scipy.integrate import solve_ivp

import cosolve as cs

PUMP = Pump()
MPA = 1e6


@cache
def revolution() -> Course:
    """One revolution in steady operation."""
    return revolutions(1, x0=running())


def stored(x: np.ndarray) -> float:
    """Mass of liquid in all volumes."""
    return float(x[10 : 10 + LIQUID.index("flow1")].sum())


# -- parts --------------------------------------------------------------------------------------------------------


def test_torsion_modes_of_the_drive() -> None:
    """Two inertias on two springs: 447.2 and 2002.8 Hz."""
    d = PUMP.drive
    K = np.array([[d.gear_stiffness + d.shaft_stiffness, -d.shaft_stiffness], [-d.shaft_stiffness, d.shaft_stiffness]])
    squares = np.linalg.eigvals(np.diag([1 / d.gear_inertia, 1 / d.shaft_inertia]) @ K)
    assert np.sort(np.sqrt(squares)) / (2 * np.pi) == pytest.approx([447.2, 2002.8], rel=2e-4)


def test_mode_of_port_line_and_rail() -> None:
    """470.3 Hz: the liquid of the line swings between port and rail, linearised at 180 MPa."""
    h, liquid = PUMP.hydraulics, PUMP.liquid
    rho = density_of(180e6, liquid)
    modulus, area, piece = liquid.modulus + liquid.stiffening * 180e6, np.pi / 4 * h.line_bore**2, h.line_length / 6
    volumes = np.array([h.port, *[area * piece] * 5, h.rail])
    between = np.diff(np.eye(7), axis=0)  # pressure differences along the six flows
    stiffness = modulus / (rho * volumes)  # pressure per mass
    K = area / piece * between @ np.diag(stiffness) @ between.T
    lowest = np.sqrt(np.linalg.eigvalsh(K)[0]) / (2 * np.pi)
    assert lowest == pytest.approx(470.3, rel=1e-3)


# -- steady operation -----------------------------------------------------------------------------------------------


def test_a_revolution_ends_where_it_began() -> None:
    """The kept state is periodic to 1e-6, as from the seventh revolution on."""
    course = revolution()
    begin, end = course.x[0], course.x[-1]
    assert end[[0, 2]] - 2 * np.pi == pytest.approx(begin[[0, 2]], abs=1e-6)
    rest = [*range(1, 2), *range(3, 10), *range(10, 10 + LIQUID.index("fed"))]
    size = np.abs(course.x).max(axis=0)[rest]
    assert np.abs(end - begin)[rest] / size == pytest.approx(np.zeros(len(rest)), abs=1e-6)


@pytest.mark.covers("AP-18", "AP-17")
def test_flows_of_a_revolution() -> None:
    """Milligrams fed, injected, limited and leaked; 46 % of the stroke volume; nothing is lost."""
    course = revolution()
    flows = 1e6 * (course.x[-1] - course.x[0])[10 + LIQUID.index("fed") :]
    assert flows == pytest.approx([267.72, 146.68, 120.99, 0.052], rel=1e-3, abs=6e-4)
    swept = 3 * PUMP.piston_area * 2 * PUMP.drive.eccentricity * density_of(0.5e6, PUMP.liquid) * 1e6
    assert flows[0] / swept == pytest.approx(0.46, abs=0.006)
    lost = stored(course.x[-1]) - stored(course.x[0]) - (flows[0] - flows[1:].sum()) * 1e-6
    assert abs(lost) < 1e-11 * stored(course.x[0])


@pytest.mark.covers("AP-19")
def test_pressures() -> None:
    """AP-19."""
    found = revolution().pressures
    assert found["cylinders"].max() == pytest.approx(189.04 * MPA, rel=2e-3)
    assert (found["port"].min(), found["port"].max()) == pytest.approx((173.33 * MPA, 188.87 * MPA), rel=2e-3)
    assert (found["rail"].min(), found["rail"].max()) == pytest.approx((178.10 * MPA, 186.55 * MPA), rel=2e-3)
    assert found["rail"].mean() == pytest.approx(181.91 * MPA, rel=2e-3)


@pytest.mark.covers("AP-20")
def test_cylinders_fill_in_part() -> None:
    """A delayed steep rise, the plateau at rail pressure, decompression after top dead centre."""
    course = revolution()
    p, angle = course.pressures["cylinders"][:-1, 0], np.degrees(course.x[:-1, 2])
    rising = (p[:-1] < 10 * MPA) & (p[1:] >= 10 * MPA)
    high = (p[:-1] < 150 * MPA) & (p[1:] >= 150 * MPA)
    falling = (p[:-1] >= 10 * MPA) & (p[1:] < 10 * MPA)
    found = [float(angle[np.flatnonzero(some)[0]]) for some in (rising, high, falling)]
    assert found == pytest.approx([88.6, 97.0, 204.1], abs=0.5)
    assert (p < 0.05 * MPA).mean() == pytest.approx(0.668, abs=0.002)
    assert np.ptp(course.x[:, 4]) == pytest.approx(6.879e-3, rel=5e-3)


@pytest.mark.covers("AP-21")
def test_torque_and_speed() -> None:
    """The liquid drives the shaft after top dead centre."""
    found = torque(revolution())
    assert (found.min(), found.max(), found.mean()) == pytest.approx((-3.17, 20.64, 9.04), rel=3e-3)
    speed = revolution().x[:, 3]
    assert (speed.min(), speed.max()) == pytest.approx((180.94, 198.43), rel=3e-3)


@pytest.mark.covers("AP-22")
def test_resonance_of_the_coupled_machine() -> None:
    """First line: order 15 of speed and port pressure; each side alone is in a slow test."""
    course = revolution()
    assert order(course.x[:, 3]) == pytest.approx(6.33, rel=0.02)
    assert order(course.pressures["port"]) == pytest.approx(3.50 * MPA, rel=0.02)


@pytest.mark.slow
@pytest.mark.covers("AP-16")
def test_the_reference_against_another_integrator() -> None:
    """One millisecond by SciPy's Radau on the equations of the two subsystems: AP-16 in another way."""
    system = split(x0=running())
    (f, _, _), (g, out, _) = (s.equations() for s in system.subsystems.values())

    def rhs(t, x):
        force = out(t, x[10:], x[4:10])[:3]
        return np.concatenate([f(t, x[:10], force), g(t, x[10:], x[4:10])])

    found = solve_ivp(rhs, (0, 1e-3), running(), "Radau", rtol=1e-8, atol=1e-13).y[:, -1]
    ours = undivided(t_end=1e-3, x0=running()).x[-1]
    size = np.maximum(np.abs(ours), 1e-9)
    assert np.abs(found - ours)[:33] / size[:33] == pytest.approx(np.zeros(33), abs=2e-4)


@pytest.mark.slow
@pytest.mark.covers("AP-16")
def test_the_reference_is_converged() -> None:
    """Internal steps of 1e-7 and 5e-8 s, over 34 ms."""
    coarse, fine = (undivided(t_end=0.034, x0=running(), step=h).signals() for h in (1e-7, 5e-8))
    shares = [(coarse[name] - fine[name]) / np.ptp(fine[name], axis=0) for name in fine]
    assert float(np.sqrt(np.mean(np.square(shares)))) < 1e-8


@pytest.mark.slow
@pytest.mark.covers("AP-17")
def test_steady_operation_is_reached_from_rest() -> None:
    """Twelve revolutions from the start data to the kept state, and 25.5 g of liquid balanced to 1e-11."""
    course = revolutions(12)
    end = course.x[-1].copy()
    end[[0, 2]] -= 24 * np.pi
    kept = running()
    assert np.abs(end - kept)[:10] == pytest.approx(np.zeros(10), abs=1e-4)
    flows = course.x[-1][10 + LIQUID.index("fed") :]
    lost = stored(course.x[-1]) - stored(course.x[0]) - (flows[0] - flows[1:].sum())
    assert abs(lost) < 1e-11 * stored(course.x[0])


@pytest.mark.slow
@pytest.mark.covers("AP-22", "SC-45")
def test_neither_side_alone_shows_the_resonance() -> None:
    """Hydraulics with ideal strokes are 29 % low, the multibody side with a table of forces is 56 % high."""
    found = resonance()
    assert found["coupled"] == pytest.approx((6.33, 3.50 * MPA), rel=0.02)
    assert found["hydraulics alone"][1] == pytest.approx(2.47 * MPA, rel=0.02)
    assert found["multibody side alone"][0] == pytest.approx(9.86, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "speed", "port"),
    [
        ({"gear_stiffness": 4000.0}, 0.51, None),
        ({"gear_stiffness": 16000.0}, 0.41, None),
        ({"line_length": 0.3}, 7.07, 0.60),
    ],
)
@pytest.mark.covers("AP-23")
def test_detuning(change: dict, speed: float, port: float | None) -> None:
    """Another gear drive takes the resonance out of the speed, a shorter line out of the pressure."""
    part = "hydraulics" if "line_length" in change else "drive"
    pump = replace(PUMP, **{part: getattr(PUMP, part)._replace(**change)})
    course = last(revolutions(14, pump))
    assert order(course.x[:, 3]) == pytest.approx(speed, rel=0.03)
    if port is not None:
        assert order(course.pressures["port"]) == pytest.approx(port * MPA, rel=0.03)


# -- coupled ------------------------------------------------------------------------------------------------------

#: All step sizes are compared at the same points, multiples of the longest step. At all of its macro points `Jacobi(2)`
#: with steps of 1 us has ten times the error, nine tenths of it in the first: there signals are held, so that the force
#: is off by what the piston moved.
GRID = 1e-5

#: NRMSE over the macro step in us, with rising degree at the start, at multiples of `GRID`
TABLE = {
    ("J", 0): {10: 1.7e-3, 5: 8.1e-4, 2: 3.7e-4, 1: 2.3e-4, 0.5: 1.3e-4},
    ("J", 1): {10: 1.2e-4, 5: 3.2e-5, 2: 5.3e-6, 1: 1.4e-6, 0.5: 3.7e-7},
    ("J", 2): {10: 6.5e-5, 5: 1.1e-5, 2: 8.3e-7, 1: 2.2e-7, 0.5: 5.0e-8},
    ("J", 3): {10: 6.3e-5, 5: 1.2e-5, 2: 2.5e-6, 1: 9.5e-7, 0.5: 3.0e-7},
    ("GS", 1): {10: 1.1e-4, 0.5: 2.8e-7},
    ("GS", 2): {10: 5.7e-5, 5: 7.7e-6, 2: 4.7e-7, 1: 6.2e-8, 0.5: 9.3e-9},
    ("GS", 3): {10: 5.4e-5, 5: 4.6e-6, 2: 2.0e-7, 1: 2.0e-8, 0.5: 4.7e-9},
}
METHODS = {"J": cs.Jacobi, "GS": cs.GaussSeidel}


@cache
def reference(t_end: float) -> Course:
    return undivided(t_end=t_end, x0=running(), interval=5e-7)


@pytest.mark.slow
def test_the_two_sides_together_follow_the_undivided_machine() -> None:
    """Half a millisecond of `Jacobi(1)` with steps of 10 us; the first step holds its signals, and costs most of it."""
    run = coupled(cs.Jacobi(1), 1e-5, running(), t_end=5e-4, startup=cs.RisingDegree())
    for name, exact in undivided(t_end=5e-4, x0=running()).signals().items():
        assert np.abs(run[name] - exact).max() < 1e-2 * np.abs(exact).max(), name


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "degree", "H"), [("J", 1, 10), ("GS", 2, 10)])
@pytest.mark.covers("AP-24")
def test_errors_of_explicit_coupling(kind: str, degree: int, H: float) -> None:
    """One entry of the table each for Jacobi and Gauss-Seidel, with the factor it is given to."""
    run = coupled(METHODS[kind](degree), H * 1e-6, running(), startup=cs.RisingDegree())
    expected = TABLE[kind, degree][H]
    assert expected / 1.5 < error(run, reference(0.034), GRID) < 1.5 * expected


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "degree"), TABLE)
@pytest.mark.covers("AP-24")
def test_all_errors_of_explicit_coupling(kind: str, degree: int) -> None:
    """The whole table, within a factor of 1.5; an error of the size of the reference's own (4.5e-9) may be smaller."""
    for H, expected in TABLE[kind, degree].items():
        run = coupled(METHODS[kind](degree), H * 1e-6, running(), startup=cs.RisingDegree())
        least = 0.0 if expected < 5e-9 else expected / 1.5
        assert least < error(run, reference(0.034), GRID) < 1.5 * expected, H


# -- how long a step may be ------------------------------------------------------------------------------------------

#: (longest step in us that stays bounded, a longer one that does not), by degree; an error below 3e-2 is bounded
LIMITS = {
    "J": {1: (25, 28), 2: (22, 25), 3: (16, 18), 4: (8, 10)},
    "GS": {1: (60, 80), 2: (50, 60), 3: (40, 50), 4: (32, 40)},
    "J exchanged": {1: (30, 40), 2: (20, 25), 3: (12, 14), 4: (5, 8)},
}
BOUNDED = 3e-2


def bounded(kind: str, degree: int, H: float, t_end: float = 0.034, **options) -> bool:
    """Whether a run with steps of `H` us gets to its end with an error that is one."""
    kinds = {**METHODS, "J exchanged": partial(cs.Jacobi, outputs="exchanged")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.errors.StabilityWarning)  # beyond the limit is where we want to go
        try:
            run = coupled(kinds[kind](degree), H * 1e-6, running(), t_end, startup=cs.RisingDegree(), **options)
        except cs.errors.SimulationError:
            return False
    return error(run, reference(t_end)) < BOUNDED


@pytest.mark.parametrize(("kind", "degree", "below", "above"), [("J", 4, 7, 10), ("GS", 4, 32, 40)])
@pytest.mark.covers("AP-25")
def test_a_limit_from_both_sides(kind: str, degree: int, below: float, above: float) -> None:
    """Degree 4 breaks soonest: 8 ms tell it. Gauss-Seidel bears four times the step of Jacobi."""
    assert bounded(kind, degree, below, 8e-3, compiled=False)
    assert not bounded(kind, degree, above, 8e-3, compiled=False)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "degree"), [(kind, degree) for kind, rows in LIMITS.items() for degree in rows])
@pytest.mark.covers("AP-25")
def test_all_limits(kind: str, degree: int) -> None:
    """One revolution, both sides of every limit."""
    below, above = LIMITS[kind][degree]
    assert bounded(kind, degree, below)
    assert not bounded(kind, degree, above)


@pytest.mark.slow
@pytest.mark.covers("AP-25")
def test_degree_0_is_bounded_and_useless() -> None:
    """Steps of 200 us, and 2 % of error."""
    found = error(coupled(cs.Jacobi(0), 200e-6, running(), startup=cs.RisingDegree()), reference(0.034))
    assert 1e-2 < found < BOUNDED


# -- steps that choose themselves ------------------------------------------------------------------------------------


def controlled(degree: int, rtol: float, t_end: float = 0.034, reject: bool | None = False, **options) -> cs.Result:
    """Jacobi with error-controlled steps between 0.1 and 100 us."""
    control = cs.Adaptive(rtol=rtol, min_step=1e-7, max_step=1e-4, first_step=1e-7, reject=reject)
    return cs.simulate(split(x0=running()), t_end=t_end, method=cs.Jacobi(degree), step=control, **options)


@pytest.mark.slow
@pytest.mark.covers("SC-45", "AP-26")
def test_controlled_steps_are_shortest_where_the_pressure_rises() -> None:
    """A cylinder fills at 84 degrees after it was empty, just when another has emptied: steps fall to a tenth there."""
    run = controlled(2, 1e-4, 10e-3, compiled=False)
    begins, H = steps_over_angle(run)
    rise = (begins >= 84) & (begins < 102)
    quiet = (begins >= 12) & (begins < 81)
    assert begins[np.nanargmin(H)] == 84
    assert H[rise].max() < H[quiet].min()
    assert H[begins == 84][0] < 0.1 * np.median(H[quiet])
    assert error(run, reference(10e-3)) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("degree", range(5))
@pytest.mark.covers("AP-26")
def test_controlled_steps_never_blow_up(degree: int) -> None:
    """Any tolerance, no step repeated: errors fall with it down to what the degree and the shortest step allow."""
    found = []
    for rtol in (1e-3, 1e-5, 1e-7, 1e-9):
        run = controlled(degree, rtol)
        H = np.diff(run.t)[:-1]
        assert 0.999e-7 <= H.min()
        assert H.max() <= 1.001e-4
        found.append(error(run, reference(0.034)))
    assert found[0] < BOUNDED
    assert all(later < 1.05 * earlier for earlier, later in pairwise(found)), found


@pytest.mark.slow
@pytest.mark.parametrize("leader", ["mbs", "hydraulics"])
@pytest.mark.covers("AP-26")
def test_following_the_leader_the_degree_does_not_matter(leader: str) -> None:
    """Every internal step is exchanged: from degree 1 on only the start is left of the error, the same for all."""
    found = []
    for degree in range(4):
        method = cs.LeaderFollower(degree, leader=leader)
        run = cs.simulate(split(x0=running()), t_end=2e-3, method=method, startup=cs.RisingDegree())
        found.append(error(run, undivided(t_end=2e-3, x0=running(), interval=1e-7)))
    assert max(found[1:]) < 1.05 * min(found[1:])
    assert max(found[1:]) < 0.02 * found[0]


# -- both sides and the whole ----------------------------------------------------------------------------------------


@pytest.mark.covers("SC-45")
def test_liquid_is_balanced_in_a_coupled_run() -> None:
    """What is stored changes by what came in less what went out, however rough the coupling is."""
    system, begin = split(x0=running()), running()
    cs.simulate(system, t_end=2e-3, method=cs.Jacobi(1), step=2e-5, compiled=False)
    end = np.concatenate([begin[:10], system.subsystems["hydraulics"].get_state()])
    flows = (end - begin)[10 + LIQUID.index("fed") :]
    lost = stored(end) - stored(begin) - (flows[0] - flows[1:].sum())
    assert flows[0] > 1e-6
    assert abs(lost) < 1e-11 * stored(begin)


@pytest.mark.covers("SC-45")
def test_with_a_rigid_drive_the_hydraulics_alone_are_right() -> None:
    """Stiff gears, shaft and contact at an even speed: pistons make ideal strokes, and pressures are those alone."""
    stiff = PUMP.drive._replace(
        unevenness=0.0, gear_stiffness=1e7, gear_damping=30.0, shaft_stiffness=1e7, shaft_damping=30.0, drag=0.0
    )
    rigid = replace(PUMP, drive=stiff._replace(contact_stiffness=1e10, contact_damping=2e4))
    x0 = np.concatenate([rigid.motion0(), running()[10:]])
    x0[4:7] -= 20e-9  # pressed on by the springs
    t_end = rigid.revolution / 3
    whole, alone = (undivided(rigid, t_end, x0=x0, alone=alone).pressures for alone in (COUPLED, STROKES))
    for place in ("cylinders", "port", "rail"):
        assert np.abs(whole[place] - alone[place]).max() < 0.02 * np.ptp(alone[place]), place
    soft = undivided(t_end=t_end, x0=running()).pressures["port"]
    assert np.abs(soft - alone["port"]).max() > 0.1 * np.ptp(alone["port"])


# -- what cannot be right --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["feed_pressure", "rail_pressure", "back_pressure"])
def test_a_pressure_below_that_of_the_vapour_is_refused(name: str) -> None:
    with pytest.raises(cs.errors.SetupError, match=rf"{name} = -100000 Pa is not above the vapour pressure of 5000 Pa"):
        replace(PUMP, hydraulics=PUMP.hydraulics._replace(**{name: -1e5}))


def test_an_empty_pump_stays_at_the_vapour_pressure() -> None:
    """Nothing is fed: pistons pull on empty cylinders, and no pressure is below the floor."""
    dry = replace(PUMP, hydraulics=PUMP.hydraulics._replace(throttle=0.0))
    course = undivided(dry, t_end=12e-3, x0=running())
    lowest = min(values.min() for values in course.pressures.values())
    assert 5e3 < lowest < 5.1e3


def test_valves_faster_than_the_internal_steps_are_refused() -> None:
    quick = replace(PUMP, hydraulics=PUMP.hydraulics._replace(valve_lag=2e-8))
    with pytest.raises(
        cs.errors.SetupError, match=r"valves with a lag of 2e-08 s chatter in internal steps of 1e-07 s"
    ):
        split(quick)


def test_a_volume_too_small_for_the_internal_steps_is_named_with_its_time() -> None:
    """A port of 0.1 mm3 makes the equations too stiff; what came before is kept."""
    tiny = replace(PUMP, hydraulics=PUMP.hydraulics._replace(port=1e-10))
    x0 = running()
    x0[14] *= 1e-10 / PUMP.hydraulics.port
    with pytest.raises(cs.errors.NonFiniteError, match=r"'hydraulics' failed while advancing at t = ") as broken:
        cs.simulate(split(tiny, x0=x0), t_end=1e-3, method=cs.Jacobi(1), step=1e-5, compiled=False)
    assert broken.value.result is not None
    assert len(broken.value.result.t) >= 1


class Recorded(dict):
    """What `chatter` reads of a result."""

    def __init__(self, t: np.ndarray, valves: np.ndarray) -> None:
        super().__init__({"hydraulics.valves": valves})
        self.t = t


def test_a_valve_that_chatters_is_named() -> None:
    """Outlet valve 2 opens and shuts every 2 ms; a run of the pump has nothing to say."""
    t = np.linspace(0, 0.02, 2001)
    valves = np.zeros((2001, 6))
    valves[:, 4] = 0.5 * (1 - np.cos(2 * np.pi * t / 2e-3))
    (said,) = chatter(Recorded(t, valves))
    assert said.startswith("outlet valve 2 chatters: it opens 4 times between t = 0.0003 s and t = 0.0063 s")
    course = revolution()
    assert chatter(Recorded(course.t, course.x[:, 27:33])) == []
