"""Where the machine code of a law is: from its trace, or from numba (`interface/law_partials.py`)."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from cosolve.basics.arrays import Vector
from cosolve.errors import SubsystemError
from cosolve.interface.law_partials import compiled_law, compiled_partials
from cosolve.interface.plan import Block
from cosolve.interface.traced_law import law_differs, law_module, traced_law


@dataclass
class Law:
    """Addresses of `law(arguments, values)` and `partials(arguments, nominal, values, slopes)`; 0: not wanted."""

    block: Block
    values: int
    partials: int = 0
    module: Any = None  # of a traced law
    captures: bool = False

    def begin(self) -> bool:
        """False where the law has changed since it was traced."""
        return self.module is None or self.module.unchanged()

    def end(self, y: Vector) -> None:
        """Raise where machine code and Python differ for these outputs."""
        if self.module is None:
            return
        found = law_differs(self.block, self.module, y[self.block.y_index])
        if found is not None:
            raise SubsystemError(f"{self.block.label}: {found}; compiled=False runs it in Python")


def obstacle(block: Block) -> str | None:
    """Why a law stays in Python."""
    if is_compiled(block.function):
        return None
    found = traced_law(block)
    return found if isinstance(found, str) else None


def law_code(block: Block, partials: bool, y: Vector | None) -> Law | str:
    """The machine code of a law, or why it stays in Python; `y` are outputs to compare it with Python."""
    from cosolve.jit import raising_address

    how = block.function, block.takes, block.gives
    jitted = is_compiled(block.function)
    found = "" if jitted and partials else traced_law(block)  # partials of jitted laws are exact
    made = found if isinstance(found, str) else law_module(block, found, None if y is None else y[block.y_index])
    if not isinstance(made, str) and not isinstance(found, str):
        return Law(block, made.address("values"), made.address("partials"), made, found.captures)
    if not jitted:
        return str(made)
    return Law(block, raising_address(compiled_law(*how)), raising_address(compiled_partials(*how)) if partials else 0)


def is_compiled(function: object) -> bool:
    """True for functions jitted by numba, and for C functions (`ctypes`) of doubles that return a double.

    >>> is_compiled(lambda x: x)
    False
    """
    takes = getattr(function, "argtypes", None)
    if takes is not None:
        return all(kind is ctypes.c_double for kind in (getattr(function, "restype", None), *takes))
    return hasattr(function, "py_func") and hasattr(function, "nopython_signatures")
