"""Ports: the named quantities through which a subsystem is coupled, and their place in flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cosolve.errors import SetupError

Vector: TypeAlias = npt.NDArray[np.float64]
Matrix: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Port:
    """One named input or output.

    `size=None` is a scalar (a plain float for users); an integer is a vector or a field of that length.
    `unit` is checked on connections when both ends give one; `nominal` is the magnitude that counts as "one"
    in increments and tolerances.

    >>> Port("force", unit="N", nominal=1e3).length
    1
    """

    name: str
    size: int | None = None
    unit: str = ""
    nominal: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or "." in self.name:
            raise SetupError(f"a port needs a non-empty name without a dot, not {self.name!r}")
        if self.size is not None and self.size < 1:
            raise SetupError(f"port '{self.name}': size must be at least 1 (or None for a scalar), not {self.size}")
        if not (np.isfinite(self.nominal) and self.nominal > 0):
            raise SetupError(f"port '{self.name}': nominal must be a positive number, not {self.nominal}")

    @property
    def length(self) -> int:
        """How many numbers the port carries."""
        return 1 if self.size is None else self.size


PortLike: TypeAlias = str | tuple[str, int] | Port


class Ports:
    """An ordered set of ports with their slices in one flat array.

    >>> ports = Ports(["x", ("field", 3)])
    >>> ports.length, ports.slice("field")
    (4, slice(1, 4, None))
    """

    def __init__(self, ports: Iterable[PortLike]) -> None:
        if isinstance(ports, str):
            raise SetupError(f"ports are given as a list of names; write [{ports!r}] instead of {ports!r}")
        self.ports = tuple(_as_port(port) for port in ports)
        self.slices: dict[str, slice] = {}
        start = 0
        for port in self.ports:
            if port.name in self.slices:
                raise SetupError(f"port '{port.name}' is listed twice")
            self.slices[port.name] = slice(start, start + port.length)
            start += port.length
        self.length = start
        self.by_name = {port.name: port for port in self.ports}

    def __iter__(self) -> Any:
        return iter(self.ports)

    def __len__(self) -> int:
        return len(self.ports)

    def __contains__(self, name: object) -> bool:
        return name in self.slices

    @property
    def names(self) -> list[str]:
        """Port names in order."""
        return [port.name for port in self.ports]

    def slice(self, name: str) -> slice:
        """Where `name` lives in the flat array."""
        return self.slices[name]

    def labels(self) -> list[str]:
        """One label per number: `x` for scalars, `field[2]` for entries of vectors."""
        return [
            port.name if port.size is None else f"{port.name}[{i}]" for port in self.ports for i in range(port.length)
        ]

    def pack(self, values: Any) -> Vector:
        """Flatten what a user returned for these ports: a flat array, one value per port, or a dict by name.

        >>> Ports(["x", ("r", 2)]).pack({"x": 1.0, "r": [2.0, 3.0]})
        array([1., 2., 3.])
        """
        if isinstance(values, np.ndarray) and values.dtype == np.float64 and values.shape == (self.length,):
            return values
        if isinstance(values, Mapping):
            missing, extra = set(self.slices) - set(values), set(values) - set(self.slices)
            if missing or extra:
                raise ValueError(
                    f"returned values for {sorted(map(str, values))}, expected exactly the ports {self.names}"
                )
            values = [values[name] for name in self.slices]
        if values is None:
            raise ValueError(f"returned None, expected values for the ports {self.names}")
        try:
            flat = np.asarray(values, dtype=np.float64).reshape(-1)
        except (ValueError, TypeError):
            try:
                flat = np.concatenate([np.asarray(value, dtype=np.float64).reshape(-1) for value in values])
            except (ValueError, TypeError):
                raise ValueError(
                    f"returned {values!r}, which is not a set of numbers for the ports {self.names}"
                ) from None
        if flat.size != self.length:
            raise ValueError(f"returned {flat.size} numbers, expected {self.length} for the ports {self.names}")
        return flat


def _as_port(port: PortLike) -> Port:
    if isinstance(port, Port):
        return port
    if isinstance(port, str):
        return Port(port)
    if isinstance(port, (tuple, list)) and len(port) == 2:
        return Port(port[0], int(port[1]))
    raise SetupError(f"a port is a name, a (name, size) pair or a Port, not {port!r}")
