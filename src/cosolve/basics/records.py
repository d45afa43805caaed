"""Records in memory with named fields of eight bytes, whole numbers and doubles, shared with compiled code."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np


class Record:
    """A record: the annotations of a derived class, `int` or `float`, are its fields in their order.

    In Python a record is an array of `dtype`; in compiled code `cosolve.jit.record_at` gives the one at an address.

    >>> class Tank(Record):
    ...     fillings: int
    ...     level: float
    >>> Tank.dtype.names, Tank.dtype.itemsize
    (('fillings', 'level'), 16)
    """

    dtype: ClassVar[np.dtype[np.void]]

    def __init_subclass__(cls) -> None:
        kinds = {"int": np.int64, "float": np.float64}
        cls.dtype = np.dtype([(name, kinds[kind]) for name, kind in cls.__annotations__.items()])


def fill(record: Any, **fields: Any) -> None:
    """Set fields of a record in memory: numbers, or arrays by their address."""
    for name, value in fields.items():
        record[name] = value.ctypes.data if isinstance(value, np.ndarray) else value
