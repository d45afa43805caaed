"""Ctrl-C and SIGTERM: one sentence, exit code 130 or 143, the result kept and the cursor shown, whatever goes on."""

import io
import os
import signal
import sys
import time
import weakref
from pathlib import Path

import pytest
from tests import processes
from typer.testing import CliRunner

from cosolve.basics import signals
from cosolve.basics.signals import Terminated, signals_raise
from cosolve.cli import app
from cosolve.cli.screen import progress
from cosolve.result.store import load

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "two_mass" / "system.toml")
WORDS = {signal.SIGINT: (130, "ended by Ctrl-C"), signal.SIGTERM: (143, "ended by SIGTERM")}
# a model that stands still in a call until the signal has been sent, and then goes on
MODEL = """
import os
import time

import cosolve as cs


def rate(t, x, u):
    folder = os.environ.get("HOLD")
    if folder and t > 0.25:
        open(f"{folder}/inside", "w").close()
        while not os.path.exists(f"{folder}/sent"):
            time.sleep(0.01)
    return u - x


def tank():
    return cs.Ode(rate, lambda t, x, u: x, x0=[1.0], inputs=["q"], outputs=["h"])
"""
PARTS = {"python": 'factory = "model:tank"', "fmu": 'fmu = "tank.fmu"', "isolated": 'fmu = "tank.fmu"\nisolated = true'}
SYSTEM = """
[subsystems.one]
{part}
[subsystems.two]
factory = "model:tank"
[[connections]]
from = "one.h"
to = "two.q"
[[connections]]
from = "two.h"
to = "one.q"
[simulation]
t_end = 1e4
method = "semi-implicit:1"
step = 0.1
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    (folder / "model.py").write_text(MODEL)
    processes.run(
        [sys.executable, "-m", "cosolve.cli", "export", "model.py:tank", "tank.fmu"],
        cwd=folder,
        env=processes.environment(),
        check=True,
    )
    for name, part in PARTS.items():
        (folder / f"{name}.toml").write_text(SYSTEM.format(part=part))
    return folder


def in_terminal(words, folder, hold, how):
    """What a command says on a terminal that gets this signal inside a call of the model, and its exit code."""
    import pty

    keeper, terminal = pty.openpty()
    env = processes.environment(TERM="xterm", COLUMNS="100", HOLD=str(hold))
    command, said = [sys.executable, "-m", "cosolve.cli", *words], []
    with processes.started(command, stdout=terminal, stderr=terminal, cwd=folder, env=env) as process:
        os.close(terminal)
        assert processes.until((hold / "inside").exists, 120.0)
        apart = processes.children(process.pid)
        if how == signal.SIGINT:
            os.killpg(process.pid, how)  # as a terminal does it
        else:
            process.send_signal(how)
        (hold / "sent").touch()
        while True:
            try:
                said.append(os.read(keeper, 65536))
            except OSError:  # Linux says the end like this
                break
            if not said[-1]:
                break
        process.wait()
    os.close(keeper)
    assert all(processes.ends(pid) for pid in apart)
    return b"".join(said).decode(), process.returncode


@pytest.mark.sample(3)
@pytest.mark.parametrize("how", list(WORDS))
@pytest.mark.parametrize("words", [["python"], ["fmu"], ["isolated"], ["fmu", "--live", "--no-browser"]])
def test_a_run(project, tmp_path, words, how):
    result = tmp_path / "kept.h5"
    said, code = in_terminal(["run", f"{words[0]}.toml", "-o", str(result), *words[1:]], project, tmp_path, how)
    expected, sentence = WORDS[how]
    assert code == expected, said
    assert f"cosolve: {sentence}; what was computed so far is in" in said.replace("\r\n", "")
    assert "Traceback" not in said
    assert said.rfind("\x1b[?25h") > said.rfind("\x1b[?25l") >= 0  # the cursor was hidden and is shown
    assert load(result).t.tolist()[:3] == [0.0, 0.1, 0.2]


@pytest.mark.sample(1)
@pytest.mark.parametrize("how", list(WORDS))
@pytest.mark.parametrize("words", [["check", "fmu.toml"], ["compare", "fmu.toml"]])
def test_a_command_that_runs_a_model_several_times(project, tmp_path, words, how):
    """They take a run that fails for an answer: an error in place of the signal would be reported as one."""
    said, code = in_terminal(words, project, tmp_path, how)
    expected, sentence = WORDS[how]
    assert code == expected, said
    assert said.rstrip().endswith(f"cosolve: {sentence}")
    assert "Traceback" not in said


@pytest.mark.parametrize("how", list(WORDS))
@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["report", "r.h5"], "cosolve.result.store.load"),
        (["inspect", "a.fmu"], "cosolve.fmu.inspection.inspect_fmu"),
        (["export", "a.toml", "a.fmu"], "cosolve.io.fmu_export.export_fmu"),
        (["demo"], "cosolve.demo.run_demo"),
        (["view", EXAMPLE], "cosolve.viewer.host.serve"),
        (["serve", "model.py:tank"], "cosolve.process.connection_server.serve"),
        (["crosscheck", "."], "cosolve_crosscheck.crosscheck"),
        (["run", EXAMPLE], "cosolve.io.load_system"),
    ],
)
def test_any_other_command(monkeypatch, words, place, how):
    monkeypatch.setattr(place, lambda *_, **__: os.kill(os.getpid(), how))
    done = CliRunner().invoke(app, words)
    code, sentence = WORDS[how]
    assert (done.exit_code, done.output) == (code, f"cosolve: {sentence}\n")


# sends the signal to itself when `place` is imported, and is the `cosolve` command otherwise
WHILE_IMPORTING = """
import os, sys
class Sends:
    def find_spec(self, name, *_):
        if name == {place!r}:
            os.kill(os.getpid(), {how})
sys.meta_path.insert(0, Sends())
sys.argv = ["cosolve", "check", "absent.toml"]
from cosolve.cli import main
main()
"""
# ... and when all is done
WHILE_LEAVING = """
import atexit, os, sys
atexit.register(lambda: os.kill(os.getpid(), {how}))
sys.argv = ["cosolve", "--version"]
from cosolve.cli import main
main()
"""


@pytest.mark.parametrize("how", list(WORDS))
@pytest.mark.parametrize("place", ["typer", "numpy"])  # before the command begins, and inside it
def test_while_modules_are_imported(place, how):
    program = WHILE_IMPORTING.format(place=place, how=int(how))
    done = processes.run([sys.executable, "-c", program], env=processes.environment())
    code, sentence = WORDS[how]
    assert (done.returncode, done.stdout, done.stderr) == (code, "", f"cosolve: {sentence}\n")


@pytest.mark.parametrize("how", list(WORDS))
def test_a_command_that_is_done_ends_as_it_would(how):
    done = processes.run(
        [sys.executable, "-c", WHILE_LEAVING.format(how=int(how))], env=processes.environment(), check=True
    )
    assert (done.stdout.split()[0], done.stderr) == ("cosolve", "")


@pytest.mark.parametrize("how", list(WORDS))
def test_an_interrupt_that_python_drops_comes_again(how):
    """In the callback of a weak reference nothing can be raised: it was shown as ignored, and the run went on."""

    class Thing:
        pass

    def run():
        thing = Thing()
        watched = weakref.ref(thing, lambda _: os.kill(os.getpid(), how))
        del thing
        time.sleep(20.0)
        return watched

    with signals_raise() as came, pytest.raises(KeyboardInterrupt) as raised:
        run()
    assert isinstance(raised.value, Terminated) == (how == signal.SIGTERM)
    assert came == [how, how]


def test_an_error_that_an_interrupt_was_turned_into(monkeypatch):
    def importing(*_, **__):
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("numpy._core.multiarray failed to import") from None

    monkeypatch.setattr("cosolve.result.store.load", importing)
    done = CliRunner().invoke(app, ["report", "r.h5"])
    assert (done.exit_code, done.output) == (130, "cosolve: ended by Ctrl-C\n")


@pytest.mark.parametrize("calls", [1, 2])  # of those that exchange handlers
@pytest.mark.parametrize("begin", [True, False])
def test_a_signal_while_signals_are_being_held_back(monkeypatch, begin, calls):
    """It ends `hold` or `release` half-way; handlers are what they were after the next pair."""
    before = {number: signal.getsignal(number) for number in WORDS}
    real, left = signal.signal, [calls]

    def exchange(number, handler):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return real(number, handler)

    if not begin:
        signals.hold()
    monkeypatch.setattr(signal, "signal", exchange)
    with pytest.raises(KeyboardInterrupt):
        signals.hold() if begin else signals.release()
    monkeypatch.undo()
    with pytest.raises(KeyboardInterrupt), signals.signals_later():
        os.kill(os.getpid(), signal.SIGINT)
    assert {number: signal.getsignal(number) for number in WORDS} == before


def test_the_cursor_is_shown_where_the_bar_is_interrupted_at_its_start(monkeypatch):
    from rich.live import Live

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    begin = Live.start

    def start(*arguments, **options):
        begin(*arguments, **options)
        raise KeyboardInterrupt

    said = Terminal()
    monkeypatch.setattr(sys, "stderr", said)
    monkeypatch.setattr(Live, "start", start)
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(KeyboardInterrupt), progress(hidden=False):
        pass
    assert said.getvalue().rfind("\x1b[?25h") > said.getvalue().rfind("\x1b[?25l") >= 0
