"""The public names and the modules they live in; type checkers read this file, and so does `__init__.py`."""

from .adapters.calculix import CalculiX as CalculiX
from .adapters.dolfinx_solid import DolfinxSolid as DolfinxSolid
from .adapters.kratos import Kratos as Kratos
from .adapters.openfoam import OpenFoam as OpenFoam
from .elastic_solid import ElasticSolid as ElasticSolid
from .field_file import FieldFile as FieldFile
from .field_series import FieldSeries as FieldSeries, read_fields as read_fields
from .field_subsystem import FieldSnapshot as FieldSnapshot, FieldSubsystem as FieldSubsystem
from .ngsolve_flow import NgsFlow as NgsFlow
from .ngsolve_solid import NgsSolid as NgsSolid
