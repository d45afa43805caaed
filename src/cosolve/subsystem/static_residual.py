"""Static subsystems given by implicit equations, solved by Newton (Schmoll (2015), Eqs. 4.9-4.10)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import initial_state, is_number, refuse_no_function, whole
from cosolve.basics.differences import forward_differences
from cosolve.basics.lu import factorised
from cosolve.errors import SetupError, SubsystemError
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.port import PortLike, Ports

_HALVINGS = 40

#: A root is not told from the rounding of residuals any better than this, in units of the unknowns.
_LEAST = 1e-9


class StaticResidual(Subsystem):
    """Algebraic subsystem given by implicit equations, solved by Newton's method.

    Parameters
    ----------
    residual : callable
        `residual(t, x, u)` returns one number per unknown, zero at the solution.
    output : callable
        `output(t, x, u)` returns the outputs.
    x0 : array_like
        First guess of the unknowns. Later solves start from the last solution.
    inputs : sequence of str, (str, int) or Port
        Input ports.
    outputs : sequence of str, (str, int) or Port
        Output ports.
    jacobian : callable or None, default None
        `jacobian(t, x, u)` returns `d residual / dx`, shape (n, n). None takes forward differences.
    tol : float, default 1e-10
        Relative change of `x` at which the iteration ends. Difference quotients of the outputs reckon with this
        accuracy.
    max_iterations : int, default 50
        Largest number of iterations per solve.

    Raises
    ------
    SubsystemError
        During a run, if the iteration does not converge.

    Notes
    -----
    Equations::

        0 = residual(t, x, u),      y = output(t, x, u)

    Steps that do not reduce the residual are halved. The last solution belongs to the saved state, so that repeated
    steps have the same bits.

    References
    ----------
    .. [1] R. Schmoll, Co-Simulation und Solverkopplung, dissertation, University of Kassel, 2015, Eqs. 4.9 and 4.10.

    Examples
    --------
    >>> import cosolve as cs, numpy as np
    >>> root = StaticResidual(lambda t, x, u: x**2 - u, lambda t, x, u: x, x0=[1.0], inputs=["square"],
    ...                       outputs=["root"])
    >>> _ = root.start(0.0)
    >>> round(float(root.output(0.0, np.array([9.0]))[0]), 12)
    3.0
    """

    concurrent = True

    variable_step = False  # there is nothing inside: outputs follow the inputs at its end

    def __init__(
        self,
        residual: Callable[[float, Vector, Vector], Any],
        output: Callable[[float, Vector, Vector], Any],
        *,
        x0: npt.ArrayLike,
        inputs: Sequence[PortLike],
        outputs: Sequence[PortLike],
        jacobian: Callable[[float, Vector, Vector], Any] | None = None,
        tol: float = 1e-10,
        max_iterations: int = 50,
    ) -> None:
        refuse_no_function("StaticResidual", "(t, x, u)", residual=residual, output=output)
        if jacobian is not None:
            refuse_no_function("StaticResidual", "(t, x, u)", jacobian=jacobian)
        if not (is_number(tol) and 0 < tol < 1):
            raise SetupError(f"StaticResidual: tol must lie between 0 and 1, not {tol!r}")
        self.residual, self.output_function, self.jacobian_function = residual, output, jacobian
        self.inputs, self.outputs = inputs, outputs
        self.x0 = initial_state("StaticResidual", x0)
        self.tol, self.max_iterations = tol, whole("StaticResidual", "max_iterations", max_iterations)
        self.x = self.x0
        self.solves = self.iterations = 0

    @property
    def noise(self) -> float:  # type: ignore[override]
        """Relative accuracy of the outputs: Newton's last step was quadratically smaller than `tol`."""
        return float(self.tol**2)

    def start(self, t0: float) -> Any:
        self.x, self.solves, self.iterations = self.x0, 0, 0
        return None

    def output(self, t: float, u: Vector) -> Any:
        if not np.isfinite(u).all():  # inputs that are not known yet, at the start of a run
            return np.full(Ports(self.outputs).length, np.nan)
        self.x = self._solve(t, u)
        return self.output_function(t, self.x.copy(), u)

    def advance(self, t0: float, t1: float, u: InputSignal) -> Any:
        return self.output(t1, u.end)

    def save(self) -> Vector:
        return self.x

    def restore(self, state: Vector) -> None:
        self.x = state

    def get_state(self) -> Vector:
        """Empty: the warm start is no state, it only saves iterations."""
        return np.zeros(0)

    def set_state(self, x: Vector) -> None:
        pass

    def _solve(self, t: float, u: Vector) -> Vector:
        self.solves += 1
        x, r = self.x, self._residual(t, self.x, u)
        size = float(np.abs(r).max(initial=0.0))
        for _ in range(self.max_iterations):
            self.iterations += 1
            change, steepness = self._change(t, x, u, r)
            for halving in range(_HALVINGS + 1):
                tried: Vector = x + change / 2**halving
                r_new = self._residual(t, tried, u)
                new_size = float(np.abs(r_new).max(initial=0.0))
                relative = float((np.abs(tried - x) / (1.0 + np.abs(tried))).max(initial=0.0))
                if new_size < size or relative <= self.tol:  # a NaN is neither
                    break
            else:
                raise self._failure(u, size, "no step reduces its residual")
            x, r, size = tried, r_new, new_size
            if relative <= self.tol:
                # a short step is no root where the residual stays: the bottom of a valley, or a jump
                if size > max(10.0 * self.tol, _LEAST) * steepness * (1.0 + float(np.abs(x).max(initial=0.0))):
                    raise self._failure(u, size, "no step reduces its residual")
                return x
        raise self._failure(u, size, f"it did not converge in {self.max_iterations} iterations")

    def _residual(self, t: float, x: Vector, u: Vector) -> Vector:
        r: Vector = np.array(self.residual(t, x.copy(), u), dtype=np.float64).reshape(-1)
        if r.shape != x.shape:
            raise SubsystemError(f"residual returned {r.size} numbers, expected {x.size}: one per unknown")
        return r

    def _change(self, t: float, x: Vector, u: Vector, r: Vector) -> tuple[Vector, float]:
        """Newton's step, and the largest entry of the Jacobian."""
        if self.jacobian_function is not None:
            J: Matrix = np.asarray(self.jacobian_function(t, x.copy(), u), dtype=np.float64)
        else:
            J = forward_differences(lambda shifted: self._residual(t, shifted, u), x, r, 1.0)
        if J.shape != (len(x), len(x)):
            raise SubsystemError(f"jacobian returned shape {J.shape}, expected {(len(x), len(x))}: a row per residual")
        solve = factorised(J)
        if solve is None:
            why = "is singular" if np.isfinite(J).all() else "holds a NaN or an infinity"
            raise self._failure(u, float(np.abs(r).max(initial=0.0)), f"its Jacobian d residual / dx {why}")
        change: Vector = solve(-r)
        return change, float(np.abs(J).max(initial=0.0))

    def _failure(self, u: Vector, size: float, why: str) -> SubsystemError:
        return SubsystemError(
            f"solve {self.solves} of the static equations with u = {np.array2string(u, threshold=8)} failed: {why}; "
            f"residual {size:.3g}, started from x = {np.array2string(self.x, threshold=8)}; give a better x0, check "
            "the equations there, or loosen tol"
        )
