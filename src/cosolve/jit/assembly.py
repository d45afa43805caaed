"""Machine code from LLVM's own language, for code that is written by a program."""

from __future__ import annotations

from typing import Any


def assembled(code: str, name: str) -> tuple[int, Any]:
    r"""The address of the function `name` in `code`, and what must be kept in memory meanwhile.

    No operation is reordered or fused.

    >>> import ctypes
    >>> code = "define double @half(double %x) {\n %y = fmul double %x, 0.5\n ret double %y\n}"
    >>> address, keep = assembled(code, "half")
    >>> ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)(3.0)
    1.5
    """
    import llvmlite.binding as llvm  # type: ignore[import-untyped]
    import numba.core.codegen  # noqa: F401 (makes LLVM ready for this machine)

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )
    module = llvm.parse_assembly(code)
    module.triple, module.data_layout = target.triple, str(machine.target_data)
    module.verify()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return int(engine.get_function_address(name)), engine
