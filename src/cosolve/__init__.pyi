"""Every public name and the module it lives in, once: type checkers read this file, and so does `__init__.py`.

A name is imported from its module when it is first asked for, so that `import cosolve` stays light.
"""

from . import (
    analysis as analysis,
    errors as errors,
    fields as fields,
    fmi as fmi,
    mapping as mapping,
    multibody as multibody,
    plot as plot,
    remote as remote,
    structures as structures,
)
from .analysis.advice import (
    check as check,
)
from .accuracy.auto import (
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
)
from .engine.observer import (
    Observer as Observer,
)
from .errors import (
    CosolveError as CosolveError,
)
from .fmu.load import (
    load_fmu as load_fmu,
)
from .interface import (
    System as System,
)
from .interface.changes import (
    TunableInput as TunableInput,
)
from .interface.driven_inputs import (
    Table as Table,
)
from .io import (
    load_system as load_system,
)
from .io.resume import (
    resume as resume,
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
from .method import (
    Baumgarte as Baumgarte,
    ConstraintTreatment as ConstraintTreatment,
    DynamicStatic as DynamicStatic,
    GaussSeidel as GaussSeidel,
    Implicit as Implicit,
    Jacobi as Jacobi,
    LeaderFollower as LeaderFollower,
    Method as Method,
    SemiImplicit as SemiImplicit,
    StabilisedIndex2 as StabilisedIndex2,
    WeightedMultipliers as WeightedMultipliers,
)
from .accuracy.auto.choose import (
    choose as choose,
)
from .accuracy.error_bar import (
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
from .report import (
    write_report as write_report,
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
from .subsystem import (
    ApproximateJacobian as ApproximateJacobian,
    Dae as Dae,
    InterpolatedOutputs as InterpolatedOutputs,
    HybridOde as HybridOde,
    IntegratedInputs as IntegratedInputs,
    Linear as Linear,
    Ode as Ode,
    OneStep as OneStep,
    Pid as Pid,
    Port as Port,
    Sampled as Sampled,
    SecantJacobian as SecantJacobian,
    CallbackSubsystem as CallbackSubsystem,
    relaxed_prediction as relaxed_prediction,
    Static as Static,
    StaticResidual as StaticResidual,
    Subsystem as Subsystem,
    capabilities as capabilities,
)
from .subsystem.units import (
    Unit as Unit,
)
from .sweeps import (
    failed_runs as failed_runs,
    sweep as sweep,
)
from .viewer import (
    Live as Live,
    view as view,
)

__version__: str
