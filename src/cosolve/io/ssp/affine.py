"""Units and linear transformations: what happens to a value on its way along a connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix
from cosolve.subsystem import units
from cosolve.subsystem.units import Unit

__all__ = ["Affine", "Unit", "conversion"]


@dataclass(frozen=True)
class Affine:
    """`factor * value + offset`; also a law between two ports.

    >>> Affine(2.0, 1.0)(3.0), Affine(2.0, 1.0)([3.0, 4.0]), Affine(2.0).then(Affine(1.0, 5.0))
    (7.0, [7.0, 9.0], Affine(factor=2.0, offset=5.0))
    """

    factor: float = 1.0
    offset: float = 0.0

    def __call__(self, value: Any) -> Any:
        if isinstance(value, list):  # several numbers of a parameter
            return [self(one) for one in value]
        return self.factor * value + self.offset

    def jacobian(self, value: Any) -> Matrix:
        """The derivative, for a law."""
        return self.factor * np.eye(np.size(value))

    def then(self, other: Affine) -> Affine:
        """First this one, then the other."""
        return Affine(other.factor * self.factor, other.factor * self.offset + other.offset)

    @property
    def is_identity(self) -> bool:
        """True when it changes nothing."""
        return self.factor == 1.0 and self.offset == 0.0


def conversion(source: Unit, target: Unit) -> Affine | None:
    """From values in `source` to values in `target`; None between different physical kinds.

    >>> conversion(Unit("mm", 1e-3, exponents={"m": 1}), Unit("m", exponents={"m": 1}))
    Affine(factor=0.001, offset=0.0)
    >>> conversion(Unit("degC", 1.0, 273.15, {"K": 1}), Unit("K", exponents={"K": 1}))(20.0)
    293.15
    """
    change = units.conversion(source, target)
    return None if change is None else Affine(*change)
