"""cosolve couples simulation solvers: say how they touch, and run them together in time.

    import cosolve as cs

    system = cs.System({"one": one, "two": two})       # models, by name
    system.connect("one.x", "two.u")                   # also law, equations, constraint, map, set
    print(cs.check(system, cs.SemiImplicit(degree=1), H=0.01))
    result = cs.simulate(system, t_end=1.0, method=cs.SemiImplicit(degree=1), step=0.01)
    result["two.y"], result.plot("two.y"), result.save("run.h5")

models      Subsystem (write your own), Ode, Linear, Dae, Static, StaticResidual, StaticProcess, Pid, JaxOde, JaxStatic,
            SecondOrder, Multibody (a MultibodyModel), ExudynModel, Fmu, Isolated, Remote, FreeRunning, SelfDriven
joining     System, Joint, assemble, Port, At, Mesh, Mapping (mortar, dual_mortar, barycentric, nearest_neighbour,
            radial_basis, read_mesh)
methods     Jacobi, GaussSeidel, MasterSlave, SemiImplicit, Implicit, DynamicStatic; step=Adaptive(...);
            constraints: Baumgarte, WeightedMultipliers, StabilisedIndex2
correctors  Newton, NewtonKrylov, IqnIls, IqnImvj, Anderson, Broyden, Aitken, Relaxation, Secant, Damped
running     simulate, Stepper, sweep, Result, load
judging     check, critical_step, spectral_radius, stability_map, convergence, structure, check_jacobians, nrmse, wrmse
files       export_fmu, inspect_fmu, try_fmu, read_ssp, write_ssp; the command `cosolve` runs FMUs, SSPs and TOML files

`help(cs.simulate)` and so on has arguments and an example for each.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cosolve.analysis import (
    check,
    compare_linearisation,
    convergence,
    critical_step,
    estimate_stability,
    local_values,
    macro_map,
    nrmse,
    slope,
    spectral_radius,
    stability_map,
    structure,
    wrmse,
)
from cosolve.corrector import (
    Aitken,
    Anderson,
    Broyden,
    Corrector,
    Damped,
    IqnIls,
    IqnImvj,
    Newton,
    NewtonKrylov,
    Relaxation,
    Secant,
    optimal_factor,
)
from cosolve.engine.native import why_not_compiled
from cosolve.errors import (
    CapabilityError,
    ConvergenceError,
    CosolveError,
    EndOfSimulation,
    FmuWarning,
    NonFiniteError,
    OutputFileError,
    SetupError,
    SimulationError,
    SingularInterfaceError,
    StabilityWarning,
    StepSizeError,
    SubsystemError,
)
from cosolve.interface import System
from cosolve.interface.driving import Table
from cosolve.method import (
    Baumgarte,
    DynamicStatic,
    GaussSeidel,
    Implicit,
    Jacobi,
    MasterSlave,
    Method,
    SemiImplicit,
    StabilisedIndex2,
    WeightedMultipliers,
)
from cosolve.process.static_process import StaticProcess
from cosolve.result import Result, load
from cosolve.run import Pace, Snapshot, Stepper
from cosolve.run.simulate import simulate
from cosolve.run.startup import KnownHistory, MasterSlaveStart, RisingDegree
from cosolve.stepsize import Adaptive
from cosolve.subsystem import (
    ApproximateJacobian,
    Dae,
    FreeRunning,
    Linear,
    Ode,
    Pid,
    Port,
    SelfDriven,
    Static,
    StaticResidual,
    Subsystem,
    capabilities,
)
from cosolve.subsystem.units import Unit
from cosolve.version import VERSION

if TYPE_CHECKING:
    from cosolve.analysis.jacobians import check_jacobians
    from cosolve.fmu.co_simulation import Fmu
    from cosolve.fmu.inspection import Inspection, inspect_fmu
    from cosolve.fmu.trial import try_fmu
    from cosolve.io.crosscheck import crosscheck
    from cosolve.io.fmu_export import export_fmu
    from cosolve.io.ssp import read_ssp, write_ssp
    from cosolve.jax.ode import JaxOde
    from cosolve.jax.static import JaxStatic
    from cosolve.jax.tools import differentiate
    from cosolve.mapping import (
        Mapping,
        Mesh,
        barycentric,
        dual_mortar,
        mortar,
        nearest_neighbour,
        radial_basis,
        read_mesh,
    )
    from cosolve.multibody.coupling import Joint, assemble, constraint_residuals
    from cosolve.multibody.exudyn_model import ExudynModel
    from cosolve.multibody.model.model import MultibodyModel
    from cosolve.multibody.subsystem import Multibody
    from cosolve.process import Isolated, Remote
    from cosolve.structures import (
        At,
        SecondOrder,
        Structure,
        backward_euler,
        bdf2,
        central_differences,
        generalised_alpha,
        hht,
        trapezoidal,
    )
    from cosolve.sweeps import sweep

__version__ = VERSION

# Names for fields come from modules that load sparse linear algebra; they are imported when first asked for.
_LATER = {
    "cosolve.analysis.jacobians": ("check_jacobians",),
    "cosolve.sweeps": ("sweep",),
    "cosolve.multibody.coupling": ("Joint", "assemble", "constraint_residuals"),
    "cosolve.multibody.exudyn_model": ("ExudynModel",),
    "cosolve.mapping": (
        *("Mapping", "Mesh", "barycentric", "dual_mortar", "mortar", "nearest_neighbour", "radial_basis", "read_mesh"),
    ),
    "cosolve.io.crosscheck": ("crosscheck",),
    "cosolve.io.fmu_export": ("export_fmu",),
    "cosolve.io.ssp": ("read_ssp", "write_ssp"),
    "cosolve.fmu.trial": ("try_fmu",),
    "cosolve.fmu.inspection": ("Inspection", "inspect_fmu"),
    "cosolve.fmu.co_simulation": ("Fmu",),
    "cosolve.process": ("Isolated", "Remote"),
    "cosolve.jax.ode": ("JaxOde",),
    "cosolve.jax.static": ("JaxStatic",),
    "cosolve.jax.tools": ("differentiate",),
    "cosolve.multibody.model.model": ("MultibodyModel",),
    "cosolve.multibody.subsystem": ("Multibody",),
    "cosolve.structures": (
        *("At", "SecondOrder", "Structure", "backward_euler", "bdf2", "central_differences", "generalised_alpha"),
        *("hht", "trapezoidal"),
    ),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'cosolve' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, also those that are imported when first asked for."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__") and name.endswith("__"))])


__all__ = [
    "Adaptive",
    "Aitken",
    "Anderson",
    "ApproximateJacobian",
    "At",
    "Baumgarte",
    "Broyden",
    "CapabilityError",
    "ConvergenceError",
    "Corrector",
    "CosolveError",
    "Dae",
    "Damped",
    "DynamicStatic",
    "EndOfSimulation",
    "ExudynModel",
    "Fmu",
    "FmuWarning",
    "FreeRunning",
    "GaussSeidel",
    "Implicit",
    "Inspection",
    "IqnIls",
    "IqnImvj",
    "Isolated",
    "Jacobi",
    "JaxOde",
    "JaxStatic",
    "Joint",
    "KnownHistory",
    "Linear",
    "Mapping",
    "MasterSlave",
    "MasterSlaveStart",
    "Mesh",
    "Method",
    "Multibody",
    "MultibodyModel",
    "Newton",
    "NewtonKrylov",
    "NonFiniteError",
    "Ode",
    "OutputFileError",
    "Pace",
    "Pid",
    "Port",
    "Relaxation",
    "Remote",
    "Result",
    "RisingDegree",
    "Secant",
    "SecondOrder",
    "SelfDriven",
    "SemiImplicit",
    "SetupError",
    "SimulationError",
    "SingularInterfaceError",
    "Snapshot",
    "StabilisedIndex2",
    "StabilityWarning",
    "Static",
    "StaticProcess",
    "StaticResidual",
    "StepSizeError",
    "Stepper",
    "Structure",
    "Subsystem",
    "SubsystemError",
    "System",
    "Table",
    "Unit",
    "WeightedMultipliers",
    "assemble",
    "backward_euler",
    "barycentric",
    "bdf2",
    "capabilities",
    "central_differences",
    "check",
    "check_jacobians",
    "compare_linearisation",
    "constraint_residuals",
    "convergence",
    "critical_step",
    "crosscheck",
    "differentiate",
    "dual_mortar",
    "estimate_stability",
    "export_fmu",
    "generalised_alpha",
    "hht",
    "inspect_fmu",
    "load",
    "local_values",
    "macro_map",
    "mortar",
    "nearest_neighbour",
    "nrmse",
    "optimal_factor",
    "radial_basis",
    "read_mesh",
    "read_ssp",
    "simulate",
    "slope",
    "spectral_radius",
    "stability_map",
    "structure",
    "sweep",
    "trapezoidal",
    "try_fmu",
    "why_not_compiled",
    "write_ssp",
    "wrmse",
]
