"""One instance of an FMU: made, initialised, called with its status checked, and freed.

Guaranteed call order towards the FMU: instantiate; set up the experiment (FMI 2.0); set parameters and start values;
enter initialisation mode; get and set until outputs agree; leave it (and event mode, FMI 3.0); then steps. Many tools
forget what is set before the experiment is set up, so it comes first.

Every run gets a new instance: about one foreign FMU in ten does not come back from `fmi2Reset` (it stands still, gives
garbage or crashes), so it is never called. An instance of an earlier run lives on as long as a state that it saved
is in use, and restoring that state goes back to it. After a fatal status nothing is called any more, not even free.

Parameters are read back when initialisation is over: an FMU that did not take one is refused.
"""

from __future__ import annotations

import ctypes
import gc
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cosolve.errors import SetupError, SubsystemError
from cosolve.fmu.archive import library
from cosolve.fmu.binary import Binary
from cosolve.fmu.binary_fmi1 import BinaryFmi1
from cosolve.fmu.description import CO_SIMULATION, Description, Variable
from cosolve.fmu.log import FATAL, STATUS, FmuLog
from cosolve.fmu.options import numbers
from cosolve.fmu.state import States
from cosolve.fmu.values import Values, is_numeric

_COMPLAINTS = tuple(f"logStatus{kind}" for kind in ("Warning", "Discard", "Error", "Fatal"))
_MANY = 1000  # event iterations at one instant

_UPDATE = ctypes.CFUNCTYPE(
    None,
    *(ctypes.c_void_p, ctypes.c_double, ctypes.c_bool, ctypes.c_bool, ctypes.c_bool, ctypes.c_bool),
    *(ctypes.c_void_p, ctypes.c_void_p),
)


class Instance:
    """An FMU in memory. `pointer` is its C handle; `call("DoStep", ...)` checks the status."""

    def __init__(
        self,
        file: str | Path,
        folder: Path,
        description: Description,
        kind: str,
        *,
        name: str,
        log: str | Path | None = None,
        log_level: str = "debug",
        on_update: Any = None,
        between: Sequence[Variable] = (),
        read_back: bool = True,
    ) -> None:
        self.file, self.folder, self.description, self.kind, self.name = file, folder, description, kind, name
        self.fmi = description.fmi
        self.flags = description.kinds[kind]
        path = library(folder, self.fmi, self.flags.identifier, file)
        self.binary = (
            BinaryFmi1(path, self.flags.identifier, kind, file)
            if description.version.startswith("1")
            else Binary(path, self.fmi, file)
        )
        self.log = FmuLog(name, log, log_level)
        self._alive: list[Any]  # callbacks that C keeps pointers to, and the log that they write
        self._update = None if on_update is None else _UPDATE(on_update)
        self._between = np.array([v.reference for v in between], dtype=np.uint32)  # set inside steps, FMI 3.0
        self.event_mode = self.fmi == 3 and kind == CO_SIMULATION and self.flags.has("hasEventMode")
        self.dead: SubsystemError | None = None  # what is said of it after a fatal status
        self._no_file = log is None
        self.read_back = read_back
        self.states = States(self)
        self._given: dict[str, Any] = {}  # what this run set
        self.stop_time = np.inf  # of the next run, where it is known
        self._body: Body | None = None
        self.pointer = 0
        self._renew()

    @property
    def body(self) -> Body:
        """The C instance of this run."""
        if self._body is None:
            raise SubsystemError(f"the FMU '{Path(self.file).name}' was closed; a new run opens it again")
        return self._body

    @property
    def stepping(self) -> bool:
        """True once initialisation is over."""
        body = self._body
        return body is not None and body.life.stepping

    @stepping.setter
    def stepping(self, over: bool) -> None:
        self.body.stepping = over

    def _renew(self) -> None:
        """A new C instance; the old one goes first, unless a saved state still needs it."""
        if self._body is not None and self.flags.has("canBeInstantiatedOnlyOncePerProcess"):
            self._body.free()
        self._body, self.pointer = None, 0
        self._refuse_second()
        self.binary.enter()
        try:
            pointer = self._instantiate()
        except BaseException:
            self.binary.leave()
            raise
        self._body, self.pointer = Body(self.binary, pointer, self._alive), pointer
        _alone[self.folder] = self._body
        _used.add(self.folder)
        self._quieten(self._no_file)

    def go_back_to(self, body: Body) -> None:
        """Go on with an earlier C instance, one of whose states is restored."""
        if not body.alive:
            raise SubsystemError(
                "the instance that saved this state is gone, since the FMU allows one at a time; use serialise"
            )
        self._body, self.pointer = body, body.pointer

    def _refuse_second(self) -> None:
        if self.flags.has("canBeInstantiatedOnlyOncePerProcess"):
            gc.collect()  # one without references does not count
            other = _alone.get(self.folder)
            if other is not None and other.alive:
                raise SetupError(
                    f"'{self.file}' allows one instance per process and there is one already; give isolated=True, "
                    "which runs each instance in a process of its own"
                )

    def _instantiate(self) -> int:
        resources = self.folder / "resources"
        name, token = self.name.encode(), self.description.token.encode()
        if self.fmi == 2:
            callbacks = self.log.callbacks_2()
            self._alive = [callbacks, self.log]
            kind = 1 if self.kind == CO_SIMULATION else 0
            where = (resources.as_uri()).encode()
            pointer = self.binary.function("Instantiate")(name, kind, token, where, ctypes.addressof(callbacks), 0, 1)
        else:
            message = self.log.callback_3()
            self._alive = [message, self._update, self.log]
            head = (name, token, f"{resources}/".encode(), False, True)
            if self.kind == CO_SIMULATION:
                update = None if self._update is None else ctypes.cast(self._update, ctypes.c_void_p)
                tail = (
                    self.flags.has("mightReturnEarlyFromDoStep"),
                    *(self._between.ctypes.data, len(self._between)),
                    *(None, ctypes.cast(message, ctypes.c_void_p), update),
                )
                pointer = self.binary.function("InstantiateCoSimulation")(*head, self.event_mode, *tail)
                if not pointer and self.event_mode:  # some declare it and then refuse it; it is not needed for steps
                    pointer = self.binary.function("InstantiateCoSimulation")(*head, False, *tail)
                    self.event_mode = not pointer
            else:
                pointer = self.binary.function("InstantiateModelExchange")(
                    *head, None, ctypes.cast(message, ctypes.c_void_p)
                )
        if not pointer:
            if self.flags.has("canBeInstantiatedOnlyOncePerProcess") and self.folder in _used:
                raise SetupError(
                    f"'{self.file}' cannot be instantiated a second time in one process{self.log.remark}; give "
                    "isolated=True, and every run gets a process of its own"
                )
            token_name = "a GUID" if self.fmi == 2 else "an instantiation token"
            raise SetupError(
                f"'{self.file}' cannot be instantiated{self.log.remark or '; it does not say why'}; {token_name} "
                "that differs between description and library, a missing licence or a missing file are usual reasons"
            )
        return int(pointer)

    def _quieten(self, no_file: bool) -> None:
        """Without a log file only complaints are wanted, where the FMU has the standard categories for them."""
        wanted = [name for name in self.description.log_categories if name in _COMPLAINTS]
        if no_file and wanted:
            names = (ctypes.c_char_p * len(wanted))(*(name.encode() for name in wanted))
            self.binary.function("SetDebugLogging")(self.pointer, False, 0, None)
            self.binary.function("SetDebugLogging")(self.pointer, True, len(wanted), ctypes.addressof(names))

    def close(self) -> None:
        """Free the instance; done by itself when nothing refers to it any more."""
        if self._body is not None:
            self._body.free()
        self._body, self.pointer = None, 0
        self.log.close()

    # -- calling ---------------------------------------------------------------------------------------------

    def call(self, name: str, *arguments: Any) -> None:
        """Call a C function with the instance as first argument; raises unless it returns OK or a warning."""
        status = self.binary.function(name)(self.pointer, *arguments)
        if status:
            self.check(status, self.binary.prefix + name)

    def check(self, status: int, doing: str) -> None:
        """Turn a bad status into an error with the FMU's last output."""
        if status == 1:
            if not self.log.last or self.log.last[-1][0] != 1:
                self.log.add(1, "cosolve", f"{doing} returned a warning")
            return
        kind = STATUS[status] if 0 <= status < len(STATUS) else f"status {status}"
        if self._body is not None:
            self._body.fail(fatal=status == FATAL)
        hint = "; it wants to run asynchronously, which cosolve does not do" if status == 5 else ""
        name = Path(self.file).name
        error = SubsystemError(f"the FMU '{name}' returned '{kind}' from {doing}{hint}{self.log.remark}")
        if status == FATAL and self.dead is None:
            self.dead = error
            del self.pointer  # so that whatever calls it comes to `__getattr__`
        raise error

    def __getattr__(self, name: str) -> Any:
        dead = self.__dict__.get("dead")
        if name == "pointer" and dead is not None:
            raise SubsystemError(str(dead))
        raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}", name=name, obj=self)

    # -- life --------------------------------------------------------------------------------------------------

    def initialise(self, t0: float, tolerance: float | None, given: Mapping[str, Any]) -> None:
        """A new instance where this one has run before; set what is given, and enter initialisation mode at `t0`."""
        if self.dead is not None:
            raise SubsystemError(f"the FMU '{Path(self.file).name}' met a fatal error before; load the FMU again")
        self.log.clear()
        self.log.time = t0
        if self._body is None or self._body.used:
            self._renew()
        self.body.used, self._given = True, dict(given)
        stop, self.stop_time = self.stop_time, np.inf
        # the sum of a time and a step may be the next number after the end, and some FMUs refuse steps beyond it
        ends = (True, stop + 8.0 * np.spacing(max(abs(stop), abs(t0)))) if stop < np.inf else (False, 0.0)
        defined, number = tolerance is not None, 0.0 if tolerance is None else tolerance
        if self.fmi == 2:
            self.call("SetupExperiment", defined, number, t0, *ends)
        structural = {
            k: v for k, v in given.items() if self.description.variables[k].causality == "structuralParameter"
        }
        if structural:
            self.call("EnterConfigurationMode")
            for name, value in structural.items():
                self.set(self.description.variables[name], value)
            self.call("ExitConfigurationMode")
        for name, value in given.items():
            if name not in structural:
                self.set(self.description.variables[name], value)
        if self.fmi == 2:
            self.call("EnterInitializationMode")
        else:
            self.call("EnterInitializationMode", defined, number, t0, *ends)

    def give(self, given: Mapping[str, Any]) -> None:
        """Set more parameters while it is being initialised; before that there is nothing to do."""
        if self._body is not None and self._body.used:
            for name, value in given.items():
                self.set(self.description.variables[name], value)
            self._given |= given

    def leave_initialisation(self) -> None:
        """Go on to the mode in which steps are made."""
        if not self.stepping:
            forgotten = self._not_taken(self._given)
            self.call("ExitInitializationMode")
            self.stepping = True
            forgotten = self._not_taken(forgotten)  # some tell parameters only from here on
            if forgotten:
                raise self._refused(forgotten)
            if self.event_mode:
                self.iterate_events()
                self.call("EnterStepMode")

    def iterate_events(self) -> bool:
        """FMI 3.0, in event mode: update discrete states until they rest; True when the FMU wants to end the run."""
        flags = np.zeros(5, dtype=np.bool_)
        when = ctypes.c_double()
        base = flags.ctypes.data
        for _ in range(_MANY):
            self.call("UpdateDiscreteStates", *(base + k for k in range(5)), ctypes.addressof(when))
            if flags[1]:
                return True
            if not flags[0]:
                return False
        raise SubsystemError(f"the FMU '{Path(self.file).name}' changes its discrete states without end at one instant")

    # -- did it take its parameters? -------------------------------------------------------------------------

    def _not_taken(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the given parameters that the FMU says have another value; what cannot be read is trusted."""
        found = {}
        for name, value in given.items():
            variable = self.description.variables[name]
            if variable.causality != "parameter" or not self.read_back:
                continue
            told = self._told(variable)
            wanted = value if variable.type == "String" else numbers(self.description, variable, value)
            if told is not None and not _same(told, wanted):
                found[name] = value
        return found

    def _told(self, variable: Variable) -> Any:
        """What the FMU says of a parameter; None where it does not tell."""

        def refuse(status: int, doing: str) -> None:
            if status > 1:
                raise _ValueUnavailable

        try:
            if variable.type == "String":
                return self._text(variable, refuse)
            return Values(self.binary, [variable], refuse).read(self.pointer)
        except (_ValueUnavailable, SetupError):
            return None

    def _refused(self, forgotten: Mapping[str, Any]) -> SubsystemError:
        name, value = next(iter(forgotten.items()))
        told = self._told(self.description.variables[name])
        more = f" (and {len(forgotten) - 1} more)" if len(forgotten) > 1 else ""
        shown = told if isinstance(told, str) else told.item() if len(told) == 1 else told.tolist()
        self.body.fail(fatal=False)
        return SubsystemError(
            f"the FMU '{Path(self.file).name}' did not take the parameter '{name}' = {value!r}{more}: after "
            f"initialisation it says {shown!r}; leave the parameter out, give a value it takes, or run it all the same "
            "with read_back=False"
        )

    # -- single variables ----------------------------------------------------------------------------------------

    def set(self, variable: Variable, value: Any) -> None:
        """Set one variable by its description; text for strings, numbers for the rest."""
        reference = np.array([variable.reference], dtype=np.uint32)
        if variable.type == "String":
            if not isinstance(value, str):
                raise SetupError(f"'{variable.name}' is a string, not {value!r}")
            text = (ctypes.c_char_p * 1)(value.encode())
            extra = () if self.fmi == 2 else (1,)
            self.call("SetString", reference.ctypes.data, 1, ctypes.addressof(text), *extra)
            return
        if not is_numeric(variable, self.fmi):
            raise SetupError(f"'{variable.name}' is a {variable.type}, which cannot be set")
        self.values([variable]).write(self.pointer, numbers(self.description, variable, value))

    def get(self, variable: Variable) -> Any:
        """The value of one variable: text, bool, int or float, or a flat array."""
        if variable.type == "String":
            return self._text(variable, self.check)
        values = self.values([variable])
        if variable.shape:
            return values.read(self.pointer)
        if not (variable.is_float or variable.type == "Boolean"):
            return values.whole_number(self.pointer)
        value = values.read(self.pointer)[0]
        return float(value) if variable.is_float else bool(value)

    def _text(self, variable: Variable, check: Callable[[int, str], None]) -> str:
        reference = np.array([variable.reference], dtype=np.uint32)
        text = (ctypes.c_char_p * 1)()
        extra = () if self.fmi == 2 else (1,)
        get = self.binary.function("GetString")
        status = get(self.pointer, reference.ctypes.data, 1, ctypes.addressof(text), *extra)
        if status:
            check(status, f"reading '{variable.name}'")
        return (text[0] or b"").decode(errors="replace")

    def values(self, variables: list[Variable]) -> Values:
        """Access to several variables as one flat vector."""
        return Values(self.binary, variables, self.check)


class _ValueUnavailable(Exception):
    """The FMU does not tell a value."""


def _same(told: Any, wanted: Any) -> bool:
    """Equal up to what a tool may lose by converting units or to single precision."""
    if isinstance(told, str):
        return bool(told == wanted)
    return bool(np.allclose(told, wanted, rtol=1e-6, atol=0.0))


class Body:
    """One C instance: how far it is, the memory of its saved states, and what it takes to free it.

    A saved state refers to the body, so an instance of an earlier run lives as long as its states.
    """

    def __init__(self, binary: Binary, pointer: int, alive: list[Any]) -> None:
        self.pointer, self.used = pointer, False
        self.life = _InstanceStage()
        self.known: set[int] = set()  # memory of states, all of it
        self.spare: list[int] = []  # ... and what of it is not needed
        self._finalizer = weakref.finalize(self, _release, binary, pointer, self.known, self.life, alive)

    @property
    def alive(self) -> bool:
        """False once it is freed, or must not be touched any more."""
        return self._finalizer.alive

    @property
    def stepping(self) -> bool:
        """True once initialisation is over."""
        return self.life.stepping

    @stepping.setter
    def stepping(self, over: bool) -> None:
        self.life.stepping = over

    def fail(self, fatal: bool) -> None:
        """A call went wrong: no more steps, and after a fatal error no more calls at all."""
        self.life.broken = True
        if fatal:
            self._finalizer.detach()

    def free(self) -> None:
        """Free it now."""
        self._finalizer()


@dataclass
class _InstanceStage:
    """How far an instance is, for the one that frees it."""

    stepping: bool = False
    broken: bool = False


#: the last instance of each unpacked FMU, for those that allow one only
_alone: weakref.WeakValueDictionary[Path, Body] = weakref.WeakValueDictionary()
#: the unpacked FMUs that were ever instantiated in this process
_used: set[Path] = set()


def _release(binary: Binary, pointer: int, known: set[int], life: _InstanceStage, alive: list[Any]) -> None:
    """Free what belongs to an instance, states first; `alive` holds the callbacks that it may call while it goes."""
    if life.stepping and not life.broken:
        binary.function("Terminate")(pointer)
    free_state = "FreeFMUstate" if binary.fmi == 2 else "FreeFMUState"
    for state in known:
        holder = ctypes.c_void_p(state)  # the FMU writes a null pointer into it
        binary.function(free_state)(pointer, ctypes.addressof(holder))
    known.clear()
    binary.function("FreeInstance")(pointer)
    binary.leave()
    alive.clear()
