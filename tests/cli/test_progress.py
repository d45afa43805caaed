"""What is shown while a run goes on: on a terminal rate, corrections, residual and time left; elsewhere nothing."""

import os
import re
import sys
from pathlib import Path

import pytest
from tests import processes

import cosolve as cs

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "two_mass" / "system.toml")


class Watching:
    """A progress function that looks at the run."""

    def __init__(self):
        self.seen = []

    def watch(self, view):
        self.view = view

    def __call__(self, fraction):
        self.seen.append((fraction, self.view.stats.steps, self.view.stats.iterations, self.view.residual))


def test_a_progress_function_may_look_at_the_run():
    one = cs.Ode(lambda t, x, u: u - x, lambda t, x, u: x, x0=[1.0], inputs=["q"], outputs=["h"])
    two = cs.Ode(lambda t, x, u: u - x, lambda t, x, u: x, x0=[0.0], inputs=["q"], outputs=["h"])
    system = cs.System({"one": one, "two": two})
    system.connect("one.h", "two.q")
    system.connect("two.h", "one.q")
    watching = Watching()
    result = cs.simulate(system, t_end=1.0, method=cs.Implicit(degree=1), step=0.05, progress=watching)
    fraction, steps, iterations, residual = watching.seen[-1]
    assert (fraction, steps, iterations) == (1.0, result.stats.steps, result.stats.iterations)
    assert residual <= result.stats.max_residual


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
def test_a_bar_on_a_terminal(tmp_path):
    """In a pseudo-terminal; the run is long enough to be shown more than once, and all is gone at its end."""
    import pty

    keeper, terminal = pty.openpty()
    command = [sys.executable, "-m", "cosolve.cli", "run", EXAMPLE, "--t-end", "0.1", "-o", str(tmp_path / "a.h5")]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    ran = []
    with processes.started(command, stdout=terminal, stderr=terminal, env=env) as process:
        os.close(terminal)
        while True:
            try:
                piece = os.read(keeper, 65536)
            except OSError:  # Linux says the end like this
                break
            if not piece:
                break
            ran.append(piece)
        process.wait()
    os.close(keeper)
    shown = b"".join(ran).decode()
    assert process.returncode == 0
    assert re.search(r"\d+ steps, [\d,.e+]+/s, 1\.0 corrections, residual \de-\d\d", shown)
    assert "\x1b[1A\x1b[2K" in shown[shown.rindex("corrections, residual") :]  # one line up, which is then empty
    assert "SemiImplicit(2) finished: 1001 macro points" in shown
