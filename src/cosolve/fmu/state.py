"""Saved states of an FMU: C memory that lives as long as the Python object around it.

Memory that is given back is used again by the next `save`: a run allocates a handful of states however many it saves.
"""

from __future__ import annotations

import ctypes
import struct
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosolve.errors import SubsystemError
from cosolve.fmu.crash_trial import crash_of
from cosolve.fmu.findings import Finding, facts

if TYPE_CHECKING:
    from cosolve.fmu.instance import Body, Instance


_tried: set[Path] = set()  # unpacked FMUs that survived it, in a copy of this process


class SavedState:
    """A state of one instance; may be restored any number of times, also in a later run of the same FMU object."""

    __slots__ = ("__weakref__", "body", "owner", "pointer", "stepping", "time")

    def __init__(self, owner: States, body: Body, pointer: int, time: float, stepping: bool) -> None:
        self.owner, self.body, self.pointer, self.time, self.stepping = owner, body, pointer, time, stepping

    def __deepcopy__(self, memo: object) -> SavedState:
        return self  # nothing changes it, and there is one owner of the memory

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a saved state of an FMU cannot leave its process; use serialise")

    def __del__(self) -> None:
        self.body.spare.append(self.pointer)


class States:
    """Saves and restores the states of one FMU object."""

    def __init__(self, instance: Instance) -> None:
        self._instance = weakref.ref(instance)
        suffix = "FMUstate" if instance.fmi == 2 else "FMUState"
        self._get, self._set, self._size = f"Get{suffix}", f"Set{suffix}", f"Serialized{suffix}Size"
        self._to_bytes = f"Serialize{suffix}"
        self._from_bytes = f"DeSerialize{suffix}" if instance.fmi == 2 else f"Deserialize{suffix}"

    @property
    def instance(self) -> Instance:
        found = self._instance()
        assert found is not None
        return found

    def save(self, time: float) -> SavedState:
        """The state now."""
        instance = self.instance
        if instance.folder not in _tried:
            _tried.add(instance.folder)
            self._refuse_crash(crash_of(self._there_and_back))
        body = instance.body
        pointer = ctypes.c_void_p(body.spare.pop() if body.spare else None)
        instance.call(self._get, ctypes.addressof(pointer))
        return self._wrap(body, pointer, time)

    def _there_and_back(self) -> None:
        """Save the state and restore it, as C sees it."""
        instance, pointer = self.instance, ctypes.c_void_p(None)
        instance.call(self._get, ctypes.addressof(pointer))
        instance.call(self._set, pointer.value)

    def _refuse_crash(self, how: str) -> None:
        if how:
            _tried.discard(self.instance.folder)
            facts.add(self.instance.folder, Finding("saves its state", "crashes", how, "in a run"))
            raise SubsystemError(
                f"the FMU '{Path(self.instance.file).name}' crashes ({how}) when its state is saved and restored, "
                "although it says that it can (canGetAndSetFMUState); use Jacobi or GaussSeidel with fixed steps"
            )

    def _wrap(self, body: Body, pointer: ctypes.c_void_p, time: float) -> SavedState:
        if pointer.value is None:
            raise SubsystemError("the FMU gave no state although it says that it can")
        address = pointer.value
        body.known.add(address)
        return SavedState(self, body, address, time, body.life.stepping)

    def restore(self, state: SavedState) -> None:
        """Back to a saved state."""
        if state.owner is not self:
            raise SubsystemError("this state was saved by another FMU object; restore it there, or use serialise")
        instance, body = self.instance, state.body
        if body is not instance.body:
            instance.go_back_to(body)
        instance.call(self._set, state.pointer)
        body.life.stepping = state.stepping

    def to_bytes(self, time: float) -> bytes:
        """The state now, for another process."""
        state, size = self.save(time), ctypes.c_size_t()
        self.instance.call(self._size, state.pointer, ctypes.addressof(size))
        buffer = ctypes.create_string_buffer(size.value)
        self.instance.call(self._to_bytes, state.pointer, ctypes.addressof(buffer), size.value)
        return struct.pack("<d?", time, self.instance.stepping) + buffer.raw

    def from_bytes(self, data: bytes) -> SavedState:
        """A state made of what `to_bytes` gave."""
        head = struct.calcsize("<d?")
        if len(data) <= head:
            raise SubsystemError(f"{len(data)} bytes are not a saved state of an FMU")
        time, stepping = struct.unpack("<d?", data[:head])
        body, content = self.instance.body, data[head:]
        pointer = ctypes.c_void_p(body.spare.pop() if body.spare else None)
        buffer = ctypes.create_string_buffer(content, len(content))
        self.instance.call(self._from_bytes, ctypes.addressof(buffer), len(content), ctypes.addressof(pointer))
        state = self._wrap(body, pointer, time)
        state.stepping = stepping
        return state
