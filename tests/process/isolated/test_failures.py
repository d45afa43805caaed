"""What happens in the process of a subsystem ends the run with a sentence and keeps the result."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.process.isolated import models
from tests.process.isolated.leftovers import leftovers, stay
from tests.processes import ends, environment, run, started, until

import cosolve as cs
from cosolve.process import launch, shared_memory
from cosolve.process.channel import ThreadedPipe
from cosolve.signal import Polynomial

ROOT = Path(__file__).parents[3]


def _run(deed, *, timeout=600.0, transport="shared_memory", log=None):
    apart = cs.remote.Isolated(partial(models.Bad, deed), timeout=timeout, transport=transport, name="tool", log=log)
    system = cs.System({"good": models.Plain(), "tool": apart})
    system.connect("good.x", "tool.u")
    system.connect("tool.x", "good.u")
    with pytest.raises(cs.errors.SubsystemError) as caught:
        cs.simulate(system, t_end=1.0, method=cs.Jacobi(degree=1), step=0.1)
    return caught.value, apart


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("deed", "expected", "transport"),
    [
        ("segfault", r"crashed \(signal 11, SIGSEGV\)", "shared_memory"),
        ("segfault", r"crashed \(signal 11, SIGSEGV\)", "pipe"),
        ("exit", "ended with exit code 3; its last output: about to exit / licence server not found", "shared_memory"),
        ("sys.exit", "ended with exit code 4", "shared_memory"),
        ("kill", r"was ended \(signal 9, SIGKILL\)", "shared_memory"),
    ],
)
def test_a_crash_ends_the_run_with_a_sentence_and_its_result(deed, expected, transport):
    error, apart = _run(deed, transport=transport)
    with pytest.raises(cs.errors.SubsystemError, match=expected):
        raise error
    assert str(error).startswith("'tool' failed while advancing at t = 0.5: its process")
    assert f"about to {deed}" in str(error)
    assert error.subsystem == "tool"
    assert error.time == pytest.approx(0.5)
    assert error.result is not None
    assert len(error.result.t) == 6  # 0, 0.1, ..., 0.5
    assert not apart._worker.alive


@pytest.mark.sample(2)
@pytest.mark.parametrize("transport", ["shared_memory", "pipe"])
def test_a_hang_is_ended_by_the_timeout(transport):
    error, apart = _run("hang", timeout=1.0, transport=transport)
    assert "gave no answer within 1 s and was ended; its last output: about to hang; raise timeout" in str(error)
    assert len(error.result.t) == 6
    assert not apart._worker.alive


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("deed", "expected"),
    [("segfault", r"crashed \(signal 11, SIGSEGV\)"), ("hang", "gave no answer within 1 s and was ended")],
)
def test_pipes_that_a_thread_reads_notice_the_same(monkeypatch, deed, expected):
    """What Windows uses, on this side."""
    monkeypatch.setattr(launch, "pipe", ThreadedPipe)
    error, apart = _run(deed, timeout=1.0, transport="pipe")
    with pytest.raises(cs.errors.SubsystemError, match=expected):
        raise error
    assert len(error.result.t) == 6
    assert not apart._worker.alive


def test_exceptions_read_as_if_raised_here():
    error, apart = _run("raise")
    assert str(error) == "'tool' failed while advancing at t = 0.5: no flow left (ZeroDivisionError)"
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert "in misbehave" in error.__cause__.__notes__[0]
    assert apart._worker.alive
    error, _ = _run("odd exception")
    assert "1 and 2 (OddError)" in str(error)


def test_wrong_returns_read_as_if_returned_here():
    texts = []
    for tool in (models.ReturnsNone(), cs.remote.Isolated(models.ReturnsNone, timeout=600.0)):
        system = cs.System({"tool": tool})
        system.set("tool.u", 1.0)
        with pytest.raises(cs.errors.SubsystemError) as caught:
            cs.simulate(system, t_end=1.0, method=cs.Jacobi(degree=0), step=0.1)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


def test_a_new_run_after_a_crash_gets_a_new_process():
    _, apart = _run("segfault")
    before = apart.pid
    assert apart.start(0.0).tolist() == [1.0]
    assert apart.pid != before


def test_a_state_of_a_process_that_is_gone_is_refused():
    apart = cs.remote.Isolated(models.Counter, timeout=600.0)
    apart.start(0.0)
    state = apart.save()
    os.kill(apart.pid, signal.SIGKILL)
    with pytest.raises(cs.errors.SubsystemError, match="SIGKILL"):
        apart.restore(state)
    apart.start(0.0)
    with pytest.raises(cs.errors.SubsystemError, match="the saved state went with the process"):
        apart.restore(state)


def test_letting_go_of_an_old_state_leaves_those_of_the_new_process_alone():
    apart = cs.remote.Isolated(models.Counter, timeout=600.0)
    apart.start(0.0)
    old = apart.save()
    os.kill(apart.pid, signal.SIGKILL)
    with pytest.raises(cs.errors.SubsystemError, match="SIGKILL"):
        apart.save()
    apart.start(0.0)
    new = apart.save()
    assert new.handle == old.handle
    del old
    apart.restore(new)
    assert apart.states() == 1


def test_the_log_is_kept_where_asked(tmp_path):
    _run("exit", log=tmp_path / "tool.log")
    assert (tmp_path / "tool.log").read_text().splitlines() == ["about to exit", "licence server not found"]


@pytest.mark.parametrize(
    ("source", "options", "expected"),
    [
        (lambda: None, {}, r"cannot be sent to another process .* top level of a module"),
        (models.pendulum(), {}, "this Ode cannot be sent to another process"),
        (42, {}, "not 42"),
        ("nonsense", {}, "'module:function'"),
        (models.Plain, {"transport": "carrier pigeon"}, "transport must be 'shared_memory' or 'pipe'"),
        (models.Plain, {"timeout": -1.0}, "timeout must be a positive number"),
    ],
)
def test_bad_arguments_are_refused_at_once(source, options, expected):
    with pytest.raises(cs.errors.SetupError, match=expected):
        cs.remote.Isolated(source, **options)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (models.broken, "Isolated 'tool': loading the subsystem raised OSError: no such mesh"),
        (models.nothing, "the factory gave 42, not a subsystem"),
        (models.dies, r"aborted \(signal 6, SIGABRT\) while loading; its last output: bad library"),
        ("tests.process.isolated.models:unknown", "cannot be loaded: .*unknown"),
        ("nowhere.py:unknown", "cannot be loaded: .*nowhere.py"),
    ],
)
def test_a_factory_that_fails_is_told_when_the_subsystem_is_used(source, expected):
    apart = cs.remote.Isolated(source, name="tool", timeout=600.0)
    with pytest.raises(cs.errors.SetupError, match=expected):
        cs.System({"tool": apart})


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda part: pickle.loads(pickle.dumps(part))])
def test_a_copy_keeps_every_option(again, tmp_path):
    """A tool that hangs is ended in a copy as well; the options are looked at first, so that nothing waits for ever."""
    log = tmp_path / "log.txt"
    tool = partial(models.Bad, "hang", 0.0)
    other = again(cs.remote.Isolated(tool, transport="pipe", timeout=0.5, name="tool", log=log))
    assert (other._timeout, other._name, other._log, other._wanted) == (0.5, "tool", log, "pipe")
    system = cs.System({"tool": other})
    system.set("tool.u", 0.0)
    with pytest.raises(cs.errors.SubsystemError, match=r"gave no answer within 0\.5 s and was ended; its last output"):
        cs.simulate(system, t_end=1.0, method=cs.Jacobi(0), step=0.1)
    assert "about to hang" in log.read_text()


def test_without_shared_memory_pipes_are_used(monkeypatch):
    def full(message):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shared_memory, "create", full)
    apart = cs.remote.Isolated(models.Plain, timeout=600.0)
    with pytest.warns(RuntimeWarning, match=r"no shared memory \(.*No space left on device\); using pipes"):
        assert apart.transport == "pipe"
    assert apart.start(0.0).tolist() == [1.0]


def test_no_process_stays_behind():
    """Closing reaps the process, and so does letting go of the object; no file is left in the shared memory."""
    before = leftovers()
    apart = cs.remote.Isolated(models.Plain, timeout=600.0)
    apart.start(0.0)
    pid = apart.pid
    apart.close()
    apart.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)  # not even a zombie
    with pytest.raises(cs.errors.SubsystemError, match="its process was closed"):
        apart.advance(0.0, 0.1, Polynomial(0.0, 0.1, np.zeros((1, 1))))
    second = cs.remote.Isolated(models.Plain, timeout=600.0)
    second.start(0.0)
    pid = second.pid
    del second
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not stay(before)


def _script(tmp_path, text):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(text))
    return [sys.executable, str(path)]


def test_classes_of_a_script_can_be_isolated(tmp_path):
    command = _script(
        tmp_path,
        """
        import cosolve as cs

        class Tank(cs.Subsystem):
            inputs, outputs = ["q"], ["h"]
            def start(self, t0):
                return 7.0
            def advance(self, t0, t1, u):
                return 8.0

        if __name__ == "__main__":
            tank = cs.remote.Isolated(Tank, timeout=600.0)
            print(tank.start(0.0)[0], tank.pid)
        """,
    )
    done = run(command, env=environment())
    assert done.returncode == 0, done.stderr
    value, pid = done.stdout.split()
    assert value == "7.0"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)  # ended with the interpreter


def test_a_script_without_guard_is_told_what_to_do(tmp_path):
    command = _script(
        tmp_path,
        """
        import cosolve as cs

        class Tank(cs.Subsystem):
            inputs, outputs = ["q"], ["h"]

        cs.remote.Isolated(Tank, timeout=600.0).start(0.0)
        """,
    )
    done = run(command, env=environment())
    assert done.returncode == 1
    assert "put what it runs under `if __name__ == '__main__':`" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_their_run(tmp_path, how):
    """Ctrl-C is an ordinary KeyboardInterrupt of the run; a killed run leaves no process behind, even a busy one."""
    command = _script(
        tmp_path,
        """
        import sys
        from functools import partial
        import cosolve as cs
        from tests.process.isolated import models

        if __name__ == "__main__":
            tool = cs.remote.Isolated(partial(models.Bad, "hang", 0.0), log=sys.argv[1])
            system = cs.System({"tool": tool})
            system.set("tool.u", 0.0)
            print(tool.pid, flush=True)
            cs.simulate(system, t_end=1.0, method=cs.Jacobi(degree=0), step=0.1)
        """,
    )
    log = tmp_path / "log"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started([*command, str(log)], env=environment(), **pipes) as process:
        pid = int(process.stdout.readline())
        assert until(lambda: "about to hang" in log.read_text())
        process.send_signal(how)
        _, said = process.communicate()
    assert ends(pid)
    if how == signal.SIGINT:
        assert said.splitlines()[-1].startswith("KeyboardInterrupt")


@pytest.mark.sample(2)
@pytest.mark.parametrize("transport", ["shared_memory", "pipe"])
def test_sigterm_ends_a_busy_process(tmp_path, transport):
    """Wherever it is; the run says so and keeps its result."""
    log = tmp_path / "log"
    apart = cs.remote.Isolated(partial(models.Bad, "hang"), timeout=200.0, transport=transport, log=log)
    system = cs.System({"tool": apart})
    system.set("tool.u", 0.0)

    def end():
        if until(lambda: "about to hang" in log.read_text()):
            os.kill(apart.pid, signal.SIGTERM)

    thread = threading.Thread(target=end)
    thread.start()
    with pytest.raises(cs.errors.SubsystemError, match=r"its process was ended \(signal 15, SIGTERM\)") as caught:
        cs.simulate(system, t_end=1.0, method=cs.Jacobi(degree=0), step=0.1)
    thread.join()
    assert caught.value.result.t[-1] == pytest.approx(0.5)


def test_calls_from_several_threads_do_not_mix():
    apart = cs.remote.Isolated(models.Counter, timeout=600.0)
    apart.start(0.0)
    wrong = []

    def work(k):
        for n in range(50):
            if apart.get_echo(k, n) != (k, n):
                wrong.append((k, n))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_is_defined_at_a_prompt_cannot_be_sent():
    code = """
import cosolve as cs
class Tank(cs.Subsystem):
    inputs, outputs = ["q"], ["h"]
try:
    cs.remote.Isolated(Tank)
except cs.errors.SetupError as error:
    print(error)
"""
    command = [sys.executable, "-c", code]
    done = run(command, env=environment())
    assert "Tank is defined in an interactive session" in done.stdout, done.stderr
