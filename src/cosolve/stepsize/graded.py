"""How the first macro steps are divided so that a run without a known past has the order of its method from the start.

Inputs of the first step are as good as one point allows: held, or a line where the method corrects their end. That
error is made once; it is small enough when that first step is short. So the first macro step is advanced in pieces that
begin very short and grow, with one more support point each, and ends where it would have ended anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ulp

from cosolve.method import Method

#: The shortest piece is at least so many steps of the numbers that hold the time.
_RESOLVED = 1024.0

#: Parts of the first macro step in which a stiff coupling comes to rest.
SETTLING = (1e-4, 1e-3, 1e-2)


@dataclass(frozen=True)
class Grading:
    """Pieces that grow: the shortest is the macro step halved so many times.

    Lengths double from piece to piece, or (`twice`) from pair to pair, which is gentler on what is extrapolated from
    them and goes on into the second macro step. `settling` holds parts of the macro step that come before these
    pieces, with held inputs each: what jumps at the start has jumped then, and is forgotten (docs/theory.md, "Stiff
    couplings").

    >>> Grading(2).pieces(0.0, 1.0, [])
    [0.25, 0.25, 0.5]
    >>> gentle = Grading(3, twice=True)
    >>> gentle.pieces(0.0, 1.0, []), gentle.pieces(1.0, 1.0, [0.25, 0.25])
    ([0.125, 0.125, 0.125, 0.125, 0.25, 0.25], [0.5, 0.5])
    """

    halvings: int = 0
    twice: bool = False
    settling: tuple[float, ...] = ()

    def pieces(self, t0: float, H: float, past: Sequence[float]) -> list[float]:
        """How a macro step of length `H` from `t0` is advanced after steps of the lengths `past`, the newest first."""
        if past:
            return [0.5 * H, 0.5 * H] if self.twice and 4.0 * past[0] == H else [H]
        if self.settling:
            rest = Grading(self.halvings).pieces(t0, (1.0 - sum(self.settling)) * H, ())
            return [*(part * H for part in self.settling), *rest]
        k = self.halvings
        while k and H * 2.0**-k < _RESOLVED * ulp(abs(t0) + H):
            k -= 1
        if not self.twice or k < 3:
            return [H * 2.0**-k, *(H * 2.0**-j for j in range(k, 0, -1))]
        return [H * 2.0**-k] * 4 + [H * 2.0**-j for j in range(k - 1, 1, -1) for _ in range(2)]


def grading(method: Method) -> Grading:
    """The pieces that a method needs; one whole step where nothing is lost without.

    A step with inputs of degree `d` leaves `O(h^(d+2))`. Extrapolating methods begin with `d = 0` and so reach order 2
    by themselves, those that end in a corrected value begin with `d = 1` and reach order 3. How short the first piece
    must be is in docs/theory.md, "Start-up".

    >>> import cosolve as cs
    >>> [grading(cs.Jacobi(p)).halvings for p in range(5)], [grading(cs.SemiImplicit(p)).halvings for p in range(5)]
    ([0, 0, 6, 8, 10], [0, 0, 0, 4, 7])
    """
    p = method.degree
    if method.signal != "lagrange":
        return Grading((0, 3, 6)[p], settling=SETTLING)
    if method.declaration is None or method.chooses_step or p + 1 <= own_order(method):
        return Grading()
    if own_order(method) == 3:
        return Grading(1 + p * (p - 1) // 2)
    return Grading(2 * p + 2, twice=p > 2)


def own_order(method: Method) -> int:
    """The order that a method of any degree has at most when its first macro step is advanced in one piece."""
    if method.signal == "bdf":
        return 2
    return 2 if method.explicit or method.lags else 3
