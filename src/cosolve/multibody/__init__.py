"""Multibody systems: bodies and joints, equations of motion with drift remedies, joints between solvers.

`model` is what users describe (`MultibodyModel`), as arrays in the end; `equations` are compiled; `subsystem` makes of
a model what goes into a `System` (`MultibodySubsystem`); `coupling` joins bodies of different subsystems, also those of
Exudyn. For users: docs/multibody.md.
"""

from cosolve.stubs import names_in_stub

__getattr__, __dir__, __all__ = names_in_stub(__name__, __file__)
