"""The blade as a solid: a tapered box of hexahedra with the sections of the beam (needs `pip install cosolve[fem]`).

    python -m examples.wind_turbine.solid

A massive box of one material whose width and height follow the stiffness of flap and edge, and whose density follows
the mass. Quadratic hexahedra do not lock in bending. What differs from the beam is what a beam leaves out: shear and
the inertia of turning sections lower the frequencies of a thick box (a soft material), and a clamp that holds the
section in its plane, against Poisson's ratio, raises them a little.
"""

# mypy: disable-error-code="no-untyped-def, import-untyped"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import eigsh

from examples.wind_turbine.blade import BladeData


class Modes(NamedTuple):
    """Frequencies (Hz) of flap and of edge, mass in kg, unknowns, and the height of the root over the length."""

    flap: np.ndarray
    edge: np.ndarray
    mass: float
    dofs: int
    slenderness: float


def solid_modes(
    data: BladeData | None = None,
    modulus: float = 70e9,
    elements: tuple[int, int, int] = (20, 1, 1),
    poisson: float = 0.3,
) -> Modes:
    """Of a box that is clamped at its root; `elements` along the blade, across it and through it."""
    from skfem import Basis, BilinearForm, ElementHex2, ElementVector, Functional, MeshHex, asm
    from skfem.helpers import dot
    from skfem.models.elasticity import lame_parameters, linear_elasticity

    data = BladeData() if data is None else data
    length = data.tip - data.root
    axes = (np.linspace(0, 1, elements[0] + 1), *(np.linspace(-0.5, 0.5, n + 1) for n in elements[1:]))
    mesh = MeshHex.init_tensor(*axes)
    s = mesh.p[0]
    width, height = _sides(data, s, modulus)
    mesh = MeshHex(np.array([length * s, width * mesh.p[1], height * mesh.p[2]]), mesh.t)
    basis = Basis(mesh, ElementVector(ElementHex2()))

    @BilinearForm
    def inertia(u, v, w):
        return _density(data, w.x[0] / length, modulus) * dot(u, v)

    K = asm(linear_elasticity(*lame_parameters(modulus, poisson)), basis)
    M = asm(inertia, basis)
    free = basis.complement_dofs(basis.get_dofs(lambda x: x[0] < 1e-9))
    squares, shapes = eigsh(K[free][:, free], 8, M[free][:, free], sigma=0.0)
    order = np.argsort(squares)
    rows = {int(dof): k for k, dof in enumerate(free)}
    tip = int(np.argmax(mesh.p[0] + 1e-9 * mesh.p[1]))
    across, through = (rows[int(basis.nodal_dofs[axis, tip])] for axis in (1, 2))
    flap = [k for k in order if abs(shapes[through, k]) > abs(shapes[across, k])]
    edge = [k for k in order if abs(shapes[through, k]) <= abs(shapes[across, k])]
    f = np.sqrt(squares) / (2 * np.pi)
    mass = float(asm(Functional(lambda w: _density(data, w.x[0] / length, modulus)), basis))
    return Modes(f[flap], f[edge], mass, len(free), float(_sides(data, np.zeros(1), modulus)[1][0] / length))


def _sides(data: BladeData, s: np.ndarray, modulus: float) -> tuple[np.ndarray, np.ndarray]:
    """Width and height of a box with the stiffness of flap and edge: E b h^3/12 and E h b^3/12."""
    flap, edge = data.flap(s), data.edge(s)
    ratio = np.sqrt(edge / flap)
    height = (12 * flap / (modulus * ratio)) ** 0.25
    return ratio * height, height


def _density(data: BladeData, s: np.ndarray, modulus: float) -> np.ndarray:
    """That gives the box the mass of the blade."""
    width, height = _sides(data, s, modulus)
    return data.mass(s) / (width * height)


def main() -> None:
    """The table."""
    beam = BladeData().beam()
    flap, edge = beam.frequencies(2), beam.frequencies(2, other=True)
    print(f"beam: flap {flap.round(3)}, edge {edge.round(3)} Hz, {beam.total_mass:.2f} kg")
    for modulus in (10e9, 70e9, 210e9):
        found = solid_modes(modulus=modulus)
        print(f"solid, {modulus / 1e9:g} GPa, root {100 * found.slenderness:.1f} % of the length, {found.mass:.2f} kg")
        for name, ours, theirs in (("flap", found.flap[:2], flap), ("edge", found.edge[:2], edge)):
            print(f"    {name} {ours.round(3)} Hz, {(100 * (ours / theirs - 1)).round(2)} %")


if __name__ == "__main__":
    main()
