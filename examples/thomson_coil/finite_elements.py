"""Axisymmetric finite elements for coil, plate and the air around them: meshes and matrices, without time.

The unknown is `psi = r A_phi`, the flux through the circle at `(r, z)` divided by `2 pi`; `field.py` says which
equations it obeys. Coordinates of the mesh are `s = r^2` and `z`: a uniform field, `psi = B r^2 / 2`, is then linear,
on the axis as well. Elements are bilinear, on a grid with lines along all edges of conductors.

Motion. Coil and everything below it rest. Plate and everything above it move as they are, outer boundary included: it
is so far away that nothing feels it. Between the two lies one band, the layers of air in the gap, which stretches
evenly: its stiffness is `s Kr + Kz / s` with the stretch `s = 1 + z / gap`. The mesh fits at every distance, nothing is
interpolated, and the force is the exact derivative of the discrete energy, so that none leaks. (A band that slides, as
in rotating machines, needs an interface along the motion; here it is the gap itself that opens.)

Speed. Only the band changes with the distance. What lies below the gap and above the plate has no state, and is
condensed once to the lines where it meets the rest. What remains is a matrix of some hundred rows with a narrow band,
which is factorised in about a millisecond.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import pi
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import splu

import cosolve as cs
from examples.thomson_coil.model import ThomsonCoil

MU_0 = 4e-7 * pi


def _finite_elements() -> Any:
    try:
        import skfem
    except ImportError:
        raise cs.errors.SetupError(
            "the field of the Thomson coil needs scikit-fem, which is not installed here; run: pip install cosolve[fem]"
        ) from None
    return skfem


@dataclass(frozen=True)
class Mesh:
    """How fine: largest cells in coil and plate, layers of the band, growth of cells outside, and where the air ends.

    `Mesh().finer(2)` has half the size everywhere.
    """

    size: float = 1.2e-3
    layers: int = 4
    growth: float = 1.5
    far: float = 0.4

    def finer(self, times: float) -> Mesh:
        if not 0.1 <= times <= 20:
            raise cs.errors.SetupError(f"finer = {times!r} must be a factor from 0.1 to 20, by which elements shrink")
        layers = max(1, round(self.layers * times))
        return Mesh(self.size / times, layers, self.growth ** (1 / times), self.far)

    def radii(self, p: ThomsonCoil) -> np.ndarray:
        """Lines of the mesh: edges of turns and plate are among them."""
        inner, outer, _ = p.plate
        edges = {0.0, inner, outer} | {r + side * p.wire[0] / 2 for r in p.turns for side in (-1, 1)}
        edges = {round(edge, 9) for edge in edges}  # those that differ by rounding only are one line
        if self.far < 2 * max(edges):
            raise cs.errors.SetupError(
                f"Mesh: far = {self.far:g} m is too near for conductors of {max(edges):g} m; take five times that"
            )
        return np.concatenate([_between(sorted(edges), self.size), self._outside(max(edges))])

    def heights(self, p: ThomsonCoil) -> tuple[np.ndarray, slice, slice]:
        """Lines of the mesh with the plate at rest; which of them bound the band, and which the layers of the plate.

        The coil ends at 0 and the band begins there. Layers of the plate are half as thick as cells are wide: currents
        flow where it faces the coil.
        """
        thickness = p.plate[2]
        coil = _between([-p.wire[1], 0.0], self.size)
        band = np.linspace(0.0, p.gap, self.layers + 1)
        plate = p.gap + _between([0.0, thickness], self.size / 2)
        below, above = -p.wire[1] - self._outside(0.0)[::-1], plate[-1] + self._outside(0.0)
        first, second = len(below) + len(coil) - 1, len(below) + len(coil) + self.layers - 1
        lines = np.concatenate([below, coil, band[1:], plate[1:], above])
        return lines, slice(first, second + 1), slice(second, second + len(plate))

    def _outside(self, edge: float) -> np.ndarray:
        cells = [self.size]
        while sum(cells) < self.far - edge:
            cells.append(cells[-1] * self.growth)
        return edge + np.cumsum(cells) * (self.far - edge) / sum(cells)


def _between(edges: list[float], size: float) -> np.ndarray:
    """Each interval cut evenly into cells of at most `size`."""
    parts = [edges[:1]]
    for a, b in pairwise(edges):
        parts.append(np.linspace(a, b, max(1, int(np.ceil((b - a) / size - 1e-6))) + 1)[1:])
    return np.concatenate(parts)


class Matrices:
    """What the elements give, condensed to the strip: the lines from the bottom of the band to the top of the plate.

    Band storage is LAPACK's lower one: row `i` holds the entries `(j + i, j)`. Vectors on the strip are line by line
    from below, without axis and outer boundary.
    """

    def __init__(self, p: ThomsonCoil, mesh: Mesh) -> None:
        fem = _finite_elements()
        self.p, self.mesh = p, mesh
        r, (z, band, plate) = mesh.radii(p), mesh.heights(p)
        self.r, self.z, self.band = r, z, band
        across = len(r) - 2  # unknowns in a line
        grid = fem.MeshQuad.init_tensor(r**2, z)
        basis = fem.Basis(grid, fem.ElementQuad1(), intorder=6)
        column, line = np.searchsorted(r**2, grid.p[0]), np.searchsorted(z, grid.p[1])
        order = np.full(grid.p.shape[1], -1)
        inside = (column > 0) & (column < len(r) - 1) & (line > 0) & (line < len(z) - 1)
        order[inside] = (line[inside] - 1) * across + column[inside] - 1
        where = np.empty(inside.sum(), int)
        where[order[inside]] = np.flatnonzero(inside)

        def whole(form: Any, elements: np.ndarray) -> csr_array:
            found = fem.BilinearForm(form).assemble(basis.with_elements(elements))
            return csr_array(found.tocsr()[where][:, where])

        middle = grid.p[:, grid.t].mean(axis=1)
        radius, height = np.sqrt(middle[0]), middle[1]
        in_band = (height > 0) & (height < p.gap)
        inner, outer, thickness = p.plate
        within = (radius > inner) & (radius < outer) & (height > p.gap) & (height < p.gap + thickness)
        wound = np.zeros(len(radius), bool)
        for turn in p.turns:
            wound |= (abs(radius - turn) < p.wire[0] / 2) & (abs(height + p.wire[1] / 2) < p.wire[1] / 2)

        def radial(u: Any, v: Any, w: Any) -> Any:
            return 2 * pi / MU_0 * 2 * u.grad[0] * v.grad[0]

        def axial(u: Any, v: Any, w: Any) -> Any:
            return 2 * pi / MU_0 * u.grad[1] * v.grad[1] / (2 * w.x[0])

        def linked(v: Any, w: Any) -> Any:
            return 2 * pi / (p.wire[0] * p.wire[1]) * v / (2 * np.sqrt(w.x[0]))

        everywhere = np.flatnonzero(~in_band)
        K = whole(lambda u, v, w: radial(u, v, w) + axial(u, v, w), everywhere)
        Kr, Kz = (whole(form, np.flatnonzero(in_band)) for form in (radial, axial))
        b = fem.LinearForm(linked).assemble(basis.with_elements(np.flatnonzero(wound)))[where]

        low, high = (band.start - 1) * across, plate.stop * across - across
        self.below, self.strip, self.above = slice(0, low), slice(low, high), slice(high, len(where))
        self.across, self.n = across, high - low
        self.K, self.Kr_whole, self.Kz_whole, self.source = K, Kr, Kz, b
        # what lies below the gap and above the plate, condensed to the lines where it meets the strip
        lower = _Condensed(K, self.below, self.strip, b)
        upper = _Condensed(K, self.above, self.strip, b)
        self.lower, self.upper = lower, upper
        K0 = csr_array(K[self.strip][:, self.strip] - lower.matrix - upper.matrix)
        self.b = b[self.strip] - lower.vector
        self.coil_inductance_below = lower.scalar
        self.Kr, self.Kz = (csr_array(one[self.strip][:, self.strip]) for one in (Kr, Kz))
        self.bands = tuple(_banded(one, across + 1) for one in (K0, self.Kr, self.Kz))
        self._plate(fem, basis, np.flatnonzero(within), order)

    def _plate(self, fem: Any, basis: Any, elements: np.ndarray, order: np.ndarray) -> None:
        """The conductor: a matrix per element, since each has its temperature."""
        p = self.p
        part = basis.with_elements(elements)
        local = np.empty((len(elements), 4, 4))
        weight = p.aluminium.conductivity * pi / part.global_coordinates()[0] * part.dx
        shapes = [np.broadcast_to(np.asarray(part.basis[i][0]), part.dx.shape) for i in range(4)]
        for i in range(4):
            for j in range(4):
                local[:, i, j] = (weight * shapes[i] * shapes[j]).sum(axis=1)
        self.local = local
        self.nodes = order[part.element_dofs.T] - self.strip.start  # of each element, on the strip
        rows, columns = np.repeat(self.nodes, 4, axis=1), np.tile(self.nodes, (1, 4))
        lower = (rows >= columns).ravel()
        place = ((rows - columns) * self.n + columns).ravel()[lower]
        which = np.repeat(np.arange(len(elements)), 16)[lower]
        shape = ((self.across + 2) * self.n, len(elements))
        #: from the conductivities of the elements, relative to the cold metal, to the band storage of M
        self.conductor = csr_array((local.ravel()[lower], (place, which)), shape=shape)
        self.touched = np.flatnonzero(np.diff(self.conductor.indptr))
        self.conductor = csr_array(self.conductor[self.touched])
        heat = p.aluminium.density * p.aluminium.heat
        self.volumes = pi * part.dx.sum(axis=1)  # 2 pi r dr dz = pi ds dz
        self.heat_capacity = heat * self.volumes
        self.plate_nodes = np.unique(self.nodes)
        corners = basis.mesh.p[:, basis.mesh.t[:, elements]]
        #: of the plate's elements, in the coordinates of the mesh: middles, and lower and upper corners
        self.middles, self.corners = corners.mean(axis=1), (corners.min(axis=1), corners.max(axis=1))

    # -- what the integrator asks for ------------------------------------------------------------------------------

    def matrix(self, stretch: float, conductivity: np.ndarray, time: float) -> np.ndarray:
        """`M / time + K` in band storage, with the conductivity of each element relative to the cold metal."""
        K0, Kr, Kz = self.bands
        found = K0 + stretch * Kr
        found += Kz / stretch
        found.reshape(-1)[self.touched] += self.conductor @ (conductivity / time)
        return found

    def held(self, conductivity: np.ndarray, psi: np.ndarray) -> np.ndarray:
        """`M psi`."""
        found = np.zeros(self.n)
        shares = conductivity[:, np.newaxis] * np.einsum("eij,ej->ei", self.local, psi[self.nodes])
        np.add.at(found, self.nodes, shares)
        return found

    def heating(self, conductivity: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """Watts of each element when `psi` changes at this rate."""
        there = rate[self.nodes]
        found: np.ndarray = conductivity * np.einsum("ei,eij,ej->e", there, self.local, there)
        return found

    def force(self, stretch: float, psi: np.ndarray) -> float:
        return float(-0.5 / self.p.gap * (psi @ (self.Kr @ psi) - psi @ (self.Kz @ psi) / stretch**2))

    def energy(self, stretch: float, psi: np.ndarray, current: float) -> float:
        """Of the whole field, in J; that of the lead is not in it."""
        full = self.everywhere(psi, current)
        parts = self.K @ full + stretch * (self.Kr_whole @ full) + self.Kz_whole @ full / stretch
        return float(0.5 * full @ parts)

    def everywhere(self, psi: np.ndarray, current: float) -> np.ndarray:
        """The flux at all inner nodes, from that on the strip and the current of the coil."""
        return np.concatenate([self.lower.inside(psi, current), psi, self.upper.inside(psi, current)])

    def picture(self, psi: np.ndarray, current: float, z: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The whole mesh with the plate at `z`: radii, heights, and the flux at all nodes, a row for each height."""
        heights = self.z.copy()
        heights[self.band] *= 1.0 + z / self.p.gap
        heights[self.band.stop :] += z
        flux = np.zeros((len(heights), len(self.r)))
        flux[1:-1, 1:-1] = self.everywhere(psi, current).reshape(-1, self.across)
        return self.r, heights, flux

    @cached_property
    def coil_inductance(self) -> float:
        """Of the coil alone in the air, in H: `b' K^-1 b`, without the lead."""
        whole = csc_array(self.K + self.Kr_whole + self.Kz_whole)
        return float(self.source @ splu(whole).solve(self.source))


class _Condensed:
    """Unknowns `part` eliminated from `K psi = b I`: what they leave on the strip."""

    def __init__(self, K: csr_array, part: slice, strip: slice, b: np.ndarray) -> None:
        solve = splu(csc_array(K[part][:, part])).solve
        meets = csc_array(K[part][:, strip])
        touched = np.flatnonzero(np.diff(meets.indptr))
        self.touched = touched
        self.response = solve(meets[:, touched].toarray())  # inside, per unit on the strip
        self.driven = solve(b[part])  # inside, per unit of current
        self.scalar = float(b[part] @ self.driven)
        dense = meets[:, touched].T @ self.response
        rows, columns = np.meshgrid(touched, touched, indexing="ij")
        n = strip.stop - strip.start
        self.matrix = csr_array((dense.ravel(), (rows.ravel(), columns.ravel())), shape=(n, n))
        self.vector = meets.T @ self.driven

    def inside(self, psi: np.ndarray, current: float) -> np.ndarray:
        found: np.ndarray = self.driven * current - self.response @ psi[self.touched]
        return found


def _banded(K: csr_array, width: int) -> np.ndarray:
    entries = K.tocoo()
    rows, columns = entries.coords
    lower = rows >= columns
    found = np.zeros((width + 1, K.shape[0]))
    np.add.at(found, (rows[lower] - columns[lower], columns[lower]), entries.data[lower])
    return found
