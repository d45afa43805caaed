"""The side of the subsystem: answers calls for one subsystem, for any client.

Saved states stay here; only their numbers travel. `worker.py` serves a run on this machine, `offered_server.py` one on
another, whose requests may be anything: what is called by name is a public method of the subsystem or refused.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import Any

import numpy as np

from cosolve.basics.arrays import Vector, real_array
from cosolve.basics.wording import shown
from cosolve.errors import SubsystemError
from cosolve.process import message as m
from cosolve.process.data import Malformed
from cosolve.signal.polynomial import Polynomial, from_local
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.port import Ports


class Server:
    """Answers the calls for one subsystem; `answer` turns a request into the bytes of an answer."""

    def __init__(self, contents: m.Format) -> None:
        self.contents = contents
        self.subsystem = Subsystem()
        self.outputs = Ports(())
        self.methods: frozenset[str] = frozenset()
        self.states: dict[int, Any] = {}
        self.saved = 0
        self.equations: tuple[Callable[..., Any], Callable[..., Any], Any] | None = None

    def answer(self, data: memoryview) -> m.Parts:
        """One call, whatever comes of it."""
        try:
            step = m.read_advance(data)
            if step is not None:
                return m.write_vector(self.outputs.pack(self.subsystem.advance(*step)))
            r = m.read_request(data)
            for note in r.notes:
                self._carry_out(note)
            return self._answer(r)
        except Exception as error:
            return m.write_answer(m.FAILURE, self.contents.pack_error(error))

    def _carry_out(self, note: int) -> None:
        """What the run wanted done before this call (`message.py`)."""
        handle, what = m.read_note(note)
        if what == m.FORGET:
            self.states.pop(handle, None)
        elif what == m.KEEP:
            self.states[handle] = self.subsystem.save()
        else:
            self.subsystem.restore(self.states[handle])

    def load(self, content: Any) -> Subsystem:
        """Build the subsystem that is asked for."""
        raise NotImplementedError

    def known_function(self, number: int, target: str, size: int) -> Callable[[float, bool], Vector]:
        """The values of a function of time that both sides have; only some servers know any."""
        raise Malformed("a function of time that is not known here")

    def further(self, r: m.Request) -> m.Parts:
        """Calls that only some servers know."""
        raise Malformed(f"an unknown call {r.call}")

    def _answer(self, r: m.Request) -> m.Parts:
        subsystem = self.subsystem
        if r.call in (m.ADVANCE, m.REPLAY):
            advance = subsystem.advance if r.call == m.ADVANCE else subsystem.replay
            return self._outputs(advance(r.t0, r.t1, self._signal(r)))
        if r.call == m.SAVE:
            self.saved += 1
            self.states[self.saved] = subsystem.save()
            return m.write_answer(m.NOTHING, handle=self.saved)
        if r.call == m.RESTORE:
            subsystem.restore(self.states[r.handle])
            return m.write_answer(m.NOTHING)
        if r.call == m.OUTPUT:
            return self._outputs(subsystem.output(r.t0, r.extra))
        if r.call == m.JACOBIAN:
            return self.plain(subsystem.jacobian(r.t0, r.t1, self._signal(r), r.extra), dimensions=2)
        if r.call == m.STEP:
            reached = subsystem.step(r.t0, r.t1, self._signal(r))
            if isinstance(reached, (tuple, list)) and len(reached) == 2 and isinstance(reached[0], float):
                return m.write_answer(m.VECTOR, self.outputs.pack(reached[1]), t=reached[0])
            return self.object(reached)  # for the run to complain about
        if r.call == m.GET_STATE:
            return self.plain(subsystem.get_state(), dimensions=1)
        if r.call == m.SET_STATE:
            subsystem.set_state(r.extra)
            return m.write_answer(m.NOTHING)
        return self._rare(r)

    def _signal(self, r: m.Request) -> Polynomial:
        """The inputs of a subsystem step."""
        if not r.content:
            return Polynomial(r.u_t0, r.u_H, r.coefficients)
        local, known = [], []
        for columns, since, powers in self.contents.unpack(r.content):
            columns = np.asarray(columns)
            if isinstance(powers, str):  # the input that a function drives which this side has
                known.append((columns, self.known_function(since, powers, columns.size)))
                continue
            powers = real_array(powers)
            if columns.dtype != np.int64 or powers.shape[1:] != columns.shape or not len(powers):
                raise Malformed("driven inputs that fit no input")
            local.append((columns, float(since), powers))
        return from_local(r.u_t0, r.u_H, r.coefficients, local, known)

    def _rare(self, r: m.Request) -> m.Parts:
        """Calls that come once, or seldom."""
        if r.call == m.START:
            self.equations = None
            tell = getattr(self.subsystem, "will_end", None)
            if tell is not None:
                tell(r.t1 if r.t1 > r.t0 else inf)
            first = self.subsystem.start(r.t0)
            return m.write_answer(m.NOTHING) if first is None else self._outputs(first)
        if r.call in (m.RHS, m.OUTPUT_FUNCTION):
            if self.equations is None:
                self.equations = self.subsystem.equations()
            function = self.equations[0] if r.call == m.RHS else self.equations[1]
            return self.plain(function(r.t0, r.coefficients[0], r.extra), dimensions=1)
        if r.call == m.EQUATIONS:
            self.equations = self.subsystem.equations()
            return self.object(self.equations[2])
        if r.call == m.NOISE:
            return self.object(float(self.subsystem.noise))
        if r.call == m.CALL:
            return self.object(self._called(*self.contents.unpack(r.content)))
        if r.call == m.LOAD:
            return self.object(self._described(self.load(self.contents.unpack(r.content) if r.content else None)))
        return self.further(r)

    def _called(self, name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if name not in self.methods:
            raise SubsystemError(f"the subsystem has no method {shown(name)}")
        return getattr(self.subsystem, name)(*arguments, **named)

    def _described(self, made: Subsystem) -> dict[str, Any]:
        """Take the subsystem and say what it is."""
        self.subsystem, self.outputs = made, Ports(made.outputs)
        self.methods = frozenset(
            name
            for name in dir(made)
            if not name.startswith("_") and name not in _NOT_METHODS and callable(getattr(made, name, None))
        )
        return {
            "inputs": Ports(made.inputs).ports,
            "outputs": self.outputs.ports,
            "methods": self.methods,
            "overshoots": bool(made.overshoots),
            "variable_step": bool(made.variable_step),
            "input_form": str(made.input_form),
            "least_degree": int(made.least_degree),
            "concurrent": bool(made.concurrent),
            "kind": type(made).__name__,
            "identity": made.identity(),
            "native": callable(getattr(made, "native", None)),
        }

    def object(self, value: Any) -> m.Parts:
        """The answer that holds any value."""
        return m.write_answer(m.OBJECT, self.contents.pack(value))

    def _outputs(self, value: Any) -> m.Parts:
        return m.write_answer(m.VECTOR, self.outputs.pack(value))

    def plain(self, value: Any, dimensions: int) -> m.Parts:
        """An array of doubles as it is; anything else for the other side to judge."""
        with suppress(TypeError, ValueError):
            array = real_array(value)
            if array.ndim == dimensions:
                return m.write_answer(m.VECTOR if dimensions == 1 else m.MATRIX, array)
        return self.object(value)


#: not forwarded as methods: attributes that may be properties, and machine code, which only `Isolated` can reach
_NOT_METHODS = frozenset(
    {
        *("noise", "inputs", "outputs", "overshoots", "variable_step", "input_form", "least_degree"),
        *("concurrent", "native", "identity"),
    }
)
