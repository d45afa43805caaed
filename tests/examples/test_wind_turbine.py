"""The wind turbine with rigid blades: run-up, overspeed and emergency brake, loosely and strongly coupled.

Reference: `monolithic.py`, one program for all equations that shares only its data with the coupled subsystems. Figures
without another origin are those of an earlier program with the same equations.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from examples.wind_turbine.aerodynamics import Rotor, aerodynamics
from examples.wind_turbine.brake_study import errors
from examples.wind_turbine.control import Schedule, braking_from, control
from examples.wind_turbine.data import DEEP_STALL, OHIO_STATE
from examples.wind_turbine.drive import Train, drive
from examples.wind_turbine.monolithic import Course, loose, undivided
from examples.wind_turbine.rigid import BY_SECANT, ORDER, Turbine, by_jacobian, split

import cosolve as cs
from examples.elements import polar

FEATHERED = np.radians(45.0)


@cache
def reference(step: float, inertia: float = 111.0) -> Course:
    return undivided(Turbine(train=Train(inertia=inertia)), step=step)


@cache
def by_secant(step: float, inertia: float = 111.0, tol: float = 1e-12) -> cs.Result:
    turbine, method = Turbine(train=Train(inertia=inertia)), replace(BY_SECANT, tol=tol)
    return cs.simulate(split(turbine), t_end=8.0, step=step, method=method)


def off(result: cs.Result | Course, step: float, inertia: float = 111.0) -> tuple[float, np.ndarray]:
    """Largest error of the speed in deg/s, and the errors of the torque in Nm."""
    exact = reference(step, inertia)
    if isinstance(result, Course):
        speed, torque = result.speed, result.torque
    else:
        speed, torque = result["drive.speed"], result["aero.torque"]
    n = len(speed)
    return float(np.degrees(np.abs(speed - exact.speed[:n]).max())), np.abs(torque - exact.torque[:n])


@pytest.mark.sample(1)
@pytest.mark.covers("AP-08")
@pytest.mark.parametrize(
    ("step", "peak", "lowest", "at_4"),
    [(4e-3, 739.95, -2886.1, 7.1138), (2e-3, 739.49, -2883.3, 7.0800), (1e-3, 739.52, -2883.7, 7.0833)],
)
def test_emergency_brake_in_one_program(step: float, peak: float, lowest: float, at_4: float) -> None:
    course = reference(step)
    assert np.degrees(course.speed.max()) == pytest.approx(peak, rel=1e-4)
    assert course.torque.min() == pytest.approx(lowest, rel=1e-4)
    assert course.speed[round(4 / step)] == pytest.approx(at_4, rel=1e-4)
    assert braking_from(course.t, course.brake) == pytest.approx(3.058, abs=2 * step)
    assert course.t[course.speed.argmax()] == pytest.approx(3.685, abs=2 * step)
    assert course.torque.max() == pytest.approx(1176.9, rel=1e-3)
    assert course.t[course.torque.argmax()] == pytest.approx(3.313, abs=2 * step)
    assert course.t[course.torque.argmin()] == pytest.approx(3.854, abs=2 * step)
    slow = course.t[(course.t > 4) & (course.speed < 0.5)][0]
    assert slow == pytest.approx(4.747, abs=2 * step)


@pytest.mark.covers("AP-09", "IJ-39")
@pytest.mark.parametrize(
    ("step", "tol", "mean", "most"),
    [
        (4e-3, 1e-12, 2.62, 5),
        pytest.param(2e-3, 1e-12, 2.61, 4, marks=pytest.mark.slow),
        pytest.param(1e-3, 3e-13, 2.60, 4, marks=pytest.mark.slow),
    ],
)
def test_secants_find_the_solution_of_the_one_program(step: float, tol: float, mean: float, most: int) -> None:
    """To the last digits of the speed, in two or three subsystem steps per step.

    In steps of 1 ms an error of 1e-12 rad/s in the speed would be 2e-8 Nm of apparent mass (12 kg m2 * 1.5 / step).
    """
    run = by_secant(step, tol=tol)
    speed, torque = off(run, step)
    assert speed < 1e-9
    assert torque.max() < 1e-8
    assert run.stats.calls["aero"] / run.stats.steps == pytest.approx(mean, abs=0.02)
    assert run.iterations.max() + 1 <= most
    assert run.stats.max_residual < 1e-12
    assert (run["control.brake"] == reference(step).brake).all()


@pytest.mark.slow
@pytest.mark.covers("AP-09")
def test_exact_sensitivities_need_no_more_subsystem_steps() -> None:
    """In an iteration with both unknowns, solved as exactly."""
    step = 4e-3
    run = cs.simulate(split(), t_end=8.0, step=step, method=by_jacobian(step), compiled=False)
    speed, torque = off(run, step)
    assert speed < 5e-9
    assert torque.max() < 5e-8
    assert run.stats.calls["aero"] < by_secant(step).stats.calls["aero"]
    assert run.iterations.max() + 1 <= 5


@pytest.mark.slow  # seconds of compiling
def test_both_engines_give_the_same_bits() -> None:
    """And what differences find instead of the solvers' own Jacobians is the same."""
    assert not cs.analysis.check_jacobians(split(), step=4e-3, method=by_jacobian(4e-3), after=3)
    runs = [
        cs.simulate(split(), t_end=0.1, step=4e-3, method=by_jacobian(4e-3), compiled=compiled)
        for compiled in (True, False)
    ]
    assert runs[0].stats.compiled_steps > 20 > runs[1].stats.compiled_steps
    for name in ("drive.speed", "aero.torque", "aero.thrust", "control.pitch"):
        assert (runs[0][name] == runs[1][name]).all()


@pytest.mark.covers("AP-10", "IJ-39")
@pytest.mark.parametrize(
    ("step", "early", "expected"),
    [
        (4e-3, 55.6, (0.83, 0.12)),
        pytest.param(2e-3, 55.1, (0.22, 0.06), marks=pytest.mark.slow),
        pytest.param(1e-3, 54.8, (0.07, 0.03), marks=pytest.mark.slow),
    ],
)
def test_loose_coupling_is_wrong_where_the_speed_changes(step: float, early: float, expected: tuple) -> None:
    """The torque at t = 2 h is off by a quarter however short the step: apparent mass times a wrong acceleration.

    Again when the parking brake grips. The speed becomes right with shorter steps.
    """
    for method, speed in zip((cs.Jacobi(1), cs.GaussSeidel(1, order=ORDER)), expected, strict=True):
        run = cs.simulate(split(), t_end=8.0, step=step, method=method, startup=cs.RisingDegree(), compiled=False)
        found, torque = off(run, step)
        assert found == pytest.approx(speed, rel=0.1)
        started = torque[run.t < 1]
        assert started.argmax() == 2
        assert started.max() == pytest.approx(early, rel=0.06)  # Jacobi extrapolates the pitch as well
        assert started.max() > 0.2 * reference(step).torque[2]
        assert torque[run.t > 4.5].max() == pytest.approx(104.7, rel=1e-3)


@pytest.mark.covers("AP-10")
@pytest.mark.parametrize("step", [4e-3, 2e-3, pytest.param(1e-3, marks=pytest.mark.slow)])
def test_loose_coupling_with_a_control_unit_that_goes_first(step: float) -> None:
    """The comparison program: rotor and drive train extrapolate, the control unit does not."""
    early = {4e-3: 55.6, 2e-3: 55.1, 1e-3: 54.8}[step]
    expected = {4e-3: (0.83, 0.12, 10.9), 2e-3: (0.22, 0.06, 4.4), 1e-3: (0.07, 0.03, 3.7)}[step]
    runs = [loose(step=step, serial=serial, degree=degree) for serial, degree in ((False, 1), (True, 1), (False, 0))]
    found = [off(run, step) for run in runs]
    assert [speed for speed, _ in found] == pytest.approx(expected, rel=0.1)
    assert found[0][1][:100].max() == pytest.approx(early, rel=1e-3)
    assert found[0][1][round(4.5 / step) :].max() == pytest.approx(104.7, rel=1e-3)


@pytest.mark.filterwarnings(
    "ignore:values grow without bound:cosolve.errors.StabilityWarning"
)  # beyond the limit on purpose
@pytest.mark.covers("AP-11")
@pytest.mark.parametrize(
    ("inertia", "peak", "gone", "kept"),
    [
        (60.0, 944.5, {(False, 1): 114}, {(True, 1): 168}),
        (30.0, 1322.7, {(False, 1): 27, (True, 1): 72}, {(True, 0): 236}),
    ],
)
def test_light_rotors_break_loose_coupling(inertia: float, peak: float, gone: dict, kept: dict) -> None:
    step, turbine = 2e-3, Turbine(train=Train(inertia=inertia))
    assert np.degrees(reference(step, inertia).speed.max()) == pytest.approx(peak, rel=2e-3)
    for (serial, degree), steps in gone.items():
        assert len(loose(turbine, step=step, serial=serial, degree=degree).t) == pytest.approx(steps, rel=0.2)
        method = cs.GaussSeidel(degree, order=ORDER) if serial else cs.Jacobi(degree)
        with pytest.raises(cs.errors.SimulationError, match="unless it is the coupling that runs away"):
            cs.simulate(split(turbine), t_end=1.0, step=step, method=method, startup=cs.RisingDegree(), compiled=False)
    for (serial, degree), error in kept.items():
        course = loose(turbine, step=step, serial=serial, degree=degree)
        assert off(course, step, inertia)[1].max() == pytest.approx(error, rel=0.01)


@pytest.mark.slow
@pytest.mark.covers("AP-11")
@pytest.mark.parametrize("inertia", [60.0, 30.0])
def test_light_rotors_cost_strong_coupling_nothing(inertia: float) -> None:
    """And with held signals or a serial order the runs that survive in the one program survive here."""
    run = by_secant(2e-3, inertia)
    assert off(run, 2e-3, inertia)[1].max() < 2e-8
    assert run.stats.calls["aero"] / run.stats.steps == pytest.approx(2.59, abs=0.02)
    assert run.iterations.max() + 1 <= 5
    degree, error = (1, 168) if inertia == 60.0 else (0, 236)
    method = cs.GaussSeidel(degree, order=ORDER)
    run = cs.simulate(
        split(Turbine(train=Train(inertia=inertia))), t_end=8.0, step=2e-3, method=method, startup=cs.RisingDegree()
    )
    assert off(run, 2e-3, inertia)[1].max() == pytest.approx(error, rel=0.01)


# -- limits of stability -------------------------------------------------------------------------------------------


def feathered(inertia: float) -> cs.System:
    """Rotor and drive train at a pitch of 45 degrees."""
    system = cs.System({"aero": aerodynamics(Rotor(), 0.5, FEATHERED), "drive": drive(Train(inertia=inertia))})
    system.connect("drive.speed", "aero.speed")
    system.connect("aero.torque", "drive.torque")
    system.set("aero.pitch", FEATHERED)
    system.set("aero.pitch_rate", 0.0)
    system.set("drive.brake", 0.0)
    return system


ROOT = 0.5 * (1 + np.sqrt(3.0))  # of 2 p^2 - 2 p = 1
LIMITS = {
    "Jacobi(1)": (cs.Jacobi(1), 1 / (4 * ROOT**2 * (ROOT**2 - 1))),
    "GaussSeidel(1)": (cs.GaussSeidel(1, order=["aero", "drive"]), 1 / 3),
    "Jacobi(0)": (cs.Jacobi(0), 1.0),
    "GaussSeidel(0)": (cs.GaussSeidel(0, order=["aero", "drive"]), 1.0),
}


@pytest.mark.covers("AP-07")
@pytest.mark.sample(1)
@pytest.mark.parametrize("name", LIMITS)
def test_limits_of_apparent_mass_are_known_before_the_run(name: str) -> None:
    """Of the ratio of apparent to own inertia, 5 % on either side: what `check` says, and what a run does."""
    method, limit = LIMITS[name]
    apparent, step, options = Rotor().apparent_inertia(FEATHERED), 1e-3, {"t_end": 0.4, "step": 1e-3, "compiled": False}
    below, above = (feathered(apparent / (share * limit)) for share in (0.95, 1.05))

    advice = cs.check(below, method, step=step)
    assert advice.ok
    assert advice.radius is not None
    assert advice.radius < 0.9995
    advice = cs.check(above, method, step=step)
    assert not advice.ok
    assert {"unstable", "at-every-step"} <= advice.codes()
    assert advice.radius is not None
    assert advice.radius > 1.02

    exact = cs.simulate(below, method=cs.Implicit(1, tol=1e-12), **options)["aero.torque"]
    run = cs.simulate(below, method=method, startup=cs.RisingDegree(), **options)
    error = np.abs(run["aero.torque"] - exact)
    assert error.max() > 50
    assert error[-1] < 1e-3 * error.max()
    with pytest.raises(cs.errors.SimulationError, match="unless it is the coupling that runs away"):
        cs.simulate(above, method=method, startup=cs.RisingDegree(), **options)


# -- parts, and bad input ------------------------------------------------------------------------------------------


@pytest.mark.covers("IJ-38")
def test_drive_train_reacts_to_torque_as_it_should() -> None:
    side, D = drive(), np.empty((1, 2))
    assert side.jacobian_function is not None
    side.jacobian_function(0.0, 1e-3, np.array([0.5, 0.5, 1e3]), np.zeros(2), D)
    assert D[0] == pytest.approx([6.005623e-6, 0.0], rel=1e-6)
    x, new, y = np.array([0.02, 0.03, 1e3]), np.empty(3), np.empty(1)
    side.jacobian_function(0.0, 1e-3, x, np.array([-700.0, 1.0]), D)
    ends = []
    for torque in (-700.1, -699.9):
        assert side.step_function(0.0, 1e-3, x, np.array([torque, 1.0]), new, y) == 0
        ends.append(y[0])
    assert D[0, 0] == pytest.approx((ends[1] - ends[0]) / 0.2, rel=1e-6)  # with the parking brake


def test_control_unit_brakes_on_command_and_not_before() -> None:
    schedule = Schedule(pitch=0.0, command=0.5)
    system = cs.System({"control": control(schedule)})
    system.set("control.speed", 1.0)
    run = cs.simulate(system, t_end=4.0, step=0.01, method=cs.Jacobi(0))
    assert braking_from(run.t, run["control.brake"]) == pytest.approx(0.5)
    assert run["control.pitch"][run.t <= 0.5].tolist() == [0.0] * 51
    assert np.abs(run["control.pitch_rate"]).max() == pytest.approx(schedule.brake_rate, rel=1e-3)
    assert run["control.pitch"][-1] == pytest.approx(schedule.braked, rel=1e-3)


@pytest.mark.parametrize("torque", [200.0, pytest.param(0.0, marks=pytest.mark.slow)])
def test_a_rotor_that_would_turn_backwards_ends_the_run(torque: float) -> None:
    """With a parking brake that is too weak, or none."""
    turbine = Turbine(train=Train(parking_torque=torque))
    said = rf"t = 5\.\d+: the rotor turns backwards, -0\.\d+ rad/s, .* \({torque:g} Nm below 0\.6 rad/s\)"
    with pytest.raises(cs.errors.SimulationError, match=said):
        cs.simulate(split(turbine), t_end=8.0, step=8e-3, method=by_jacobian(8e-3), compiled=False)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::cosolve.errors.StabilityWarning")
def test_a_pitch_rate_that_jumps_makes_loose_coupling_wrong_at_every_step() -> None:
    """Sicklinger (2014), 5.3.6, reports up to 10 % of the torque; with a drive that takes its time it falls by H^2."""
    steps = (4e-3, 2e-3, 1e-3)
    smooth = [errors(cs.Jacobi(1), H, rate=30.0, lag=0.1).brake for H in steps]
    assert np.polyfit(np.log(steps), np.log(smooth), 1)[0] == pytest.approx(1.9, abs=0.15)
    assert smooth[0] < 1.0
    sudden = [errors(cs.Jacobi(1), H, rate=60.0, lag=1e-3).brake for H in steps]
    assert sudden[0] > sudden[1] > sudden[2] > 5.0
    known = errors(cs.GaussSeidel(1, order=ORDER), 1e-3, rate=60.0, lag=1e-3).brake
    assert known < 0.1 * sudden[2]  # the pitch of the step is known to the rotor


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: drive(Train(inertia=0.0)), "inertia of the drive train must be positive"),
        (lambda: drive(Train(parking_torque=-1.0)), "parking_torque of the drive train acts against the motion"),
        (lambda: drive(Train(damping=-1.0)), "damping of the drive train acts against the motion"),
        (lambda: control(Schedule(brake_rate=0.0)), "brake_rate of the control unit must be positive"),
        (lambda: aerodynamics(carried=3), "a rotor of 2 blades cannot carry 3 of them"),
        (lambda: aerodynamics(separate=True), "separate blades need fields=True"),
    ],
)
def test_nonsense_is_refused(build, said: str) -> None:
    with pytest.raises(cs.errors.SetupError, match=said):
        build()


def test_an_angle_outside_the_polar_ends_a_run_with_its_place() -> None:
    """A stalled rotor that comes to rest has the wind on its trailing edge, which no polar of a tunnel knows."""
    short = polar(np.concatenate([OHIO_STATE, DEEP_STALL]))
    turbine = Turbine(rotor=Rotor(profile=short), speed=3.0, schedule=Schedule(pitch=-0.5, running=-0.8))
    said = r"'aero' .* angle of attack is 9\d\.\d degrees at station \d+ .* of blade 1, .* from -20\.1 to 90"
    with pytest.raises(cs.errors.SimulationError, match=said):
        cs.simulate(split(turbine), t_end=8.0, step=4e-3, method=by_jacobian(4e-3), compiled=False)


def test_the_file_is_the_same_machine() -> None:
    described = cs.load_system("examples/wind_turbine/system.toml")
    options = {"t_end": 0.04, "step": described.options.step, "method": described.options.method, "compiled": False}
    one, two = (cs.simulate(system, **options) for system in (described.system, split()))
    assert np.array_equal(one["aero.torque"], two["aero.torque"])
