"""Joints between bodies of different subsystems: flexible ones by force laws, rigid ones by multipliers."""

from cosolve.interface.joints.assembly import assemble
from cosolve.interface.joints.host import JointHost
from cosolve.interface.joints.joint import Joint
from cosolve.interface.joints.residuals import constraint_residuals

__all__ = ["Joint", "JointHost", "assemble", "constraint_residuals"]
