"""The errors cosolve raises on purpose; every message says what is wrong, where, and what would work.

Two families: what is found before a run (`SetupError`) and what stops a run (`SimulationError`, which carries
the result up to the last good step). Both are `CosolveError`.
"""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cosolve.result import Result


__all__ = [
    "AccuracyWarning",
    "CapabilityError",
    "ConvergenceError",
    "CosolveError",
    "EndOfSimulation",
    "FmuWarning",
    "NonFiniteError",
    "OutputFileError",
    "SetupError",
    "SimulationError",
    "SingularInterfaceError",
    "StabilityWarning",
    "StepSizeError",
    "SubsystemError",
]


class CosolveError(Exception):
    """Base class of everything cosolve raises on purpose.

    Parameters
    ----------
    message : object, default ""
        What is wrong, where, and what would work. It is joined to one line and shortened to 1400 characters.

    Examples
    --------
    >>> import cosolve as cs
    >>> try:
    ...     cs.System({}).connect("a.x", "b.x")
    ... except cs.CosolveError as error:
    ...     print(error)
    connect: 'a.x' names the subsystem 'a', but this system has none; give subsystems to System first
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(_one_line(str(message)))


_LONGEST = 1400  # characters of a message


def _one_line(text: str) -> str:
    """A message is one line, also where it quotes values: arrays come in many lines, texts may be of any length."""
    line = " ".join(text.split()) if "\n" in text else text
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 205]} ... {line[-200:]}"


class SetupError(CosolveError, ValueError):
    """Something in the description of the system, the method or the step cannot work; nothing has run yet."""


class CapabilityError(SetupError):
    """A method asks for something that a subsystem does not offer."""


class StabilityWarning(UserWarning):
    """A run is at the edge of stability or beyond it: nothing damps a disturbance, or values grow without bound."""


class AccuracyWarning(UserWarning):
    """The tolerance that a run was asked for may not be met."""


class FmuWarning(UserWarning):
    """An FMU does not do what it says; the run goes on without relying on that."""


class SimulationError(CosolveError, RuntimeError):
    """A run stopped early.

    Parameters
    ----------
    message : str
        What happened.
    time : float or None, default None
        Start of the macro step that failed, in seconds.
    subsystem : str or None, default None
        Name of the subsystem that failed, if there is one.

    Attributes
    ----------
    result : Result or None
        Everything up to the last good step.
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


class EndOfSimulation(CosolveError):
    """Raised by a subsystem to end the run; not a failure. The result is complete up to there.

    Parameters
    ----------
    message : str, default ""
        Why the run ends.
    time : float or None, default None
        Time in seconds at which the run shall end. None is the start of the step, or its end if there are `outputs`.
    outputs : object, default None
        Outputs at `time`, if the subsystem advanced to it; they are the last ones of the run.
    subsystem : str or None, default None
        Name of the subsystem; the run fills it in.

    Examples
    --------
    >>> import cosolve as cs
    >>> class Tank(cs.Subsystem):
    ...     inputs, outputs = [], ["level"]
    ...     def start(self, t0):
    ...         self.level = 1.0
    ...         return self.level
    ...     def advance(self, t0, t1, u):
    ...         self.level -= t1 - t0
    ...         if self.level < 0.25:
    ...             raise cs.errors.EndOfSimulation("the tank is almost empty", outputs=self.level)
    ...         return self.level
    >>> result = cs.simulate(cs.System({"tank": Tank()}), t_end=2.0, method=cs.Jacobi(), step=0.1)
    >>> float(result.t[-1]), result.finished, result.ended
    (0.8, True, "ended at t = 0.8 because 'tank' asked for it: the tank is almost empty")
    """

    def __init__(
        self,
        message: str = "",
        *,
        time: float | None = None,
        outputs: object = None,
        subsystem: str | None = None,
    ) -> None:
        super().__init__(message)
        self.time, self.outputs, self.subsystem = time, outputs, subsystem

    def sentence(self, t: float) -> str:
        """Say how a run ended.

        Parameters
        ----------
        t : float
            Last macro point of the run in seconds.

        Returns
        -------
        str
            A sentence without a period.
        """
        who = f"'{self.subsystem}'" if self.subsystem else "a subsystem"
        wanted = "" if self.time is None or f"{self.time:.9g}" == f"{t:.9g}" else f" at t = {self.time:.9g}"
        return f"ended at t = {t:.9g} because {who} asked for it{wanted}" + (f": {self}" if str(self) else "")


class OutputFileError(CosolveError, OSError):
    """A result file cannot be written or read."""


def warn(text: str, kind: type[Warning]) -> None:
    """A warning that points at the line outside of this package that led to it.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("the run grows", StabilityWarning)
    >>> str(caught[0].message)
    'the run grows'
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, kind, stacklevel=level)
