"""One dynamic subsystem and its expensive static ones under one implicit integrator (Schmoll (2015), ch. 4).

The dynamic subsystem gives its equations `E x' = f(t, x, u_d)`, `y_d = y_d(t, x)`; the static ones are a function
`u_d(y_d)`. One macro step is one accepted step of the BDF integrator, and the variants differ in where in it the static
subsystems are called:

- A, fully implicit: in every corrector iteration (Eqs. 4.11-4.12). Calls = iterations over all attempts.
- B, last corrector: linearised (Eq. 4.13) at the converged value of the step before (Eq. 4.14). Calls = accepted steps.
  The linearisation error is `O(h^2)`, which caps the global order at 2.
- C, predictor: linearised at the predictor of the step (Eq. 4.16). Calls = accepted steps + repetitions. The
  linearisation error is `O(h^(2k+2))` with order `k`, invisible next to the integrator's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import is_number
from cosolve.basics.differences import forward_differences
from cosolve.basics.wording import failed_while, listed
from cosolve.errors import CapabilityError, EndOfSimulation, NonFiniteError, SetupError, SubsystemError
from cosolve.integrator.bdf import Bdf, consistent_slope
from cosolve.integrator.bdf_control import PATTERN, BdfControl
from cosolve.interface.plan import Plan
from cosolve.method.base import Method
from cosolve.method.static_network import StaticNetwork, Tangents, dynamic_subsystems, is_static, static_levels
from cosolve.method.step import MacroStep, Outcome, StatefulStep, Window
from cosolve.signal import History
from cosolve.subsystem.base import has_capability
from cosolve.subsystem.feedthrough import feedthrough

if TYPE_CHECKING:
    from cosolve.engine.python.subsystem_caller import SubsystemCaller

Variant = Literal["A", "B", "C", "fully_implicit", "last_corrector", "predictor"]

_TIGHTER = 0.01  # tolerance of the more accurate reference
_LETTERS = {"fully_implicit": "A", "last_corrector": "B", "predictor": "C"}


@dataclass(frozen=True)
class DynamicStatic(Method):
    """Dynamic-static coupling: one dynamic subsystem and static ones under one BDF integrator.

    A macro step is one accepted step of the integrator. It chooses the step itself; a `step` of `simulate` limits it.
    The dynamic
    subsystem must give its `equations`.

    Parameters
    ----------
    variant : {"A", "B", "C"}, default "C"
        When static subsystems are called. "A" ("fully_implicit"): in every corrector iteration. "B" ("last_corrector"):
        once per step, linearised at the converged value of the step before; limits the order to 2. "C" ("predictor"):
        once per attempt, linearised at the predictor of the step.
    rtol : float, default 1e-6
        Relative tolerance of the local error of each state.
    atol : float, sequence of float or None, default None
        Absolute tolerance in the units of the states, one for all or one per state. None is `rtol`.
    order : int, default 5
        Highest order of the BDF, 1 to 5.
    fixed_order : bool, default False
        Use `order` only, apart from the first steps.
    step : float or None, default None
        Constant step in seconds; switches the error test off.
    first_step : float or None, default None
        First step in seconds. None is chosen by the integrator.
    min_step : float, default 0.0
        Smallest step in seconds.
    max_step : float, default inf
        Largest step in seconds.
    safety : float, default 0.85
        Factor on the step that the error estimate allows.
    pattern : str, default "TFFFTFFFTF"
        One letter per corrector iteration: T rebuilds the iteration matrix, F does not. Its length limits the
        iterations.
    newton : float, default 0.01
        Tolerance of the corrector in units of the error tolerance.
    increment : float, default 1.5e-8
        Relative increment of difference quotients; raised if a static subsystem states a larger `noise`.
    past : callable or None, default None
        `past(t)` returns the states before the start, if they are known, so that a run starts at full order.

    Notes
    -----
    The dynamic subsystem is `E x' = f(t, x, u_d)`, `y_d = y_d(t, x)`, the static ones are a function `u_d(y_d)`.

    In the statistics of the result a call of a static subsystem is one set of parallel solves, its Jacobians are the
    sets with perturbed inputs; calls of the dynamic subsystem are attempted steps, its Jacobians are iteration
    matrices. In variant B a static subsystem that depends on time explicitly lags by one step; give time as an output
    of the dynamic subsystem instead.

    References
    ----------
    .. [1] R. Schmoll, Co-Simulation und Solverkopplung, dissertation, University of Kassel, 2015, chapter 4 (Eqs. 4.11
       to 4.16).

    Examples
    --------
    >>> import cosolve as cs
    >>> mass = cs.Ode(lambda t, x, u: [x[1], u[0]], lambda t, x, u: x, x0=[1.0, 0.0],
    ...               inputs=["force"], outputs=["x", "v"])
    >>> spring = cs.Static(lambda t, u: -u[0] ** 3 - u[1], inputs=["x", "v"], outputs=["force"])
    >>> system = cs.System({"mass": mass, "spring": spring})
    >>> for source, target in (("mass.x", "spring.x"), ("mass.v", "spring.v"), ("spring.force", "mass.force")):
    ...     system.connect(source, target)
    >>> stats = cs.simulate(system, t_end=5.0, method=DynamicStatic("C", rtol=1e-6)).stats
    >>> stats.calls["spring"] == stats.calls["mass"] >= stats.steps
    True
    """

    degree: int = field(default=1, init=False, repr=False)
    variant: Variant = "C"
    rtol: float = 1e-6
    atol: float | Sequence[float] | None = None
    order: int = 5
    fixed_order: bool = False
    step: float | None = None
    first_step: float | None = None
    min_step: float = 0.0
    max_step: float = np.inf
    safety: float = 0.85
    pattern: str = PATTERN
    newton: float = 0.01
    increment: float = float(np.finfo(np.float64).eps ** 0.5)
    past: Callable[[float], Any] | None = field(default=None, repr=False)

    explicit: ClassVar[bool] = True
    chooses_step: ClassVar[bool] = True
    instead: ClassVar[str] = "Implicit"
    roles: ClassVar[Mapping[str, tuple[str, ...]]] = {"": ("equations",)}

    def __post_init__(self) -> None:
        letter = _LETTERS.get(self.variant, self.variant) if isinstance(self.variant, str) else None
        if letter not in ("A", "B", "C"):
            raise SetupError(
                f"DynamicStatic: variant must be 'A' (fully implicit), 'B' (last corrector) or 'C' (predictor), not "
                f"{self.variant!r}"
            )
        object.__setattr__(self, "variant", letter)
        if isinstance(self.pattern, str):
            object.__setattr__(self, "pattern", self.pattern.replace(":", "").upper())
        if isinstance(self.atol, (list, np.ndarray)):
            object.__setattr__(self, "atol", tuple(float(value) for value in self.atol))
        if not (is_number(self.increment) and 0 < self.increment < 1):
            raise SetupError(f"DynamicStatic: increment must lie between 0 and 1, not {self.increment!r}")
        if self.past is not None and not callable(self.past):
            raise SetupError(f"DynamicStatic: past must be a function of time, not {self.past!r}")
        try:
            self.control()
        except SetupError as error:
            raise SetupError(str(error).replace("BDF", "DynamicStatic", 1)) from None

    @property
    def label(self) -> str:
        return f"DynamicStatic({self.variant})"

    def control(self) -> BdfControl:
        """Return the settings of the integrator.

        Returns
        -------
        BdfControl
            The options of this method that belong to the integrator.
        """
        return BdfControl(
            rtol=self.rtol,
            atol=self.atol,  # type: ignore[arg-type]  # made a tuple above
            order=self.order,
            fixed_order=self.fixed_order,
            step=self.step,
            first_step=self.first_step,
            min_step=self.min_step,
            max_step=self.max_step,
            pattern=self.pattern,
            newton=self.newton,
            safety=self.safety,
        )

    def references(self) -> tuple[DynamicStatic, DynamicStatic] | None:
        if self.variant == "A":
            return None
        implicit = replace(self, variant="A")
        if self.step is not None:
            return implicit, replace(implicit, rtol=self.rtol * _TIGHTER, step=self.step / 4)
        atol = None if self.atol is None else np.asarray(self.atol) * _TIGHTER
        given = atol if atol is None else tuple(atol.tolist()) if atol.ndim else float(atol)
        return implicit, replace(implicit, rtol=self.rtol * _TIGHTER, atol=given)

    @classmethod
    def recommended(cls, plan: Plan, feedthrough: Sequence[Any], looped: bool) -> str:
        dynamic = [i for i, s in enumerate(plan.subsystems) if has_capability(s, "equations")]
        static = [
            i
            for i, s in enumerate(plan.subsystems)
            if has_capability(s, "state") and not len(s.get_state()) and feedthrough[i].any()
        ]
        if len(dynamic) != 1 or not static or len(dynamic) + len(static) < plan.n_subsystems or not looped:
            return ""
        return (
            f"'{plan.names[dynamic[0]]}' is the only dynamic subsystem beside static ones "
            f"({listed((plan.names[i] for i in static), 3)}): DynamicStatic('C') calls these once per step of its "
            "implicit integration, without coupling error; worth it where they are expensive"
        )

    def complaints(self, plan: Plan) -> list[str]:
        dynamic = dynamic_subsystems(plan)
        described = [f"'{name}' ({type(s).__name__})" for name, s in zip(plan.names, plan.subsystems, strict=True)]
        if len(dynamic) > 1:
            return [
                f"DynamicStatic integrates one dynamic subsystem, but {' and '.join(described[i] for i in dynamic)} "
                "all have equations of motion; join them into one Ode, or use SemiImplicit"
            ]
        moving = [i for i, s in enumerate(plan.subsystems) if i not in dynamic and not is_static(s)]
        if moving:
            return [
                f"DynamicStatic couples one dynamic subsystem that gives its equations with static ones, but "
                f"{described[i]} is neither; define equations, get_state and set_state there (an Ode has them), or use "
                "SemiImplicit"
                for i in moving
            ]
        if not dynamic:
            return [
                f"DynamicStatic needs a dynamic subsystem that gives its equations, but "
                f"{listed(described, quote=False)} are all static; use Jacobi"
            ]
        _, loop = static_levels(plan, dynamic[0])
        if loop:
            return [
                f"DynamicStatic calls static subsystems one after the other, but "
                f"{' and '.join(described[i] for i in loop[:8])} are in an algebraic loop of their own; join them into "
                "one static subsystem (StaticResidual solves such loops)"
            ]
        return super().complaints(plan)

    def bind(self, caller: SubsystemCaller) -> MacroStep:
        """Return the function that advances one macro step, see `Method`.

        Parameters
        ----------
        caller : SubsystemCaller
            Runs the subsystems.

        Returns
        -------
        callable
            `step(history, window) -> Outcome`.
        """
        run = _Coupled(self, caller)

        def step(history: History, limit: Window) -> Outcome:
            run.resume(history.newest, limit.t0)
            return run.step(min(limit.t1, caller.plan.next_knot(limit.t0)))

        return StatefulStep(step, run)


class _Coupled:
    """The problem that the integrator's corrector solves, and the macro step around it."""

    def __init__(self, method: DynamicStatic, caller: SubsystemCaller) -> None:
        self.variant, self.past, self.caller = method.variant, method.past, caller
        self.dynamic = dynamic_subsystems(caller.plan)[0]
        self.name = caller.plan.names[self.dynamic]
        self.subsystem = caller.plan.subsystems[self.dynamic]
        self.rhs, self.output, self.E = self.subsystem.equations()
        self.network = StaticNetwork(caller, self.dynamic, method.increment)
        control = method.control()
        self.scale = control.scale()
        # B: an algebraic state follows the linearisation error of each step, which shorter steps cannot take back
        self.solver = Bdf(self, control, self.E, test_algebraic=method.variant != "B")
        self.tangents: Tangents | None = None
        self._u = np.zeros(0)
        self._warm: list[Any] = []
        self._rejected = 0  # attempts at the present step that failed

    #: what the integrator is made of, as opposed to what it has learnt
    _fixed: ClassVar[tuple[str, ...]] = ("problem", "control", "E", "_tested")

    @property
    def memory(self) -> dict[str, Any]:
        learnt = {name: value for name, value in vars(self.solver).items() if name not in self._fixed}
        return deepcopy({"solver": learnt, "tangents": self.tangents, "u": self._u})

    @memory.setter
    def memory(self, saved: dict[str, Any]) -> None:
        saved = deepcopy(saved)
        vars(self.solver).update(saved["solver"])
        self.tangents, self._u = saved["tangents"], saved["u"]

    # -- the macro step --------------------------------------------------------------------------------

    def resume(self, z: Vector, t: float) -> None:
        """Start the integrator, or restart it when time or state are not where it left them."""
        x, solver = self.subsystem.get_state(), self.solver
        first = np.isnan(solver.t)
        if not first and solver.t == t and np.array_equal(solver.x, x):
            return
        self.caller.to_time(t, right=True)
        self._u, self.tangents = self.caller.plan.inputs(z, self.dynamic), None
        if first:
            self._refuse_bad_equations(t, x)
        slope = self._guarded(t, "evaluating its equations", lambda: self._slope(t, x, self._u))
        solver.start(t, x, consistent_slope(slope, self.E), self.past if first else None)

    def step(self, t_max: float) -> Outcome:
        """One accepted step."""
        solver, caller, i = self.solver, self.caller, self.dynamic
        iterations, jacobians = solver.counts.iterations, solver.counts.jacobians
        t_start, self._rejected = solver.t, 0
        caller.to_time(solver.t, right=True)
        if self.variant == "B":  # once per accepted step; kept when the step is repeated
            self.tangents = self.network.call(solver.t, self._outputs(solver.t, solver.x))
        try:
            t = solver.step(t_max)
        finally:
            caller.jacobians[i] += solver.counts.jacobians - jacobians
        self.subsystem.set_state(solver.x)
        caller.to_time(t)
        assert self.tangents is not None
        y, z = self.network.follow(self._outputs(t, solver.x), self.tangents)
        self._u = caller.plan.inputs(z, i)
        y[caller.plan.y_slices[i]] = self._outputs(t, solver.x)  # once more: those with feed-through have new inputs
        self.network.complete(t, y, z)
        return Outcome(
            *(y, z, z, solver.order),
            iterations=solver.counts.iterations - iterations,
            rejected=self._rejected,
            t1=t,
            H=t - t_start,
        )

    # -- what the integrator asks ----------------------------------------------------------------------

    def predicted(self, t: float, x: Vector) -> None:
        self.caller.calls[self.dynamic] += 1
        self.caller.to_time(t)
        self._warm = self.network.save()
        if self.variant == "C":
            self.tangents = self.network.call(t, self._outputs(t, x))
        elif self.variant == "B":
            assert self.tangents is not None
            self.tangents = self.network.timed(t, self.tangents)

    def rejected(self) -> None:
        self._rejected += 1
        self.network.restore(self._warm)

    def evaluate(self, t: float, x: Vector, rebuild: bool) -> tuple[Vector, Matrix | None]:
        self.caller.to_time(t)
        if self.variant == "A":
            self.tangents = self.network.call(t, self._outputs(t, x), None if rebuild else self.tangents)
        f = self._closed(t, x)
        if not rebuild:
            return f, None
        return f, forward_differences(lambda shifted: self._closed(t, shifted), x, f, self.scale)

    def _closed(self, t: float, x: Vector) -> Vector:
        """`f(t, x, u_d(y_d(x)))` with the static subsystems linearised: its derivative is the chain rule, Eq. 4.8."""
        assert self.tangents is not None
        _, z = self.network.follow(self._outputs(t, x), self.tangents)
        self._u = self.caller.plan.inputs(z, self.dynamic)
        return self._guarded(t, "evaluating its equations", lambda: self._slope(t, x, self._u))

    # -- calls into the dynamic subsystem --------------------------------------------------------------

    def _slope(self, t: float, x: Vector, u: Vector) -> Vector:
        f = np.array(self.rhs(t, x.copy(), u.copy()), dtype=np.float64)
        if f.shape != x.shape:
            raise SubsystemError(
                f"rhs returned shape {f.shape}, expected {x.shape}: one number per state "
                "(u is an array: write u[0] for the first input)"
            )
        if not np.isfinite(f).all():
            k = int(np.flatnonzero(~np.isfinite(f))[0])
            raise NonFiniteError(f"rhs returned {f[k]} for state {k}")
        return f

    def _outputs(self, t: float, x: Vector) -> Vector:
        ports = self.caller.plan.output_ports[self.dynamic]
        y = self._guarded(t, "evaluating its outputs", lambda: ports.pack(self.output(t, x.copy(), self._u.copy())))
        if not np.isfinite(y).all():
            k = int(np.flatnonzero(~np.isfinite(y))[0])
            raise NonFiniteError(f"'{self.name}' gave {y[k]} for '{ports.labels()[k]}' at t = {t:.9g}", time=t)
        return y

    def _guarded(self, t: float, doing: str, call: Callable[[], Vector]) -> Vector:
        try:
            return call()
        except EndOfSimulation as end:
            end.subsystem, end.time = self.name, t if end.time is None else end.time
            raise
        except Exception as error:
            kind = NonFiniteError if isinstance(error, NonFiniteError) else SubsystemError
            raise kind(failed_while(self.name, doing, t, error), subsystem=self.name) from error

    def _refuse_bad_equations(self, t: float, x: Vector) -> None:
        """Wrong sizes, and outputs that answer an input at once: `u_d(y_d)` would be an implicit equation."""
        plan, i = self.caller.plan, self.dynamic
        if self.E is not None and np.shape(self.E) != (len(x), len(x)):
            raise CapabilityError(
                f"'{self.name}' gives a mass matrix of shape {np.shape(self.E)}; expected {(len(x), len(x))} for its "
                f"{len(x)} states"
            )
        if np.ndim(self.scale) and len(np.ravel(self.scale)) != len(x):
            raise SetupError(
                f"DynamicStatic: atol has {len(np.ravel(self.scale))} values, but '{self.name}' has {len(x)} states"
            )
        reacts = np.any(feedthrough(self.subsystem, t, self._u), axis=1).tolist()
        read = np.unique(np.concatenate([plan.copy_from, *(block.y_index for block in plan.blocks)]))
        for k in read[plan.y_owner[read] == i]:
            if reacts[k - plan.y_slices[i].start]:
                raise CapabilityError(
                    f"DynamicStatic needs outputs that follow from the state alone, but '{plan.y_label(int(k))}' "
                    "reacts at once to an input and is read by the coupling; give out a state instead, or use "
                    "SemiImplicit"
                )
