"""How the first macro step is divided so that a run without a known past has the order of its method from the start.

Inputs of the first step are as good as one point allows: held, or a line where the method corrects their end. That
error is made once; it is small enough when that first step is short. So the first macro step is crossed in pieces
`H/R, H/R, 2H/R, 4H/R, ..., H/2` with one more support point each, and ends where it would have ended anyway.
"""

from __future__ import annotations

from cosolve.method import Method


def halvings(method: Method) -> int:
    """How many times the first macro step is halved to get its shortest piece; 0 where nothing is lost without.

    A step with inputs of degree `d` leaves `O(h^(d+2))`. Extrapolating methods begin with `d = 0` and so reach order 2
    by themselves, those that end in a corrected value begin with `d = 1` and reach order 3. Each further order takes a
    quarter of the shortest piece: then that step is no worse than the others as long as a macro step is longer than
    about a hundredth of the time in which signals change (docs/theory.md, "Start-up").

    >>> import cosolve as cs
    >>> [halvings(cs.Jacobi(p)) for p in range(5)], [halvings(cs.SemiImplicit(p)) for p in range(5)]
    ([0, 0, 6, 8, 10], [0, 0, 0, 4, 6])
    """
    if method.script is None or method.chooses_step:
        return 0
    by_itself = 2 if method.explicit or method.lags else 3
    if method.degree + 1 <= by_itself:
        return 0
    return 2 * (method.degree + 1) if by_itself == 2 else 2 * (method.degree - 1)


def lengths(H: float, count: int) -> list[float]:
    """The pieces of a macro step of length `H` whose shortest is `H` halved `count` times; all are exact.

    >>> lengths(1.0, 2)
    [0.25, 0.25, 0.5]
    """
    return [H * 2.0**-count, *(H * 2.0**-k for k in range(count, 0, -1))]


def ends(t0: float, H: float, t1: float, count: int) -> list[float]:
    """Where these pieces end.

    >>> ends(1.0, 1.0, 2.0, 2)
    [1.25, 1.5, 2.0]
    """
    return [*(t0 + H * 2.0**-k for k in range(count, 0, -1)), t1]
