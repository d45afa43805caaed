"""Runs in real time, on a clock that the test moves: due times, what came late, and Ctrl-C."""

import numpy as np
import pytest
from tests.run.stepper.models import two_mass
from typer.testing import CliRunner

import cosolve as cs
from cosolve.cli import app


class Wall:
    """A clock that moves when a thread sleeps, or works."""

    def __init__(self, oversleeps=0.0):
        self.now, self.oversleeps, self.slept = 50.0, oversleeps, []

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds + self.oversleeps

    def pace(self, rate=1.0):
        return cs.Pace(rate, clock=self.clock, sleep=self.sleep)


def working(wall, seconds):
    """A subsystem whose steps take so long; `seconds(n)` in step n."""
    count = [0]

    def output(t, u):
        count[0] += 1
        wall.now += seconds(count[0])
        return t

    class Worker(cs.Subsystem):
        inputs, outputs = [], ["t"]

        def start(self, t0):
            return t0

        def advance(self, t0, t1, u):
            return output(t1, u)

    return cs.System({"worker": Worker()})


def test_macro_points_are_reached_when_they_are_due():
    wall = Wall()
    result = cs.simulate(working(wall, lambda n: 0.03), t_end=1.0, method=cs.Jacobi(), step=0.1, pace=wall.pace(2.0))
    assert np.allclose(wall.slept, [0.02] * 10)
    assert wall.now == pytest.approx(50.5)
    assert result.stats.overruns == 0
    assert "2 s per second: no macro point came late" in str(result.stats)


def test_nothing_drifts_when_sleeping_takes_too_long():
    wall = Wall(oversleeps=0.01)
    cs.simulate(working(wall, lambda n: 0.0), t_end=10.0, method=cs.Jacobi(), step=0.1, pace=wall.pace())
    assert wall.now == pytest.approx(60.0 + 0.01)  # the last sleep only
    assert len(wall.slept) == 100


def test_a_step_that_takes_too_long_is_counted_and_caught_up():
    wall = Wall()
    result = cs.simulate(
        working(wall, lambda n: 0.25 if n == 4 else 0.0), t_end=1.0, method=cs.Jacobi(), step=0.1, pace=wall.pace()
    )
    # begun at 0.3 it ends at 0.55 instead of 0.4; the point at 0.5 is late too, that at 0.6 in time
    assert result.stats.overruns == 2
    assert result.stats.max_lateness == pytest.approx(0.15)
    assert wall.now == pytest.approx(51.0)
    assert "2 macro points came late, by at most 0.15 s" in str(result.stats)


def test_ctrl_c_ends_the_wait_and_keeps_the_result(tmp_path):
    def interrupted(seconds):
        wall.now += seconds
        if wall.now > 50.35:
            raise KeyboardInterrupt

    wall = Wall()
    pace = cs.Pace(clock=wall.clock, sleep=interrupted)
    file = tmp_path / "run.h5"
    with pytest.raises(KeyboardInterrupt) as stop:
        cs.simulate(working(wall, lambda n: 0.0), t_end=9.0, method=cs.Jacobi(), step=0.1, pace=pace, save=file)
    kept = stop.value.result
    assert np.allclose(kept.t, [0.0, 0.1, 0.2, 0.3, 0.4])
    assert not kept.finished
    assert np.array_equal(cs.load_result(file).t, kept.t)


def test_a_stepper_keeps_the_pace_and_begins_anew_after_going_back():
    wall = Wall()
    with cs.Stepper(two_mass(), method=cs.Jacobi(), step=0.1, pace=wall.pace(), record=True) as stepper:
        here = stepper.save()
        stepper.run_until(0.5)
        assert wall.now == pytest.approx(50.5)
        stepper.restore(here)
        stepper.step()
        assert wall.now == pytest.approx(50.6)
        assert stepper.result().stats.paced == 1.0


def test_refusals():
    with pytest.raises(cs.errors.SetupError, match="pace must be a positive number of model seconds per second, not 0"):
        cs.simulate(two_mass(), t_end=1.0, method=cs.Jacobi(), step=0.1, pace=0)
    with pytest.raises(cs.errors.SetupError, match="a paced run waits after every macro step"):
        cs.simulate(two_mass(), t_end=1.0, method=cs.Jacobi(), step=0.1, pace=1.0, compiled=True)


def test_the_command_line(tmp_path):
    file = tmp_path / "tank.toml"
    file.write_text(
        '[simulation]\nt_end = 1.0\nstep = 0.5\nmethod = { name = "jacobi" }\n'
        '[subsystems.tank]\nkind = "linear"\n'
        'A = [[-1]]\nB = [[0]]\nC = [[1]]\nx0 = [1]\ninputs = ["q"]\noutputs = ["h"]\n'
        '[constants]\n"tank.q" = 0.0\n'
    )
    found = CliRunner().invoke(app, ["run", str(file), "--pace", "1e6", "-o", str(tmp_path / "r.h5")])
    assert found.exit_code == 0, found.output
    assert "1e+06 s per second" in found.output
