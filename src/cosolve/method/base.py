"""What a coupling method is: a degree, the capabilities it needs, and a function that crosses one macro step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from types import FunctionType
from typing import Any, ClassVar

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.engine.readable.crew import Crew, Window
from cosolve.errors import CapabilityError, SetupError
from cosolve.interface.plan import Plan
from cosolve.signal import History
from cosolve.subsystem.base import CAPABILITIES, has_capability


@dataclass(slots=True)
class Outcome:
    """What a macro step leaves behind.

    `y`, `z`: outputs and coupling variables at the end of the step; `predicted`: the extrapolated coupling variables
    there, whose distance to `z` is the free error estimate; `degree`: the degree that estimate has; `t1`, `H`: end
    and length of the step, which a method sets where it chose them itself; `norms`: the residual norm of every iterate;
    `error`: the estimate in units of the tolerance, for the step control to set.
    """

    y: Vector
    z: Vector
    predicted: Vector
    degree: int
    iterations: int = 0
    residual: float = np.nan
    converged: bool = True
    rejected: int = 0
    t1: float | None = None
    H: float | None = None
    norms: Sequence[float] = ()
    error: float = np.nan


MacroStep = Callable[[History, Window], Outcome]


class Remembering:
    """A macro step with what it remembers from one step to the next, so that a run can be saved and continued.

    `parts` hold the memory: objects whose attributes are all of it, or with a `memory` of their own (to read and set).
    A macro step that remembers nothing is a plain function.

    >>> from types import SimpleNamespace
    >>> held = SimpleNamespace(count=0)
    >>> def step(history, window):
    ...     held.count += 1
    >>> counting = Remembering(step, held)
    >>> saved = counting.memory
    >>> counting(None, None)
    >>> counting.memory = saved
    >>> held.count
    0
    """

    def __init__(self, step: MacroStep, *parts: object) -> None:
        self._step, self.parts = step, parts

    def __call__(self, history: History, window: Window) -> Outcome:
        return self._step(history, window)

    @property
    def memory(self) -> list[Any]:
        """Independent copies of what the parts hold."""
        return [memory_of(part) for part in self.parts]

    @memory.setter
    def memory(self, saved: list[Any]) -> None:
        for part, held in zip(self.parts, saved, strict=True):
            set_memory(part, held)


def memory_of(part: Any) -> Any:
    """What `part` remembers, as a copy; None for a plain function."""
    if hasattr(type(part), "memory"):
        return part.memory
    return None if isinstance(part, FunctionType) else deepcopy(vars(part))


def set_memory(part: Any, saved: Any) -> None:
    """Let `part` remember what it did when `saved` was taken."""
    if hasattr(type(part), "memory"):
        part.memory = saved
    elif saved is not None:
        vars(part).clear()
        vars(part).update(deepcopy(saved))


@dataclass(frozen=True)
class Method:
    """Base of all coupling methods. A subclass sets `needs` and defines `bind`.

    `bind(crew)` is called once per run and returns the function that crosses a macro step: it may read the history
    (never change it), run subsystems through the crew, and returns an `Outcome`. On return every subsystem stands at
    the end of the step. What it carries from step to step is kept in the parts of a `Remembering`.
    """

    degree: int = 1

    #: capabilities that every subsystem must have
    needs: ClassVar[tuple[str, ...]] = ()
    #: what to use instead when a capability is missing
    instead: ClassVar[str] = ""
    #: True when coupling variables must be explicit functions of outputs
    explicit: ClassVar[bool] = False
    #: True when inputs come from outputs of the last macro point, so that algebraic loops are not solved
    lags: ClassVar[bool] = False
    #: True when its macro steps can end at an event of one subsystem
    stops_at_events: ClassVar[bool] = False
    #: True when the method itself chooses how long a macro step is
    chooses_step: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self.refuse_bad_degree(self.degree, "degree")

    def refuse_bad_degree(self, degree: object, what: str) -> None:
        """A degree is a whole number from 0."""
        if not isinstance(degree, (int, np.integer)) or isinstance(degree, bool) or degree < 0:
            raise SetupError(f"{self.name}: {what} must be 0, 1, 2, ..., not {degree!r}")

    @property
    def name(self) -> str:
        """Name for people."""
        return type(self).__name__

    @property
    def depth(self) -> int:
        """How many macro points before the newest one it looks back at."""
        return max(self.degree, 1)

    @property
    def label(self) -> str:
        """Short label for tables and legends."""
        return f"{self.name}({self.degree})"

    def for_linearisation(self) -> Method:
        """The method whose macro step is differenced by the stability analysis: free of differences of its own."""
        return self

    def bind(self, crew: Crew) -> MacroStep:
        """The macro step of this method for the given crew."""
        raise NotImplementedError

    def refuse_unfit(self, plan: Plan) -> None:
        """Raise when the system lacks what this method needs."""
        complaints = self.complaints(plan)
        if complaints:
            raise CapabilityError(complaints[0])

    def complaints(self, plan: Plan) -> list[str]:
        """Why this method cannot run this system, one sentence each; empty when it can."""
        found = []
        for capability in self.needs:
            lacking = {
                name: subsystem
                for name, subsystem in zip(plan.names, plan.subsystems, strict=True)
                if not has_capability(subsystem, capability)
            }
            if lacking:
                named = [f"'{name}' ({type(subsystem).__name__})" for name, subsystem in lacking.items()]
                shown = ", ".join(named[:8]) + (f" and {len(named) - 8} more" if len(named) > 8 else "")
                remedies = "; ".join(dict.fromkeys(s.remedy(capability) for s in lacking.values()))
                found.append(
                    f"{self.name} needs {capability} ({CAPABILITIES[capability][1]}) from every subsystem, but {shown} "
                    f"{'has' if len(lacking) == 1 else 'have'} none; {remedies}, or use {self.instead}"
                )
        if self.explicit and not plan.explicit:
            labels = ", ".join(block.label for block in plan.blocks if block.implicit)
            found.append(
                f"{self.name} is explicit and cannot solve {labels}; use SemiImplicit or Implicit, "
                "or replace the equations by a law"
            )
        return found
