"""The balance of forces over one step: kinematics, residual, local Newton iteration, and the derivative of all that.

With the rule `q1 = q_hat + c_q a1`, `v1 = v_hat + c_v a1` of the integrator the unknown is the end acceleration of the
free degrees of freedom, and the residual (Sicklinger (2014), Eq. 3.12, for all integrators)

    r = M [(1 - alpha_m) a1 + alpha_m a0] + D [(1 - alpha_f) v1 + alpha_f v0] + (1 - alpha_f) p(q1) + alpha_f p(q0) - f

vanishes there; at prescribed degrees of freedom it is the reaction. The derivative by the inputs solves the same
equation, linearised, with one factorisation (Sicklinger (2014), 4.5: Schur complement and sensitivity equation in one).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.errors import SubsystemError
from cosolve.structures.integrators import Past, Rates, StructureIntegrator
from cosolve.structures.ports import Index, Prescribed
from cosolve.structures.structure import AnyMatrix, Structure, factorise

LoadLevel = Literal["interpolated", "end"]
Solve = Callable[[Any], Any]

#: Newton stands still at rounding when the correction is this small and the residual does not fall any more.
_STILL = 1e-10
_KEPT_FACTORS = 32


@dataclass(frozen=True, slots=True, eq=False)
class StepRecord:
    """One step that was advanced: from `past` to `end` with `scheme` and length `h`; `residual` is what was left."""

    past: Past
    end: Past
    scheme: StructureIntegrator
    h: float
    residual: float
    solves: int


class ForceBalance:
    """The discrete equation of motion of a structure whose inputs are forces `B u` and prescribed motion."""

    def __init__(
        self,
        structure: Structure,
        fixed: Prescribed,
        B: AnyMatrix,
        level: LoadLevel,
        tol: float,
        max_iterations: int,
    ) -> None:
        self.structure, self.fixed, self.B, self.level = structure, fixed, B, level
        self.tol, self.max_iterations = tol, max_iterations
        self.M = structure.without_mass(fixed.massless) if len(fixed.massless) else structure.M
        self._labels = [structure.labels[i] for i in fixed.free]
        self._factors: OrderedDict[tuple[float, ...], Solve] = OrderedDict()
        self._mass_factors: Solve | None = None
        self.factorisations = 0

    def __getstate__(self) -> dict[str, Any]:
        """Without the factorisations, which other processes make again."""
        return {**self.__dict__, "_factors": OrderedDict(), "_mass_factors": None}

    # -- one step ----------------------------------------------------------------------------------------

    def step(
        self,
        past: Past,
        integrator: StructureIntegrator,
        h: float,
        times: tuple[float, float],
        inputs: tuple[Vector, Vector],
        *,
        guess: Vector | None = None,
        newton_steps: int | None = None,
        rows: Index | None = None,
    ) -> StepRecord:
        """Advance `[t0, t1]` with inputs `u(t0)`, `u(t1)`.

        Newton starts from the accelerations `guess` (by default: those that leave the structure where it is) and runs
        until the residual is below `tol`, or takes exactly `newton_steps` corrections whatever is left. With `rows`
        only these degrees of freedom are moved and balanced.
        """
        scheme, S = integrator.at(past), self.structure
        free = self.fixed.free if rows is None else rows
        rates = scheme.rule(past, h)
        p0 = S.internal_force(past.q) if scheme.alpha_f else 0.0
        load = self._load(scheme, times, inputs)
        a = guess
        if a is None:  # begin where the structure stands
            a = (past.q - rates.q_hat) / rates.c_q if rates.c_q else past.a
        if newton_steps is None and (S.linear or scheme.explicit) and rows is None:
            newton_steps = 1  # exact up to rounding
        norms: list[float] = []
        moved = np.inf
        while True:
            q, v, a = self.motion(rates, a, inputs[1])
            r = self._residual(scheme, past, (q, v, a), S.internal_force(q), p0) - load
            norms.append(float(np.abs(r[free]).max(initial=0.0)))
            solves = len(norms) - 1
            if solves == newton_steps or (newton_steps is None and self._converged(norms, moved, q)):
                break
            if solves == self.max_iterations:
                raise self._not_converged(times[1], r, norms)
            correction = np.zeros(S.n)
            correction[free] = -self.solver(scheme, rates, q, rows=rows)(r[free])
            a = a + correction
            moved = rates.c_q * float(np.abs(correction).max(initial=0.0))
        left = float(np.abs(r[self.fixed.free]).max(initial=0.0))
        return StepRecord(past, self._arrive(scheme, past, h, (q, v, a), r), scheme, h, left, solves)

    def _converged(self, norms: list[float], moved: float, q: Vector) -> bool:
        """The residual is below the tolerance, or rounding keeps it from falling any further."""
        if norms[-1] <= self.tol:
            return True
        still = moved <= _STILL * float(np.abs(q).max(initial=0.0))
        return len(norms) > 1 and still and norms[-1] > 0.1 * norms[-2]

    def motion(self, rates: Rates, a: Any, u1: Any) -> tuple[Any, Any, Any]:
        """Displacement, velocity and acceleration at the end, for free accelerations `a` and inputs `u1` (columns too).

        A prescribed level is met exactly and the others follow from the integrator; where displacement and velocity are
        prescribed, the acceleration is zero ("acceleration-free", Schmoll (2015), 3.3.3).
        """
        fixed = self.fixed
        if not len(fixed.dofs):
            return rates.q_hat + rates.c_q * a, rates.v_hat + rates.c_v * a, a
        a = a.copy()
        given_q, given_v = _given(fixed.q_factor, u1[fixed.q_u]), _given(fixed.v_factor, u1[fixed.v_u])
        a[fixed.massless] = 0.0
        a[fixed.a] = _given(fixed.a_factor, u1[fixed.a_u])
        for only, dofs, given, hat, c in (
            (fixed.only_q, fixed.q, given_q, rates.q_hat, rates.c_q),
            (fixed.only_v, fixed.v, given_v, rates.v_hat, rates.c_v),
        ):
            if len(only):
                whole = np.zeros_like(a)
                whole[dofs] = given
                a[only] = (whole[only] - hat[only]) / c
        q, v = rates.q_hat + rates.c_q * a, rates.v_hat + rates.c_v * a
        q[fixed.q], v[fixed.v] = given_q, given_v
        return q, v, a

    def _residual(self, scheme: StructureIntegrator, past: Past, motion: tuple[Any, Any, Any], p1: Any, p0: Any) -> Any:
        """The residual without the load."""
        _, v, a = motion
        am, af = scheme.alpha_m, scheme.alpha_f
        r = self.M @ ((1 - am) * a + am * past.a if am else a) + ((1 - af) * p1 + af * p0 if af else p1)
        if self.structure.D is not None:
            r = r + self.structure.D @ ((1 - af) * v + af * past.v if af else v)
        return r

    def _load(self, scheme: StructureIntegrator, times: tuple[float, float], inputs: tuple[Vector, Vector]) -> Vector:
        af = scheme.alpha_f
        known = self.structure.load(times[1])
        if af:
            known = (1 - af) * known + af * self.structure.load(times[0])
        load: Vector = known + self.B @ self._input_level(scheme, *inputs)
        return load

    def _input_level(self, scheme: StructureIntegrator, u0: Any, u1: Any) -> Any:
        """The inputs at the time where the balance holds (Eq. 3.41), or at the end."""
        af = scheme.alpha_f if self.level == "interpolated" else 0.0
        return (1 - af) * u1 + af * u0 if af else u1

    def _arrive(self, scheme: StructureIntegrator, past: Past, h: float, motion: tuple[Any, Any, Any], r: Any) -> Past:
        """The state at the end; the reaction belongs to the same time level as the inputs."""
        reaction = r[self.fixed.dofs]
        af = scheme.alpha_f if self.level == "interpolated" else 0.0
        if af:
            reaction = (reaction - af * past.reaction) / (1 - af)
        q, v, a = motion
        return Past(q, v, a, past.q, past.v, reaction, h)

    # -- its derivative ----------------------------------------------------------------------------------

    def linearised_step(self, record: StepRecord, S: Past, inputs: tuple[Matrix, Matrix]) -> Past:
        """Derivative of the end of `record`, given that of its start and of the inputs at both ends (columns)."""
        scheme, free = record.scheme, self.fixed.free
        rates = scheme.rule(replace(S, h_old=record.past.h_old), record.h)
        tangent = self.structure.tangent
        K1 = tangent(record.end.q)
        p0 = tangent(record.past.q) @ S.q if scheme.alpha_f else 0.0
        load = self.B @ self._input_level(scheme, *inputs)
        motion = self.motion(rates, np.zeros_like(S.a), inputs[1])
        r = self._residual(scheme, S, motion, K1 @ motion[0], p0) - load
        a = motion[2]
        a[free] = -self.solver(scheme, rates, record.end.q, K1)(r[free])
        motion = self.motion(rates, a, inputs[1])
        r = self._residual(scheme, S, motion, K1 @ motion[0], p0) - load
        return self._arrive(scheme, S, record.h, motion, r)

    def solver(
        self,
        scheme: StructureIntegrator,
        rates: Rates,
        q: Vector,
        K: AnyMatrix | None = None,
        rows: Index | None = None,
    ) -> Solve:
        """Solves with `(1 - alpha_m) M + (1 - alpha_f) (c_v D + c_q K)`; factorised once where `K` does not change."""
        key = (scheme.alpha_m, scheme.alpha_f, rates.c_q, rates.c_v)
        constant = (self.structure.linear or scheme.explicit) and rows is None
        if constant and key in self._factors:
            return self._factors[key]
        af = scheme.alpha_f
        A = (1 - scheme.alpha_m) * self.M
        if self.structure.D is not None:
            A = A + ((1 - af) * rates.c_v) * self.structure.D
        if not scheme.explicit:
            A = A + ((1 - af) * rates.c_q) * (self.structure.tangent(q) if K is None else K)
        solve = factorise(self._block(A, rows), self._labels)
        self.factorisations += 1
        if constant:
            self._factors[key] = solve
            if len(self._factors) > _KEPT_FACTORS:
                self._factors.popitem(last=False)
        return solve

    def _block(self, A: AnyMatrix, rows: Index | None = None) -> AnyMatrix:
        """The rows and columns of the free degrees of freedom, or of `rows`."""
        if rows is None and not len(self.fixed.dofs):
            return A
        rows = self.fixed.free if rows is None else rows
        return A[rows][:, rows]

    # -- the beginning of a step ---------------------------------------------------------------------------

    def enter(self, past: Past, u0: Any) -> Past:
        """Acceleration-free degrees of freedom follow the inputs of this step from its beginning (columns too)."""
        fixed, free = self.fixed, self.fixed.massless
        if not len(free):
            return past
        q, v = past.q.copy(), past.v.copy()
        given = np.zeros_like(q)
        given[fixed.q] = _given(fixed.q_factor, u0[fixed.q_u])
        q[free] = given[free]
        given[fixed.v] = _given(fixed.v_factor, u0[fixed.v_u])
        v[free] = given[free]
        return replace(past, q=q, v=v)

    def balanced(self, past: Past, p: Any, load: Any) -> Past:
        """`past` with free accelerations from `M a = load - D v - p`; prescribed ones stay."""
        free = self.fixed.free
        if self._mass_factors is None:
            self._mass_factors = factorise(self._block(self.M), self._labels)
        a = past.a.copy()
        a[free] = 0.0
        r = self.M @ a + p - load
        if self.structure.D is not None:
            r = r + self.structure.D @ past.v
        a[free] = -self._mass_factors(r[free])
        return replace(past, a=a)

    def reaction(self, past: Past, t: float, u: Vector) -> Vector:
        """Forces at the prescribed degrees of freedom that belong to `past`, from the balance at one instant."""
        r = self.M @ past.a + self.structure.internal_force(past.q) - self.structure.load(t) - self.B @ u
        if self.structure.D is not None:
            r = r + self.structure.D @ past.v
        found: Vector = r[self.fixed.dofs]
        return found

    def _not_converged(self, t: float, r: Vector, norms: list[float]) -> SubsystemError:
        free = self.fixed.free
        worst = self.structure.labels[int(free[np.argmax(np.abs(r[free]))])]
        trend = ", ".join(f"{n:.1e}" for n in norms[-4:])
        return SubsystemError(
            f"the local Newton iteration did not converge in the step to t = {t:.9g}: after {len(norms) - 1} "
            f"corrections the largest residual force is {norms[-1]:.3g}, at {worst} (tol {self.tol:g}, last {trend}); "
            "take a smaller step or more substeps, check the tangent, or loosen tol",
            time=t,
        )


def _given(factor: Vector, values: Any) -> Any:
    """Input values times their factors, one row each (columns too)."""
    return (values.T * factor).T
