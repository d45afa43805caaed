"""cosolve couples simulation solvers: say how they touch, and run them together in time."""

from cosolve.errors import (
    CapabilityError,
    ConvergenceError,
    CosolveError,
    NonFiniteError,
    OutputFileError,
    SetupError,
    SimulationError,
    SingularInterfaceError,
    StepSizeError,
    SubsystemError,
)
from cosolve.corrector import Corrector, Newton
from cosolve.interface import System
from cosolve.method import GaussSeidel, Implicit, Jacobi, MasterSlave, Method, SemiImplicit
from cosolve.method.startup import KnownHistory, MasterSlaveStart, RisingDegree
from cosolve.result import Result
from cosolve.simulate import simulate
from cosolve.stepsize import Adaptive
from cosolve.subsystem import FreeRunning, Linear, Ode, Port, SelfDriven, Static, Subsystem, capabilities

__version__ = "0.1.0"
