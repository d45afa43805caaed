"""Joints between bodies of different subsystems: flexible ones by force laws, rigid ones by multipliers."""

from cosolve.multibody.coupling.assembly import assemble
from cosolve.multibody.coupling.host import JointHost
from cosolve.multibody.coupling.joint import Joint
from cosolve.multibody.coupling.residuals import constraint_residuals
