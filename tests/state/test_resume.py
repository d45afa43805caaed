"""A run that was ended and resumed leaves the result of one that was not: every row and every total, bit for bit."""

import os
import sys

import pytest
from tests import processes
from tests.run.stepper.models import CASES, two_mass
from tests.state import models
from tests.state.same import differences

import cosolve as cs

QUICK = ("readable", "implicit", "adaptive", "compiled")


def check(tmp_path, simulate, resume, ends):
    """Whole runs against those that reach a limit of steps somewhere after a state, `ends` = [(steps, state_every)]."""
    simulate(tmp_path / "whole.h5")
    steps = cs.load_result(tmp_path / "whole.h5").stats.steps
    for share, every in ends:
        file = tmp_path / "ended.h5"
        last = max(1, int(share * steps))
        with pytest.raises(cs.errors.StepSizeError, match="max_steps"):
            simulate(file, state_every=max(1, int(every * steps)), max_steps=last)
        assert cs.load_result(file).stats.steps == last
        again = resume(file, max_steps=10 * steps)
        assert again.error is None
        assert differences(tmp_path / "whole.h5", file) == []
        assert sorted(path.name for path in tmp_path.iterdir()) == ["ended.h5", "whole.h5"]


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in models.RUNS])
def test_same_bits(tmp_path, name):
    """Thinned rows, a state in mid-run, and rows after it that were on the disk already."""

    def simulate(file, **more):
        return models.simulate(name, 0.5, file, every=7, **more)

    check(tmp_path, simulate, lambda file, **more: models.resume(name, file, **more), [(0.5, 0.15)])


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_same_bits_of_every_method(tmp_path, name):
    """All methods and correctors with a memory; a state at the start, after one step, and in the middle."""
    build, method, step, startup = CASES[name]

    def simulate(file, **more):
        t_end = 6.0 if "static" in name else 1.5
        return cs.simulate(build(), t_end=t_end, method=method, step=step, startup=startup, save=file, **more)

    ends = [(0.0, 1.0), (0.1, 0.0), (0.5, 0.1), (0.99, 0.2)]
    check(tmp_path, simulate, lambda file, **more: cs.resume(file, build(), **more), ends)


def test_a_run_may_be_ended_again_and_again(tmp_path):
    whole, file = tmp_path / "whole.h5", tmp_path / "run.h5"
    models.simulate("readable", 0.3, whole)
    with pytest.raises(cs.errors.StepSizeError):
        models.simulate("readable", 0.3, file, state_every=4, max_steps=6)
    for limit in (11, 18):
        with pytest.raises(cs.errors.StepSizeError):
            models.resume("readable", file, max_steps=limit)
    models.resume("readable", file, max_steps=1000)
    assert differences(whole, file) == []
    before = file.read_bytes()
    assert models.resume("readable", file).stats.steps == 30  # finished: given back, not touched
    assert file.read_bytes() == before


def test_growth_is_told_once(tmp_path):
    """What watches a run goes on from where it was: the warning of an unstable coupling comes at the same step."""

    def build():
        def mass():
            A, B, C, D = [[0, 1], [-1, 0]], [[0], [1]], [[1, 0]], [[0.9]]
            return cs.Linear(A, B, C, D, x0=[1, 0], inputs=["u"], outputs=["y"])

        system = cs.System({"a": mass(), "b": mass()})
        system.law("a.u", lambda y: 1.3 * y, of="b.y")
        system.law("b.u", lambda y: -1.3 * y, of="a.y")
        return system

    run = {"t_end": 4.0, "method": cs.Jacobi(0), "step": 0.01}
    with pytest.warns(cs.errors.StabilityWarning, match="grow without bound|algebraic loop"):
        cs.simulate(build(), **run, save=tmp_path / "whole.h5")
    with pytest.warns(cs.errors.StabilityWarning), pytest.raises(cs.errors.StepSizeError):
        cs.simulate(build(), **run, save=tmp_path / "run.h5", state_every=90, max_steps=100)
    with pytest.warns(cs.errors.StabilityWarning, match="grow without bound"):
        cs.resume(tmp_path / "run.h5", build(), max_steps=1000)
    assert cs.load_result(tmp_path / "whole.h5").stats.note("growth")
    assert differences(tmp_path / "whole.h5", tmp_path / "run.h5") == []


def test_a_run_that_goes_on_cannot_be_resumed(tmp_path):
    """Two writers of one file would spoil it."""
    file, said = tmp_path / "run.h5", []

    def progress(fraction):
        if not said:
            with pytest.raises(cs.errors.SetupError) as refused:
                models.resume("readable", file)
            said.append(str(refused.value))

    models.simulate("readable", 0.2, file, state_every=1, progress=progress)
    assert "is still going on" in said[0]


SCRIPT = """
import os, signal, sys
from pathlib import Path
from tests.state import models

def shoot(fraction):
    if fraction > 0.4:
        os.kill(os.getpid(), signal.SIGKILL)

models.simulate("readable", 4.0, Path(sys.argv[1]), state_every=25, progress=shoot)
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_killed_process(tmp_path):
    """Not even the file is closed; another process goes on."""
    done = processes.run([sys.executable, "-c", SCRIPT, str(tmp_path / "run.h5")], env=processes.environment())
    assert done.returncode == -9
    left = cs.load_result(tmp_path / "run.h5")
    assert "did not finish" in left.error
    models.resume("readable", tmp_path / "run.h5")
    models.simulate("readable", 4.0, tmp_path / "whole.h5")
    assert differences(tmp_path / "whole.h5", tmp_path / "run.h5") == []


def test_a_limit_of_steps_for_a_stepper():
    with cs.Stepper(two_mass(), method=cs.Jacobi(0), step=0.1, max_steps=3) as stepper:
        for _ in range(3):
            stepper.step()
        with pytest.raises(
            cs.errors.StepSizeError, match=r"max_steps = 3 macro steps and stands at t = 0.3; allow more"
        ):
            stepper.step()
        assert stepper.t == pytest.approx(0.3)
    with pytest.raises(cs.errors.SetupError, match="max_steps"):
        cs.Stepper(two_mass(), method=cs.Jacobi(0), step=0.1, max_steps=0)
