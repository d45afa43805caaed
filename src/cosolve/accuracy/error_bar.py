"""The coupling error of a finished run, as a bar on each of its outputs: by its shadow (`accuracy/shadow.py`).

The bar is twice the distance between run and shadow, the largest within a tenth of the run before and after, plus a
floor of `2e-9` of the output. It is about what the exchange at macro points does, and not about the subsystems' own
solvers. Where a bar could mislead there is none, and a sentence says why: signals that the steps do not resolve, errors
above a tenth of the output, a shadow that fails or that other grids do not confirm, gaps in the
record (`accuracy/proof.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import nan
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.accuracy.proof import MEANINGLESS, Prover
from cosolve.accuracy.recorded_run import Track
from cosolve.accuracy.resolution import FLOOR, resolution
from cosolve.accuracy.rollback import ROLLBACK, UNPROVEN
from cosolve.accuracy.shadow import LostState
from cosolve.basics.arrays import Vector
from cosolve.basics.checks import positive
from cosolve.errors import CosolveError, EndOfSimulation, SetupError
from cosolve.interface import Plan, System
from cosolve.method import Method
from cosolve.method.named import MethodLike, as_method, as_written, build
from cosolve.result import ErrorBar, Result
from cosolve.run.startup import Startup, default_start
from cosolve.run.stepper import checked_plan
from cosolve.subsystem.base import has_capability

_WINDOW = 0.1  # of the run
_MOST = 2e8  # numbers in a record that is read into memory


def error_bar(
    system: System,
    result: Result,
    *,
    method: MethodLike | None = None,
    startup: Startup | None = None,
    safety: float | None = None,
    sure: bool = False,
) -> ErrorBar:
    """Estimate the coupling error of a run by taking its macro steps once more.

    Parameters
    ----------
    system : System
        The system of the run. Its subsystems start again.
    result : Result
        The run, with every macro point and all outputs and coupling variables.
    method : Method, str, dict or None, default None
        The method of the run. None takes it from the result; a method of your own must be given if the result is from a
        file.
    startup : Startup or None, default None
        The start-up of the run, likewise.
    safety : float or None, default None
        Factor between estimate and bar. None is 2, or 3 with `sure`.
    sure : bool, default False
        Repeat the run with steps twice *and* half as long, and ask for agreement: four runs in all.

    Returns
    -------
    ErrorBar
        The estimate for each output, or the reason why there is none.

    Notes
    -----
    Explicit methods need one subsystem step per macro step and no rollback, implicit ones two and a Jacobian to begin
    with. What starts and ends between two macro points is not seen by that, so the run is repeated with steps twice or
    half as long, and a bar is given only if the two runs differ as much as the estimate says. A part that turns within
    a macro step is seen by neither: every subsystem takes each step once more, in two pieces, and shows what it does
    inside.

    Examples
    --------
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
    return estimated(system, result, method=method, startup=startup, safety=safety, sure=sure)


def estimated(
    system: System,
    result: Result,
    *,
    method: MethodLike | None = None,
    startup: Startup | None = None,
    safety: float | None = None,
    sure: bool = False,
    proven: bool = False,
    refines: bool = True,
) -> ErrorBar:
    """The same; with `proven` the run was looked at for what setting subsystems back has cost it.

    With `refines` runs with shorter steps are tried where the steps resolve too little.
    """
    safety = (3.0 if sure else 2.0) if safety is None else safety
    positive("error_bar", "safety", safety)
    taken, startup = _known(result, method, startup)
    plan = checked_plan("error_bar", system, taken, 1)
    t = result.t
    unproven = [note.text for note in result.notes if note.kind == ROLLBACK and UNPROVEN in note.text]
    if not proven and any(part.foreign and has_capability(part, "rollback") for part in plan.subsystems):
        unproven += ["macro steps ended at events; ask for the bar with the run, simulate(..., error_bar=True)"]
    why = _cannot(plan, taken, startup, result) or (unproven[0] if unproven and result.stats.events else "")
    if why:
        return ErrorBar(t, reason=why)
    z, y = (np.asarray(result.column(name))[:, :n] for name, n in (("z", plan.n_z), ("y", plan.n_y)))
    steps = result.H
    uniform = _is_uniform(taken, result) and bool(np.allclose(steps[:-1], steps[0], rtol=1e-9, atol=0.0))
    events = int(result.stats.events)
    ratio = nan if events else resolution(taken, z, steps)
    track = Track(t, steps, z, y, uniform or bool(events), result.stats.compiled_steps > 0)
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            proves, parts = not proven or bool(unproven), output_parts(plan)
            prover = Prover(plan, taken, startup, track, parts, refines=refines, proves=proves)
            return _judged(prover, plan, taken, track, safety, ratio, sure, events)
    except LostState as lost:
        return ErrorBar(t, ratio=ratio, reason=str(lost))
    except EndOfSimulation as end:
        return ErrorBar(t, ratio=ratio, reason=f"the shadow run ended before the run ({end})")
    except CosolveError as error:
        return ErrorBar(t, ratio=ratio, reason=f"the shadow run failed ({error})")


def _known(result: Result, method: MethodLike | None, startup: Startup | None) -> tuple[Method, Startup]:
    """Method and start-up of the run: given, or as the result knows them, or as its file tells in words."""
    told = result.meta.get("method", "")
    chosen: Any = as_method(method) if method is not None else result.method
    if chosen is None:
        table = as_written(told)
        chosen = None if table is None else _built("methods", table, Method)
        if repr(chosen) != told:
            raise SetupError(
                "error_bar: the result does not hold its method, and what it tells about it "
                f"({told or 'nothing'}) is not enough; give it, error_bar(..., method=...)"
            )
    if told not in ("", repr(chosen)):
        raise SetupError(f"error_bar: the run was made with {told}, not with {chosen!r}")
    words = result.meta.get("startup")
    start = startup or result.startup
    if start is None and words is not None:
        start = _built("startups", as_written(words) or {}, Startup)
        if repr(start) != words:
            raise SetupError(f"error_bar: the run began with {words}; give that, error_bar(..., startup=...)")
    taken: Method = chosen
    return taken, start or default_start(taken)


def _built(group: str, table: Mapping[str, Any], base: type) -> Any:
    """The object of a table, or None where there is none."""
    try:
        return build(group, table, base)
    except SetupError:
        return None


def _cannot(plan: Plan, method: Method, startup: Startup, result: Result) -> str:
    """Why there can be no shadow; empty where there can."""
    least = method.degree + 3
    if result.error is not None:
        return f"the run did not finish ({result.error})"
    if method.declaration is None:
        return f"{method.name} draws no signals that could be drawn better"
    if method.inner_point is not None:
        return f"there is no shadow of {method.label}"
    if startup.own_steps:
        return f"{type(startup).__name__} takes steps that the result does not hold; take another startup"
    lost = next((n for n in result.notes if n.kind == ROLLBACK and n.level == "error"), None)
    if lost is not None:
        return lost.text
    if plan.n_z == 0:
        return "nothing is exchanged"
    if result.column("z").shape[1] < plan.n_z or result.column("y").shape[1] < plan.n_y:
        return "the result does not hold all outputs and coupling variables; run without record"
    if len(result.t) != result.stats.steps + 1:
        return "the result does not hold every macro point; run with every=1"
    if len(result.t) * (plan.n_z + plan.n_y) > _MOST:
        return "the record is too long to be taken into memory; make a shorter run"
    if result.stats.events and not _is_uniform(method, result):
        return "macro steps ended at events, where values may jump; take a fixed step for an error bar"
    if len(result.t) <= least:
        return f"the run has {len(result.t) - 1} macro steps; at least {least} are needed"
    if not np.isfinite(result.column("y")).all():
        return "the result has values that are no numbers"
    if not np.ptp(result.column("y"), axis=0).any():
        return "no output moves in this run; a pulse that a subsystem has stepped over would not be seen"
    return ""


def _is_uniform(method: Method, result: Result) -> bool:
    """Whether macro steps were of one length, but for where something cut them."""
    return not method.chooses_step and not str(result.meta.get("step", "")).startswith("Adaptive")


def _judged(
    prover: Prover,
    plan: Plan,
    method: Method,
    track: Track,
    safety: float,
    ratio: float,
    sure: bool,
    events: int,
) -> ErrorBar:
    """Run the shadow and what proves it, and say what they tell."""
    parts, counted = output_parts(plan), partial(_by_name, plan.names)
    if events:
        proof = prover.events(events)
    else:
        proof = prover.sure() if sure else prover.shadows()
    calls, jacobians = np.zeros((2, plan.n_subsystems), dtype=np.int64) + proof.spent
    if sure and proof.doubt:
        reasons: dict[str, str] = {}
        unproven = {name: _relative(values, track, parts[name]) for name, values in proof.estimates.items()}
        return ErrorBar(
            track.t, reason=proof.doubt, unproven=_finite(unproven), ratio=ratio, cost=counted(calls), sure=True
        )
    bars, reasons, notes, unproven, worst = {}, dict(proof.why), {}, {}, 0.0
    for name, part in parts.items():
        estimate, largest = proof.estimates.get(name), float(np.abs(track.y[:, part]).max())
        if estimate is None:
            continue
        unproven[name] = _relative(estimate, track, part)
        floor = FLOOR * largest
        if estimate.max() <= floor:
            notes[name] = "below the accuracy of the subsystems"
        if name in reasons:
            continue
        bar = safety * _envelope(track.t, estimate) + floor
        if not np.isfinite(bar).all():
            reasons[name] = "the shadow run diverges"
            continue
        if bar.max() > MEANINGLESS * largest and bar.max() > 0:
            reasons[name] = "its coupling error may be larger than 10 %"
            continue
        worst = max(worst, float(bar.max() / largest) if largest else 0.0)
        bars[name] = bar
    if method.degree == 0 and not method.explicit:
        for name, why in _unsteady(bars, reasons).items():
            reasons[name] = why
            del bars[name]
    first = next((name for name in parts if name in reasons), None)
    return ErrorBar(
        track.t,
        bars,
        {name: proof.estimates[name] for name in bars},
        worst if first is None else nan,
        None if first is None else _reason(first, reasons, bars),
        reasons,
        {name: note for name, note in notes.items() if name in bars},
        ratio,
        counted(calls),
        counted(jacobians),
        sure,
        _finite({name: value for name, value in unproven.items() if name in reasons}),
    )


def _reason(first: str, reasons: Mapping[str, str], bars: Mapping[str, Vector]) -> str:
    """Why bars are missing: of the first output without one, or of all where it is the same."""
    if not bars and len(set(reasons.values())) == 1:
        return reasons[first]
    return f"'{first}': {reasons[first]}"


def _relative(estimate: Vector, track: Track, part: slice) -> float:
    """The largest estimate relative to the output."""
    largest = float(np.abs(track.y[:, part]).max())
    return float(estimate.max()) / largest if largest else float(estimate.max())


def _finite(values: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if np.isfinite(value)}


def _unsteady(bars: Mapping[str, Vector], reasons: Mapping[str, str]) -> dict[str, str]:
    """Why outputs beside one without a bar have none either, where signals are constant and corrected.

    The error of a stiff part falls more slowly with the step than that of the signals then, for a while, and a shadow
    does not see that.
    """
    lost = {name.partition(".")[0]: name for name in reasons}
    beside = {name: lost[name.partition(".")[0]] for name in bars if name.partition(".")[0] in lost}
    return {name: f"signals are constant, and '{other}' is not resolved" for name, other in beside.items()}


def _by_name(names: Sequence[str], counts: npt.NDArray[np.int64]) -> dict[str, int]:
    return dict(zip(names, counts.tolist(), strict=True))


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
    largest, wide = [values], 1  # over so many values from each on, doubled from row to row
    while 2 * wide <= (last - first).max():
        largest.append(np.maximum(largest[-1], np.append(largest[-1][wide:], np.full(wide, -np.inf))))
        wide *= 2
    levels = np.log2(last - first).astype(np.int64)
    table: Vector = np.array(largest)
    found: Vector = np.maximum(table[levels, first], table[levels, last - 2**levels])
    return found
