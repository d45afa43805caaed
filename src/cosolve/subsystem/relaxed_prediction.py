"""Relaxed prediction with a factor: what is handed on is a blend of the newest value and of what was to be expected.

Dettmer and Perić (2013): `y_{n+1} = beta u_{n+1} + (1 - beta) y_P` with the line through the last two values as `y_P`.
A staggered scheme that iterates nothing stays stable with a small `beta` where an added mass would make it blow up.
"""

from __future__ import annotations

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import is_number
from cosolve.errors import SetupError
from cosolve.subsystem.one_step import OneStep
from cosolve.subsystem.port import Port


class _Blend:
    """One step: `x` holds the last value, the one before, and the length of the step between them."""

    def __init__(self, beta: float, n: int) -> None:
        self.beta, self.n = beta, n

    def __call__(self, t: float, H: float, x: Vector, u: Vector, new: Vector, y: Vector) -> None:
        last, before, length = x[: self.n], x[self.n : -1], x[-1]
        expected = last + H / length * (last - before) if length > 0.0 else last
        y[:] = self.beta * u + (1.0 - self.beta) * expected
        new[: self.n], new[self.n : -1], new[-1] = y, last, H

    def begin(self, t: float, u: Vector) -> tuple[Vector, Vector]:
        return np.concatenate([u, u, [0.0]]), u

    def jacobian(self, t: float, H: float, x: Vector, u: Vector, D: Vector) -> None:
        np.fill_diagonal(D, self.beta)


def relaxed_prediction(beta: float, size: int | None = None, *, unit: str = "", nominal: float = 1.0) -> OneStep:
    """Create a subsystem that blends a signal with its extrapolation, to stabilise a staggered scheme.

    Parameters
    ----------
    beta : float
        Weight of the new value, above 0 and at most 1.
    size : int or None, default None
        Number of values of the ports; None is a scalar.
    unit : str, default ""
        Unit of both ports.
    nominal : float, default 1.0
        Nominal value of both ports.

    Returns
    -------
    OneStep
        A subsystem with the input `u` and the output `y`.

    Notes
    -----
    Formula::

        y_{n+1} = beta u_{n+1} + (1 - beta) y_P

    with the line through the last two values as `y_P`. For `GaussSeidel`, in `order` behind the subsystem whose values
    it takes: a small `beta` stays stable without iterations where an added mass makes the scheme diverge.

    References
    ----------
    .. [1] W. G. Dettmer, D. Perić, A new staggered scheme for fluid-structure interaction, International Journal for
       Numerical Methods in Engineering 93(1), 2013.

    Examples
    --------
    >>> import cosolve as cs
    >>> ramp = cs.Static(lambda t, u: t, inputs=[], outputs=["y"])
    >>> system = cs.System({"ramp": ramp, "weak": relaxed_prediction(0.5)})
    >>> system.connect("ramp.y", "weak.u")
    >>> method = cs.GaussSeidel(order=["ramp", "weak"])
    >>> cs.simulate(system, t_end=4.0, method=method, step=1.0)["weak.y"]
    array([0.  , 0.5 , 1.5 , 2.75, 4.  ])
    """
    if not is_number(beta) or not 0.0 < beta <= 1.0:
        raise SetupError(f"relaxed_prediction: beta must be a number above 0 and at most 1, not {beta!r}")
    ports = [Port(name, size, unit, nominal) for name in ("u", "y")]
    n = ports[0].length
    blend = _Blend(float(beta), n)
    return OneStep(
        blend,
        x0=np.zeros(2 * n + 1),
        y0=np.zeros(n),
        inputs=ports[:1],
        outputs=ports[1:],
        begin=blend.begin,
        jacobian=blend.jacobian,
    )
