"""The animals of the zoo: what each FMU says of itself, and where its archive is odd.

    from tests.fmu.zoo.members import animal
    path = animal("goes_back", fmi=2)        # built when first asked for, then taken from the temporary folder

All of them are one library per version of FMI (zoo.h): the token of the description says how the instance misbehaves,
so that the compiler runs twice and not a hundred times.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from tests import processes
from tests.fmu.build import SUFFIX, compiler, description, headers
from tests.fmu.catalogue import Model, Var

from cosolve.fmu.archive import platform_folder

HERE = Path(__file__).parent / "c"
RICH = dict.fromkeys(
    (
        *("canGetAndSetFMUState", "canSerializeFMUState", "providesDirectionalDerivatives"),
        "canHandleVariableCommunicationStepSize",
    ),
    "true",
)
BLACK = {key: RICH[key] for key in ("canGetAndSetFMUState", "canHandleVariableCommunicationStepSize")}
POOR: dict[str, object] = {"canHandleVariableCommunicationStepSize": "true"}
BOTH = ("CoSimulation", "ModelExchange")

LAG = (
    Var("time", 0, "independent"),
    Var("rate", 1, "parameter", start="2", variability="fixed"),
    Var("gain", 2, "parameter", start="1", variability="tunable"),
    Var("x", 3, start="1", initial="exact", variability="continuous"),
    Var("u", 4, "input", start="0"),
    Var("y", 5, "output"),
    Var("der(x)", 6, derivative="x"),
)


@dataclass(frozen=True)
class Animal:
    """One FMU of the zoo; `behaviour` is a word of zoo.h, by default the animal's name."""

    flags: Mapping[str, object] = field(default_factory=lambda: BLACK)
    behaviour: str = ""
    kinds: tuple[str, ...] = ("CoSimulation",)
    versions: tuple[int, ...] = (2, 3)
    variables: tuple[Var, ...] = LAG
    outputs: Mapping[str, str | None] = field(default_factory=lambda: {"y": "+x"})
    derivatives: Mapping[str, str | None] = field(default_factory=lambda: {"der(x)": "+x +u"})
    initial: Mapping[str, str] = field(default_factory=dict)
    step: str = "0.001"  # of DefaultExperiment
    extra: str = ""  # lines of ModelVariables, as they stand
    files: Mapping[str, str] = field(default_factory=dict)


def _named(**names: str) -> tuple[Var, ...]:
    """The lag with other names."""
    return tuple(
        replace(v, name=names.get(v.name, v.name), derivative=names.get(v.derivative, v.derivative)) for v in LAG
    )


TYPES = (
    *LAG,
    Var("small", 20, "input", "Int8", start="0", variability="discrete"),
    Var("sum", 21, "output", "Int8", variability="discrete"),
    Var("switch", 22, "input", "Boolean", start="true", variability="discrete"),
    Var("lamp", 23, "output", "Boolean", variability="discrete"),
    Var("gear", 24, "input", "Enumeration", start="2", variability="discrete", items=("off", "slow", "fast")),
    Var("shift", 25, "output", "Enumeration", variability="discrete", items=("off", "slow", "fast")),
    Var("half", 26, "output", "Float32"),
    Var("label", 40, "parameter", "String", start="plain", variability="fixed"),
    Var("message", 41, "output", "String", variability="discrete"),
)
_TYPED = {"y": "+x", "sum": "small", "lamp": "small switch", "shift": "gear", "half": "x", "message": ""}
_ARRAYS = """
    <Float64 name="field" valueReference="30" causality="input" start="0 0 0"><Dimension start="3"/></Float64>
    <Float64 name="field_out" valueReference="33" causality="output"><Dimension start="3"/></Float64>
    <Binary name="blob" valueReference="50" causality="input"><Start value="00ff"/></Binary>
    <Binary name="blob_out" valueReference="51" causality="output"/>
    <Clock name="tock" valueReference="61" causality="output" intervalVariability="triggered"/>"""
_ALIASES = "".join(
    f'\n    <ScalarVariable name="plant.body[{k}].force" valueReference="{k % 7}" causality="local" '
    'variability="continuous"><Real/></ScalarVariable>'
    for k in range(10_000)
)
_ALIAS_NAMES = "".join(f'<Alias name="plant.body[{k}].y"/>' for k in range(10_000))
_CLOCK = (
    '<Clock name="tick" valueReference="60" causality="input" intervalVariability="constant" intervalDecimal="0.1"/>'
)
STEADY = tuple(
    replace(v, start="0.5")
    if v.name == "gain"
    else replace(v, start=None, initial="calculated")
    if v.name == "x"
    else v
    for v in LAG
)
STRANGE = {"u": "p.e[1]", "y": "Füllstand ü", "x": 'the "state" <x>', "rate": "it's & a rate", "der(x)": "der(x)"}

ANIMALS: dict[str, Animal] = {
    "plain": Animal(RICH, kinds=BOTH),
    "black": Animal(behaviour="PLAIN"),  # no derivatives: as most tools write them
    "poor": Animal(POOR, behaviour="PLAIN", outputs={"y": None}, derivatives={}),  # nothing but steps
    # -- calling order
    "goes_back": Animal(RICH),
    "forgets_early": Animal(kinds=BOTH, versions=(2,)),
    "reset_freezes": Animal(kinds=BOTH),
    "reset_garbage": Animal(kinds=BOTH),
    "reset_errors": Animal(RICH, kinds=BOTH),
    "reset_crashes": Animal(kinds=BOTH),
    "outputs_late": Animal(kinds=BOTH),
    "outputs_late_poor": Animal(POOR, behaviour="OUTPUTS_LATE", outputs={"y": None}, derivatives={}),
    "outputs_in_step": Animal(derivatives={}),
    # -- steps
    "grid_down": Animal(derivatives={}),
    "grid_up": Animal(derivatives={}),
    "own_step": Animal({"canGetAndSetFMUState": "true"}),
    "discards": Animal(),
    "ends": Animal(kinds=BOTH),
    "changes_mind": Animal(),
    "warns": Animal(kinds=BOTH),
    "pending": Animal({**BLACK, "canRunAsynchronuously": "true"}, versions=(2,)),
    # -- parameters and files
    "ignores_parameter": Animal(kinds=BOTH),
    "clamps_parameter": Animal(kinds=BOTH),
    "resources": Animal(kinds=BOTH, files={"resources/rate.txt": "5.0\n"}),
    "working_folder": Animal(kinds=BOTH),
    # -- words
    "chatty": Animal(),
    "formats": Animal(),
    # -- claims that do not hold
    "state_kept": Animal(),
    "state_half": Animal(derivatives={}),
    "hidden": Animal(derivatives={}),
    "serial_lies": Animal(RICH),
    "wrong_sign": Animal(RICH),
    "transposed": Animal(RICH),
    "engages": Animal(derivatives={}),
    "fades": Animal(derivatives={}),
    "rounds": Animal(derivatives={}),
    "lags": Animal(derivatives={}),
    "late_input": Animal(derivatives={}),
    "late_output": Animal(derivatives={}),
    "denies": Animal(derivatives={}),
    "deaf": Animal({**BLACK, "canInterpolateInputs": "true"}, derivatives={}, versions=(2,)),
    "deaf_between": Animal({**BLACK, "providesIntermediateUpdate": "true"}, "PLAIN", derivatives={}, versions=(3,)),
    "crashes_saving": Animal(derivatives={}),
    "crashes_restoring": Animal(derivatives={}),
    # -- samples, starts and ends
    "samples": Animal({"canGetAndSetFMUState": "true"}, outputs={"y": ""}, derivatives={}, step="0.1"),
    "discrete": Animal(
        behaviour="SAMPLES",
        outputs={"y": ""},
        derivatives={},
        variables=tuple(replace(v, variability="discrete") if v.name == "u" else v for v in LAG),
    ),
    "steady": Animal(kinds=BOTH, outputs={"y": ""}, initial={"y": "u"}, variables=STEADY, derivatives={}),
    "steady_unsaid": Animal(behaviour="STEADY", kinds=BOTH, outputs={"y": ""}, variables=STEADY, derivatives={}),
    "steady_late": Animal(outputs={"y": ""}, initial={"y": "u"}, variables=STEADY, derivatives={}),
    "counts": Animal(
        {"canGetAndSetFMUState": "true", "canHandleVariableCommunicationStepSize": "true"},
        "SAMPLES",
        outputs={"y": ""},
        derivatives={},
        variables=tuple(replace(v, type="Int32") if v.name == "u" else v for v in LAG),
    ),
    "switches": Animal(
        {"canGetAndSetFMUState": "true", "canHandleVariableCommunicationStepSize": "true"},
        "SAMPLES",
        outputs={"y": ""},
        derivatives={},
        variables=tuple(replace(v, type="Boolean", start="false") if v.name == "u" else v for v in LAG),
    ),
    "wide": Animal(
        behaviour="PLAIN",
        kinds=BOTH,
        versions=(3,),
        variables=(
            *LAG,
            Var("n", 28, "output", "Int64", initial="exact", start="0", variability="discrete"),
            Var("k", 29, "input", "Int64", start="0", variability="discrete"),
        ),
        derivatives={},
    ),
    "stop_time": Animal(kinds=BOTH),
    "clocked": Animal(behaviour="PLAIN", versions=(3,), extra=_CLOCK),
    # -- one process
    "once": Animal({**BLACK, "canBeInstantiatedOnlyOncePerProcess": "true"}),
    "once_ever": Animal({**BLACK, "canBeInstantiatedOnlyOncePerProcess": "true"}),
    "remembers": Animal({**BLACK, "canBeInstantiatedOnlyOncePerProcess": "true"}),
    "shared": Animal(),
    "leaks": Animal(),
    "random": Animal(derivatives={}),
    "free_aborts": Animal(),
    # -- descriptions
    "names": Animal(
        behaviour="PLAIN",
        variables=_named(**STRANGE),
        kinds=BOTH,
        outputs={STRANGE["y"]: None},
        derivatives={"der(x)": None},
    ),
    "aliases": Animal(behaviour="PLAIN", versions=(2,), extra=_ALIASES),
    "alias_names": Animal(behaviour="PLAIN", versions=(3,), extra=_ALIAS_NAMES),
    "types": Animal(variables=TYPES, outputs=_TYPED, versions=(2,)),
    "types_arrays": Animal(behaviour="TYPES", variables=TYPES, outputs=_TYPED, versions=(3,), extra=_ARRAYS),
}


def model_of(name: str) -> Model:
    """The animal as the description writer of the other test FMUs takes it."""
    each = ANIMALS[name]
    return Model(
        "",
        each.variables,
        flags=dict(each.flags),
        outputs=dict(each.outputs),
        derivatives=dict(each.derivatives),
        initial=dict(each.initial),
        kinds=each.kinds,
        token=f"zoo {each.behaviour or name.upper()}",
        versions=each.versions,
    )


def text_of(name: str, fmi: int) -> str:
    """The text of modelDescription.xml."""
    text, extra = description(name, model_of(name), fmi), ANIMALS[name].extra
    text = text.replace('stepSize="0.001"', f'stepSize="{ANIMALS[name].step}"')
    if name == "names":
        text = text.replace('"structured"', '"flat"')
    if fmi == 2:
        text = text.replace("<Int8", "<Integer")
    if extra.startswith("<Alias"):  # inside the variable that they are other names of
        return text.replace('causality="output" variability="continuous"/>', f'causality="output">{extra}</Float64>')
    if name == "types_arrays":  # what extra says belongs into the structure too
        for tag, place in (("Output", "<ModelStructure>"), ("InitialUnknown", "</ModelStructure>")):
            lines = "".join(f'<{tag} valueReference="{reference}"/>' for reference in (33, 51, 61))
            text = text.replace(place, place + lines if tag == "Output" else lines + place)
    return text.replace("\n  </ModelVariables>", f"{extra}\n  </ModelVariables>")


@cache
def library(fmi: int) -> bytes:
    """The shared library of all animals, compiled once for the same sources and compiler."""
    sources = sorted(HERE.glob(f"fmi{fmi}*.c"))
    command = [*compiler(), "-std=gnu11", "-O1", "-fPIC", "-shared", "-Wall", *map(str, sources)]
    command += [f"-I{HERE}", f"-I{headers()}", "-lm"]
    words = "".join(path.read_text() for path in sorted(HERE.iterdir()))
    target = _folder() / hashlib.sha256("\0".join([words, *command]).encode()).hexdigest()[:16] / f"zoo{SUFFIX}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as work:
            made = Path(work) / target.name
            processes.run([*command, "-o", str(made)], check=True)
            made.replace(target)
    return target.read_bytes()


def animal(name: str, fmi: int) -> Path:
    """The archive of an animal, packed where it is not there yet."""
    each = ANIMALS[name]
    assert fmi in each.versions, f"{name} has no FMI {fmi} variant"
    text, binary = text_of(name, fmi), library(fmi)
    digest = hashlib.sha256(text.encode() + binary + repr(sorted(each.files.items())).encode()).hexdigest()[:16]
    target = _folder() / digest / f"{name}.fmu"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as work:
            packed = Path(work) / target.name
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("modelDescription.xml", text)
                archive.writestr(f"binaries/{platform_folder(fmi)}/{name}{SUFFIX}", binary)
                for place, content in each.files.items():
                    archive.writestr(place, content)
            packed.replace(target)
    return target


def kinds_of(name: str) -> list[tuple[int, str]]:
    """Versions of FMI and kinds ("co-simulation", "model exchange") that an animal comes in."""
    each = ANIMALS[name]
    return [(fmi, kind) for fmi in each.versions for kind in ("co-simulation", "model exchange") if _has(each, kind)]


def _has(each: Animal, kind: str) -> bool:
    return kind.title().replace(" ", "").replace("-", "") in each.kinds


def _folder() -> Path:
    return Path(tempfile.gettempdir()) / f"cosolve-test-zoo-{os.getuid() if hasattr(os, 'getuid') else 0}"
