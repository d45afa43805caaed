"""What an FMU is, what it can do, and which coupling methods it can take part in, read from its description alone.

The library inside the archive is not loaded: looking at an unknown FMU runs none of its code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosolve.basics.registry import usable
from cosolve.basics.wording import listed
from cosolve.errors import SetupError
from cosolve.fmu.archive import library, unpack
from cosolve.fmu.description import CO_SIMULATION, MODEL_EXCHANGE, Description, Kind, Variable, read_description
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
    """Whether a coupling method can use an FMU.

    Parameters
    ----------
    method : str
        The method.
    possible : bool
        Whether it can.
    reason : str
        Why.
    needs : tuple of str, default ()
        Capabilities that the method needs of it.
    """

    method: str
    possible: bool
    reason: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Inspection(Printed):
    """What `inspect_fmu` found; `print` shows it as tables.

    Parameters
    ----------
    file : str
        The FMU.
    name : str
        Name of the model.
    fmi : str
        Version of FMI.
    kinds : tuple of str
        What it is made for: "co-simulation", "model exchange" ...
    tool : str
        Tool that made it.
    description : str
        What it says about itself.
    inputs, outputs, parameters : tuple of dict
        Variables with name, type, size, unit, start value, variability and description.
    others : int
        Number of other variables.
    states : int
        Number of continuous states.
    capabilities : dict
        Capabilities in words, and whether it has them.
    methods : tuple of Verdict
        Each coupling method, whether it is possible, and why.
    remarks : tuple of str
        What is wrong or missing.
    experiment : dict of str to float
        The DefaultExperiment: `startTime`, `stopTime`, ...

    Examples
    --------
    >>> import cosolve as cs
    >>> found = Inspection("a.fmu", "a", "2.0", ("co-simulation",), "", "", (), (), (), 0, 0, {}, (), ())
    >>> found.main_kind
    'co-simulation'
    """

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
        """Return it as plain values, for JSON.

        Returns
        -------
        dict
            The fields by name.
        """
        return asdict(self)

    def rendered(self) -> list[RenderableType]:
        return _rendered(self)


def inspect_fmu(file: str | Path) -> Inspection:
    """Read what an FMU is and what it can do, without running its code.

    Parameters
    ----------
    file : str or Path
        The FMU.

    Returns
    -------
    Inspection
        Variables, capabilities, and which coupling methods it can take part in.

    Raises
    ------
    SetupError
        If the file is no FMU.

    Examples
    --------
    >>> import cosolve as cs
    >>> cs.fmi.inspect_fmu("missing.fmu")
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
        states=read.state_count,
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
    no_way_back = f"it cannot go back to the start of a step ({read.way_back})"
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
    reasons = {
        "": signal,
        "rollback": jacobian if back else no_way_back,
        "own steps": "co-simulation FMUs do not tell their internal steps",
        "equations": "it integrates itself and does not show its equations",
    }
    return [
        *_of_methods({"rollback"} if back else set(), reasons),
        Verdict("Adaptive steps", varies, adaptive),
        Verdict(
            "saved runs",
            back and state,
            "its state can be written to a file" if back and state else _NOT_WRITTEN,
        ),
    ]


def _of_methods(offered: set[str], reasons: Mapping[str, str]) -> list[Verdict]:
    """Each registered method, by what the FMU offers of the capabilities that it needs; why, by capability."""
    found = []
    for _, kind in sorted(_methods().items(), key=_place):
        for role, needs in (kind.roles or {"": kind.needs}).items():
            lacking = [need for need in needs if need not in offered]
            of = (lacking or [need for need in needs if need in reasons] or [""])[0]
            reason = reasons.get(of, f"it does not offer {of}")
            remedy = f"; use {kind.instead}" if lacking and kind.instead else ""
            name = f"{kind.__name__}, {role}" if role else kind.__name__
            found.append(Verdict(name, not lacking, reason + remedy, tuple(needs)))
    return found


def _methods() -> dict[str, Any]:
    """The registered methods; their package is above this one."""
    return {name: kind for name, kind in usable("methods").items() if hasattr(kind, "roles")}


def _place(named: tuple[str, Any]) -> tuple[float, str]:
    """Where a method stands in the table: as on the map of the viewer, those that are not on it behind."""
    places = [one.place for one in named[1].proposals if one.purpose == "map"]
    return min(places, default=inf), named[0]


def _of_model_exchange(read: Description, flags: Kind) -> list[Verdict]:
    """What `fmu/model_exchange.py` makes of it."""
    smooth = not read.event_indicators and all(v.variability != "discrete" for v in read.variables.values())
    back = smooth or flags.has("canGetAndSetFMUState")
    solver = "integrated by cosolve's solvers, which see the whole input polynomial"
    derives = flags.has("providesDirectionalDerivatives") or flags.has("providesAdjointDerivatives")
    how = "with Jacobians from its derivatives" if derives else "with difference quotients (it gives no derivatives)"
    no_way_back = f"it has events and cannot save its state ({read.way_back})"
    state = flags.has("canSerializeFMUState") and flags.has("canGetAndSetFMUState")
    offered = {"own steps", *(["rollback"] if back else []), *(["equations"] if smooth else [])}
    reasons = {
        "": solver,
        "rollback": how if back else no_way_back,
        "own steps": "with one of the native solvers",
        "equations": "it shows its equations" if smooth else "it has events",
    }
    return [
        *_of_methods(offered, reasons),
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
