"""Compiled functions that only compiled functions call: code for their callers, and no machine code of their own.

Numba optimises every function to the end and makes machine code of it, also of one that is never called but from a
function it becomes a part of. Here such a function stays what numba's frontend made of it. Where it is linked into a
function with an entry, both are optimised together, once.
"""

# mypy: disable-error-code="no-untyped-call, misc"

from __future__ import annotations

from typing import Any

from numba import _dynfunc, types  # type: ignore[attr-defined]
from numba.core import compiler, typed_passes, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_machinery import register_pass


class _Parts(JITCodeLibrary):
    """Code of a function without entry, and of what it calls."""

    def finalize(self) -> None:
        """Nothing more is added; what this code calls is known and comes along where it is linked."""
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            self._finalized = True
            for library in dict.fromkeys(self._linking_libraries):
                self._reload_init.update(library._reload_init)
                self._final_module.link_in(library._get_module_for_linking(), preserve=True)
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage.name == "external":
                    function.linkage = "linkonce_odr"
            self._shared_module = self._final_module
        return self._shared_module


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(typed_passes.NativeLowering):
    _name = "cosolve_part_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _Parts(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        made = state["cr"]
        name = made.fndesc.qualname.split(".")[-1]
        entry = _dynfunc.make_function(made.fndesc.lookup_module(), name, name, 0, made.env, (state.library,))
        state.targetctx.insert_user_function(entry, made.fndesc, [state.library])
        state["cr"] = made._replace(cfunc=entry)
        return True


#: Steps for closures, for sums of whole arrays and for counting references: this package's functions that count none
#: have no use for them.
_OWN = f"{__package__.partition('.')[0]}."
_UNUSED = (untyped_passes.InlineClosureLikes, typed_passes.NopythonRewrites, typed_passes.IRLegalization)


class EntryCompiler(compiler.CompilerBase):
    """Numba's way from a function to machine code, without the steps that this function has no use for."""

    lowering: Any = typed_passes.NativeLowering

    def define_pipelines(self) -> list[Any]:
        """One pipeline, in numba's order."""
        passes = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [
            (self.lowering if step is typed_passes.NativeLowering else step, what)
            for step, what in passes.passes
            if step not in _UNUSED or self.state.flags.nrt or not self.state.func_id.modname.startswith(_OWN)
        ]
        passes.finalize()
        return [passes]


class PartCompiler(EntryCompiler):
    """The same to code for its callers."""

    lowering = _PartLowering


def of_any_value(dispatcher: Any) -> Any:
    """Compiled once for whole numbers of any value: numba would do it anew for every number that stands in a call."""
    typed = dispatcher.get_call_template

    def typed_without_values(arguments: Any, named: Any) -> Any:
        return typed([types.unliteral(kind) for kind in arguments], {k: types.unliteral(v) for k, v in named.items()})

    dispatcher.get_call_template = typed_without_values
    return dispatcher
