"""An elastic solid in plane strain by NGSolve: St. Venant-Kirchhoff, quadratic triangles, BDF2 (extra `ngsolve`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.sparse.linalg import SuperLU

from cosolve.basics.arrays import Matrix, Vector
from cosolve.errors import NonFiniteError, SetupError, SubsystemError
from cosolve.fields.moving_solid import MovingSolid
from cosolve.fields.ngsolve_space import (
    FreePart,
    QuadraticSpace,
    Trace,
    boundary_names,
    checked_mesh,
    factorised,
    ngsolve,
    whole,
)
from cosolve.mapping.mapping import FieldMapping
from cosolve.mapping.mesh import Mesh

#: A correction that is larger than this part of the one before is made again with a new matrix.
_SLOW = 0.1


class NgsSolid(MovingSolid):
    """An elastic solid on an NGSolve mesh of triangles.

    Parameters
    ----------
    mesh : ngsolve.Mesh
        Plane mesh with named boundaries. Needs `cosolve[ngsolve]`.
    clamped : str
        Boundaries that do not move, as in "left|right".
    surface : str
        Boundary that is coupled.
    young : float
        Young's modulus in Pa.
    poisson : float
        Poisson's ratio.
    density : float
        Density in kg/m^3.
    gravity : sequence of float, default (0.0, 0.0)
        Load on the volume in m/s^2.
    probes : mapping of str to point or None, default None
        Points whose displacement is an output of its own: `{"tip": (0.6, 0.2)}` gives `tip_x` and `tip_y`.
    tol : float, default 1e-10
        Relative accuracy of the Newton iteration of a step.
    most : int, default 20
        Largest number of its iterations.

    Notes
    -----
    Ports: `force` in (N per metre of depth, at the points of `meshes["force"]`), `displacement` out (m). St.
    Venant-Kirchhoff material in plane strain, quadratic triangles, backward differences of order 2 in time.

    Examples
    --------
    >>> from netgen.occ import OCCGeometry, Rectangle
    >>> face = Rectangle(1.0, 0.1).Face()
    >>> for edge in face.edges:
    ...     edge.name = "left" if edge.center.x < 1e-6 else "outside"
    >>> mesh = OCCGeometry(face, dim=2).GenerateMesh(maxh=0.1)
    >>> beam = NgsSolid(mesh, clamped="left", surface="outside", young=1e9, poisson=0.3, density=1000.0,
    ...                 gravity=(0.0, -10.0), probes={"tip": (1.0, 0.05)})
    >>> round(1e3 * beam.static()["tip_y"], 2)             # a slender beam: -1.5 rho g L^4 / (E' h^2) = -1.365
    -1.35
    """

    def _set_up(self, mesh: Any, clamped: str, surface: str, density: float) -> None:
        ng = ngsolve()
        ng.SetNumThreads(1)
        self.mesh = checked_mesh(self._who, mesh)
        names = boundary_names(self._who, "surface", self.mesh, surface)
        held = boundary_names(self._who, "clamped", self.mesh, clamped)
        if not names or not held:
            raise SetupError(f"{self._who}: surface and clamped must each name a boundary of the mesh")
        self.space = QuadraticSpace(self.mesh)
        self._points, self._triangles = self.space.points, self.space.triangles
        self.surface = Trace(self._who, self.space, names)
        self._nodes = self.surface.nodes
        self.meshes = dict.fromkeys(("force", "displacement"), self.surface.mesh)
        self._assemble(ng, clamped, density)

    def _probe(self, name: str, point: Sequence[float]) -> Callable[[Vector], Vector]:
        ng = ngsolve()
        try:
            x, y = (float(value) for value in point)
            place = self.mesh(x, y)
            inside = place.nr >= 0
        except Exception:
            inside = False
        if not inside:
            raise SetupError(f"{self._who}: the probe '{name}' at {tuple(point)!r} lies outside of the mesh")
        scalar = ng.H1(self.mesh, order=2)
        field = ng.GridFunction(scalar)
        element = ng.ElementId(ng.VOL, place.nr)
        numbers = np.array(scalar.GetDofNrs(element), dtype=np.int64)
        weights = np.zeros(len(numbers))
        for k, number in enumerate(numbers):
            field.vec[:] = 0.0
            field.vec[int(number)] = 1.0
            weights[k] = field(place)
        return lambda field: field.reshape(2, -1)[:, numbers] @ weights

    def _assemble(self, ng: Any, clamped: str, density: float) -> None:
        lam, mu = self._lame
        V = ng.VectorH1(self.mesh, order=2, dirichlet=clamped)
        self._V, self._field = V, ng.GridFunction(V)
        d, test = V.TnT()
        F = ng.Id(2) + ng.Grad(d)
        E = 0.5 * (F.trans * F - ng.Id(2))
        energy = mu * ng.InnerProduct(E, E) + 0.5 * lam * ng.Trace(E) ** 2
        self._stiff = ng.BilinearForm(V, symmetric=False)
        self._stiff += ng.Variation(energy.Compile() * ng.dx)
        mass = ng.BilinearForm(density * ng.InnerProduct(d, test) * ng.dx).Assemble()
        self._mass = whole(mass.mat)
        self._free = np.array(list(V.FreeDofs()), dtype=np.bool_)
        self._stiff.AssembleLinearization(self._field.vec)
        self._free_part = FreePart(self._stiff.mat, self._free)
        same = FreePart(mass.mat, self._free).of(mass.mat)
        self._mass_values = same.data  # the same pattern: two components that meet in every entry
        # elastic forces of tiny strains are rounded like those of the unit matrix in F
        lengths = np.linalg.norm(np.diff(self.space.points[self.space.edges], axis=1), axis=2)
        stiffest = float(np.abs(self._free_part.of(self._stiff.mat).data).max())
        self._rounding = 64 * float(np.finfo(np.float64).eps) * stiffest * float(lengths.max())
        self._residual = self._field.vec.CreateVector()

    def trace_to(self, target: Mesh) -> FieldMapping:
        return self.surface.mapping(target)

    # -- fields are coefficients of NGSolve --------------------------------------------------------------------------

    def _nodal(self, field: Vector) -> Matrix:
        return self.space.nodal(field.reshape(2, -1)).T

    def _unknowns(self, nodal: Matrix) -> Vector:
        return self.space.coefficients(nodal.T).ravel()

    def _at_surface(self, field: Vector) -> Vector:
        return self.surface.read(field.reshape(2, -1))

    def _surface_loads(self, force: Vector) -> Vector:
        return self.surface.loads(force).ravel()

    # -- one step ----------------------------------------------------------------------------------------------------

    def _solve(self, guess: Vector, load: Vector, inertia: float, t: float) -> Vector:
        """`inertia M d + K(d) = load` from a guess, by Newton with one matrix as long as that is fast."""
        field = self._field.vec.FV().NumPy()
        free, residual = self._free, self._residual.FV().NumPy()
        d = guess.copy()
        d[~free] = 0.0
        lu: SuperLU | None = None
        last = np.inf
        scale = tiny = float(np.finfo(np.float64).tiny)
        for _ in range(self.most):
            field[:] = d
            self._stiff.Apply(self._field.vec, self._residual)
            inner = residual + inertia * (self._mass @ d)
            r = (inner - load)[free]
            if not np.isfinite(r).all():
                raise NonFiniteError("its elastic forces are not finite; the loads are too large for one step")
            scale = max(scale, float(np.abs(load).max()), float(np.abs(inner).max()), tiny)
            step = None if lu is None else lu.solve(r)
            if lu is None or step is None or float(np.abs(step).max(initial=0.0)) > _SLOW * last:
                self._stiff.AssembleLinearization(self._field.vec)
                matrix = self._free_part.of(self._stiff.mat)
                matrix.data += inertia * self._mass_values
                lu = factorised(matrix)
                step = lu.solve(r)
            d[free] -= step
            last = size = float(np.abs(step).max(initial=0.0))
            whole_size = float(np.abs(d).max())
            if size <= self.tol * whole_size + tiny or np.abs(r).max(initial=0.0) <= self._rounding:
                if self.space.smallest_area_ratio(d.reshape(2, -1)) <= 0.0:
                    raise SubsystemError("a triangle of the solid is turned inside out; the loads are too large")
                return d
        raise SubsystemError(
            f"the Newton iteration of the solid did not converge in {self.most} iterations from t = {t:.6g} (last "
            f"residual {np.abs(r).max():.3g} N/m of {scale:.3g}); a smaller step, or a load in steps, may do"
        )
