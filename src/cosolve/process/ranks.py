"""Subsystems on the ranks of an MPI job: rank 0 runs the coupling, the others serve the subsystems that lie on them.

Every rank runs the same program up to `on_ranks` and so knows how each subsystem is built; a rank builds those that are
placed on it, and nothing but numbers and plain data travels. From there on rank 0 goes on alone. The tag of a message
says which subsystem it is about: its number plus one, 0 being for the ranks themselves.
"""

from __future__ import annotations

import atexit
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any, NoReturn

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import positive
from cosolve.basics.placement import balanced, refuse_bad_costs, refuse_bad_placement, told
from cosolve.basics.processes import hear_ctrl_c_but_go_on
from cosolve.basics.wording import raised, shortened
from cosolve.errors import CosolveError, SetupError, SubsystemError
from cosolve.process import message as m
from cosolve.process.channel import TimedOut
from cosolve.process.content import Content
from cosolve.process.factory import built
from cosolve.process.mpi import World, world
from cosolve.process.proxy import Proxy, driven_content, told_as_setup
from cosolve.process.server import Server
from cosolve.signal.polynomial import InputSignal
from cosolve.signal.time_function import value_at
from cosolve.subsystem.base import Subsystem

_ROOT, _CONTROL = 0, 0
_READY, _FAILED, _DROP, _LEAVE, _GONE = "ready", "failed", "drop", "leave", "gone"
_SHUTDOWN_TIMEOUT = 60.0  # seconds for the others to leave
_LOADING = 60.0  # seconds beyond `timeout`
_SHORT_TIMEOUT = 2.0  # where one of them is at work although it is no longer needed

#: How a subsystem is built where it is needed, or the subsystem itself.
Source = Callable[[], Subsystem] | Subsystem
#: A function of time that drives inputs.
TimeFunction = Callable[[float], Any]


def on_ranks(
    subsystems: Mapping[str, Source],
    *,
    placement: Mapping[str, int] | None = None,
    timeout: float | None = None,
    functions: Sequence[TimeFunction] = (),
) -> Ranks:
    """Distribute subsystems over the ranks of an MPI job, `mpiexec -n 4 python script.py`.

    All ranks call it with the same arguments at the same place of the same script. On rank 0 it returns, and what
    follows runs there alone. The other ranks serve their subsystems and exit (`SystemExit`) when rank 0 ends.

    Parameters
    ----------
    subsystems : mapping of str to callable or Subsystem
        Functions that build the subsystems, called on the rank where they are needed; or subsystems, which every rank
        has built then.
    placement : mapping of str to int or None, default None
        Rank of each subsystem; those that are not named are distributed evenly.
    timeout : float or None, default None
        Longest time of a call to another rank in seconds.
    functions : sequence of callable, optional
        Functions of time that will drive inputs. Each rank evaluates them itself, with the bits of a run in one
        process; other functions are sent as polynomials.

    Returns
    -------
    Ranks
        `subsystems` go into a `System`.

    Notes
    -----
    Without `mpiexec` there is one rank, and nothing else changes.

    Examples
    --------
    >>> import cosolve as cs
    >>> tank = lambda: cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["x"])
    >>> ranks = cs.remote.on_ranks({"one": tank, "two": tank})
    >>> print(ranks)
    1 rank: 'one', 'two' on rank 0
    >>> sorted(cs.System(ranks.subsystems).subsystems)
    ['one', 'two']
    """
    job = joined()
    if job is not None and job.rank != _ROOT:
        _serve(job, subsystems, functions)
    return Ranks(job, subsystems, placement or {}, timeout, functions)


def joined() -> World | None:
    """The ranks of this job, None where there is one; rank 0 lets the others go when it ends, however it does."""
    job = world()
    if job is not None and job.rank == _ROOT:
        atexit.unregister(_dismiss)
        atexit.register(_dismiss, job)
    return job


class Ranks:
    """The ranks of an MPI job as rank 0 sees them; made by `on_ranks`.

    Parameters
    ----------
    world : World or None
        The job; None without `mpiexec`.
    subsystems : mapping of str to callable or Subsystem
        See `on_ranks`.
    placement : mapping of str to int
        See `on_ranks`.
    timeout : float or None, default None
        See `on_ranks`.
    functions : sequence of callable, optional
        See `on_ranks`.

    Attributes
    ----------
    size : int
        Number of ranks.
    placement : dict of str to int
        Rank of each subsystem.
    subsystems : dict of str to Subsystem
        What goes into a `System`.

    Examples
    --------
    >>> import cosolve as cs
    >>> tank = lambda: cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["x"])
    >>> cs.remote.on_ranks({"one": tank, "two": tank}).placement
    {'one': 0, 'two': 0}
    """

    def __init__(
        self,
        world: World | None,
        subsystems: Mapping[str, Source],
        placement: Mapping[str, int],
        timeout: float | None = None,
        functions: Sequence[TimeFunction] = (),
    ) -> None:
        self._world, self.size = world, 1 if world is None else world.size
        self._timeout = timeout
        self._sources, self._functions = subsystems, functions
        self.placement: dict[str, int] = {}
        # what goes into a `System`: subsystems of this rank, and those that stand for one on another rank
        self.subsystems: dict[str, Subsystem] = {}
        if world is not None:
            if world.taken:
                raise SetupError("on_ranks: the other ranks serve those of the first call; give it all subsystems")
            world.taken = True
        try:
            self._names = _checked(subsystems, functions)
            if timeout is not None:
                positive("on_ranks", "timeout", timeout, " of seconds or None")
            refuse_bad_placement(self._names, placement, None if world is None else self.size)
            if world is None:
                placement = dict.fromkeys(self._names, _ROOT)
            else:
                self._await_others(world)
            self.place(balanced(self._names, {}, self.size, placement))
        except BaseException:
            self.close()
            raise

    def __str__(self) -> str:
        return told(self.placement, self.size)

    def _await_others(self, world: World) -> None:
        """All ranks must have come to the same call."""
        contents = Content()
        for rank in range(1, self.size):
            word, what = contents.unpack(world.receive(rank, _CONTROL)[1])
            if word == _FAILED:
                raise SetupError(f"rank {rank}: {what}")
            names, functions = what
            same = "all ranks must run the same script with the same files"
            if list(names) != self._names:
                raise SetupError(
                    f"rank {rank} has the subsystems {shortened(list(names))}, rank 0 {shortened(self._names)}; {same}"
                )
            if functions != len(self._functions):
                raise SetupError(f"rank {rank} has {functions} functions, rank 0 {len(self._functions)}; {same}")

    def place(self, placement: Mapping[str, int]) -> None:
        """Move subsystems to other ranks; those that move are built anew, and `subsystems` are other objects then.

        Parameters
        ----------
        placement : mapping of str to int
            Rank of every subsystem.
        """
        refuse_bad_placement(self._names, placement, self.size)
        missing = [name for name in self._names if name not in placement]
        if missing:
            raise SetupError(f"place: '{missing[0]}' has no rank; give all of them, or let balance find the others")
        here: list[str] = []
        for number, name in enumerate(self._names):
            rank = placement[name]
            if rank == self.placement.get(name):
                continue
            old = self.subsystems.get(name)
            if isinstance(old, OnRank):
                old.let_go()
                self._tell(old.rank, (_DROP, number + 1))
            self.placement[name] = rank
            if rank != _ROOT and self._world is not None:  # builds it while this one goes on
                self.subsystems[name] = OnRank(self._world, name, number + 1, rank, self._timeout, self._functions)
            else:
                here.append(name)
        for name in here:
            self.subsystems[name] = built(self._sources[name])
        for subsystem in self.subsystems.values():
            if isinstance(subsystem, OnRank):
                subsystem.wait_until_built()
        self.placement = {name: placement[name] for name in self._names}
        self.subsystems = {name: self.subsystems[name] for name in self._names}

    def balance(self, costs: Mapping[str, float], fixed: Mapping[str, int] | None = None) -> None:
        """Distribute subsystems by their cost, the most expensive first.

        Parameters
        ----------
        costs : mapping of str to float
            Cost of a subsystem step, as from `subsystem_costs`.
        fixed : mapping of str to int or None, default None
            Subsystems whose rank is given.
        """
        refuse_bad_costs(self._names, costs)
        refuse_bad_placement(self._names, fixed or {}, self.size)
        self.place(balanced(self._names, costs, self.size, fixed))

    def close(self) -> None:
        """Let the other ranks exit; done anyway at the end of the script."""
        if self._world is not None:
            _dismiss(self._world)

    def _tell(self, rank: int, what: tuple[str, Any]) -> None:
        assert self._world is not None
        self._world.send([Content().pack(what)], rank, _CONTROL)


class OnRank(Proxy):
    """A subsystem that lies on another rank. `post_advance` lets it set out while others are still to be asked."""

    def __init__(
        self,
        world: World,
        name: str,
        tag: int,
        rank: int,
        timeout: float | None = None,
        functions: Sequence[TimeFunction] = (),
    ) -> None:
        super().__init__(Content())
        self._functions = functions
        self._world, self._name, self._tag, self.rank, self._timeout = world, name, tag, rank, timeout
        self._posted: tuple[float, float, float, float, bytes] | None = None  # a step that is under way
        self._owed = False  # an answer that is no longer needed
        self.runs_on = f"rank {rank}"
        self._send(m.write_request(m.LOAD))

    def __reduce__(self) -> Any:
        raise SetupError(f"'{self._name}' lies on {self.runs_on} and cannot be copied; copy what it is built from")

    def _loaded(self) -> dict[str, Any]:
        with told_as_setup(f"'{self._name}' on {self.runs_on}"):
            if not self._owed:  # the first try failed
                self._send(m.write_request(m.LOAD))
            about: dict[str, Any] = self._read(self._receive(_LOADING)).value
        return about

    def wait_until_built(self) -> None:
        """Until it is there; raises where it cannot be built."""
        self._about()

    def let_go(self) -> None:
        """Wait for what is under way: another rank is asked from here on."""
        with self._lock:
            if self._owed:
                self._receive()

    def _holder(self) -> int:
        return self.rank

    def _send(self, request: m.Parts) -> None:
        if self._owed:  # by a sweep that ended early
            self._receive()
        self._owed = True
        self._world.busy.add(self._tag)
        self._world.send(request, self.rank, self._tag)

    def _receive(self, extra: float = 0.0) -> memoryview:
        """The answer that is due, within `extra` seconds more than the others."""
        timeout = None if self._timeout is None else self._timeout + extra
        try:
            data = self._world.receive(self.rank, self._tag, timeout)[1]
        except TimedOut:  # it is still owed, and the rank at work
            raise SubsystemError(
                f"{self.runs_on} gave no answer within {timeout:g} s; raise timeout if such a call may take that long"
            ) from None
        self._posted, self._owed = None, False
        self._world.busy.discard(self._tag)
        return data

    def _call_far(self, request: m.Parts) -> memoryview:
        self._send(request)
        return self._receive()

    def post_advance(self, t0: float, t1: float, u: InputSignal) -> None:
        """Begin to advance over the step; the next `advance` with the same arguments waits for it."""
        self._about()
        with self._lock:
            notes = self._noted()
            times, driven = (t0, t1, u.t0, u.H), driven_content(u, self._functions)
            content = b"" if driven is None else self._contents.pack(driven)
            self._send(
                m.write_request(m.ADVANCE, times=times, coefficients=u.coefficients, notes=notes, content=content)
                if notes or content
                else m.write_advance(t0, t1, u)
            )
            self._posted = (*times, u.coefficients.tobytes())

    def advance(self, t0: float, t1: float, u: InputSignal) -> Any:
        if self._posted is None:
            return super().advance(t0, t1, u)
        with self._lock:
            if self._posted != (t0, t1, u.t0, u.H, u.coefficients.tobytes()):
                raise SubsystemError("another subsystem step is under way; go back to a saved state first")
            return self._read(self._receive()).value

    def fastest_step(self) -> float:
        """Seconds that the shortest subsystem step since the last start took over there; infinite without one."""
        return float(self._ask(m.COST).value)


class _RankServer(Server):
    """Answers for one subsystem of a rank, and knows how long it took."""

    def __init__(self, source: Source, functions: Sequence[TimeFunction] = ()) -> None:
        super().__init__(Content())
        self._source, self._functions, self._fastest = source, functions, float("inf")

    def known_function(self, number: int, target: str, size: int) -> Callable[[float, bool], Vector]:
        function = self._functions[number]
        return lambda t, right: value_at(function, target, size, t)

    def load(self, content: Any) -> Subsystem:
        return built(self._source)

    def answer(self, data: memoryview) -> m.Parts:
        call = m.read_call(data)
        began = perf_counter()
        answer = super().answer(data)
        if call == m.ADVANCE:
            self._fastest = min(self._fastest, perf_counter() - began)
        elif call == m.START:
            self._fastest = float("inf")
        return answer

    def further(self, r: m.Request) -> m.Parts:
        if r.call == m.COST:
            return self.object(self._fastest)
        return super().further(r)


def _checked(subsystems: Mapping[str, Source], functions: Sequence[TimeFunction]) -> list[str]:
    if not isinstance(subsystems, Mapping) or not subsystems:
        raise SetupError(
            f"on_ranks takes subsystems by name, or functions that build them, not {shortened(subsystems)}"
        )
    for name, source in subsystems.items():
        if not isinstance(source, Subsystem) and not callable(source):
            raise SetupError(f"on_ranks: '{name}' is no subsystem and no function that builds one: {shortened(source)}")
    if not isinstance(functions, (list, tuple)) or not all(callable(one) for one in functions):
        raise SetupError(f"on_ranks: functions is a list of functions of time, not {shortened(functions)}")
    return [str(name) for name in subsystems]


def _dismiss(world: World) -> None:
    """Let the other ranks leave, once; end them where they do not."""
    if world.dismissed:
        return
    world.dismissed = True
    contents, rank = Content(), 0
    for rank in range(1, world.size):
        world.send([contents.pack((_LEAVE, None))], rank, _CONTROL)
    patience = _SHORT_TIMEOUT if world.busy else _SHUTDOWN_TIMEOUT
    until = perf_counter() + patience
    try:
        for rank in range(1, world.size):
            word = ""
            while word != _GONE:  # others are from before
                word, _ = contents.unpack(world.receive(rank, _CONTROL, max(until - perf_counter(), 0.0))[1])
    except TimedOut:  # one computes, perhaps for ever, and MPI would wait for it
        sys.stdout.flush()
        print(f"cosolve: rank {rank} did not come to its end within {patience:g} s; all are ended", file=sys.stderr)
        sys.stderr.flush()
        world.abort(1)


def leave_early(world: World, error: Exception) -> NoReturn:
    """End of a rank that cannot even begin to serve: rank 0 says why, where it does not fail itself."""
    contents = Content()
    why = str(error) if isinstance(error, CosolveError) else raised(error)
    world.send([contents.pack((_FAILED, why))], _ROOT, _CONTROL)
    while contents.unpack(world.receive(_ROOT, _CONTROL)[1])[0] != _LEAVE:
        pass
    world.send([contents.pack((_GONE, None))], _ROOT, _CONTROL)
    raise SystemExit(0)


def _serve(world: World, subsystems: Mapping[str, Source], functions: Sequence[TimeFunction]) -> NoReturn:
    """A rank other than 0, from here to its end."""
    try:
        names = _checked(subsystems, functions)
    except CosolveError as error:
        leave_early(world, error)
    hear_ctrl_c_but_go_on()  # it reaches all ranks; rank 0 writes down what there is and lets the others go
    contents = Content()
    servers: dict[int, _RankServer] = {}
    world.send([contents.pack((_READY, (names, len(functions))))], _ROOT, _CONTROL)
    sources = list(subsystems.values())
    try:
        while True:
            tag, data = world.receive(_ROOT)
            if tag != _CONTROL:
                if tag not in servers:
                    servers[tag] = _RankServer(sources[tag - 1], functions)
                world.send(servers[tag].answer(data), _ROOT, tag)
                continue
            word, what = contents.unpack(data)
            if word == _LEAVE:
                break
            servers.pop(what, None)
    except BaseException:  # SystemExit of a subsystem, no memory: rank 0 would wait for ever
        with suppress(Exception):
            traceback.print_exc()
            sys.stderr.flush()
        world.abort(1)
    world.send([contents.pack((_GONE, None))], _ROOT, _CONTROL)
    raise SystemExit(0)
