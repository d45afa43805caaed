"""cosolve couples simulation solvers: say how they touch, and run them together in time.

    import cosolve as cs

    system = cs.System({"one": one, "two": two})       # models, by name
    system.connect("one.x", "two.u")                   # also law, equations, constraint, map, set
    print(cs.check(system, cs.SemiImplicit(degree=1), step=0.01))
    result = cs.simulate(system, t_end=1.0, method=cs.SemiImplicit(degree=1), step=0.01)
    result["two.y"], result.plot("two.y"), result.save("run.h5")

models      Subsystem (write your own), Ode, HybridOde, Linear, Dae, Static, StaticResidual, StaticProcess, OneStep,
            Pid, JaxOde, JaxStatic, load_fmu, SecondOrder (of a Structure), MultibodySubsystem (of a MultibodyModel),
            Isolated, Remote, FreeRunning, SelfDriven, OwnLoop and Participants (programs), IntegratedInputs,
            weak_coupling, Sampled (a digital controller), Nested (a System inside a System); parts of right-hand sides
            (contact, friction, circuits): cs.elements
fields      FieldSubsystem (bring your own solver), NgsFlow, NgsSolid, LatticeBoltzmannCylinder and
            FiniteElementCylinder (in a CrossFlow), OpenFoam, CalculiX, Kratos, DolfinxSolid; files: FieldFile,
            read_fields
joining     System, Joint, assemble (of each MultibodyModel, ExudynModel), Port, At, Mesh, FieldMapping (mortar,
            dual_mortar, barycentric, nearest_neighbour, radial_basis, partition_of_unity, field_to_loads,
            loads_to_field, read_mesh), mapping_quality, draw_mapping
methods     Jacobi, GaussSeidel, LeaderFollower, SemiImplicit, Implicit, DynamicStatic, or by name ("implicit:2");
            step=Adaptive(...); constraints: Baumgarte, WeightedMultipliers, StabilisedIndex2
correctors  Newton, NewtonKrylov, IqnIls, IqnImvj, Anderson, Broyden, Aitken, Relaxation, Secant, LineSearch
running     simulate (with rtol=1e-4 alone it chooses method and step), choose, resume (after a kill), Stepper, Result,
            load_result; sweep (gives an xarray.Dataset), failures, plot_map; write_report, write_gif
fields      FieldSubsystem (meshes under ports), ElasticSolid; FieldSnapshot, simulate(fields=FieldFile(...)) writes
            them, read_fields, FieldSeries, draw_field, write_field_gif
judging     check, critical_step, spectral_radius, stability_map, convergence, order_estimate, error_bar,
            coupling_structure, check_jacobians, nrmse, wrmse
files       load_system (TOML), read_ssp, write_ssp, inspect_fmu, try_fmu, export_fmu; the command `cosolve` runs them

`help(cs.simulate)` and so on has arguments and an example for each.
"""

import sys
from typing import Any

import lazy_loader

from cosolve.version import VERSION

__version__ = VERSION

_load, _names, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """A public name of `__init__.pyi`, imported when it is first asked for."""
    if name not in __all__:  # with name and obj Python adds "Did you mean: 'simulate'?"
        raise AttributeError(f"module 'cosolve' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    return _load(name)


def __dir__() -> list[str]:
    """The public names, and what every module has."""
    return sorted({*_names(), *(name for name in globals() if name.startswith("__") and name.endswith("__"))})
