"""The branch of solutions that a run follows, where interface equations have several.

Along a branch the determinant of the interface Jacobian keeps its sign: it can change only where the equations are
singular, and on neighbouring branches it is the other one (of `z^2 = c`, say). So a Jacobian with another sign than in
the step before says that an extrapolated guess has come to lie beyond the fold. The step then begins again from the
values of the last macro point; where that leads across as well, the run says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.engine.python.loops import cycles, reactions
from cosolve.interface.plan import Plan
from cosolve.subsystem.base import Subsystem, has_capability

#: Interfaces up to this size are looked at: a determinant costs as much as a solution.
_LARGEST = 50


def may_branch(plan: Plan) -> bool:
    """Whether equations of users, or outputs that react to inputs at once, may give the interface several solutions."""
    if plan.n_z > _LARGEST:
        return False
    if any(block.implicit and block.levels is None for block in plan.blocks):
        return True
    widths = [(u.stop - u.start, y.stop - y.start) for u, y in zip(plan.u_slices, plan.y_slices, strict=True)]
    patterns = [_reacts(part, *width) for part, width in zip(plan.subsystems, widths, strict=True)]
    return any(pattern.any() for pattern in patterns) and bool(cycles(reactions(plan, patterns)[0]))


def _reacts(subsystem: Subsystem, inputs: int, outputs: int) -> npt.NDArray[np.bool_]:
    """Which outputs react to which inputs at once: as the subsystem says, all where it does not."""
    if not has_capability(subsystem, "output"):
        return np.zeros((outputs, inputs), dtype=bool)
    given = getattr(subsystem, "feedthrough", None)
    return np.asarray(given(), dtype=bool) if callable(given) else np.ones((outputs, inputs), dtype=bool)


class Branch:
    """Compares Jacobians with those of the steps before.

    >>> branch = Branch()
    >>> for sign in (1.0, 1.0, -1.0):
    ...     branch.begin()
    ...     branch.see(np.array([[sign]]))
    ...     print(branch.is_left, branch.accept())
    False False
    False False
    True True
    """

    def __init__(self) -> None:
        self.side = 0.0  # of accepted steps; 0: not known
        self._seen, self._returned = 0.0, False

    def begin(self) -> None:
        """A macro step is about to be advanced."""
        self._seen, self._returned = 0.0, False

    def see(self, G: Any) -> None:
        """An interface Jacobian was made."""
        if isinstance(G, np.ndarray) and len(G) <= _LARGEST:
            self._seen = float(np.linalg.slogdet(G)[0])

    @property
    def is_left(self) -> bool:
        """Whether the newest Jacobian belongs to another branch than the run."""
        return self.side * self._seen < 0.0

    def returns(self) -> bool:
        """Whether the step is to begin again from the last macro point, which it does once."""
        again = self.is_left and not self._returned
        self._returned |= again
        return again

    def accept(self) -> bool:
        """The step has found its values; True where they are on another branch."""
        left = self.is_left
        self.side = self._seen or self.side
        return left
