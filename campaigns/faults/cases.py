"""What is tried: kind x place x deed, under a method, in an engine.

Every place of every kind meets every deed under one method of each family (explicit, semi-implicit, implicit); every
corrector and the other methods meet the deeds that differ most. Both engines take part wherever a kind can be
compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import cosolve as cs
from campaigns.faults.deeds import FATAL, HARMLESS, RAISED, RETURNED, TIMES, WRONG
from campaigns.faults.kinds import FMU_FAILURES, JITTED, PLACES, H


@dataclass(frozen=True)
class Case:
    """One forced failure."""

    kind: str
    place: str
    deed: str
    method: str
    compiled: bool
    at: int = 8
    once: bool = False

    def __str__(self) -> str:
        engine = "compiled" if self.compiled else "readable"
        when = f"{'at' if self.once else 'from'} call {self.at}"
        return f"{self.kind}, {self.place} {self.deed} {when}, {self.method}, {engine}"


def _implicit(corrector: Any) -> Callable[[], cs.Method]:
    return lambda: cs.Implicit(degree=1, tol=1e-8, corrector=corrector())


METHODS: dict[str, Callable[[], cs.Method]] = {
    "Jacobi(1)": lambda: cs.Jacobi(degree=1),
    "GaussSeidel(1)": lambda: cs.GaussSeidel(degree=1),
    "SemiImplicit(1)": lambda: cs.SemiImplicit(degree=1),
    "Newton": _implicit(cs.Newton),
    "LeaderFollower": lambda: cs.LeaderFollower(leader="bad"),
    "DynamicStatic(A)": lambda: cs.DynamicStatic("A", rtol=1e-5),
    "DynamicStatic(B)": lambda: cs.DynamicStatic("B", rtol=1e-5),
    "DynamicStatic(C)": lambda: cs.DynamicStatic("C", rtol=1e-5),
    "Jacobi(1) adaptive": lambda: cs.Jacobi(degree=1),
    "SemiImplicit(1) adaptive": lambda: cs.SemiImplicit(degree=1),
    "Jacobi(0)": lambda: cs.Jacobi(degree=0),
    "Jacobi(2)": lambda: cs.Jacobi(degree=2),
    "SemiImplicit(2)": lambda: cs.SemiImplicit(degree=2),
    "Relaxation": _implicit(lambda: cs.Relaxation(0.5)),
    "Aitken": _implicit(cs.Aitken),
    "Anderson": _implicit(cs.Anderson),
    "Broyden": _implicit(cs.Broyden),
    "IqnIls": _implicit(cs.IqnIls),
    "IqnImvj": _implicit(cs.IqnImvj),
    "Secant": _implicit(cs.Secant),
    "NewtonKrylov": _implicit(cs.NewtonKrylov),
    "LineSearch": _implicit(lambda: cs.LineSearch(cs.Newton())),
}
FAMILIES = ("Jacobi(1)", "SemiImplicit(1)", "Newton")
OTHERS = tuple(name for name in METHODS if name not in FAMILIES and not name.startswith(("Dynamic", "Leader")))
#: of each sort of deed one, for the methods that do not meet them all
TYPICAL = ("raises", "nan", "inf", "too short", "None", "complex", "asks for the end")
TWO_METHODS = ("Jacobi(1)", "SemiImplicit(1)")
#: places that meet every deed; the others meet those that differ most
FULL = (("python", "advance"), ("callback", "advance"), ("ode", "output"), ("join", "law"), ("static", "function"))
#: kinds whose functions give one number, so that one number is right
SCALAR = ("static", "join", "static residual", "dynamic-static", "structure")


def options(method: str) -> dict[str, Any]:
    """Method and step for `simulate`."""
    found = METHODS[method]()
    if method.startswith("Dynamic"):
        return {"method": found}
    return {"method": found, "step": cs.Adaptive(rtol=1e-4) if method.endswith("adaptive") else H}


def every() -> list[Case]:
    """All cases, in an order in which those that compile the same come together."""
    return list(dict.fromkeys(_all()))


def _all() -> Iterator[Case]:
    for kind, places in PLACES.items():
        for place in places:
            for method in _methods(kind, place):
                yield from _deeds(kind, place, method)
    for kind in ("python", "ode", "join", "jitted", "callback"):
        place = PLACES[kind][0]
        for method in OTHERS:
            for deed in TYPICAL if kind != "jitted" else tuple(JITTED)[1:]:
                for compiled in (False, True) if kind in ("jitted", "callback") else (False,):
                    yield Case(kind, place, deed, method, compiled)
                    if kind != "jitted" and deed in TYPICAL[:2]:
                        yield Case(kind, place, deed, method, compiled, at=31, once=True)


def _methods(kind: str, place: str) -> tuple[str, ...]:
    if kind == "dynamic-static":
        return ("DynamicStatic(A)", "DynamicStatic(B)", "DynamicStatic(C)")
    if place in ("step", "time") and kind == "python":
        return ("LeaderFollower",)
    if kind == "self-driven":  # it cannot go back
        return ("Jacobi(1)", "GaussSeidel(1)")
    if place in ("jacobian", "law jacobian", "save", "restore", "get_state"):
        return ("SemiImplicit(1)", "Newton", "Aitken")
    if place == "residual" and kind == "join":
        return ("SemiImplicit(1)", "Newton")
    return FAMILIES if (kind, place) in FULL or kind == "jitted" else TWO_METHODS


def _deeds(kind: str, place: str, method: str) -> Iterator[Case]:
    engines = (False, True) if kind.startswith(("isolated", "callback", "jitted", "fmu")) else (False,)
    if kind.startswith("fmu"):
        apart = kind.endswith("isolated")
        deeds = [name for name in FMU_FAILURES if apart or name not in ("crashes", "never returns")][1:]
        if kind.endswith("exchange"):  # the others happen in doStep
            deeds = ["asks for the end"]
    elif kind.startswith("jitted"):
        deeds = list(JITTED)[1:]
    elif kind == "isolated":
        deeds = [*FATAL, *TYPICAL] if place == "advance" else ["raises", "None", "is killed"]
    elif kind.startswith("ode ") or kind == "dae":
        deeds = ["raises", "nan", "one nan", "inf", "huge", "too short", "too long", "None", "complex"]
    elif (kind, place) not in FULL and place not in ("restore", "time"):
        deeds = [*TYPICAL, "raises two lines", "raises unprintable", "too long", "text", "a list"]
        deeds += WRONG if place in ("save", "jacobian", "law jacobian", "tangent") else []
    elif place == "time":
        deeds = list(TIMES)
    elif place == "restore":  # gives nothing back
        deeds = list(RAISED)
    else:
        deeds = [*RAISED, *RETURNED, *HARMLESS]
        if kind in SCALAR or place == "driven input":
            deeds.remove("one number")
    for deed in deeds:
        for compiled in engines:
            if place == "start":
                yield Case(kind, place, deed, method, compiled, at=1)
                continue
            yield Case(kind, place, deed, method, compiled)
            if deed in TYPICAL and method in TWO_METHODS and (kind, place) in FULL:
                yield Case(kind, place, deed, method, compiled, at=1)
                yield Case(kind, place, deed, method, compiled, at=29, once=True)
