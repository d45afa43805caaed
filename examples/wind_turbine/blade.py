"""The blade of the NREL Phase VI rotor as a beam that bends out of and in the plane of rotation.

`BladeData` are its sections (mass 60.2 kg, frequencies 7.31, 30.1 and 9.06 Hz as measured; an exponential taper that
fits them), `Blade` what a time step needs of it: matrices of its modes, or of all finite elements, and where loads act
and motion is measured. Flap and edge have the same taper and so the same mode shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

import cosolve as cs


def _tapered(root: float, taper: float) -> Callable[[np.ndarray], np.ndarray]:
    def section(s: np.ndarray) -> np.ndarray:
        found: np.ndarray = root * np.exp(-taper * s)
        return found

    return section


@dataclass(frozen=True)
class BladeData:
    """A blade from `root` to `tip` (m from the axis); sections are functions of the share of its length, 0 to 1.

    `mass` in kg/m, `flap` and `edge` stiffness in N m2; damping of the modes as shares of critical damping, the last
    one for all higher modes. `divergence` is the share of its length by which the tip may be deflected at most.

    >>> blade = BladeData().beam()
    >>> round(blade.total_mass, 2), round(blade.centre_of_mass, 3)
    (60.2, 2.266)
    >>> blade.frequencies(2).round(2), blade.frequencies(1, other=True).round(3)
    (array([ 7.32, 30.08]), array([9.062]))
    """

    root: float = 0.508
    tip: float = 5.029
    mass: Callable[[np.ndarray], np.ndarray] = field(default_factory=lambda: _tapered(24.5175, 1.37621))
    flap: Callable[[np.ndarray], np.ndarray] = field(default_factory=lambda: _tapered(1.162536e6, 3.011029))
    edge: Callable[[np.ndarray], np.ndarray] = field(default_factory=lambda: _tapered(1.78353e6, 3.011029))
    flap_damping: Sequence[float] = (0.00925, 0.01345, 0.02)
    edge_damping: Sequence[float] = (0.00765, 0.00765, 0.02)
    elements: int = 40
    divergence: float = 0.3

    def __post_init__(self) -> None:
        if not 0 <= self.root < self.tip:
            raise cs.errors.SetupError(f"a blade goes from its root outwards: root {self.root:g} m, tip {self.tip:g} m")
        for name in ("flap_damping", "edge_damping"):
            given = getattr(self, name)
            if not given or not all(0 <= share < 1 for share in given):
                raise cs.errors.SetupError(
                    f"{name} of a blade are shares of critical damping from 0 to below 1, not {given}"
                )
        if not 0 < self.divergence <= 1:
            raise cs.errors.SetupError(f"divergence is a share of the length of the blade, not {self.divergence!r}")

    def beam(self) -> cs.structures.Beam:
        """Finite elements of equal length."""

        def along(section: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
            return lambda r: section((r - self.root) / (self.tip - self.root))

        nodes = np.linspace(self.root, self.tip, self.elements + 1)
        return cs.structures.Beam(nodes, along(self.mass), along(self.flap), along(self.edge))


class Blade(NamedTuple):
    """A blade as time steps take it; its degrees of freedom are those of flap, then those of edge.

    Stiffness and damping have three parts, for the axes turned by the pitch: `cos^2`, `cos sin` and `sin^2` times them.
    `tightening` is the stiffness of rotation at 1 rad/s, `pull` the inertia vector of a change of the speed. Loads act
    and rates are measured at `nodes` (radii), first all flapwise, then all edgewise: `shapes` are the deflections
    there by the degrees of freedom, `arm` the lever arms about the axis, `tip` the deflections of the tip. `inertia`
    is about the axis of rotation, `largest` the deflection that the tip may have.
    """

    mass: np.ndarray
    stiffness: np.ndarray
    damping: np.ndarray
    tightening: np.ndarray
    pull: np.ndarray
    nodes: np.ndarray
    shapes: np.ndarray
    arm: np.ndarray
    tip: np.ndarray
    inertia: float
    largest: float


def blade(data: BladeData | None = None, *, modes: int | None = 3, nodes: int = 20) -> Blade:
    """A blade in its lowest `modes` (None: all finite elements), coupled at `nodes` equal distances from root to tip.

    >>> blade().pull.round(3)
    array([ 0.   ,  0.   ,  0.   , 18.494, -6.313,  3.149])
    >>> len(blade(modes=None).pull)
    160
    """
    data = BladeData() if data is None else data
    beam = data.beam()
    if isinstance(nodes, bool) or not isinstance(nodes, int) or nodes < 1:
        raise cs.errors.SetupError(f"a blade is coupled at a whole number of nodes of at least 1, not {nodes!r}")
    at = np.linspace(data.root, data.tip, nodes + 1)[1:]
    count = beam.n if modes is None else modes
    M, G = beam.mass_matrix(), beam.rotation_stiffness()
    flap, edge = beam.stiffness_matrix(), beam.stiffness_matrix(other=True)
    basis = np.eye(beam.n) if modes is None else beam.modes(count)[1]

    def damping(shares: Sequence[float], other: bool) -> np.ndarray:
        f, vectors = beam.modes(count, other=other)
        ratios = np.array([shares[min(k, len(shares) - 1)] for k in range(len(f))])
        on_modes = M @ vectors
        return (on_modes * (4 * np.pi * ratios * f)) @ on_modes.T

    def both(soft: np.ndarray, hard: np.ndarray, mixed: np.ndarray | None = None) -> np.ndarray:
        mixed = np.zeros_like(soft) if mixed is None else mixed
        return np.block(
            [[basis.T @ soft @ basis, basis.T @ mixed @ basis], [basis.T @ mixed @ basis, basis.T @ hard @ basis]]
        )

    def parts(soft: np.ndarray, hard: np.ndarray) -> np.ndarray:
        none = np.zeros_like(soft)
        return np.array([both(soft, hard), both(none, none, soft - hard), both(hard, soft)])

    shapes, tip = beam.shapes(at) @ basis, beam.shapes([data.tip]) @ basis
    return Blade(
        both(M, M),
        parts(flap, edge),
        parts(damping(data.flap_damping, False), damping(data.edge_damping, True)),
        both(G, G - M),
        np.concatenate([np.zeros(basis.shape[1]), basis.T @ beam.inertia_vector()]),
        at,
        np.kron(np.eye(2), shapes),
        np.concatenate([np.zeros(nodes), at]),
        np.kron(np.eye(2), tip),
        beam.inertia,
        data.divergence * beam.length,
    )
