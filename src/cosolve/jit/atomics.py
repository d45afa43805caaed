"""Atomic 64-bit words in memory that two processes share, for compiled code: load, store, exchange, pause.

All are sequentially consistent on every processor: who loads a word sees everything that was written before it was
stored.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic as _intrinsic

intrinsic: Any = _intrinsic  # its functions are typed by what they give to compiled code
_WORD = ir.IntType(64)
_NOTHING = ir.FunctionType(ir.VoidType(), [])
_PAUSES = platform.machine() in ("x86_64", "AMD64")


@intrinsic
def load(typing, address):
    """Atomic load of the word at an address."""

    def generate(context, builder, signature, values):
        return builder.load_atomic(builder.inttoptr(values[0], _WORD.as_pointer()), "seq_cst", 8)

    return types.int64(types.intp), generate


@intrinsic
def store(typing, address, value):
    """Atomic store of the word at an address."""

    def generate(context, builder, signature, values):
        builder.store_atomic(values[1], builder.inttoptr(values[0], _WORD.as_pointer()), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(types.intp, types.int64), generate


@intrinsic
def exchange(typing, address, value):
    """Atomic exchange of the word at an address; what it was."""

    def generate(context, builder, signature, values):
        return builder.atomic_rmw("xchg", builder.inttoptr(values[0], _WORD.as_pointer()), values[1], "seq_cst")

    return types.int64(types.intp, types.int64), generate


@intrinsic
def pause(typing):
    """Tell the processor that this is a spin loop, where it has an instruction for that."""

    def generate(context, builder, signature, values):
        if _PAUSES:
            builder.call(get_or_insert_function(builder.module, _NOTHING, "llvm.x86.sse2.pause"), [])
        return context.get_dummy_value()

    return types.void(), generate
