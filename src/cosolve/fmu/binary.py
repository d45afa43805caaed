"""The shared library of an FMU: its C functions with their signatures, and their raw addresses.

Functions are looked up when first used, so an FMU that leaves out what it never offered still loads. Arrays are passed
as addresses: frequent callers keep their arrays and their addresses.

Some FMUs keep global variables that freeing an instance spoils: a second instance then crashes or hangs, unless the
library is loaded anew between the two. So it is, for the first instance after the last one has gone (while others live,
it stays as it is). Addresses change with that.

A library that embeds Python runs in the interpreter of this process. There Ctrl-C would be raised inside the FMU, whose
wrapper takes any exception for a fatal error: signals are held back during its calls (`embeds_python`).
"""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from cosolve.basics.signals import uninterrupted
from cosolve.errors import SetupError

_CODES: dict[str, Any] = {
    "p": ctypes.c_void_p,  # instances, states, arrays, results
    "d": ctypes.c_double,
    "i": ctypes.c_int,  # FMI 2.0 Booleans and enumerations
    "b": ctypes.c_bool,  # FMI 3.0 Booleans
    "z": ctypes.c_size_t,
    "s": ctypes.c_char_p,
    "u": ctypes.c_uint32,
}

#: function -> arguments; all return a status but those in _RETURNS.
_ARGUMENTS_2 = {
    "Instantiate": "sisspii",
    "FreeInstance": "p",
    "GetVersion": "",
    "SetDebugLogging": "pizp",
    "SetupExperiment": "piddid",
    **dict.fromkeys(("EnterInitializationMode", "ExitInitializationMode", "Terminate", "Reset", "EnterEventMode"), "p"),
    **{f"{verb}{kind}": "ppzp" for verb in ("Get", "Set") for kind in ("Real", "Integer", "Boolean", "String")},
    **dict.fromkeys(("GetFMUstate", "SetFMUstate", "FreeFMUstate"), "pp"),
    "SerializedFMUstateSize": "ppp",
    "SerializeFMUstate": "pppz",
    "DeSerializeFMUstate": "ppzp",
    "GetDirectionalDerivative": "ppzpzpp",
    **dict.fromkeys(("SetRealInputDerivatives", "GetRealOutputDerivatives"), "ppzpp"),
    "DoStep": "pddi",
    **dict.fromkeys(("GetRealStatus", "GetBooleanStatus"), "pip"),
    "NewDiscreteStates": "pp",
    "EnterContinuousTimeMode": "p",
    "CompletedIntegratorStep": "pipp",
    "SetTime": "pd",
    **dict.fromkeys(("SetContinuousStates", "GetContinuousStates", "GetDerivatives"), "ppz"),
    **dict.fromkeys(("GetEventIndicators", "GetNominalsOfContinuousStates"), "ppz"),
}
_ARGUMENTS_3 = {
    "InstantiateCoSimulation": "sssbbbbpzppp",
    "InstantiateModelExchange": "sssbbpp",
    "FreeInstance": "p",
    "GetVersion": "",
    "SetDebugLogging": "pbzp",
    "EnterInitializationMode": "pbddbd",
    **dict.fromkeys(("ExitInitializationMode", "Terminate", "Reset", "EnterEventMode", "EnterStepMode"), "p"),
    **dict.fromkeys(("EnterConfigurationMode", "ExitConfigurationMode", "EnterContinuousTimeMode"), "p"),
    **{
        f"{verb}{kind}": "ppzpz"
        for verb in ("Get", "Set")
        for kind in ("Float32", "Float64", "Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64")
    },
    **{f"{verb}{kind}": "ppzpz" for verb in ("Get", "Set") for kind in ("Boolean", "String")},
    **dict.fromkeys(("GetFMUState", "SetFMUState", "FreeFMUState"), "pp"),
    "SerializedFMUStateSize": "ppp",
    "SerializeFMUState": "pppz",
    "DeserializeFMUState": "ppzp",
    **dict.fromkeys(("GetDirectionalDerivative", "GetAdjointDerivative"), "ppzpzpzpz"),
    "GetOutputDerivatives": "ppzppz",
    "DoStep": "pddbpppp",
    "UpdateDiscreteStates": "ppppppp",
    "CompletedIntegratorStep": "pbpp",
    "SetTime": "pd",
    **dict.fromkeys(("SetContinuousStates", "GetContinuousStates", "GetContinuousStateDerivatives"), "ppz"),
    **dict.fromkeys(("GetEventIndicators", "GetNominalsOfContinuousStates"), "ppz"),
    **dict.fromkeys(("GetNumberOfEventIndicators", "GetNumberOfContinuousStates"), "pp"),
}
_RETURNS: dict[str, Any] = {
    **dict.fromkeys(("Instantiate", "InstantiateCoSimulation", "InstantiateModelExchange"), ctypes.c_void_p),
    **dict.fromkeys(("InstantiateSlave", "InstantiateModel"), ctypes.c_void_p),
    "FreeInstance": None,
    "GetVersion": ctypes.c_char_p,
}


class EventInfo2(ctypes.Structure):
    """`fmi2EventInfo`."""

    _fields_ = (
        ("again", ctypes.c_int),
        ("terminate", ctypes.c_int),
        ("nominals", ctypes.c_int),
        ("values", ctypes.c_int),
        ("next_defined", ctypes.c_int),
        ("next", ctypes.c_double),
    )


class _Image:
    """A library in memory, shared by all that use the same file."""

    def __init__(self, path: str) -> None:
        self.path, self.library = path, ctypes.CDLL(path)
        self.instances, self.spoilt = 0, False
        self.embeds_python = _embeds_python(path)
        self.users: weakref.WeakSet[Binary] = weakref.WeakSet()

    def renew(self) -> None:
        """Load it anew; there is no instance."""
        import _ctypes

        getattr(_ctypes, "FreeLibrary" if os.name == "nt" else "dlclose")(self.library._handle)
        self.library, self.spoilt = ctypes.CDLL(self.path), False
        for user in self.users:
            user.rebind()


def _embeds_python(path: str) -> bool:
    """True where the library calls a Python interpreter in its process."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(b"PyGILState_Ensure") >= 0 or content.find(b"Py_Initialize") >= 0


_images: dict[str, _Image] = {}
_lock = RLock()  # the collector may free an instance at any moment, also inside


def _finalise_hosts_of_python() -> None:
    """At exit, when instances are freed: let libraries that were made by pythonfmu go of their interpreter.

    Their destructor function does so too, at the end of the process, through a pointer that has been freed by then: the
    process aborts now and then. After this call the pointer is empty. Unloading such a library has no effect. An
    instance that met a fatal error is never freed; it is not called any more either.
    """
    for image in _images.values():
        if hasattr(image.library, "finalizePythonInterpreter"):
            image.library.finalizePythonInterpreter()


#: Finalisers run in the reverse order of their making, those of instances before this one.
weakref.finalize(_Image, _finalise_hosts_of_python)


class Binary:
    """A loaded library. `binary.function("DoStep")` is `fmi2DoStep` or `fmi3DoStep` with its argument types."""

    boolean: Any = np.int32  # how C stores a Boolean

    def __init__(self, path: Path, fmi: int, shown: str | Path) -> None:
        self.fmi, self.shown = fmi, shown
        self.prefix = f"fmi{fmi}"
        if fmi == 3:
            self.boolean = np.bool_
        self._arguments = _ARGUMENTS_2 if fmi == 2 else _ARGUMENTS_3
        self._functions: dict[str, Any] = {}  # the functions of ctypes
        self._given: dict[str, Callable[..., Any]] = {}  # what `function` gave: them, or with signals held back
        try:
            with _lock:
                if str(path) not in _images:
                    _images[str(path)] = _Image(str(path))
                self._image = _images[str(path)]
                self._image.users.add(self)
        except OSError as error:
            raise SetupError(
                f"the library of '{shown}' does not load: {error}; a library it needs may be missing"
            ) from None

    @property
    def embeds_python(self) -> bool:
        """True where the library calls a Python interpreter in this process."""
        return self._image.embeds_python

    @property
    def _library(self) -> ctypes.CDLL:
        return self._image.library

    def enter(self) -> None:
        """An instance is about to be made."""
        with _lock:
            if self._image.spoilt and not self._image.instances:
                self._image.renew()
            self._image.instances += 1

    def leave(self) -> None:
        """An instance was freed, or there was none."""
        with _lock:
            self._image.instances -= 1
            self._image.spoilt = True

    def rebind(self) -> None:
        """Let the functions that were given out lead to the library as it is loaded now."""
        for name, function in self._functions.items():
            address = ctypes.cast(getattr(self._library, self.symbol(name)), ctypes.c_void_p).value
            ctypes.c_void_p.from_address(ctypes.addressof(function)).value = address

    def symbol(self, name: str) -> str:
        """The name of a function in the library."""
        return self.prefix + name

    def _signature(self, name: str) -> list[Any]:
        """The types of its arguments."""
        return [_CODES[code] for code in self._arguments[name]]

    def function(self, name: str) -> Callable[..., Any]:
        """The C function, by its name without the prefix."""
        given = self._given.get(name)
        if given is None:
            try:
                found = getattr(self._library, self.symbol(name))
            except AttributeError:
                raise SetupError(
                    f"the library of '{self.shown}' lacks the function {self.symbol(name)}, which its description "
                    "promises; export the FMU again"
                ) from None
            found.argtypes = self._signature(name)
            found.restype = _RETURNS.get(name, ctypes.c_int)
            self._functions[name] = found
            given = self._given[name] = uninterrupted(found) if self.embeds_python else found
        return given

    @property
    def addresses(self) -> dict[str, int]:
        """The raw addresses of all FMI functions that the library has, by their C names in FMI 2.0 or 3.0."""
        found = {}
        for name in self._arguments:
            pointer = getattr(self._library, self.symbol(name), None)
            if pointer is not None:
                found[f"fmi{self.fmi}{name}"] = ctypes.cast(pointer, ctypes.c_void_p).value or 0
        return found
