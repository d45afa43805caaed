"""The subsystem: a structure, a time integrator, and ports where forces or motion go in and motion or forces come out.

It crosses a macro step with one step of its integrator (or `substeps` of them) and gives the exact derivative of its
outputs, and of its states, by its inputs. Capabilities for interface-Jacobian methods beyond the contract:
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
from cosolve.structures.ports import At, force_matrix, free_outputs, measured, prescribed
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
class _Trial:
    """The last crossing of a macro step, substep by substep."""

    start: Past
    H: float
    coefficients: Matrix
    crossings: tuple[StepRecord, ...]


class SecondOrder(Subsystem):
    """A structure `M q'' + D q' + p(q) = f(t) + B u` crossed with one step of `integrator` per macro step.

    `integrator` is a `StructureIntegrator` or its name. `inputs` and `outputs` are lists of `At`. `q0`, `v0` are the
    initial motion (zero by default), `a0` the initial acceleration (from the balance with inputs `u0` by default),
    `before = (h, q, v)` the values a step of length `h` before the start (for BDF2).

    `load` says how an input acts in integrators that balance forces inside the step: `"interpolated"` as `(1 - alpha_f)
    u(t1) + alpha_f u(t0)`, which keeps the order when integrators differ, or with its `"end"` value. `restart` says
    where the acceleration at the beginning of a macro step comes from: `"kept"` from the end of the last one, or
    `"balanced"` anew with the input there, which suits inputs that jump at macro points. The local Newton iteration
    stops at the residual force `tol`; with `warm_start` it begins at the last trial of the same step (fewer iterations,
    results then depend on the iteration's path within `tol`).

    `local_iterations` counts the linear solves of a run, `factorisations` those of the object's life (one per step size
    for linear structures); `internal_residual` is the residual force left by the last crossing.

    >>> import cosolve as cs
    >>> mass = cs.SecondOrder(cs.Structure([2.0], K=[[8.0]]), "backward-euler", q0=[1.0],
    ...                       inputs=[cs.At("f", 0, "force")], outputs=[cs.At("x", 0)])
    >>> sorted(cs.capabilities(mass))
    ['approximate crossing', 'jacobian', 'rollback', 'state']
    """

    stops_inside = False  # its integrators count in macro steps

    def __init__(
        self,
        structure: Structure,
        integrator: StructureIntegrator | str,
        *,
        inputs: Sequence[At],
        outputs: Sequence[At],
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
        self._trial: _Trial | None = None
        self._sensitivity: tuple[_Trial | None, Past] | None = None
        self._cached: OrderedDict[tuple[Any, ...], Past] = OrderedDict()
        self.local_iterations = 0
        self.internal_residual = 0.0

    @property
    def factorisations(self) -> int:
        """How many matrices of a step were factorised."""
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
        h, crossings = u.H / self.substeps, []
        begin = self._begin(past, t0, h, u_now)
        for k in range(self.substeps):
            last = k + 1 == self.substeps
            t_now, t_next = t0 + k * h, t1 if last else t0 + (k + 1) * h
            u_next = u.end if last else u(t_next)
            crossing = balance.step(begin, self.integrator, h, (t_now, t_next), (u_now, u_next), guess=guess)
            self.local_iterations += crossing.solves
            crossings.append(crossing)
            begin, u_now = crossing.end, u_next
        return self._settle(_Trial(past, u.H, u.coefficients.copy(), tuple(crossings)))

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
        """`dq/du`, `dv/du`, `da/du` at the end of the step, a by-product of the last `jacobian`."""
        if self._sensitivity is None:
            raise SubsystemError("state_jacobian: ask for the jacobian of a crossed step first")
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
        """Cross the step approximately, beginning at its last crossing; outputs at its end (Sicklinger (2014), 4.3).

        The end of the last crossing is shifted by `da/du` times the change of the input's end value (`predict`, once a
        `jacobian` was asked for), then improved by `newton_steps` local Newton corrections. The first crossing of
        a step has nothing to begin at and just takes the corrections. `internal_residual` says how much residual force
        is left, which belongs into the convergence check of the caller ("enhanced+"). With `output_equation` the
        prediction stays for the inner states and only the equations of the output degrees of freedom are solved: the
        enhanced method as printed, which converges to a wrong solution where the structure is nonlinear.
        """
        if self.substeps != 1:
            raise SubsystemError(f"resolve: it needs one substep per macro step, not {self.substeps}")
        past, trial, guess = self._past, self._trial, None
        if trial is not None and trial.start is past and trial.H == u.H:
            guess = trial.crossings[-1].end.a
            if predict and self._sensitivity is not None and self._sensitivity[0] is trial:
                guess = guess + self._sensitivity[1].a @ (u.end - trial.coefficients.sum(axis=0))
        elif output_equation:
            raise SubsystemError("resolve: the output equation alone needs a crossing to begin at; advance first")
        crossing = self.balance.step(
            self._begin(past, t0, u.H, u.coefficients[0]),
            self.integrator,
            u.H,
            (t0, t1),
            (u.coefficients[0], u.end),
            guess=guess,
            newton_steps=None if output_equation else newton_steps,
            rows=self._output_dofs if output_equation else None,
        )
        self.local_iterations += crossing.solves
        return self._settle(_Trial(past, u.H, u.coefficients.copy(), (crossing,)))

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

    def _settle(self, trial: _Trial) -> Vector:
        """The step is crossed: stand at its end."""
        self._trial, self._past = trial, trial.crossings[-1].end
        self.internal_residual = max(crossing.residual for crossing in trial.crossings)
        return self._outputs(self._past)

    def _warm_guess(self, u: InputSignal) -> Vector | None:
        trial = self._trial
        if not self.warm_start or trial is None or trial.start is not self._past or trial.H != u.H or self.substeps > 1:
            return None
        return np.asarray(trial.crossings[-1].end.a)

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

    def _linearised(self, trial: _Trial, weight: Vector) -> Past:
        """The sensitivity equation, substep by substep (Sicklinger (2014), 4.5)."""
        balance, n, width = self.balance, self.structure.n, len(self.u0)
        zero, columns = np.zeros((n, width)), np.eye(width)
        now = columns * weight[0]
        S = balance.enter(Past(zero, zero, zero, zero, zero, np.zeros((len(balance.fixed.dofs), width))), now)
        if self.restart == "balanced":
            S = balance.balanced(S, self.structure.tangent(trial.crossings[0].past.q) @ S.q, balance.B @ now)
        for k, crossing in enumerate(trial.crossings, 1):
            following = columns * (weight.sum() if k == self.substeps else horner(weight, k / self.substeps))
            S = balance.linearised_step(crossing, S, (now, following))
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
