"""What there is to compare in a folder: its FMUs and SSPs, packed or not, and how each of them is to be run.

Model descriptions are read leniently, by the rules of no tool: what a tool refuses is for that tool to say, when it
runs.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

CO_SIMULATION, MODEL_EXCHANGE, SSP = "co-simulation", "model exchange", "SSP"
_KINDS = {"CoSimulation": CO_SIMULATION, "ModelExchange": MODEL_EXCHANGE}
_NOT_NUMBERS = ("String", "Binary", "Clock")
_MANY = 50  # variables compared where there are no outputs
_STEPS = 100  # where no step is given
_LARGEST = 50 * 1024**2  # bytes of a description


@dataclass(frozen=True)
class Case:
    """One FMU in one of its kinds, or one SSP, with the run that every tool makes of it."""

    file: Path
    name: str
    kind: str = ""
    fmi: str = ""
    t0: float = 0.0
    step: float = 0.01
    steps: int = _STEPS
    tolerance: float | None = None
    inputs: dict[str, str | None] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    event_mode: bool = False
    early_return: bool = False
    copies: tuple[str, ...] = ()

    @property
    def t_end(self) -> float:
        """Where the run ends."""
        return self.t0 + self.steps * self.step

    def job(self) -> dict[str, Any]:
        """Plain values, for the process that runs it."""
        names = ("kind", "fmi", "t0", "step", "steps", "tolerance", "inputs", "event_mode", "early_return", "t_end")
        return {"file": str(self.file), "outputs": list(self.outputs), **{name: getattr(self, name) for name in names}}


def find_cases(folder: Path, max_steps: int) -> list[Case]:
    """The cases of a folder and its subfolders, in the order of their paths; a file that is there twice runs once."""
    found: dict[str, list[Path]] = {}
    for path in sorted(_files(folder)):
        found.setdefault(_digest(path), []).append(path)
    cases = []
    for first, *more in found.values():
        copies = tuple(_shown(path, folder) for path in more)
        make = _of_ssp if _is_ssp(first) else _of_fmu
        cases += make(first, _shown(first, folder), copies, max_steps)
    return sorted(cases, key=lambda case: (case.name, case.kind))


def _shown(path: Path, folder: Path) -> str:
    """The path inside the folder, with slashes."""
    return path.name if path == folder else path.relative_to(folder).as_posix()


def _is_ssp(path: Path) -> bool:
    return path.suffix.lower() in (".ssp", ".ssd")


def _files(folder: Path) -> Iterator[Path]:
    """Archives, folders that are unpacked FMUs, and the structure files of unpacked SSPs."""
    if folder.is_file() or _is_unpacked(folder):
        yield folder
        return
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            yield from _files(path)
        elif path.suffix.lower() in (".fmu", ".ssp") or path.name == "SystemStructure.ssd":
            yield path


def _is_unpacked(folder: Path) -> bool:
    """A description alone is no FMU: there are binaries or sources beside it."""
    there = any((folder / inside).is_dir() for inside in ("binaries", "sources"))
    return there and (folder / "modelDescription.xml").is_file()


def _digest(path: Path) -> str:
    """The same for the same content; the path itself for folders and structures, which refer to files beside them."""
    if path.is_dir() or path.suffix.lower() == ".ssd":
        return str(path)
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return str(path)


# -- FMUs ----------------------------------------------------------------------------------------------------------


def _of_fmu(path: Path, name: str, copies: tuple[str, ...], max_steps: int) -> list[Case]:
    root = _xml(path, "modelDescription.xml")
    if root is None:
        return [Case(path, name, copies=copies)]
    fmi = root.get("fmiVersion", "")
    if fmi.startswith("1"):
        kinds = {CO_SIMULATION if root.find("Implementation") is not None else MODEL_EXCHANGE: root}
    else:
        kinds = {kind: found for tag, kind in _KINDS.items() if (found := root.find(tag)) is not None}
    ports = _ports(root)
    cases = []
    for kind, element in kinds.items():
        run = _run(root.find("DefaultExperiment"), max_steps, _number(element.get("fixedInternalStepSize")))
        steps = kind == CO_SIMULATION
        event_mode = steps and _true(element, "hasEventMode")
        early = steps and _true(element, "mightReturnEarlyFromDoStep")
        given = {**run, **ports}
        cases.append(Case(path, name, kind, fmi, copies=copies, event_mode=event_mode, early_return=early, **given))
    return cases or [Case(path, name, fmi=fmi, copies=copies)]


def _true(element: ElementTree.Element, attribute: str) -> bool:
    return element.get(attribute, "") in ("true", "1")


def _ports(root: ElementTree.Element) -> dict[str, Any]:
    """Numeric inputs with their start values, and numeric outputs; without outputs the first variables that vary."""
    inputs: dict[str, str | None] = {}
    outputs: list[str] = []
    others: list[str] = []
    for element in root.findall("ModelVariables/*"):
        scalar = element.tag == "ScalarVariable"
        inner = next(iter(element), element) if scalar else element
        name, causality = element.get("name", ""), element.get("causality", "local")
        if inner.tag in _NOT_NUMBERS or not name:
            continue
        if causality == "input":
            inputs[name] = inner.get("start")
        elif causality == "output":
            outputs.append(name)
        elif causality == "local" and element.get("variability") not in ("constant", "fixed", "tunable"):
            others.append(name)
    return {"inputs": inputs, "outputs": tuple(outputs or others[:_MANY])}


# -- SSPs ----------------------------------------------------------------------------------------------------------


def _of_ssp(path: Path, name: str, copies: tuple[str, ...], max_steps: int) -> list[Case]:
    root = _xml(path, "SystemStructure.ssd")
    experiment = None
    if root is not None:
        experiment = next((e for e in root if e.tag.rpartition("}")[2] == "DefaultExperiment"), None)
    return [Case(path, name, SSP, copies=copies, **_run(experiment, max_steps))]


# -- both ----------------------------------------------------------------------------------------------------------


def _xml(path: Path, inside: str) -> ElementTree.Element | None:
    """The description of an archive or a folder; None where there is none to be read."""
    try:
        if path.is_dir():
            text = (path / inside).read_bytes()
        elif path.suffix.lower() == ".ssd":
            text = path.read_bytes()
        else:
            with zipfile.ZipFile(path) as archive:
                if archive.getinfo(inside).file_size > _LARGEST:
                    return None
                text = archive.read(inside)
        return ElementTree.fromstring(text)
    except Exception:  # whatever is wrong with it: the tools are asked all the same, and say it
        return None


def _run(experiment: ElementTree.Element | None, max_steps: int, inside: float | None = None) -> dict[str, Any]:
    """Start, step and number of steps by the DefaultExperiment; a long run is cut, its step is not made longer.

    `inside` is a fixed step inside the FMU: without a step of the experiment, a hundred of them are one.
    """
    given = {} if experiment is None else experiment.attrib
    t0 = _number(given.get("startTime")) or 0.0
    stop, step = _number(given.get("stopTime")), _number(given.get("stepSize"))
    span = stop - t0 if stop is not None and stop > t0 else 1.0
    if step is None or not 0.0 < step <= span:
        step = span / _STEPS if not inside or inside < 0 else min(span / _STEPS, 100 * inside)
    steps = max(1, min(max_steps, round(span / step)))
    tolerance = _number(given.get("tolerance"))
    return {"t0": t0, "step": step, "steps": steps, "tolerance": tolerance if tolerance and tolerance > 0 else None}


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text else None
    except ValueError:
        return None
    return value if value is None or abs(value) < 1e300 else None
