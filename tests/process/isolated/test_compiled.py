"""Isolated subsystems in the compiled macro loop: compiled code in both processes, the bits of the Python engine."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.fmu.build import fmu
from tests.process.isolated import compiled_models as models
from tests.process.isolated.leftovers import leftovers, stay
from tests.process.isolated.models import pendulum
from tests.process.isolated.test_failures import _script
from tests.processes import ends, environment, started, until

import cosolve as cs
from cosolve.engine.native import effort
from cosolve.process import shared_memory

COLUMNS = ("t", "y", "z", "H", "iterations", "residual", "rejected", "calls", "norms_end", "norms")

KINDS = {
    "linear": (models.linear, partial(models.linear, -0.2)),
    "own machine code": (models.Mass, partial(models.Mass, x=-0.2)),
    "fixed steps": (models.jitted, partial(models.jitted, x=0.0)),
    "adaptive": (partial(models.jitted, solver="dopri5"), partial(models.jitted, solver="rodas4", x=0.0)),
    "FMU": (
        partial(cs.load_fmu, fmu("mass_force", 2), start={"x": 0.5}),
        partial(cs.load_fmu, fmu("mass_force", 2), parameters={"m": 2.0}),
    ),
}

LONG = ("own machine code", "fixed steps", "adaptive")  # every process compiles for itself, some seconds each

METHODS = [
    *(cs.Jacobi(0), cs.Jacobi(2), cs.GaussSeidel(0), cs.GaussSeidel(1), cs.SemiImplicit(0)),
    *(cs.SemiImplicit(2), cs.SemiImplicit(1, jacobian="difference"), cs.Implicit(0), cs.Implicit(1)),
    cs.Implicit(2, jacobian="difference", corrector=cs.Newton("iteration")),
]


def coupled(one: cs.Subsystem, two: cs.Subsystem) -> cs.System:
    system = cs.System({"one": one, "two": two})
    of = ["one.x", "one.v", "two.x", "two.v"]
    system.law({"one.f": 1, "two.f": -1}, models.spring, of=of, name="spring")
    return system


def alone(subsystem: cs.Subsystem) -> cs.System:
    """Beside a linear one in this process."""
    return coupled(models.linear(), subsystem)


@pytest.fixture(scope="module")
def apart():
    """One process for several tests."""
    subsystem = cs.remote.Isolated(models.Mass, timeout=600.0)
    yield subsystem
    subsystem.close()


def same(found: cs.Result, expected: cs.Result) -> None:
    for name in COLUMNS:
        np.testing.assert_array_equal(found.column(name), expected.column(name), err_msg=name)
    assert (found.stats.calls, found.stats.jacobians) == (expected.stats.calls, expected.stats.jacobians)


@pytest.mark.covers("SC-24")
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow) if kind in LONG else kind for kind in KINDS]
)
def test_same_bits(kind):
    """One and both apart, under every compiled method, against readable runs in this process."""
    one, two = KINDS[kind]
    systems = [coupled(one(), cs.remote.Isolated(two, timeout=600.0))]
    if kind == "linear":
        systems.append(coupled(cs.remote.Isolated(one, timeout=600.0), cs.remote.Isolated(two, timeout=60.0)))
    here = coupled(one(), two())
    for method in METHODS:
        run = {"method": method, "step": 1e-3, "t_end": 0.03}
        expected = cs.simulate(here, **run, compiled=False)
        for system in systems:
            found = cs.simulate(system, **run, compiled=True)
            assert found.stats.compiled_steps >= expected.stats.steps - 4, method.label
            same(found, expected)
        same(cs.simulate(systems[0], **run, compiled=False), expected)  # the Python engine in between


@pytest.mark.parametrize("kind", ["own machine code", pytest.param("adaptive", marks=pytest.mark.slow)])
def test_controlled_steps_are_undone_over_there(kind):
    """Rejected steps roll back; an adaptive integrator's memory goes along."""
    one, two = KINDS[kind]
    run = {"method": cs.SemiImplicit(1), "step": cs.Adaptive(rtol=1e-4, first_step=1e-2), "t_end": 2.0}
    expected = cs.simulate(coupled(one(), two()), **run, compiled=False)
    found = cs.simulate(coupled(one(), cs.remote.Isolated(two, timeout=600.0)), **run, compiled=True)
    assert expected.stats.rejected > 0
    assert found.stats.compiled_steps > expected.stats.steps // 2
    same(found, expected)


@pytest.mark.covers("PF-7")
def test_a_compiled_step_across_processes_makes_no_call_of_python():
    """Less than one per macro step, for they are taken in chunks; the Python engine makes about 130."""
    system = coupled(models.linear(), cs.remote.Isolated(partial(models.linear, -0.2), timeout=600.0))

    def calls(steps, compiled):
        found = 0

        def count(frame, event, argument):
            nonlocal found
            found += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            cs.simulate(system, method=cs.Jacobi(1), step=1e-3, t_end=1e-3 * steps, compiled=compiled)
        finally:
            sys.setprofile(None)
        return found

    calls(50, True)  # what is loaded at the first use
    # over many steps: waiting for the other process takes some thousand calls on a machine that is busy
    assert calls(17_000, True) - calls(1000, True) < 16_000
    assert calls(200, False) - calls(100, False) > 50 * 100


def test_the_state_is_there_after_compiled_steps(apart):
    """What is asked between and after compiled chunks finds the state of the last step."""
    method = cs.SemiImplicit(1)
    inner = models.Mass()
    cs.simulate(alone(inner), method=method, step=1e-3, t_end=0.05, compiled=False)
    result = cs.simulate(alone(apart), method=method, step=1e-3, t_end=0.05, compiled=True)
    assert result.stats.compiled_steps > 40
    np.testing.assert_array_equal(apart.get_state(), inner.get_state())
    native = apart.native(1e-3, 1)
    native.enter()
    np.testing.assert_array_equal(apart.get_state(), inner.get_state())  # comes back from compiled code by itself
    native.leave()


@pytest.mark.slow
def test_an_integrator_that_turns_stiff_is_left_to_the_readable_engine(monkeypatch):
    """The step that fails in compiled code is undone over there and taken again."""
    monkeypatch.setattr(effort, "LOADING", 1e-3)
    monkeypatch.setattr(effort, "COMPILING", 0.0)
    monkeypatch.setattr(effort, "RUNNING", 1e-3)
    make = partial(models.jitted, models.turn_stiff, "auto", 0.0)
    run = {"method": cs.Jacobi(1), "step": 1e-3, "t_end": 0.06}
    expected = cs.simulate(alone(make()), **run, compiled=False)
    found = cs.simulate(alone(cs.remote.Isolated(make, timeout=600.0)), **run)
    assert 40 < found.stats.compiled_steps < 55
    np.testing.assert_array_equal(found.column("y"), expected.column("y"))


@pytest.mark.slow
def test_more_processes_than_cores():
    ends = []
    for wrap in (lambda make: make(), partial(cs.remote.Isolated, timeout=600.0)):
        system = cs.System({f"s{k}": wrap(partial(models.linear, 0.1 * k)) for k in range(4)})
        for k in range(4):
            system.connect(f"s{k}.x", f"s{(k + 1) % 4}.f")
        ends.append(cs.simulate(system, method=cs.Jacobi(1), step=1e-3, t_end=0.2, compiled=True))
    assert ends[1].stats.compiled_steps == 199
    same(*ends)


@pytest.mark.parametrize("watching", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_both_sides_sleep_while_there_is_real_work(watching, monkeypatch):
    """Subsystem steps of some milliseconds: waiting costs a small part of a core's time, and every wake-up is taken.

    Without watching (other processors than x86) a wake-up too many would end the next ordinary call before its answer.
    """
    if not watching:
        monkeypatch.setattr(shared_memory, "_SPINS", 0)
    apart = cs.remote.Isolated(partial(models.Mass, "work", watching=watching), timeout=600.0)
    run = {"method": cs.Jacobi(1), "step": 1e-3}
    cs.simulate(alone(apart), **run, t_end=0.005, compiled=True)  # compiles
    before = time.process_time()
    result = cs.simulate(alone(apart), **run, t_end=0.05, compiled=True)
    assert result.stats.compiled_steps == 49
    assert result.stats.compiled_seconds > 0.2
    assert time.process_time() - before < 0.5 * result.stats.compiled_seconds
    np.testing.assert_array_equal(apart.get_state(), [result["two.x"][-1], result["two.v"][-1]])


# -- what goes wrong --------------------------------------------------------------------------------------------------


def _fails(system, **run):
    with pytest.raises(cs.errors.SubsystemError) as caught:
        cs.simulate(system, **{"method": cs.Jacobi(1), "step": 1e-3, "t_end": 0.1, "compiled": True, **run})
    return caught.value


@pytest.mark.parametrize(
    ("method", "beside"),
    [
        (cs.Jacobi(1), models.linear),
        pytest.param(cs.Jacobi(1), KINDS["FMU"][0], marks=pytest.mark.slow),
        pytest.param(cs.Implicit(1), KINDS["FMU"][0], marks=pytest.mark.slow),
    ],
    ids=["step undone", "step kept", "iteration"],
)
def test_a_process_that_dies_in_its_step(method, beside):
    """Steps that can be undone and steps that cannot: one sentence, and the rows up to there."""
    apart = cs.remote.Isolated(partial(models.Mass, "kill"), timeout=600.0)
    error = _fails(coupled(beside(), apart), method=method)
    assert "'two' failed" in str(error)
    assert "its process was ended (signal 9, SIGKILL)" in str(error)
    assert error.subsystem == "two"
    assert error.time == pytest.approx(0.05)
    assert error.result.t[-1] == pytest.approx(0.05)
    assert error.result.stats.compiled_steps > 40
    assert cs.simulate(coupled(beside(), apart), method=method, step=1e-3, t_end=0.04, compiled=True).finished


def test_a_process_that_is_killed_from_outside():
    """At any moment of a long run, many chunks later."""
    system = coupled(models.linear(), cs.remote.Isolated(models.linear, timeout=600.0))
    apart = system.subsystems["two"]
    cs.simulate(system, method=cs.Jacobi(1), step=1e-3, t_end=0.01, compiled=True)
    shots = []

    def progress(fraction):
        if fraction * 1e8 > 1000 and not shots:  # of 1e8 steps
            shots.append(threading.Timer(0.05, os.kill, [apart.pid, signal.SIGKILL]))
            shots[0].start()

    error = _fails(system, t_end=1e5, every=1000, progress=progress)
    shots[0].join()
    assert "'two' failed while advancing" in str(error)
    assert "its process was ended (signal 9, SIGKILL)" in str(error)
    assert error.result.stats.compiled_steps > 1000
    assert error.time == pytest.approx(1e-3 * error.result.stats.steps)


def test_a_hang_is_ended_by_the_timeout():
    apart = cs.remote.Isolated(partial(models.Mass, "hang"), timeout=2.0)
    error = _fails(alone(apart))
    assert "'two' failed" in str(error)
    assert "its process gave no answer within 2 s and was ended" in str(error)
    assert error.result.t[-1] == pytest.approx(0.05)
    assert not apart._worker.alive


def test_a_crash_of_an_fmu():
    error = _fails(coupled(KINDS["FMU"][0](), cs.load_fmu(fmu("mass_crash", 2), isolated=True)))
    assert str(error).startswith("'two' failed while advancing at t = 0.05: its process crashed (signal 11")
    assert error.result.t[-1] == pytest.approx(0.05)


def test_errors_of_an_fmu_read_as_if_it_ran_here():
    texts = []
    for isolated in (False, True):
        bad = cs.load_fmu(fmu("mass_error", 2), isolated=isolated)
        error = _fails(coupled(KINDS["FMU"][0](), bad))
        texts.append((str(error), error.time, len(error.result.t)))
    assert texts[0] == texts[1]
    assert "returned 'error'" in texts[0][0]


_RUN = """
from functools import partial
import cosolve as cs
from tests.process.isolated import compiled_models as models

if __name__ == "__main__":
    far = cs.remote.Isolated(partial(models.Mass, "{deed}", sign="{sign}"))
    system = cs.System({{"one": models.linear(), "two": far}})
    system.connect("one.x", "two.f")
    system.connect("two.x", "one.f")
    cs.simulate(system, method=cs.Jacobi(1), step=1e-3, t_end=0.01, compiled=True)
    print(far.pid, flush=True)
    cs.simulate(system, method=cs.Jacobi(1), step=1e-3, t_end=1e5, every=1000, compiled=True)
"""


@pytest.mark.parametrize(
    ("deed", "how"),
    [
        ("", signal.SIGKILL),
        pytest.param("hang", signal.SIGKILL, marks=pytest.mark.slow),
        ("hang", signal.SIGINT),
    ],
)
def test_workers_end_with_their_run(tmp_path, deed, how):
    """Killed in compiled code, with a far side that waits or hangs there; Ctrl-C reaches a run that waits for ever.

    The far side's machine code makes the folder `inside`.
    """
    inside = tmp_path / "inside"
    command = _script(tmp_path, _RUN.format(deed=deed, sign=inside))
    with started(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        pid = int(run.stdout.readline())
        assert until(inside.exists)
        assert run.poll() is None
        run.send_signal(how)
        _, said = run.communicate()
    assert ends(pid)
    if how == signal.SIGINT:
        assert said.splitlines()[-1].startswith("KeyboardInterrupt")


def test_why_not():
    def why(two):
        system = cs.System({"one": models.linear(), "two": two})
        system.connect("one.x", f"two.{two.inputs[0].name}")
        system.connect(f"two.{two.outputs[0].name}", "one.f")
        return cs.analysis.why_not_compiled(system, cs.Jacobi(1), 1e-3)

    assert why(cs.remote.Isolated(models.linear, transport="pipe", timeout=600.0)) == (
        "'two' cannot be advanced from compiled code: "
        "its process is reached through pipes, and compiled code needs shared memory"
    )
    assert why(cs.remote.Isolated(pendulum, timeout=600.0)) is None


def test_without_memory_for_it_the_readable_engine_runs(apart, monkeypatch):
    assert apart.transport == "shared_memory"

    def full(message):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shared_memory, "create", full)
    why = cs.analysis.why_not_compiled(alone(apart), cs.Jacobi(1), 1e-3)
    assert why.startswith("'two' cannot be advanced from compiled code: there is no shared memory for it")
    assert cs.simulate(alone(apart), method=cs.Jacobi(1), step=1e-3, t_end=0.01).finished


@pytest.mark.slow
def test_nothing_stays_behind(apart):
    """Subsystem steps without references are forgotten over there; no file is left."""
    before = leftovers()
    for _ in range(3):
        cs.simulate(alone(apart), method=cs.Jacobi(1), step=1e-3, t_end=0.01, compiled=True)
    gc.collect()
    apart.get_state()  # tells what is no longer needed
    maps = Path(f"/proc/{apart.pid}/maps")
    if maps.exists():
        assert maps.read_text().count("cosolve-") == 1  # the channel
    assert not stay(before)
