"""Starts of runs about whose past something is known: values at times before the start, or rates at the start.

A run that begins in full motion has no time to find out where its interface is going: with nothing but the values at
the start, explicit methods hold their inputs over the first macro step (docs/theory.md, "Start-up").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from cosolve.basics.arrays import Vector, doubles
from cosolve.basics.wording import counted, did_you_mean, shortened
from cosolve.engine.python.instant import Instant, left_open, roundings, solve
from cosolve.errors import SetupError
from cosolve.interface.driven_inputs import read_csv
from cosolve.interface.plan import Block, Plan
from cosolve.method.base import Method
from cosolve.run.startup import Startup
from cosolve.signal import History
from cosolve.subsystem.port import Ports

#: Of a macro step: times and steps that differ by less are the same.
_SAME = 1e-6
#: The newest row of a table lies at most so many macro steps before the start.
_FAR = 100.0


def _not_given(t: float) -> Mapping[str, Any]:
    """In place of a function of the user."""
    return {}


@dataclass(frozen=True)
class KnownHistory(Startup):
    """A start with known outputs before the start.

    Parameters
    ----------
    outputs : callable, optional
        `outputs(t)` returns `{address: value}` for every output that another subsystem uses. Unknowns of equations are
        given by name, unless the equations determine them from the outputs.
    spacing : float or None, default None
        Distance of the past points in seconds. None is the first macro step.
    table : str, mapping or None, default None
        In place of `outputs`: a CSV file with a line of names, or a mapping of addresses to columns, with the times
        under "t". Elements of vectors are `one.r[0]`, ... The newest rows before the start are used, as many as the
        method needs.

    Notes
    -----
    Multipliers of constraints are taken as they are at the start unless they are given.

    Examples
    --------
    >>> import cosolve as cs
    >>> clock = cs.Static(lambda t, u: t, inputs=[], outputs=["t"])
    >>> hold = cs.Static(lambda t, u: u, inputs=["u"], outputs=["y"])
    >>> system = cs.System({"clock": clock, "hold": hold})
    >>> system.connect("clock.t", "hold.u")
    >>> run = {"t_end": 0.2, "method": cs.Jacobi(degree=1), "step": 0.1}
    >>> cs.simulate(system, **run, startup=cs.KnownHistory(lambda t: {"clock.t": t}))["hold.y"]
    array([0. , 0.1, 0.2])
    >>> past = cs.KnownHistory(table={"t": [-0.2, -0.15], "clock.t": [-0.2, -0.15]})
    >>> cs.simulate(system, **run, startup=past)["hold.y"]
    array([0. , 0.1, 0.2])
    """

    gives_values: ClassVar[bool] = True

    outputs: Callable[[float], Mapping[str, Any]] = _not_given
    spacing: float | None = None
    table: str | Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not callable(self.outputs):
            raise SetupError(
                f"KnownHistory: outputs must be a function of time, not {shortened(self.outputs)}; values at times go "
                "into table={'t': [...], ...}"
            )
        if self.table is not None and (self.outputs is not _not_given or self.spacing is not None):
            raise SetupError("KnownHistory: a table has times of its own; give it without outputs and spacing")

    def prepare(self, plan: Plan, method: Method, history: History, t0: float, H: float, y: Vector) -> None:
        """Fill the history with the values at `t0 - H`, `t0 - 2 H`, ..., or at the times of the table."""
        if self.table is not None:
            self._from_table(plan, method, history, t0, H)
            return
        H = _distance("KnownHistory", method, H, self.spacing)
        for j in range(1, history.depth + 1):
            given = self.outputs(t0 - j * H)
            if not isinstance(given, Mapping):
                raise SetupError(f"KnownHistory: outputs(t) returned {shortened(given)}, expected {{address: value}}")
            history.append_past(_coupling(plan, history, given, "outputs(t)"), H)

    def _from_table(self, plan: Plan, method: Method, history: History, t0: float, H: float) -> None:
        where, times, columns = _read(self.table)
        same = _SAME * (H if np.isfinite(H) else times[-1] - times[0])
        before = np.flatnonzero(times < t0 - same)[::-1]
        if len(before) < history.depth:
            raise SetupError(
                f"KnownHistory: {where} has {counted(len(before), 'row')} before the start at t = {t0:g} (its times go "
                f"from {times[0]:g} to {times[-1]:g}), but {method.label} looks back at {history.depth}; give more "
                "rows, or take a lower degree"
            )
        newest, newer = times[before[0]], t0
        if t0 - newest > _FAR * H:
            raise SetupError(
                f"KnownHistory: the newest row of {where} before the start at t = {t0:g} is at t = {newest:g}, "
                f"{(t0 - newest) / H:.0f} macro steps back; its times must be those of the run"
            )
        for k in before[: history.depth]:
            given = {address: column[k] for address, column in columns.items()}
            step = newer - times[k]
            # equal steps stay equal, whatever the rounding of times
            history.append_past(_coupling(plan, history, given, where), H if abs(step - H) < same else step)
            newer = times[k]


@dataclass(frozen=True)
class KnownRates(Startup):
    """A start with known rates of outputs.

    Parameters
    ----------
    rates : mapping
        Address of each output and its rate: a value, or the address of the output that is the rate.
    spacing : float or None, default None
        Distance of the past point that follows, in seconds. None is the first macro step.

    Notes
    -----
    Outputs without a rate count as constant. Explicit methods start with degree 1 and reach order 3 if all rates are
    given.

    Examples
    --------
    >>> import cosolve as cs
    >>> clock = cs.Static(lambda t, u: [t, 1.0], inputs=[], outputs=["t", "rate"])
    >>> hold = cs.Static(lambda t, u: u, inputs=["u"], outputs=["y"])
    >>> system = cs.System({"clock": clock, "hold": hold})
    >>> system.connect("clock.t", "hold.u")
    >>> run = {"t_end": 0.2, "method": cs.Jacobi(degree=1), "step": 0.1}
    >>> cs.simulate(system, **run, startup=cs.KnownRates({"clock.t": "clock.rate"}))["hold.y"]
    array([0. , 0.1, 0.2])
    """

    gives_values: ClassVar[bool] = True

    rates: Mapping[str, Any] = field(default_factory=dict)
    spacing: float | None = None

    def prepare(self, plan: Plan, method: Method, history: History, t0: float, H: float, y: Vector) -> None:
        """One point before the start."""
        H = _distance("KnownRates", method, H, self.spacing)
        if not isinstance(self.rates, Mapping):
            raise SetupError(f"KnownRates: rates map addresses to rates, {{'one.x': 'one.v'}}, not {self.rates!r}")
        past = y.copy()
        for address, rate in self.rates.items():
            part = _output(plan, address)
            past[part] -= H * _rate(plan, address, rate, part, y)
        history.append_past(plan.evaluate(past, history.newest).copy(), H)


def _rate(plan: Plan, address: str, rate: Any, part: slice, y: Vector) -> Vector:
    size = part.stop - part.start
    if isinstance(rate, str):
        values = y[_output(plan, rate)]
        if len(values) != size:
            raise SetupError(
                f"KnownRates: '{rate}' has {counted(len(values), 'number')}, but '{address}', whose rate it is, {size}"
            )
        return values
    return _numbers(f"KnownRates: the rate of '{address}'", rate, size)


def _distance(name: str, method: Method, H: float, spacing: float | None) -> float:
    """How far apart past points are."""
    if spacing is None and np.isnan(H):
        raise SetupError(
            f"{name}: {method.name} chooses its own steps; say how far apart to take the past values, spacing=..."
        )
    if spacing is not None and not (np.isreal(spacing) and np.isfinite(spacing) and spacing > 0):
        raise SetupError(f"{name}: spacing must be a positive number, not {spacing!r}")
    return H if spacing is None else spacing


def _read(table: Any) -> tuple[str, Vector, dict[str, Any]]:
    """What the table is called, its times, and its columns by address."""
    where, given = "the table", table
    if isinstance(table, str):
        names, rows = read_csv(table)
        where, given = f"'{table}'", {"t": rows[:, 0]} | dict(zip(names[1:], rows[:, 1:].T, strict=True))
    if not isinstance(given, Mapping) or "t" not in given:
        raise SetupError(
            f"KnownHistory: table maps addresses to columns, with the times under 't', or is the path of a CSV file; "
            f"not {shortened(given)}"
        )
    columns = dict(given)
    try:
        times = np.array(columns.pop("t"), dtype=np.float64)
        arrays = {address: np.asarray(column, dtype=np.float64) for address, column in columns.items()}
    except (TypeError, ValueError):
        raise SetupError(f"KnownHistory: {where} holds something else than columns of numbers") from None
    if times.ndim != 1 or not len(times) or not np.isfinite(times).all() or (np.diff(times) <= 0).any():
        raise SetupError(f"KnownHistory: the times of {where} must be numbers that increase from row to row")
    for address, array in arrays.items():
        if array.ndim == 0 or len(array) != len(times):
            raise SetupError(
                f"KnownHistory: {where} has {counted(len(times), 'time')}, but {len(np.atleast_1d(array))} for "
                f"'{address}'; give one value (or one row of values) per time"
            )
    return where, times, arrays


def _coupling(plan: Plan, history: History, given: Mapping[str, Any], where: str) -> Vector:
    """The coupling variables that belong to these outputs."""
    y = np.full(plan.n_y, np.nan)
    for address, value in given.items():
        part = _part(plan.names, plan.output_ports, plan.y_slices, address)
        if part is not None:
            y[part] = _numbers(f"KnownHistory: {where} for '{address}'", value, part.stop - part.start)
        elif address not in plan.z_ports and _part(plan.names, plan.input_ports, plan.u_slices, address) is None:
            # unknowns of equations are taken below, and files of results hold inputs too
            raise SetupError(f"KnownHistory: {where} names {_no_output(plan, address)}")
    read = np.unique(np.concatenate([plan.copy_from, *(block.y_index for block in plan.blocks)]))
    missing = [plan.y_label(int(k)) for k in read if np.isnan(y[k])]
    if missing:
        raise SetupError(f"KnownHistory: {where} gives no value for '{missing[0]}', which is read")
    z = plan.evaluate(y, history.newest).copy()
    for block in plan.blocks:
        if block.implicit:
            _take_unknowns(plan, block, given, y, z)
    return z


def _part(names: Sequence[str], ports: Sequence[Ports], slices: Sequence[slice], address: object) -> slice | None:
    """Where an output (or input), or an element of one, is among those of the whole system."""
    for name, own, whole in zip(names, ports, slices, strict=True):
        port = str(address).removeprefix(f"{name}.")
        if port != address and own.find(port) is not None:
            inside = own.slice(port)
            return slice(whole.start + inside.start, whole.start + inside.stop)
    return None


def _output(plan: Plan, address: object) -> slice:
    """Where an output is; raises for anything else."""
    found = _part(plan.names, plan.output_ports, plan.y_slices, address)
    if found is None:
        raise SetupError(f"KnownRates: rates name {_no_output(plan, address)}")
    return found


def _no_output(plan: Plan, address: object) -> str:
    known = [f"{name}.{one.name}" for name, ports in zip(plan.names, plan.output_ports, strict=True) for one in ports]
    return f"'{address}', which is no output of the system; {did_you_mean(str(address), known)}"


def _numbers(what: str, value: Any, size: int) -> Vector:
    """So many finite numbers."""
    flat = doubles(value).reshape(-1)
    if len(flat) != size or not np.isfinite(flat).all():
        raise SetupError(f"{what}: expected {counted(size, 'finite number')}, not {shortened(value)}")
    return flat


def _take_unknowns(plan: Plan, block: Block, given: Mapping[str, Any], y: Vector, z: Vector) -> None:
    """Write a block's unknowns into `z`: those given by name, and those that follow from the outputs `y`."""
    names = {name: part for name, (part, _) in plan.z_ports.items() if part.start in block.rows}
    for name, part in names.items():
        if name in given:
            z[part] = given[name]
    if block.levels is not None or all(name in given for name in names):
        return

    def evaluate(values: Vector) -> tuple[Vector, Vector, Vector]:
        return block.call(values, y[block.y_index]), y, values

    def rounding(r: Vector, y: Vector, values: Vector) -> Vector:
        return roundings(block, r, values, y[block.y_index], np.zeros(len(block.y_index)))

    chosen = np.concatenate([np.full(part.stop - part.start, name in given) for name, part in names.items()])
    largest = max(float(np.abs(v).max(initial=0.0)) for v in (y, z)) or 1.0
    problem = Instant(evaluate, rounding, np.where(plan.z_open, largest, plan.z_nominal)[block.rows], chosen)
    solved = solve(problem, z[block.rows])
    z[block.rows] = solved.values
    missing = [plan.z_labels[m] for m in block.rows[(solved.kept | left_open(problem, solved.values)) & ~chosen]]
    if missing:
        raise SetupError(
            f"KnownHistory: the outputs alone do not determine the unknown '{missing[0]}'; let outputs(t) return its "
            "value as well, under its name"
        )
