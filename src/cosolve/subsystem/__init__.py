"""What is coupled: the subsystem contract, then one kind per file. Of cosolve it imports only the errors."""

from cosolve.subsystem.approximate import ApproximateJacobian
from cosolve.subsystem.base import InputSignal, Subsystem, capabilities, has_capability
from cosolve.subsystem.dae import Dae
from cosolve.subsystem.free_running import FreeRunning, SelfDriven
from cosolve.subsystem.linear import Linear
from cosolve.subsystem.ode import Ode
from cosolve.subsystem.pid import Pid
from cosolve.subsystem.port import Matrix, Port, Ports, Vector
from cosolve.subsystem.static import Static
from cosolve.subsystem.static_process import StaticProcess
from cosolve.subsystem.static_residual import StaticResidual

__all__ = [
    "ApproximateJacobian",
    "Dae",
    "FreeRunning",
    "InputSignal",
    "Linear",
    "Matrix",
    "Ode",
    "Pid",
    "Port",
    "Ports",
    "SelfDriven",
    "Static",
    "StaticProcess",
    "StaticResidual",
    "Subsystem",
    "Vector",
    "capabilities",
    "has_capability",
]
