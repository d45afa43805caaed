"""The same flag by four solvers that replace each other: NGSolve, scikit-fem, dolfinx and CalculiX."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import cosolve as cs
from examples.calculix_flag.deck import WET, write_deck
from examples.turek_hron.model import POISSON, A, Case, solid, solid_mesh


def on_same_triangles(kind: type[cs.fields.ElasticSolid], case: Case) -> cs.fields.ElasticSolid:
    """A flag on the mesh of NGSolve's solid with straight edges."""
    import skfem

    given = solid_mesh()
    points = np.array([vertex.point for vertex in given.vertices]).T
    corners = np.array([[vertex.nr for vertex in element.vertices] for element in given.Elements()]).T
    mesh = skfem.MeshTri(points, corners)
    edges = mesh.boundary_facets()
    from_centre = np.hypot(*(mesh.p[:, mesh.facets[:, edges]] - 0.2)).max(axis=0)
    held = edges[from_centre < 0.0501]  # both ends lie on the cylinder
    return kind(
        mesh.with_boundaries({"clamped": held, "surface": np.setdiff1d(edges, held)}),
        clamped="clamped",
        surface="surface",
        young=case.young,
        poisson=POISSON,
        density=case.solid_density,
        probes={"A": A},
    )


def by_scikit_fem(case: Case) -> cs.fields.FieldSubsystem:
    """Forces and matrices by numpy."""
    return on_same_triangles(cs.fields.ElasticSolid, case)


def by_dolfinx(case: Case) -> cs.fields.FieldSubsystem:
    """By compiled forms, in a process of the Python that has dolfinx."""
    return on_same_triangles(cs.fields.DolfinxSolid, case)


def by_calculix(case: Case) -> cs.fields.FieldSubsystem:
    """70 elements of eight nodes; the program runs once per subsystem step."""
    with tempfile.TemporaryDirectory() as folder:
        mu = case.young / (2 * (1 + POISSON))
        deck = write_deck(Path(folder, "flag.inp"), mu=mu, nu=POISSON, density=case.solid_density, step=case.step)
        return cs.fields.CalculiX(deck, WET, nominal={"displacement": 1e-2})


SOLIDS: dict[str, Callable[[Case], cs.fields.FieldSubsystem]] = {
    "ngsolve": solid,
    "scikit-fem": by_scikit_fem,
    "dolfinx": by_dolfinx,
    "calculix": by_calculix,
}


def end_of_flag(run: cs.Result, flag: cs.fields.FieldSubsystem) -> np.ndarray:
    """How far the end of the flag has moved, at every time: columns ux and uy."""
    moved = np.asarray(run["solid.displacement"])
    points = flag.meshes["displacement"].points
    at = int(np.hypot(*(points - A).T).argmin())
    return moved.reshape(len(run.t), -1, 2)[:, at]
