"""The hard limit of every test: a hang fails one test, and the suite goes on."""

import signal
import sys

import pytest
from tests.processes import ends, environment, run, started

HANGS = """
import ctypes, signal, time, pytest

@pytest.fixture
def folder(tmp_path_factory):
    yield
    open("cleaned_up", "w").close()

def test_waits(folder):
    time.sleep(1000)

def test_is_stuck_in_machine_code():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})  # which would wake it up
    ctypes.PyDLL(None).sleep(1000)  # holds the interpreter: no Python code runs meanwhile

def test_passes():
    pass
"""


def _suite(tmp_path, *options):
    (tmp_path / "test_hangs.py").write_text(HANGS)
    plain = environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")  # starts faster
    plugins = ["-p", "xdist.plugin", "-p", "tests.limits", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *plugins, "-c", "/dev/null", "-n", "1", "--limit", "0.5"]
    return run([*command, *options], cwd=tmp_path, env=plain)


def test_a_hang_fails_one_test_and_the_suite_goes_on(tmp_path):
    """One is interrupted and cleans up; the other can only be killed; the third passes."""
    done = _suite(tmp_path, "--grace", "5", "--rootdir", str(tmp_path), str(tmp_path))
    assert "2 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "Failed: not finished within 0.5 s" in done.stdout
    assert "crashed while running 'test_hangs.py::test_is_stuck_in_machine_code'" in done.stdout
    assert (tmp_path / "cleaned_up").exists()
    assert "in test_is_stuck_in_machine_code" in done.stderr


def test_a_quick_test_has_minutes(request):
    """The limit is no clock for this machine: it is there for tests that would never end."""
    if request.config.getoption("limit") is None:
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 200.0


@pytest.mark.parametrize("ignored", [False, True], ids=["heard", "ignored here"])
def test_processes_of_tests_hear_ctrl_c(ignored):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if ignored else None
    try:
        done = run([sys.executable, "-c", "import signal; print(signal.getsignal(signal.SIGINT).__name__)"])
        assert not ignored or signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        if ignored:
            signal.signal(signal.SIGINT, before)
    assert done.stdout == "default_int_handler\n"


def test_a_process_that_hangs_is_ended_with_what_it_started(tmp_path):
    script = "import subprocess, time; p = subprocess.Popen(['sleep', '1000']); print(p.pid, flush=True); p.wait()"
    with started([sys.executable, "-c", script], limit=1000.0, stdout=-1) as process:
        child = int(process.stdout.readline())
    assert process.returncode == -signal.SIGKILL
    assert ends(child)
    with pytest.raises(AssertionError, match=r"not finished within 0\.2 s"):
        run(["sleep", "1000"], limit=0.2)
