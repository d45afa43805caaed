"""Joints at the start of a run: consistent positions and velocities, independent conditions.

The subsystems are started, and their accelerations asked for zero and for unit multipliers. Accelerations are linear in
the multipliers, so that gives the matrix `d g'' / d lambda`; it is singular when joints over-constrain the mechanism,
internal joints of the subsystems included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.errors import SetupError
from cosolve.multibody.coupling.ends import COPIES, Fitted
from cosolve.multibody.coupling.laws import WITH_ACCELERATIONS
from cosolve.multibody.equations.coupling_loads import FORCE, STABILISED
from cosolve.subsystem.base import Subsystem, has_capability
from cosolve.subsystem.port import Ports

#: Singular values below this, relative to the largest, of the scaled matrix mean dependent conditions.
_RANK = 1e-9


class Start:
    """The subsystems at the start, and the rigid joints between them."""

    def __init__(self, subsystems: Mapping[str, Subsystem], joints: Sequence[Fitted], t_start: float) -> None:
        self.t, self.subsystems = t_start, subsystems
        self.rigid = [fitted for fitted in joints if not fitted.joint.flexible]
        self.names = {name for fitted in joints for name in fitted.joint.subsystems}
        self.ports = {name: (Ports(subsystems[name].inputs), Ports(subsystems[name].outputs)) for name in self.names}
        self.inputs = {name: np.zeros(self.ports[name][0].length) for name in self.names}
        self._copy(joints, {fitted.joint.name: fitted.start for fitted in joints})
        self._at_rest = self.outputs(np.zeros(self.count))
        # once more with what the subsystems really start from: they may have moved their initial state
        self._copy(joints, {f.joint.name: self.motions(f, self._at_rest) for f in joints})
        self._at_rest = self.outputs(np.zeros(self.count))

    def _copy(self, joints: Sequence[Fitted], motions: Mapping[str, tuple[Vector, Vector]]) -> None:
        """Let every end know the motion of the other body."""
        for fitted in joints:
            both = motions[fitted.joint.name]
            for name, end, other in zip(fitted.joint.subsystems, fitted.ends, both[::-1], strict=True):
                for suffix, size, start in COPIES:
                    if suffix in dict(end.inputs):
                        part = self.ports[name][0].slice(f"{end.name}_{suffix}")
                        self.inputs[name][part] = other[start : start + size]

    @cached_property
    def count(self) -> int:
        """Multipliers of all rigid joints."""
        return sum(fitted.count for fitted in self.rigid)

    def outputs(self, multipliers: Vector) -> dict[str, Vector]:
        """All outputs at the start for these multipliers."""
        inputs = {name: u.copy() for name, u in self.inputs.items()}
        at = 0
        for fitted in self.rigid:
            for suffix, size in (("force", fitted.n_force), ("torque", fitted.n_torque)):
                for name, end in zip(fitted.joint.subsystems, fitted.ends, strict=True):
                    if size and end.kind in (FORCE, STABILISED):
                        inputs[name][self.ports[name][0].slice(f"{end.name}_{suffix}")] = multipliers[at : at + size]
                at += size
        found = {}
        for name in sorted(self.names):
            subsystem = self.subsystems[name]
            first = subsystem.start(self.t)
            if has_capability(subsystem, "output"):
                first = subsystem.output(self.t, inputs[name])
            found[name] = self.ports[name][1].pack(first)
        return found

    def motions(self, fitted: Fitted, outputs: Mapping[str, Vector]) -> tuple[Vector, Vector]:
        """The motion (19) of both bodies of a joint."""
        found = []
        for name, end in zip(fitted.joint.subsystems, fitted.ends, strict=True):
            ports = self.ports[name][1]
            found.append(np.concatenate([outputs[name][ports.slice(f"{end.name}_{s}")] for s in WITH_ACCELERATIONS]))
        return found[0], found[1]

    def refuse_inconsistent(self, tolerance: float) -> None:
        """Positions and velocities at the start must satisfy the rigid joints."""
        complaints = []
        for fitted in self.rigid:
            g, _ = fitted.conditions(*self.motions(fitted, self._at_rest))
            for level, word in ((0, "position"), (1, "velocity")):
                complaints += [
                    f"'{fitted.joint.name}' {label} ({word}) by {value:.3g}"
                    for label, value in zip(fitted.joint.labels(), g[level], strict=True)
                    if abs(value) > tolerance
                ]
        if complaints:
            shown = "; ".join(complaints[:8]) + (f"; and {len(complaints) - 8} more" if len(complaints) > 8 else "")
            raise SetupError(
                f"the initial state violates the joints between subsystems at t = {self.t:g}: {shown}. Change initial "
                "positions or velocities in the models so that markers coincide and move alike"
            )

    def acceleration_matrix(self) -> Matrix:
        """`d g'' / d lambda` of all rigid joints together."""

        def accelerations(multipliers: Vector) -> Vector:
            outputs = self.outputs(multipliers)
            return np.concatenate([f.conditions(*self.motions(f, outputs))[0][2] for f in self.rigid])

        at_rest = accelerations(np.zeros(self.count))
        return np.array([accelerations(unit) - at_rest for unit in np.eye(self.count)]).T

    def refuse_redundant(self) -> None:
        """The conditions of all rigid joints must be independent of each other and of the subsystems' own joints."""
        if not self.count:
            return
        G = self.acceleration_matrix()
        if not np.isfinite(G).all() or not G.any():
            return  # accelerations that do not follow the forces at once: nothing can be said here
        size = np.sqrt(np.abs(np.diag(G)))
        size[size <= 1e-12 * size.max()] = size.max()
        _, values, vectors = np.linalg.svd(G / np.outer(size, size))
        dependent = values <= _RANK * values[0]
        if not dependent.any():
            return
        weight = np.abs(vectors[dependent]).max(axis=0)
        owners = [f.joint.name for f in self.rigid for _ in range(f.count)]
        involved = list(dict.fromkeys(name for name, w in zip(owners, weight, strict=True) if w > 1e-3))
        rank, one = int((~dependent).sum()), len(involved) == 1
        raise SetupError(
            f"the joint{'' if one else 's'} {', '.join(repr(n) for n in involved)} over-constrain{'s' if one else ''} "
            f"the mechanism at t = {self.t:g}: of {self.count} conditions between subsystems only {rank} "
            f"{'is' if rank == 1 else 'are'} independent of each other and of the joints inside; replace a joint of "
            "the loop by one with fewer conditions (spherical for revolute, say), or start from a position that is "
            "not singular"
        )
