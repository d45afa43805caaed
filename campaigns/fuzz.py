"""Spoilt files and odd calls by the hundred thousand: each is read, or refused in one sentence.

A target makes case number `n` and reads it; the numbers are the seeds, so that a finding names a case that can be made
again.
"""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
import tomllib
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

from tests.fmu import build
from tests.fmu.catalogue import MODELS
from tests.io.ssp.structure import UNITS, Boxes, bound, component, connection, description, real
from tests.io.test_system_file import LAW, MASSES, SIMULATION
from tests.run.stepper.models import stepper

import cosolve as cs
from campaigns import mutated, read_more, stored
from campaigns.odd_calls import odd_call
from campaigns.page import Outcome
from cosolve.fmu import archive, options
from cosolve.fmu.description import read_description
from cosolve.io import load_system

LIMIT = 60.0  # seconds for one case; they take some milliseconds
#: how many of each target in the whole campaign
AMOUNTS = {
    "FMU descriptions": 35_000,
    "system structures": 20_000,
    "system files": 15_000,
    "archives": 10_000,
    "saved states": 5_000,
    "results": 5_000,
    "files of killed runs": 5_000,
    "fields": 2_000,
    "sweeps": 2_000,
    "journals of sweeps": 2_000,
    "states to resume from": 3_000,
    "preCICE configurations": 10_000,
    "tables": 3_000,
    "meshes": 5_000,
    "trials of FMUs": 5_000,
    "machine code": 5_000,
    "API calls": 15_000,
}
Target = Callable[[int, Path], None]


class Hang(BaseException):
    """A case took too long."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """`Hang` after so many seconds."""

    def ring(number: int, frame: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def verdict(read: Callable[[], None]) -> tuple[str, str]:
    """`read`, `refused`, or what is bad about it."""
    try:
        with warnings.catch_warnings(), limited(LIMIT):
            warnings.simplefilter("ignore")  # notes about what is left out
            read()
    except cs.CosolveError as error:
        text = str(error)
        if "\n" in text or not 10 < len(text) < 1500:
            return "POOR", f"{text!r:.300}"
        return "refused", text
    except Hang:
        return "HANG", f"no end within {LIMIT:g} s"
    except Exception as error:
        at = [f for f in traceback.extract_tb(error.__traceback__) if "/cosolve/" in f.filename][-1:]
        place = f"{Path(at[0].filename).name}:{at[0].lineno}" if at else "?"
        return "BARE", f"{type(error).__name__}: {error!s:.200} ({place})"
    return "read", ""


def run(quick: bool = False) -> Outcome:
    """The campaign."""
    outcome = Outcome(["target", "cases", "read", "refused", "poor sentences", "bare exceptions", "hangs"])
    for name, amount in AMOUNTS.items():
        counts: Counter[str] = Counter()
        with tempfile.TemporaryDirectory() as folder:
            target = TARGETS[name](Path(folder))
            for n in range(amount // 1000 if quick else amount):
                found, text = verdict(lambda target=target, n=n, folder=folder: target(n, Path(folder)))
                counts[found] += 1
                if found not in ("read", "refused"):
                    outcome.good = False
                    if len(outcome.notes) < 40:
                        outcome.notes.append(f"**{found}**: {name}, case {n}: {text}")
                        print(outcome.notes[-1], flush=True)
        outcome.rows.append([name, counts.total(), *(counts[k] for k in ("read", "refused", "POOR", "BARE", "HANG"))])
    sums = [sum(int(str(row[k])) for row in outcome.rows) for k in range(1, 7)]
    outcome.rows.append(["all", *sums])
    return outcome


# -- descriptions of FMUs ----------------------------------------------------------------------------------------

TAGGED = (
    '<UnitDefinitions><Unit name="K"><BaseUnit K="1"/><DisplayUnit name="degC" factor="1" offset="-273.15"/></Unit>'
    '<Unit name="mm"><BaseUnit m="1" factor="0.001" offset="0"/></Unit></UnitDefinitions>'
)


def texts() -> list[str]:
    """Descriptions of models with states, arrays, enumerations, in both versions of FMI, with units."""
    found = []
    for name in ("mass_force", "mass_both", "ball", "array", "types"):
        for fmi in (2, 3):
            if name == "array" and fmi == 2:
                continue
            text = build.description(name, MODELS[name], fmi)
            found.append(text.replace("<UnitDefinitions>", TAGGED + "<UnitDefinitions>", 1))
    return found


def look(folder: Path) -> None:
    """What `load_fmu` takes from a description before the library is loaded."""
    read = read_description(folder)
    inputs, _ = options.chosen_ports(read, None, "input", "m.fmu")
    outputs, _ = options.chosen_ports(read, None, "output", "m.fmu")
    options.feedthrough_pattern(read, inputs, outputs)
    options.structural_sizes(read, {"n": 3}, "m.fmu")
    assert all(kind.identifier and "/" not in kind.identifier for kind in read.kinds.values())
    assert sum(v.length for v in (*read.states, *inputs, *outputs)) >= 0
    for kind in read.kinds.values():
        kind.number("maxOutputDerivativeOrder"), kind.has("canGetAndSetFMUState")


def descriptions(home: Path) -> Target:
    whole = texts()

    def read(n: int, home: Path) -> None:
        changed = mutated.mutant(whole[n % len(whole)], n, mutated.xml)
        (home / "modelDescription.xml").write_text(changed, encoding="utf-8")
        look(home)

    return read


# -- archives ----------------------------------------------------------------------------------------------------


def archives(home: Path) -> Target:
    """Bytes changed anywhere, the list of entries included: nothing is written next to the folder of an archive."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("modelDescription.xml", texts()[0])
        zipped.writestr("resources/table.csv", "1,2,3\n" * 500)
        zipped.writestr("binaries/linux64/m.so", bytes(Random(1).randbytes(3000)))
    whole = buffer.getvalue()
    head = whole.index(b"PK\x01\x02")

    def read(n: int, home: Path) -> None:
        random = Random(f"archive {n}")
        changed = whole[:head] + mutated.data(random, whole[head:]) if n % 2 else mutated.data(random, whole)
        file = home / f"{n}.fmu"
        file.write_bytes(changed)
        unpacked = None
        try:
            unpacked = archive.unpack(file)
            look(unpacked)
        finally:
            file.unlink()
            if unpacked is not None:
                shutil.rmtree(unpacked, ignore_errors=True)
            assert not list(home.iterdir()), "something was written beside the archive"

    return read


# -- system structures -------------------------------------------------------------------------------------------

TRANSFORMED = '<ssc:LinearTransformation factor="2" offset="1"/>'
MAPPED = (
    '<ssd:ParameterMapping><ssm:ParameterMapping version="1.0"><ssm:MappingEntry source="k" target="a.k"/>'
    '<ssm:MappingEntry source="several" target="a.s"><ssc:LinearTransformation factor="3"/></ssm:MappingEntry>'
    '<ssm:MappingEntry source="on" target="a.on"/></ssm:ParameterMapping></ssd:ParameterMapping>'
)
VALUES = (
    real("k", 1.0, "mm")
    + '<ssv:Parameter name="several"><ssv:Real value="1 2 3"/></ssv:Parameter>'
    + '<ssv:Parameter name="on"><ssv:Boolean value="true"/></ssv:Parameter>'
)
STRUCTURE = description(
    '<ssd:System name="top"><ssd:Connectors><ssd:Connector name="w" kind="input"><ssc:Real unit="mm"/></ssd:Connector>'
    "</ssd:Connectors><ssd:Elements>"
    + component("a", {}, {"y": "mm"}, parameters=["k"])
    + component("b", {"u": "m", "w": ""}, {"y": ""})
    + '<ssd:System name="sub"><ssd:Connectors><ssd:Connector name="v" kind="input"/></ssd:Connectors><ssd:Elements>'
    + component("c", {"u": ""}, {"y": "degC"})
    + "</ssd:Elements><ssd:Connections>"
    + connection("v", "c.u")
    + "</ssd:Connections></ssd:System></ssd:Elements><ssd:Connections>"
    + connection("a.y", "b.u", TRANSFORMED)
    + connection("w", "b.w")
    + connection("a.y", "sub.v")
    + "</ssd:Connections>"
    + bound(VALUES).replace("</ssd:ParameterBinding>", MAPPED + "</ssd:ParameterBinding>")
    + "</ssd:System>",
    UNITS
    + '<ssd:DefaultExperiment startTime="0" stopTime="2"/><ssd:Annotations><ssc:Annotation type="org.cosolve.run">'
    '<run method="{&quot;name&quot;: &quot;jacobi&quot;}" step="0.1" workers="1"/></ssc:Annotation></ssd:Annotations>',
)


def structures(home: Path) -> Target:
    read_file = read_structure(home)

    def read(n: int, home: Path) -> None:
        file = home / "system.ssd"
        file.write_text(mutated.mutant(STRUCTURE, n, mutated.xml) if n else STRUCTURE, encoding="utf-8")
        read_file(file)

    return read


def read_structure(home: Path) -> Callable[[Path], None]:
    """Reads a structure whose components are boxes, some of them with nasty names."""
    ports: dict[str, Any] = {"a": ([], ["y"]), "b": (["u", "w"], ["y"]), "sub/c": (["u"], ["y"])}
    (home / "box.fmu").touch()

    def read(file: Path) -> None:
        boxes = Boxes({**{name: ([], ["y"]) for name in mutated.NASTY}, **ports})
        cs.fmi.read_ssp(file, component=_known(boxes))

    return read


def _known(boxes: Boxes):
    def made(source, name, parameters):
        if name not in boxes.ports:
            raise cs.errors.SetupError(f"there is no box '{name}'")
        return boxes(source, name, parameters)

    return made


# -- system files ------------------------------------------------------------------------------------------------

MODEL = """
import cosolve as cs

def tank(level=1.0, rate=0.5):
    return cs.Ode(lambda t, x, u: u - rate * x, lambda t, x, u: x, x0=[level], inputs=["q"], outputs=["h"])

def law(h, gain=1.0):
    return gain * h

def residual(z, h):
    return z - 2.0 * h
"""
PARTS = """
[subsystems.tank]
factory = "spoilt_model:tank"
parameters = {level = 2.0}

[[equations]]
unknowns = {z = "tank.q"}
residual = "spoilt_model:residual"
of = ["one.x"]
initial = {z = 0.0}

[[laws]]
inputs = {"three.f" = 2.0}
function = "spoilt_model:law"
of = "tank.h"
parameters = {gain = 2.0}

[subsystems.three]
kind = "linear"
A = [[-1.0]]
B = [[1.0, 1.0]]
C = [[1.0]]
D = [[0.0, 0.0]]
x0 = [1.0]
inputs = ["f", {name = "g", unit = "N", nominal = 10.0}]
outputs = [{name = "x", size = 1}]

[constants]
three.g = 0.5

[output]
record = ["one.x"]
every = 2
plot = ["one.x"]
"""
CHOICES = (
    SIMULATION,
    SIMULATION.replace('"semi-implicit"', '{name = "implicit", degree = 1, corrector = {name = "anderson", depth = 3}}')
    + 'startup = {name = "leader-follower-start", leader = "one"}\n',
    SIMULATION.replace("0.01", "{rtol = 1e-4, atol = 1e-6, min_step = 1e-6}").replace(
        '"semi-implicit"', '{name = "gauss-seidel", degree = 2}'
    )
    + "workers = 2\n",
)


def system_files(home: Path) -> Target:
    (home / "spoilt_model.py").write_text(MODEL)
    whole = [MASSES + LAW + PARTS + simulation for simulation in CHOICES]
    trees = [tomllib.loads(text) for text in whole]
    words = [mutated.strings(tree) for tree in trees]

    def read(n: int, home: Path) -> None:
        k, file = n % len(whole), home / "system.toml"
        spoilt = mutated.mutant(whole[k], n, mutated.toml)
        if n % 4:
            spoilt = mutated.as_toml(mutated.table(Random(f"tree {n}"), trees[k], words[k]))
        file.write_text(spoilt if n >= len(whole) else whole[k], encoding="utf-8")
        load_system(file)

    return read


# -- saved states ------------------------------------------------------------------------------------------------


def states(home: Path) -> Target:
    """Half of them without a digest, as older versions wrote them: a fault is seen where it does not fit, or not."""
    runs = runs_with_states()
    wholes = [running.save_file(home / "good.state").read_bytes() for running in runs]

    def read(n: int, home: Path) -> None:
        k, random, file = n % len(runs), Random(f"state {n}"), home / "bad.state"
        whole = wholes[k]
        spoilt = mutated.data(random, whole) if n % 4 == 0 else _spoilt(random, whole, n % 2 == 0)
        file.write_bytes(whole if n < len(runs) else spoilt)
        runs[k].restore_file(file)

    return read


def runs_with_states() -> list[cs.Stepper]:
    """Runs of several kinds after some steps."""
    runs = [stepper(case) for case in ("adaptive", "anderson", "free running")]
    for running in runs:
        for _ in range(3):
            running.step()
    return runs


def _spoilt(random: Random, whole: bytes, digest: bool) -> bytes:
    spoil_tree = random.random() < 0.7

    def change(name: str, content: bytes) -> bytes:
        if name != "state.json":
            return content if spoil_tree or random.random() < 0.5 else mutated.data(random, content)
        read = json.loads(content)
        if not digest:
            del read["digest"]
        return json.dumps(mutated.tree(random, read) if spoil_tree else read).encode()

    return mutated.repacked(whole, change)


TARGETS: dict[str, Callable[[Path], Target]] = {
    "FMU descriptions": descriptions,
    "system structures": structures,
    "system files": system_files,
    "archives": archives,
    "saved states": states,
    "results": stored.results,
    "files of killed runs": stored.journals,
    "fields": stored.fields,
    "sweeps": stored.sweeps,
    "journals of sweeps": stored.sweep_journals,
    "states to resume from": read_more.resumed,
    "preCICE configurations": read_more.configurations,
    "tables": read_more.tables,
    "meshes": read_more.meshes,
    "trials of FMUs": read_more.trials,
    "machine code": read_more.machine_code,
    "API calls": odd_call,
}
