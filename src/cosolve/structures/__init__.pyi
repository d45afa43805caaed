"""The public names and the modules they live in; type checkers read this file, and so does `__init__.py`."""

from .beam import Beam as Beam
from .integrators import StructureIntegrator as StructureIntegrator
from .ports import DofPort as DofPort
from .structure import Structure as Structure
from .subsystem import SecondOrder as SecondOrder
from .truss import Bar as Bar
