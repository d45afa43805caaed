"""Are the public names documented? `numpydoc.validate` reads every docstring that a user can ask for.

    python -m tools.docstrings                 what is missing, a line each, and the counts; fails where anything is
    python -m tools.docstrings --only method.  the same for the names whose module or name contains this

Public are the names of `cosolve.__all__`, those of the namespaces (`cs.fmi`, ...), the classes of what
they return, and the public methods and properties of these classes. Each has a summary in one line; each argument has a
type and a description; what is returned is described; sections have the names and the order of numpydoc. Names of
`__all__` have an example.

A method that implements one of a base class with the same arguments needs no text of its own.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from numpydoc.docscrape import get_doc_object
from numpydoc.validate import Validator, validate
from tools.reference import NAMESPACES

#: What numpydoc looks for (its documentation lists the codes); those of pure form are left out.
CHECKS = frozenset(
    [
        *("GL05", "GL06", "GL07", "GL08", "GL10"),  # tabs, unknown sections, their order, no docstring, directives
        *("SS01", "SS03", "SS04", "SS06"),  # a summary, with a period, in one line
        *("PR01", "PR02", "PR03", "PR04", "PR05", "PR07", "PR10"),  # every argument: there, typed, described
        *("RT01", "RT03", "YD01"),  # what comes back is described
    ]
)

#: Classes of what public functions return, which have no name at the top.
RETURNED = (
    "cosolve.result.result:Stats",
    "cosolve.analysis.advice:Advice",
    "cosolve.analysis.advice:Finding",
    "cosolve.analysis.convergence:Convergence",
    "cosolve.analysis.jacobians:JacobianFinding",
    "cosolve.analysis.linearisation:Linearisation",
    "cosolve.analysis.order:OrderEstimate",
    "cosolve.analysis.structure:CouplingStructure",
    "cosolve.accuracy.disturbed:Estimate",
    "cosolve.accuracy.amplification:AmplificationMatrix",
    "cosolve.sweeps.dataset:FailedRun",
    "cosolve.fmu.findings:Finding",
    "cosolve.fmu.inspection:Verdict",
    "cosolve.fmu.trial:Trial",
    "cosolve.io.system_file:Description",
    "cosolve.io.system_file:Output",
    "cosolve.viewer.host:Host",
    "cosolve.run.view:RunView",
)


#: A section that a formatter has joined to its text; numpydoc reads it as a sentence.
_JOINED = re.compile(r"^ *(Parameters|Returns|Raises|Notes|References|Examples) -{3,} *\S", re.MULTILINE)


@dataclass(frozen=True)
class Public:
    """One documented object.

    `where` is its module and name, `value` the object, `base` what it implements of a base class, and `top` says
    whether it is a name of a package, not of a class.
    """

    where: str
    value: Any
    base: Any = None
    top: bool = False


def public_objects() -> Iterator[Public]:
    """Every public name with its methods and properties, each once.

    >>> [one.where for one in public_objects() if one.where.endswith(":Jacobi")]
    ['cosolve.method.explicit:Jacobi']
    """
    seen: set[int] = set()
    for package in ("cosolve", *NAMESPACES):
        module = import_module(package)
        for name in sorted(module.__all__):
            value = getattr(module, name)
            if id(value) in seen or not callable(value) or not getattr(value, "__module__", "").startswith("cosolve"):
                continue
            seen.add(id(value))
            maker = next((base for base in getattr(value, "__mro__", ()) if "__init__" in vars(base)), value)
            base = maker if maker is not value and maker is not object else None
            yield Public(f"{value.__module__}:{value.__qualname__}", value, base, top=True)
            if inspect.isclass(value):
                yield from _members(value, seen)
    for name in RETURNED:
        place, _, inside = name.partition(":")
        value = getattr(import_module(place), inside)
        yield Public(name, value)
        yield from _members(value, seen)


def _members(cls: type, seen: set[int]) -> Iterator[Public]:
    for name in sorted(dir(cls)):
        owner = next((base for base in cls.__mro__ if name in vars(base)), object)
        raw = vars(owner)[name]
        value = raw if isinstance(raw, property) else getattr(cls, name)
        value = getattr(value, "__func__", value)
        own = owner.__module__.startswith("cosolve") and id(raw) not in seen
        if name.startswith("_") or not own or not (inspect.isfunction(value) or isinstance(value, property)):
            continue
        if getattr(value, "__name__", name) != name:  # another name for a function that is documented elsewhere
            continue
        seen.add(id(raw))
        above = (vars(base)[name] for base in owner.__mro__[1:] if name in vars(base))
        base = next((one for one in above if getattr(one, "__doc__", None)), None)
        yield Public(f"{owner.__module__}:{owner.__qualname__}.{name}", value, getattr(base, "function", base))


def arguments(value: Any) -> list[str]:
    """The arguments that a caller gives; none for a protocol.

    >>> def f(a, *more, b=0): ...
    >>> arguments(f)
    ['a', 'more', 'b']
    """
    if getattr(value, "_is_protocol", False):
        return []
    return [name.lstrip("*") for name in Validator(get_doc_object(value)).signature_parameters]


def undocumented(one: Public) -> list[str]:
    """The arguments that have no description, neither here nor in the base class.

    >>> def f(a, b):
    ...     '''Add.
    ...
    ...     Parameters
    ...     ----------
    ...     a : float
    ...         The first.
    ...     '''
    >>> undocumented(Public("here:f", f))
    ['b']
    """
    described = _described(one.value) | (set() if one.base is None else _described(one.base))
    return [name for name in arguments(one.value) if name not in described]


def _described(value: Any) -> set[str]:
    parameters = Validator(get_doc_object(value)).doc_all_parameters
    return {name.lstrip("*") for name, (_, text) in parameters.items() if text}


def faults(one: Public) -> list[str]:
    """What is missing, a line each.

    >>> def f(a): return a
    >>> faults(Public("here:f", f))
    ['GL08 The object does not have a docstring']
    """
    if one.base is not None and not one.value.__doc__:
        return [f"PR01 '{name}' is described neither here nor in the base class" for name in undocumented(one)]
    found = []
    for code, text in validate(get_doc_object(one.value))["errors"]:
        in_base = (code == "PR01" and not undocumented(one)) or (code == "RT01" and one.base is not None)
        if code in CHECKS and not in_base:
            found.append(f"{code} {text}")
    if _JOINED.search(one.value.__doc__ or ""):
        found.append("GL06 The heading of a section and its text stand in one line")
    if (one.value.__doc__ or "").split("\n\n")[0].split(". ")[0].count("`") % 2:
        found.append("SS00 A full stop inside of an expression, at which the reference cuts the summary")
    error = inspect.isclass(one.value) and issubclass(one.value, Exception)
    if one.top and not error and ">>>" not in (one.value.__doc__ or ""):
        found.append("EX01 No example")
    return found


def main(given: Sequence[str] | None = None) -> int:
    """Print what is missing; the exit status is 1 where anything is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="part of a module's or a name's path")
    only = parser.parse_args(given).only
    total = missing = 0
    bad = dict[str, list[str]]()
    for one in public_objects():
        if only in one.where:
            total += len(arguments(one.value))
            missing += len(undocumented(one))
            bad[one.where] = faults(one)
    print("".join(f"{where}: {fault}\n" for where, found in bad.items() for fault in found), end="")
    names = sum(map(bool, bad.values()))
    print(f"{total} public arguments, {missing} without a description; {names} of {len(bad)} names lack something")
    return int(bool(names or missing))


if __name__ == "__main__":
    sys.exit(main())
