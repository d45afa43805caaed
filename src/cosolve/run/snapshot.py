"""A saved run: everything that is needed to continue it bit for bit, in memory or in a file."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.digest import digest, may_be_equal
from cosolve.basics.wording import listed
from cosolve.errors import SetupError
from cosolve.interface import Plan
from cosolve.method import Method
from cosolve.run.codec import from_bytes, read_tree, to_bytes, write_tree
from cosolve.run.startup import Startup
from cosolve.signal import History
from cosolve.subsystem import Subsystem
from cosolve.subsystem.port import Ports


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A run at one macro point: values, coupling history, step sequence, method memory, subsystem states."""

    description: dict[str, Any]
    t: float
    t_start: float
    y: Vector
    z: Vector
    history: History
    constants: Vector
    grid: tuple[Any, ...]
    windows: dict[str, Any]
    memory: Any
    states: dict[str, tuple[str, Any]]

    def __repr__(self) -> str:
        return f"<Snapshot at t = {self.t:.9g} of {self.description['method']}>"

    def refuse_other(self, here: dict[str, Any]) -> None:
        """Raise when the state belongs to another system or method."""
        there = self.description
        if list(there["subsystems"]) != list(here["subsystems"]):
            raise SetupError(
                f"the saved state belongs to a system of {listed(there['subsystems'])}, "
                f"this one has {listed(here['subsystems'])}; build the same system"
            )
        for name, ports in here["subsystems"].items():
            if _differ(there["subsystems"][name], ports):
                raise SetupError(
                    f"in the saved state '{name}' has the ports {there['subsystems'][name]}, here {ports}; build the "
                    "same system"
                )
        for what, made in here["made of"].items():
            if not may_be_equal(there.get("made of", {}).get(what), made):
                raise SetupError(
                    f"the saved state belongs to a system in which {what} was another (its functions, matrices or "
                    "settings have changed since); resume with the system that was saved, or start a new run"
                )
        for what in _SAID:
            if _differ(there[what], here[what]):
                raise SetupError(f"the state was saved with {what} {there[what]}, here: {here[what]}; use the same")

    def refuse_misfit(self, y: Vector, z: Vector, constants: Vector) -> None:
        """Raise when the saved vectors are not as long as those of the run that is to go on from them."""
        pairs = [("y", self.y, y), ("z", self.z, z), ("constants", self.constants, constants)]
        past = getattr(self.history, "values", None)
        if not isinstance(past, list):  # of a damaged file
            raise SetupError("the saved state does not fit this system: its history has no values; save the run again")
        for what, there, here in (*pairs, *(("history", value, z) for value in past)):
            if np.shape(there) != here.shape or np.asarray(there).dtype.kind not in "fiu":
                raise SetupError(
                    f"the saved state does not fit this system: its {what} has {np.size(there)} numbers, not "
                    f"{len(here)}; save the run again"
                )

    def tree(self) -> dict[str, Any]:
        """What stands in a file; `from_tree` is the inverse."""
        tree = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "states"}
        states = {f"the state of '{name}'": state for name, state in self.states.items()}
        tree["the memory of the method"] = tree.pop("memory")
        return tree | states

    def write(self, path: Path) -> None:
        """Write to a file; a refusal names the subsystem whose state cannot be written."""
        write_tree(path, self.tree())

    def to_bytes(self) -> bytes:
        """The content of that file."""
        return to_bytes(self.tree())

    @staticmethod
    def read(path: Path) -> Snapshot:
        """Read what `write` wrote."""
        tree = read_tree(path)
        tree.pop(THE_RUN, None)
        return from_tree(tree, f"'{path}'")

    @staticmethod
    def from_bytes(data: bytes) -> Snapshot:
        """The inverse of `to_bytes`."""
        return from_tree(from_bytes(data), "the data")


_SAID = ("coupling variables", "method", "startup")

#: Beside a saved state in the same file: what a run that keeps it has written down so far (`keeping.py`).
THE_RUN = "the run"


def from_tree(tree: dict[str, Any], where: str) -> Snapshot:
    """The state in what was read from a file; `where` is for messages."""
    try:
        said = tree["description"]
        if not isinstance(said["subsystems"], dict) or not all(isinstance(said[key], str) for key in _SAID):
            raise TypeError("its description is not one of a run")
        states = {name: tree.pop(f"the state of '{name}'") for name in said["subsystems"]}
        memory = tree.pop("the memory of the method")
        made = Snapshot(**tree, memory=memory, states=states)
        for field, kinds in _TYPES.items():
            if not isinstance(getattr(made, field), kinds):
                raise TypeError(f"its {field} is a {type(getattr(made, field)).__name__}")
        for state in states.values():
            if not (isinstance(state, tuple) and len(state) == 2 and isinstance(state[0], str)):
                raise TypeError("a state in it is not one of a subsystem")
    except (KeyError, TypeError) as error:
        raise SetupError(f"{where} is not the saved state of a run ({error})") from None
    return made


#: what stands in a file could be anything; these are looked at before a run goes on from them
_TYPES: dict[str, Any] = {
    **dict.fromkeys(("t", "t_start"), (int, float)),
    **dict.fromkeys(("y", "z", "constants"), np.ndarray),
    "history": History,
    "grid": tuple,
    "windows": dict,
}


def description(plan: Plan, method: Method, startup: Startup) -> dict[str, Any]:
    """What two runs must have in common for one to continue the other."""
    ports = zip(plan.names, plan.input_ports, plan.output_ports, strict=True)
    made_of = {f"'{name}'": _made_of(s) for name, s in zip(plan.names, plan.subsystems, strict=True)}
    made_of |= {block.label: digest(block.function) for block in plan.blocks}
    joined = digest(plan.u_source, plan.u_factor, [block.y_index for block in plan.blocks], sorted(plan.u_driven))
    return {
        "made of": made_of | {"what joins the subsystems": joined},
        "subsystems": {name: f"{', '.join(u.labels())} -> {', '.join(y.labels())}" for name, u, y in ports},
        "coupling variables": ", ".join(plan.z_labels),
        "method": re.sub(r" at 0x[0-9a-f]+", "", repr(method)),
        "startup": type(startup).__name__,
    }


def _made_of(subsystem: Subsystem) -> str:
    """A digest of what determines how a subsystem goes on from a state: its functions, its class, its `settings`."""
    own = vars(subsystem) if hasattr(subsystem, "__dict__") else {}
    functions = {name: f for name, f in own.items() if callable(f) and not name.startswith("_")}
    kinds = [
        kind for kind in type(subsystem).__mro__ if kind.__module__.partition(".")[0] not in ("cosolve", "builtins")
    ]
    methods = [{name: f for name, f in vars(kind).items() if isinstance(f, FunctionType)} for kind in kinds]
    settings = {name: getattr(subsystem, name) for name in type(subsystem).settings}
    ports = [[(p.name, p.unit, p.size) for p in some] for some in (Ports(subsystem.inputs), Ports(subsystem.outputs))]
    return digest(type(subsystem), functions, methods, settings, ports)


def _differ(there: object, here: object) -> bool:
    """Whether two plain values differ; what a damaged file holds instead (an array, say) does."""
    try:
        return bool(there != here)
    except ValueError:  # an array has no truth value
        return True
