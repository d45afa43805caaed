"""A C function with variable arguments that formats a message like `printf` and hands the text on.

Python can be called from C with a fixed number of arguments only (ctypes), and the logger of FMI 2.0 takes those of
`printf`. Where they are is a matter of the processor and the operating system, which LLVM knows: the function made here
takes them all, has the C library format them, and calls a function with the text instead.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from functools import cache
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]

#: Bytes of a formatted message, the end mark included; what is longer is cut off.
LONGEST = 8192

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_BYTES = _I8.as_pointer()
_LIST = 32  # bytes that hold a va_list anywhere (24 on x86-64, 32 on 64-bit ARM, a pointer elsewhere)


def c_library() -> Any:
    """The C library of this process."""
    return ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)


def address_of(function: Any) -> int:
    """Where a function of ctypes is."""
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


@cache
def logger(receiver: int) -> int:
    """The address of `void f(void*, const char*, int, const char*, const char* message, ...)`.

    It calls the function at the address `receiver` with the same first four arguments and the formatted message. The
    machine code stays as long as the process.

    >>> import ctypes
    >>> kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)
    >>> receive = kind(lambda environment, name, status, category, text: print(status, text.decode()))
    >>> log = ctypes.CFUNCTYPE(None)(logger(address_of(receive)))
    >>> log(None, b"pump", 1, b"events", b"%s at t = %.2f (%d%%)", b"stopped", ctypes.c_double(1.5), 80)
    1 stopped at t = 1.50 (80%)
    """
    import llvmlite.binding as llvm  # type: ignore[import-untyped]

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(str(_module(receiver)))
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    _kept.append(engine)
    return int(engine.get_function_address("logger"))


_kept: list[Any] = []


def _module(receiver: int) -> Any:
    module = ir.Module("variadic")
    fixed = [_BYTES, _BYTES, _I32, _BYTES, _BYTES]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), fixed, var_arg=True), "logger")
    start, end = (
        ir.Function(module, ir.FunctionType(ir.VoidType(), [_BYTES]), f"llvm.va_{name}") for name in ("start", "end")
    )
    *first, message = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    arguments = builder.alloca(_I8, _LIST)
    arguments.align = 16
    text = builder.alloca(_I8, LONGEST)
    last = builder.gep(text, [ir.Constant(_I64, LONGEST - 1)])
    nothing = ir.Constant(_I8, 0)
    builder.store(nothing, text)
    with builder.if_then(builder.icmp_unsigned("!=", message, ir.Constant(_BYTES, None))):
        builder.call(start, [arguments])
        given = arguments if _by_reference() else builder.load(builder.bitcast(arguments, _BYTES.as_pointer()))
        library = c_library()
        format_ = library._vsnprintf if sys.platform == "win32" else library.vsnprintf
        kind = ir.FunctionType(_I32, [_BYTES, _I64, _BYTES, _BYTES])
        builder.call(_at(builder, address_of(format_), kind), [text, ir.Constant(_I64, LONGEST), message, given])
        builder.call(end, [arguments])
        builder.store(nothing, last)
    receive = _at(builder, receiver, ir.FunctionType(ir.VoidType(), fixed))
    builder.call(receive, [*first, text])
    builder.ret_void()
    return module


def _at(builder: Any, address: int, kind: Any) -> Any:
    return builder.inttoptr(ir.Constant(_I64, address), kind.as_pointer())


def _by_reference() -> bool:
    """Whether a `va_list` is a structure, handed over by its address; elsewhere it is a plain pointer."""
    if sys.platform == "win32":
        return False
    if platform.machine().lower() in ("x86_64", "amd64"):
        return True
    return sys.platform != "darwin" and platform.machine().lower() in ("aarch64", "arm64")
