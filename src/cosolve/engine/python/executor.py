"""The Python engine: the operations of `operations.py` as calls into subsystems from Python, failures in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector, magnitude
from cosolve.corrector.algebra.linear_solve import Factorised
from cosolve.corrector.base import Corrector
from cosolve.engine.corrections import LEAST, LITTLE, MUCH, Corrections, is_too_much
from cosolve.engine.measure import DIVERGED, Measure
from cosolve.engine.python.branch import Branch, may_branch
from cosolve.engine.python.interface_problem import InterfaceEquations
from cosolve.engine.python.repeated_correction import Repeats
from cosolve.engine.python.rounding import terms_of_outputs
from cosolve.engine.python.self_check import (
    Proof,
    RollbackMismatch,
    StepEnd,
    examine,
    lasting,
    prove_rollback,
    refuse_another_beginning,
    refuse_answers_by_time,
    uncounted,
)
from cosolve.engine.python.serial import Serial
from cosolve.engine.python.subsystem_caller import SubsystemCaller
from cosolve.engine.python.trial import Trial
from cosolve.engine.step_functions import direct_step_function
from cosolve.errors import ConvergenceError, SimulationError
from cosolve.interface.plan import Plan
from cosolve.method.base import Declaration, Local, Method
from cosolve.method.constraint import treatment_for, variants, weighted_mean
from cosolve.method.explicit import in_order
from cosolve.method.step import MacroStep, Outcome, Window, memory_of, set_memory
from cosolve.signal import History, end_values

#: Residuals within so many rounding errors of their own evaluation are as good as zero.
_ROUNDINGS = 16.0

#: Norms of residuals above this are no rounding, whatever is added up in outputs.
_NEAR = 1e-3

#: Coupling variables up to which steps without corrections are looked at for correctors that need no Jacobian.
_FEW = 8

_NOWHERE = np.full(1, np.nan)


def bind(method: Method, caller: SubsystemCaller, *, watched: bool = False) -> MacroStep:
    """The macro step of a method for the subsystems of a caller.

    `watched`: rollback is tried out in its first step, and single corrections have to do their work. So it is in a run;
    steps that are only tried out, from states and with chosen Jacobians, are another matter.

    >>> import cosolve as cs
    >>> from cosolve.engine.python.subsystem_caller import SubsystemCaller
    >>> tank = cs.Linear([[-1]], [], [[1]], x0=[1], inputs=[], outputs=["h"])
    >>> bind(cs.Jacobi(degree=2), SubsystemCaller(cs.System({"tank": tank}).plan()))
    <the macro step of Jacobi(2)>
    """
    if method.bind is not None:
        own: MacroStep = method.bind(caller)
        return own
    declaration = method.declaration
    if declaration is None:
        raise NotImplementedError(f"{type(method).__name__} must define `step_function` or bind(caller)")
    if method.inner_point is not None:
        from cosolve.engine.python.staged import StagedExecutor  # which advances over its steps by an executor

        return StagedExecutor(method, caller, watched)
    return StepExecutor(method, declaration, caller, watched)


def _keeps_jacobian(corrector: Corrector | None) -> bool:
    """Whether one Jacobian serves several corrections."""
    return corrector is not None and corrector.uses_jacobian and corrector.refresh != "iteration"


class _NoStepTrial:
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what inspection asks of every object
            raise AttributeError(name)
        raise AssertionError("a method that corrects its inputs needs rollback; say so in its needs")


_NO_TRIAL: Any = _NoStepTrial()


class StepExecutor:
    """Advances over macro steps by carrying out the step function of a method, operation by operation."""

    def __init__(
        self, method: Method, declaration: Declaration, caller: SubsystemCaller, watched: bool = False
    ) -> None:
        self.method, self.declaration, self.caller, self.plan = method, declaration, caller, caller.plan
        plan, self.label = self.plan, method.label
        self._step_function, self._repeats = (
            direct_step_function(declaration.step_function, type(self)),
            "rollback" in method.needs,
        )
        # how subsystems advance; the output equation needs a subsystem step to begin at
        self._local = declaration.local
        self._first_local: Local = "converged" if self._local == "output_equation" else self._local
        self._treatment = treatment_for(plan, declaration.constraints)
        #: rows of coupling variables whose residual is a difference to what outputs ask for
        self._asked = np.ones(plan.n_z, dtype=bool)
        for block in plan.blocks:
            self._asked[block.rows] = not block.implicit
        self.measure = Measure(plan, declaration)
        self.history: History
        self.window: Window
        self.y = self.z = np.zeros(0)  # outputs of the last subsystem step, and what its signals ended in
        #: interface problems for steps of the present size, each with its weight in the result, and who solves them
        self._problems: Sequence[tuple[float, Plan]] = ()
        self._correctors: list[Corrector] = []
        if declaration.corrector is not None:
            self._correctors = [deepcopy(declaration.corrector) for _ in variants(plan, self._treatment, 1.0)]
        self._learns = type(declaration.corrector).accept is not Corrector.accept if declaration.corrector else False
        self._shape: tuple[float, ...] | None = None  # step and end weights for which Jacobians were made
        self._H = np.nan
        self._started = False  # whether the correctors know what they work on
        self._judged = False  # whether steps without corrections are known to have one solution
        #: whether an iteration that fails may begin again with a Jacobian of every iterate
        self._renews = _keeps_jacobian(declaration.corrector) and declaration.local == "converged"
        #: whether rollback, which is relied on, works
        self._proof = Proof(watched and self._repeats and declaration.local == "converged", lasting(plan))
        relaxed = self._treatment is not None and self._treatment.relaxation != 1.0
        self._watched, self.corrections = watched, Corrections(plan, relaxed)
        self._serial: Serial | None = None
        self._equations: InterfaceEquations | None = None
        #: of interface equations that may have several solutions
        self._branch = Branch() if watched and len(self._correctors) == 1 and may_branch(plan) else None
        self._begin_corrections()

    def __repr__(self) -> str:
        return f"<the macro step of {self.label}>"

    def begin(self, history: History, window: Window) -> None:
        """A macro step is about to be advanced; nothing has happened in it yet."""
        self.history, self.window, self.z = history, window, history.values[0]
        self._evaluated: tuple[Vector, Vector, Vector] | None = None  # values, outputs, and what outputs ask for there
        self._opened: StepEnd | None = None  # the first one of the step; correctors may change their arrays
        self._moved, self._sweeps, self._converged = False, 0, True
        self._ready: dict[int, Vector] = {}  # outputs that are there before a serial sweep
        self._predicted: tuple[int, Vector] | None = None
        self._norms: list[float] = []
        self._left: tuple[Vector, Plan, Vector] | None = None  # values, problem and residual of the last subsystem step
        self._residual = np.nan
        if self._repeats:
            self._begin_corrections()
            self._begin_trial(history, window)

    def _begin_corrections(self) -> None:
        """The same for methods that advance over a step more than once."""
        self.trial: Trial = _NO_TRIAL  #: the step that can be advanced again, where the method does so
        self._ended = _NOWHERE
        self._problem = -1
        self._solutions: list[Vector] = []
        self._first = 0  # of the norms that belong to the problem at hand
        self._uncorrected: Vector | None = None  # the residual that a single correction began with
        self._further: Repeats | None = None  # of that correction
        self._noted: Vector | None = None  # the residual of the values that are used
        self._given_up: ConvergenceError | None = None  # why the problem at hand is solved with renewed Jacobians
        self._guess, self._again, self._renewals = _NOWHERE, False, 0

    def __call__(self, history: History, window: Window) -> Outcome:
        self.begin(history, window)
        limit = window
        try:
            z = self._step_function(self, self.method)
        except SimulationError as failure:
            if self._given_up is None or isinstance(failure, ConvergenceError):
                raise
            raise self._given_up from failure
        if self._branch is not None and self._branch.accept():
            self.corrections.change_branch(window.t0)
        if self._proof.open and self._opened is not None and not self.caller.endings and self._proof.due():
            self._proof.note(prove_rollback(self.trial, self._opened))
            refuse_answers_by_time(self.trial, self._opened, self.z, self.y)
        expected, window = self.corrections.expected, self.window
        if expected is not None:
            self.corrections.expected = None
            if self._opened is not None and expected[:2] == (limit.t0, limit.H):
                refuse_another_beginning(self.plan, self._opened, window, expected[2])
        if self._predicted is None:
            self.extrapolated(self.declaration.guess)
        assert self._predicted is not None
        degree, predicted = self._predicted
        outcome = Outcome(self.y, z, predicted, degree, residual=self._residual)
        if self._repeats:
            self._tell_of_corrections(outcome)
        if type(self.history) is not History:
            outcome.kept = self.history.kept(z, self.applied)
        if window is not limit:
            outcome.t1, outcome.H = window.t1, window.H
        return outcome

    def _tell_of_corrections(self, outcome: Outcome) -> None:
        begun = len(self._problems) + self._renewals  # norms of first guesses
        outcome.iterations = len(self._norms) - begun if self._norms else max(self._sweeps - 1, 0)
        outcome.converged, outcome.norms, outcome.renewed = self._converged, self._norms, self._renewals > 0
        outcome.left = self._noted
        if self._further is not None:
            outcome.unsolved = self._further.refusal()
            if outcome.unsolved is not None:
                self._blame(outcome.unsolved)

    def let_go(self) -> None:
        """No step of this run comes any more."""
        self.trial = _NO_TRIAL

    def _begin_trial(self, history: History, window: Window) -> None:
        if self._branch is not None:
            self._branch.begin()
        declaration, plan = self.declaration, self.plan
        how = self.method.degree, declaration.jacobian, declaration.increment
        self.trial = Trial(self.caller, history, window, *how, (self.measure.size, self.measure.y_size))
        if declaration.corrector is None:
            return
        if not self._problems or window.H != self._H:
            if self._treatment is not None and not self._problems:
                self._treatment.refuse_unstable(self.method.degree, window.H)
            self._problems, self._H = variants(plan, self._treatment, window.H), window.H

    # -- signals -----------------------------------------------------------------------------------------------------

    def extrapolated(self, degree: int) -> Matrix:
        coefficients, end = self.history.predict(degree, self.window.H)
        if degree == self.declaration.guess:
            self._predicted = len(coefficients) - 1, end
        return coefficients

    def predicted(self, degree: int) -> Vector:
        end = end_values(self.history.extrapolate(degree, self.window.H))
        if degree == self.declaration.guess:
            self._predicted = self.history.extrapolation_degree(degree), end
        return end

    def ending_in(self, z: Vector) -> Matrix:
        self.z = z
        return self.trial.coefficients(z)

    def applied(self) -> Matrix:
        """The signal of the last subsystem step."""
        return self.trial.coefficients(self._ended)

    # -- advancing -------------------------------------------------------------------------------------------

    def sweep(self, signal: Matrix) -> None:
        local = self._local if self._moved else self._first_local
        self._moved, self._sweeps, self._left = True, self._sweeps + 1, None
        self.y = self.caller.sweep(self.window, signal, local)
        if self._repeats:
            self._ended = self.z
            self.trial.stand_at(self.z, self.y)
            if self._opened is None:
                self._opened = StepEnd(self.z.copy(), self.y)

    def keep_end(self) -> None:
        """Remember where the last subsystem step ended, whatever a corrector does with its arrays."""
        self._ended = self.z.copy()

    def rollback(self) -> None:
        if self._moved:
            self.caller.restore(self.trial.states)

    @property
    def serial(self) -> Serial:
        """The order of serial sweeps, and what becomes known in it."""
        if self._serial is None:
            self._serial = Serial(self.plan, in_order(self.plan, self.declaration.order))
        return self._serial

    def serial_order(self) -> range:
        return range(self.plan.n_subsystems)

    def editable_signal(self, signal: Matrix) -> Matrix:
        base, weight = self.history.interpolation(self.method.degree, self.window.H)
        opened = np.zeros((max(len(base), len(signal)), self.plan.n_z))
        opened[: len(signal)] = signal
        self._nodes = base, weight
        self.y, self._new = np.empty(self.plan.n_y), end_values(signal)
        self._moved, self._sweeps, self._left = True, self._sweeps + 1, None
        return opened

    def advance(self, place: int, signal: Matrix) -> None:
        i = self.serial.sequence[place]
        ready = self._ready.get(i)
        self.y[self.plan.y_slices[i]] = self.caller.advance(i, self.window, signal) if ready is None else ready

    def set_known_ends(self, place: int, signal: Matrix) -> None:
        rows = self.serial.know(place, self.y, self._new)
        if len(rows):
            base, weight = self._nodes
            signal[:, rows] = 0.0
            signal[: len(base), rows] = base[:, rows] + weight[:, np.newaxis] * self._new[rows]

    def end_values(self, z: Vector) -> Vector:
        self.z = self._ended = np.where(self.serial.lagging, z, self._new)
        if self._opened is None:
            seen = partial(self.serial.seen, guessed=z.copy(), known=self._new.copy())
            self._opened = StepEnd(self.z.copy(), self.y, seen)
        return self.z

    def leader_step(self, degree: int) -> None:
        history, limit, leader = self.history, self.window, self.serial.sequence[0]
        usual = history.steps[0] if history.steps else limit.H  # a length to measure time in
        ahead = Window(limit.t0, limit.t1, usual)
        t1, outputs = self.caller.own_step(leader, ahead, history.extrapolate(degree, usual))
        H = t1 - limit.t0
        H = usual if abs(H - usual) < 1e-9 * usual else H  # equal steps stay equal, whatever the rounding of times
        self.window, self._ready = Window(limit.t0, t1, H), {leader: outputs}

    # -- coupling variables and their equations ----------------------------------------------------------------------

    def coupling_from_outputs(self) -> Vector:
        known = self._evaluated
        if known is not None and known[0] is self.z and known[1] is self.y:
            return known[2]
        return self.plan.evaluate(self.y, self.z)

    def reevaluated(self, z: Vector) -> Vector:
        self.y, z = self.caller.settle(self.window.t1, self.y, z, complete=True)
        return z

    def residual(self, z: Vector) -> Vector:
        plan = self.plan if self._problem < 0 else self._problems[self._problem][1]
        if self._left is not None and self._left[0] is z and self._left[1] is plan:
            return self._left[2]
        if plan.explicit:
            self._evaluated = z, self.y, plan.evaluate(self.y, z)
            r = z - self._evaluated[2]
        else:
            r = plan.residual(z, self.y)
        if self.declaration.serial:
            r = np.where(self.serial.lagging, r, 0.0)
        self._left, measure = (z, plan, r), self.measure
        if not measure.known and measure.unknown:
            measure.see(z, r, self.y)
        if measure.has_equations and measure.wants_terms:
            measure.take_terms(plan.terms(z, self.y, measure.seen), r)
        return r

    def newton_step(self, r: Vector) -> Vector:
        newton: Any = self._correctors[self._problem]
        if not self.plan.n_z:
            return r
        shape = (self.window.H, *self.trial.weight.tolist())
        if self._shape != shape:  # a Jacobian that is kept belongs to one step size
            self._shape = shape
            for corrector in self._correctors:
                corrector.start_run(self.plan.z_labels)
                corrector.start_step()
        self._uncorrected = r
        dz: Vector = newton.solve(r, self._equations or self.equations)
        if self._branch is not None and self._branch.returns():
            guess, z = self.z, self.history.values[0]
            self.rollback()
            self.sweep(self.ending_in(z))
            self._uncorrected = r = self.residual(z)
            newton.start_step()
            dz = guess - z + newton.solve(r, self.equations)
        return dz

    def minus(self, a: Vector, b: Vector) -> Vector:
        return a - b

    # -- iterations --------------------------------------------------------------------------------------------------

    @property
    def equations(self) -> InterfaceEquations:
        """The problem at hand as a corrector sees it."""
        if self._equations is None:
            active = np.flatnonzero(self.serial.lagging) if self.declaration.serial else None
            self._equations = InterfaceEquations(self, active)
        return self._equations

    def another_problem(self) -> bool:
        self._problem += 1
        if self._problem == len(self._problems):
            self._problem = 0  # whose residual stands in the result
            return False
        if not self._started:
            for corrector in self._correctors:
                corrector.start_run(self.equations.of_labels(self.plan.z_labels))
            self._started = True
        self.trial.plan = self._problems[self._problem][1]
        self._correctors[self._problem].start_step()
        self._first, self._given_up = len(self._norms), None
        return True

    def converged(self, z: Vector, r: Vector, tol: float, max_iterations: int, accept_unconverged: bool) -> bool:
        plan, measure = self._problems[self._problem][1], self.measure
        inside = self.caller.internal_residual() if self.declaration.local == "one_step" else 0.0
        norms = self._norms
        if len(norms) == self._first:
            measure.begin(z, r)
            if self._renews and self._given_up is None:
                self._guess = z.copy()
        norms.append(max(measure.norm(r, z), inside))
        count = len(norms) - self._first
        lost = count > 1 and measure.lost(z)
        if norms[-1] <= tol and not lost:
            return True
        if count == 2 and self._watched and self.corrections.examinations:
            self._look_at_first(norms)
        stuck = count > 1 and norms[-1] > 0.5 * norms[-2]
        if stuck and not lost and self._is_rounding(plan, r, z, tol, inside):
            return True
        if lost or count > max_iterations or not norms[-1] < DIVERGED * max(norms[self._first], 1.0):
            if accept_unconverged and np.isfinite(norms[-1]):
                self._converged &= not lost and self._is_rounding(plan, r, z, tol, inside)
                return True
            failure = self._not_converged(plan, r, norms[self._first :], tol)
            if not self._renews or self._given_up is not None or count == 1:
                if not lost and count > 1 and np.isfinite(norms[-1]):
                    self._blame(failure)
                raise failure
            self._given_up, self._again, self._first = failure, True, len(norms)
            self._renewals += 1
        return False

    def _look_at_first(self, norms: list[float]) -> None:
        """Where the first of several corrections has done little, check the rollback of all subsystems."""
        corrector, corrections = self.declaration.corrector, self.corrections
        if corrector is None or self.declaration.local != "converged" or self._opened is None:
            return
        if norms[-1] > max((MUCH if corrector.uses_jacobian else 1.0) * norms[-2], LEAST):
            corrections.examinations -= 1
            examine(self.trial, self._opened, jacobians=False)

    def corrected(self, z: Vector, r: Vector) -> Vector:
        equations, corrector = self.equations, self._correctors[self._problem]
        if self._again:  # from the first guess on; where the iteration has got to may be far away
            self._again = False
            return self._guess
        if self._given_up is not None:  # the Jacobian at hand is of another iterate
            corrector.start_run(equations.of_labels(self.plan.z_labels))
            corrector.start_step()
        if equations.active is None:
            found = corrector.correct(z, r, equations)
        else:
            found = equations.whole(corrector.correct(equations.of(z), equations.of(r), equations))
        if self._branch is not None and self._branch.returns():
            corrector.start_step()
            self._guess = self.history.values[0].copy()
            return self._guess
        return found

    def already_evaluated(self, z: Vector) -> bool:
        return z is self._ended or np.array_equal(z, self._ended)

    def residual_too_large(self, z: Vector, r: Vector) -> bool:
        before = self._uncorrected
        if not self._watched or before is None or len(self._problems) != 1 or not self.corrections.wanted:
            return False
        if self._further is None:
            largest = magnitude(r)
            if largest <= self.corrections.quiet or largest <= LEAST * self.measure.least_size:
                return False
            unit = self.measure.unit(z, r)
            began, left = (float((np.abs(v) / unit).max()) for v in (before, r))
            self._try_out(began, left)
            if not is_too_much(began, left):
                return False
            self._further = Repeats(self, began)
            self._further.go_on(left, z, r)
            return True
        return self._further.go_on(float((np.abs(r) / self.measure.unit(z, r)).max()), z, r)

    def corrected_again(self, z: Vector, r: Vector) -> Vector:
        assert self._further is not None
        return self._further.next(z, r, self._correctors[0])

    def accept(self, z: Vector) -> None:
        self._solutions.append(z)
        if self._learns and len(self._norms) > self._first:
            of = self.equations.of
            self._correctors[self._problem].accept(of(z), of(self.residual(z)))

    def accepted(self) -> Vector:
        if self._norms:
            self._judge()
        z = self._solutions[0] if len(self._problems) == 1 else weighted_mean(self._problems, self._solutions)
        return z if self._treatment is None else self._treatment.relax(self.plan, z, self.history.newest)

    def _judge(self) -> None:
        """Raise when residuals that vanish at the first guess would vanish at others as well (0 = 0, gain 1).

        Corrections would find out; steps that need none are looked at once, and once more after each time that there
        were corrections where equations are involved, since these may change their mind in mid-run.
        """
        declaration, corrector = self.declaration, self.declaration.corrector
        if len(self._norms) > len(self._problems):
            self._judged = self.plan.explicit
        elif not self._judged and corrector is not None and declaration.local == "converged":
            self._judged = True
            if corrector.uses_jacobian or (self.plan.n_z <= _FEW and not declaration.serial):
                # the Jacobian of a corrector that needs none is not counted, and all subsystems stay
                ended = self._ended
                with nullcontext() if corrector.uses_jacobian else uncounted(self.caller):
                    for _, problem in self._problems if self.plan.n_z else ():
                        self.trial.plan = problem
                        Factorised(self.jacobian(), self.plan.z_labels)
                if not corrector.uses_jacobian:
                    self._ended = ended

    def jacobian(self) -> Any:
        """The interface Jacobian of the problem at hand; subsystems do not stay where they were."""
        self._ended = _NOWHERE
        G = self.trial.jacobian()
        if self._branch is not None:
            self._branch.see(G)
        return G

    def _is_rounding(self, plan: Plan, r: Vector, z: Vector, tol: float, inside: float) -> bool:
        """True when every residual that misses the tolerance is rounding of its own evaluation."""
        if inside > tol:
            return False
        left = np.abs(r) > np.maximum(tol * self.measure.rows(z), _ROUNDINGS * plan.rounding(z, self.y))
        if not left.any() or not self._norms[-1] < _NEAR:
            return not left.any()
        terms = terms_of_outputs(self.caller, self.window.t1, z)
        return bool((np.abs(r) <= _ROUNDINGS * plan.rounding(z, self.y, terms))[left].all())

    def _not_converged(self, plan: Plan, r: Vector, norms: list[float], tol: float) -> ConvergenceError:
        window, worst = self.window, int(np.argmax(np.abs(r) / self.measure.row_size))
        trend = ", ".join(f"{n:.1e}" for n in norms[-4:])
        fresh = "" if self._given_up is None else " with a Jacobian renewed in each"
        other = "LineSearch(Newton())" if self._renews else "Newton(refresh='iteration')"
        return ConvergenceError(
            f"the interface iteration did not converge in the step from t = {window.t0:.9g} (H = {window.H:.3g}): "
            f"after {len(norms) - 1} corrections{fresh} the residual of '{plan.z_labels[worst]}' is {r[worst]:.3g} "
            f"(tol {tol:g}, last norms {trend}); try {self._remedies(norms[-8:], other)}",
            time=window.t0,
        )

    def _remedies(self, norms: list[float], other: str) -> str:
        """What would work: a tolerance that is met, where the iteration has come near and gets no nearer."""
        if len(norms) == 8 and max(norms) < _NEAR:
            return f"tol={10 * max(norms):.0e}, which is as near as it gets: the outputs are not known any better"
        corrector = self.declaration.corrector
        if corrector is not None and not corrector.uses_jacobian and not self.declaration.serial and self.plan.explicit:
            other = f"sweep='gauss-seidel', which corrects only what lags, {other}"
        return f"a smaller step, {other}, or a looser tol if the norms stand still"

    # -- counters ----------------------------------------------------------------------------------------------------

    def record_scales(self, z: Vector) -> None:
        measure = self.measure
        measure.record_scales(z, self.y)
        if measure.has_equations and measure.outgrows_terms(z, self.y):
            measure.keep_terms(self.plan.terms(z, self.y, measure.seen))

    def record_residual(self, r: Vector) -> None:
        self._residual = magnitude(r)
        self._noted = r if self.plan.explicit else np.where(self._asked, r, 0.0)

    def _try_out(self, began: float, left: float) -> None:
        """Where one Newton step has left much of the residual, look whether a subsystem is to blame."""
        corrections = self.corrections
        if left > max(LITTLE * began, LEAST) and corrections.examinations and self._opened is not None:
            corrections.examinations -= 1
            found = examine(self.trial, self._opened)
            if found and left > max(MUCH * began, LEAST):
                corrections.examinations, corrections.remark = 0, ""
                corrections.say(found)
            elif found:
                corrections.remark = found

    def _blame(self, failure: SimulationError) -> None:
        """Say beside a failure which subsystem is wrong, where one is."""
        corrector = self.declaration.corrector
        if self.declaration.local != "converged" or self._opened is None or corrector is None:
            return
        try:
            found = examine(self.trial, self._opened, corrector.uses_jacobian)
        except RollbackMismatch as wrong:
            found = str(wrong)
        except SimulationError:  # at values outside the range of the models
            return
        if found:
            failure.args = (f"{failure}; {found}", *failure.args[1:])

    def renew(self) -> None:
        """Forget what correctors have learnt: the steps that follow are of another kind."""
        self._started = False

    @property
    def memory(self) -> dict[str, Any]:
        """What is carried from step to step, as copies."""
        return {
            "correctors": [memory_of(corrector) for corrector in self._correctors],
            "measure": memory_of(self.measure),
            "shape": self._shape,
            "started": self._started,
            "judged": self._judged,
            "side": 0.0 if self._branch is None else self._branch.side,
        }

    @memory.setter
    def memory(self, saved: dict[str, Any]) -> None:
        for corrector, held in zip(self._correctors, saved["correctors"], strict=True):
            set_memory(corrector, held)
        self.measure.take_over(saved["measure"])
        self.measure.known = False
        self._shape, self._started, self._judged = saved["shape"], saved["started"], saved["judged"]
        if self._branch is not None:
            self._branch.side = saved.get("side", 0.0)
