"""How good a result is: error measures and convergence studies (Schmoll (2015), 2.5.2).

*Global* error compares with a reference that started at the same initial state; *local* error compares each macro step
with the reference restarted from the numerical values at its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector, real_array
from cosolve.errors import SetupError, SimulationError
from cosolve.interface import System
from cosolve.method import Method
from cosolve.method.named import MethodLike, as_method
from cosolve.result import Result
from cosolve.run.simulate import simulate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Reference = Callable[[Vector], Mapping[str, npt.ArrayLike]]


def nrmse(reference: npt.ArrayLike, values: npt.ArrayLike) -> float:
    """Compute the normalised root mean square error.

    Parameters
    ----------
    reference : array_like
        Exact values: rows are times, columns are variables.
    values : array_like
        Computed values, of the same shape.

    Returns
    -------
    float
        The error. Predicting the mean of every variable gives the root of the number of variables.

    Raises
    ------
    SetupError
        If shapes differ or a variable of the reference is constant.

    Notes
    -----
    The error of each variable is normalised by the variation of its reference; the result is the root of the *sum* over
    variables.

    References
    ----------
    .. [1] R. Schmoll, Co-Simulation und Solverkopplung, dissertation, University of Kassel, 2015, Eqs. 2.33 and 2.34.

    Examples
    --------
    >>> nrmse([[0.0], [2.0]], [[1.0], [1.0]])
    1.0
    """
    exact, computed = _columns(reference), _columns(values)
    if exact.shape != computed.shape:
        raise SetupError(f"nrmse: reference has shape {exact.shape}, values have {computed.shape}")
    variation = ((exact - exact.mean(axis=0)) ** 2).sum(axis=0)
    if not variation.all():
        raise SetupError(f"nrmse: variable {int(np.argmin(variation))} of the reference never changes; use wrmse")
    return float(np.sqrt((((exact - computed) ** 2).sum(axis=0) / variation).sum()))


def wrmse(reference: npt.ArrayLike, values: npt.ArrayLike, *, rho: float = 1.0, mean: bool = False) -> float:
    """Compute the weighted root mean square error, relative to `1 + rho * magnitude` at each time.

    Parameters
    ----------
    reference : array_like
        Exact values: rows are times, columns are variables.
    values : array_like
        Computed values, of the same shape.
    rho : float, default 1.0
        Weight of the magnitude.
    mean : bool, default False
        Divide by the number of times. As printed in [1]_ the measure is a sum over times.

    Returns
    -------
    float
        The error.

    References
    ----------
    .. [1] R. Schmoll, Co-Simulation und Solverkopplung, dissertation, University of Kassel, 2015, Eqs. 2.35 and 2.36.

    Examples
    --------
    >>> wrmse([0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0], rho=0.0)
    2.0
    """
    exact, computed = _columns(reference), _columns(values)
    if exact.shape != computed.shape:
        raise SetupError(f"wrmse: reference has shape {exact.shape}, values have {computed.shape}")
    weight = 1.0 + rho * np.maximum(np.abs(exact), np.abs(computed))
    per_time = (((exact - computed) / weight) ** 2).mean(axis=1)
    return float(np.sqrt(per_time.mean() if mean else per_time.sum()))


def convergence_order(steps: Sequence[float] | Vector, errors: Sequence[float] | Vector) -> float:
    """Compute an observed order: the slope of log(error) over log(step).

    Parameters
    ----------
    steps : sequence of float
        Macro steps, positive.
    errors : sequence of float
        Errors, positive.

    Returns
    -------
    float
        The slope by least squares.

    Examples
    --------
    >>> round(convergence_order([0.1, 0.05, 0.025], [1e-2, 2.5e-3, 6.25e-4]), 6)
    2.0
    """
    try:
        x, y = real_array(steps), real_array(errors)
    except (TypeError, ValueError) as error:
        raise SetupError(f"slope: steps and errors are lists of numbers ({error})") from None
    if x.ndim != 1 or x.shape != y.shape or len(x) < 2 or not ((x > 0).all() and (y > 0).all()):
        raise SetupError(
            "slope: steps and errors are two lists of the same length, of at least 2 positive numbers each"
        )
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def local_reference(
    result: Result, names: Sequence[str], flow: Callable[[float, float, Mapping[str, Any]], Sequence[float]]
) -> Matrix:
    """Compute reference values for the local error of each macro step.

    Parameters
    ----------
    result : Result
        A run.
    names : sequence of str
        The variables.
    flow : callable
        `flow(t0, t1, now)` returns the exact values of `names` at `t1` when starting from the recorded values at `t0`;
        `now` maps every name of the result to its value there.

    Returns
    -------
    ndarray
        Row `n` is `flow(t[n-1], t[n], now)`, row 0 the start.

    Examples
    --------
    >>> import cosolve as cs
    >>> clock = cs.Static(lambda t, u: t, inputs=[], outputs=["t"])
    >>> result = cs.simulate(cs.System({"clock": clock}), t_end=0.2, method=cs.Jacobi(), step=0.1)
    >>> local_reference(result, ["clock.t"], lambda t0, t1, now: [now["clock.t"] + t1 - t0]).ravel()
    array([0. , 0.1, 0.2])
    """
    t = result.t
    series = {name: result[name] for name in result.names}
    rows = [[float(series[name][0]) for name in names]]
    for n in range(1, len(t)):
        now = {name: values[n - 1] for name, values in series.items()}
        rows.append(list(flow(float(t[n - 1]), float(t[n]), now)))
    return np.array(rows)


@dataclass(frozen=True)
class Convergence:
    """A study over macro steps, from `convergence`.

    Parameters
    ----------
    steps : ndarray
        Macro steps in seconds, the largest first.
    errors : dict of str to ndarray
        Errors by method, one per step; NaN where the run failed.
    calls : dict of str to ndarray
        Subsystem steps of the runs, likewise.
    measure : str
        Name of the error measure.
    failures : dict of str to list of str
        Messages of the runs that failed.
    """

    steps: Vector
    errors: dict[str, Vector]
    calls: dict[str, Vector]
    measure: str
    failures: dict[str, list[str]] = field(default_factory=dict)

    def orders(self, last: int = 2) -> dict[str, float]:
        """Compute the observed order of each method.

        Parameters
        ----------
        last : int, default 2
            Number of smallest steps that are used, of those that finished.

        Returns
        -------
        dict of str to float
            The orders.
        """
        found = {}
        for label, errors in self.errors.items():
            good = np.flatnonzero(np.isfinite(errors) & (errors > 0))[-last:]
            found[label] = convergence_order(self.steps[good], errors[good]) if len(good) > 1 else np.nan
        return found

    def __str__(self) -> str:
        lines = ["H".rjust(10) + "".join(label.rjust(max(18, len(label) + 2)) for label in self.errors)]
        for i, H in enumerate(self.steps):
            row = f"{H:10.3g}"
            for label, errors in self.errors.items():
                row += (f"{errors[i]:.3e}" if np.isfinite(errors[i]) else "failed").rjust(max(18, len(label) + 2))
            lines.append(row)
        orders = self.orders()
        lines.append("order".rjust(10) + "".join(f"{orders[k]:.2f}".rjust(max(18, len(k) + 2)) for k in self.errors))
        return "\n".join(lines)

    def plot(self, path: Any = None) -> Figure:
        """Draw errors over macro steps, doubly logarithmic.

        Parameters
        ----------
        path : str, Path or None, default None
            File to write the picture to.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.0, 5.0), layout="constrained")
        axis = figure.subplots()
        for label, errors in self.errors.items():
            axis.loglog(self.steps, errors, "o-", label=f"{label} (order {self.orders()[label]:.2f})", markersize=4)
        axis.set_xlabel("macro step H")
        axis.set_ylabel(self.measure)
        axis.grid(which="both", alpha=0.25)
        axis.legend(fontsize="small")
        if path is not None:
            figure.savefig(path)
        return figure


def convergence(
    system: System,
    methods: Method | str | Sequence[MethodLike] | Mapping[str, MethodLike],
    *,
    steps: Sequence[float],
    t_end: float,
    names: Sequence[str],
    reference: Reference | None = None,
    measure: str = "nrmse",
    **options: Any,
) -> Convergence:
    """Compute errors of one or several methods over macro steps, with observed orders.

    Parameters
    ----------
    system : System
        The coupled system.
    methods : Method, str, sequence or mapping
        The methods; a mapping gives them labels.
    steps : sequence of float
        Macro steps in seconds.
    t_end : float
        End of the runs in seconds.
    names : sequence of str
        The variables that are compared.
    reference : callable or None, default None
        `reference(t)` returns `{name: values at the times t}`. None takes a run of each method with a quarter of the
        smallest step.
    measure : {"nrmse", "wrmse", "max"}, default "nrmse"
        Error measure; `"wrmse"` is the mean over the times.
    **options : object
        Further arguments of `simulate`.

    Returns
    -------
    Convergence
        `errors[label][i]` belongs to `steps[i]`, NaN where the run failed; `orders()` and `plot()`.

    Examples
    --------
    >>> import numpy as np
    >>> import cosolve as cs
    >>> tank = lambda h: cs.Linear([[-1]], [[1]], [[1]], x0=[h], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(1), "two": tank(0)})
    >>> system.connect("one.h", "two.q")
    >>> system.connect("two.h", "one.q")
    >>> exact = lambda t: {"one.h": (1 + np.exp(-2 * t)) / 2}
    >>> study = cs.analysis.convergence(system, [cs.Jacobi(1), cs.SemiImplicit(2)], steps=[0.02, 0.01], t_end=1.0,
    ...                        names=["one.h"], reference=exact)
    >>> {label: round(order, 1) for label, order in study.orders().items()}
    {'Jacobi(1)': 2.0, 'SemiImplicit(2)': 3.0}
    """
    measures: dict[str, Callable[[Matrix, Matrix], float]] = {
        "nrmse": nrmse,
        "wrmse": partial(wrmse, mean=True),  # a sum over the times would grow with their number
        "max": lambda exact, values: float(np.abs(exact - values).max()),
    }
    if measure not in measures:
        raise SetupError(f"convergence: measure must be one of {sorted(measures)}, not {measure!r}")
    if isinstance(methods, (Method, str)):
        methods = [methods]
    if isinstance(methods, Mapping):
        labelled = {label: as_method(each) for label, each in methods.items()}
    else:
        labelled = {method.label: method for method in map(as_method, methods)}
    sizes = np.sort(np.asarray(steps, dtype=np.float64))[::-1]
    study = Convergence(sizes, {}, {}, measure.upper() if measure != "max" else "largest error", {})
    for label, method in labelled.items():
        exact = reference or _refined(system, method, float(sizes[-1]) / 4, t_end, names, options)
        errors, calls, failed = np.full(len(sizes), np.nan), np.zeros(len(sizes)), []
        for i, H in enumerate(sizes):
            try:
                result = simulate(system, t_end=t_end, method=method, step=float(H), **options)
            except SimulationError as error:
                failed.append(str(error))
                continue
            expected = exact(result.t)
            errors[i] = measures[measure](
                np.column_stack([_columns(expected[name]) for name in names]),
                np.column_stack([_columns(result[name]) for name in names]),
            )
            calls[i] = result.stats.total_calls
        study.errors[label], study.calls[label], study.failures[label] = errors, calls, failed
    return study


def _refined(
    system: System, method: Method, H: float, t_end: float, names: Sequence[str], options: Mapping[str, Any]
) -> Reference:
    fine = simulate(system, t_end=t_end, method=method, step=H, **options)

    def at(t: Vector) -> dict[str, Matrix]:
        index = np.clip(np.searchsorted(fine.t, t - 0.25 * H), 0, len(fine.t) - 1)
        if not np.allclose(fine.t[index], t, rtol=0, atol=1e-6 * H):
            raise SetupError("convergence: without a reference, every step must be a multiple of the smallest one")
        return {name: fine[name][index] for name in names}

    return at


def _columns(values: npt.ArrayLike) -> Matrix:
    try:
        array = real_array(values)
    except (TypeError, ValueError) as error:
        raise SetupError(f"values and reference are tables of numbers ({error})") from None
    if array.ndim not in (1, 2):
        raise SetupError(f"values and reference have one row per time, but one has {array.ndim} dimensions")
    return array[:, np.newaxis] if array.ndim == 1 else array
