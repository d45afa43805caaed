"""What dolfinx computes for `DolfinxSolid`, in a Python that has it: the mass of a solid, and one of its steps.

Nothing is remembered between two calls of `solve` but the mesh and the compiled forms, so that the same arguments give
the same bits. Points and triangles are numbered as the caller does, not as dolfinx does.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

_KNOWN = "0.5"  # its names of functions change from version to version
_made: dict[str, Any] = {}


def set_up(points: Any, triangles: Any, held: Any, lam: float, mu: float, density: float) -> dict[str, Any]:
    """Build the solid from triangles of six points (corners, middles of 01, 12, 20); its mass matrix as triplets."""
    dolfinx = import_module("dolfinx")
    if not dolfinx.__version__.startswith(_KNOWN):
        raise ArithmeticError(f"dolfinx {dolfinx.__version__} is here, but its calls are those of {_KNOWN}")
    ufl, fem, petsc = (import_module(name) for name in ("ufl", "dolfinx.fem", "dolfinx.fem.petsc"))
    alone = import_module("mpi4py.MPI").COMM_SELF
    domain = ufl.Mesh(ufl.VectorElement("Lagrange", "triangle", 1))
    corners = points[: 1 + int(triangles[:, :3].max())]
    mesh = import_module("dolfinx.mesh").create_mesh(alone, triangles[:, :3].astype(np.int64), corners, domain)
    space = fem.VectorFunctionSpace(mesh, ("Lagrange", 2))
    ours = _numbers(mesh, space, triangles)
    apart = np.abs(space.tabulate_dof_coordinates()[:, :2] - points[ours]).max()
    if apart > 1e-9 * np.ptp(points, axis=0).max():
        raise ArithmeticError(f"the points of dolfinx are up to {apart:.3g} m away from those of the mesh")

    d, test, trial = fem.Function(space), ufl.TestFunction(space), ufl.TrialFunction(space)
    # numbers that the compiled forms are given, so that they are compiled once for all materials
    inertia, lam_, mu_, rho = (fem.Constant(mesh, value) for value in (0.0, lam, mu, density))
    dx = ufl.dx(domain=mesh, metadata={"quadrature_degree": 4})
    H = ufl.grad(d)
    E = 0.5 * (H + H.T + H.T * H)
    energy = (mu_ * ufl.inner(E, E) + 0.5 * lam_ * ufl.tr(E) ** 2) * dx
    forces = ufl.derivative(energy, d, test) + inertia * rho * ufl.inner(d, test) * dx
    fixed = fem.dirichletbc(np.zeros(2), np.flatnonzero(np.isin(ours, held)).astype(np.int32), space)
    _made.update(d=d, inertia=inertia, ours=ours, fixed=fixed, petsc=petsc)
    _made.update(forces=fem.form(forces), tangent=fem.form(ufl.derivative(forces, d, trial)))
    _made.update(free=~np.repeat(np.isin(ours, held), 2))

    mass = petsc.assemble_matrix(fem.form(rho * ufl.inner(trial, test) * dx))
    mass.assemble()
    starts, columns, values = mass.getValuesCSR()
    unknown = (2 * ours[:, np.newaxis] + np.arange(2)).ravel()
    rows = np.repeat(unknown, np.diff(starts))
    return {"rows": rows, "columns": unknown[columns], "values": values, "version": dolfinx.__version__}


def _numbers(mesh: Any, space: Any, triangles: Any) -> Any:
    """The caller's number of each point of dolfinx."""
    given = np.asarray(mesh.geometry.input_global_indices)
    cells = np.asarray(mesh.topology.original_cell_index)
    corners = given[mesh.geometry.dofmap.array.reshape(-1, 3)]
    found = np.full(space.dofmap.index_map.size_local, -1, dtype=np.int64)
    opposite = {0: 4, 1: 5, 2: 3}  # where the middle of the edge opposite to a corner is: 12, 20, 01
    for cell, dofs in enumerate(space.dofmap.list.array.reshape(-1, 6)):
        row = triangles[cells[cell]].tolist()
        middles = [row[opposite[row.index(corner)]] for corner in corners[cell]]  # dolfinx goes by opposite corners
        found[dofs] = [*corners[cell], *middles]
    return found


def solve(guess: Any, load: Any, inertia: float, tol: float, most: int) -> dict[str, Any]:
    """`inertia M d + K(d) = load` by Newton from a guess; fields go point by point."""
    petsc, free, ours = _made["petsc"], _made["free"], _made["ours"]
    PETSc = import_module("petsc4py.PETSc")
    _made["inertia"].value = inertia
    field = _made["d"].x.array
    load = load.reshape(-1, 2)[ours].ravel()
    field[:] = np.where(free, guess.reshape(-1, 2)[ours].ravel(), 0.0)
    tiny = np.finfo(np.float64).tiny
    for _ in range(most):
        residual = petsc.assemble_vector(_made["forces"])
        r = np.where(free, residual.array - load, 0.0)
        if not np.isfinite(r).all():
            raise ArithmeticError("its elastic forces are not finite; the loads are too large for one step")
        tangent = petsc.assemble_matrix(_made["tangent"], [_made["fixed"]])
        tangent.assemble()
        step = tangent.createVecRight()
        residual.array[:] = r
        solver = PETSc.KSP().create(tangent.comm)  # a new one: what is kept of old matrices would show in the bits
        solver.setOperators(tangent)
        solver.setType("preonly")
        solver.getPC().setType("lu")
        solver.solve(residual, step)
        correction, failed = step.array.copy(), solver.reason < 0
        for thing in (solver, tangent, residual, step):
            thing.destroy()
        if failed or not np.isfinite(correction).all():
            raise ArithmeticError("the solid has lost its stiffness; the loads are too large")
        field[:] -= correction
        if np.abs(correction).max(initial=0.0) <= tol * np.abs(field).max() + tiny:
            found = np.empty((len(ours), 2))
            found[ours] = field.reshape(-1, 2)
            return {"d": found.ravel()}
    raise ArithmeticError(
        f"the Newton iteration of the solid did not converge in {most} iterations (last residual "
        f"{np.abs(r).max():.3g} N/m); a smaller step, or a load in steps, may do"
    )
