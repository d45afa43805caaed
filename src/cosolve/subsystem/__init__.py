"""What is coupled: the subsystem contract (`base.py`), its ports, and the small kinds, one per file.

Linear systems, ODEs, DAEs, static models, a PID controller, and wrappers around other subsystems. Larger kinds have
packages of their own: `fmu`, `multibody`, `structures`, `jax`, `process`.
"""

from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.base import Subsystem, capabilities, has_capability
from cosolve.subsystem.dae import Dae
from cosolve.subsystem.hybrid_ode import HybridOde
from cosolve.subsystem.integrated import IntegratedInputs
from cosolve.subsystem.interpolated_outputs import CallbackSubsystem, InterpolatedOutputs
from cosolve.subsystem.linear import Linear
from cosolve.subsystem.ode import Ode
from cosolve.subsystem.one_step import OneStep
from cosolve.subsystem.pid import Pid
from cosolve.subsystem.port import Port, Ports
from cosolve.subsystem.relaxed_prediction import relaxed_prediction
from cosolve.subsystem.sampled import Sampled
from cosolve.subsystem.secant_jacobian import ApproximateJacobian, SecantJacobian
from cosolve.subsystem.static import Static
from cosolve.subsystem.static_residual import StaticResidual
