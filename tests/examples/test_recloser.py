"""The recloser: where it rests, how it closes and opens, what its poles do to each other, and what coupling it costs.

Reference: all sides in one system of equations, by a Runge-Kutta loop of the example that knows nothing of the engine.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
from examples.recloser.model import (
    CLOSE,
    OPEN,
    Magnet,
    Mechanism,
    Motion,
    Recloser,
    _contact_of,
    _force,
    not_latched,
    split,
    undivided,
)

import cosolve as cs
import examples


@cache
def motion(action: int = CLOSE) -> Motion:
    return undivided(Recloser(action=action), interval=1e-6)


@pytest.mark.parametrize(
    ("action", "force", "flux", "pressed"), [(CLOSE, -498.27, 1.44993e-3, 0.0), (OPEN, 3837.8, 6.5885e-3, 1966.0)]
)
@pytest.mark.covers("AP-33")
def test_both_ends_are_held_without_current(action: int, force: float, flux: float, pressed: float) -> None:
    """Magnetic force, flux and contact force of the open and the closed position of rest."""
    recloser = Recloser(action=action)
    found, z = recloser.rest()
    assert found[0] == pytest.approx(flux, rel=1e-3)
    assert _force(found[0], z[1] - z[2], recloser.magnet) == pytest.approx(force, rel=1e-3)
    x = np.concatenate([z, np.zeros(5)])
    assert _contact_of(x, 0, 1, recloser.mechanism) == pytest.approx(pressed, rel=1e-3)


@pytest.mark.parametrize("action", [CLOSE, OPEN])
@pytest.mark.covers("AP-33", "SC-44")
def test_both_ends_are_stable(action: int) -> None:
    """No coil is energised, and nothing moves for 20 ms."""
    still = undivided(Recloser(action=action), t_end=20e-3, energised=(), interval=1e-4)
    assert np.abs(still.x - still.x[0]).max() < 1e-9


@pytest.mark.covers("AP-34")
def test_closing() -> None:
    """Departure, touch, end stop, current, bounces, and the force in the end."""
    course = motion()
    travel, speed = course.travel()
    gap, approach = course.approach()
    leaves, touches, ends = (int(some.argmax()) for some in (travel > 1e-4, gap < 0, travel > 14e-3))
    assert course.t[[leaves, touches, ends]] == pytest.approx([18.23e-3, 33.56e-3, 35.55e-3], rel=3e-3)
    assert approach[touches - 1] == pytest.approx(1.701, rel=3e-3)
    assert speed[ends - 1] == pytest.approx(0.7371, rel=1e-3)
    assert speed[10 * (ends // 10)] == pytest.approx(0.740, rel=1e-3)  # the last of points 10 us apart before the stop
    thinned = Motion(course.recloser, course.t[::100], course.x[::100])
    assert thinned.current().max() == pytest.approx(15.92, rel=3e-3)
    assert (gap[touches:] > 0).sum() * 1e-6 == pytest.approx(2.21e-3, rel=0.05)
    assert thinned.contact()[-1] == pytest.approx(1969, rel=3e-3)


@pytest.mark.covers("AP-35")
def test_opening() -> None:
    """Contacts part, the armature arrives at its stop and jumps back a little."""
    course = motion(OPEN)
    travel, speed = course.travel()
    parts, ends = int((course.approach()[0] > 0).argmax()), int((travel < 0).argmax())
    assert course.t[[parts, ends]] == pytest.approx([12.23e-3, 36.84e-3], rel=5e-3)
    assert speed[ends - 1] == pytest.approx(-1.714, rel=5e-3)
    assert travel[ends:].max() == pytest.approx(0.13e-3, rel=0.05)


def test_a_pole_that_never_closes_is_named() -> None:
    """60 V do not lift the armature, and 85 V do."""
    weak = Recloser(magnet=Magnet(closing_voltage=60.0))
    course = undivided(weak, interval=1e-4)
    (said,) = not_latched(course.t, course.travel()[0], weak)
    assert said.startswith("pole 1 has not closed at t = 0.06 s: its armature stands at -0.0")
    good = motion()
    assert not_latched(good.t, good.travel()[0], good.recloser) == []


def test_a_recloser_without_a_position_of_rest_is_refused() -> None:
    """A spring that pushes towards closing: nothing holds the armature at the open stop."""
    with pytest.raises(cs.errors.SetupError, match=r"no open position of rest: .* does not stay at the open stop"):
        Recloser(mechanism=Mechanism(opening_preload=-5000.0)).rest()


@pytest.mark.parametrize("name", ["recloser", "common_rail_pump"])
def test_a_model_loaded_by_a_system_file_leaves_no_machine_code_behind(name: str) -> None:
    """It would hold classes of a module `model`, and break imports of the example by its full name."""
    path = Path(examples.__file__).parent / name / "model.py"
    spec = spec_from_file_location("model", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["model"] = module
    try:
        spec.loader.exec_module(module)
        assert module._motion_rates.stats.cache_path is None
    finally:
        del sys.modules["model"]


# -- coupled ---------------------------------------------------------------------------------------------------------

#: error of Jacobi with rising degree at the start over the macro step in us: the whole motion, and before the touch
TABLE = {
    1: {
        1000: (1.0e-2, 5.1e-3),
        500: (2.6e-3, 1.5e-3),
        200: (1.5e-3, 2.6e-4),
        100: (3.7e-4, 6.9e-5),
        50: (8.7e-5, 1.7e-5),
        20: (1.4e-5, 2.8e-6),
        10: (3.3e-6, 7.1e-7),
    },
    2: {
        1000: (2.6e-3, 1.6e-3),
        500: (5.0e-4, 2.4e-4),
        200: (1.1e-4, 2.0e-5),
        100: (1.6e-5, 3.8e-6),
        50: (1.3e-6, 8.4e-7),
    },
}


def error(result: cs.Result, until: float = np.inf) -> float:
    """Root mean square over the three signals and the macro points, each signal relative to its range."""
    seen, exact, shares = result.t <= until, signals(), []
    places = np.rint(result.t / 1e-6).astype(int)
    for name, values in exact.items():
        rows = values[places][seen]
        shares.append((np.ravel(result[name])[seen] - rows) / np.ptp(values))
    return float(np.sqrt(np.mean(np.square(shares))))


@cache
def signals() -> dict[str, np.ndarray]:
    return motion().signals()


def closing(degree: int, H: float) -> cs.Result:
    return cs.simulate(split(), t_end=60e-3, method=cs.Jacobi(degree), step=H, startup=cs.RisingDegree())


@pytest.mark.parametrize(("degree", "H"), [(1, 500), (2, 200)])
@pytest.mark.covers("AP-36", "SC-44")
def test_errors_of_explicit_coupling(degree: int, H: float) -> None:
    """With the impact the error is several times that before it; within a factor of two."""
    whole, before = TABLE[degree][H]
    found = closing(degree, H * 1e-6)
    assert whole / 2 < error(found) < 2 * whole
    assert before / 2 < error(found, 33.5e-3) < 2 * before


@pytest.mark.slow
@pytest.mark.parametrize("degree", TABLE)
@pytest.mark.covers("AP-36", "SC-44")
def test_all_errors_of_explicit_coupling(degree: int) -> None:
    """AP-36, SC-44."""
    for H, (whole, before) in TABLE[degree].items():
        found = closing(degree, H * 1e-6)
        assert whole / 2 < error(found) < 2 * whole, H
        assert before / 2 < error(found, 33.5e-3) < 2 * before, H


# -- three poles -----------------------------------------------------------------------------------------------------


#: all three coils at once, so that a millisecond shows them at work
QUICK = Recloser(3, delays=(0.0, 0.0, 0.0))


def three_poles(system: cs.System, **options) -> np.ndarray:
    run = cs.simulate(system, t_end=1e-3, method=cs.Jacobi(1), step=1e-4, **options)
    return run.column("y")


@pytest.mark.covers("AP-38")
def test_three_field_solvers_in_threads_give_the_same_bits_at_the_same_time() -> None:
    """They wait for each other inside every step: a run that took them one after the other would never end."""
    system = split(QUICK)
    serial = three_poles(system, compiled=False)
    meeting = Barrier(3)
    for i in range(3):
        side = system.subsystems[f"em{i + 1}"]

        def met(t0, t1, u, advance=side.advance):
            meeting.wait(timeout=60)
            return advance(t0, t1, u)

        side.advance = met  # type: ignore[method-assign]
    assert np.array_equal(serial, three_poles(system, compiled=False, workers=3))
    assert np.ptp(serial, axis=0).max() > 1.0  # the magnets do work


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, None])
@pytest.mark.covers("AP-38")
def test_three_field_solvers_in_processes_give_the_same_bits(compiled: bool | None) -> None:
    """Each magnetic circuit in a process of its own, one after the other and at the same time."""
    serial = three_poles(split(QUICK), compiled=False)
    apart = split(QUICK, isolated=True)
    for workers in (1, 3):
        assert np.array_equal(serial, three_poles(apart, compiled=compiled, workers=workers)), workers


def openings(course: Motion, pole: int) -> tuple[float, float]:
    """When the contacts of a pole touch, and how long they are apart after that."""
    gap, _ = course.approach(pole)
    touches = int((gap < 0).argmax())
    return float(course.t[touches]), float((gap[touches:] > 0).sum() * (course.t[1] - course.t[0]))


@pytest.mark.slow
@pytest.mark.covers("AP-37")
def test_three_poles_on_a_frame() -> None:
    """When each touches and bounces, and what the others do to pole 1 and armature 3."""
    together = undivided(Recloser(3), interval=1e-6)
    found = np.array([openings(together, pole) for pole in range(3)])
    assert found[:, 0] == pytest.approx([33.63e-3, 40.44e-3, 47.11e-3], rel=5e-3)
    assert found[:, 1] == pytest.approx([2.65e-3, 3.14e-3, 2.77e-3], rel=0.05)
    pressed = [force_range(course) for course in (together, undivided(Recloser(3), interval=1e-6, energised=(0,)))]
    assert pressed[0] == pytest.approx((1839.9, 2033.5), rel=0.02)
    assert pressed[1] == pytest.approx((1881.0, 1978.6), rel=0.02)
    assert departs(together, 2) == pytest.approx(31.570e-3, abs=2e-5)


@pytest.mark.slow
@pytest.mark.covers("AP-37")
def test_a_light_frame_lets_the_third_armature_move_early() -> None:
    """0.97 ms early, and pole 1 feels it."""
    m = Mechanism(frame=3.0, ground_stiffness=5e5, ground_damping=5e2, neighbour_stiffness=2e8, neighbour_damping=5e3)
    light = Recloser(3, mechanism=m)
    together, alone = undivided(light, interval=1e-6), undivided(light, interval=1e-6, energised=(0,))
    assert force_range(together) == pytest.approx((1762.8, 2168.0), rel=0.02)
    assert force_range(alone) == pytest.approx((1944.1, 2051.4), rel=0.02)
    third = undivided(light, interval=1e-6, energised=(2,))
    assert departs(together, 2) == pytest.approx(30.595e-3, abs=5e-5)
    assert departs(third, 2) - departs(together, 2) == pytest.approx(0.97e-3, rel=0.05)


@pytest.mark.slow
@pytest.mark.covers("SC-44")
def test_a_rigid_frame_keeps_the_poles_apart() -> None:
    """Heavy and stiff to the ground, pole 1 does the same alone and in company."""
    m = replace_frame(frame=1e6, ground_stiffness=1e11, neighbour_stiffness=0.0, neighbour_damping=0.0)
    rigid = Recloser(3, mechanism=m)
    both = [undivided(rigid, interval=1e-5, energised=on) for on in ((0, 1, 2), (0,))]
    assert both[0].travel()[0] == pytest.approx(both[1].travel()[0], abs=1e-7)


def replace_frame(**changes: float) -> Mechanism:
    return replace(Recloser(), mechanism=Mechanism()._replace(**changes)).mechanism


def force_range(course: Motion) -> tuple[float, float]:
    """Contact force of pole 1 between 49 and 54 ms."""
    seen = (course.t >= 49e-3) & (course.t <= 54e-3)
    forces = Motion(course.recloser, course.t[seen][::10], course.x[seen][::10]).contact()
    return float(forces.min()), float(forces.max())


def departs(course: Motion, pole: int) -> float:
    return float(course.t[(course.travel(pole)[0] > 1e-4).argmax()])
