"""The state of a coupling in a file, and going on from there: windows, values at their ends, what accelerations know.

Participants restore themselves; what they need of the others is here. The state is taken where all of them stand at the
end of a window, and holds numbers and text only (`state/codec.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosolve.errors import SetupError
from cosolve.state.codec import from_bytes, read_tree, to_bytes, write_tree

if TYPE_CHECKING:
    from cosolve.precice.coupling import Coupling, Member, Scheme


class CheckpointWriter:
    """Writes the state of a coupling every so many windows of its first participant, and at the end."""

    def __init__(self, coupling: Coupling, path: Path, every: int = 1) -> None:
        self.coupling, self.path, self.every = coupling, path, max(1, every)
        self._noted: dict[str, dict[str, Any]] = {}
        self._memories: dict[int, bytes] = {}
        self._count = 0

    def remember(self, scheme: Scheme) -> None:
        """An implicit window is complete: what its acceleration knows now."""
        number = self.coupling.schemes.index(scheme)
        self._memories[number] = to_bytes({"acceleration": scheme.accelerator.tree()})

    def note(self, member: Member) -> None:
        """A participant stands at the end of a window; when all do, and at the same time, the state is whole."""
        if any(side.progress for side in member.sides):
            return
        self._noted[member.name] = tree_of(member)
        if len(self._noted) < len(self.coupling.members):
            return
        times = [noted["time"] for noted in self._noted.values()]
        if max(times) - min(times) > 1e-9 * max(1e-300, max(times)):
            return
        self._count += 1
        last = not any(member.ongoing for member in self.coupling.members.values())
        if self._count % self.every == 0 or last:
            self.write()

    def write(self) -> None:
        """The state as it was noted last."""
        memories = {str(k): from_bytes(data)["acceleration"] for k, data in self._memories.items()}
        write_tree(self.path, {"participants": dict(self._noted), "accelerations": memories})


def tree_of(member: Member) -> dict[str, Any]:
    """Where a participant stands, as plain values."""
    sides = [
        {
            "window": side.window,
            "total": side.total,
            "t0": side.t0,
            "start": [[*key, value] for key, value in side.start.items()],
            "read": [[*key, samples[-1][1]] for key, samples in side.read.items()],
        }
        for side in member.sides
    ]
    return {"time": member.time, "sides": sides}


def restored_state(path: Path, coupling: Coupling) -> dict[str, Any]:
    """A state from a file, for a coupling of the same participants."""
    tree = read_tree(path)
    if set(tree.get("participants", ())) != set(coupling.members):
        raise SetupError(
            f"{path.name} holds the state of other participants ({', '.join(sorted(tree.get('participants', ())))}); "
            "resume the coupling that wrote it"
        )
    for number, memory in tree["accelerations"].items():
        coupling.schemes[int(number)].accelerator.go_on(memory)
    return tree


def put_back(member: Member, tree: dict[str, Any]) -> None:
    """A participant's windows and values as they were."""
    noted = tree["participants"][member.name]
    if len(noted["sides"]) != len(member.sides):
        raise SetupError(
            f"the state holds other coupling schemes for '{member.name}'; resume the coupling that wrote it"
        )
    member.time = noted["time"]
    for side, old in zip(member.sides, noted["sides"], strict=True):
        for name, fresh, given in (("start", side.start, old["start"]), ("read", side.read, old["read"])):
            sizes = {key: len(value if name == "start" else value[-1][1]) for key, value in fresh.items()}
            if sizes != {(mesh, data): len(value) for mesh, data, value in given}:
                raise SetupError(
                    f"the state holds other meshes or data for '{member.name}'; resume the coupling that wrote it"
                )
        side.window, side.total, side.t0 = old["window"], old["total"], old["t0"]
        side.start = {(mesh, data): value for mesh, data, value in old["start"]}
        side.read = {(mesh, data): [(side.t0, value)] for mesh, data, value in old["read"]}
        side.ongoing = not side.scheme.over(side.window, side.t0)
        side.length = side.scheme.length_at(side.window, side.t0) if side.ongoing else 0.0
