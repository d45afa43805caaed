"""What a pilot run tells: its coupling error, and from that the steps and the price of a run that meets a tolerance.

The step control holds the defect of the coupling variables at its `rtol`, so the coupling error is `c rtol`, with a
factor `c` that belongs to the system and the method and hardly to `rtol`. One pilot with its shadow measures it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite, log, nan

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.method import Method
from cosolve.stepsize import Adaptive

SAFETY = 1.8  # between the tolerance and the error that a run is aimed at
DRIFT, STIFF_DRIFT = 0.05, 0.1  # c grows where rtol falls, about like this power; the latter where no shadow told it
CONTROLLED = 0.6  # where estimates usually stand, in units of rtol: below, max_step kept steps short
LIMITED = 0.2  # below, max_step alone made the steps, and `c` is a guess
FLOOR = 2e-9  # no estimate of an error counts as less, the accuracy of subsystems
LEAST_RTOL = 1e-12  # of a step control: below, it would follow rounding
EXPENSIVE = 1e-3  # seconds: below, the time of a subsystem step says more about the machine than about the subsystem


@dataclass(frozen=True)
class Trial:
    """A run that was made to learn something.

    `error` is its coupling error, the largest of all outputs relative to their largest values (NaN where it is not
    known), `level` the root mean square of the estimates that its step control accepted. `subsystem_steps` counts
    what the run took from each subsystem, Jacobians included, `shadow` what finding its error took. `seconds` is the
    shortest time of a subsystem step, `largest` the largest coupling variable in units of its nominal value, `size`
    what each entry of the outputs `y` at the times `t` is compared with. `power` says how the number of steps grows
    with the accuracy where another run told that, and not the order of the method. `why` says why the trial leads
    nowhere, `over` that it would have taken too many steps, `hopeless` that shorter ones are no remedy, `blind` why
    its coupling error cannot be known although it ran well.
    """

    method: Method
    step: float | Adaptive | None
    steps: int = 0
    error: float = nan
    level: float = nan
    subsystem_steps: Mapping[str, int] = field(default_factory=dict)
    shadow: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    largest: float = 1.0
    power: float | None = None
    why: str = ""
    over: bool = False
    hopeless: bool = False
    blind: str = ""
    t: Vector = field(default_factory=lambda: np.zeros(0), repr=False, compare=False)
    y: Matrix = field(default_factory=lambda: np.zeros((0, 0)), repr=False, compare=False)
    size: Vector = field(default_factory=lambda: np.zeros(0), repr=False, compare=False)

    @property
    def known(self) -> bool:
        """True when the coupling error is known."""
        return isfinite(self.error)

    @property
    def spent(self) -> int:
        """Subsystem steps of all subsystems, for the run and its shadow."""
        return sum(self.subsystem_steps.values()) + sum(self.shadow.values())

    @property
    def factor(self) -> float:
        """The coupling error in units of the step control's tolerance: `c`."""
        return self.error / self._effective

    @property
    def _effective(self) -> float:
        """The tolerance at which the step control would have begun to shorten the steps of this run.

        Where all estimates were 0 there is nothing that the tolerance could be compared with.
        """
        assert isinstance(self.step, Adaptive)
        return self.step.rtol * (min(1.0, self.level / CONTROLLED) if self.level > 0.0 else 1.0)

    def excess(self, tolerance: float) -> float:
        """How many times too large the error is, the safety factor included."""
        return SAFETY * max(self.error, FLOOR) / tolerance

    def rtol(self, tolerance: float) -> float:
        """The tolerance of a step control whose run meets `tolerance`.

        At most a quarter of the pilot's: so the two runs differ, and comparing them can tell something. Where the
        pilot has been compared already it may stay.

        >>> import cosolve as cs
        >>> pilot = Trial(cs.GaussSeidel(3), cs.Adaptive(rtol=1e-2), error=0.01, level=0.6)
        >>> f"{pilot.rtol(1e-4):.1e}"
        '4.3e-05'
        """
        assert isinstance(self.step, Adaptive)
        excess = self.excess(tolerance)
        most = self.step.rtol * (0.25 if self.power is None else 1.0)
        drift = DRIFT if self.power is None else STIFF_DRIFT
        wanted: float = self._effective / excess / max(excess, 1.0) ** drift
        return max(min(wanted, most), LEAST_RTOL)

    def growth(self, tolerance: float) -> float:
        """How many times as many steps a run needs that meets `tolerance`."""
        power = 1.0 / (self.method.degree + 1) if self.power is None else self.power
        times: float = max(self.excess(tolerance), 1.0) ** power
        return times

    def expected(self, steps: int) -> float:
        """The coupling error of a run of so many steps, by the order of the method.

        NaN where no shadow told the error of this one. A run whose tolerance follows from `factor`, and that takes
        fewer steps than the order asks for, contradicts its pilot: that `factor` was not the one of small tolerances.
        """
        return nan if self.power is not None else self.error * (self.steps / steps) ** (self.method.degree + 1)

    def after(self, before: Trial, moved: float) -> Trial:
        """The same run with the error that follows from one at a larger tolerance, which it moved by so much.

        The error falls with the tolerance, by a little less than in proportion.
        """
        assert isinstance(self.step, Adaptive)
        assert isinstance(before.step, Adaptive)
        ratio = before.step.rtol / self.step.rtol
        power = log(self.steps / before.steps) / log(ratio)
        most = 1.0 / (self.method.degree + 1)
        return replace(self, error=moved / (ratio ** (1.0 - STIFF_DRIFT) - 1.0), power=min(max(power, 0.0), most))

    def price(self, tolerance: float, costs: Mapping[str, float]) -> float:
        """What a run that meets `tolerance` will take, in subsystem steps of cost 1."""
        return self.growth(tolerance) * sum(n * costs.get(name, 1.0) for name, n in self.subsystem_steps.items())

    def time(self, tolerance: float) -> float:
        """The same in units of a millisecond, for subsystems that take that long; less counts as one."""
        taken = {name: max(seconds / EXPENSIVE, 1.0) for name, seconds in self.seconds.items()}
        return self.price(tolerance, taken)
