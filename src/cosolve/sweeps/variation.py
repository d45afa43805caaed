"""A system that is there, with other values for parameters and constant inputs: sweeps without a build function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cosolve.basics.wording import did_you_mean
from cosolve.errors import SetupError
from cosolve.interface import System


class Variation:
    """Called with values by address, `{"one.c": 2.0}`, it gives the system with these values."""

    def __init__(self, system: System, addresses: Sequence[str]) -> None:
        self.system = system
        self._before = {address: self._value(address) for address in addresses}

    def __call__(self, **values: Any) -> System:
        for address, value in values.items():
            name, _, key = address.partition(".")
            if address in self.system._constants:
                self.system.set(address, value)
            else:
                self.system.subsystems[name].set_parameters({key: value})
        return self.system

    def restore(self) -> None:
        """The values from before the sweep."""
        self(**self._before)

    def _value(self, address: str) -> Any:
        if address in self.system._constants:
            return self.system._constants[address]
        known = [
            *self.system._constants,
            *(
                f"{name}.{key}"
                for name, one in self.system.subsystems.items()
                for key in getattr(one, "parameters", ())
            ),
        ]
        if address not in known:
            otherwise = "give parameters={'mass': 2.0} to an Ode or Static, or sweep a build function"
            hint = did_you_mean(address, known, otherwise=otherwise)
            raise SetupError(f"sweep: '{address}' is no parameter and no constant input of the system; {hint}")
        name, _, key = address.partition(".")
        return self.system.subsystems[name].get(key)
