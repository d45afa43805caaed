"""Public names that are listed in a stub (`.pyi`) and imported when they are first used.

Type checkers and the running program read the same list, and a module with many names loads quickly.
"""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def names_in_stub(module: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` for a module, from the relative imports in the stub beside it.

    >>> load, _, names = names_in_stub("cosolve.plot", import_module("cosolve.plot").__file__)
    >>> "draw_field" in names, load("draw_field").__name__
    (True, 'draw_field')
    """
    package = module if file.endswith("__init__.py") else module.rpartition(".")[0]
    with open(f"{file.removesuffix('.py')}.pyi", encoding="utf-8") as stub:
        imports = [node for node in ast.parse(stub.read()).body if isinstance(node, ast.ImportFrom)]
    module_of = {alias.name: node.module for node in imports for alias in node.names}

    def load(name: str) -> Any:
        if name not in module_of:  # with name and obj Python adds "Did you mean: 'simulate'?"
            raise AttributeError(f"module '{module}' has no attribute {name!r}", name=name, obj=sys.modules[module])
        inside = module_of[name]
        value = getattr(import_module(f"{package}.{inside}"), name) if inside else import_module(f"{package}.{name}")
        setattr(sys.modules[module], name, value)
        return value

    def listed() -> list[str]:
        return sorted({*module_of, *(n for n in vars(sys.modules[module]) if n.startswith("__") and n.endswith("__"))})

    return load, listed, sorted(module_of)
