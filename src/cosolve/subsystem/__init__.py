"""What is coupled: the subsystem contract, then one kind per file. The contract is `base.py`."""

from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.approximate import ApproximateJacobian
from cosolve.subsystem.base import Subsystem, capabilities, has_capability
from cosolve.subsystem.dae import Dae
from cosolve.subsystem.free_running import FreeRunning, SelfDriven
from cosolve.subsystem.linear import Linear
from cosolve.subsystem.ode import Ode
from cosolve.subsystem.pid import Pid
from cosolve.subsystem.port import Port, Ports
from cosolve.subsystem.static import Static
from cosolve.subsystem.static_residual import StaticResidual

__all__ = [
    "ApproximateJacobian",
    "Dae",
    "FreeRunning",
    "InputSignal",
    "Linear",
    "Ode",
    "Pid",
    "Port",
    "Ports",
    "SelfDriven",
    "Static",
    "StaticResidual",
    "Subsystem",
    "capabilities",
    "has_capability",
]
