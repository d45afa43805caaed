"""Static (algebraic, memoryless) subsystems: outputs follow from time and inputs at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.errors import SetupError
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.port import PortLike, Ports
from cosolve.subsystem.signatures import refuse_wrong_arguments, with_parameters


class Stateless(Subsystem):
    """What every subsystem without a memory answers about its state."""

    def save(self) -> None:
        return None

    def restore(self, state: None) -> None:
        pass

    def get_state(self) -> Vector:
        return np.zeros(0)

    def set_state(self, x: Vector) -> None:
        pass


class Static(Stateless):
    """Algebraic subsystem without memory: `y = function(t, u)`. Without inputs it is a source.

    Parameters
    ----------
    function : callable
        `function(t, u)` returns the outputs; `u` is the flat array of inputs.
    inputs : sequence of str, (str, int) or Port
        Input ports; may be empty.
    outputs : sequence of str, (str, int) or Port
        Output ports.
    parameters : mapping or None, default None
        Numbers by name, such as `{"k": 3.0}`; then `function(t, u, p)` reads `p.k`.

    Examples
    --------
    >>> import cosolve as cs
    >>> gain = cs.Static(lambda t, u: 3.0 * u[0], inputs=["u"], outputs=["y"])
    >>> import numpy as np
    >>> float(gain.output(0.0, np.array([2.0])))
    6.0
    """

    variable_step = False  # there is nothing inside: outputs follow the inputs at its end

    def __init__(
        self,
        function: Callable[[float, Vector], Any],
        *,
        inputs: Sequence[PortLike],
        outputs: Sequence[PortLike],
        parameters: Mapping[str, float] | None = None,
    ) -> None:
        if not callable(function):
            raise SetupError(f"Static: needs a function of (t, u), not {function!r}")
        refuse_wrong_arguments(function, ["t", "u", *(["p"] if parameters else [])], "Static: the function")
        self.function = function
        if parameters is not None:
            (self.function,) = with_parameters(self, parameters, function)
        self.inputs, self.outputs = inputs, outputs
        self._n_inputs = Ports(inputs).length

    def start(self, t0: float) -> Any:
        return self.function(t0, np.zeros(self._n_inputs)) if self._n_inputs == 0 else None

    def advance(self, t0: float, t1: float, u: InputSignal) -> Any:
        return self.function(t1, u.end)

    def output(self, t: float, u: Vector) -> Any:
        return self.function(t, u)
