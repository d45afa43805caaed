"""The subsystem: a structure, a time integrator, and ports where forces or motion go in and motion or forces come out.

It advances over a macro step with one step of its integrator (or `substeps` of them) and gives the exact derivative of
its outputs, and of its states, by its inputs. Capabilities for interface-Jacobian methods beyond the contract:
`state_jacobian` and `resolve` (Sicklinger (2014), 4.3).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.errors import SetupError, SubsystemError
from cosolve.signal.polynomial import InputSignal, horner
from cosolve.structures.balance import ForceBalance, LoadLevel, StepRecord
from cosolve.structures.integrators import Past, StructureIntegrator, structure_integrator
from cosolve.structures.ports import DofPort, force_matrix, free_outputs, measured, prescribed
from cosolve.structures.settings import past_values, refuse_bad_settings, refuse_unfit_integrator, vector
from cosolve.structures.structure import Structure
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.port import Ports

_KEPT_JACOBIANS = 32
#: Stands for the length of the step before a state that was set from outside.
_AS_NEXT = -1.0
#: Entries of a derivative of the state by the inputs: 1 GB.
_LARGEST_JACOBIAN = 125_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """The last subsystem step of a macro step, substep by substep."""

    start: Past
    H: float
    coefficients: Matrix
    records: tuple[StepRecord, ...]


class SecondOrder(Subsystem):
    """A structure with its time integration rule as a subsystem.

    Parameters
    ----------
    structure : Structure
        The equations.
    integrator : StructureIntegrator or str
        The rule, or its name.
    inputs : sequence of DofPort
        Forces and prescribed motions.
    outputs : sequence of DofPort
        Measured motions and reactions.
    q0 : array_like or None, default None
        Initial displacements. None: zero.
    v0 : array_like or None, default None
        Initial velocities. None: zero.
    a0 : array_like or None, default None
        Initial accelerations. None: from the balance of forces with the inputs `u0`.
    u0 : array_like or None, default None
        Inputs at the start. None: zero.
    before : tuple of (float, array_like, array_like) or None, default None
        Step length, displacements and velocities one step before the start, for "bdf2".
    load : {"interpolated", "end"}, default "interpolated"
        How an input acts in rules that balance forces inside the step: as `(1 - alpha_f) u(t1) + alpha_f u(t0)`, or
        with its end value.
    restart : {"kept", "balanced"}, default "kept"
        Acceleration at the start of a macro step: that of the end of the last one, or from the balance with the inputs
        there, for inputs that jump at macro points.
    substeps : int, default 1
        Number of equal steps of the rule per macro step.
    tol : float, default 1e-12
        Residual force at which the Newton iteration of nonlinear structures ends.
    max_iterations : int, default 25
        Largest number of its iterations.
    warm_start : bool, default False
        Start it from the last solution of the same macro step. Fewer iterations, but results depend on the interface
        iteration within `tol`.

    Attributes
    ----------
    local_iterations : int
        Number of linear solves of the run.
    internal_residual : float
        Residual force after the last step.

    Notes
    -----
    Equations::

        M q'' + D q' + p(q) = f(t) + B u

    References
    ----------
    .. [1] S. A. Sicklinger, Stabilized co-simulation of coupled problems including fields and signals, dissertation,
       Technical University of Munich, 2014, 3.1.

    Examples
    --------
    >>> import cosolve as cs
    >>> mass = cs.structures.SecondOrder(cs.structures.Structure([2.0], K=[[8.0]]), "backward-euler", q0=[1.0],
    ...                       inputs=[cs.structures.DofPort("f", 0, "force")], outputs=[cs.structures.DofPort("x", 0)])
    >>> sorted(cs.capabilities(mass))
    ['approximate step', 'jacobian', 'rollback', 'state']
    """

    variable_step = False  # its integrators count in macro steps

    def __init__(
        self,
        structure: Structure,
        integrator: StructureIntegrator | str,
        *,
        inputs: Sequence[DofPort],
        outputs: Sequence[DofPort],
        q0: npt.ArrayLike | None = None,
        v0: npt.ArrayLike | None = None,
        a0: npt.ArrayLike | None = None,
        u0: npt.ArrayLike | None = None,
        before: tuple[float, npt.ArrayLike, npt.ArrayLike] | None = None,
        load: LoadLevel = "interpolated",
        restart: Literal["kept", "balanced"] = "kept",
        substeps: int = 1,
        tol: float = 1e-12,
        max_iterations: int = 25,
        warm_start: bool = False,
    ) -> None:
        integrator = structure_integrator(integrator)
        refuse_bad_settings(structure, inputs, outputs, load, restart, substeps, tol, max_iterations)
        n = structure.n
        self.structure, self.integrator = structure, integrator
        self.inputs, self.outputs = [at.port for at in inputs], [at.port for at in outputs]
        self.substeps, self.restart, self.warm_start = int(substeps), restart, warm_start
        fixed = prescribed(inputs, n)
        width = Ports(self.inputs).length
        self.balance = ForceBalance(
            structure, fixed, force_matrix(inputs, structure.n, structure.sparse), load, tol, int(max_iterations)
        )
        self._measured = [measured(at, structure.n, structure.sparse, fixed.dofs, structure.labels) for at in outputs]
        self._output_dofs = free_outputs(outputs, structure.n, fixed.free)
        self.u0 = np.zeros(width) if u0 is None else vector("u0", u0, width)
        q = np.zeros(n) if q0 is None else vector("q0", q0, n)
        v = np.zeros(n) if v0 is None else vector("v0", v0, n)
        h_old, q_old, v_old = (0.0, q, v) if before is None else past_values(before, n)
        a = np.zeros(n) if a0 is None else vector("a0", a0, n)
        self._first = Past(q, v, a, q_old, v_old, np.zeros(len(fixed.dofs)), h_old)
        self._a0_given = a0 is not None
        self._state_dofs = np.setdiff1d(np.arange(n), fixed.massless)
        refuse_unfit_integrator(structure, integrator, fixed, self.balance.M)
        self._past = self._first
        self._trial: Trial | None = None
        self._sensitivity: tuple[Trial | None, Past] | None = None
        self._cached: OrderedDict[tuple[Any, ...], Past] = OrderedDict()
        self.local_iterations = 0
        self.internal_residual = 0.0

    @property
    def factorisations(self) -> int:
        """Number of matrices that were factorised since the object was made."""
        return self.balance.factorisations

    # -- the contract ------------------------------------------------------------------------------------

    def start(self, t0: float) -> Vector:
        past, balance = self._first, self.balance
        self.local_iterations, self.internal_residual = 0, 0.0
        self._trial = self._sensitivity = None
        if not self._a0_given:
            load = self.structure.load(t0) + balance.B @ self.u0
            try:
                past = balance.balanced(past, self.structure.internal_force(past.q), load)
            except SubsystemError:
                first = self.integrator.at(past)
                if first.keeps_acceleration:
                    raise SetupError(
                        f"SecondOrder: {first.name} needs the initial acceleration, which the singular mass matrix "
                        "does not determine; give a0 (from the coupled system), or use 'backward-euler'"
                    ) from None
        self._past = replace(past, reaction=balance.reaction(past, t0, self.u0))
        return self._outputs(self._past)

    def advance(self, t0: float, t1: float, u: InputSignal) -> Vector:
        balance, past, guess = self.balance, self._past, self._warm_guess(u)
        u_now = u.coefficients[0]
        h, records = u.H / self.substeps, []
        begin = self._begin(past, t0, h, u_now)
        for k in range(self.substeps):
            last = k + 1 == self.substeps
            t_now, t_next = t0 + k * h, t1 if last else t0 + (k + 1) * h
            u_next = u.end if last else u(t_next)
            record = balance.step(begin, self.integrator, h, (t_now, t_next), (u_now, u_next), guess=guess)
            self.local_iterations += record.solves
            records.append(record)
            begin, u_now = record.end, u_next
        return self._settle(past, u, *records)

    def save(self) -> Past:
        return self._past

    def restore(self, state: Past) -> None:
        self._past = state

    def get_state(self) -> Vector:
        past = self._past
        return np.concatenate([np.asarray(getattr(past, name)).ravel()[index] for name, index in self._state_parts()])

    def set_state(self, x: Vector) -> None:
        begin, parts = 0, {}
        for name, index in self._state_parts():
            whole = getattr(self._past, name).copy()
            whole[index] = x[begin : begin + len(index)]
            parts[name], begin = whole, begin + len(index)
        if "a" not in parts:
            parts["a"] = np.zeros(self.structure.n)
        # a state with a past of its own: one step before it, whatever the length of the next
        h_old = self._past.h_old if self.integrator.starter is None else _AS_NEXT
        self._past = replace(self._past, **parts, h_old=h_old)

    def jacobian(self, t0: float, t1: float, u: InputSignal, weight: Vector) -> Matrix:
        start = self._past
        if self.structure.n * len(self.u0) > _LARGEST_JACOBIAN:
            raise SubsystemError(
                f"a Jacobian by {len(self.u0)} inputs of {self.structure.n} degrees of freedom would fill the memory; "
                "use a corrector that needs none"
            )
        S = self._sensitivities(t0, t1, u, np.asarray(weight, dtype=np.float64))
        self._past = start
        return self._outputs(S)

    # -- for enhanced interface-Jacobian methods -----------------------------------------------------------

    def state_jacobian(self) -> tuple[Matrix, Matrix, Matrix]:
        """Return the derivatives of the motion at the end of the step, a by-product of the last `jacobian`.

        Returns
        -------
        tuple of (ndarray, ndarray, ndarray)
            `dq/du`, `dv/du` and `da/du`.
        """
        if self._sensitivity is None:
            raise SubsystemError("state_jacobian: ask for the jacobian of a completed step first")
        S = self._sensitivity[1]
        return np.asarray(S.q), np.asarray(S.v), np.asarray(S.a)

    def resolve(
        self,
        t0: float,
        t1: float,
        u: InputSignal,
        *,
        predict: bool = True,
        newton_steps: int = 1,
        output_equation: bool = False,
    ) -> Vector:
        """Advance approximately, starting from the last solution of the same step.

        Parameters
        ----------
        t0, t1 : float
            Start and end of the step in seconds.
        u : InputSignal
            The inputs.
        predict : bool, default True
            Shift the last solution by `da/du` times the change of the inputs first, if a `jacobian` is known.
        newton_steps : int, default 1
            Number of Newton corrections.
        output_equation : bool, default False
            Keep the inner degrees of freedom and solve only for those that are outputs. As printed in [1]_; it
            converges to a wrong solution if the structure is nonlinear.

        Returns
        -------
        ndarray
            Outputs at `t1`. `internal_residual` holds the remaining residual force.

        References
        ----------
        .. [1] S. A. Sicklinger, Stabilized co-simulation of coupled problems including fields and signals,
           dissertation, Technical University of Munich, 2014, 4.3.
        """
        if self.substeps != 1:
            raise SubsystemError(f"resolve: it needs one substep per macro step, not {self.substeps}")
        past, trial, guess = self._past, self._trial, None
        if trial is not None and trial.start is past and trial.H == u.H:
            guess = trial.records[-1].end.a
            known = None if self._sensitivity is None else self._sensitivity[0]
            if predict and self._sensitivity is not None and known is not None and known.start is past:
                guess = guess + self._sensitivity[1].a @ (u.end - trial.coefficients.sum(axis=0))
        elif output_equation:
            raise SubsystemError("resolve: the output equation alone needs a subsystem step to begin at; advance first")
        record = self.balance.step(
            self._begin(past, t0, u.H, u.coefficients[0]),
            self.integrator,
            u.H,
            (t0, t1),
            (u.coefficients[0], u.end),
            guess=guess,
            newton_steps=None if output_equation else newton_steps,
            rows=self._output_dofs if output_equation else None,
        )
        self.local_iterations += record.solves
        return self._settle(past, u, record)

    # -- inside --------------------------------------------------------------------------------------------

    def _begin(self, past: Past, t0: float, h: float, u0: Vector) -> Past:
        """The state from which the first substep starts."""
        past = self.balance.enter(past, u0)
        if past.h_old == _AS_NEXT:
            past = replace(past, h_old=h)
        if self.restart == "kept":
            return past
        load = self.structure.load(t0) + self.balance.B @ u0
        return self.balance.balanced(past, self.structure.internal_force(past.q), load)

    def _settle(self, past: Past, u: InputSignal, *records: StepRecord) -> Vector:
        """The step from `past` is advanced, in one record for each internal step: stand at its end."""
        self._trial, self._past = Trial(past, u.H, u.coefficients.copy(), records), records[-1].end
        self.internal_residual = max(record.residual for record in records)
        return self._outputs(self._past)

    def _warm_guess(self, u: InputSignal) -> Vector | None:
        trial = self._trial
        if not self.warm_start or trial is None or trial.start is not self._past or trial.H != u.H or self.substeps > 1:
            return None
        return np.asarray(trial.records[-1].end.a)

    def _sensitivities(self, t0: float, t1: float, u: InputSignal, weight: Vector) -> Past:
        """Derivative of the end state by the size of an input perturbation shaped as `weight`, one column per input."""
        key = (u.H, weight.tobytes(), self._past.h_old)
        S = self._cached.get(key)
        trial = self._trial
        same = trial is not None and trial.start is self._past and trial.H == u.H
        if S is None and not (same and trial is not None and np.array_equal(trial.coefficients, u.coefficients)):
            self.advance(t0, t1, u)
            trial, same = self._trial, True
        if S is None:
            assert trial is not None
            S = self._linearised(trial, weight)
        self._sensitivity = (trial if same else None, S)
        if self.structure.linear:
            self._cached[key] = S
            if len(self._cached) > _KEPT_JACOBIANS:
                self._cached.popitem(last=False)
        return S

    def _linearised(self, trial: Trial, weight: Vector) -> Past:
        """The sensitivity equation, substep by substep (Sicklinger (2014), 4.5)."""
        balance, n, width = self.balance, self.structure.n, len(self.u0)
        zero, columns = np.zeros((n, width)), np.eye(width)
        now = columns * weight[0]
        S = balance.enter(Past(zero, zero, zero, zero, zero, np.zeros((len(balance.fixed.dofs), width))), now)
        if self.restart == "balanced":
            S = balance.balanced(S, self.structure.tangent(trial.records[0].past.q) @ S.q, balance.B @ now)
        for k, record in enumerate(trial.records, 1):
            following = columns * (weight.sum() if k == self.substeps else horner(weight, k / self.substeps))
            S = balance.linearised_step(record, S, (now, following))
            now = following
        return S

    def _outputs(self, past: Past) -> Vector:
        """Outputs of a state, or their derivatives (rows) from those of a state."""
        return np.concatenate(
            [np.zeros((0, *past.q.shape[1:])), *(C @ getattr(past, name) for name, C in self._measured)]
        )

    def _state_parts(self) -> list[tuple[str, npt.NDArray[np.intp]]]:
        """What a step starts from, beyond which nothing of the past matters."""
        dofs, rule = self._state_dofs, self.integrator
        parts = [("q", dofs), ("v", dofs)]
        if rule.starter is not None:
            parts += [("q_old", dofs), ("v_old", dofs)]
        if rule.keeps_acceleration and self.restart == "kept":
            parts.append(("a", dofs))
        if rule.alpha_f and self.balance.level == "interpolated" and len(self._past.reaction):
            parts.append(("reaction", np.arange(len(self._past.reaction))))
        return parts
