"""What a coupling method is: options, the capabilities it needs, and a declaration that engines carry out.

A new method is one file: a step function in the operations of `operations.py`, and a subclass of `Method` that names
it.

    def twice(m, o):                                 # predictor, and one repetition with what it asked for
        sweep(m, extrapolated(m, o.degree))
        z = coupling_from_outputs(m)
        rollback(m)
        sweep(m, ending_in(m, z))
        return coupling_from_outputs(m)

    @dataclass(frozen=True)
    class Twice(Method):
        needs = ("rollback",)
        step_function = twice
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import getattr_static
from math import inf
from typing import Any, ClassVar, Literal, TypeAlias

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import choice, is_whole
from cosolve.basics.wording import listed
from cosolve.corrector.base import Corrector
from cosolve.errors import CapabilityError, SetupError
from cosolve.interface.plan import Plan
from cosolve.method.constraint import ConstraintTreatment
from cosolve.signal import SIGNALS, History
from cosolve.signal.bdf import GROWTH, HIGHEST
from cosolve.signal.history import POINTS
from cosolve.subsystem.base import CAPABILITIES, has_capability

#: A macro step in operations: `step_function(m, o)` with the executor and the method.
StepFunction: TypeAlias = Callable[[Any, Any], Any]

#: Where interface Jacobians come from: exact where subsystems have them and differences elsewhere, or differences only.
JacobianSource = Literal["auto", "difference"]

#: How far subsystems solve their own equations in a subsystem step, see `Implicit`.
Local = Literal["converged", "one_step", "output_equation"]

#: How coupling variables are drawn over a macro step: through their values at macro points, or by backward differences
#: (`signal/bdf.py`) or by collocation at two points (`signal/history.py`), which damp stiff couplings.
SignalName = Literal["lagrange", "bdf", "collocation", "radau"]

#: Whether the entries of a vector port are measured one by one or together, see `Implicit`.
Norm = Literal["entries", "fields"]


@dataclass(frozen=True)
class Declaration:
    """The step function of a macro step, and what engines must know besides.

    Parameters
    ----------
    step_function : callable
        The macro step in the operations of `cosolve.operations`: `step_function(m, o)` with the executor and
        the method.
    guess : int
        Degree of the extrapolation that gives the first guess. Its distance to the result is the error estimate.
    order : sequence of str, optional
        Names of subsystems in the order of serial sweeps.
    serial : bool, default False
        True if every sweep is serial. Only the coupling variables that lag behind have a residual then.
    corrector : Corrector or None, default None
        Solver of the interface equations. None if nothing is solved.
    jacobian : {"auto", "difference"}, default "auto"
        Source of interface Jacobians, see `SemiImplicit`.
    increment : float, default 1e-5
        Relative increment of difference quotients.
    constraints : ConstraintTreatment or None, default None
        Treatment of algebraic constraints, see `Implicit`.
    local : {"converged", "one_step", "output_equation"}, default "converged"
        How far subsystems solve their own equations, see `Implicit`.
    tol : float, default 1.0
        Relative tolerance of the residual.
    atol : float or mapping, default 0.0
        Absolute tolerance; residuals are never measured against less than `atol / tol`.
    absolute : bool, default False
        True to measure residuals against 1 instead of the size of the coupling variables.
    norm : {"entries", "fields"}, default "entries"
        Whether the entries of a vector port are measured one by one or together.
    """

    step_function: StepFunction
    guess: int
    order: Sequence[str] = ()
    serial: bool = False
    corrector: Corrector | None = None
    jacobian: JacobianSource = "auto"
    increment: float = 1e-5
    constraints: ConstraintTreatment | None = None
    local: Local = "converged"
    tol: float = 1.0
    atol: float | Mapping[str, float] = 0.0
    absolute: bool = False
    norm: Norm = "entries"


#: Where a method is proposed, see `Proposal`.
Purpose = Literal["check", "other", "map", "reference", "serial", "parallel", "corrected", "iterated", "damped"]


@dataclass(frozen=True)
class Proposal:
    """Options under which a method is proposed.

    Parameters
    ----------
    purpose : {"check", "other", "map", "reference", "serial", "parallel", "corrected", "iterated", "damped"}
        Where: by `check` where it compares methods or looks for others, on the map of the viewer, as the reference of a
        comparison; or where `simulate` chooses the method: as an explicit method of serial or parallel sweeps, a
        corrected or iterated one, or one for stiff couplings.
    place : int
        Place among the proposals of all methods, small ones first.
    options : mapping
        Options of the method.
    """

    purpose: Purpose
    place: int
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Method:
    """Base class of all coupling methods.

    A subclass sets `needs` and names its macro step as `step_function`, or defines the property `declaration`. Options
    are the fields of a frozen dataclass.

    Parameters
    ----------
    degree : int, default 1
        Degree of the polynomials in time that represent the coupling variables inside a macro step: 0 holds a value, 1
        is a straight line. Usually the order of convergence is `degree + 1`.

    Attributes
    ----------
    step_function : callable or None
        The macro step, `step_function(m, o)`, in the operations of `cosolve.operations`.
    needs : tuple of str
        Capabilities that every subsystem must have, as in `("rollback",)`.
    instead : str
        What to use if a capability is missing, for the error message.
    explicit : bool
        True if coupling variables must be explicit functions of outputs (connections and laws only).
    lags : bool
        True if inputs come from outputs of the last macro point, so that algebraic loops are not solved.
    holds_ends : bool
        True if inputs of degree 0 are held at a value of the end of the step, not of its start.
    stops_at_events : bool
        True if a macro step can end at an event of one subsystem.
    chooses_step : bool
        True if the method itself chooses the length of each macro step.
    serial : bool
        True if subsystems advance one after the other, with the newest values of those before.
    final_update : bool
        True if the coupling variables at a macro point are those of the outputs there.
    reevaluates : bool
        True if outputs are evaluated again after the exchange, which solves algebraic loops once per step.
    noise : float
        Relative accuracy to which a macro step is solved.
    roles : mapping of str to tuple of str
        What a subsystem can be in the method, and the capabilities that it needs for that. Defaults to one role without
        a name, with the capabilities in `needs`.
    proposals : tuple of Proposal
        Options under which it is proposed where no method is given.
    signal : str
        How signals are formed from past values, see `SemiImplicit`.

    Notes
    -----
    A method that cannot be written in the operations defines `bind(caller)` instead. It is called once per
    run and returns the function that advances one macro step, `step(history, window) -> Outcome`. That function runs
    subsystems through `caller` only, does not change the history, and leaves every subsystem at the end of the step.
    What it carries from step to step is kept in the parts of a `StatefulStep`. Such a method runs in the Python engine
    only.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import cosolve as cs
    >>> from cosolve.operations import coupling_from_outputs, extrapolated, sweep
    >>> def held(m, o):
    ...     sweep(m, extrapolated(m, 0))
    ...     return coupling_from_outputs(m)
    >>> @dataclass(frozen=True)
    ... class Held(cs.Method):
    ...     explicit, lags, step_function = True, True, held
    >>> Held().label
    'Held(1)'
    """

    degree: int = 1

    # the macro step, in operations
    step_function: ClassVar[StepFunction | None] = None
    # capabilities that every subsystem must have
    needs: ClassVar[tuple[str, ...]] = ()
    # what to use instead when a capability is missing
    instead: ClassVar[str] = ""
    # True when coupling variables must be explicit functions of outputs
    explicit: ClassVar[bool] = False
    # True when inputs come from outputs of the last macro point, so that algebraic loops are not solved
    lags: ClassVar[bool] = False
    # True when inputs of degree 0 are held at a value of the end of the step, not of its beginning
    holds_ends: ClassVar[bool] = True
    # True when its macro steps can end at an event of one subsystem
    stops_at_events: ClassVar[bool] = False
    # True when the method itself chooses how long a macro step is
    chooses_step: ClassVar[bool] = False

    # True when subsystems advance one after the other
    serial: ClassVar[bool] = False
    # True when the coupling variables at a macro point are those of the outputs there
    final_update: ClassVar[bool] = True
    # True when outputs are evaluated again after the exchange
    reevaluates: ClassVar[bool] = False
    # relative accuracy to which a macro step is solved
    noise: ClassVar[float] = 0.0
    # role of a subsystem -> capabilities that it needs for that; empty: one role, with those in `needs`
    roles: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    # options under which it is proposed where no method is given
    proposals: ClassVar[tuple[Proposal, ...]] = ()

    # how signals are drawn from the past
    signal: ClassVar[SignalName] = "lagrange"

    # for methods that are not written in operations: `bind(caller)` gives the function that advances over a macro step
    bind: ClassVar[Any] = None

    def __post_init__(self) -> None:
        self.refuse_bad_degree(self.degree, "degree")
        self._refuse_bad_signal()

    def refuse_bad_degree(self, degree: object, what: str) -> None:
        """Raise an error unless a degree is a whole number of at least 0.

        Parameters
        ----------
        degree : object
            The value to check.
        what : str
            Name of the option, for the message.

        Raises
        ------
        SetupError
            If it is not.
        """
        if not is_whole(degree, 0):
            raise SetupError(f"{self.name}: {what} must be 0, 1, 2, ..., not {degree!r}")

    def _refuse_bad_signal(self) -> None:
        """A signal is one of those that there are, of a degree that it can have."""
        choice(self.name, "signal", self.signal, tuple(SIGNALS))
        if self.signal == "bdf" and self.degree > HIGHEST:
            raise SetupError(
                f"{self.name}: degree must be 0, 1 or 2 with signal='bdf', not {self.degree!r}: backward differences "
                "of order 4 and more are not stable enough"
            )

        if self.inner_point is not None and self.degree != 1:
            raise SetupError(f"{self.name}: signal='{self.signal}' is a line; give degree=1, not {self.degree!r}")

    @property
    def inner_point(self) -> float | None:
        """Position of the inner collocation point as a fraction of the step, or None without collocation."""
        return POINTS.get(self.signal)

    def at_stages(self) -> Method:
        """Return the method that solves the stages of a collocation: the same options, held inputs.

        Returns
        -------
        Method
            This method with `degree=0` and `signal="lagrange"`.
        """
        declaration = self.declaration
        options: dict[str, Any] = {"predictor": 1 if declaration is None else declaration.guess}
        return replace(self, degree=0, signal="lagrange", **options)  # type: ignore[call-arg]  # a field where it is one

    @property
    def growth(self) -> float:
        """Largest ratio of the lengths of two consecutive macro steps that the signal allows."""
        return GROWTH[self.degree] if self.signal == "bdf" else inf

    def history(self, z: Vector) -> History:
        """Create the history of coupling variables from which signals are formed.

        Parameters
        ----------
        z : ndarray
            Coupling variables at the start of the run.

        Returns
        -------
        History
            The history, with `z` as its only macro point.
        """
        return SIGNALS[self.signal](z, self.depth)

    @property
    def declaration(self) -> Declaration | None:
        """The step function and its settings; None for methods that are not written in operations."""
        step_function = getattr_static(
            type(self), "step_function"
        )  # a plain function of the class, which must not be bound
        return (
            None
            if step_function is None
            else Declaration(getattr(step_function, "__func__", step_function), self.degree)
        )

    @property
    def name(self) -> str:
        """Name of the method for messages."""
        return type(self).__name__

    @property
    def depth(self) -> int:
        """Number of macro points before the newest one that the method needs."""
        declaration = self.declaration
        return max(self.degree, 1 if declaration is None else declaration.guess, 1) + SIGNALS[self.signal].reach

    @property
    def label(self) -> str:
        """Short label for tables and legends, as in "Jacobi(1)"."""
        drawn = {"bdf": f"BDF{self.degree + 1}", "radau": "Radau", "collocation": "collocation"}
        return f"{self.name}({drawn.get(self.signal, self.degree)})"

    def for_linearisation(self) -> Method:
        """Return the method whose macro step the stability analysis linearises.

        Returns
        -------
        Method
            This method, or a variant without difference quotients of its own.
        """
        return self

    def with_given_steps(self) -> Method:
        """Return the method that makes the same steps when their lengths are given.

        Returns
        -------
        Method
            This method, or another one where this one chooses the steps itself.
        """
        return self

    @classmethod
    def recommended(cls, plan: Plan, feedthrough: Sequence[Any], looped: bool) -> str:
        """Say why the method suits a system better than others do.

        Parameters
        ----------
        plan : Plan
            The compiled system.
        feedthrough : sequence of ndarray of bool
            For each subsystem which outputs depend directly on which inputs.
        looped : bool
            True if a loop of subsystems runs through coupling variables.

        Returns
        -------
        str
            A sentence without a period; empty if there is no such reason.
        """
        return ""

    def references(self) -> tuple[Method, Method] | None:
        """Return what `compare_linearisation` compares the method with.

        Returns
        -------
        tuple of (Method, Method) or None
            The same method without its linearisation, and a more accurate one. None if it does not linearise.
        """
        return None

    def refuse_unfit(self, plan: Plan) -> None:
        """Raise an error if the method cannot run a system.

        Parameters
        ----------
        plan : Plan
            The compiled system.

        Raises
        ------
        CapabilityError
            With the first of the `complaints`.
        """
        complaints = self.complaints(plan)
        if complaints:
            raise CapabilityError(complaints[0])

    def complaints(self, plan: Plan) -> list[str]:
        """Say why the method cannot run a system.

        Parameters
        ----------
        plan : Plan
            The compiled system.

        Returns
        -------
        list of str
            One sentence per reason; empty if it can.
        """
        found = []
        for capability in self.needs:
            lacking = {
                name: subsystem
                for name, subsystem in zip(plan.names, plan.subsystems, strict=True)
                if not has_capability(subsystem, capability)
            }
            if lacking:
                named = [f"'{name}' ({type(subsystem).__name__})" for name, subsystem in lacking.items()]
                remedies = "; ".join(dict.fromkeys(s.remedy(capability) for s in lacking.values()))
                found.append(
                    f"{self.name} needs {capability} ({CAPABILITIES[capability][1]}) from every subsystem, but "
                    f"{listed(named, quote=False)} {'has' if len(lacking) == 1 else 'have'} none; {remedies}, or use "
                    f"{self.instead}"
                )
        if self.holds_ends and self.degree == 0:
            found += [
                f"{self.label} holds inputs at values of the end of the step, but '{name}' "
                f"({type(subsystem).__name__}) goes on from those at its beginning; take degree "
                f"{subsystem.least_degree}, or Jacobi"
                for name, subsystem in zip(plan.names, plan.subsystems, strict=True)
                if subsystem.least_degree > 0
            ]
        if self.signal != "lagrange" and plan.constraints:
            found.append(
                f"{self.label} is for couplings by laws, connections and equations, and "
                f"{listed((block.label for block in plan.constraints), 3, quote=False)} holds bodies together; use "
                "signal='lagrange'"
            )
        if self.inner_point is not None:
            if plan.driven:
                found.append(
                    f"{self.label} draws inputs as lines, and '{plan.driven[0].target}' follows a function of time; "
                    "use signal='bdf', or let a subsystem give that input"
                )
            if self.declaration is not None and self.declaration.local != "converged":
                found.append(f"{self.label} solves every subsystem fully; use local='converged'")
        if self.explicit and not plan.explicit and (plan.constraints or not self.reevaluates):
            labels = ", ".join(block.label for block in plan.blocks if block.implicit)
            found.append(
                f"{self.name} is explicit and cannot solve {labels}; use SemiImplicit or Implicit, "
                "or replace the equations by a law; Jacobi(outputs='exchanged') solves equations that macro points "
                "determine"
            )
        return found
