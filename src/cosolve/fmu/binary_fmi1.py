"""The shared library of an FMU of FMI 1.0, called by the names and arguments of FMI 2.0.

FMI 1.0 has no initialisation mode: the FMU is initialised where FMI 2.0 enters that mode, with the start values that
were set, and inputs are set afterwards. It has no event mode either: discrete states are updated by `fmiEventUpdate`,
whose first result comes from `fmiInitialize`. States cannot be saved, so methods that repeat steps are refused.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cosolve.fmu.binary import Binary, EventInfo2
from cosolve.fmu.description import CO_SIMULATION

_TERMINATED = 3  # the status kind of FMI 2.0 that FMI 1.0 does not have
_MIME = b"application/x-fmu-sharedlibrary"


class _Callbacks(ctypes.Structure):
    """`fmiCallbackFunctions`, which is passed by value."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in ("logger", "allocateMemory", "freeMemory"))


class _SlaveCallbacks(ctypes.Structure):
    """The same for co-simulation."""

    _fields_ = (*_Callbacks._fields_, ("stepFinished", ctypes.c_void_p))


class _EventInfo(ctypes.Structure):
    """`fmiEventInfo`."""

    _fields_ = (
        ("converged", ctypes.c_byte),
        ("references", ctypes.c_byte),
        ("values", ctypes.c_byte),
        ("terminate", ctypes.c_byte),
        ("next_defined", ctypes.c_byte),
        ("next", ctypes.c_double),
    )


#: Functions with other names in FMI 1.0, by kind of FMU.
_SLAVE = {"Terminate": "TerminateSlave", "Reset": "ResetSlave", "FreeInstance": "FreeSlaveInstance"}
_MODEL = {"FreeInstance": "FreeModelInstance", "GetNominalsOfContinuousStates": "GetNominalContinuousStates"}
#: Functions that only FMI 1.0 has, or with other arguments.
_ARGUMENTS: dict[str, list[Any]] = {
    "InstantiateSlave": [
        *(ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_double),
        *(ctypes.c_byte, ctypes.c_byte, _SlaveCallbacks, ctypes.c_byte),
    ],
    "InitializeSlave": [ctypes.c_void_p, ctypes.c_double, ctypes.c_byte, ctypes.c_double],
    "InstantiateModel": [ctypes.c_char_p, ctypes.c_char_p, _Callbacks, ctypes.c_byte],
    "Initialize": [ctypes.c_void_p, ctypes.c_byte, ctypes.c_double, ctypes.c_void_p],
    "EventUpdate": [ctypes.c_void_p, ctypes.c_byte, ctypes.c_void_p],
    "CompletedIntegratorStep": [ctypes.c_void_p, ctypes.c_void_p],
    "DoStep": [ctypes.c_void_p, ctypes.c_double, ctypes.c_double, ctypes.c_byte],
}


@dataclass
class _Start:
    """What is said before the initialisation, and what it gives back."""

    tolerance: float | None = None
    t0: float = 0.0
    stop: float | None = None
    info: _EventInfo | None = None


class BinaryFmi1(Binary):
    """A loaded library of FMI 1.0. `binary.function("DoStep")` takes the arguments of `fmi2DoStep`."""

    boolean = np.int8

    def __init__(self, path: Path, identifier: str, kind: str, shown: str | Path) -> None:
        super().__init__(path, 2, shown)
        self.prefix = "fmi"
        self._identifier, self._slave = identifier, kind == CO_SIMULATION
        self._names = _SLAVE if self._slave else _MODEL
        self._starts: dict[int, _Start] = {}  # by instance
        self._translated: dict[str, Callable[..., Any]] = {
            "Instantiate": self._instantiate,
            "SetupExperiment": self._set_up,
            "EnterInitializationMode": self._initialise,
            **dict.fromkeys(("ExitInitializationMode", "EnterContinuousTimeMode"), _nothing),
            "EnterEventMode": self._complete,
            "NewDiscreteStates": self._update,
            "CompletedIntegratorStep": self._step_done,
            "GetBooleanStatus": _not_terminated,
        }

    def symbol(self, name: str) -> str:
        return f"{self._identifier}_fmi{self._names.get(name, name)}"

    def function(self, name: str) -> Callable[..., Any]:
        return self._translated.get(name) or super().function(name)

    def _signature(self, name: str) -> list[Any]:
        return _ARGUMENTS.get(name) or super()._signature(name)

    def _call(self, name: str, *arguments: Any) -> Any:
        return super().function(name)(*arguments)

    # -- functions of FMI 2.0 ------------------------------------------------------------------------------------

    def _instantiate(
        self, name: bytes, kind: int, token: bytes, resources: bytes, callbacks: int, visible: int, logging: int
    ) -> int | None:
        given = _SlaveCallbacks.from_address(callbacks)  # those of FMI 2.0 begin with the same functions
        if self._slave:
            location = resources.removesuffix(b"/resources")
            made = self._call("InstantiateSlave", name, token, location, _MIME, 0.0, visible, 0, given, logging)
        else:
            made = self._call("InstantiateModel", name, token, _Callbacks.from_address(callbacks), logging)
        if made:
            self._starts[made] = _Start()
        return made  # type: ignore[no-any-return]

    def _set_up(self, instance: int, limited: int, tolerance: float, t0: float, ends: int, stop: float) -> int:
        self._starts[instance] = _Start(tolerance if limited else None, t0, stop if ends else None)
        return 0

    def _initialise(self, instance: int) -> int:
        start = self._starts[instance]
        if self._slave:
            ends = start.stop is not None
            return int(self._call("InitializeSlave", instance, start.t0, ends, start.stop if ends else 0.0))
        status = int(self._call("SetTime", instance, start.t0))
        if status > 1:
            return status
        start.info = info = _EventInfo()
        limited = start.tolerance is not None
        tolerance = start.tolerance if limited else 0.0
        return int(self._call("Initialize", instance, limited, tolerance, ctypes.addressof(info)))

    def _complete(self, instance: int) -> int:
        """Events come after a completed step, also those that interrupt one; Amesim insists on it."""
        return int(self._call("CompletedIntegratorStep", instance, ctypes.addressof(ctypes.c_byte())))

    def _update(self, instance: int, address: int) -> int:
        start, status = self._starts[instance], 0
        info, start.info = start.info, None
        if info is None:
            info = _EventInfo()
            status = int(self._call("EventUpdate", instance, 0, ctypes.addressof(info)))
        told = EventInfo2.from_address(address)
        told.again, told.terminate, told.nominals = not info.converged, info.terminate, False
        told.values = info.values or info.references
        told.next_defined, told.next = info.next_defined, info.next
        return status

    def _step_done(self, instance: int, _: int, wants: int, ends: int) -> int:
        asked = ctypes.c_byte()
        status = int(self._call("CompletedIntegratorStep", instance, ctypes.addressof(asked)))
        ctypes.c_int.from_address(wants).value = bool(asked.value)
        ctypes.c_int.from_address(ends).value = False
        return status


def _nothing(instance: int) -> int:
    """A change of mode that FMI 1.0 does not have."""
    return 0


def _not_terminated(instance: int, kind: int, address: int) -> int:
    assert kind == _TERMINATED
    ctypes.c_int.from_address(address).value = False
    return 0
