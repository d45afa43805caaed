"""Records in memory (`basics/records.py`) in compiled code: their fields by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending, types
from numba.core.typing.templates import AttributeTemplate

if TYPE_CHECKING:
    from cosolve.basics.records import Record


_numba: Any = extending
_WORD, _DOUBLE = ir.IntType(64), ir.DoubleType()
_KINDS: dict[str, tuple[Any, Any]] = {"int": (types.int64, _WORD), "float": (types.float64, _DOUBLE)}


R = TypeVar("R", bound="Record")


class _RecordType(types.Type):
    """What compiled code knows a record as: an address, and the fields behind it."""

    def __init__(self, kind: type[Record]) -> None:
        self.fields = {name: (k, *_KINDS[what]) for k, (name, what) in enumerate(kind.__annotations__.items())}
        super().__init__(name=f"{kind.__module__}.{kind.__qualname__}")


class _Address(_numba.models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _WORD)


class _Fields(AttributeTemplate):
    key = _RecordType

    def generic_resolve(self, kind: Any, name: str) -> Any:  # type: ignore[override]
        """The type of a field, None where there is no such field."""
        return kind.fields[name][1] if name in kind.fields else None


def _place(builder: Any, kind: Any, address: Any, name: str) -> Any:
    k, _, stored = kind.fields[name]
    return builder.gep(builder.inttoptr(address, stored.as_pointer()), [ir.Constant(_WORD, k)])


def _get(context: Any, builder: Any, kind: Any, address: Any, name: str) -> Any:
    return builder.load(_place(builder, kind, address, name))


def _set(context: Any, builder: Any, signature: Any, values: Any, name: str) -> None:
    builder.store(values[1], _place(builder, signature.args[0], values[0], name))


_numba.register_model(_RecordType)(_Address)
_numba.infer_getattr(_Fields)
_numba.lower_getattr_generic(_RecordType)(_get)
_numba.lower_setattr_generic(_RecordType)(_set)


def record_at(kind: type[R]) -> Callable[[int], R]:
    """A function for compiled code that gives the record of this kind at an address.

    >>> import numpy as np
    >>> from cosolve.basics.records import Record
    >>> from cosolve.jit import entry
    >>> class Tank(Record):
    ...     fillings: int
    ...     level: float
    >>> tank_at = record_at(Tank)
    >>> @entry
    ... def fill(address: int, by: float) -> float:
    ...     tank = tank_at(address)
    ...     tank.fillings += 1
    ...     tank.level += by
    ...     return tank.level
    >>> memory = np.zeros((), Tank.dtype)
    >>> fill(memory.ctypes.data, 0.5), fill(memory.ctypes.data, 0.25), int(memory["fillings"])
    (0.5, 0.75, 2)
    """
    made = _RecordType(kind)

    def at(typing: Any, address: Any) -> Any:
        return made(types.int64), lambda context, builder, signature, values: values[0]

    found: Callable[[int], R] = _numba.intrinsic(at)
    return found
