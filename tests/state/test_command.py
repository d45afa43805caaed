"""The command line: run with states, end it by force, resume; limits of steps; what has changed meanwhile is said."""

import signal
import sys

import pytest
from tests import processes
from tests.state.same import differences
from typer.testing import CliRunner

from cosolve import load_result, resume
from cosolve.cli import app
from cosolve.errors import SetupError
from cosolve.io.source import is_sealed, seal
from cosolve.state.codec import from_bytes, to_bytes

MODEL = """
import cosolve as cs

def tank(level):
    return cs.Ode(lambda t, x, u: u - x, lambda t, x, u: x, x0=[level], inputs=["q"], outputs=["h"])
"""
SYSTEM = """
[subsystems.one]
factory = "model:tank"
parameters = {level = 1.0}
[subsystems.two]
kind = "linear"
A = [[-1.0]]
B = [[1.0, 1.0]]
C = [[1.0]]
x0 = [0.0]
inputs = ["q", "extra"]
outputs = ["h"]
[[connections]]
from = "one.h"
to = "two.q"
[[connections]]
from = "two.h"
to = "one.q"
[constants]
two.extra = 0.0
[simulation]
t_end = 1.0
method = "jacobi:2"
step = 0.01
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "tanks.toml").write_text(SYSTEM)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cosolve(*words, code=0):
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == code, done.output + done.stderr
    return done.output + done.stderr


def test_run_and_resume(folder):
    """With options that the system file knows nothing of; they need not be said again."""
    options = ["--step", "0.02", "--input", "two.extra=0.25", "--csv"]
    cosolve("run", "tanks.toml", "-o", "whole.h5", *options)
    said = cosolve("run", "tanks.toml", "-o", "run.h5", "--state-every", "8", "--max-steps", "20", *options, code=3)
    assert "max_steps = 20" in said
    assert "go on with: cosolve resume run.h5" in said
    said = cosolve("resume", "run.h5", "--max-steps", "1000")
    assert "resume  run.h5 from t = 0.32, after 16 macro steps" in said
    assert "Jacobi(2) finished: 51 macro points, t = 0 ... 1" in said
    assert differences(folder / "whole.h5", folder / "run.h5") == []
    assert (folder / "run.csv").read_text() == (folder / "whole.csv").read_text()
    assert "run.h5 has finished already: 51 macro points" in cosolve("resume", "run.h5")


def test_in_the_system_file(folder):
    with (folder / "tanks.toml").open("a") as file:
        file.write('max_steps = 10\n[output]\nfile = "run.h5"\nstate_every = "1 h"\n')
    assert "max_steps = 10 " in cosolve("run", "tanks.toml", code=3)
    assert "from t = 0, after 0 macro steps" in cosolve("resume", "run.h5", "--max-steps", "100")


def test_wrong_settings_in_the_system_file(folder):
    for line in ('state_every = "often"', "state_every = 0.5"):
        (folder / "tanks.toml").write_text(SYSTEM + f'[output]\nfile = "run.h5"\n{line}\n')
        said = cosolve("run", "tanks.toml", code=2)
        assert "state_every" in said
        assert "tanks.toml" in said
    (folder / "tanks.toml").write_text(SYSTEM + "max_steps = 0\n")
    assert "max_steps" in cosolve("run", "tanks.toml", code=2)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["model.py", "tanks.toml"])
def test_a_source_that_has_changed(folder, name):
    cosolve("run", "tanks.toml", "-o", "run.h5", "--state-every", "8", "--max-steps", "20", code=3)
    before = (folder / name).read_text()
    (folder / name).write_text(before + "\n# another thought\n")
    said = cosolve("resume", "run.h5", "--max-steps", "1000", code=2)
    assert f"{name}' has changed since the run began" in said
    (folder / name).unlink()
    assert "is not there any more" in cosolve("resume", "run.h5", "--max-steps", "1000", code=2)
    (folder / name).write_text(before)
    cosolve("resume", "run.h5", "--max-steps", "1000")


def test_what_is_no_result(folder):
    assert "there is no result file" in cosolve("resume", "run.h5", code=2)
    assert "not an HDF5 file" in cosolve("resume", "tanks.toml", code=2)
    cosolve("run", "tanks.toml", "-o", "run.h5", "--max-steps", "20", code=3)
    assert "there is no state 'run.h5.state'" in cosolve("resume", "run.h5", code=2)


def test_help():
    said = " ".join(cosolve("resume", "--help").replace("│", " ").split())
    for words in ("Go on with a run that was killed", "--state-every", "--max-steps", "Result file (.h5)"):
        assert words in said
    assert "--state-every" in cosolve("run", "--help")


HELD = """
from pathlib import Path
from time import sleep
import cosolve as cs

def rate(t, x, u):
    if t > 0.3 and Path("hold").exists() and Path("run.h5.state").exists():
        Path("held").touch()
        sleep(600)
    return u - x

def tank(level):
    return cs.Ode(rate, lambda t, x, u: x, x0=[level], inputs=["q"], outputs=["h"])
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_as_a_new_user_would(folder, how):
    """A long run in a terminal, ended in the middle, and two words to go on.

    The model stops in the middle of the first run, as soon as a state is there, so that the signal finds it inside.
    """
    command = [sys.executable, "-m", "cosolve.cli"]
    environment = processes.environment()
    (folder / "model.py").write_text(HELD)
    (folder / "tanks.toml").write_text(SYSTEM.replace("0.01", "0.0005"))
    processes.run([*command, "run", "tanks.toml", "-o", "whole.h5", "-q"], env=environment, cwd=folder, check=True)
    (folder / "hold").touch()
    with processes.started(
        [*command, "run", "tanks.toml", "-o", "run.h5", "--state-every", "0.01 s"], env=environment, cwd=folder
    ) as run:
        assert processes.until((folder / "held").exists)
        run.send_signal(how)
        run.wait()
        assert run.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[how]
    (folder / "hold").unlink()
    processes.run([*command, "resume", "run.h5"], env=environment, cwd=folder, check=True)
    assert differences(folder / "whole.h5", folder / "run.h5") == []
    assert not list(folder.glob("run.h5.*"))


def test_a_state_of_others_runs_nothing(folder, monkeypatch, tmp_path):
    """A forged state names another file, its digest is right, and so is everything else but the seal."""
    cosolve("run", "tanks.toml", "-o", "run.h5", "--state-every", "8", "--max-steps", "20", code=3)
    whole = (folder / "run.h5.state").read_bytes()
    (folder / "evil.py").write_text("from pathlib import Path\nPath('harm').touch()\n" + MODEL)
    (folder / "evil.toml").write_text(SYSTEM.replace("model:tank", "evil:tank"))
    tree = from_bytes(whole)
    source = tree["the run"]["source"]
    source["file"], source["digests"] = str(folder / "evil.toml"), {}
    (folder / "run.h5.state").write_bytes(to_bytes(tree))
    said = " ".join(cosolve("resume", "run.h5", "--max-steps", "1000", code=2).split())
    assert "evil.toml', and was not written by you on this computer" in said.replace("\n", "")
    with pytest.raises(SetupError, match="resume with --trust"):
        resume("run.h5")
    (folder / "run.h5.state").write_bytes(whole)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
    assert "was not written by you" in " ".join(cosolve("resume", "run.h5", "--max-steps", "1000", code=2).split())
    assert not (folder / "harm").exists()
    cosolve("resume", "run.h5", "--max-steps", "1000", "--trust")
    assert len(load_result("run.h5")) == 101


def test_without_a_home_a_run_keeps_states_and_is_resumed_with_trust(folder, monkeypatch):
    (folder / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "file"))
    cosolve("run", "tanks.toml", "-o", "run.h5", "--state-every", "8", "--max-steps", "20", code=3)
    assert "--trust" in cosolve("resume", "run.h5", "--max-steps", "1000", code=2)
    cosolve("resume", "run.h5", "--max-steps", "1000", "--trust")


@pytest.mark.skipif(sys.platform == "win32", reason="other rights of files")
def test_the_key_is_for_this_user_only(folder, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "home"))
    mark = seal({"a": 1})
    assert is_sealed({"a": 1}, mark)
    assert not is_sealed({"a": 2}, mark)
    assert not is_sealed({"a": 1}, "")
    assert (folder / "home" / "cosolve" / "seal").stat().st_mode & 0o077 == 0
