"""Field solvers: flows and solids on meshes that take part in a coupled run, and adapters to the solvers people have.

`field_subsystem.py` is the contract: what a field solver offers beyond a subsystem, meshes under its ports and a
snapshot to look at. Every solver is one file of its own beside it, and so is every adapter in `adapters/`.
"""

from cosolve.fields.field_subsystem import FieldSnapshot, FieldSubsystem
from cosolve.fields.ngsolve_flow import NgsFlow
from cosolve.fields.ngsolve_solid import NgsSolid

__all__ = ["FieldSnapshot", "FieldSubsystem", "NgsFlow", "NgsSolid"]
