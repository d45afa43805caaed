"""cosolve couples simulation solvers: say how they touch, and run them together in time."""

from cosolve.analysis import (
    check,
    compare_linearisation,
    convergence,
    critical_step,
    local_values,
    macro_map,
    nrmse,
    slope,
    spectral_radius,
    stability_map,
    structure,
    wrmse,
)
from cosolve.corrector import Corrector, Newton
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
from cosolve.interface import System
from cosolve.method import DynamicStatic, GaussSeidel, Implicit, Jacobi, MasterSlave, Method, SemiImplicit
from cosolve.method.startup import KnownHistory, MasterSlaveStart, RisingDegree
from cosolve.result import Result, load
from cosolve.simulate import simulate
from cosolve.stepsize import Adaptive
from cosolve.subsystem import (
    Dae,
    FreeRunning,
    Linear,
    Ode,
    Port,
    SelfDriven,
    Static,
    StaticProcess,
    StaticResidual,
    Subsystem,
    capabilities,
)

__version__ = "0.1.0"

__all__ = [
    "Adaptive",
    "CapabilityError",
    "ConvergenceError",
    "Corrector",
    "CosolveError",
    "Dae",
    "DynamicStatic",
    "FreeRunning",
    "GaussSeidel",
    "Implicit",
    "Jacobi",
    "KnownHistory",
    "Linear",
    "MasterSlave",
    "MasterSlaveStart",
    "Method",
    "Newton",
    "NonFiniteError",
    "Ode",
    "OutputFileError",
    "Port",
    "Result",
    "RisingDegree",
    "SelfDriven",
    "SemiImplicit",
    "SetupError",
    "SimulationError",
    "SingularInterfaceError",
    "Static",
    "StaticProcess",
    "StaticResidual",
    "StepSizeError",
    "Subsystem",
    "SubsystemError",
    "System",
    "capabilities",
    "check",
    "compare_linearisation",
    "convergence",
    "critical_step",
    "load",
    "local_values",
    "macro_map",
    "nrmse",
    "simulate",
    "slope",
    "spectral_radius",
    "stability_map",
    "structure",
    "wrmse",
]
