"""Machine code from LLVM's own language, for code that is written by a program."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from cosolve.jit import files

#: Files of machine code on disk at most; the oldest go first.
_FILES = 2000


def assembled(code: str, name: str) -> tuple[int, Any]:
    r"""The address of the function `name` in `code`, and what must be kept in memory meanwhile.

    No operation is reordered or fused.

    >>> import ctypes
    >>> code = "define double @half(double %x) {\n %y = fmul double %x, 0.5\n ret double %y\n}"
    >>> address, keep = assembled(code, "half")
    >>> ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)(3.0)
    1.5
    """
    engine = loaded(_object(code))
    return int(engine.get_function_address(name)), engine


def loaded(machine_code: bytes) -> Any:
    """An engine of LLVM with a copy of this machine code in memory."""
    import llvmlite.binding as llvm  # type: ignore[import-untyped]

    module = llvm.parse_assembly("")
    module.triple = llvm.get_process_triple()
    engine = llvm.create_mcjit_compiler(module, _target())  # which becomes the engine's
    engine.add_object_file(llvm.ObjectFileRef.from_data(machine_code))
    engine.finalize_object()
    return engine


@cache
def kept(code: str) -> bytes:
    r"""Machine code of `code`, from disk where another process has made it on such a machine.

    >>> len(kept("define double @same(double %x) {\n ret double %x\n}")) > 0
    True
    """
    import llvmlite
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    about = f"{llvmlite.__version__} {llvm.llvm_version_info} {llvm.get_host_cpu_name()} {features}\n{code}"
    file = shelf() / f"{sha256(about.encode()).hexdigest()}.o"
    with suppress(OSError):
        return files.read(file)
    made = _object(code)
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}")
        try:
            part.write_bytes(files.packed(made))
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)
        there = sorted(file.parent.glob("*.o"), key=lambda one: one.stat().st_mtime)
        for old in there[: max(0, len(there) - _FILES)]:
            old.unlink()
    return made


def shelf() -> Path:
    """The folder of machine code: in NUMBA_CACHE_DIR, or in the cache of the user."""
    caches = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "cosolve" / "code"


_machine = cache(lambda: _target())


def _target() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=3, jit=True)


def _object(code: str) -> bytes:
    import llvmlite.binding as llvm

    machine = _machine()
    module = llvm.parse_assembly(code)
    module.triple, module.data_layout = llvm.get_process_triple(), str(machine.target_data)
    module.verify()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))
