"""A subsystem that is somewhere else, seen from the run like the subsystem itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import inf
from threading import RLock
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.wording import text_of
from cosolve.errors import CosolveError, SetupError, SubsystemError
from cosolve.process import message as m
from cosolve.process.data import Malformed
from cosolve.signal.polynomial import DrivenPolynomial, InputSignal
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.port import Port


class Proxy(Subsystem):
    """Forwards the whole contract. Who inherits says how to load, how to call, and which process holds the states.

    `contents` is how the contents of rare calls travel. Where a message is dear, saving and going back are noted and
    travel with the next call (`_by_note`), which then raises what they raise.
    """

    foreign = True
    _by_note = False
    _functions: Sequence[Callable[[float], Any]] = ()  # of time, which the other side has too

    def __init__(self, contents: m.Format) -> None:
        self._contents = contents
        self._lock = RLock()
        self._notes: deque[int] = deque()  # what is to be done with states, told with the next call
        self._states = 0  # how many were saved by a note
        self._known: dict[str, Any] | None = None
        self._t_end = inf  # of the next run, where it is known

    def remedy(self, capability: str) -> str:
        fmu = "; have an FMU exported with canGetAndSetFMUState" if capability == "rollback" else ""
        return f"{super().remedy(capability)}, in what it runs{fmu}"

    def _loaded(self) -> dict[str, Any]:
        """Wait until the subsystem is there; what it is."""
        raise NotImplementedError

    def _call_far(self, request: m.Parts) -> memoryview:
        """Send a request and wait for the answer."""
        raise NotImplementedError

    def _holder(self) -> int:
        """A number for the process that holds the saved states."""
        raise NotImplementedError

    def _unreadable(self, error: Malformed) -> SubsystemError:
        """The words for an answer that is none."""
        return SubsystemError(f"its process sent {error}")

    def _begin_anew(self) -> None:
        """Another process holds the states from here on; those of the old one send no message at release."""
        self._known, self._notes = None, deque()

    def _about(self) -> dict[str, Any]:
        """What the subsystem is; waits until it is loaded."""
        if self._known is None:
            with self._lock:
                if self._known is None:
                    self._known = self._loaded()
        return self._known

    def _ask(self, call: int, content: Any = None, **what: Any) -> m.Answer:
        self._about()
        packed = b"" if content is None else self._contents.pack(content)
        with self._lock:
            return self._read(self._call_far(m.write_request(call, notes=self._noted(), content=packed, **what)))

    def _noted(self) -> list[int]:
        """The notes that the next message has to carry."""
        return [self._notes.popleft() for _ in range(len(self._notes))]

    def _refuse_closed(self) -> None:
        """Raise where a note would never be sent."""

    def _read(self, data: memoryview) -> m.Answer:
        """The answer; raises what was raised over there."""
        try:
            answer = m.read_answer(data)
            if answer.form == m.OBJECT:
                return answer._replace(value=self._contents.unpack(answer.value))
            if answer.form != m.FAILURE:
                return answer
            raised = self._contents.unpack_error(answer.value)
        except Malformed as error:
            raise self._unreadable(error) from None
        raise raised

    # -- the contract ----------------------------------------------------------------------------------

    @property
    def inputs(self) -> tuple[Port, ...]:  # type: ignore[override]
        """Input ports of the subsystem."""
        ports: tuple[Port, ...] = self._about()["inputs"]
        return ports

    @property
    def outputs(self) -> tuple[Port, ...]:  # type: ignore[override]
        """Output ports of the subsystem."""
        ports: tuple[Port, ...] = self._about()["outputs"]
        return ports

    @property
    def noise(self) -> float:  # type: ignore[override]
        """Relative accuracy of the subsystem now."""
        value = self._ask(m.NOISE).value
        if type(value) is not float:
            raise self._unreadable(Malformed("no number where one is due"))
        return value

    @property
    def overshoots(self) -> bool:  # type: ignore[override]
        """Whether the subsystem ends steps where it wants."""
        return bool(self._about()["overshoots"])

    @property
    def variable_step(self) -> bool:  # type: ignore[override]
        """Whether the subsystem can be stopped inside a macro step."""
        return bool(self._about()["variable_step"])

    @property
    def input_form(self) -> str:  # type: ignore[override]
        """How the subsystem takes driven inputs."""
        return str(self._about()["input_form"])

    @property
    def least_degree(self) -> int:  # type: ignore[override]
        """The least degree of input signals that the subsystem makes sense of."""
        return int(self._about().get("least_degree", 0))  # a server of an earlier version does not say

    @property
    def concurrent(self) -> bool:  # type: ignore[override]
        """Whether copies may run at the same time (each in its own process)."""
        return bool(self._about()["concurrent"])

    def identity(self) -> str:
        """That of the subsystem itself: a run may go on with it in another place."""
        return str(self._about().get("identity") or super().identity())  # a server of an earlier version says nothing

    def will_end(self, t_end: float) -> None:
        """Told with the next start, for which another process may be the one that hears it."""
        self._t_end = t_end

    def start(self, t0: float) -> Any:
        known = t0 if self._t_end == inf else self._t_end
        return self._ask(m.START, times=(t0, known, 0.0, 0.0)).value

    def advance(self, t0: float, t1: float, u: InputSignal) -> Any:
        if self._known is None or self._notes or isinstance(u, DrivenPolynomial):
            return self._advance(m.ADVANCE, t0, t1, u).value
        with self._lock:
            data = self._call_far(m.write_advance(t0, t1, u))
            try:
                outputs = m.read_vector(data)
            except Malformed as error:
                raise self._unreadable(error) from None
            return self._read(data).value if outputs is None else outputs

    def portable_state(self) -> Any:
        """The state itself, not where it lies over there."""
        return self._call("portable_state")

    def set_portable_state(self, state: Any) -> None:
        self._call("set_portable_state", state)

    def __getattr__(self, name: str) -> Any:
        # Capabilities are methods that exist: those of the subsystem over there, found when asked for.
        if name.startswith("_") or name not in self._about()["methods"]:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        known = _FORWARDED.get(name)
        return partial(self._call, name) if known is None else partial(known, self)

    def _advance(self, call: int, t0: float, t1: float, u: InputSignal, weight: Vector | None = None) -> m.Answer:
        extra = None if weight is None else np.asarray(weight, dtype=np.float64)
        times, driven = (t0, t1, u.t0, u.H), driven_content(u, self._functions)
        return self._ask(call, driven, times=times, coefficients=u.coefficients, extra=extra)

    def _replay(self, t0: float, t1: float, u: InputSignal) -> Any:
        return self._advance(m.REPLAY, t0, t1, u).value

    def _step(self, t0: float, t_max: float, u: InputSignal) -> Any:
        answer = self._advance(m.STEP, t0, t_max, u)
        return answer.value if answer.form == m.OBJECT else (answer.t, answer.value)

    def _jacobian(self, t0: float, t1: float, u: InputSignal, weight: Vector) -> Matrix:
        J: Matrix = self._advance(m.JACOBIAN, t0, t1, u, weight).value
        return J

    def _output(self, t: float, u: Vector) -> Any:
        return self._ask(m.OUTPUT, times=(t, 0.0, 0.0, 0.0), extra=np.asarray(u, dtype=np.float64)).value

    def _save(self) -> SavedState:
        if not self._by_note:
            return SavedState(self._ask(m.SAVE).handle, self._holder(), self._notes)
        with self._lock:
            self._refuse_closed()
            self._states += 1
            self._notes.append(m.write_note(self._states, m.KEEP))
            return SavedState(self._states, self._holder(), self._notes)

    def _restore(self, state: SavedState) -> None:
        if state.holder != self._holder():
            raise SubsystemError("the saved state went with the process that held it; start a new run")
        if not self._by_note:
            self._ask(m.RESTORE, handle=state.handle)
            return
        with self._lock:
            self._refuse_closed()
            self._notes.append(m.write_note(state.handle, m.GO_BACK))

    def _get_state(self) -> Vector:
        x: Vector = self._ask(m.GET_STATE).value
        return x

    def _set_state(self, x: Vector) -> None:
        self._ask(m.SET_STATE, extra=np.asarray(x, dtype=np.float64).reshape(-1))

    def _equations(self) -> tuple[Callable[..., Any], Callable[..., Any], Matrix | None]:
        """The functions stay over there: each evaluation is a call."""
        mass = self._ask(m.EQUATIONS).value
        return partial(self._evaluate, m.RHS), partial(self._evaluate, m.OUTPUT_FUNCTION), mass

    def _evaluate(self, which: int, t: float, x: Vector, u: Vector) -> Any:
        states = np.asarray(x, dtype=np.float64).reshape(1, -1)
        return self._ask(which, times=(t, 0.0, 0.0, 0.0), coefficients=states, extra=np.asarray(u, np.float64)).value

    def _call(self, name: str, *arguments: Any, **named: Any) -> Any:
        """Any other method of the subsystem."""
        return self._ask(m.CALL, content=(name, arguments, named)).value


def driven_content(u: InputSignal, known: Sequence[Callable[[float], Any]] = ()) -> list[tuple[Any, ...]] | None:
    """What travels beside the coefficients so that driven inputs have the same bits elsewhere; None without any.

    Of tables their polynomials; of functions that are `known` there their numbers, and the inputs they drive.
    """
    if not isinstance(u, DrivenPolynomial):
        return None
    found: list[tuple[Any, ...]] = [
        (np.asarray(columns, np.int64), since, np.array(powers)) for columns, since, powers in u.local()
    ]
    for columns, function, target in u.functions if known else ():
        number = next((k for k, one in enumerate(known) if one == function), None)
        if number is not None:
            found.append((np.asarray(columns, np.int64), number, target))
    return found or None


_FORWARDED: dict[str, Callable[..., Any]] = {
    "replay": Proxy._replay,
    "step": Proxy._step,
    "jacobian": Proxy._jacobian,
    "output": Proxy._output,
    "save": Proxy._save,
    "restore": Proxy._restore,
    "get_state": Proxy._get_state,
    "set_state": Proxy._set_state,
    "equations": Proxy._equations,
}


class SavedState:
    """A state that lies in the process of its subsystem; forgotten there when this object goes away."""

    __slots__ = ("_notes", "handle", "holder")

    def __init__(self, handle: int, holder: int, notes: deque[int]) -> None:
        self.handle, self.holder, self._notes = handle, holder, notes

    def __del__(self) -> None:
        self._notes.append(m.write_note(self.handle, m.FORGET))


@contextmanager
def told_as_setup(who: str) -> Iterator[None]:
    """What goes wrong while a subsystem is loaded, as a `SetupError`."""
    try:
        yield
    except CosolveError as error:
        raise SetupError(f"{who}: {error}") from error
    except Exception as error:
        raise SetupError(f"{who}: loading the subsystem raised {type(error).__name__}: {text_of(error)}") from error
