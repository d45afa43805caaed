"""The coupling error of a finished run, as a bar on each of its outputs: by its shadow (`run/shadow.py`).

The bar is twice the distance between run and shadow, the largest within a tenth of the run before and after, plus a
floor of `2e-9` of the output. It is about what the exchange at macro points does, and not about the subsystems' own
solvers. Where a bar could mislead there is none, and a sentence says why: signals that the steps do not resolve, errors
above a tenth of the output, a shadow that fails, a record with gaps.
"""

from __future__ import annotations

from math import inf, nan

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import positive
from cosolve.errors import CosolveError, EndOfSimulation, SetupError
from cosolve.interface import Plan, System
from cosolve.method import Method
from cosolve.method.named import MethodLike, as_method
from cosolve.result import ErrorBar, Result
from cosolve.run.shadow import Path, Rehearsal, Shadow
from cosolve.run.startup import Startup, default_start
from cosolve.run.stepper import checked_plan
from cosolve.stepsize.sequence import Uniform

#: What polynomials of degree 0, 1, ... leave in a step, in differences of the next order: extrapolated, and ending in
#: a corrected value.
_EXTRAPOLATED = (1 / 2, 5 / 12, 3 / 8, 251 / 720, 95 / 288, 19087 / 60480)
_ENDING = (1 / 2, 1 / 12, 1 / 24, 19 / 720, 3 / 160, 863 / 60480)

_UNRESOLVED = 0.5  # of the ratio R
_MEANINGLESS = 0.1  # of the size of an output
_FLOOR = 2e-9
_WINDOW = 0.1  # of the run
_LEFT_OUT = 4  # points at the start, which say more about the start than about the signals


def error_bar(
    system: System,
    result: Result,
    *,
    method: MethodLike | None = None,
    startup: Startup | None = None,
    safety: float = 2.0,
) -> ErrorBar:
    """The coupling error of a run of `system`, estimated by crossing its macro steps once more.

    `result` must hold every macro point and all outputs and coupling variables. `method` and `startup` are those of the
    run; a result in memory knows them, one from a file does not. `safety` is the factor between estimate and bar.

    Explicit methods need one crossing of each step and no rollback. The system starts again for this, so subsystems
    must be able to. Where first macro steps were crossed in pieces, these are repeated to learn what happened there.

    >>> import cosolve as cs
    >>> tank = lambda h: cs.Linear([[-1]], [[1]], [[1]], x0=[h], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(1.0), "two": tank(0.0)})
    >>> system.connect("one.h", "two.q"); system.connect("two.h", "one.q")
    >>> result = cs.simulate(system, t_end=1.0, method=cs.Jacobi(degree=1), step=0.02)
    >>> found = error_bar(system, result)
    >>> true = np.abs(result["one.h"] - (1 + np.exp(-2 * result.t)) / 2)
    >>> bool((true <= found.bar["one.h"]).all()), bool(true.max() > 0.4 * found.bar["one.h"].max())
    (True, True)
    >>> print(found)
    one.h: coupling error at most about 4.0e-04
    two.h: coupling error at most about 4.0e-04
    """
    positive("error_bar", "safety", safety)
    taken = as_method(_known(result, method))
    startup = startup or result.startup or default_start(taken)
    if result.meta.get("method", repr(taken)) != repr(taken):
        raise SetupError(f"error_bar: the run was made with {result.meta['method']}, not with {taken!r}")
    plan = checked_plan("error_bar", system, taken, 1)
    t = result.t
    why = _cannot(plan, taken, startup, result)
    if why:
        return ErrorBar(t, reason=why)
    z = np.asarray(result.column("z"))[:, : plan.n_z]
    ratio = resolution(taken, z, result.H)
    if not ratio < _UNRESOLVED:
        return ErrorBar(t, ratio=ratio, reason=f"the signals are not resolved by the macro steps (R = {ratio:.2f})")
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return _judged(plan, taken, startup, result, z, safety, ratio)
    except EndOfSimulation as end:
        return ErrorBar(t, ratio=ratio, reason=f"the shadow run ended before the run ({end})")
    except CosolveError as error:
        return ErrorBar(t, ratio=ratio, reason=f"the shadow run failed ({error})")


def _known(result: Result, method: MethodLike | None) -> MethodLike:
    if method is not None:
        return method
    if result.method is None:
        raise SetupError(
            "error_bar: a result from a file does not hold its method; give it, error_bar(..., method=...)"
        )
    taken: Method = result.method
    return taken


def _cannot(plan: Plan, method: Method, startup: Startup, result: Result) -> str:
    """Why there can be no shadow; empty where there can."""
    least = method.degree + 3
    if result.error is not None:
        return f"the run did not finish ({result.error})"
    if method.script is None:
        return f"{method.name} draws no signals that could be drawn better"
    if startup.own_steps:
        return f"{type(startup).__name__} takes steps that the result does not hold; take another startup"
    if plan.n_z == 0:
        return "nothing is exchanged"
    if result.column("z").shape[1] < plan.n_z or result.column("y").shape[1] < plan.n_y:
        return "the result does not hold all outputs and coupling variables; run without record"
    if len(result.t) != result.stats.steps + 1:
        return "the result does not hold every macro point; run with every=1"
    if result.stats.events:
        return "macro steps ended at events, where values may jump"
    if len(result.t) <= least:
        return f"the run has {len(result.t) - 1} macro steps; at least {least} are needed"
    if not np.isfinite(result.column("y")).all():
        return "the result has values that are no numbers"
    return ""


def resolution(method: Method, z: Matrix, steps: Vector) -> float:
    """How large the error of signals of one degree more is, compared with that of the method's: the ratio `R`.

    The worst coupling variable counts, of those with an error above the floor.

    >>> import cosolve as cs
    >>> t = np.linspace(0, 1, 101)
    >>> def ratio(values):
    ...     return resolution(cs.Jacobi(1), values[:, np.newaxis], np.diff(t))
    >>> bool(ratio(np.sin(t)) < 0.02), bool(ratio(np.sign(t - 0.497)) > 0.5)
    (True, True)
    """
    p, times = method.degree, np.concatenate([[0.0], np.cumsum(steps)])
    constants = _EXTRAPOLATED if method.explicit or method.lags else _ENDING
    low, high = (constants[min(k, len(constants) - 1)] for k in (p, p + 1))
    left_out = _LEFT_OUT if len(times) >= _LEFT_OUT + p + 4 else 0
    values, times, steps = z[left_out:], times[left_out:], steps[left_out:]
    defect = low * _rms_difference(values, times, steps, p + 1)
    next_one = high * _rms_difference(values, times, steps, p + 2)
    seen = defect > _FLOOR * np.abs(z).max(axis=0)
    return float((next_one[seen] / defect[seen]).max(initial=0.0)) if np.isfinite(defect).all() else inf


def _rms_difference(z: Matrix, times: Vector, steps: Vector, order: int) -> Vector:
    """Root mean square of the backward differences; on uneven steps of the derivative times a power of the step."""
    found = z
    for k in range(1, order + 1):
        found = k * np.diff(found, axis=0) / (times[k:] - times[:-k])[:, np.newaxis]
    scaled = found * steps[order - 1 :, np.newaxis] ** order
    rms: Vector = np.sqrt(np.mean(scaled**2, axis=0))
    return rms


def _judged(
    plan: Plan, method: Method, startup: Startup, result: Result, z: Matrix, safety: float, ratio: float
) -> ErrorBar:
    """Run the shadow and say what it tells."""
    path, spent = _path(plan, method, startup, result, z)
    shadow = Shadow(plan, method, startup, path)
    y = np.asarray(result.column("y"))[:, : plan.n_y]
    try:
        shadow.start(float(result.t[0]))
        if not np.allclose(shadow.y, y[0], rtol=1e-9, atol=1e-9 * np.abs(y[0]).max(initial=0.0)):
            return ErrorBar(result.t, ratio=ratio, reason="the system does not start where the run did")
        gap = np.abs(shadow.outputs() - y)
    finally:
        shadow.crew.close()
    cost = {name: int(n) for name, n in zip(plan.names, spent[0] + shadow.crew.calls, strict=True)}
    jacobians = {name: int(n) for name, n in zip(plan.names, spent[1] + shadow.crew.jacobians, strict=True)}
    bars, estimates, reasons, notes, worst = {}, {}, {}, {}, 0.0
    for name, part in output_parts(plan).items():
        estimate, largest = gap[:, part].max(axis=1), float(np.abs(y[:, part]).max())
        floor = _FLOOR * largest
        bar = safety * _envelope(result.t, estimate) + floor
        if not np.isfinite(bar).all():
            reasons[name] = "the shadow run diverges"
            continue
        if bar.max() > _MEANINGLESS * largest and bar.max() > 0:
            reasons[name] = "its coupling error may be larger than 10 %"
            continue
        if estimate.max() <= floor:
            notes[name] = "below the accuracy of the subsystems"
        worst = max(worst, float(bar.max() / largest) if largest else 0.0)
        bars[name], estimates[name] = bar, estimate
    first = next(iter(reasons), None)
    return ErrorBar(
        result.t,
        bars,
        estimates,
        worst if first is None else nan,
        None if first is None else f"'{first}': {reasons[first]}",
        reasons,
        notes,
        ratio,
        cost,
        jacobians,
    )


def output_parts(plan: Plan) -> dict[str, slice]:
    """Where each output stands among all."""
    parts = {}
    for name, ports, within in zip(plan.names, plan.output_ports, plan.y_slices, strict=True):
        for port in ports:
            inside = ports.slice(port.name)
            parts[f"{name}.{port.name}"] = slice(within.start + inside.start, within.start + inside.stop)
    return parts


def _envelope(t: Vector, values: Vector) -> Vector:
    """The largest value within a tenth of the run, before and after."""
    reach = _WINDOW * (t[-1] - t[0]) * (1 + 1e-9)
    first, last = np.searchsorted(t, t - reach), np.searchsorted(t, t + reach, side="right")
    return np.array([values[a:b].max() for a, b in zip(first, last, strict=True)])


def _path(
    plan: Plan, method: Method, startup: Startup, result: Result, z: Matrix
) -> tuple[Path, npt.NDArray[np.int64]]:
    """All points that the history of the run went through; crossings and Jacobians that it took to learn them."""
    t, steps = result.t.tolist(), result.H.tolist()
    whole = Path(t, steps, z, range(len(t)))
    nothing = np.zeros((2, plan.n_subsystems), dtype=np.int64)
    if not startup.grading(method).halvings or str(result.meta.get("step", "")).startswith("Adaptive"):
        return whole, nothing
    rehearsal = Rehearsal(plan, method, startup, Uniform(t[0], t[-1], steps[0]))
    try:
        rehearsal.cross_pieces(t[0])
    finally:
        rehearsal.crew.close()
    taken, ends = rehearsal.taken, rehearsal.macro
    spent = np.array([rehearsal.crew.calls, rehearsal.crew.jacobians])
    if not ends:
        return whole, spent
    repeated = np.array([taken[end - 1].z for end in ends])
    if not np.allclose(repeated, z[1 : len(ends) + 1], rtol=1e-9, atol=1e-12 * np.abs(z).max()):
        raise SetupError("its first macro steps do not repeat themselves")
    n = len(ends)
    times = [t[0], *(float(one.t1) for one in taken if one.t1 is not None), *t[n + 1 :]]
    lengths = [*(float(one.H) for one in taken if one.H is not None), *steps[n:]]
    values = np.vstack([z[:1], [one.z for one in taken], z[n + 1 :]])
    later = range(len(taken) + 1, len(times))
    return Path(times, lengths, values, [0, *ends, *later]), spent
