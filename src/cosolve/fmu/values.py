"""Variables of an FMU as one flat vector of doubles: grouped by type, one C call per group.

Booleans and whole numbers (enumerations too) travel as floats; what is set is rounded to the nearest whole number, and
a number that the type cannot hold is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.wording import listed
from cosolve.errors import SetupError, SubsystemError
from cosolve.fmu.binary import Binary
from cosolve.fmu.description import Variable

_BITS = (8, 16, 32, 64)
#: type -> suffix of the C functions, by FMI version
_SUFFIX: dict[int, dict[str, str]] = {
    2: {"Float64": "Real", "Int32": "Integer", "Enumeration": "Integer", "Boolean": "Boolean"},
    3: {
        **{f"{kind}{bits}": f"{kind}{bits}" for kind in ("Int", "UInt") for bits in _BITS},
        "Float64": "Float64",
        "Float32": "Float32",
        "Enumeration": "Int64",
        "Boolean": "Boolean",
    },
}
#: suffix -> how C stores it; Booleans are whole numbers in FMI 2.0 and bytes in FMI 3.0
_MEMORY: dict[str, Any] = {
    **{f"{kind}{bits}": f"{kind.lower()}{bits}" for kind in ("Int", "UInt") for bits in _BITS},
    "Real": np.float64,
    "Integer": np.int32,
    "Float64": np.float64,
    "Float32": np.float32,
}
_LARGEST = 2.0**53  # whole numbers beyond are not exact as floats


def is_numeric(variable: Variable, fmi: int) -> bool:
    """True for what can be carried as floats.

    >>> is_numeric(Variable("x", 0, "Float64"), 2), is_numeric(Variable("s", 1, "String"), 3)
    (True, False)
    """
    return variable.type in _SUFFIX[fmi]


class _Group:
    """Variables of one C type: their references, a buffer, and their places in the flat vector."""

    def __init__(self, binary: Binary, suffix: str, variables: Sequence[Variable], places: list[int]) -> None:
        self.getter, self.setter = binary.function(f"Get{suffix}"), binary.function(f"Set{suffix}")
        self.names = [variable.name for variable in variables]
        self.labels = _labels(variables)
        self.references = np.array([variable.reference for variable in variables], dtype=np.uint32)
        self.boolean = suffix == "Boolean"
        memory = (np.int32 if binary.fmi == 2 else np.bool_) if self.boolean else _MEMORY[suffix]
        self.buffer = np.zeros(len(places), dtype=memory)
        self.places = np.array(places, dtype=np.intp)
        head = (self.references.ctypes.data, len(self.references), self.buffer.ctypes.data)
        self.arguments = head if binary.fmi == 2 else (*head, len(self.buffer))
        self.limits: tuple[float, float] | None = None
        if self.buffer.dtype.kind in "iu" and not self.boolean:
            range_ = np.iinfo(self.buffer.dtype)
            self.limits = max(float(range_.min), -_LARGEST), min(float(range_.max), _LARGEST)

    def whole(self, part: Vector) -> Vector:
        """The nearest whole numbers; raises where the type has none."""
        assert self.limits is not None
        near = np.rint(part)
        outside = np.flatnonzero(~((near >= self.limits[0]) & (near <= self.limits[1])))
        if len(outside):
            value, name = float(part[outside[0]]), self.labels[outside[0]]
            low, high = (f"{limit:.0f}" for limit in self.limits)
            raise SubsystemError(f"'{name}' takes whole numbers from {low} to {high}, not {value:.9g}")
        return near


class Values:
    """Reads and writes these variables of one instance; `check(status, call)` turns a bad status into an error."""

    def __init__(self, binary: Binary, variables: Sequence[Variable], check: Callable[[int, str], None]) -> None:
        self.variables, self._check = tuple(variables), check
        grouped: dict[str, tuple[list[Variable], list[int]]] = {}
        place = 0
        for variable in variables:
            if not is_numeric(variable, binary.fmi):
                raise SetupError(f"'{variable.name}' is a {variable.type}, which cannot be carried as numbers")
            members, places = grouped.setdefault(_SUFFIX[binary.fmi][variable.type], ([], []))
            members.append(variable)
            places += range(place, place + variable.length)
            place += variable.length
        self.length = place
        self.labels = _labels(variables)
        self._groups = [_Group(binary, suffix, *found) for suffix, found in grouped.items()]
        self._only = len(self._groups) == 1 and self._groups[0].buffer.dtype == np.float64

    def read(self, instance: int) -> Vector:
        """The values now."""
        if self._only:
            group = self._groups[0]
            status = group.getter(instance, *group.arguments)
            if status:
                self._check(status, f"reading {listed(group.names, 4)}")
            copy: Vector = group.buffer.copy()
            return copy
        flat = np.empty(self.length)
        for group in self._groups:
            status = group.getter(instance, *group.arguments)
            if status:
                self._check(status, f"reading {listed(group.names, 4)}")
            flat[group.places] = group.buffer
        return flat

    def write(self, instance: int, flat: Vector) -> None:
        """Set all of them."""
        for group in self._groups:
            part = flat if self._only else flat[group.places]
            if group.boolean:
                group.buffer[:] = part > 0.5
            elif group.limits is not None:
                group.buffer[:] = group.whole(part)
            else:
                group.buffer[:] = part
            status = group.setter(instance, *group.arguments)
            if status:
                self._check(status, f"setting {listed(group.names, 4)}")


def _labels(variables: Sequence[Variable]) -> list[str]:
    """A name for each number."""
    return [v.name if not v.shape else f"{v.name}[{k}]" for v in variables for k in range(v.length)]
