"""What FMUs have in common as subsystems, whatever they are run as: description, ports, variables, the end of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.fmu.archive import unpack
from cosolve.fmu.description import Variable, read_description
from cosolve.fmu.findings import Finding, facts
from cosolve.fmu.instance import Instance
from cosolve.fmu.options import (
    chosen_ports,
    feedthrough_pattern,
    found_variable,
    given_values,
    initial_patterns,
    refuse_clocks,
    refuse_fixed,
    refuse_other_kind,
    remedy,
    structural_sizes,
)
from cosolve.fmu.partials import Derivatives
from cosolve.fmu.places import found_file
from cosolve.fmu.values import Rounding
from cosolve.subsystem.base import Subsystem


class FmuSubsystem(Subsystem):
    """An FMU as a subsystem; `load_fmu` makes one of its two kinds."""

    foreign = True
    repeats_to = 1e-3  # solvers inside FMUs may forget their step size, not their state
    settings = ("_options",)

    _instance: Instance

    def _read(self, kind: str, arguments: Mapping[str, Any]) -> tuple[Path, list[Variable], list[Variable]]:
        """Take what both kinds are given; the folder with the unpacked FMU, and the variables behind the ports."""
        self._options = {name: value for name, value in arguments.items() if name not in ("self", "file")}
        file: str | Path = found_file(arguments["file"])
        parameters: Mapping[str, Any] | None = arguments["parameters"]
        self.file = self.model_file = Path(file)
        self.tolerance = arguments["tolerance"]
        folder = unpack(file)
        read = read_description(folder)
        refuse_other_kind(read, kind, file)
        description = read_description(folder, structural_sizes(read, parameters, file))
        refuse_clocks(read, file)
        flags = facts.corrected(description.kinds[kind], folder, file, arguments["trial"])
        self.description = description = replace(description, kinds={**description.kinds, kind: flags})
        self.known_variables = description.variables
        self.given_values: dict[str, Any] = given_values(description, parameters, arguments["start"], file)
        self.name = arguments["name"] or description.name
        listed_inputs, self.inputs = self._ports(arguments["inputs"], "input")
        listed_outputs, self.outputs = self._ports(arguments["outputs"], "output")
        self._rounding = Rounding()
        self._pattern = feedthrough_pattern(description, listed_inputs, listed_outputs)
        self._at_start = initial_patterns(description, listed_inputs, listed_outputs, self._pattern)
        return folder, listed_inputs, listed_outputs

    def _ports(self, names: Sequence[str] | None, causality: str) -> tuple[list[Variable], list[Any]]:
        return chosen_ports(self.description, names, causality, self.file)

    def _derivatives_of(self, kind: str, inputs: list[Variable], outputs: list[Variable]) -> Derivatives | None:
        """Its directional derivatives, where it gives some."""
        flags = self.description.kinds[kind]
        shows = flags.has("providesDirectionalDerivatives") or flags.has("providesAdjointDerivatives")
        return Derivatives(self._instance, inputs, outputs) if shows else None

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies (also those for other processes) are new instances with the same options, before their start."""
        make: Any = type(self)
        return partial(make, self.file, **self._options), ()

    def remedy(self, capability: str) -> str:
        return remedy(capability)

    def close(self) -> None:
        """Free the FMU now instead of when nothing refers to it any more."""
        self._instance.close()

    def rollback_failed(self, text: str) -> None:
        """A run found that going back loses something: later ones know."""
        facts.add(self._instance.folder, Finding("saves its state", "fails", text, "in a run"))

    def rollback_held(self, t0: float, t1: float) -> None:
        """A run found that nothing is lost: later ones of the same values need not look."""
        facts.came_back(self._instance.folder, self.given_values, t0, t1)

    def trusts_rollback(self, t0: float, t1: float) -> bool:
        """Whether an earlier run found that."""
        return facts.trusts(self._instance.folder, self.given_values, t0, t1)

    def will_end(self, t_end: float) -> None:
        """The next run ends there; told to the FMU."""
        self._instance.stop_time = t_end

    def initial_dependence(self) -> npt.NDArray[np.bool_]:
        """Per input, whether something at the start is known to depend on it."""
        return self._at_start[2]

    def get(self, name: str) -> Any:
        """Return the present value of a variable.

        Parameters
        ----------
        name : str
            Its name in the FMU.

        Returns
        -------
        float, int, bool, str or ndarray
            The value.
        """
        return self._instance.get(found_variable(self.description, name, self.file))

    def set_parameters(self, values: Mapping[str, Any]) -> None:
        """Set tunable parameters between steps; before the run any parameter.

        They stay for later runs of this object.

        Parameters
        ----------
        values : mapping
            New values by name.
        """
        given = given_values(self.description, values, None, self.file)
        if self._instance.stepping:
            refuse_fixed(self.description, given, self.file)
            self._tune(given)
        else:
            self._instance.give(given)
        self.given_values |= given

    def _tune(self, given: Mapping[str, Any]) -> None:
        """Set parameters of a run that is under way."""
        raise NotImplementedError
