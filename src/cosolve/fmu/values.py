"""Variables of an FMU as one flat vector of doubles: grouped by type, one C call per group.

Booleans and whole numbers (enumerations too) travel as floats; a number that the type cannot hold is refused. What is
set is rounded to the nearest whole number, since iterations and difference quotients try values near those; a value
that counts and is none is refused (`Rounding`), so that results never say anything else than what the FMU got.
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
#: suffix -> how C stores it; Booleans as the library stores them
_MEMORY: dict[str, Any] = {
    **{f"{kind}{bits}": f"{kind.lower()}{bits}" for kind in ("Int", "UInt") for bits in _BITS},
    "Real": np.float64,
    "Integer": np.int32,
    "Float64": np.float64,
    "Float32": np.float32,
}
_LARGEST = 2.0**53 - 1.0  # whole numbers beyond are not exact as floats
_WHOLE = 1e-6  # relative: values as near as this to a whole number are meant to be one


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
        memory = binary.boolean if self.boolean else _MEMORY[suffix]
        self.buffer = np.zeros(len(places), dtype=memory)
        self.places = np.array(places, dtype=np.intp)
        head = (self.references.ctypes.data, len(self.references), self.buffer.ctypes.data)
        self.arguments = head if binary.fmi == 2 else (*head, len(self.buffer))
        self.limits: tuple[float, float] | None = None
        self.wide = self.buffer.dtype.kind in "iu" and self.buffer.dtype.itemsize == 8
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

    def refuse_beyond(self) -> None:
        """Raise where a value that was read is not the same number as a float."""
        for name, value in zip(self.labels, self.buffer.tolist(), strict=True):
            if abs(value) > _LARGEST:
                raise SubsystemError(
                    f"'{name}' is {value}, and whole numbers beyond 2**53 cannot be exchanged exactly; leave it out of "
                    "the ports (inputs=, outputs=), fmu.get reads it"
                )


class Rounding:
    """Refuses inputs of whole numbers that are given others, once it is sure that the value counts.

    While a step is repeated its inputs may be anything; the last subsystem step is the one that counts. So what was
    rounded in a step that may be repeated is kept until the next one begins.
    """

    def __init__(self) -> None:
        self._waiting: tuple[float, str] | None = None

    def begin(self, t0: float) -> None:
        """A step from `t0` begins: the one before it counts."""
        if self._waiting is not None and t0 > self._waiting[0]:
            sentence, self._waiting = self._waiting[1], None
            raise SubsystemError(sentence)

    def end(self, t0: float, values: Values, counts: bool) -> None:
        """A step from `t0` was advanced with inputs that were set by `values`."""
        self._waiting = None if values.rounded is None else (t0, values.rounded)
        if counts and values.rounded is not None:
            self.begin(np.inf)


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
        negated = np.array([v.negated for v in variables for _ in range(v.length)], dtype=bool)
        self._negated = np.flatnonzero(negated)  # and what their value and that of their reference add up to
        self._sums = np.array([float(v.type == "Boolean") for v in variables if v.negated for _ in range(v.length)])
        self._only = len(self._groups) == 1 and self._groups[0].buffer.dtype == np.float64 and not negated.any()
        #: what is wrong with values that were set last and are no whole numbers; None where all were
        self.rounded: str | None = None

    @property
    def may_round(self) -> bool:
        """False where all of them are 64-bit floats."""
        return not self._only

    def whole_number(self, instance: int) -> int:
        """The value of a single whole number, however large."""
        group = self._groups[0]
        status = group.getter(instance, *group.arguments)
        if status:
            self._check(status, f"reading {listed(group.names, 4)}")
        value = int(group.buffer[0])
        return -value if self.variables[0].negated else value

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
            if group.wide:
                group.refuse_beyond()
            flat[group.places] = group.buffer
        flat[self._negated] = self._sums - flat[self._negated]
        return flat

    def write(self, instance: int, flat: Vector) -> None:
        """Set all of them."""
        if self._only:
            group = self._groups[0]
            group.buffer[:] = flat
            status = group.setter(instance, *group.arguments)
            if status:
                self._check(status, f"setting {listed(group.names, 4)}")
            return
        self.rounded = None
        if len(self._negated):
            flat = np.array(flat, dtype=np.float64)
            flat[self._negated] = self._sums - flat[self._negated]
        for group in self._groups:
            part = flat[group.places]
            if group.boolean:
                group.buffer[:] = part > 0.5
                self._note_rounding(group, part)
            elif group.limits is not None:
                group.buffer[:] = group.whole(part)
                self._note_rounding(group, part)
            else:
                group.buffer[:] = part
            status = group.setter(instance, *group.arguments)
            if status:
                self._check(status, f"setting {listed(group.names, 4)}")

    def _note_rounding(self, group: _Group, part: Vector) -> None:
        off = np.abs(part - group.buffer) > _WHOLE * np.maximum(1.0, np.abs(part))
        if off.any():
            k = int(np.argmax(off))
            kind = "0 or 1" if group.boolean else "whole numbers"
            self.rounded = (
                f"'{group.labels[k]}' takes {kind} and was given {part[k]:.9g}, which is none; let a law round it, "
                "system.law(..., round, of=...), or connect what is"
            )


def _labels(variables: Sequence[Variable]) -> list[str]:
    """A name for each number."""
    return [v.name if not v.shape else f"{v.name}[{k}]" for v in variables for k in range(v.length)]
