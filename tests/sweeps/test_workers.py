"""Worker processes of a sweep end with it, however it ends: no process is left, and nothing hangs."""

import os
import signal
import subprocess
import sys
import types

import numpy as np
import pytest
from tests.processes import children, ends, environment, run, started, until
from tests.sweeps.models import pendulum

import cosolve as cs
from cosolve.sweeps.job import Items, Job
from cosolve.sweeps.workers import Workers

SCRIPT = """
import ctypes, os, sys, time
from pathlib import Path
import cosolve as cs
from tests.sweeps.models import pendulum

def build(length):
    Path(sys.argv[1], f"{os.getpid()}-{length}").touch()
    if length > 1.0:  # the first one is built by the sweep itself, to see what it is
        DEED
    return pendulum(length)

if __name__ == "__main__":
    lengths = [1.0 + k / 100 for k in range(1000)]
    cs.sweep(build, {"length": lengths}, methods=cs.Jacobi(1), steps=0.01, t_end=0.1, record="rod.x",
             executor="processes", workers=2)
"""
DEEDS = {
    "busy": "pass",
    "waiting": "time.sleep(1000)",
    "stuck": "ctypes.PyDLL(None).sleep(1000)",  # holds the interpreter, so that no thread of it can act
}


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("what", "how"),
    [
        ("busy", signal.SIGINT),
        ("stuck", signal.SIGINT),
        ("waiting", signal.SIGTERM),
        ("stuck", signal.SIGKILL),
    ],
)
def test_workers_end_with_the_sweep(tmp_path, what, how):
    """Ctrl-C goes to the whole group, as at a terminal; other signals go to the sweep alone."""
    if what == "stuck" and sys.platform != "linux":
        pytest.skip("only Linux kills processes whose parent is gone")
    script, built = tmp_path / "script.py", tmp_path / "built"
    script.write_text(SCRIPT.replace("DEED", DEEDS[what]))
    built.mkdir()
    with started([sys.executable, str(script), str(built)], env=environment(), stderr=subprocess.PIPE) as sweep:

        def workers():
            return {int(path.name.partition("-")[0]) for path in built.iterdir()} - {sweep.pid}

        assert until(lambda: len(workers()) == 2, patience=120.0)
        descendants = children(sweep.pid)
        assert workers() <= set(descendants)
        assert not any("/dev/shm/sem." in _file(pid, "maps") for pid in [sweep.pid, *descendants])  # they would stay
        os.killpg(sweep.pid, how) if how == signal.SIGINT else sweep.send_signal(how)
        _, said = sweep.communicate()
        assert all(ends(pid) for pid in descendants)
    assert sweep.returncode == -how
    if how == signal.SIGINT:
        assert said.count("Traceback") == 1, said  # that of the sweep
        assert said.splitlines()[-1] == "KeyboardInterrupt"


UNGUARDED = """
import cosolve as cs
from tests.sweeps.models import pendulum

def build(length):
    return pendulum(length)

found = cs.sweep(build, {"length": [1.0, 2.0]}, methods=cs.Jacobi(1), steps=0.01, t_end=0.1, record="rod.x",
                 executor="processes", workers=1)
print(len(cs.failed_runs(found)), found.attrs["how"])
"""


def test_a_script_without_guard_runs_here_and_is_told_why(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    done = run([sys.executable, str(script)], env=environment(), check=True)
    assert done.stdout.startswith(
        "0 2 runs one by one in this process: worker processes end at once (is the call under"
    )


JOB = Job(pendulum, (cs.Jacobi(1),), (0.01,), 0.0, 0.1, ("rod.x",), 1, "end")
ITEMS = Items(np.arange(4), {"length": np.array([1.0, 1.5, 2.0, 2.5])}, ((0, 0),))


def test_a_worker_that_ends_is_replaced():
    """By SIGTERM while it waits: its next chunk is found lost, and the one after that runs in a new process."""
    with Workers(JOB, 1) as staff:
        assert len(staff.alone(ITEMS[:1]).cells) == 1
        (pid,) = _workers()
        os.kill(pid, signal.SIGTERM)
        assert ends(pid)
        assert staff.alone(ITEMS[1:2]) is None
        again = staff.alone(ITEMS[1:3])
        assert [case for case, _, _ in again.cells] == [(1, 0, 0), (2, 0, 0)]
        (new,) = set(_workers()) - {pid}
    assert ends(new)


def test_a_build_that_workers_cannot_load(monkeypatch):
    """It says so instead of calling every variant dead."""
    module = types.ModuleType("only_here")
    exec("def build(length):\n    return None", module.__dict__)
    monkeypatch.setitem(sys.modules, "only_here", module)
    module.build.__module__ = "only_here"
    job = Job(module.build, JOB.methods, JOB.steps, 0.0, 0.1, JOB.record, 1, "end")
    expected = r"cannot load build, .*No module named 'only_here'.*executor='serial'"
    with pytest.raises(cs.errors.SetupError, match=expected), Workers(job, 1) as staff:
        staff.alone(ITEMS[:1])


def _workers():
    """Those of this process that run Python's multiprocessing."""
    return [pid for pid in children(os.getpid()) if "spawn_main" in _file(pid, "cmdline")]


def _file(pid, name):
    """What the system tells about a process; nothing where it is gone or not asked that way."""
    try:
        with open(f"/proc/{pid}/{name}") as file:
            return file.read()
    except OSError:
        return ""
