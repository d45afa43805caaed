"""How the first macro step is divided so that a run without a known past has the order of its method from the start.

Inputs of the first step are as good as one point allows: held, or a line where the method corrects their end. That
error is made once; it is small enough when that first step is short. So the first macro step is crossed in pieces
`H/R, H/R, 2H/R, 4H/R, ..., H/2` with one more support point each, and ends where it would have ended anyway.
"""

from __future__ import annotations

from math import ulp

from cosolve.method import Method

#: The shortest piece is at least so many steps of the numbers that hold the time.
_RESOLVED = 1024.0


def halvings(method: Method) -> int:
    """How many times the first macro step is halved to get its shortest piece; 0 where nothing is lost without.

    A step with inputs of degree `d` leaves `O(h^(d+2))`. Extrapolating methods begin with `d = 0` and so reach order 2
    by themselves, those that end in a corrected value begin with `d = 1` and reach order 3. How much shorter the first
    piece must be is in docs/theory.md, "Start-up".

    >>> import cosolve as cs
    >>> [halvings(cs.Jacobi(p)) for p in range(5)], [halvings(cs.SemiImplicit(p)) for p in range(5)]
    ([0, 0, 6, 9, 13], [0, 0, 0, 4, 7])
    """
    if method.script is None or method.chooses_step:
        return 0
    p = method.degree
    if p + 1 <= own_order(method):
        return 0
    return 3 + p * (p + 1) // 2 if own_order(method) == 2 else 1 + p * (p - 1) // 2


def own_order(method: Method) -> int:
    """The order that a method of any degree has at most when its first macro step is crossed in one piece."""
    return 2 if method.explicit or method.lags else 3


def lengths(t0: float, H: float, most: int) -> list[float]:
    """The pieces of a macro step of length `H`, the shortest being `H` halved `most` times; all are exact.

    Fewer of them where time at `t0` would not resolve the shortest.

    >>> lengths(0.0, 1.0, 2)
    [0.25, 0.25, 0.5]
    """
    while most and H * 2.0**-most < _RESOLVED * ulp(abs(t0) + H):
        most -= 1
    return [H * 2.0**-most, *(H * 2.0**-k for k in range(most, 0, -1))]


def ends(t0: float, t1: float, pieces: list[float]) -> list[float]:
    """Where these pieces end; each is as long as all before it together.

    >>> ends(1.0, 2.0, [0.25, 0.25, 0.5])
    [1.25, 1.5, 2.0]
    """
    return [*(t0 + length for length in pieces[1:]), t1]
