"""What runs inside an exported FMU: the wrapper library calls these classes from the importing tool's process.

The names of the methods are those that the wrappers of pythonfmu and pythonfmu3 call.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import CDLL, py_object, pythonapi
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

from cosolve.errors import CosolveError, SetupError, SimulationError
from cosolve.io.fmu_export.interface import Variable
from cosolve.io.fmu_export.source import build, stepper
from cosolve.run import Snapshot, Stepper

OK, DISCARD, ERROR = 0, 2, 3
_CATEGORIES = {DISCARD: "logStatusDiscard", ERROR: "logStatusError"}

#: Communication steps are whole multiples of the macro step up to this relative rounding.
_WHOLE = 1e-9


@dataclass(frozen=True)
class Message:
    """One entry for the importer's log."""

    status: int
    category: str
    msg: str
    debug: bool = False


@dataclass(frozen=True)
class StepResult:
    """What a communication step of FMI 3 returns."""

    status: int = OK
    eventHandlingNeeded: bool = False
    terminateSimulation: bool = False
    earlyReturn: bool = False


class WrongStep(SetupError):
    """A communication step that the model cannot make; it stands where it stood."""


class Exported:
    """One instance of an exported model."""

    def __init__(self, resources: str) -> None:
        folder = Path(resources).absolute()
        self._recipe = json.loads((folder / "cosolve.json").read_text(encoding="utf-8"))
        self._folder = folder / "model"
        self._variables = {v.reference: v for v in map(Variable.of, self._recipe["variables"])}
        self._values: dict[int, Any] = {v.reference: v.start for v in self._variables.values() if v.start is not None}
        self._t = 0.0
        self._started = False  # initialisation is over
        self._stepper: Stepper | None = None
        self._uniform: float | None = None
        self.log_queue: list[Message] = []

    # -- values ----------------------------------------------------------------------------------------

    def get(self, references: Sequence[int]) -> list[float]:
        """Values of variables, arrays one after the other."""
        found: list[float] = []
        for reference in references:
            variable = self._variables.get(reference)
            if reference == 0:
                found.append(self._t if self._stepper is None else self._stepper.t)
            elif variable is None:
                raise ValueError(f"there is no variable with the value reference {reference}")
            elif variable.causality == "output":
                value = self._running()[variable.address]
                found += np.atleast_1d(value)[slice(None) if variable.entry is None else [variable.entry]].tolist()
            else:
                found += np.atleast_1d(self._values[reference]).tolist()
        return found

    def set(self, references: Sequence[int], values: Sequence[float]) -> None:
        """Set inputs, and parameters before initialisation ends."""
        at = 0
        for reference in references:
            variable = self._variables.get(reference)
            if variable is None or variable.causality == "output":
                raise ValueError(f"the variable with the value reference {reference} cannot be set")
            part = [float(v) for v in values[at : at + variable.length]]
            at += variable.length
            self._values[reference] = part[0] if variable.size is None else tuple(part)
            if not self._started:
                self._stepper = None  # built anew when it is needed
            elif variable.causality == "parameter":
                raise ValueError(f"the parameter '{variable.name}' is fixed once initialisation is over")
            else:
                self._feed(variable.address)

    def _feed(self, address: str) -> None:
        """Hand the inputs that make up one port to the stepper."""
        self._running().set(address, self._input(address))

    def _input(self, address: str) -> Any:
        parts = [v for v in self._variables.values() if v.address == address and v.causality == "input"]
        return np.ravel([self._values[v.reference] for v in sorted(parts, key=lambda v: v.entry or 0)])

    # -- running ---------------------------------------------------------------------------------------

    def begin(self, t: float) -> None:
        """The start time."""
        self._t, self._stepper = t, None

    def initialise(self) -> None:
        """The end of initialisation: from here on parameters are fixed."""
        self._running()
        self._started = True

    def _running(self) -> Stepper:
        if self._stepper is None:
            parameters = {
                v.name: self._values[v.reference] for v in self._variables.values() if v.causality == "parameter"
            }
            model = build(self._recipe, self._folder, parameters)
            inputs = {v.address for v in self._variables.values() if v.causality == "input"}
            for address in inputs:
                model.system.set(address, self._input(address))
            self._stepper = stepper(model, self._t)
            number = float(model.step) if isinstance(model.step, (int, float)) else None
            self._uniform = None if model.method.chooses_step else number
        return self._stepper

    def advance(self, t: float, h: float) -> None:
        """One communication step: whole macro steps; a step of another length is refused."""
        running = self._running()
        if abs(running.t - t) > _WHOLE * max(h, abs(t)):
            raise WrongStep(f"the step begins at t = {t:.9g}, but the model stands at t = {running.t:.9g}")
        if self._uniform is None:
            running.run_until(t + h)
            self._refuse_ended(running)
            return
        count = round(h / self._uniform)
        if count < 1 or abs(h - count * self._uniform) > _WHOLE * h:
            raise WrongStep(
                f"a step of {h:.9g} is not a whole multiple of the macro step {self._uniform:.9g} of this system; use "
                "such a multiple, or export the system with another step"
            )
        for _ in range(count):
            running.step()
            self._refuse_ended(running)

    def _refuse_ended(self, running: Stepper) -> None:
        if running.ended:
            raise SimulationError(f"the system has {running.ended}")

    def complain(self, status: int, error: Exception) -> None:
        """Put a sentence into the importer's log."""
        self.log_queue.append(Message(status, _CATEGORIES[status], str(error)))

    # -- states ----------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything that a restored instance continues from."""
        snapshot = self._running().save(portable=self._recipe["serialises"])
        return {"values": dict(self._values), "t": self._t, "started": self._started, "snapshot": snapshot}

    def set_state(self, state: dict[str, Any]) -> None:
        """Back to a saved state."""
        self._values, self._t, self._started = dict(state["values"]), state["t"], state["started"]
        self._running().restore(state["snapshot"])


def state_to_bytes(state: dict[str, Any]) -> bytes:
    """A saved state as bytes: a line of JSON and the snapshot."""
    values = [[reference, value] for reference, value in state["values"].items()]
    head = json.dumps({"values": values, "t": state["t"], "started": state["started"]})
    snapshot: Snapshot = state["snapshot"]
    return head.encode() + b"\n" + snapshot.to_bytes()


def state_from_bytes(data: bytes) -> dict[str, Any]:
    """The inverse of `state_to_bytes`."""
    head, _, rest = data.partition(b"\n")
    state = json.loads(head)
    values = {reference: tuple(v) if isinstance(v, list) else v for reference, v in state["values"]}
    return {**state, "values": values, "snapshot": Snapshot.from_bytes(rest)}


def keep(thing: Any) -> None:
    """Hold something once more, a module's namespace for instance.

    The wrapper of pythonfmu 0.7.0 gives back, for every instance, a reference to it that is not its own; without this
    the namespace would be freed under the module's feet.
    """
    pythonapi.Py_IncRef(py_object(thing))


def let_go_at_exit(folder: Path) -> None:
    """Have the wrapper library of the FMU unpacked in `folder` let go of its interpreter when Python ends.

    Otherwise its destructor function does so after its variables were destroyed: the process aborts now and then.
    """
    if not hasattr(os, "RTLD_NOLOAD"):  # Windows
        return
    for file in folder.glob("binaries/*/*"):
        try:
            library = CDLL(str(file), mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        except OSError:  # of another platform, or not what the importer has loaded
            continue
        if str(file) not in _let_go and hasattr(library, "finalizePythonInterpreter"):
            _let_go.add(str(file))
            atexit.register(library.finalizePythonInterpreter)


_let_go: set[str] = set()


def _surviving(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method of a slave, after whose exceptions the importer may still free the instance.

    The wrappers give back their references to the object, its class and its log whenever a method raises, and then
    use them again.
    """

    @wraps(method)
    def call(self: _Slave, *arguments: Any) -> Any:
        try:
            return method(self, *arguments)
        except BaseException as error:
            for used in (self, type(self), self.exported.log_queue):
                keep(used)
            if self.says_aloud:
                say(error)
            raise

    return call


def say(error: BaseException) -> None:
    """A sentence on stderr, where the process has one.

    The wrapper of pythonfmu logs it only where the importer has switched debug logging on.
    """
    with suppress(Exception):
        print(f"cosolve: {error}", file=sys.stderr, flush=True)


class _Slave:
    """What FMI 2 and FMI 3 have in common."""

    says_aloud = False

    def __init__(self, **options: Any) -> None:
        self.exported = Exported(options["resources"])
        let_go_at_exit(Path(options["resources"]).absolute().parent)

    def enter_initialization_mode(self) -> None: ...

    @_surviving
    def exit_initialization_mode(self) -> None:
        self.exported.initialise()

    def terminate(self) -> None: ...

    def _get_log_queue(self) -> list[Message]:
        return self.exported.log_queue

    @_surviving
    def _get_fmu_state(self) -> dict[str, Any]:
        return self.exported.state()

    @_surviving
    def _set_fmu_state(self, state: dict[str, Any]) -> None:
        self.exported.set_state(state)

    _fmu_state_to_bytes = staticmethod(state_to_bytes)
    _fmu_state_from_bytes = staticmethod(state_from_bytes)


class Fmi2Slave(_Slave):
    """The calls of pythonfmu's wrapper, for which whatever is raised is fatal."""

    says_aloud = True

    def setup_experiment(self, start: float, stop: float | None = None, tolerance: float | None = None) -> None:
        self.exported.begin(start)

    @_surviving
    def get_real(self, references: Sequence[int]) -> list[float]:
        return self.exported.get(references)

    @_surviving
    def set_real(self, references: Sequence[int], values: Sequence[float]) -> None:
        self.exported.set(references, values)

    @_surviving
    def do_step(self, t: float, h: float) -> bool:
        try:
            self.exported.advance(t, h)
        except WrongStep as error:  # False is "discard"
            self.exported.complain(DISCARD, error)
            say(error)
            return False
        return True


class Fmi3Slave(_Slave):
    """The calls of pythonfmu3's wrapper."""

    def setup_experiment(self, start: float) -> None:
        self.exported.begin(start)

    @_surviving
    def get_float64(self, references: Sequence[int]) -> list[float]:
        return self.exported.get(references)

    @_surviving
    def set_float64(self, references: Sequence[int], values: Sequence[float]) -> None:
        self.exported.set(references, values)

    @_surviving
    def do_step(self, t: float, h: float) -> StepResult:
        try:
            self.exported.advance(t, h)
        except WrongStep as error:
            self.exported.complain(DISCARD, error)
            return StepResult(DISCARD)
        except CosolveError as error:
            self.exported.complain(ERROR, error)
            return StepResult(ERROR)
        return StepResult()
