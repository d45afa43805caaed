"""The public names and the modules they live in; type checkers read this file, and so does `__init__.py`."""

from .global_radial import global_radial_basis as global_radial_basis
from .l2_projection import dual_mortar as dual_mortar
from .l2_projection import mortar as mortar
from .loads import field_to_loads as field_to_loads
from .loads import loads_to_field as loads_to_field
from .mapping import FieldMapping as FieldMapping
from .mapping import MappingReport as MappingReport
from .mesh import Mesh as Mesh
from .nearest import nearest_neighbour as nearest_neighbour
from .projection import barycentric as barycentric
from .nearest import NearestGradient as NearestGradient
from .nearest import ScaledToIntegral as ScaledToIntegral
from .partition import partition_of_unity as partition_of_unity
from .projection import nearest_projection as nearest_projection
from .quality import MappingQuality as MappingQuality
from .quality import mapping_quality as mapping_quality
from .radial import radial_basis as radial_basis
from .read import read_mesh as read_mesh
from .rotation import elastic_part as elastic_part
from .rotation import rigid_part as rigid_part
