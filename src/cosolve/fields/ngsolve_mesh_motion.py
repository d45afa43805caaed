"""How the mesh of a flow follows its surface: as an elastic body that is stiff where the surface is near."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_array
from scipy.spatial import cKDTree

from cosolve.basics.arrays import Vector
from cosolve.errors import SubsystemError
from cosolve.fields.ngsolve_space import QuadraticSpace, Trace, factorised, ngsolve, whole


class MeshMotion:
    """Linear elasticity on the mesh at rest, factorised once; all boundaries but the surface stay where they are.

    Stiffness is proportional to `(near + distance)**-stiffening`: small triangles near the surface move with it as they
    are, and large ones far away are deformed instead.
    """

    def __init__(self, space: QuadraticSpace, surface: Trace, near: float, stiffening: float) -> None:
        ng = ngsolve()
        self._space, self._surface = space, surface
        V = ng.VectorH1(space.mesh, order=2, dirichlet=".*")
        stiffness = ng.GridFunction(ng.H1(space.mesh, order=1))
        distance = cKDTree(surface.mesh.points).query(space.points[: space.n_vertices])[0]
        stiffness.vec.FV().NumPy()[:] = (near + distance) ** -stiffening
        d, e = V.TnT()
        strain = 0.5 * (ng.Grad(d) + ng.Grad(d).trans)
        form = ng.BilinearForm(V)
        form += stiffness * (2 * ng.InnerProduct(strain, ng.Grad(e)) + ng.div(d) * ng.div(e)) * ng.dx
        K = whole(form.Assemble().mat)
        free = np.array(list(V.FreeDofs()), dtype=np.bool_)
        driven = np.zeros((2, space.n), dtype=np.bool_)
        driven[:, surface.nodes] = True
        self._free = np.flatnonzero(free)
        #: the coefficients of the surface
        self.driven = np.flatnonzero(driven.ravel())
        self._pull = csc_array(K[free][:, self.driven])
        self._lu = factorised(csc_array(K[free][:, free]))

    def follow(self, displacement: Vector) -> Vector:
        """The coefficients of the displacement of the whole mesh, from the values at the points of its surface."""
        moved = np.zeros((2, self._space.n))
        self._surface.write(displacement, moved)
        flat = moved.ravel()
        flat[self._free] = -self._lu.solve(self._pull @ flat[self.driven])
        if self._space.smallest_area_ratio(moved) <= 0.0:
            raise SubsystemError(
                f"the displacement of the surface (up to {np.abs(displacement).max():.3g} m) turns a triangle of the "
                "flow's mesh inside out; a smaller step, other stiffening, or a mesh with more room may do"
            )
        return flat
