"""What the package looks up on subsystems by name is described on the base class."""

import ast
from pathlib import Path

import cosolve as cs
from cosolve.subsystem.base import CAPABILITIES, Subsystem

SOURCE = Path(cs.__file__).parent
#: Names under which source code holds a subsystem.
HELD_AS = {"subsystem", "part", "inner", "leader", "fmu", "s"}
#: Looked up on objects that are not subsystems, for the error that says so.
OTHERS = {"way_to_subsystem"}


def described() -> set[str]:
    known = set(dir(Subsystem))
    for base in Subsystem.__mro__:
        known |= set(vars(base).get("__annotations__", {}))
    return known


def lookups(text: str) -> list[tuple[int, str, str]]:
    """Line, subsystem and attribute of every `getattr` and `hasattr` with a constant name."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
            target, name = node.args[:2]
            holder = target.id if isinstance(target, ast.Name) else getattr(target, "attr", "")
            if holder.lstrip("_") in HELD_AS and isinstance(name, ast.Constant):
                found.append((node.lineno, holder, name.value))
    return found


def undescribed(text: str) -> list[tuple[int, str, str]]:
    known = described() | OTHERS
    return [(line, holder, name) for line, holder, name in lookups(text) if name not in known and name[:2] != "__"]


def test_nothing_is_looked_up_on_a_subsystem_that_its_base_class_does_not_describe():
    looked_up = 0
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        looked_up += len(lookups(text))
        assert undescribed(text) == [], path
    assert looked_up > 15  # the names above are still those in use


def test_it_sees_a_lookup_that_is_not_described():
    assert undescribed("getattr(subsystem, 'secret', None)") == [(1, "subsystem", "secret")]
    assert undescribed("hasattr(self.subsystem, 'secret')") == [(1, "subsystem", "secret")]
    assert undescribed("getattr(subsystem, 'save', None)") == []


def test_every_method_of_a_capability_is_described():
    for methods, _ in CAPABILITIES.values():
        assert set(methods) <= described()
