"""Thousands of spoilt files: every one is read, or refused in one sentence; none ends in a bare exception.

The quick ones take a sample; `-m slow` takes thousands. The seeds are fixed, so a failure names a file that can be made
again.
"""

import json
import os
import shutil
import tomllib
import traceback
import warnings
import zipfile
from io import BytesIO
from pathlib import Path
from random import Random

import pytest
from tests.fmu import build
from tests.fmu.catalogue import MODELS
from tests.io import mutated
from tests.io.test_system_file import LAW, MASSES, SIMULATION
from tests.ssp.structure import UNITS, Boxes, bound, component, connection, description, real
from tests.stepper.models import stepper

import cosolve as cs
from cosolve.fmu import archive, options
from cosolve.fmu.description import read_description
from cosolve.io import load_system

#: how many of each in the quick run and in the long one
AMOUNT = [pytest.param(1, id="quick"), pytest.param(40, id="long", marks=pytest.mark.slow)]


class Tally:
    """How many files were read and how many refused, and which ended in a bare exception or a poor sentence."""

    def __init__(self) -> None:
        self.read = self.refused = 0
        self.bad: list[str] = []

    def __call__(self, reader, what: object) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # notes about what is left out
                reader()
        except cs.CosolveError as error:
            self.refused += 1
            if "\n" in str(error) or not 10 < len(str(error)) < 1500:
                self.bad.append(f"{what}: a poor sentence: {error!r:.300}")
        except Exception as error:
            at = traceback.extract_tb(error.__traceback__)[-1]
            self.bad.append(f"{what}: {type(error).__name__}: {error!s:.200} ({Path(at.filename).name}:{at.lineno})")
        else:
            self.read += 1

    def report(self, what: str) -> None:
        """Fail when there were bad ones; there must have been readable files and refused ones."""
        print(f"\n{what}: {self.read} read, {self.refused} refused, {len(self.bad)} bad")
        assert not self.bad, "\n".join(self.bad[:40])
        assert self.read
        assert self.refused


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


@pytest.mark.parametrize("amount", AMOUNT)
def test_descriptions(tmp_path, amount):
    tally = Tally()
    for seed, text in enumerate(texts()):
        for n, changed in enumerate(mutated.mutants(text, seed, 15 * amount, mutated.xml)):
            folder = tmp_path / f"{seed}-{n}"
            folder.mkdir()
            (folder / "modelDescription.xml").write_text(changed, encoding="utf-8")
            tally(lambda folder=folder: look(folder), f"description {seed}, mutant {n}")
            shutil.rmtree(folder)
    tally.report("descriptions")


# -- archives ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("amount", AMOUNT)
def test_archives(tmp_path, amount):
    """Bytes changed anywhere, the list of entries included: nothing is written next to the folder of an archive."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("modelDescription.xml", texts()[0])
        zipped.writestr("resources/table.csv", "1,2,3\n" * 500)
        zipped.writestr("binaries/linux64/m.so", bytes(Random(1).randbytes(3000)))
    tally, home = Tally(), archive._root()
    for n in range(60 * amount):
        random = Random(f"archive {n}")
        changed = mutated.data(random, buffer.getvalue())
        if n % 2:  # the list at the end, where the names and sizes stand
            head = buffer.getvalue().index(b"PK\x01\x02")
            changed = buffer.getvalue()[:head] + mutated.data(random, buffer.getvalue()[head:])
        file = tmp_path / f"{n}.fmu"
        file.write_bytes(changed)
        tally(lambda file=file: look(archive.unpack(file)), f"archive {n}")
        file.unlink()
    assert not os.listdir(tmp_path)
    assert {p.name for p in home.parent.iterdir() if p.name in ("table.csv", "m.so", "resources", "binaries")} == set()
    tally.report("archives")


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


@pytest.mark.parametrize("amount", AMOUNT)
def test_structures(tmp_path, amount):
    tally = Tally()
    ports = {"a": ([], ["y"]), "b": (["u", "w"], ["y"]), "sub/c": (["u"], ["y"])}
    (tmp_path / "box.fmu").touch()
    for n, changed in enumerate([STRUCTURE, *mutated.mutants(STRUCTURE, 7, 75 * amount, mutated.xml)]):
        file = tmp_path / f"{n}.ssd"
        file.write_text(changed, encoding="utf-8")
        boxes = Boxes({**{name: ([], ["y"]) for name in mutated.NASTY}, **ports})
        tally(lambda file=file, boxes=boxes: cs.read_ssp(file, component=_known(boxes)), f"structure {n}")
        file.unlink()
    tally.report("structures")


def _known(boxes: Boxes):
    def made(source, name, parameters):
        if name not in boxes.ports:
            raise cs.SetupError(f"there is no box '{name}'")
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


@pytest.mark.parametrize("amount", AMOUNT)
def test_system_files(tmp_path, amount):
    tally = Tally()
    (tmp_path / "spoilt_model.py").write_text(MODEL)
    for seed, simulation in enumerate(CHOICES):
        text = MASSES + LAW + PARTS + simulation
        whole = tomllib.loads(text)
        words, trees = mutated.strings(whole), Random(f"trees {seed}")
        changed = [mutated.as_toml(mutated.table(trees, whole, words)) for _ in range(30 * amount)]
        for n, spoilt in enumerate([text, *mutated.mutants(text, seed, 10 * amount, mutated.toml), *changed]):
            file = tmp_path / "system.toml"
            file.write_text(spoilt, encoding="utf-8")
            tally(lambda file=file: load_system(file), f"system file {seed}, mutant {n}")
    tally.report("system files")


# -- saved states ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("amount", AMOUNT)
@pytest.mark.parametrize("case", ["adaptive", "anderson", "free running"])
def test_saved_states(tmp_path, amount, case):
    """Half of them without a digest, as older versions wrote them: a fault is seen where it does not fit, or not."""
    running = stepper(case)
    for _ in range(3):
        running.step()
    whole = running.save_file(tmp_path / "good.state").read_bytes()
    tally = Tally()
    for n in range(20 * amount):
        random = Random(f"state {n}")
        file = tmp_path / "bad.state"
        file.write_bytes(mutated.data(random, whole) if n % 4 == 0 else _spoilt(random, whole, n % 2 == 0))
        tally(lambda file=file: running.restore_file(file), f"state {n}")
    tally.report("states")
    running.restore_file(tmp_path / "good.state")
    running.step()


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
