"""What an FMU is, what it can do, and which coupling methods it can take part in, read from its description alone.

The library inside the archive is not loaded: looking at an unknown FMU runs none of its code.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosolve.basics.wording import listed
from cosolve.errors import SetupError
from cosolve.fmu.archive import library, unpack
from cosolve.fmu.description import (
    CO_SIMULATION,
    MODEL_EXCHANGE,
    Description,
    Kind,
    Variable,
    read_description,
)
from cosolve.fmu.options import clocks_that_stand
from cosolve.fmu.tables import Printed
from cosolve.fmu.values import is_numeric

if TYPE_CHECKING:
    from rich.console import RenderableType

_SHOWN = (
    ("canGetAndSetFMUState", "saves and restores its state"),
    ("canSerializeFMUState", "writes its state to bytes"),
    ("providesDirectionalDerivatives", "gives directional derivatives"),
    ("providesAdjointDerivatives", "gives adjoint derivatives"),
    ("canInterpolateInputs", "takes input derivatives"),
    ("providesIntermediateUpdate", "asks for inputs inside a step"),
    ("maxOutputDerivativeOrder", "gives output derivatives up to order"),
    ("canHandleVariableCommunicationStepSize", "takes steps of changing length"),
    ("mightReturnEarlyFromDoStep", "may return early from a step"),
    ("hasEventMode", "has an event mode"),
    ("needsExecutionTool", "needs its tool to run"),
    ("canBeInstantiatedOnlyOncePerProcess", "only one instance per process"),
)
_ONLY_2, _ONLY_3 = (
    ("canInterpolateInputs",),
    ("providesAdjointDerivatives", "providesIntermediateUpdate", "mightReturnEarlyFromDoStep", "hasEventMode"),
)
_STEPS_ONLY = (
    *("canInterpolateInputs", "providesIntermediateUpdate", "maxOutputDerivativeOrder", "hasEventMode"),
    *("canHandleVariableCommunicationStepSize", "mightReturnEarlyFromDoStep"),
)

_NOT_WRITTEN = "its state cannot be written to a file (canSerializeFMUState)"
_BURDENS = ("needs its tool to run", "only one instance per process")  # good where they are not so
_MANY = 40  # variables shown per table


@dataclass(frozen=True)
class Verdict:
    """Whether a coupling method can use the FMU, and why."""

    method: str
    possible: bool
    reason: str


@dataclass(frozen=True)
class Inspection(Printed):
    """What `inspect_fmu` found; `print` it or take the fields."""

    file: str
    name: str
    fmi: str
    kinds: tuple[str, ...]
    tool: str
    description: str
    inputs: tuple[dict[str, Any], ...]
    outputs: tuple[dict[str, Any], ...]
    parameters: tuple[dict[str, Any], ...]
    others: int
    states: int
    capabilities: dict[str, bool | int]
    methods: tuple[Verdict, ...]
    remarks: tuple[str, ...]
    experiment: dict[str, float] = field(default_factory=dict)  # DefaultExperiment: startTime, stopTime, ...

    @property
    def main_kind(self) -> str:
        """The kind that `methods` is about."""
        return CO_SIMULATION if CO_SIMULATION in self.kinds else MODEL_EXCHANGE

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def rendered(self) -> list[RenderableType]:
        return _rendered(self)


def inspect_fmu(file: str | Path) -> Inspection:
    """Look at an FMU without running it.

    >>> import cosolve as cs
    >>> cs.inspect_fmu("missing.fmu")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: there is no file 'missing.fmu'; give the path of an FMU
    """
    folder = unpack(file)
    read = read_description(folder)
    flags = read.kinds.get(CO_SIMULATION) or read.kinds.get(MODEL_EXCHANGE) or Kind("")
    remarks = []
    try:
        library(folder, read.fmi, flags.identifier, file)
    except SetupError as error:
        remarks.append(str(error))
    remarks += _no_ports(read)
    remarks += _complaints(folder)
    parameters = read.of("parameter", "structuralParameter")
    shown = {v.name for v in (*read.of("input"), *read.of("output"), *parameters)}
    return Inspection(
        file=str(file),
        name=read.name,
        fmi=read.version,
        kinds=tuple(read.kinds),
        tool=read.tool,
        description=read.description,
        inputs=tuple(_row(v) for v in read.of("input") if is_numeric(v, read.fmi)),
        outputs=tuple(_row(v) for v in read.of("output") if is_numeric(v, read.fmi)),
        parameters=tuple(_row(v) for v in parameters),
        others=sum(name not in shown for name in read.variables),
        states=sum(v.length for v in read.states),
        capabilities=_capabilities(read, flags),
        methods=tuple(_verdicts(read, flags)),
        remarks=tuple(remarks),
        experiment=dict(read.experiment),
    )


def _no_ports(read: Description) -> list[str]:
    """What an FMU exchanges and cosolve does not."""
    found = []
    for kind in ("Binary", "String"):
        names = [v.name for v in read.of("input", "output") if v.type == kind]
        if names:
            found.append(f"no ports, since only numbers are exchanged: {listed(names, 3)} ({kind})")
    return found


def _complaints(folder: Path) -> list[str]:
    """What FMPy's validation says of the description, where FMPy is installed."""
    try:
        from fmpy.model_description import read_model_description
    except ImportError:
        return ["the description is not validated against its schema; that takes FMPy, pip install cosolve[validate]"]
    try:
        read_model_description(str(folder), validate=True)
    except Exception as error:
        problems = [str(problem).strip() for problem in getattr(error, "problems", [error])]
        shown = [problem.splitlines()[0] for problem in problems if problem]
        more = [f"and {len(shown) - 5} more"] if len(shown) > 5 else []
        return [f"FMPy's validation: {problem}" for problem in (*shown[:5], *more)]
    return []


def _row(v: Variable) -> dict[str, Any]:
    size = "" if not v.shape else " x ".join(str(n) for n in v.shape)
    return {
        "name": v.name,
        "type": v.type,
        "size": size,
        "unit": v.unit,
        "start": v.start or "",
        "variability": v.variability,
        "description": v.description,
    }


def _capabilities(read: Description, flags: Kind) -> dict[str, bool | int]:
    hidden = {*(_ONLY_3 if read.fmi == 2 else _ONLY_2)}
    if CO_SIMULATION not in read.kinds:
        hidden |= {*_STEPS_ONLY}
    return {
        text: flags.number(flag) if flag == "maxOutputDerivativeOrder" else flags.has(flag)
        for flag, text in _SHOWN
        if flag not in hidden
    }


def _verdicts(read: Description, flags: Kind) -> list[Verdict]:
    if why := clocks_that_stand(read):
        return [Verdict("all methods", False, why)]
    if CO_SIMULATION in read.kinds:
        return _of_co_simulation(read, flags)
    if MODEL_EXCHANGE in read.kinds:
        return _of_model_exchange(read, flags)
    return [Verdict("all methods", False, f"made for {', '.join(read.kinds) or 'nothing'}, which cosolve does not run")]


def _of_co_simulation(read: Description, flags: Kind) -> list[Verdict]:
    back = flags.has("canGetAndSetFMUState")
    floats = [v for v in read.of("input") if v.is_float]
    asks = flags.has("providesIntermediateUpdate") and any(v.can_set_between for v in floats)
    follows = flags.has("canInterpolateInputs") if read.fmi == 2 else asks
    signal = "it follows input polynomials inside the step" if follows else "inputs are held in a step (see substeps=)"
    no_way_back = "it cannot go back to the start of a step (canGetAndSetFMUState); use Jacobi or GaussSeidel"
    derives = flags.has("providesDirectionalDerivatives") or flags.has("providesAdjointDerivatives")
    if derives and read.states:
        jacobian = "with Jacobians over the step from its derivatives"
    else:
        why = "it does not show its states" if derives else "it gives no derivatives"
        jacobian = f"with difference quotients, one more step per input ({why})"
    varies = flags.has("canHandleVariableCommunicationStepSize")
    adaptive = (
        "it takes steps of one length only (canHandleVariableCommunicationStepSize); use a constant step"
        if not varies
        else "rejected steps are repeated"
        if back
        else "errors steer the next step, but a step cannot be repeated"
    )
    state = flags.has("canSerializeFMUState")
    return [
        Verdict("Jacobi", True, signal),
        Verdict("GaussSeidel", True, signal),
        Verdict("SemiImplicit", back, jacobian if back else no_way_back),
        Verdict("Implicit", back, jacobian if back else no_way_back),
        Verdict("LeaderFollower, following", True, signal),
        Verdict("LeaderFollower, as leader", False, "co-simulation FMUs do not tell their internal steps"),
        Verdict("DynamicStatic", False, "it integrates itself and does not show its equations; use Implicit"),
        Verdict("Adaptive steps", varies, adaptive),
        Verdict(
            "saved runs",
            back and state,
            "its state can be written to a file" if back and state else _NOT_WRITTEN,
        ),
    ]


def _of_model_exchange(read: Description, flags: Kind) -> list[Verdict]:
    """What `fmu/model_exchange.py` makes of it."""
    smooth = not read.event_indicators and all(v.variability != "discrete" for v in read.variables.values())
    back = smooth or flags.has("canGetAndSetFMUState")
    solver = "integrated by cosolve's solvers, which see the whole input polynomial"
    derives = flags.has("providesDirectionalDerivatives") or flags.has("providesAdjointDerivatives")
    how = "with Jacobians from its derivatives" if derives else "with difference quotients (it gives no derivatives)"
    no_way_back = "it has events and cannot save its state (canGetAndSetFMUState); use Jacobi or GaussSeidel"
    state = flags.has("canSerializeFMUState") and flags.has("canGetAndSetFMUState")
    return [
        Verdict("Jacobi", True, solver),
        Verdict("GaussSeidel", True, solver),
        Verdict("SemiImplicit", back, how if back else no_way_back),
        Verdict("Implicit", back, how if back else no_way_back),
        Verdict("LeaderFollower", True, "as follower, or as leader with one of the native solvers"),
        Verdict("DynamicStatic", smooth, "it shows its equations" if smooth else "it has events; use Implicit"),
        Verdict("Adaptive steps", True, "rejected steps are repeated" if back else "a step cannot be repeated"),
        Verdict("saved runs", state, "its state can be written to a file" if state else _NOT_WRITTEN),
    ]


def _experiment(found: Inspection) -> str:
    """DefaultExperiment in words."""
    given = {key: f"{value:g}" for key, value in found.experiment.items()}
    parts = [f"t = {given.get('startTime', '0')} ... {given['stopTime']}"] if "stopTime" in given else []
    parts += [f"start {given['startTime']}"] if "startTime" in given and not parts else []
    parts += [
        f"{word} {given[key]}" for key, word in (("stepSize", "step"), ("tolerance", "tolerance")) if key in given
    ]
    return f"default experiment: {', '.join(parts) or 'none'}"


# -- pictures ----------------------------------------------------------------------------------------------------


def _rendered(found: Inspection) -> list[RenderableType]:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    def table(title: str, *headings: str) -> Table:
        made = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
        for heading in headings:
            made.add_column(heading, overflow="fold")
        return made

    def mark(yes: object) -> Text:
        return Text("yes" if yes is True else "no" if yes is False else str(yes), style="green" if yes else "red")

    head = Text.assemble((found.name, "bold"), f"  FMI {found.fmi}, {' and '.join(found.kinds) or 'of no kind'}")
    if found.description:
        head.append(f"\n{found.description}")
    size = f"{found.states} continuous states shown, {found.others} more variables\n{_experiment(found)}"
    head.append(
        f"\n{found.file}" + (f", made by {found.tool}" if found.tool else "") + f"\n{size}\n",
        style="dim",
    )
    parts: list[RenderableType] = [head]
    for title, rows in (("Inputs", found.inputs), ("Outputs", found.outputs), ("Parameters", found.parameters)):
        if not rows:
            parts.append(Text(f"{title}: none\n", style="bold"))
            continue
        columns = ["name", "type", *(["size"] if any(r["size"] for r in rows) else []), "unit", "start"]
        columns += ["variability"] if title == "Parameters" else []
        columns += ["description"] if any(r["description"] for r in rows) else []
        variables = table(title, *columns)
        for row in rows[:_MANY]:
            variables.add_row(*(str(row[column]) for column in columns))
        parts.append(variables)
        if len(rows) > _MANY:
            parts.append(Text(f"... and {len(rows) - _MANY} more (--json shows all)\n", style="dim"))
    abilities = table("What it can do", "", "")
    abilities.show_header = False
    for text, value in found.capabilities.items():
        abilities.add_row(text, mark(value) if text not in _BURDENS else Text("yes" if value else "no"))
    methods = table("Coupling methods", "method", "", "why")
    for verdict in found.methods:
        methods.add_row(verdict.method, mark(verdict.possible), verdict.reason)
    parts += [abilities, methods]
    if found.remarks:
        parts.append(Text("\n".join(f"! {remark}" for remark in found.remarks), style="yellow"))
    return parts
