"""Settings and counters of the BDF integrator in `bdf.py`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import is_number, is_positive, is_whole
from cosolve.errors import SetupError

#: When the corrector rebuilds its Jacobian: T does, F not (Schmoll (2015), 4.4.1). Its length limits the iterations.
PATTERN = "TFFFTFFFTF"


@dataclass(frozen=True)
class BdfControl:
    """Settings of the integrator.

    A step is accepted when `|x - predictor| / ((k + 1) (atol + rtol |x|)) <= 1` for every state (`atol = rtol` unless
    given, per state if a list); the corrector stops when its last change is below `newton` of that (`tol_K`). `order`
    is the highest order, or the only one with `fixed_order`; `step` fixes the step size and switches the error test
    off; steps aim at `safety` times what the estimate allows.

    >>> BdfControl(rtol=1e-4, order=2).weights(np.array([1.0])).tolist()
    [0.0002]
    """

    rtol: float = 1e-6
    atol: float | tuple[float, ...] | None = None
    order: int = 5
    fixed_order: bool = False
    step: float | None = None
    first_step: float | None = None
    min_step: float = 0.0
    max_step: float = np.inf
    pattern: str = PATTERN
    newton: float = 0.01
    safety: float = 0.85

    def __post_init__(self) -> None:
        absolute = self.rtol if self.atol is None else self.atol
        positive = {"rtol": self.rtol, "atol": absolute, "newton": self.newton, "safety": self.safety}
        for name, given in positive.items():
            values = list(given) if isinstance(given, (tuple, list)) else [given]
            if not values or not all(is_positive(value) for value in values):
                raise SetupError(f"BDF: {name} must be positive, not {given!r}")
        if not is_whole(self.order, 1) or self.order > 5:
            raise SetupError(f"BDF: order must be 1, 2, 3, 4 or 5 (from 6 on the formulas grow), not {self.order!r}")
        for name in ("step", "first_step"):
            value = getattr(self, name)
            if value is not None and not is_positive(value):
                raise SetupError(f"BDF: {name} must be a positive step size, not {value!r}")
        if not (is_number(self.min_step) and 0 <= self.min_step <= self.max_step and self.max_step > 0):
            raise SetupError(f"BDF: needs 0 <= min_step <= max_step, got {self.min_step!r} and {self.max_step!r}")
        if not self.pattern or set(self.pattern) - {"T", "F"}:
            raise SetupError(f"BDF: pattern is a row of T (rebuild) and F such as {PATTERN!r}, not {self.pattern!r}")

    def weights(self, x: Vector) -> Vector:
        """What counts as one in the norms."""
        return np.asarray(self.rtol if self.atol is None else self.atol) + self.rtol * np.abs(x)

    def scale(self) -> Vector | float:
        """Magnitude of a state that counts as one, for increments: `atol / rtol`."""
        return 1.0 if self.atol is None else np.asarray(self.atol) / self.rtol


@dataclass
class Counts:
    """What the integrator did: accepted steps, failed attempts by cause, corrector iterations and rebuilt Jacobians.

    Iterations and Jacobians of failed attempts are included.
    """

    steps: int = 0
    failed_tests: int = 0
    failed_corrections: int = 0
    iterations: int = 0
    jacobians: int = 0

    @property
    def repetitions(self) -> int:
        """Attempts that were given up."""
        return self.failed_tests + self.failed_corrections
