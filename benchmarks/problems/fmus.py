"""Builds the benchmark's two FMUs and the hand-written C master with the system's compiler (-O2)."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORK = HERE.parent / ".work"
OPTIONS = ["-std=gnu11", "-O2", "-fPIC", "-shared", "-Wall"]
#: Inputs and outputs by variant; value references as in oscillator.c.
PORTS = {
    "mass_force": (0, {"f": 8}, {"x": 6, "v": 7}),
    "mass_spring": (1, {"x1": 8, "v1": 9}, {"F": 10, "x": 6, "v": 7}),
}
PARAMETERS = {"m": (1, 1.0), "c": (2, 100.0), "d": (3, 0.02), "ck": (4, 100.0), "dk": (5, 0.02)}


@dataclass(frozen=True)
class Built:
    """What there is on disk: FMUs, their shared objects, and the master."""

    fmus: dict[str, str]
    libraries: dict[str, str]
    master: str
    compiler: str


def compiler() -> list[str]:
    """The system's C compiler, or the one of the ziglang package."""
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    import importlib.util

    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    raise SystemExit("the benchmark builds FMUs in C: install cc, gcc or clang, or 'pip install ziglang'")


def build(work: Path = WORK) -> Built:
    """Everything, compiled where sources or compiler have changed."""
    cc = compiler()
    sources = "".join((HERE / name).read_text() for name in ("oscillator.c", "master.c"))
    said = subprocess.run([*cc, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    digest = hashlib.sha256("\0".join([sources, said, *OPTIONS, repr(PORTS)]).encode()).hexdigest()[:12]
    folder = work / f"fmus-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    libraries = {name: str(folder / f"{name}.so") for name in PORTS}
    fmus = {name: str(folder / f"{name}.fmu") for name in PORTS}
    for name, (variant, _, _) in PORTS.items():
        if not Path(fmus[name]).exists():
            _compile(cc, [f"-DVARIANT={variant}", str(HERE / "oscillator.c")], libraries[name])
            packed = Path(f"{fmus[name]}.{os.getpid()}")
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("modelDescription.xml", description(name))
                archive.write(libraries[name], f"binaries/{_platform()}/{name}{_suffix()}")
            packed.replace(fmus[name])
    master = folder / "master.so"
    if not master.exists():
        _compile(cc, [str(HERE / "master.c"), "-ldl"], str(master))
    return Built(fmus, libraries, str(master), said)


def _compile(cc: list[str], what: list[str], target: str) -> None:
    """Through a file of our own: others may build at the same time."""
    mine = Path(f"{target}.{os.getpid()}")
    subprocess.run([*cc, *OPTIONS, *what, "-o", str(mine), "-lm"], check=True)
    mine.replace(target)


def _platform() -> str:
    return {"win32": "win64", "darwin": "darwin64"}.get(sys.platform, "linux64")


def _suffix() -> str:
    return {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")


def description(name: str) -> str:
    """The text of modelDescription.xml."""
    variant, inputs, outputs = PORTS[name]
    start = {"x": 1.0 if variant else 0.0, "v": 0.0}
    variables = [
        f'<ScalarVariable name="{p}" valueReference="{vr}" causality="parameter" variability="tunable">'
        f'<Real start="{value!r}"/></ScalarVariable>'
        for p, (vr, value) in PARAMETERS.items()
    ]
    for port, vr in inputs.items():
        variables.append(
            f'<ScalarVariable name="{port}" valueReference="{vr}" causality="input"><Real start="0"/></ScalarVariable>'
        )
    places = []
    for port, vr in outputs.items():
        first = f' start="{start[port]!r}"' if port in start else ""
        initial = "exact" if port in start else "calculated"
        variables.append(
            f'<ScalarVariable name="{port}" valueReference="{vr}" causality="output" variability="continuous" '
            f'initial="{initial}"><Real{first}/></ScalarVariable>'
        )
        needs = " ".join(str(len(PARAMETERS) + k + 1) for k in range(len(inputs))) if port == "F" else ""
        places.append((len(variables), f' dependencies="{needs}"', initial))
    unknowns = "".join(f'<Unknown index="{at}"{on}/>' for at, on, _ in places)
    first = "".join(f'<Unknown index="{at}"/>' for at, _, initial in places if initial != "exact")
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<fmiModelDescription fmiVersion="2.0" modelName="{name}" guid="{{cosolve-bench-{name}}}" '
        'generationTool="cosolve benchmarks" variableNamingConvention="structured">\n'
        f'<CoSimulation modelIdentifier="{name}" canHandleVariableCommunicationStepSize="true" '
        'canGetAndSetFMUstate="true" canSerializeFMUstate="true" canInterpolateInputs="true"/>\n'
        '<DefaultExperiment startTime="0" stopTime="1" stepSize="0.0001"/>\n'
        f"<ModelVariables>{''.join(variables)}</ModelVariables>\n<ModelStructure><Outputs>{unknowns}</Outputs>"
        f"{f'<InitialUnknowns>{first}</InitialUnknowns>' if first else ''}</ModelStructure>\n</fmiModelDescription>\n"
    )


if __name__ == "__main__":
    print(build())
