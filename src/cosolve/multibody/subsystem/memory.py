"""The memory that compiled code works on: the numbers of a model, its state and its last grid, listed in one table.

The compiled step of a multibody model: the machine code that `advance` runs, called by address.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.integrator.kernels import DOPRI5, FIXED, RADAU
from cosolve.multibody.equations.dynamics import step_parts
from cosolve.multibody.equations.observe import SEEN
from cosolve.multibody.equations.table import TAIL, workspace_of
from cosolve.multibody.model.arrays import STATE, Arrays, Index, empty_extra
from cosolve.multibody.subsystem.kernels import advance_address, parts_of_step
from cosolve.multibody.subsystem.options import Options
from cosolve.subsystem.native import Native

if TYPE_CHECKING:
    from cosolve.multibody.subsystem.subsystem import MultibodySubsystem


#: Internal steps in one macro step, at most.
MOST_STEPS = 20_000


class Memory:
    """Arrays with fixed places, and the table of their addresses (its fields: `equations/table.py`).

    `state` holds the bodies (`x`), then time, next step size and margin to a singular position (`tail`). `driven` and
    `extra` are what Python functions gave (see `Outside`), bodies at rest and no loads otherwise.
    """

    def __init__(self, arrays: Arrays, options: Options, still: Matrix, seen: Index, n_inputs: int) -> None:
        self._made_of = (arrays, options, still, seen, n_inputs)
        if options.integrator == "radau":
            (a, c), b, e = RADAU[options.stages], np.zeros(0), np.zeros(0)
        else:
            a, b, c, e = FIXED["ode4"] if options.integrator == "rk4" else DOPRI5
        free = int(arrays.counts[1])
        self.state, self.rates = np.zeros(STATE * free + TAIL), np.zeros(STATE * free)
        self.x, self.tail = self.state[:-TAIL], self.state[-TAIL:]
        self.driven, self.extra = still.copy(), empty_extra(arrays)
        self._steps = np.zeros(MOST_STEPS if options.internal_step is None else 0)
        self._taken, self.entries = np.zeros(1, np.int64), np.array([0, 0, 0, *step_parts()], np.int64)
        work, stages = workspace_of(arrays), np.zeros((len(b) + 2, STATE * free))
        self.u, self.y, self.multipliers = np.zeros(n_inputs), np.zeros(SEEN * len(seen)), work.lam
        numbers = np.array(
            [options.level, options.internal_step or 0.0, options.rtol, options.atol, options.ggl], np.float64
        )
        self._fields = [
            np.ascontiguousarray(field)
            for field in (
                *(*arrays, self.driven, self.extra, numbers, a, b, c, e, *work, self.state, self.rates, stages),
                *(self._steps, self._taken, seen, self.u, np.zeros(n_inputs), self.entries),
            )
        ]
        self._table = np.array([(field.ctypes.data, len(field)) for field in self._fields], np.int64)
        self.address, self.x_address, self.rates_address, self.u_address, self.y_address = (
            array.ctypes.data for array in (self._table, self.state, self.rates, self.u, self.y)
        )
        self._coefficients, self._coefficients_address = np.zeros(0), 0

    def __reduce__(self) -> tuple[Callable[..., Memory], tuple[Any, ...]]:
        """Copies have places of their own."""
        return _again, (self._made_of, self.state.copy(), self.grid.copy())

    @property
    def grid(self) -> Vector:
        """Internal steps of the last adaptive subsystem step."""
        return self._steps[: int(self._taken[0])]

    @grid.setter
    def grid(self, steps: Vector) -> None:
        self._taken[0] = len(steps)
        self._steps[: len(steps)] = steps

    def signal(self, coefficients: Matrix) -> int:
        """The address of a copy of input coefficients."""
        if coefficients.size != self._coefficients.size:
            self._coefficients = np.empty(coefficients.size)
            self._coefficients_address = self._coefficients.ctypes.data
        self._coefficients[:] = coefficients.reshape(-1)
        return self._coefficients_address


def _again(made_of: tuple[Any, ...], state: Vector, grid: Vector) -> Memory:
    memory = Memory(*made_of)
    memory.state[:], memory.grid = state, grid
    return memory


def multibody_native(body: MultibodySubsystem) -> Native | str:
    """The subsystem step of `body`, or why there is none."""
    if body._outside.needed:
        return "it calls Python functions (loads, drives or laws of joint ends) at every stage"
    if body._monitors:
        return f"its monitors ({', '.join(body._monitors)}) are computed in Python; leave them out"
    stepping = body._stepping
    memory = stepping.memory
    memory.entries[:3] = parts_of_step(body.options.integrator)

    def enter() -> None:
        memory.x[:], memory.tail[0] = body.x, body._t

    def leave() -> None:
        body.x, body._t = memory.x.copy(), float(memory.tail[0])

    def explain(status: int) -> None:
        raise stepping.failed(status)

    found = Native(advance_address(), memory.address, memory.state, any_step=True, keep=(memory,))
    found.enter, found.leave, found.explain = enter, leave, explain
    return found
