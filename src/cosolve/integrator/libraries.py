"""Adapters to SciPy's `solve_ivp` and to SUNDIALS' CVODE (scikit-sundae), restarted at every macro point."""

from __future__ import annotations

from typing import Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.errors import NonFiniteError
from cosolve.integrator.runge_kutta import Rhs
from cosolve.signal.polynomial import InputSignal

SCIPY_METHODS = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")


# A solver may probe a forbidden state and shorten its step; one that does so this often is stuck there.
_PATIENCE = 100
# Calls at one and the same time after which a solver is stuck; a Jacobian by differences takes one per state.
_STILL, _STILL_PER_STATE = 1000, 20


class _Slope:
    """`rhs` with its inputs filled in. Remembers where it was not finite, for the message if the solver gives up."""

    def __init__(self, rhs: Rhs, u: InputSignal) -> None:
        self.rhs, self.u = rhs, u
        self.bad: tuple[float, Vector] | None = None
        self.count = 0
        self._t, self._still = np.nan, 0

    def __call__(self, t: float, x: Vector) -> Vector:
        self._still = self._still + 1 if t == self._t else 0
        self._t = t
        if self._still > _STILL + _STILL_PER_STATE * len(x):  # LSODA goes on for ever with steps that round to nothing
            self.refuse_bad()
            raise RuntimeError(f"the solver does not get beyond t = {t:.9g}: values are too large or change too fast")
        slope = np.array(self.rhs(t, x.copy(), self.u(t)), dtype=np.float64)  # copies: users may reuse their arrays
        if not np.isfinite(slope).all():
            self.bad = (t, slope)
            self.count += 1
            if self.count > _PATIENCE:  # CVODE would go on for ever
                self.refuse_bad()
        return slope

    def refuse_bad(self) -> None:
        """Say that the right-hand side was the reason."""
        if self.bad is not None:
            t, slope = self.bad
            k = int(np.flatnonzero(~np.isfinite(slope))[0])
            raise NonFiniteError(f"rhs returned {slope[k]} for state {k} at t = {t:.9g}") from None


class SciPy:
    """`scipy.integrate.solve_ivp` with one of its methods."""

    def __init__(self, method: str, rtol: float, atol: float) -> None:
        self.method, self.rtol, self.atol = method, rtol, atol
        self.noise = rtol
        self.memory: Any = None

    def integrate(self, rhs: Rhs, t0: float, t1: float, x: Vector, u: InputSignal) -> Vector:
        """State at `t1`."""
        from scipy.integrate import solve_ivp

        slope = _Slope(rhs, u)
        try:
            found: Any = solve_ivp(  # type: ignore[call-overload]
                slope, (t0, t1), x, method=self.method, rtol=self.rtol, atol=self.atol, t_eval=np.array([t1])
            )
        except ValueError:  # SciPy's complaint about a NaN; anything the user's function raised passes on
            slope.refuse_bad()
            raise
        if not found.success:
            slope.refuse_bad()
            raise RuntimeError(f"SciPy's {self.method} gave up: {found.message.rstrip('.')}")
        end: Vector = np.ascontiguousarray(found.y[:, -1])
        return end


class Cvode:
    """SUNDIALS CVODE (BDF, stiff) through scikit-sundae."""

    def __init__(self, rtol: float, atol: float) -> None:
        self.rtol, self.atol = rtol, atol
        self.noise = rtol
        self.memory: Any = None

    def integrate(self, rhs: Rhs, t0: float, t1: float, x: Vector, u: InputSignal) -> Vector:
        """State at `t1`."""
        from sksundae.cvode import CVODE

        slope = _Slope(rhs, u)

        def fill(t: float, y: Vector, yp: Vector) -> None:
            yp[:] = slope(t, y)

        solver = CVODE(fill, rtol=self.rtol, atol=self.atol, max_num_steps=100_000)
        found = solver.solve(np.array([t0, t1]), x)
        if not found.success:
            slope.refuse_bad()
            raise RuntimeError(f"CVODE gave up: {found.message.rstrip('.')}")
        end: Vector = np.array(found.y[-1], dtype=np.float64)
        return end
