"""The errors cosolve raises on purpose; every message says what is wrong, where, and what would work.

Two families: what is found before a run (`SetupError`) and what stops a run (`SimulationError`, which carries
the result up to the last good step). Both are `CosolveError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cosolve.result import Result


class CosolveError(Exception):
    """Base of everything cosolve raises on purpose.

    >>> import cosolve as cs
    >>> try:
    ...     cs.System({}).connect("a.x", "b.x")
    ... except cs.CosolveError as error:
    ...     print(error)
    connect: 'a.x' names the subsystem 'a', but this system has none; give subsystems to System first
    """


class SetupError(CosolveError, ValueError):
    """Something in the description of the system, the method or the step cannot work; nothing has run yet."""


class CapabilityError(SetupError):
    """A method asks for something that a subsystem does not offer."""


class StabilityWarning(UserWarning):
    """A run is at the edge of stability or beyond it: nothing damps a disturbance, or values grow without bound."""


class SimulationError(CosolveError, RuntimeError):
    """A run stopped early.

    `result` holds everything up to the last good step, `time` the start of the macro step that failed and
    `subsystem` the culprit where there is one.
    """

    def __init__(self, message: str, *, time: float | None = None, subsystem: str | None = None) -> None:
        super().__init__(message)
        self.time = time
        self.subsystem = subsystem
        self.result: Result | None = None


class SubsystemError(SimulationError):
    """A subsystem raised, returned the wrong thing, or gave up."""


class NonFiniteError(SubsystemError):
    """A NaN or an infinity came out of a subsystem or a law."""


class ConvergenceError(SimulationError):
    """The interface iteration did not reach its tolerance."""


class SingularInterfaceError(SimulationError):
    """The interface Jacobian cannot be inverted."""


class StepSizeError(SimulationError):
    """The step control asks for a step below its minimum."""


class OutputFileError(CosolveError, OSError):
    """A result file cannot be written or read."""
