"""The order of a run without knowing its exact solution, by Richardson's argument.

Three runs with the steps `H`, `H / k`, `H / k^2` differ from the exact solution by `C H^p` and so on, hence from each
other by differences in the ratio `k^p`. The same differences give the error of the finest run. The macro points of the
coarsest run are common to all three, so the order is known at every one of them, while the run goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import as_list, is_whole, positive
from cosolve.basics.wording import listed, shortened
from cosolve.errors import SetupError
from cosolve.interface import System
from cosolve.method.named import MethodLike
from cosolve.result import Result
from cosolve.run.simulate import simulate

#: Differences below this fraction of the values are rounding and say nothing about an order.
_ROUNDING = 1e-13


def observed_order(coarse: npt.ArrayLike, middle: npt.ArrayLike, fine: npt.ArrayLike, ratio: float = 2.0) -> float:
    """The order that three solutions show, each with a step shorter by `ratio` than the one before.

    NaN where the solutions agree to rounding, so that no order can be seen.

    >>> observed_order(1.0 + 0.16, 1.0 + 0.04, 1.0 + 0.01)
    2.0
    """
    a, b, c = (np.asarray(values, dtype=np.float64) for values in (coarse, middle, fine))
    if not a.shape == b.shape == c.shape:
        raise SetupError(f"observed_order: the solutions have the shapes {a.shape}, {b.shape} and {c.shape}")
    if not ratio > 1:
        raise SetupError(f"observed_order: ratio must be above 1, not {ratio!r}")
    large, small = float(np.linalg.norm(a - b)), float(np.linalg.norm(b - c))
    if not small > _ROUNDING * float(np.linalg.norm(c)) or not large > 0:
        return float("nan")
    return round(float(np.log(large / small) / np.log(ratio)), 12)


@dataclass(frozen=True)
class OrderEstimate:
    """What three runs say about the order of convergence, from `order_estimate`.

    Parameters
    ----------
    steps : tuple of (float, float, float)
        Macro steps in seconds.
    t : ndarray
        Macro points of the coarsest run in seconds.
    order : float
        Order over the whole run.
    orders : ndarray
        Order at each time of `t`; NaN where nothing has happened yet.
    errors : dict of str to float
        Estimated largest error of each variable in the run with the smallest step.
    runs : tuple of Result
        The runs.
    """

    steps: tuple[float, float, float]
    t: Vector
    order: float
    orders: Vector
    errors: dict[str, float]
    runs: tuple[Result, Result, Result]

    def __str__(self) -> str:
        worst = ", ".join(f"{name} {error:.1e}" for name, error in self.errors.items())
        return f"order {self.order:.2f} from the steps {', '.join(f'{H:g}' for H in self.steps)}; error {worst}"


def order_estimate(
    system: System | Callable[[float], System],
    method: MethodLike,
    *,
    step: float,
    t_end: float,
    names: Sequence[str],
    ratio: int = 2,
    **options: Any,
) -> OrderEstimate:
    """Estimate the order of convergence from three runs, without a reference.

    Parameters
    ----------
    system : System or callable
        The coupled system, or `system(step)` for models that depend on the macro step.
    method : Method, str or dict
        The coupling method.
    step : float
        Largest macro step in seconds; the others are `step / ratio` and `step / ratio**2`.
    t_end : float
        End of the runs in seconds, a multiple of `step`.
    names : sequence of str
        The variables that are compared.
    ratio : int, default 2
        Ratio of the steps.
    **options : object
        Further arguments of `simulate`.

    Returns
    -------
    OrderEstimate
        The observed order, also over time, and error estimates.

    Examples
    --------
    >>> import cosolve as cs
    >>> tank = lambda h: cs.Linear([[-1]], [[1]], [[1]], x0=[h], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(1), "two": tank(0)})
    >>> system.connect("one.h", "two.q")
    >>> system.connect("two.h", "one.q")
    >>> found = order_estimate(system, cs.Jacobi(1), step=0.02, t_end=1.0, names=["one.h", "two.h"])
    >>> round(found.order, 1)
    2.0
    """
    if not is_whole(ratio, 2):
        raise SetupError(f"order_estimate: ratio must be a whole number from 2, so that times agree, not {ratio!r}")
    if not isinstance(system, System) and not callable(system):
        raise SetupError(f"order_estimate: system must be a System, or a function of the step, not {shortened(system)}")
    names = as_list("order_estimate", "names", names)
    if not names:
        raise SetupError("order_estimate: names must say which variables to compare, such as ['mass.x']")
    step = positive("order_estimate", "step", step)
    steps = (float(step), float(step) / ratio, float(step) / ratio**2)
    runs = [
        simulate(system if isinstance(system, System) else system(H), t_end=t_end, method=method, step=H, **options)
        for H in steps
    ]
    coarse, middle, fine = runs
    times = [run.t[:: ratio**k] for k, run in enumerate(runs)]
    if not all(len(t) == len(coarse.t) and np.allclose(t, coarse.t, rtol=0, atol=1e-6 * steps[-1]) for t in times):
        raise SetupError(
            f"order_estimate: the runs do not meet at the macro points of the first; t_end = {t_end:g} must be a "
            f"multiple of the step {step:g}, and every step be recorded"
        )
    for name in names:
        if name not in coarse:
            raise SetupError(f"order_estimate: there is no {shortened(name)} among {listed(coarse.names)}")
    a, b, c = (_columns(run, names)[:: ratio**k] for k, run in enumerate(runs))
    order = observed_order(a, b, c, ratio)
    orders = np.array([observed_order(a[n], b[n], c[n], ratio) for n in range(len(a))])
    errors = {}
    for name in names:
        gap = np.abs(_columns(middle, [name])[::ratio] - _columns(fine, [name])[:: ratio**2]).max()
        errors[name] = float(gap / (ratio**order - 1)) if order > 0 else float("nan")
    return OrderEstimate(steps, coarse.t, order, orders, errors, (coarse, middle, fine))


def _columns(result: Result, names: Sequence[str]) -> Matrix:
    """The variables side by side, one row per time."""
    return np.column_stack([np.asarray(result[name]).reshape(len(result.t), -1) for name in names])
