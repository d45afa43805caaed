"""cosolve couples simulation solvers: say how they touch, and run them together in time.

    import cosolve as cs

    system = cs.System({"one": one, "two": two})       # models, by name
    system.connect("one.x", "two.u")                   # also law, equations, constraint, map, set
    print(cs.check(system, cs.SemiImplicit(degree=1), step=0.01))
    result = cs.simulate(system, t_end=1.0, method=cs.SemiImplicit(degree=1), step=0.01)
    result["two.y"], result.plot("two.y"), result.save("run.h5")

models      Subsystem (write your own), Ode, HybridOde, Linear, Dae, Static, StaticResidual, OneStep, Pid, JaxOde,
            JaxStatic, load_fmu, IntegratedInputs, InterpolatedOutputs, CallbackSubsystem, relaxed_prediction,
            Sampled (a digital controller), Nested (a System inside a System)
joining     System, Port, Table, TunableInput
methods     Jacobi, GaussSeidel, LeaderFollower, SemiImplicit, Implicit, DynamicStatic, or by name ("implicit:2");
            step=Adaptive(...); constraints: Baumgarte, WeightedMultipliers, StabilisedIndex2
correctors  Newton, NewtonKrylov, IqnIls, IqnImvj, Anderson, Broyden, Aitken, Relaxation, Secant, LineSearch
running     check, simulate (with rtol=1e-4 alone it chooses method and step), choose, resume (after a kill), Stepper,
            Observer, Live, Result, load_result, error_bar, view, write_report; sweep (gives an xarray.Dataset),
            failed_runs
files       load_system (TOML); the command `cosolve` runs them

More in namespaces, imported when they are first used:

cs.analysis    stability, convergence, linearisation, coupling structure
cs.errors      every error and warning; CosolveError is the base
cs.fields      field solvers and adapters (OpenFoam, CalculiX, Kratos), files of fields
cs.fmi         inspect, check and export FMUs; SSP
cs.mapping     Mesh, mappings between meshes
cs.multibody   MultibodyModel, MultibodySubsystem, Joint
cs.plot        pictures and animations
cs.remote      subsystems in other processes, on other machines, in programs of their own
cs.structures  SecondOrder, Structure, Beam

`help(cs.simulate)` and so on has arguments and an example for each.
"""

from cosolve.stubs import names_in_stub
from cosolve.version import VERSION

__version__ = VERSION
__getattr__, __dir__, __all__ = names_in_stub(__name__, __file__)
