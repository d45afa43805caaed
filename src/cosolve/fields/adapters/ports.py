"""Ports of adapters: vectors over the nodes of a mesh, with magnitudes that tolerances are measured against."""

from __future__ import annotations

from collections.abc import Mapping

from cosolve.errors import SetupError
from cosolve.subsystem.port import Port


def field_ports(
    owner: str, inputs: Mapping[str, int], outputs: Mapping[str, int], nominal: Mapping[str, float] | None
) -> tuple[list[Port], list[Port]]:
    """Input and output ports of these lengths; `nominal` gives the magnitudes of some of them, the others have 1.

    >>> takes, gives = field_ports("Panel", {"force": 6}, {"displacement": 6}, {"displacement": 1e-3})
    >>> takes[0].nominal, gives[0].nominal
    (1.0, 0.001)
    """
    sizes = dict(nominal or {})
    for name in sizes:
        if name not in inputs and name not in outputs:
            known = ", ".join([*inputs, *outputs])
            raise SetupError(f"{owner}: nominal names the port '{name}', but there are {known}")

    def made(lengths: Mapping[str, int]) -> list[Port]:
        return [Port(name, size, nominal=sizes.get(name, 1.0)) for name, size in lengths.items()]

    return made(inputs), made(outputs)
