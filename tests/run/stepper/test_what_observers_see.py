"""What an observer sees of a run at its start: alone, gone on with, stepped by hand."""

from pathlib import Path
from typing import Any

import pytest

import cosolve as cs
from cosolve.engine.observer import Observer
from cosolve.run.view import RunView


class Seen(Observer):
    def __init__(self) -> None:
        self.at_start: dict[str, Any] = {}

    def start(self, run: RunView) -> None:
        names = ("resumed", "may_go_back", "t", "t_end", "steps", "names", "file", "done")
        self.at_start = {name: getattr(run, name) for name in names}


def system() -> cs.System:
    tank = lambda: cs.Linear([[-1]], [[1]], [[1]], x0=[1], inputs=["q"], outputs=["h"])  # noqa: E731
    made = cs.System({"one": tank(), "two": tank()})
    made.connect("one.h", "two.q")
    made.connect("two.h", "one.q")
    return made


RUN: Any = {"method": cs.Jacobi(1), "step": 0.25, "t_end": 2.0}
USUAL = {"resumed": False, "may_go_back": False, "t": 0.0, "t_end": 2.0, "steps": 0, "names": ("one", "two")}
USUAL |= {"file": None, "done": False}


def test_a_run(tmp_path: Path) -> None:
    seen = Seen()
    cs.simulate(system(), **RUN, observers=[seen])
    assert seen.at_start == USUAL
    cs.simulate(system(), **RUN, observers=[seen], save=tmp_path / "run.h5")
    assert seen.at_start == USUAL | {"file": tmp_path / "run.h5.part"}


def test_a_run_that_goes_on(tmp_path: Path) -> None:
    """From a state of its own it is the same run; the state of a run stepped by hand begins another."""
    file, seen = tmp_path / "run.h5", Seen()
    with pytest.raises(cs.errors.SimulationError):
        cs.simulate(system(), **RUN, save=file, state_every=4, max_steps=6)
    cs.resume(file, system(), observers=[seen], max_steps=100)
    assert seen.at_start == USUAL | {"resumed": True, "t": 1.0, "steps": 4, "file": file}
    with cs.Stepper(system(), **RUN) as stepper:
        stepper.run_until(1.0)
        stepper.save_file(tmp_path / "half.state")
    cs.simulate(system(), **RUN, observers=[seen], resume=tmp_path / "half.state")
    assert seen.at_start == USUAL | {"t": 1.0}


def test_a_run_stepped_by_hand() -> None:
    seen = Seen()
    with cs.Stepper(system(), **RUN, observers=[seen]) as stepper:
        stepper.step()
    assert seen.at_start == USUAL | {"may_go_back": True}
