"""FMUs whose library embeds Python: signals wait for the end of their calls, and after a fatal error none is made."""

import os
import signal
import sys
from pathlib import Path

import pytest
from tests import processes

from cosolve.basics.signals import signals_later

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

SLAVE = """
import os
import signal

from pythonfmu import Fmi2Causality, Fmi2Slave, Real


class Lag(Fmi2Slave):
    def __init__(self, **options):
        super().__init__(**options)
        self.y = self.u = 0.0
        self.register_variable(Real("y", causality=Fmi2Causality.output))
        self.register_variable(Real("u", causality=Fmi2Causality.input))

    def do_step(self, t, h):
        with open(os.environ["CALLS"], "a") as calls:
            calls.write(f"{t:.1f}\\n")
        if t > 0.45:
            DEED
        self.y += h
        return True
"""
RUN = """
import sys
import cosolve as cs

tank = cs.Linear([[-1]], [[1]], [[1]], x0=[1.0], inputs=["q"], outputs=["h"])
system = cs.System({"lag": cs.load_fmu(sys.argv[1]), "tank": tank})
system.connect("lag.y", "tank.q")
system.connect("tank.h", "lag.u")
try:
    cs.simulate(system, t_end=1.0, step=0.1, method=cs.SemiImplicit(1), compiled=COMPILED)
except (KeyboardInterrupt, cs.errors.SimulationError) as stop:
    print(type(stop).__name__, stop.result.t[-1], "fatal" in str(stop))
"""


def ended(folder: Path, deed: str, compiled: bool):
    """What a run says whose FMU does this at t = 0.5, and the times of its calls."""
    (folder / "lag.py").write_text(SLAVE.replace("DEED", deed))
    processes.run(
        [sys.executable, "-m", "pythonfmu", "build", "--handle-state", "-f", "lag.py"], cwd=folder, check=True
    )
    (folder / "calls").touch()
    code = RUN.replace("COMPILED", str(compiled))
    done = processes.run(
        [sys.executable, "-c", code, "Lag.fmu"], cwd=folder, env=processes.environment(CALLS=str(folder / "calls"))
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), (folder / "calls").read_text().split()


@pytest.mark.parametrize("compiled", [True, False])
def test_ctrl_c_inside_is_raised_outside(tmp_path, compiled):
    """The signal comes in the middle of the FMU's Python; raised there, it would be a fatal error of the FMU."""
    said, calls = ended(tmp_path, "os.kill(os.getpid(), signal.SIGINT)", compiled)
    assert said[0] == "KeyboardInterrupt"
    assert said[2] == "False"
    assert "0.5" in calls


@pytest.mark.parametrize("compiled", [True, False])
def test_nothing_is_called_after_a_fatal_error(tmp_path, compiled):
    """The library has freed the instance by then."""
    said, calls = ended(tmp_path, "print('failed', file=open(os.environ['CALLS'], 'a')); raise ValueError", compiled)
    assert said == ["SubsystemError", "0.5", "True"]
    assert calls.count("failed") == 1
    assert calls[-2:] == ["0.5", "failed"]


def test_a_second_signal_goes_through():
    """What is waited for may hang."""
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with signals_later():
            os.kill(os.getpid(), signal.SIGTERM)
            assert heard == []
            os.kill(os.getpid(), signal.SIGTERM)
            assert heard == [signal.SIGTERM]
        assert heard == [signal.SIGTERM] * 2
        with signals_later(), signals_later(strict=True):
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGTERM)
            assert heard == [signal.SIGTERM] * 2
        assert heard == [signal.SIGTERM] * 3
    finally:
        signal.signal(signal.SIGTERM, before)
