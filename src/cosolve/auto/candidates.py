"""Which methods are worth a pilot: an explicit one, a corrected one, and an iterated one where both fail."""

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
    complaints: tuple[str, ...] = ()


def candidates(plan: Plan, workers: int = 1) -> Candidates:
    """The methods for a system that nobody has chosen one for.

    Serial sweeps are better than parallel ones, except where `workers` make these faster. Explicit methods are of
    degree 3 and corrected ones of degree 2: above, they are no longer stable enough for steps worth taking.

    >>> import cosolve as cs
    >>> tank = lambda h: cs.Linear([[-1]], [[1]], [[1]], x0=[h], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(1.0), "two": tank(0.0)})
    >>> system.connect("one.h", "two.q"); system.connect("two.h", "one.q")
    >>> found = candidates(system.plan())
    >>> found.explicit.label, found.corrected.label, found.iterated.label
    ('GaussSeidel(3)', 'SemiImplicit(2)', 'Implicit(2)')
    """
    explicit = Jacobi(degree=3) if workers > 1 else GaussSeidel(degree=3)
    corrected, iterated = SemiImplicit(degree=2), Implicit(degree=2)
    methods: tuple[Method, ...] = (explicit, corrected, iterated)
    complaints = [method.complaints(plan) for method in methods]
    fit = [None if found else method for method, found in zip(methods, complaints, strict=True)]
    return Candidates(fit[0], fit[1], fit[2], tuple(found[0] for found in complaints if found))


def only(method: Method) -> Candidates:
    """The method that was given, and no other."""
    return Candidates(explicit=method) if method.explicit else Candidates(corrected=method)
