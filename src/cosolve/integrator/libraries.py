"""Adapters to SciPy's `solve_ivp` and to SUNDIALS' CVODE (scikit-sundae), restarted at every macro point."""

from __future__ import annotations

from typing import Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.packages import optional
from cosolve.errors import NonFiniteError
from cosolve.integrator.runge_kutta import Rhs
from cosolve.signal.polynomial import InputSignal

SCIPY_METHODS = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")


# A solver may probe a forbidden state and shorten its step; one that does so this often is stuck there.
_PATIENCE = 100

# So many evaluations (and for every state so many more) at one instant, or in one subsystem step, lead nowhere. LSODA
# takes steps of length zero for ever where a right-hand side blows up.
_AT_ONCE, _AT_ONCE_PER_STATE = 1000, 100
_ALTOGETHER, _ALTOGETHER_PER_STATE = 2_000_000, 1000


class _Slope:
    """`rhs` with its inputs filled in. Remembers where it was not finite, for the message if the solver gives up."""

    def __init__(self, rhs: Rhs, u: InputSignal, t0: float, t1: float) -> None:
        self.rhs, self.u = rhs, u
        self.bad: tuple[float, Vector] | None = None
        self.count = 0
        self._at, self._since, self._calls = t0, 0, 0
        self._instant = 16.0 * float(np.spacing(max(abs(t0), abs(t1))))

    def __call__(self, t: float, x: Vector) -> Vector:
        slope = np.array(self.rhs(t, x.copy(), self.u(t)), dtype=np.float64)  # copies: users may reuse their arrays
        self._refuse_no_progress(t, len(x))
        if slope.shape != x.shape:  # SciPy would take a single number for all states
            raise ValueError(f"rhs returned shape {slope.shape} at t = {t:.9g}, expected {x.shape}")
        if not np.isfinite(slope).all():
            self.bad = (t, slope)
            self.count += 1
            if self.count > _PATIENCE:  # CVODE would go on for ever
                self.refuse_bad()
        return slope

    def _refuse_no_progress(self, t: float, n: int) -> None:
        """Raise when evaluation after evaluation leads nowhere."""
        self._calls += 1
        if abs(t - self._at) > self._instant:
            self._at, self._since = t, self._calls
        if self._calls - self._since > _AT_ONCE + _AT_ONCE_PER_STATE * n:
            self.refuse_bad()
            raise RuntimeError(f"the solver does not get beyond t = {t:.9g}; check whether rhs blows up or jumps there")
        if self._calls > _ALTOGETHER + _ALTOGETHER_PER_STATE * n:
            raise RuntimeError(
                f"the solver is still at t = {t:.9g} after {self._calls} evaluations of rhs in one macro step; check "
                "whether rhs jumps or is noisy, or take shorter macro steps"
            )

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

        slope = _Slope(rhs, u, t0, t1)
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
    """SUNDIALS CVODE (BDF, stiff) through scikit-sundae, which the extra `cosolve[sundials]` brings."""

    def __init__(self, rtol: float, atol: float) -> None:
        self.rtol, self.atol = rtol, atol
        self.noise = rtol
        self.memory: Any = None
        _cvode()  # refused now rather than in the first step

    def integrate(self, rhs: Rhs, t0: float, t1: float, x: Vector, u: InputSignal) -> Vector:
        """State at `t1`."""
        slope = _Slope(rhs, u, t0, t1)

        def fill(t: float, y: Vector, yp: Vector) -> None:
            yp[:] = slope(t, y)

        solver = _cvode()(fill, rtol=self.rtol, atol=self.atol, max_num_steps=100_000)
        found = solver.solve(np.array([t0, t1]), x)
        if not found.success:
            slope.refuse_bad()
            raise RuntimeError(f"CVODE gave up: {found.message.rstrip('.')}")
        end: Vector = np.array(found.y[-1], dtype=np.float64)
        return end


def _cvode() -> Any:
    return optional("sksundae.cvode", "sundials", "the integrator 'cvode'").CVODE
