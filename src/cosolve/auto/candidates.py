"""Which methods are worth a pilot: an explicit one, a corrected one, and others where these fail or take many steps."""

from __future__ import annotations

from dataclasses import dataclass

from cosolve.interface import Plan
from cosolve.method import GaussSeidel, Implicit, Jacobi, Method, SemiImplicit


@dataclass(frozen=True)
class Candidates:
    """Methods that can run a system, in the order in which they are tried; `complaints` say why others cannot."""

    explicit: Method | None = None
    corrected: Method | None = None
    iterated: Method | None = None
    damped: tuple[Method, ...] = ()  # for stiff couplings
    complaints: tuple[str, ...] = ()


def candidates(plan: Plan, workers: int = 1) -> Candidates:
    """The methods for a system that nobody has chosen one for.

    Serial sweeps are better than parallel ones, except where `workers` make these faster. Explicit methods are of
    degree 3 and corrected ones of degree 2: above, they are no longer stable enough for steps worth taking. Stiff
    first-order couplings ask for signals that damp: by backward differences, or held.

    >>> import cosolve as cs
    >>> tank = lambda h: cs.Linear([[-1]], [[1]], [[1]], x0=[h], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(1.0), "two": tank(0.0)})
    >>> system.connect("one.h", "two.q"); system.connect("two.h", "one.q")
    >>> found = candidates(system.plan())
    >>> found.explicit.label, found.corrected.label, found.iterated.label, [method.label for method in found.damped]
    ('GaussSeidel(3)', 'SemiImplicit(2)', 'Implicit(2)', ['SemiImplicit(BDF3)', 'SemiImplicit(0)'])
    """
    explicit = Jacobi(degree=3) if workers > 1 else GaussSeidel(degree=3)
    corrected, iterated = SemiImplicit(degree=2), Implicit(degree=2)
    methods: tuple[Method, ...] = (explicit, corrected, iterated)
    complaints = [method.complaints(plan) for method in methods]
    fit = [None if found else method for method, found in zip(methods, complaints, strict=True)]
    damped = [m for m in (SemiImplicit(2, signal="bdf"), SemiImplicit(0)) if not m.complaints(plan)]
    said = tuple(found[0] for found in complaints if found)
    return Candidates(fit[0], fit[1], fit[2], tuple(damped), said)


def only(method: Method) -> Candidates:
    """The method that was given, and no other."""
    return Candidates(explicit=method) if method.explicit else Candidates(corrected=method)
