"""Names of a run's quantities and where they are found in its flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import as_list
from cosolve.basics.wording import did_you_mean, shortened
from cosolve.errors import SetupError
from cosolve.interface import Plan
from cosolve.result import Channel, Layout, find_channel


def channels(plan: Plan) -> dict[str, Channel]:
    """Where each port and each named coupling variable is found in the recorded columns."""
    found: dict[str, Channel] = {}
    driven = {int(k): plan.n_z + place for place, k in enumerate(plan.u_driven)}
    for i, name in enumerate(plan.names):
        for port in plan.output_ports[i]:
            inside, base = plan.output_ports[i].slice(port.name), plan.y_slices[i].start
            part = tuple(range(base + inside.start, base + inside.stop))
            found[f"{name}.{port.name}"] = Channel("y", part, port.size is None, unit=port.unit)
        for port in plan.input_ports[i]:
            inside, base = plan.input_ports[i].slice(port.name), plan.u_slices[i].start
            into = slice(base + inside.start, base + inside.stop)
            places = [max(0, int(k)) for k in plan.u_source[into]]
            factor, offset = plan.u_factor[into].copy(), plan.u_offset[into].copy()
            for k in range(into.start, into.stop):
                if k in driven:  # recorded after the coupling variables
                    places[k - into.start], factor[k - into.start], offset[k - into.start] = driven[k], 1.0, 0.0
            found[f"{name}.{port.name}"] = Channel(
                "z", tuple(places), port.size is None, tuple(factor), tuple(offset), port.unit
            )
    for name, (entries, scalar) in plan.z_ports.items():
        found.setdefault(name, Channel("z", tuple(range(entries.start, entries.stop)), scalar))
    return found


class Selection:
    """What a run writes down: everything, or the named quantities only (fields are large).

    >>> import cosolve as cs
    >>> system = cs.System({"a": cs.Static(lambda t, u: [t, 2 * t], inputs=[], outputs=["x", ("y", 1)])})
    >>> chosen = Selection(system.plan(), ["a.y"])
    >>> chosen.y(np.array([3.0, 6.0])), list(chosen.channels)
    (array([6.]), ['a.y'])
    """

    def __init__(self, plan: Plan, names: Sequence[str] | None = None) -> None:
        self.channels = channels(plan)
        self._y: npt.NDArray[np.intp] | None = None  # everything
        self._z: npt.NDArray[np.intp] | None = None
        widths = [plan.n_y, plan.n_z + len(plan.u_driven)]
        if names is not None:
            names = as_list("simulate", "record", names)
            odd = [name for name in names if not isinstance(name, str)]
            if odd:
                raise SetupError(f"record: names are texts such as 'a.y', not {shortened(odd[0])}")
            found = {name: find_channel(self.channels, name) for name in names}
            unknown = [name for name, channel in found.items() if channel is None]
            if unknown:
                hint = did_you_mean(unknown[0], self.channels)
                raise SetupError(f"record: there is no '{unknown[0]}'; {hint}")
            kept = {name: channel for name, channel in found.items() if channel is not None}
            self._y, self._z = (_columns(kept, column) for column in ("y", "z"))
            place = {"y": self._y, "z": self._z}
            self.channels = {
                name: replace(c, part=tuple(int(k) for k in np.searchsorted(place[c.column], c.part)))
                for name, c in kept.items()
            }
            widths = [len(self._y), len(self._z)]
        self.layout = Layout(widths[0], widths[1], plan.n_subsystems)
        #: True when nothing is left out
        self.everything = names is None

    def y(self, y: Vector) -> Vector:
        """The outputs that are written down."""
        return y if self._y is None else y[self._y]

    def z(self, z: Vector) -> Vector:
        """The coupling variables that are written down."""
        return z if self._z is None else z[self._z]


def _columns(kept: dict[str, Channel], column: str) -> npt.NDArray[np.intp]:
    """The flat entries of one recorded column that the channels read, ascending."""
    parts = [c.part for c in kept.values() if c.column == column]
    return np.unique(np.concatenate([np.zeros(0, dtype=np.intp), *(np.array(p, dtype=np.intp) for p in parts)]))
