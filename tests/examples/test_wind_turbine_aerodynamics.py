"""Aerodynamics of the wind turbine: tables, steady rotor against the wind tunnel, and the unsteady step.

Figures without another origin are those of an earlier program with the same equations.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from examples.wind_turbine.aerodynamics import Rotor, Step, aerodynamic_step, s809, steady
from examples.wind_turbine.data import BLADE, DEEP_STALL, DELFT, OHIO_STATE, SPAN, STALLED, TESTS
from scipy.optimize import brentq

import cosolve as cs
from examples.elements import closed_polar, polar, polar_values

SPEED = np.radians(432.0)


def advanced(side: Step, x: np.ndarray, u: np.ndarray, H: float = 2e-3) -> tuple[np.ndarray, np.ndarray]:
    """State and outputs after a step that must work."""
    new, y = np.empty_like(x), np.empty_like(side.y0)
    status = side.step(0.0, H, x, u, new, y)
    assert status == 0, side.failure(status, 0.0, H, x, u)
    return new, y


@pytest.mark.covers("AP-01")
def test_all_measured_points_are_on_the_curves() -> None:
    closed = s809()
    for angle, lift, drag in [*OHIO_STATE, *DEEP_STALL]:
        assert polar_values(np.radians(angle), *closed)[:2] == pytest.approx((lift, drag), abs=1e-12)


@pytest.mark.covers("AP-01")
def test_curves_have_no_jumps_in_all_directions() -> None:
    """Values and slopes from either side of every point, once around."""
    closed, tiny = s809(), 1e-9
    assert closed.angles[[0, -1]].tolist() == [-180.0, 180.0]
    assert polar_values(-np.pi, *closed)[:2] == pytest.approx(polar_values(np.pi, *closed)[:2], abs=1e-12)
    for angle in np.radians(closed.angles[1:-1]):
        left, right = polar_values(angle - tiny, *closed), polar_values(angle + tiny, *closed)
        assert left[:2] == pytest.approx(right[:2], abs=3e-8)
        assert left[2:] == pytest.approx(right[2:], abs=1e-5)


@pytest.mark.covers("AP-02")
@pytest.mark.parametrize(
    ("name", "torque", "thrust"), [("S0700000", 793.4, 1167), ("H0700000", 781.5, 1150), ("H1000000", 1295.5, 1509)]
)
def test_torque_and_thrust_of_the_wind_tunnel(name: str, torque: float, thrust: float) -> None:
    test = TESTS[name]
    found = steady(Rotor(wind=test.wind, density=test.density), test.rpm * np.pi / 30)
    assert found.torque == pytest.approx(test.torque, rel=0.02)
    assert found.thrust == pytest.approx(test.thrust, rel=0.10)
    assert (found.torque, found.thrust) == pytest.approx((torque, thrust), rel=5e-4)


@pytest.mark.covers("AP-02")
def test_another_tunnels_profile() -> None:
    test = TESTS["S0700000"]
    delft = closed_polar(DELFT, DEEP_STALL)
    found = steady(Rotor(profile=delft, wind=test.wind, density=test.density), test.rpm * np.pi / 30)
    assert found.torque == pytest.approx(820, rel=1e-3)


def test_a_closed_polar_is_mirrored_to_negative_angles_and_to_the_flow_from_behind() -> None:
    """With 0.7 of the lift, downwards where the profile faces down, and all of the drag."""
    closed = closed_polar([[-10, -0.8, 0.02], [0, 0.1, 0.01], [10, 0.9, 0.02]], [[30, 0.9, 0.6], [90, 0.1, 2.2]])
    found = [polar_values(np.radians(angle), *closed)[:2] for angle in (30.0, -30.0, 150.0, -150.0)]
    assert np.array(found) == pytest.approx(np.array([[0.9, 0.6], [-0.63, 0.6], [-0.63, 0.6], [0.63, 0.6]]))


def test_forces_along_the_blade() -> None:
    """Of S0700000: 4 % over the middle of the blade, 20 % at its ends, where a lifting line knows too little."""
    test = TESTS["S0700000"]
    found = steady(Rotor(wind=test.wind, density=test.density), test.rpm * np.pi / 30)
    for at, across, along in SPAN:
        ours = np.interp(at * 5.029, found.r, found.across), np.interp(at * 5.029, found.r, found.along)
        assert ours == pytest.approx((across, along), rel=0.04 if 0.4 < at < 0.9 else 0.20), at


@pytest.mark.covers("AP-03", "IJ-37")
def test_steady_torque_and_thrust() -> None:
    found = [steady(Rotor(wind=wind), SPEED) for wind in (5.0, 7.0, 10.0)]
    assert [one.torque for one in found] == pytest.approx([271.16, 778.91, 1282.73], rel=2e-5)
    assert [one.thrust for one in found] == pytest.approx([602.21, 1147.89, 1496.12], rel=2e-5)
    finer = [steady(Rotor(elements=n), SPEED).torque for n in (10, 20, 40, 80)]
    assert finer == pytest.approx([784.1, 778.9, 776.8, 776.1], rel=1e-4)


@pytest.mark.covers("IJ-37")
def test_speed_at_which_a_generator_holds_the_rotor() -> None:
    """With a damping of 100.1 Nms."""
    speed = brentq(lambda speed: steady(Rotor(), speed).torque - 100.1 * speed, 7.0, 8.5)
    assert np.degrees(speed) == pytest.approx(442.35, rel=1e-5)
    assert 100.1 * speed == pytest.approx(772.82, rel=1e-5)


@pytest.mark.covers("IJ-37")
def test_no_more_power_than_betz_allows() -> None:
    for wind in (5.0, 7.0, 10.0):
        found, rotor = steady(Rotor(wind=wind), SPEED), Rotor(wind=wind)
        stream = 0.5 * rotor.density * np.pi * rotor.tip**2 * wind**2
        assert 0 < found.torque * SPEED / (stream * wind) < 16 / 27
        assert 0 < found.thrust / stream < 1


def test_flow_around_the_roots_costs_torque_where_the_hub_is_near() -> None:
    """At the first station, 11 cm from a hub of 1.25 m, much of the induced flow is lost; the tip does not notice."""
    plain, near = steady(Rotor(), SPEED), steady(Rotor(hub=1.25), SPEED)
    assert near.torque < plain.torque
    assert near.w[0] > 1.3 * plain.w[0]
    assert near.w[-1] == pytest.approx(plain.w[-1], rel=1e-9)
    with pytest.raises(cs.errors.SetupError, match="radius of the hub"):
        Rotor(hub=2.0)


@pytest.mark.covers("AP-04")
def test_stall_is_too_deep_without_its_delay() -> None:
    """A profile from a tunnel loses its lift near the hub where a turning blade does not."""
    plain = {wind: steady(Rotor(wind=wind), SPEED).torque for wind in (7.0, 10.0, 13.0, 15.0)}
    delayed = {wind: steady(Rotor(wind=wind, stall_delay=True), SPEED).torque for wind in plain}
    assert [plain[13.0], plain[15.0]] == pytest.approx([1084, 676], rel=1e-3)
    for wind in (7.0, 10.0):
        assert delayed[wind] == pytest.approx(plain[wind], rel=0.03)
    for wind, measured in ((13.0, STALLED[13.0]), (15.0, STALLED[15.0])):
        assert delayed[wind] == pytest.approx(measured, rel=0.06)
        assert abs(plain[wind] / measured - 1) > 0.16


@pytest.mark.slow
@pytest.mark.covers("AP-05")
def test_torque_overshoots_after_a_step_of_pitch() -> None:
    """The wake needs seconds to slow down; until then the blades see more wind than they will."""
    side = aerodynamic_step(Rotor(), SPEED, np.radians(5.0))
    x, H, pitch, rate, limit = side.x0, 2e-3, np.radians(5.0), 0.0, np.radians(60.0)
    torque = []
    for _ in range(10_000):
        faster = rate + (1 - np.exp(-H / 0.1)) * (np.clip(-5 * pitch, -limit, limit) - rate)
        pitch, rate = pitch + 0.5 * H * (rate + faster), faster
        x, y = advanced(side, x, np.array([SPEED, pitch, rate]), H)
        torque.append(y[0])
    peak = int(np.argmax(torque))
    settled = steady(Rotor(), SPEED).torque
    assert H * (peak + 1) == pytest.approx(0.390, abs=H)
    assert torque[peak] == pytest.approx(890.6, rel=1e-4)
    assert torque[-1] == pytest.approx(settled, rel=1e-5)
    assert (torque[peak] - settled) / (settled - side.y0[0]) == pytest.approx(0.349, rel=0.01)


@pytest.mark.covers("AP-06")
def test_apparent_inertia() -> None:
    inertia = [Rotor().apparent_inertia(np.radians(pitch)) for pitch in (-45, 0, 45)]
    assert inertia == pytest.approx([7.3773, 0.35040, 11.7326], rel=1e-4)


@pytest.mark.covers("AP-06")
@pytest.mark.parametrize("pitch", [-45.0, 45.0])
def test_an_accelerated_rotor_pushes_air(pitch: float) -> None:
    """In short steps the torque changes by the apparent inertia times the change of speed over the step."""
    side = aerodynamic_step(Rotor(), 5.0, np.radians(pitch))
    H, change = 1e-9, 1e-3
    moved = [advanced(side, side.x0, np.array([5.0 + s * change, np.radians(pitch), 0.0]), H)[1][0] for s in (1, -1)]
    inertia = -(moved[0] - moved[1]) / (2 * change / H)
    assert inertia == pytest.approx(Rotor().apparent_inertia(np.radians(pitch)), rel=1e-5)


@pytest.mark.slow
def test_sensitivities_are_exact() -> None:
    """All outputs by all inputs, against extrapolated differences, in the middle of a motion and in the first step."""
    side = aerodynamic_step(Rotor(hub=1.0), SPEED, 0.1, fields=True, separate=True)
    random = np.random.default_rng(1)
    for before in (0.0, 500.0):
        x = side.x0 * (1 + 0.02 * random.standard_normal(len(side.x0)))
        x[-1] = before
        u = np.concatenate([[SPEED, 0.1, 0.3], 0.3 * random.standard_normal(sum(p.length for p in side.inputs) - 3)])
        D = np.empty((len(side.y0), len(u)))
        side.jacobian(0.0, 2e-3, x, u, D)
        for k in range(len(u)) if before else (0, 1, 2, 5, 30):
            by = [(advanced(side, x, u + s * _unit(k, len(u)))[1], s) for s in (2e-5, -2e-5, 1e-5, -1e-5)]
            wide, narrow = ((a[0] - b[0]) / (a[1] - b[1]) for a, b in (by[:2], by[2:]))
            assert np.abs(D[:, k] - (4 * narrow - wide) / 3).max() < 1e-9 * np.abs(D[:, k]).max()


def _unit(k: int, n: int) -> np.ndarray:
    return np.eye(1, n, k)[0]


@pytest.mark.slow
def test_two_subsystems_with_a_blade_each_are_one_with_both() -> None:
    """Separate motions of the two blades, some steps; and with equal motions one set of stations stands for both."""
    both = aerodynamic_step(Rotor(), 5.0, 0.2, fields=True, separate=True)
    alike = aerodynamic_step(Rotor(), 5.0, 0.2, fields=True)
    single = aerodynamic_step(Rotor(), 5.0, 0.2, fields=True, carried=1)
    random, drive = np.random.default_rng(2), np.array([5.2, 0.2, 0.1])
    states = [both.x0, alike.x0, single.x0, single.x0]
    for _ in range(3):
        first, second = 0.2 * random.standard_normal((2, 40))
        x, y = advanced(both, states[0], np.concatenate([drive, first, second]))
        one, two = (
            advanced(single, states[2 + i], np.concatenate([drive, own])) for i, own in enumerate((first, second))
        )
        assert y[:2] == pytest.approx(one[1][:2] + two[1][:2], rel=1e-14)
        assert (y[2:42] == one[1][2:]).all()
        assert (y[42:] == two[1][2:]).all()
        equal, loads = advanced(alike, states[1], np.concatenate([drive, first]))
        assert (loads[2:] == one[1][2:]).all()
        assert loads[0] == pytest.approx(2 * one[1][0], rel=1e-14)
        states = [x, equal, one[0], two[0]]
    assert alike.y0[0] == pytest.approx(2 * single.y0[0], rel=1e-15)


def test_three_blades_need_only_data() -> None:
    """Three blades of two thirds of the chord load the air alike; tips that are closer together lose less."""
    table = BLADE * [1.0, 2 / 3, 1.0]
    two, three = steady(Rotor(), SPEED), steady(Rotor(table=table, blades=3), SPEED)
    assert two.torque < three.torque < 1.05 * two.torque
    side = aerodynamic_step(Rotor(table=table, blades=3), SPEED, fields=True, separate=True)
    assert [port.name for port in side.outputs[2::2]] == ["flap_load1", "flap_load2", "flap_load3"]
    _, y = advanced(side, side.x0, np.concatenate([[SPEED, 0.0, 0.0], np.zeros(120)]))
    assert y == pytest.approx(side.y0, rel=1e-9)


def test_steps_of_other_lengths() -> None:
    """BDF2 knows the last step: halving the step in the middle quarters an error, as it does without."""

    def torque(steps: list[float]) -> float:
        side = aerodynamic_step(Rotor(), SPEED)
        x, t = side.x0, 0.0
        for H in steps:
            t += H
            x, y = advanced(
                side, x, np.array([SPEED, 0.1 * np.sin(2 * t) ** 3, 0.6 * np.sin(2 * t) ** 2 * np.cos(2 * t)]), H
            )
        return float(y[0])

    uneven = [torque([0.4 / n] * (n // 2) + [0.2 / n] * n) for n in (10, 20, 40, 80)]
    changes = [b - a for a, b in pairwise(uneven)]
    assert all(3.2 < a / b < 4.8 for a, b in pairwise(changes))


# -- bad input -----------------------------------------------------------------------------------------------------


def test_an_angle_outside_a_short_polar_is_named() -> None:
    short = polar(OHIO_STATE)
    with pytest.raises(cs.errors.SetupError, match=r"angle of attack is 4\d\.\d degrees at station 0 .* of blade 1"):
        steady(Rotor(profile=short), np.radians(100.0))
    side = aerodynamic_step(Rotor(profile=short), SPEED)
    x, u = side.x0, np.array([SPEED, np.radians(-30.0), 0.0])
    status = side.step(0.0, 1e-3, x, u, x.copy(), side.y0.copy())
    sentence = side.failure(status, 0.0, 1e-3, x, u)
    assert sentence.startswith("the angle of attack is 3")
    assert sentence.endswith("the polar goes from -20.1 to 26.1 degrees: continue it with elements.closed_polar")


def test_inflow_that_does_not_converge_is_named() -> None:
    """A profile whose lift jumps back and forth has no steady inflow; a speed that is no number has none either."""
    n = 36_001  # so steep and so narrow that neither fixed points nor Newton's method can come to rest
    rough = np.column_stack([np.linspace(-180, 180, n), np.where(np.arange(n) % 2, 1e4, -1e4), np.full(n, 0.01)])
    with pytest.raises(
        cs.errors.SetupError, match=r"no steady inflow at station \d+ .* begin from another speed or pitch"
    ):
        steady(Rotor(profile=polar(rough)), SPEED)
    side, u = aerodynamic_step(Rotor(), SPEED), np.array([np.nan, 0.0, 0.0])
    status = side.step(0.0, 1e-3, side.x0, u, side.x0.copy(), side.y0.copy())
    sentence = side.failure(status, 0.0, 1e-3, side.x0, u)
    assert sentence.startswith("the induced velocity does not converge at station 0 (r = 1.351 m) of blade 1")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"table": [[1.0, 0.7, 20.0], [5.0, -0.3, 0.0]]},
            "a chord must be positive, and row 1 of the blade has -0.3 m",
        ),
        (
            {"table": [[1.0, 0.7, 0.0], [5.0, 0.3, 0.0], [3.0, 0.5, 0.0]]},
            "must be positive and grow, and row 2 has 3 m",
        ),
        ({"table": [[0.0, 0.7, 0.0], [5.0, 0.3, 0.0]]}, "must be positive and grow, and row 0 has 0 m"),
        ({"table": [[1.0, 0.7]]}, "rows of radius, chord and twist"),
        ({"wind": 0.0}, "wind of a rotor must be positive"),
        ({"density": float("nan")}, "density of a rotor must be positive"),
        ({"blades": 0}, "blades of a rotor are a whole number"),
    ],
)
def test_nonsense_is_refused(options: dict, said: str) -> None:
    with pytest.raises(cs.errors.SetupError, match=said):
        Rotor(**options)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[0, 0, 0.01], [0, 1, 0.01]], "angles of a polar must grow: row 1 has 0 after 0"),
        ([[0, 0, 0.01], [5, 1, -0.01]], "drag coefficient of -0.01 at 5 degrees"),
        ([[0, 0, 0.01]], "at least two of them"),
    ],
)
def test_nonsense_polars_are_refused(rows: list, said: str) -> None:
    with pytest.raises(cs.errors.SetupError, match=said):
        polar(rows)
