"""Derivatives of the states with respect to the inputs, carried along the internal steps of a subsystem step.

The variational equation `S' = A S + B w` for inputs `u + eps w(s)`, with the partials `A, B` that the FMU gives at
every stage, is integrated by the same Runge-Kutta steps as the states, so the result is the derivative of the numerical
solution itself.
"""

from __future__ import annotations

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.lu import factorised
from cosolve.errors import SubsystemError
from cosolve.fmu.continuous import Continuous
from cosolve.fmu.partials import Derivatives
from cosolve.integrator.inner_steps import Inside
from cosolve.integrator.kernels import Tableau
from cosolve.signal.polynomial import InputSignal, horner


class Sensitivity:
    """`S = dx / d eps`, one column per continuous input; starts at zero."""

    def __init__(self, fmu: Continuous, derivatives: Derivatives, u: InputSignal, weight: Vector) -> None:
        self._fmu, self._derivatives, self._u, self._weight = fmu, derivatives, u, weight
        self.S: Matrix = np.zeros((fmu.n_states, derivatives.p))

    def _shape(self, t: float) -> float:
        """The weight at time `t`."""
        return float(horner(self._weight, (t - self._u.t0) / self._u.H))

    def explicit_step(self, t: float, t1: float, x: Vector, tableau: Tableau) -> None:
        """Over one explicit Runge-Kutta step from state `x`."""
        h, S = t1 - t, self.S
        slopes: list[Vector] = []
        changes: list[Matrix] = []
        for a, c in zip(tableau.a, tableau.c, strict=True):
            x_i, S_i, t_i = x, S, t + c * h
            for factor, slope, change in zip(a, slopes, changes, strict=False):
                if factor != 0.0:
                    x_i = x_i + (h * factor) * slope
                    S_i = S_i + (h * factor) * change
            slopes.append(self._fmu.slope(t_i, x_i, self._u(t_i)))
            at = self._derivatives.read()
            changes.append(at.A @ S_i + at.B * self._shape(t_i))
        for b, change in zip(tableau.b, changes, strict=True):
            self.S = self.S + (h * b) * change

    def implicit_step(self, t: float, t1: float, inside: Inside) -> None:
        """Over one step of a stiff solver: two Gauss points (order 4, A-stable) along its continuous extension."""
        h, n = t1 - t, self._fmu.n_states
        root = np.sqrt(3.0) / 6.0
        a = np.array([[0.25, 0.25 - root], [0.25 + root, 0.25]])
        system, right = np.eye(2 * n), np.empty((2 * n, self._derivatives.p))
        for i, c in enumerate((0.5 - root, 0.5 + root)):
            t_i, rows = t + c * h, slice(i * n, (i + 1) * n)
            self._fmu.slope(t_i, inside(t_i), self._u(t_i))
            at = self._derivatives.read()
            for j in range(2):
                system[rows, j * n : (j + 1) * n] -= (h * a[i, j]) * at.A
            right[rows] = at.A @ self.S + at.B * self._shape(t_i)
        solve = factorised(system)
        if solve is None:
            raise SubsystemError(f"the sensitivities of its states over the step to t = {t1:.9g} are not determined")
        changes = solve(right)
        self.S = self.S + 0.5 * h * (changes[:n] + changes[n:])

    def outputs(self) -> Matrix:
        """`dy / d eps` at the end of the step, where the point is set."""
        at = self._derivatives.read()
        moved: Matrix = at.C @ self.S + at.D * float(self._weight.sum())
        return moved
