"""Adapters to SciPy's `solve_ivp` and to SUNDIALS' CVODE (scikit-sundae), restarted at every macro point."""

from __future__ import annotations

from typing import Any

import numpy as np

from cosolve.subsystem.base import InputSignal
from cosolve.subsystem.integrator.runge_kutta import Rhs
from cosolve.subsystem.port import Vector

SCIPY_METHODS = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")


class SciPy:
    """`scipy.integrate.solve_ivp` with one of its methods."""

    def __init__(self, method: str, rtol: float, atol: float) -> None:
        self.method, self.rtol, self.atol = method, rtol, atol
        self.noise = rtol
        self.memory: Any = None

    def integrate(self, rhs: Rhs, t0: float, t1: float, x: Vector, u: InputSignal) -> Vector:
        """State at `t1`."""
        from scipy.integrate import solve_ivp

        found = solve_ivp(
            lambda t, x: np.asarray(rhs(t, x, u(t)), dtype=np.float64),
            (t0, t1),
            x,
            method=self.method,
            rtol=self.rtol,
            atol=self.atol,
            t_eval=[t1],
        )
        if not found.success:
            raise RuntimeError(f"SciPy's {self.method} gave up: {found.message}")
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

        def fill(t: float, y: Vector, yp: Vector) -> None:
            yp[:] = rhs(t, y, u(t))

        solver = CVODE(fill, rtol=self.rtol, atol=self.atol, max_num_steps=100_000)
        found = solver.solve(np.array([t0, t1]), x)
        if not found.success:
            raise RuntimeError(f"CVODE gave up: {found.message}")
        end: Vector = np.array(found.y[-1], dtype=np.float64)
        return end
