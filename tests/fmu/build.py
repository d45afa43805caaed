"""Builds the FMUs of the tests from the C sources beside it, for FMI 1.0, 2.0 and 3.0, with the system's compiler.

    from tests.fmu.build import fmu
    path = fmu("mass_force", fmi=2)        # built when first asked for, then taken from the temporary folder

`MODELS` (catalogue.py) lists them. A model description is made from the same table for both versions of FMI.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

from tests import processes
from tests.fmu.catalogue import MODELS, Model, Var

from cosolve.fmu.archive import platform_folder

HERE = Path(__file__).parent / "c"
SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
FLAGS_2 = {
    "canGetAndSetFMUState": "canGetAndSetFMUstate",
    "canSerializeFMUState": "canSerializeFMUstate",
    "providesDirectionalDerivatives": "providesDirectionalDerivative",
}
ONLY_2 = ("canInterpolateInputs",)
ONLY_3 = (
    *("providesAdjointDerivatives", "providesIntermediateUpdate", "mightReturnEarlyFromDoStep", "hasEventMode"),
    *("recommendedIntermediateInputSmoothness", "canReturnEarlyAfterIntermediateUpdate"),
)
_QUOTES = {chr(34): "&quot;"}
CS_ONLY = (*ONLY_2, "canHandleVariableCommunicationStepSize", "maxOutputDerivativeOrder", *ONLY_3[1:])


# -- descriptions ------------------------------------------------------------------------------------------------


def description(name: str, model: Model, fmi: int) -> str:
    """The text of modelDescription.xml."""
    if fmi == 1:
        return _description_1(name, model)
    head = {"fmiVersion": "2.0" if fmi == 2 else "3.0", "modelName": name}
    head |= {"guid": model.token} if fmi == 2 else {"instantiationToken": model.token}
    head |= {"generationTool": "cosolve tests", "variableNamingConvention": "structured"}
    if fmi == 2 and model.indicators:
        head["numberOfEventIndicators"] = str(len(model.indicators))
    variables = list(model.variables)
    lines = [f"<fmiModelDescription{_attributes(head)}>"]
    lines += [f"  <{kind}{_attributes(_flags(model, kind, fmi, name))}/>" for kind in sorted(model.kinds, reverse=True)]
    units = sorted({v.unit for v in variables if v.unit})
    if units:
        lines += ["  <UnitDefinitions>", *(f'    <Unit name="{u}"/>' for u in units), "  </UnitDefinitions>"]
    lines += _types(variables, fmi)
    lines += ['  <DefaultExperiment startTime="0" stopTime="1" stepSize="0.001"/>', "  <ModelVariables>"]
    lines += [(_variable_2 if fmi == 2 else _variable_3)(v, variables) for v in variables]
    lines += ["  </ModelVariables>", *(_structure_2 if fmi == 2 else _structure_3)(model, variables)]
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + "\n".join([*lines, "</fmiModelDescription>"]) + "\n"


def _description_1(name: str, model: Model) -> str:
    """The same in FMI 1.0: the first kind of the model, and states without names."""
    head = {"fmiVersion": "1.0", "modelName": name, "modelIdentifier": name, "guid": model.token}
    head |= {"generationTool": "cosolve tests", "numberOfContinuousStates": len(model.derivatives)}
    head |= {"numberOfEventIndicators": len(model.indicators)}
    units = sorted({v.unit for v in model.variables if v.unit})
    lines = [f"<fmiModelDescription{_attributes(head)}>", "  <UnitDefinitions>"]
    lines += [*(f'    <BaseUnit unit="{unit}"/>' for unit in units), "  </UnitDefinitions>"]
    lines += ['  <DefaultExperiment startTime="0" stopTime="1"/>', "  <ModelVariables>"]
    for v in model.variables:
        if v.causality == "independent":
            continue
        fixed = v.causality == "parameter"
        variability = "parameter" if fixed else v.variability or ("continuous" if v.type == "Float64" else "discrete")
        causality = v.causality if v.causality in ("input", "output") else "internal"
        outer = {"name": v.name, "valueReference": v.reference, "variability": variability, "causality": causality}
        if v.negated:
            outer["alias"] = "negatedAlias"
        kind = {"Float64": "Real", "Int32": "Integer"}.get(v.type, v.type)
        inner = {"unit": v.unit, "nominal": v.nominal, "start": "" if v.start is None else v.start}
        if v.initial == "approx":
            inner["fixed"] = "false"
        depends = model.outputs.get(v.name)
        direct = ""
        if depends is not None:
            known = {w.name for w in model.variables if w.causality == "input"}
            direct = "".join(f"<Name>{word}</Name>" for word in depends.split() if word in known)
            direct = f"<DirectDependency>{direct}</DirectDependency>"
        lines.append(f"    <ScalarVariable{_attributes(outer)}><{kind}{_attributes(inner)}/>{direct}</ScalarVariable>")
    lines.append("  </ModelVariables>")
    if model.kinds[0] == "CoSimulation":
        names = ("canHandleVariableCommunicationStepSize", "canInterpolateInputs", "maxOutputDerivativeOrder")
        flags = {key: model.flags[key] for key in names if key in model.flags}
        inside = f"<CoSimulation_StandAlone><Capabilities{_attributes(flags)}/></CoSimulation_StandAlone>"
        lines.append(f"  <Implementation>{inside}</Implementation>")
    return '<?xml version="1.0" encoding="ISO-8859-1"?>\n' + "\n".join([*lines, "</fmiModelDescription>"]) + "\n"


def _attributes(given: dict[str, object]) -> str:
    return "".join(f' {key}="{escape(str(value), _QUOTES)}"' for key, value in given.items() if value != "")


def _flags(model: Model, kind: str, fmi: int, name: str) -> dict[str, object]:
    flags = {k: v for k, v in model.flags.items() if k not in (ONLY_3 if fmi == 2 else ONLY_2)}
    if kind == "ModelExchange":
        flags = {k: v for k, v in flags.items() if k not in CS_ONLY}
    return {"modelIdentifier": name} | {FLAGS_2.get(k, k) if fmi == 2 else k: v for k, v in flags.items()}


def _types(variables: list[Var], fmi: int) -> list[str]:
    items = {v.items for v in variables if v.items}
    if not items:
        return []
    inner = "".join(f'<Item name="{n}" value="{i}"/>' for n, i in zip(next(iter(items)), range(1, 9), strict=False))
    if fmi == 2:
        body = f'<SimpleType name="Choice"><Enumeration>{inner}</Enumeration></SimpleType>'
    else:
        body = f'<EnumerationType name="Choice">{inner}</EnumerationType>'
    return [f"  <TypeDefinitions>{body}</TypeDefinitions>"]


def _variable_2(v: Var, variables: list[Var]) -> str:
    kind = {"Float64": "Real", "Float32": "Real", "Int32": "Integer"}.get(v.type, v.type)
    outer = {"name": v.name, "valueReference": v.reference, "causality": v.causality, "variability": _variability(v)}
    if v.initial:
        outer["initial"] = v.initial
    inner: dict[str, object] = {"declaredType": "Choice" if v.items else "", "unit": v.unit, "nominal": v.nominal}
    inner["start"] = "" if v.start is None else v.start
    if v.derivative:
        inner["derivative"] = [w.name for w in variables].index(v.derivative) + 1
    return f"    <ScalarVariable{_attributes(outer)}><{kind}{_attributes(inner)}/></ScalarVariable>"


def _variable_3(v: Var, variables: list[Var]) -> str:
    reference = {w.name: w.reference for w in variables}
    given: dict[str, object] = {"name": v.name, "valueReference": v.reference, "causality": v.causality}
    given |= {"variability": _variability(v), "initial": v.initial, "declaredType": "Choice" if v.items else ""}
    if v.causality == "input" and v.type == "Float64":
        given["intermediateUpdate"] = "true"
    given |= {"unit": v.unit, "nominal": v.nominal}
    inner = ""
    if v.type == "String":
        inner = "" if v.start is None else f'<Start value="{v.start}"/>'
    else:
        given["start"] = "" if v.start is None else v.start
    if v.derivative:
        given["derivative"] = reference[v.derivative]
    if v.dimensions:
        inner = f'<Dimension valueReference="{reference[v.dimensions]}"/>'
    return f"    <{v.type}{_attributes(given)}>{inner}</{v.type}>" if inner else f"    <{v.type}{_attributes(given)}/>"


def _variability(v: Var) -> str:
    if v.variability:
        return v.variability
    fixed = v.causality in ("parameter", "structuralParameter")
    return "fixed" if fixed else "continuous" if v.type.startswith("Float") else "discrete"


def _dependencies(text: str | None, place: dict[str, int]) -> str:
    if text is None:
        return ""
    words = text.split()
    kinds = " ".join("constant" if word.startswith("+") else "dependent" for word in words)
    places = " ".join(str(place[word.lstrip("+")]) for word in words)
    return f' dependencies="{places}"' + (f' dependenciesKind="{kinds}"' if words else "")


def _structure_2(model: Model, variables: list[Var]) -> list[str]:
    place = {v.name: i for i, v in enumerate(variables, 1)}
    lines = ["  <ModelStructure>"]
    parts = (("Outputs", model.outputs), ("Derivatives", model.derivatives))
    for tag, unknowns in parts:
        if unknowns:
            inner = "".join(f'<Unknown index="{place[n]}"{_dependencies(d, place)}/>' for n, d in unknowns.items())
            lines.append(f"    <{tag}>{inner}</{tag}>")
    exact = {v.name for v in variables if v.initial == "exact"}
    first = sorted({place[n] for n in (*model.outputs, *model.derivatives) if n not in exact})
    if first:
        said = {place[n]: _dependencies(d, place) for n, d in model.initial.items()}
        inner = "".join(f'<Unknown index="{i}"{said.get(i, "")}/>' for i in first)
        lines.append(f"    <InitialUnknowns>{inner}</InitialUnknowns>")
    return [*lines, "  </ModelStructure>"]


def _structure_3(model: Model, variables: list[Var]) -> list[str]:
    place = {v.name: v.reference for v in variables}
    exact = {v.name for v in variables if v.initial == "exact"}
    lines = ["  <ModelStructure>"]
    parts = (("Output", model.outputs), ("ContinuousStateDerivative", model.derivatives))
    for tag, unknowns in parts:
        lines += [f'    <{tag} valueReference="{place[n]}"{_dependencies(d, place)}/>' for n, d in unknowns.items()]
    first = [n for n in (*model.outputs, *model.derivatives) if n not in exact]
    said = {n: _dependencies(d, place) for n, d in model.initial.items()}
    lines += [f'    <InitialUnknown valueReference="{place[n]}"{said.get(n, "")}/>' for n in first]
    lines += [f'    <EventIndicator valueReference="{place[n]}"/>' for n in model.indicators]
    return [*lines, "  </ModelStructure>"]


# -- building ----------------------------------------------------------------------------------------------------


def compiler() -> list[str]:
    """The system's C compiler, or the one of the ziglang package."""
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    raise RuntimeError("the test FMUs need a C compiler: install cc, gcc or clang, or 'pip install ziglang'")


def headers() -> Path:
    """The folder of the FMI headers, which come with FMPy."""
    spec = importlib.util.find_spec("fmpy")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "c-code"


def fmu(name: str, fmi: int, *, cache: Path | None = None) -> Path:
    """The FMU of a model of the catalogue, built where it is not there yet."""
    return build(name, MODELS[name], fmi, cache=cache)


def build(name: str, model: Model, fmi: int, *, cache: Path | None = None) -> Path:
    """Compile and pack a model; the same sources, table and compiler give the same file."""
    assert fmi in (1, *model.versions), f"{name} has no FMI {fmi} variant"
    xml = description(name, model, fmi)
    options = ["-std=gnu11", "-O1", "-fPIC", "-shared", "-Wall", "-Wno-unused-function", "-Wno-unused-const-variable"]
    defines = {"MODEL_FILE": f'"{model.source}"', "TOKEN": f'"{model.token}"', **model.defines}
    if fmi == 1:
        defines["IDENTIFIER"] = name
    command = [*compiler(), *options, *(f"-D{key}={value}" for key, value in defines.items())]
    sources = "".join(path.read_text() for path in sorted(HERE.iterdir()))
    digest = hashlib.sha256("\0".join([xml, sources, *command, str(fmi)]).encode()).hexdigest()[:16]
    folder = cache or Path(tempfile.gettempdir()) / f"cosolve-test-fmus-{os.getuid() if hasattr(os, 'getuid') else 0}"
    target = folder / digest / f"{name}.fmu"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        library = Path(work) / f"{name}{SUFFIX}"
        files = [
            *(str(path) for path in sorted(HERE.glob(f"fmi{fmi}*.c"))),
            f"-I{HERE}",
            f"-I{headers()}",
            "-o",
            str(library),
            "-lm",
        ]
        processes.run([*command, *files], check=True)
        packed = Path(work) / f"{name}.fmu"
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(zipfile.ZipInfo("modelDescription.xml"), xml)
            entry = zipfile.ZipInfo(f"binaries/{platform_folder(max(fmi, 2))}/{name}{SUFFIX}")
            archive.writestr(entry, library.read_bytes())
        packed.replace(target)
    return target


if __name__ == "__main__":
    for title, model in MODELS.items():
        for version in model.versions:
            print(build(title, model, version))
