"""Inputs of a system that nothing feeds."""

from __future__ import annotations

import numpy as np

from cosolve.interface import System
from cosolve.subsystem import Subsystem


def hold_unconnected(system: System) -> dict[str, list[float]]:
    """Hold every input that nothing feeds, an FMU's at its start value and others at 0; what they are held at.

    >>> import cosolve as cs
    >>> system = cs.System({"tank": cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["q"], outputs=["h"])})
    >>> hold_unconnected(system)
    {'tank.q': [0.0]}
    """
    held = {}
    for address in system.unconnected_inputs():
        name, port = address.split(".", 1)
        found = system.port(address, "input", "set")
        values = _start_value(system.subsystems[name], port)
        held[address] = values * found.length if len(values) == 1 else values
        system.set(address, held[address] if found.size else held[address][0])
    return held


def _start_value(subsystem: Subsystem, port: str) -> list[float]:
    """What the user gave an FMU's input to start with, else what its description says, else 0."""
    variable = (subsystem.known_variables or {}).get(port)
    if variable is None:
        return [0.0]
    given = subsystem.given_values.get(variable.name)
    if given is not None:
        return [float(value) for value in np.ravel(given)]
    words = [{"true": "1", "false": "0"}.get(word, word) for word in (variable.start or "0").split()]
    try:
        return [float(word) for word in words]
    except ValueError:  # not a number
        return [0.0]
