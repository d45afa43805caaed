"""A program that owns its loop, as a subsystem among others: the same numbers as the same equations in this process."""

import sys
from pathlib import Path

import numpy as np
import pytest

import cosolve as cs
from cosolve.errors import SubsystemError
from cosolve.participants import client

FOLDER = str(Path(client.__file__).parent)
TANK = """
import sys
sys.path.insert(0, {folder!r})
from client import Participant
p = Participant("tank")
level = 1.0
p.put("level", level)
p.put("pair", [level, -level])
p.start()
t0 = p.time
while p.ongoing:
    if p.must_save:
        saved = level
    for k in range(4):                       # own steps inside the window
        dt = p.step_limit / (4 - k)
        u = p.get("inflow", 0.5 * dt)        # midpoint of the own step
        level = (level * (1 - 0.25 * dt) + dt * u) / (1 + 0.25 * dt)
        p.put("level", level)
        p.put("pair", [level, -level])
        p.advance(dt)
    if p.must_restore:
        level = saved
    if "{mood}" == "dies" and p.time > t0 + 0.25:
        raise RuntimeError("the tank bursts")
print("ended at", p.time)
"""


class Tank(cs.Subsystem):
    """The same steps inside this process."""

    inputs, outputs = ["inflow"], ["level", ("pair", 2)]

    def start(self, t0):
        self.level = 1.0
        return [1.0, 1.0, -1.0]

    def advance(self, t0, t1, u):
        done, left = 0.0, t1 - t0
        for k in range(4):
            dt = left / (4 - k) if k < 3 else left
            inflow = u(t0 + done + 0.5 * dt)[0]
            self.level = (self.level * (1 - 0.25 * dt) + dt * inflow) / (1 + 0.25 * dt)
            done, left = done + dt, left - dt
        return [self.level, self.level, -self.level]

    def save(self):
        return self.level

    def restore(self, state):
        self.level = state


def system(tank):
    valve = cs.Ode(
        lambda t, x, u: -3 * x + u[0] ** 2, lambda t, x, u: x[0], x0=[0.2], inputs=["h"], outputs=["q"],
        integrator="ode4", internal_step=0.01,
    )  # fmt: skip
    joined = cs.System({"tank": tank, "valve": valve})
    joined.connect("tank.level", "valve.h")
    joined.law("tank.inflow", lambda q, pair: q + 0.1 * pair[1], of=["valve.q", "tank.pair"])
    return joined


@pytest.fixture
def program(tmp_path):
    def made(mood="calm", **options):
        file = tmp_path / f"{mood}.py"
        file.write_text(TANK.format(folder=FOLDER, mood=mood))
        return cs.remote.ParticipantProgram(
            f"{sys.executable} {file}", name="tank", inputs=["inflow"], outputs=["level", ("pair", 2)], **options
        )

    return made


def test_a_program_gives_the_numbers_of_the_same_steps_inside(program, tmp_path):
    with program(log=tmp_path / "tank.log") as tank:
        for method in (cs.Jacobi(degree=1), cs.Implicit(degree=2, tol=1e-10)):  # the second run starts it anew
            options = {"t_start": 2.0, "t_end": 3.0, "step": 0.1, "method": method}
            there = cs.simulate(system(tank), **options)
            here = cs.simulate(system(Tank()), **options)
            np.testing.assert_allclose(there["tank.level"], here["tank.level"], rtol=1e-13)
            assert tank.running
    assert not tank.running
    assert (tmp_path / "tank.log").read_text() == "ended at 3.0\n"


def test_the_last_output_of_a_program_that_fails(program):
    with (
        program("dies") as tank,
        pytest.raises(SubsystemError, match=r"'tank'.*ended with exit code 1; its last output") as end,
    ):
        cs.simulate(system(tank), t_end=1.0, step=0.1, method=cs.Jacobi(degree=0))
    assert end.match("the tank bursts")
    assert end.value.result.t[-1] == pytest.approx(0.3)


def test_bad_commands_are_refused():
    with pytest.raises(cs.errors.SetupError, match="command is a command line"):
        cs.remote.ParticipantProgram("", inputs=[], outputs=["y"])
    absent = cs.remote.ParticipantProgram("no-such-program-here", inputs=[], outputs=["y"])
    with pytest.raises(cs.CosolveError, match="cannot be started"):
        cs.simulate(cs.System({"a": absent}), t_end=1.0, step=0.1, method="jacobi")
