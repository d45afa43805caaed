"""Atomic 64-bit words in memory that two processes share, for compiled code: load, store, exchange, pause.

All are sequentially consistent on every processor: who loads a word sees everything that was written before it was
stored.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from cosolve.jit.calls import cgutils, fixed

_WORD = ir.IntType(64)
_NOTHING = ir.FunctionType(ir.VoidType(), [])
_PAUSES = platform.machine() in ("x86_64", "AMD64")


def _pointer(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, _WORD.as_pointer())


def _load(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return builder.load_atomic(_pointer(builder, values[0]), "seq_cst", 8)


def _store(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    builder.store_atomic(values[1], _pointer(builder, values[0]), "seq_cst", 8)
    return context.get_dummy_value()


def _exchange(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return builder.atomic_rmw("xchg", _pointer(builder, values[0]), values[1], "seq_cst")


def _pause(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    if _PAUSES:
        builder.call(cgutils.get_or_insert_function(builder.module, _NOTHING, "llvm.x86.sse2.pause"), [])
    return context.get_dummy_value()


#: Atomic load and store of the word at an address, and atomic exchange, which gives what it was.
load: Callable[[int], int] = fixed(types.int64(types.intp), _load)
store: Callable[[int, int], None] = fixed(types.void(types.intp, types.int64), _store)
exchange: Callable[[int, int], int] = fixed(types.int64(types.intp, types.int64), _exchange)
#: Tells the processor that this is a spin loop, where it has an instruction for that.
pause: Callable[[], None] = fixed(types.void(), _pause)
