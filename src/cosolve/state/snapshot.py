"""A saved run: everything that is needed to continue it bit for bit, in memory or in a file."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.digest import digest, may_be_equal
from cosolve.basics.wording import listed
from cosolve.errors import SetupError
from cosolve.interface import Plan
from cosolve.method import Method
from cosolve.signal import History
from cosolve.state.codec import from_bytes, read_tree, to_bytes, write_tree

if TYPE_CHECKING:
    from cosolve.run.startup import Startup


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The saved state of a run at one macro point.

    From `Stepper.save`. It holds values, history, step sequence, memory of the method and states of the subsystems.

    Parameters
    ----------
    description : dict
        What the run was: subsystems, coupling variables, method, start-up.
    t : float
        Time in seconds.
    t_start : float
        Start of the run in seconds.
    y : ndarray
        Outputs.
    z : ndarray
        Coupling variables.
    history : History
        Past coupling variables.
    constants : ndarray
        Constant inputs.
    grid : tuple
        Settings of the macro steps.
    windows : dict
        State of the macro-step control.
    memory : object
        Memory of the method.
    states : dict
        State of each subsystem, with the way it was saved.

    Examples
    --------
    >>> import cosolve as cs
    >>> clock = cs.System({"clock": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])})
    >>> with cs.Stepper(clock, method=cs.Jacobi(), step=0.5) as stepper:
    ...     t = stepper.step()
    ...     stepper.save().t
    0.5
    """

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
        """Raise an error if the state belongs to another system or method.

        Parameters
        ----------
        here : dict
            Description of the run that is to continue.

        Raises
        ------
        SetupError
            If it does.
        """
        there = self.description
        if list(there["subsystems"]) != list(here["subsystems"]):
            raise SetupError(
                f"the saved state belongs to a system of {listed(there['subsystems'])}, "
                f"this one has {listed(here['subsystems'])}; build the same system"
            )
        for name, ports in here["subsystems"].items():
            if differ(there["subsystems"][name], ports):
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
            if differ(there[what], here[what]):
                raise SetupError(f"the state was saved with {what} {there[what]}, here: {here[what]}; use the same")

    def refuse_misfit(self, y: Vector, z: Vector, constants: Vector, history: History) -> None:
        """Raise an error if the saved vectors do not have the lengths of those of a run, or its history another form.

        Parameters
        ----------
        y : ndarray
            Outputs of the run.
        z : ndarray
            Coupling variables of the run.
        constants : ndarray
            Constant inputs of the run.
        history : History
            Past coupling variables of the run.

        Raises
        ------
        SetupError
            If they have not.
        """
        pairs = [("y", self.y, y), ("z", self.z, z), ("constants", self.constants, constants)]
        past, steps = (getattr(self.history, name, ()) for name in ("values", "steps"))
        alike = type(self.history) is type(history) and not differ(self.history.depth, history.depth)
        whole = isinstance(past, list) and isinstance(steps, list) and all(_is_length(step) for step in steps)
        if not alike or not whole:
            raise SetupError("the saved state does not fit this run: its history is another one; save the run again")
        for what, there, here in (*pairs, *(("history", value, z) for value in past)):
            if np.shape(there) != here.shape or np.asarray(there).dtype.kind not in "fiu":
                raise SetupError(
                    f"the saved state does not fit this system: its {what} has {np.size(there)} numbers, not "
                    f"{len(here)}; save the run again"
                )

    def tree(self) -> dict[str, Any]:
        """Return what is written to a file.

        Returns
        -------
        dict
            Plain values and arrays.
        """
        tree = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "states"}
        states = {f"the state of '{name}'": state for name, state in self.states.items()}
        tree["the memory of the method"] = tree.pop("memory")
        return tree | states

    def write(self, path: Path) -> None:
        """Write the state to a file.

        Parameters
        ----------
        path : Path
            The file.

        Raises
        ------
        SetupError
            If the state of a subsystem cannot be written.
        """
        write_tree(path, self.tree())

    def to_bytes(self) -> bytes:
        """Return what `write` would write.

        Returns
        -------
        bytes
            The content of the file.
        """
        return to_bytes(self.tree())

    @staticmethod
    def read(path: Path) -> Snapshot:
        """Read what `write` wrote.

        Parameters
        ----------
        path : Path
            The file.

        Returns
        -------
        Snapshot
            The state.
        """
        tree = read_tree(path)
        tree.pop(THE_RUN, None)
        return from_tree(tree, f"'{path}'")

    @staticmethod
    def from_bytes(data: bytes) -> Snapshot:
        """Read what `to_bytes` returned.

        Parameters
        ----------
        data : bytes
            The content of a file.

        Returns
        -------
        Snapshot
            The state.
        """
        return from_tree(from_bytes(data), "the data")


_SAID = ("coupling variables", "method", "startup")

#: Beside a saved state in the same file: what a run that keeps it has written down so far (`state_writer.py`).
THE_RUN = "the run"


def from_tree(tree: dict[str, Any], where: str) -> Snapshot:
    """The state in what was read from a file; `where` is for messages."""
    try:
        said = tree["description"]
        texts = [*(said[key] for key in _SAID), *said.get("made of", {}).values()]
        if not isinstance(said["subsystems"], dict) or not all(isinstance(text, str) for text in texts):
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
    except (KeyError, TypeError, AttributeError) as error:
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
    made_of = {f"'{name}'": s.identity() for name, s in zip(plan.names, plan.subsystems, strict=True)}
    made_of |= {block.label: digest(block.function) for block in plan.blocks}
    joined = digest(plan.u_source, plan.u_factor, [block.y_index for block in plan.blocks], sorted(plan.u_driven))
    return {
        "made of": made_of | {"what joins the subsystems": joined},
        "subsystems": {name: f"{', '.join(u.labels())} -> {', '.join(y.labels())}" for name, u, y in ports},
        "coupling variables": ", ".join(plan.z_labels),
        "method": re.sub(r" at 0x[0-9a-f]+", "", repr(method)),
        "startup": type(startup).__name__,
    }


def _is_length(step: object) -> bool:
    """True for the length of a macro step."""
    return isinstance(step, float) and 0.0 < step < inf


def differ(there: object, here: object) -> bool:
    """Whether two plain values differ; what a damaged file holds instead (an array, say) does."""
    try:
        return bool(there != here)
    except ValueError:  # an array has no truth value
        return True
