"""The subsystem: a structure, a time integrator, and ports where forces or motion go in and motion or forces come out.

It crosses a macro step with one step of its integrator (or `substeps` of them) and gives the exact derivative of its
outputs, and of its states, by its inputs. Capabilities for interface-Jacobian methods beyond the contract:
`state_jacobian` and `resolve` (spec 2.8).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from numpy.polynomial.polynomial import polyval

from cosolve.errors import SetupError, SubsystemError
from cosolve.subsystem.base import InputSignal, Subsystem
from cosolve.subsystem.port import Matrix, Ports, Vector, initial_state, is_number
from cosolve.subsystem.second_order.balance import Balance, Crossing, LoadLevel
from cosolve.subsystem.second_order.integrators import Integrator, Past
from cosolve.subsystem.second_order.ports import INPUTS, OUTPUTS, At, prescribed
from cosolve.subsystem.second_order.structure import Structure

_KEPT_JACOBIANS = 32


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """The last crossing of a macro step, substep by substep."""

    start: Past
    H: float
    coefficients: Matrix
    crossings: tuple[Crossing, ...]


class SecondOrder(Subsystem):
    """A structure `M q'' + D q' + p(q) = f(t) + B u` crossed with one step of `integrator` per macro step.

    `inputs` and `outputs` are lists of `At`. `q0`, `v0` are the initial motion (zero by default), `a0` the initial
    acceleration (from the balance with inputs `u0` by default), `before = (h, q, v)` the values a step of length `h`
    before the start (for BDF2). `load` says how an input acts in integrators that balance forces inside the step:
    `"interpolated"` as `(1 - alpha_f) u(t1) + alpha_f u(t0)`, which keeps the order when integrators differ, or with its
    `"end"` value. `restart` says where the acceleration at the beginning of a macro step comes from: `"kept"` from the
    end of the last one, or `"balanced"` anew with the input there, which suits inputs that jump at macro points. The local
    Newton iteration stops at the residual force `tol`; with `warm_start` it begins at the last trial of the same
    step (fewer iterations, results then depend on the iteration's path within `tol`).

    `local_iterations` counts linear solves of the run, `internal_residual` is the residual force left by the last
    crossing.

    >>> import cosolve as cs
    >>> from cosolve.subsystem.second_order import At, SecondOrder, Structure, backward_euler
    >>> mass = SecondOrder(Structure([2.0], K=[[8.0]]), backward_euler(), q0=[1.0],
    ...                    inputs=[At("f", 0, "force")], outputs=[At("x", 0)])
    >>> sorted(cs.capabilities(mass))
    ['jacobian', 'rollback', 'state']
    """

    def __init__(
        self,
        structure: Structure,
        integrator: Integrator,
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
        _refuse(structure, integrator, inputs, outputs, load, restart, substeps, tol, max_iterations)
        n = structure.n
        self.structure, self.integrator = structure, integrator
        self.inputs, self.outputs = [at.port for at in inputs], [at.port for at in outputs]
        self.substeps, self.restart, self.warm_start = int(substeps), restart, warm_start
        fixed = prescribed(inputs, n)
        width = Ports(self.inputs).length
        self.balance = Balance(structure, fixed, _force_matrix(inputs, structure), load, tol, int(max_iterations))
        self._measured = [_measure(at, structure, fixed.dofs) for at in outputs]
        self._output_dofs = _free_outputs(outputs, structure, fixed.free)
        self.u0 = np.zeros(width) if u0 is None else _vector("u0", u0, width)
        q = np.zeros(n) if q0 is None else _vector("q0", q0, n)
        v = np.zeros(n) if v0 is None else _vector("v0", v0, n)
        h_old, q_old, v_old = 0.0, q, v
        if before is not None:
            h_old, q_old, v_old = float(before[0]), _vector("before q", before[1], n), _vector("before v", before[2], n)
        a = np.zeros(n) if a0 is None else _vector("a0", a0, n)
        self._first = Past(q, v, a, q_old, v_old, np.zeros(len(fixed.dofs)), h_old)
        self._a0_given = a0 is not None
        self._state_dofs = np.setdiff1d(np.arange(n), fixed.massless)
        self._refuse_unfit_integrator()
        self._past = self._first
        self._trial: _Trial | None = None
        self._sensitivity: tuple[_Trial, Past] | None = None
        self._cached: OrderedDict[tuple[Any, ...], Past] = OrderedDict()
        self.local_iterations = 0
        self.internal_residual = 0.0

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
                        f"SecondOrder: {first.name} needs the initial acceleration, which the singular mass matrix does "
                        "not determine; give a0 (from the coupled system), or use backward_euler()"
                    ) from None
        self._past = replace(past, reaction=balance.reaction(past, t0, self.u0))
        return self._outputs(self._past)

    def advance(self, t0: float, t1: float, u: InputSignal) -> Vector:
        balance, past, guess = self.balance, self._past, self._warm_guess(u)
        u_now = u.coefficients[0]
        begin = self._begin(past, t0, u_now)
        h, crossings = u.H / self.substeps, []
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
        self._past = replace(self._past, **parts)

    def jacobian(self, t0: float, t1: float, u: InputSignal, weight: Vector) -> Matrix:
        start = self._past
        S = self._sensitivities(t0, t1, u, np.asarray(weight, dtype=np.float64))
        self._past = start
        return self._outputs(S)

    # -- for enhanced interface-Jacobian methods -----------------------------------------------------------

    def state_jacobian(self) -> tuple[Matrix, Matrix, Matrix]:
        """`dq/du`, `dv/du`, `da/du` at the end of the step, a by-product of the last `jacobian` (spec 2.8)."""
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
        """Cross the last step again for slightly different inputs, approximately; outputs at its end (spec 2.8).

        The end of the last crossing is shifted by `da/du` times the change of the input's end value (`predict`), then
        improved by `newton_steps` local Newton corrections. `internal_residual` says how much residual force is left,
        which belongs into the convergence check of the caller ("enhanced+"). With `output_equation` the prediction
        stays for the inner states and only the equations of the output degrees of freedom are solved: the enhanced
        method as printed, which converges to a wrong solution where the structure is nonlinear.
        """
        trial = self._trial
        if trial is None or trial.start is not self._past or self.substeps != 1:
            raise SubsystemError(
                "resolve: it repeats the crossing of a step with one substep; restore the state at its beginning, "
                "advance, and then resolve"
            )
        crossing = trial.crossings[-1]
        a, end = crossing.end.a, u.end
        if predict:
            if self._sensitivity is None or self._sensitivity[0] is not trial:
                raise SubsystemError(
                    "resolve: the prediction needs the jacobian of the last crossing; ask for it first"
                )
            a = a + np.asarray(self._sensitivity[1].a) @ (end - trial.coefficients.sum(axis=0))
        u_now = u.coefficients[0]
        times, inputs = (t0, t1), (u_now, end)
        if output_equation:
            a = self._solve_outputs(crossing, times, inputs, a)
            newton_steps = 0
        crossing = self.balance.step(
            crossing.past, self.integrator, u.H, times, inputs, guess=a, newton_steps=newton_steps
        )
        self.local_iterations += crossing.solves
        return self._settle(_Trial(trial.start, u.H, u.coefficients.copy(), (crossing,)))

    def _solve_outputs(
        self, crossing: Crossing, times: tuple[float, float], inputs: tuple[Vector, Vector], a: Vector
    ) -> Vector:
        """Accelerations with only the balance at the (free) output degrees of freedom solved."""
        own, balance = self._output_dofs, self.balance
        if not len(own):
            return a
        scheme = crossing.scheme
        rates = scheme.rule(crossing.past, crossing.h)
        for _ in range(balance.max_iterations):
            r, A = balance.residual_and_matrix(scheme, crossing, rates, times, inputs, a)
            if np.abs(r[own]).max() <= balance.tol:
                return a
            a = a.copy()
            a[own] -= np.linalg.solve(A[np.ix_(own, own)], r[own])
            self.local_iterations += 1
        raise SubsystemError("resolve: the output equation has no solution that Newton finds")

    # -- inside --------------------------------------------------------------------------------------------

    def _begin(self, past: Past, t0: float, u0: Vector) -> Past:
        """The state from which the first substep starts."""
        past = self.balance.enter(past, u0)
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
        """Derivative of the end state by the size of an input perturbation of the shape `weight`, one column per input."""
        key = (u.H, weight.tobytes(), self._past.h_old)
        if self.structure.linear and key in self._cached and self._sensitivity is not None:
            return self._cached[key]
        trial = self._trial
        if (
            trial is None
            or trial.start is not self._past
            or trial.H != u.H
            or not np.array_equal(trial.coefficients, u.coefficients)
        ):
            self.advance(t0, t1, u)
            trial = self._trial
            assert trial is not None
        n, width = self.structure.n, len(self.u0)
        zero, columns = np.zeros((n, width)), np.eye(width)
        S = Past(zero, zero, zero, zero, zero, np.zeros((len(self.balance.fixed.dofs), width)))
        now = columns * weight[0]
        S = self.balance.enter(S, now)
        if self.restart == "balanced":
            S = self.balance.balanced(S, self.structure.tangent(trial.crossings[0].past.q) @ S.q, self.balance.B @ now)
        for k, crossing in enumerate(trial.crossings):
            following = columns * (weight.sum() if k + 1 == self.substeps else polyval((k + 1) / self.substeps, weight))
            S = self.balance.linearised_step(crossing, S, (now, following))
            now = following
        self._sensitivity = (trial, S)
        if self.structure.linear:
            self._cached[key] = S
            if len(self._cached) > _KEPT_JACOBIANS:
                self._cached.popitem(last=False)
        return S

    def _outputs(self, past: Past) -> Any:
        values = [C @ getattr(past, name) for name, C in self._measured]
        return np.concatenate(values) if values else np.zeros(0)

    def _state_parts(self) -> list[tuple[str, npt.NDArray[np.intp]]]:
        """What a step starts from, beyond which nothing of the past matters."""
        dofs, rule = self._state_dofs, self.integrator
        parts = [("q", dofs), ("v", dofs)]
        if rule.starter is not None:
            parts += [("q_old", dofs), ("v_old", dofs)]
        if (rule.at(self._past).keeps_acceleration or rule.starter is not None) and self.restart == "kept":
            parts.append(("a", dofs))
        if rule.alpha_f and self.balance.level == "interpolated" and len(self._past.reaction):
            parts.append(("reaction", np.arange(len(self._past.reaction))))
        return parts

    def _refuse_unfit_integrator(self) -> None:
        fixed, rule = self.balance.fixed, self.integrator
        if not rule.explicit:
            return
        if not self.structure.diagonal_mass():
            raise SetupError(f"SecondOrder: {rule.name} need a lumped (diagonal) mass matrix")
        masses = self.balance.M.diagonal()[fixed.free]
        if not (masses > 0).all():
            where = self.structure.labels[int(fixed.free[int(np.argmin(masses))])]
            raise SetupError(
                f"SecondOrder: {rule.name} cannot move {where}, which has no mass; give it mass or use trapezoidal()"
            )
        if len(fixed.only_q):
            raise SetupError(
                f"SecondOrder: {rule.name} cannot follow the displacement of {self.structure.labels[int(fixed.only_q[0])]} "
                "alone; prescribe its velocity too, or use an implicit integrator"
            )


def _refuse(
    structure: object,
    integrator: object,
    inputs: Sequence[At],
    outputs: Sequence[At],
    load: str,
    restart: str,
    substeps: object,
    tol: object,
    max_iterations: object,
) -> None:
    if not isinstance(structure, Structure):
        raise SetupError(f"SecondOrder: the first argument must be a Structure, not {structure!r}")
    if not isinstance(integrator, Integrator):
        raise SetupError(f"SecondOrder: the integrator must be one such as backward_euler(), not {integrator!r}")
    for ports, allowed, kind in ((inputs, INPUTS, "an input"), (outputs, OUTPUTS, "an output")):
        for at in ports:
            if not isinstance(at, At):
                raise SetupError(f"SecondOrder: ports are given as At(name, dofs, what), not {at!r}")
            if at.what not in allowed:
                raise SetupError(
                    f"SecondOrder: {kind} is one of {', '.join(allowed)}; '{at.name}' asks for {at.what!r}"
                )
    if load not in ("interpolated", "end"):
        raise SetupError(f"SecondOrder: load must be 'interpolated' or 'end', not {load!r}")
    if restart not in ("kept", "balanced"):
        raise SetupError(f"SecondOrder: restart must be 'kept' or 'balanced', not {restart!r}")
    for name, value in (("substeps", substeps), ("max_iterations", max_iterations)):
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
            raise SetupError(f"SecondOrder: {name} must be a whole number of at least 1, not {value!r}")
    if not (is_number(tol) and float(tol) > 0):  # type: ignore[arg-type]
        raise SetupError(f"SecondOrder: tol must be a positive force, not {tol!r}")


def _vector(name: str, value: npt.ArrayLike, n: int) -> Vector:
    v = initial_state(f"SecondOrder ({name})", value)
    if len(v) != n:
        raise SetupError(f"SecondOrder: {name} holds {len(v)} numbers, expected {n}")
    return v


def _force_matrix(inputs: Sequence[At], structure: Structure) -> Any:
    """`B`: one column per input value, zero for prescribed motion."""
    from scipy.sparse import csr_array, hstack

    blocks = []
    for at in inputs:
        block = at.matrix(structure.n, structure.sparse)
        blocks.append(block if at.what == "force" else 0.0 * block)
    if not blocks:
        return np.zeros((structure.n, 0))
    return csr_array(hstack(blocks)) if structure.sparse else np.hstack(blocks)


def _measure(at: At, structure: Structure, fixed: npt.NDArray[np.intp]) -> tuple[str, Any]:
    """The part of the state that a port reads, and the matrix that picks it."""
    if at.what != "reaction":
        return {"displacement": "q", "velocity": "v", "acceleration": "a"}[at.what], at.matrix(
            structure.n, structure.sparse
        ).T
    dofs = at.index(structure.n)
    free = np.setdiff1d(dofs, fixed)
    if len(free):
        raise SetupError(
            f"SecondOrder: '{at.name}' asks for the reaction at {structure.labels[int(free[0])]}, whose motion is not "
            "prescribed; reactions exist only where an input prescribes the motion"
        )
    C = np.zeros((len(dofs), len(fixed)))
    C[np.arange(len(dofs)), np.searchsorted(fixed, dofs)] = at.factor
    return "reaction", C


def _free_outputs(outputs: Sequence[At], structure: Structure, free: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    found = [at.index(structure.n) for at in outputs if at.what != "reaction" and not at.is_matrix]
    return np.intersect1d(np.concatenate(found), free) if found else np.zeros(0, dtype=np.intp)
