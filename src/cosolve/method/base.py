"""What a coupling method is: options, the capabilities it needs, and a script that engines carry out.

A new method is one file: a text in the verbs of `verbs.py`, and a subclass of `Method` that names it.

    def twice(m, o):                                 # predictor, and one repetition with what it asked for
        sweep(m, extrapolated(m, o.degree))
        z = asked(m)
        rewind(m)
        sweep(m, ending_in(m, z))
        return asked(m)

    @dataclass(frozen=True)
    class Twice(Method):
        needs = ("rollback",)
        text = twice
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
from cosolve.signal.collocation import POINTS
from cosolve.subsystem.base import CAPABILITIES, has_capability

#: A macro step in verbs: `text(m, o)` with the machine and the method.
Text: TypeAlias = Callable[[Any, Any], Any]

#: Where interface Jacobians come from: exact where subsystems have them and differences elsewhere, or differences only.
JacobianSource = Literal["auto", "difference"]

#: How far subsystems solve their own equations in a crossing, see `Implicit`.
Local = Literal["converged", "one_step", "output_equation"]

#: How coupling variables are drawn over a macro step: through their values at macro points, or by backward differences
#: (`signal/bdf.py`) or by collocation at two points (`signal/collocation.py`), which damp stiff couplings.
SignalName = Literal["lagrange", "bdf", "collocation", "radau"]

#: Whether the entries of a vector port are measured one by one or together, see `Implicit`.
Norm = Literal["entries", "fields"]


@dataclass(frozen=True)
class Script:
    """The text of a macro step, and what engines must know besides.

    `guess` is the degree of the first guess, whose distance to the result is the free error estimate; `order` that of
    serial sweeps (`serial`: every crossing is one, and only what lags has a residual). `corrector` solves the interface
    equations (None: there are none to solve), by Jacobians from `jacobian` with increments `increment`. `constraints`,
    `local` and `norm`: see `Implicit`. Residuals are measured against 1 where `absolute`, and never against less than
    `atol / tol`.
    """

    text: Text
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


@dataclass(frozen=True)
class Method:
    """Base of all coupling methods. A subclass sets `needs` and names its `text`, or makes a `script` of its own.

    A method that cannot be written in the verbs defines `bind(crew)` instead, which is called once per run and returns
    the function that crosses a macro step: it may read the history (never change it), run subsystems through the crew,
    and returns an `Outcome`. On return every subsystem stands at the end of the step. What it carries from step to step
    is kept in the parts of a `Remembering`. Such methods run in the readable engine only.
    """

    degree: int = 1

    #: the macro step, in verbs
    text: ClassVar[Text | None] = None
    #: capabilities that every subsystem must have
    needs: ClassVar[tuple[str, ...]] = ()
    #: what to use instead when a capability is missing
    instead: ClassVar[str] = ""
    #: True when coupling variables must be explicit functions of outputs
    explicit: ClassVar[bool] = False
    #: True when inputs come from outputs of the last macro point, so that algebraic loops are not solved
    lags: ClassVar[bool] = False
    #: True when inputs of degree 0 are held at a value of the end of the step, not of its beginning
    holds_ends: ClassVar[bool] = True
    #: True when its macro steps can end at an event of one subsystem
    stops_at_events: ClassVar[bool] = False
    #: True when the method itself chooses how long a macro step is
    chooses_step: ClassVar[bool] = False

    #: how signals are drawn from the past
    signal: ClassVar[SignalName] = "lagrange"

    #: for methods that are not written in verbs: `bind(crew)` gives the function that crosses a macro step
    bind: ClassVar[Any] = None

    def __post_init__(self) -> None:
        self.refuse_bad_degree(self.degree, "degree")
        self._refuse_bad_signal()

    def refuse_bad_degree(self, degree: object, what: str) -> None:
        """A degree is a whole number from 0."""
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
        """Where inside the step the coupling equations hold too, as a part of it."""
        return POINTS.get(self.signal)

    def at_stages(self) -> Method:
        """The method that does at both points of a collocation what this one does."""
        options: dict[str, Any] = {"degree": 0, "signal": "lagrange", "predictor": getattr(self, "guess", 1)}
        return replace(self, **options)

    @property
    def growth(self) -> float:
        """By what macro steps may grow from one to the next."""
        return GROWTH[self.degree] if self.signal == "bdf" else inf

    def history(self, z: Vector) -> History:
        """What signals are drawn from, at the beginning of a run with these coupling variables."""
        return SIGNALS[self.signal](z, self.depth)

    @property
    def script(self) -> Script | None:
        """What engines carry out; None for methods that are not written in verbs."""
        text = getattr_static(type(self), "text")  # a plain function of the class, which must not be bound
        return None if text is None else Script(getattr(text, "__func__", text), self.degree)

    @property
    def name(self) -> str:
        """Name for people."""
        return type(self).__name__

    @property
    def depth(self) -> int:
        """How many macro points before the newest one it looks back at."""
        script = self.script
        return max(self.degree, 1 if script is None else script.guess, 1) + SIGNALS[self.signal].reach

    @property
    def label(self) -> str:
        """Short label for tables and legends."""
        drawn = {"bdf": f"BDF{self.degree + 1}", "radau": "Radau", "collocation": "collocation"}
        return f"{self.name}({drawn.get(self.signal, self.degree)})"

    def for_linearisation(self) -> Method:
        """The method whose macro step is differenced by the stability analysis: free of differences of its own."""
        return self

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
            if getattr(self, "local", "converged") != "converged":
                found.append(f"{self.label} solves every subsystem fully; use local='converged'")
        if self.explicit and not plan.explicit:
            labels = ", ".join(block.label for block in plan.blocks if block.implicit)
            found.append(
                f"{self.name} is explicit and cannot solve {labels}; use SemiImplicit or Implicit, "
                "or replace the equations by a law"
            )
        return found
