"""Field mapping between non-matching meshes: one method per file, each gives one linear operator (`Mapping`)."""

from cosolve.interface.mapping.l2_projection import dual_mortar, mortar
from cosolve.interface.mapping.mapping import Mapping, MappingReport
from cosolve.interface.mapping.mesh import Mesh
from cosolve.interface.mapping.nearest import nearest_neighbour
from cosolve.interface.mapping.nearest_element import barycentric
from cosolve.interface.mapping.radial import radial_basis
from cosolve.interface.mapping.read import read_mesh

__all__ = [
    "Mapping",
    "MappingReport",
    "Mesh",
    "barycentric",
    "dual_mortar",
    "mortar",
    "nearest_neighbour",
    "radial_basis",
    "read_mesh",
]
