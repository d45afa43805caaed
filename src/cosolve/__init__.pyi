"""Every public name and the module it lives in, once: type checkers read this file, and so does `__init__.py`.

A name is imported from its module when it is first asked for, so that `import cosolve` stays light.
"""

from . import (
    elements as elements,
)
from .analysis import (
    check as check,
    compare_linearisation as compare_linearisation,
    convergence as convergence,
    critical_step as critical_step,
    estimate_stability as estimate_stability,
    local_values as local_values,
    macro_map as macro_map,
    nrmse as nrmse,
    order_estimate as order_estimate,
    slope as slope,
    spectral_radius as spectral_radius,
    stability_map as stability_map,
    coupling_structure as coupling_structure,
    wrmse as wrmse,
)
from .analysis.jacobians import (
    check_jacobians as check_jacobians,
)
from .auto import (
    Choice as Choice,
)
from .corrector import (
    Aitken as Aitken,
    Anderson as Anderson,
    Broyden as Broyden,
    Corrector as Corrector,
    InterfaceProblem as InterfaceProblem,
    LineSearch as LineSearch,
    IqnIls as IqnIls,
    IqnImvj as IqnImvj,
    Newton as Newton,
    NewtonKrylov as NewtonKrylov,
    Relaxation as Relaxation,
    Secant as Secant,
    optimal_factor as optimal_factor,
)
from .engine.native import (
    why_not_compiled as why_not_compiled,
)
from .errors import (
    AccuracyWarning as AccuracyWarning,
    CapabilityError as CapabilityError,
    ConvergenceError as ConvergenceError,
    CosolveError as CosolveError,
    EndOfSimulation as EndOfSimulation,
    FmuWarning as FmuWarning,
    NonFiniteError as NonFiniteError,
    OutputFileError as OutputFileError,
    SetupError as SetupError,
    SimulationError as SimulationError,
    SingularInterfaceError as SingularInterfaceError,
    StabilityWarning as StabilityWarning,
    StepSizeError as StepSizeError,
    SubsystemError as SubsystemError,
)
from .fields import (
    ElasticSolid as ElasticSolid,
    FieldFile as FieldFile,
    FieldSeries as FieldSeries,
    FieldSnapshot as FieldSnapshot,
    FieldSubsystem as FieldSubsystem,
    read_fields as read_fields,
)
from .fields.cross_flow import (
    CrossFlow as CrossFlow,
)
from .fields.lattice_boltzmann import (
    LatticeBoltzmannCylinder as LatticeBoltzmannCylinder,
)
from .fields.ngsolve_cylinder import (
    FiniteElementCylinder as FiniteElementCylinder,
)
from .fields.adapters.calculix import (
    CalculiX as CalculiX,
)
from .fields.adapters.dolfinx_solid import (
    DolfinxSolid as DolfinxSolid,
)
from .fields.adapters.kratos import (
    Kratos as Kratos,
)
from .fields.adapters.openfoam import (
    OpenFoam as OpenFoam,
)
from .fields.ngsolve_flow import (
    NgsFlow as NgsFlow,
)
from .fields.ngsolve_solid import (
    NgsSolid as NgsSolid,
)
from .fmu.co_simulation import (
    CoSimulationFmu as CoSimulationFmu,
)
from .fmu.inspection import (
    Inspection as Inspection,
    inspect_fmu as inspect_fmu,
)
from .fmu.load import (
    load_fmu as load_fmu,
)
from .fmu.model_exchange import (
    ModelExchangeFmu as ModelExchangeFmu,
)
from .fmu.trial import (
    try_fmu as try_fmu,
)
from .interface import (
    System as System,
)
from .interface.dial import (
    Dial as Dial,
)
from .interface.driving import (
    Table as Table,
)
from .io import (
    load_system as load_system,
)
from .io.ranks import (
    load_on_ranks as load_on_ranks,
)
from .io.crosscheck import (
    crosscheck as crosscheck,
)
from .io.fmu_export import (
    export_fmu as export_fmu,
)
from .io.resume import (
    resume as resume,
)
from .io.ssp import (
    read_ssp as read_ssp,
    write_ssp as write_ssp,
)
from .jax.ode import (
    JaxOde as JaxOde,
)
from .jax.static import (
    JaxStatic as JaxStatic,
)
from .jax.tools import (
    jax_derivative as jax_derivative,
)
from .mapping import (
    FieldMapping as FieldMapping,
    Mesh as Mesh,
    barycentric as barycentric,
    dual_mortar as dual_mortar,
    field_to_loads as field_to_loads,
    loads_to_field as loads_to_field,
    elastic_part as elastic_part,
    mapping_quality as mapping_quality,
    mortar as mortar,
    nearest_neighbour as nearest_neighbour,
    partition_of_unity as partition_of_unity,
    radial_basis as radial_basis,
    read_mesh as read_mesh,
    rigid_part as rigid_part,
)
from .method import (
    Baumgarte as Baumgarte,
    ConstraintTreatment as ConstraintTreatment,
    DynamicStatic as DynamicStatic,
    GaussSeidel as GaussSeidel,
    Implicit as Implicit,
    Jacobi as Jacobi,
    LeaderFollower as LeaderFollower,
    MasterSlave as MasterSlave,
    Method as Method,
    SemiImplicit as SemiImplicit,
    StabilisedIndex2 as StabilisedIndex2,
    WeightedMultipliers as WeightedMultipliers,
)
from .participants.compiled_client import (
    build_participant_library as build_participant_library,
)
from .participants.own_loop import (
    OwnLoop as OwnLoop,
)
from .precice.subsystems import (
    Participants as Participants,
)
from .run.choose import (
    choose as choose,
)
from .run.crossing_costs import (
    crossing_costs as crossing_costs,
)
from .run.error_bar import (
    error_bar as error_bar,
)
from .run.known_past import (
    KnownHistory as KnownHistory,
    KnownRates as KnownRates,
)
from .run.nested import (
    Nested as Nested,
)
from .run.startup import (
    GradedStart as GradedStart,
    LeaderFollowerStart as LeaderFollowerStart,
    RisingDegree as RisingDegree,
    Startup as Startup,
)
from .multibody.coupling import (
    Joint as Joint,
    assemble as assemble,
    constraint_residuals as constraint_residuals,
)
from .multibody.exudyn_model import (
    ExudynModel as ExudynModel,
)
from .multibody.model.model import (
    MultibodyModel as MultibodyModel,
)
from .multibody.subsystem import (
    MultibodySubsystem as MultibodySubsystem,
)
from .process import (
    Isolated as Isolated,
    Ranks as Ranks,
    Remote as Remote,
    on_ranks as on_ranks,
)
from .process.static_process import (
    StaticProcess as StaticProcess,
)
from .report import (
    write_report as write_report,
)
from .report.animation import (
    draw_strobe as draw_strobe,
    write_gif as write_gif,
)
from .report.field_pictures import (
    draw_field as draw_field,
    write_field_gif as write_field_gif,
)
from .report.mapping_pictures import (
    draw_mapping as draw_mapping,
)
from .result import (
    ErrorBar as ErrorBar,
    Note as Note,
    Result as Result,
    load_result as load_result,
)
from .run import (
    Pace as Pace,
    Snapshot as Snapshot,
    Stepper as Stepper,
)
from .run.simulate import (
    simulate as simulate,
)
from .signal import (
    InputSignal as InputSignal,
    Polynomial as Polynomial,
)
from .stepsize import (
    Adaptive as Adaptive,
)
from .structures import (
    At as At,
    SecondOrder as SecondOrder,
    Structure as Structure,
    StructureIntegrator as StructureIntegrator,
)
from .structures.beam import (
    Beam as Beam,
)
from .structures.truss import (
    Bar as Bar,
)
from .subsystem import (
    ApproximateJacobian as ApproximateJacobian,
    Dae as Dae,
    FreeRunning as FreeRunning,
    HybridOde as HybridOde,
    IntegratedInputs as IntegratedInputs,
    Linear as Linear,
    Ode as Ode,
    OneStep as OneStep,
    Pid as Pid,
    Port as Port,
    Sampled as Sampled,
    SecantJacobian as SecantJacobian,
    SelfDriven as SelfDriven,
    weak_coupling as weak_coupling,
    Static as Static,
    StaticResidual as StaticResidual,
    Subsystem as Subsystem,
    capabilities as capabilities,
)
from .subsystem.units import (
    Unit as Unit,
)
from .sweeps import (
    failures as failures,
    plot_map as plot_map,
    sweep as sweep,
)
from .viewer import (
    Live as Live,
    view as view,
    widget as widget,
)

__version__: str
