"""Which methods are worth a pilot: an explicit one, a corrected one, and others where these fail or take many steps."""

from __future__ import annotations

from dataclasses import dataclass

from cosolve.interface import Plan
from cosolve.method import Method
from cosolve.method.base import Purpose
from cosolve.method.named import proposals


@dataclass(frozen=True)
class Candidates:
    """Methods that can run a system, in the order in which they are tried; `complaints` say why others cannot."""

    explicit: Method | None = None
    corrected: Method | None = None
    iterated: Method | None = None
    damped: tuple[Method, ...] = ()  # for stiff couplings
    complaints: tuple[str, ...] = ()


def candidates(plan: Plan, workers: int = 1) -> Candidates:
    """The methods for a system whose method is not given.

    They are those that methods propose (`Method.proposals`), the first of each purpose that can run the system. Serial
    sweeps are better than parallel ones, except where `workers` make these faster.

    >>> import cosolve as cs
    >>> tank = lambda h: cs.Linear([[-1]], [[1]], [[1]], x0=[h], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(1.0), "two": tank(0.0)})
    >>> system.connect("one.h", "two.q"); system.connect("two.h", "one.q")
    >>> found = candidates(system.plan())
    >>> found.explicit.label, found.corrected.label, found.iterated.label, [method.label for method in found.damped]
    ('GaussSeidel(3)', 'SemiImplicit(2)', 'Implicit(2)', ['SemiImplicit(BDF3)', 'SemiImplicit(0)'])
    """
    fitting: list[Method | None] = []
    said: list[str] = []
    purposes: tuple[Purpose, ...] = ("parallel" if workers > 1 else "serial", "corrected", "iterated")
    for purpose in purposes:
        proposed = proposals(purpose)
        complaints = [method.complaints(plan) for method in proposed]
        fitting.append(next((method for method, found in zip(proposed, complaints, strict=True) if not found), None))
        said += [found[0] for found in complaints if found]
    damped = [method for method in proposals("damped") if not method.complaints(plan)]
    explicit, corrected, iterated = fitting
    return Candidates(explicit, corrected, iterated, tuple(damped), tuple(said))


def only(method: Method) -> Candidates:
    """The method that was given, and no other."""
    return Candidates(explicit=method) if method.explicit else Candidates(corrected=method)
