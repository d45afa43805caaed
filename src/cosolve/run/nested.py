"""A coupled system as one subsystem of another: loops inside loops.

An outer macro step is advanced by inner ones, with a method of their own: iterated to a tolerance inside an outer
explicit loop, in many short steps inside a long one, and so on. What the outer system sends in is known to the inner
one as a polynomial in time, so that inner subsystems see it exactly wherever their steps end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil, inf, nan
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import as_list, whole
from cosolve.basics.wording import did_you_mean
from cosolve.errors import EndOfSimulation, SetupError, SimulationError
from cosolve.interface import Plan, System
from cosolve.interface.addresses import Drives
from cosolve.interface.driven_inputs import Drive, Piece, shifted
from cosolve.method import Method, Outcome
from cosolve.method.named import MethodLike, as_method
from cosolve.method.step import CLOSE, Window
from cosolve.result import Stats
from cosolve.run.core import Core
from cosolve.run.startup import Startup
from cosolve.run.totals import note_totals
from cosolve.signal.polynomial import InputSignal, Polynomial
from cosolve.state.snapshot import Snapshot
from cosolve.stepsize import Adaptive, refuse_bad_step
from cosolve.stepsize.sequence import Uniform, Windows, make_windows
from cosolve.subsystem.base import Subsystem, has_capability
from cosolve.subsystem.port import Port, Ports


class Nested(Subsystem):
    """A coupled system as one subsystem of another one.

    Each outer macro step is taken in inner ones, coupled by a method of its own.

    Parameters
    ----------
    system : System
        The inner system. It is not changed; inner inputs that `System.set` holds may be fed from outside.
    method : Method, str or dict
        Inner coupling method.
    inputs : mapping or sequence of str, optional
        Name of each outer input and the inner input it feeds: `{"force": "wheel.f"}`, or several with factors,
        `{"force": {"wheel.f": 1, "body.f": -1}}`. A sequence of inner addresses uses them as names.
    outputs : mapping or sequence of str, optional
        Name of each outer output and the inner output or coupling variable: `{"x": "body.x"}`.
    substeps : int or None, default None
        Number of equal inner steps per outer step.
    step : float, Adaptive or None, default None
        In place of `substeps`: largest inner step in seconds, or error control.
    startup : Startup or None, default None
        As for `simulate`.
    workers : int, default 1
        As for `simulate`.

    Attributes
    ----------
    stats : Stats
        Totals of the inner steps, repeated ones included.

    Notes
    -----
    It has rollback if all inner subsystems have.

    Examples
    --------
    >>> import cosolve as cs
    >>> mass = lambda: cs.Linear([[0, 1], [-1, -1]], [[0], [1]], [[1, 0]], x0=[1, 0], inputs=["f"], outputs=["x"])
    >>> two = cs.System({"left": mass(), "right": mass()})
    >>> two.law("right.f", lambda x: 5 * x, of="left.x")
    >>> method = cs.Implicit(degree=1)
    >>> pair = cs.Nested(two, method=method, substeps=4, inputs={"f": "left.f"}, outputs={"x": "right.x"})
    >>> system = cs.System({"pair": pair, "third": mass()})
    >>> system.connect("pair.x", "third.f"); system.connect("third.x", "pair.f")
    >>> result = cs.simulate(system, t_end=1.0, method=cs.Jacobi(degree=1), step=0.1)
    >>> pair.stats.steps
    40
    """

    def __init__(
        self,
        system: System,
        *,
        method: MethodLike,
        inputs: Mapping[str, Drives] | Sequence[str] = (),
        outputs: Mapping[str, str] | Sequence[str] = (),
        substeps: int | None = None,
        step: float | Adaptive | None = None,
        startup: Startup | None = None,
        workers: int = 1,
    ) -> None:
        if not isinstance(system, System):
            raise SetupError(f"Nested takes a cosolve.System, not an object of type {type(system).__name__}")
        self.method: Method = as_method(method)
        self._pace = _checked_pace(self.method, substeps, step)
        self._startup, self._workers = startup, whole("Nested", "workers", workers)
        if startup is not None and type(startup).prepare is not Startup.prepare:
            raise SetupError(
                f"Nested: {type(startup).__name__} asks for a past at the length of the inner steps, known only "
                "when the outer run steps; use GradedStart or RisingDegree"
            )
        inside = system.copy()
        self.inputs, self._feeds = _fed(inside, _named("inputs", inputs))
        self._plan = _plan(inside)
        self.method.refuse_unfit(self._plan)
        self.outputs, self._shown = _seen(inside, self._plan, _named("outputs", outputs))
        self._width = Ports(self.inputs).length
        self._core: Core | None = None
        self._pattern: npt.NDArray[np.bool_] | None = None
        self.stats = Stats()
        parts = self._plan.subsystems
        self.variable_step = all(part.variable_step for part in parts)
        self.least_degree = max((part.least_degree for part in parts), default=0)
        self.noise = max([self.method.noise, *(part.noise for part in parts)])
        if any(has_capability(part, "output") for part in parts):
            self.output, self.feedthrough = self._output, self._feedthrough
        if all(has_capability(part, "rollback") for part in parts):
            self.save, self.restore = self._save, self._restore
            self.serialise, self.deserialise = self._serialise, self._deserialise

    # -- the contract ----------------------------------------------------------------------------------------

    def start(self, t0: float) -> Vector:
        if self._core is not None:
            self._core.close()
        self.stats, self._pattern = Stats(), None
        windows = self._windows(t0)
        self._core = Core(self._plan, self.method, self._startup, windows, self._workers)
        return self._begun(t0, np.zeros(self._width))

    def begin(self, t0: float, u: Vector) -> Vector:
        """The inner run begins again where the inputs are known: initial values inside may depend on them."""
        return self._begun(t0, u) if self._width else self._values(self._now.y, self._now.z)

    def advance(self, t0: float, t1: float, u: InputSignal) -> Vector:
        core = self._now
        self._listen(u, t1)
        if isinstance(core.windows, Divided):
            core.windows.divide(t0, t1, u.H)
        while core.t < t1 and core.ended is None:
            try:
                self._count(core.take_step(None, t1))
            except EndOfSimulation:
                break
            except SimulationError as error:
                raise type(error)(f"{error} (in the inner macro step from t = {core.t:.9g})") from error
        if core.ended is not None:
            self._end(core, t1, u.H)
        self._note()
        return self._values(core.y, core.z)

    # -- capabilities ----------------------------------------------------------------------------------------

    def _output(self, t: float, u: Vector) -> Vector:
        unknown = np.isnan(u)
        if not unknown.any():
            return self._settled(t, u)
        values = self._settled(t, np.where(unknown, 0.0, u))  # inner functions need not cope with NaN
        values[self._feedthrough()[:, unknown].any(axis=1)] = np.nan
        return values

    def _settled(self, t: float, u: Vector) -> Vector:
        self._listen(Polynomial(t, 1.0, u[np.newaxis].copy()), inf)
        return self._values(*self._now.settled())

    def _feedthrough(self) -> npt.NDArray[np.bool_]:
        """Which outputs react at once, seen from a change of each input."""
        if self._pattern is None:
            t, base = self._now.t, np.zeros(self._width)
            before = self._settled(t, base)
            self._pattern = np.zeros((len(before), self._width), dtype=bool)
            for k in range(self._width):
                moved = base.copy()
                moved[k] = 1.0
                self._pattern[:, k] = self._settled(t, moved) != before
        return self._pattern

    def prove_rollback(self, t0: float, H: float, u: Vector) -> None:
        """Those inside show that they come back from a saved state."""
        self._now.caller.prove_rollback(t0, H, self._now.z)

    def _save(self) -> Snapshot:
        return self._now.save()

    def _restore(self, state: Snapshot) -> None:
        self._now.restore(state)

    def _serialise(self) -> bytes:
        return self._now.save(portable=True).to_bytes()

    def _deserialise(self, data: bytes) -> None:
        self._now.restore(Snapshot.from_bytes(data))

    # -- inside ----------------------------------------------------------------------------------------------

    @property
    def _now(self) -> Core:
        if self._core is None:
            raise SetupError("Nested: the inner system has not been started; run it as a part of a System")
        return self._core

    def _windows(self, t0: float) -> Windows:
        if isinstance(self._pace, Division):
            return Divided(self._pace, t0)
        return make_windows(self.method, self._pace, t0, None, self._plan)

    def _begun(self, t0: float, u: Vector) -> Vector:
        core = self._now
        self._listen(Polynomial(t0, 1.0, u[np.newaxis].copy()), inf)
        core.start(t0)
        return self._values(core.y, core.z)

    def _listen(self, u: InputSignal, t1: float) -> None:
        """From now on the outer inputs are these."""
        for feed in self._feeds:
            feed.signal, feed.t1 = u, t1

    def _values(self, y: Vector, z: Vector) -> Vector:
        return np.concatenate([np.zeros(0), *((y if outputs else z)[part] for outputs, part in self._shown)])

    def _end(self, core: Core, t1: float, H: float) -> None:
        """A subsystem inside ends the run: the outer run ends as well."""
        end = core.ended
        assert end is not None
        reached = not core.inside_step and core.t >= t1 - CLOSE * H
        who = f"'{end.subsystem}' inside asked for it" + (f": {end}" if str(end) else "")
        outputs = self._values(core.y, core.z) if reached else None
        raise EndOfSimulation(who, time=t1 if reached else core.t, outputs=outputs)

    def _count(self, outcome: Outcome) -> None:
        stats = self.stats
        stats.steps += 1
        stats.iterations += outcome.iterations
        stats.unconverged += not outcome.converged
        stats.renewed += outcome.renewed
        stats.max_residual = float(np.fmax(stats.max_residual, outcome.residual))

    def _note(self) -> None:
        self.stats.rejected = self._now.rejected
        note_totals(self.stats, self._now)

    def inner_work(self) -> str:
        """Say what the inner run took, for the notes of the outer run.

        Returns
        -------
        str
            Numbers of steps, corrections and calls.
        """
        stats = self.stats
        lost = f", {stats.unconverged} of them without convergence" if stats.unconverged else ""
        return f"{stats.steps} inner macro steps{lost}, {stats.iterations} corrections, {stats.total_calls} calls"


class OuterInputs(Drive):
    """Inputs of the inner system that follow those of the outer one."""

    label = "the outer system"

    def __init__(self, columns: npt.NDArray[np.intp], factor: float) -> None:
        self._columns, self._factor = columns, factor
        self.signal: InputSignal = Polynomial(0.0, 1.0, np.zeros((1, int(columns[-1]) + 1)))
        self.t1 = inf
        self._last: tuple[InputSignal, Piece] | None = None  # asked for more than once in every step

    def value(self, t: float, right: bool = False) -> Vector:
        values = self.signal.end if t >= self.t1 else self.signal(t)
        return self._factor * values[self._columns]

    def pieces(self, a: float, b: float) -> list[Piece]:
        u, last = self.signal, self._last
        if last is None or last[0] is not u or (last[1].a, last[1].b) != (a, b):
            coefficients: Matrix = self._factor * u.coefficients[:, self._columns]
            if len(coefficients) > 1 and (a != u.t0 or b != self.t1):
                coefficients = shifted(coefficients, (a - u.t0) / u.H, (b - a) / u.H)
            self._last = last = u, Piece(a, b, coefficients)
        return [last[1]]


class Division:
    """Into how many equal steps an outer one is divided."""

    def __init__(self, parts: int | None, longest: float) -> None:
        self._parts, self._longest = parts, longest

    def of(self, H: float) -> int:
        """The number of inner steps in an outer one of length `H`.

        >>> Division(None, 0.1).of(0.3), Division(4, 0.0).of(0.3)
        (3, 4)
        """
        return self._parts or max(1, ceil(H / self._longest - CLOSE))


class Divided(Uniform):
    """Equal steps that divide the outer step which is under way; how long they are is known once it has begun."""

    def __init__(self, division: Division, t_start: float) -> None:
        self._division = division
        self.t, self.t_end, self.first_step, self._length = t_start, inf, nan, nan
        self._ends: list[float] = []
        self.settings = ("divided",)

    def divide(self, t0: float, t1: float, H: float) -> None:
        """An outer step begins."""
        parts = self._division.of(H)
        self.t, self._length = t0, H / parts
        self._ends = [*(t0 + (t1 - t0) * (k / parts) for k in range(1, parts)), t1][::-1]
        if np.isnan(self.first_step):
            self.first_step = self._length

    @property
    def usual(self) -> float:
        return self._length

    @property
    def H(self) -> float:
        return self._length

    def propose(self, H: float | None = None, limit: float = inf) -> Window:
        return Window(self.t, self._ends[-1], self._length)

    def judge(self, window: Window, outcome: Outcome) -> float | None:
        self.t = self._ends.pop()
        return nan

    def judge_cut(self, window: Window, outcome: Outcome) -> float | None:
        self.t = window.t1
        return nan

    @property
    def memory(self) -> dict[str, Any]:
        return {"t": self.t}

    @memory.setter
    def memory(self, saved: dict[str, Any]) -> None:
        self.t, self._ends = saved["t"], []


def _checked_pace(method: Method, substeps: int | None, step: float | Adaptive | None) -> Division | Adaptive | float:
    if substeps is not None and step is not None:
        raise SetupError("Nested: give substeps or step, not both; they say the same thing in two ways")
    if isinstance(step, Adaptive):
        if step.first_step is None:
            raise SetupError("Nested: error-controlled steps need a first length here: step=Adaptive(first_step=...)")
        return step
    if step is not None:
        refuse_bad_step(step)
    if method.chooses_step:
        if step is None:
            raise SetupError(f"Nested: {method.name} chooses its steps itself; give a step that limits them")
        return step
    if step is not None:
        return Division(None, float(step))
    return Division(1 if substeps is None else whole("Nested", "substeps", substeps), 0.0)


def _named(what: str, given: Any) -> dict[str, Any]:
    """Names of ports with what is behind them."""
    if isinstance(given, Mapping):
        return dict(given)
    return {name: name for name in as_list("Nested", what, given)}


def _fed(inside: System, given: Mapping[str, Drives]) -> tuple[list[Port], list[OuterInputs]]:
    """The ports that the outer system feeds, and what they drive inside."""
    ports, feeds, place = list[Port](), list[OuterInputs](), 0
    for name, drives in given.items():
        where = f"Nested: input '{name}'"
        factors = drives if isinstance(drives, Mapping) else dict.fromkeys(as_list(where, "the inputs", drives), 1.0)
        first = inside.port(next(iter(factors), ""), "input", where)
        ports.append(replace(first, name=name))
        columns = np.arange(place, place + first.length, dtype=np.intp)
        place += first.length
        for target, factor in factors.items():
            if inside.port(target, "input", where).size != first.size:
                raise SetupError(f"{where} cannot drive inputs of different sizes; give '{target}' a port of its own")
            feed = OuterInputs(columns, float(factor))
            try:
                inside.set(target, feed)
            except SetupError as error:
                raise SetupError(f"{where}: {error}") from None
            feeds.append(feed)
    return ports, feeds


def _plan(inside: System) -> Plan:
    missing = inside.unconnected_inputs()
    if missing:
        raise SetupError(
            f"Nested: the inner input '{missing[0]}' is not connected; name it in inputs={{...}}, or connect it inside"
        )
    plan = inside.plan()
    if plan.changes.listed:
        raise SetupError("Nested: parameters that change at a time (System.at) belong into the outer system")
    return plan


def _seen(
    inside: System, plan: Plan, given: Mapping[str, str]
) -> tuple[list[Port], list[tuple[bool, npt.NDArray[np.intp]]]]:
    """The ports that the outer system sees, and where their values are found: in `y` (True) or in `z`."""
    if not given:
        raise SetupError("Nested: outputs name what the outer system sees, such as {'x': 'body.x'}, and none is given")
    ports, places = [], []
    for name, source in given.items():
        where = f"Nested: output '{name}'"
        if isinstance(source, str) and source in plan.z_ports and "." not in source:
            part, scalar = plan.z_ports[source]
            size, nominal = None if scalar else part.stop - part.start, float(plan.z_nominal[part].max())
            ports.append(Port(name, size, nominal=nominal))
            places.append((False, np.arange(part.start, part.stop, dtype=np.intp)))
            continue
        if isinstance(source, str) and "." not in source and plan.z_ports:
            known = [variable for variable in plan.z_ports if "." not in variable]
            raise SetupError(
                f"{where}: '{source}' is no output ('subsystem.port') and no coupling variable; "
                f"{did_you_mean(source, known)}"
            )
        port = inside.port(source, "output", where)
        owner, inner = source.split(".", 1)
        i = plan.names.index(owner)
        part, base = inside.outputs[owner].slice(inner), plan.y_slices[i].start
        ports.append(replace(port, name=name))
        places.append((True, np.arange(base + part.start, base + part.stop, dtype=np.intp)))
    return ports, places
