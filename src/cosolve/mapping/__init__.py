"""Field mapping between non-matching meshes: one method per file, each gives one linear operator (`FieldMapping`)."""

from cosolve.mapping.global_radial import global_radial_basis
from cosolve.mapping.l2_projection import dual_mortar, mortar
from cosolve.mapping.loads import field_to_loads, loads_to_field
from cosolve.mapping.mapping import FieldMapping, MappingReport
from cosolve.mapping.mesh import Mesh
from cosolve.mapping.nearest import nearest_neighbour
from cosolve.mapping.nearest_element import barycentric
from cosolve.mapping.nearest_gradient import NearestGradient, ScaledToIntegral
from cosolve.mapping.partition import partition_of_unity
from cosolve.mapping.projection import nearest_projection
from cosolve.mapping.quality import MappingQuality, mapping_quality
from cosolve.mapping.radial import radial_basis
from cosolve.mapping.read import read_mesh
from cosolve.mapping.rotation import elastic_part, rigid_part

__all__ = [
    "FieldMapping",
    "MappingQuality",
    "MappingReport",
    "Mesh",
    "NearestGradient",
    "ScaledToIntegral",
    "barycentric",
    "dual_mortar",
    "elastic_part",
    "field_to_loads",
    "global_radial_basis",
    "loads_to_field",
    "mapping_quality",
    "mortar",
    "nearest_neighbour",
    "nearest_projection",
    "partition_of_unity",
    "radial_basis",
    "read_mesh",
    "rigid_part",
]
