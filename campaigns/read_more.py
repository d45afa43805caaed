"""Spoilt files that a run reads besides: configurations, tables, meshes, trials, kept states, machine code."""

from __future__ import annotations

import copy
import ctypes
import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from tests.fmu import build
from tests.fmu.catalogue import MODELS

import cosolve as cs
from campaigns import mutated
from cosolve.fmu.description import read_description
from cosolve.fmu.findings import FORMAT, facts
from cosolve.jit import assembly, cache, files
from cosolve.precice.config import read_configuration
from cosolve.state.codec import from_bytes, to_bytes

Target = Callable[[int, Path], None]

CONFIGURATION = """<?xml version="1.0"?>
<precice-configuration>
  <data:scalar name="Heat"/> <data:scalar name="Temperature"/>
  <mesh name="Rod" dimensions="2"> <use-data name="Heat"/> <use-data name="Temperature"/> </mesh>
  <mesh name="Bath" dimensions="2"> <use-data name="Heat"/> <use-data name="Temperature"/> </mesh>
  <participant name="Solid">
    <provide-mesh name="Rod"/> <receive-mesh name="Bath" from="Fluid"/>
    <write-data name="Temperature" mesh="Rod"/> <read-data name="Heat" mesh="Rod"/>
    <mapping:nearest-neighbor direction="read" from="Bath" to="Rod" constraint="consistent"/>
  </participant>
  <participant name="Fluid">
    <provide-mesh name="Bath"/> <receive-mesh name="Rod" from="Solid"/>
    <write-data name="Heat" mesh="Bath"/> <read-data name="Temperature" mesh="Bath"/>
    <mapping:rbf direction="read" from="Rod" to="Bath" constraint="consistent">
      <basis-function:compact-polynomial-c6 support-radius="0.5"/></mapping:rbf>
  </participant>
  <m2n:sockets acceptor="Solid" connector="Fluid"/>
  <coupling-scheme:serial-implicit>
    <participants first="Solid" second="Fluid"/> <max-time value="40"/> <time-window-size value="0.1"/>
    <exchange data="Temperature" mesh="Rod" from="Solid" to="Fluid" initialize="true"/>
    <exchange data="Heat" mesh="Bath" from="Fluid" to="Solid" initialize="true"/>
    <max-iterations value="50"/>
    <relative-convergence-measure data="Heat" mesh="Bath" limit="1e-8"/>
    <acceleration:IQN-ILS> <data name="Heat" mesh="Bath"/> <initial-relaxation value="0.5"/>
      <max-used-iterations value="20"/> <time-windows-reused value="3"/> <filter type="QR2" limit="1e-2"/>
    </acceleration:IQN-ILS>
  </coupling-scheme:serial-implicit>
</precice-configuration>
"""


def configurations(home: Path) -> Target:
    """Configurations of preCICE."""

    def read(n: int, home: Path) -> None:
        file = home / "precice.xml"
        file.write_text(mutated.mutant(CONFIGURATION, n, mutated.xml) if n else CONFIGURATION, encoding="utf-8")
        read_configuration(file)

    return read


def tables(home: Path) -> Target:
    """Tables of numbers, which drive an input."""
    whole = "t,flow,valve\n" + "".join(f"{0.1 * k:.1f},{np.sin(k):.6g},{k % 3}\n" for k in range(20))

    def read(n: int, home: Path) -> None:
        file, random = home / "table.csv", Random(f"table {n}")
        text = whole if n == 0 else _changed_words(random, whole) if n % 3 else mutated.characters(random, whole)
        file.write_text(text, encoding=random.choice(("utf-8", "utf-8-sig", "latin-1")), errors="replace")
        system = cs.System({"a": cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["q"], outputs=["h"])})
        system.set("a.q", cs.Table.read(file, "flow"))
        assert np.isfinite(cs.simulate(system, t_end=1.0, method=cs.Jacobi(1), step=0.25, compiled=False)["a.h"]).all()

    return read


def meshes(home: Path) -> Target:
    """Meshes in arrays of numpy and in the texts that meshio reads."""
    import meshio

    points = np.random.default_rng(0).random((6, 3))
    triangles = np.array([[0, 1, 2], [2, 3, 4]])
    for end in ("inp", "off", "vtk"):
        options = {"binary": False} if end == "vtk" else {}
        meshio.Mesh(points, [("triangle", triangles)]).write(home / f"good.{end}", **options)
    np.savez(home / "good.npz", points=points, triangles=triangles)
    odd: tuple[Callable[[Any], Any], ...] = (
        *(lambda a: a * np.nan, lambda a: a - 5, lambda a: a + 10**6, lambda a: a.astype(str), lambda a: a[:0]),
        *(np.ravel, lambda a: a.astype(complex), lambda a: a[:, :2]),
    )

    def read(n: int, home: Path) -> None:
        random = Random(f"mesh {n}")
        good = home / f"good.{('npz', 'inp', 'off', 'vtk')[n % 4]}"
        bad = home / f"bad{good.suffix}"
        if n < 4:
            shutil.copy(good, bad)
        elif good.suffix != ".npz":
            bad.write_text(_changed_words(random, good.read_text()))
        elif n % 3:
            arrays: dict[str, Any] = {"points": points, "triangles": triangles}
            name = random.choice(list(arrays))
            np.savez(bad, **arrays | {name: random.choice(odd)(arrays[name])})
        else:
            bad.write_bytes(mutated.data(random, good.read_bytes()))
        mesh = cs.mapping.read_mesh(bad)
        str(mesh)
        cs.mapping.nearest_neighbour(mesh, cs.mapping.Mesh(points))

    return read


def _changed_words(random: Random, text: str) -> str:
    """One to three words changed, doubled or taken out."""
    for _ in range(random.choice((1, 1, 2, 3))):
        lines = text.split("\n")
        k = random.randrange(len(lines))
        words = lines[k].replace(",", " , ").split()
        if words:
            j = random.randrange(len(words))
            words[j : j + 1] = random.choice(
                ([random.choice(mutated.NASTY)], [], [words[j]] * 2, ["nan"], ["99999999"])
            )
        lines[k] = " ".join(words).replace(" , ", ",")
        text = "\n".join(lines[:k] + lines[k + 1 :] if random.random() < 0.1 else lines)
    return text


def trials(home: Path) -> Target:
    """What a trial of an FMU found, given by hand or kept from an earlier process."""
    home.joinpath("modelDescription.xml").write_text(build.description("ball", MODELS["ball"], 2), encoding="utf-8")
    kind = next(iter(read_description(home).kinds.values()))
    finding = {"claim": "saves its state", "verdict": "fails", "text": "other numbers", "where": "in a run"}
    whole = {"format": FORMAT, "digest": facts.digest(home), "findings": [finding, finding], "came back": {"a": [0, 1]}}

    def read(n: int, home: Path) -> None:
        file, random = home / "trial.json", Random(f"trial {n}")
        spoilt = json.dumps(mutated.tree(random, whole) if n else whole).encode()
        file.write_bytes(mutated.data(random, spoilt) if n % 3 == 2 else spoilt)
        fresh = type(facts)()
        corrected = fresh.corrected(kind, home, "ball.fmu", file)
        assert not corrected.has("canGetAndSetFMUState") or n

    return read


def resumed(home: Path) -> Target:
    """States beside the file of a run that was ended: their digest is right, what they say is not."""
    runs = []
    for k, (method, compiled) in enumerate(
        ((cs.Implicit(1, corrector=cs.IqnIls()), False), (cs.SemiImplicit(1), False), (cs.Jacobi(2), True))
    ):
        file = home / f"good{k}.h5"
        with suppress(cs.errors.SimulationError):
            options: dict[str, Any] = {"method": method, "step": 0.02, "compiled": compiled}
            cs.simulate(_pair(), t_end=1.0, save=file, state_every=5, max_steps=30, **options)
        runs.append((file, from_bytes(Path(f"{file}.state").read_bytes())))

    def read(n: int, home: Path) -> None:
        file, tree = runs[n % len(runs)]
        bad = home / "bad.h5"
        shutil.copy(file, bad)
        with suppress(Exception):  # what cannot be written at all is no case
            Path(f"{bad}.state").write_bytes(to_bytes(tree if n < len(runs) else _odd(Random(f"state {n}"), tree)))
        try:
            assert len(cs.resume(bad, _pair(), max_steps=60)) == 51 or n >= len(runs)
        except cs.errors.SimulationError as error:
            if "max_steps" not in str(error):  # one that says that less was done
                raise

    return read


def _pair() -> cs.System:
    one, two = (cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[x], inputs=["q"], outputs=["h"]) for x in (1.0, 0.0))
    system = cs.System({"a": one, "b": two})
    system.connect("a.h", "b.q")
    system.connect("b.h", "a.q")
    return system


def _odd(random: Random, value: Any) -> Any:
    """One value in a tree of dicts, lists and objects by another."""
    if random.random() < 0.92:
        if isinstance(value, dict) and value:
            key = random.choice(list(value))
            return value | {key: _odd(random, value[key])}
        if isinstance(value, (list, tuple)) and value:
            k = random.randrange(len(value))
            return type(value)([*value[:k], _odd(random, value[k]), *value[k + 1 :]])
        if getattr(value, "__dict__", None):
            other, name = copy.copy(value), random.choice(list(vars(value)))
            object.__setattr__(other, name, _odd(random, getattr(value, name)))
            return other
    odd = (None, True, -1, 0, 2**40, 1e308, np.nan, "", "x", b"x", [], {}, (), (1, 2), np.zeros(3), np.zeros((2, 2)))
    return random.choice(odd)


def machine_code(home: Path) -> Target:
    """What lies in the caches: a damaged file is as none."""
    code = "define double @f(double %x) {\n %y = fmul double %x, 0.5\n ret double %y\n}"
    made = assembly._object(code)
    kept = cache.Checked(str(home), "f", b"stamp")
    kept.save("key", 0.5)
    whole = {file.name: file.read_bytes() for file in (*home.glob("f*.nbi"), *home.glob("f*.nbc"))}
    whole["f.o"] = files.packed(made)

    def read(n: int, home: Path) -> None:
        random = Random(f"code {n}")
        name = sorted(whole)[n % 3]
        (home / name).write_bytes(mutated.data(random, whole[name]) if n >= 3 else whole[name])
        if name != "f.o":
            assert kept.load("key") in (0.5, None)
            kept.save("key", 0.5)
            assert kept.load("key") == 0.5
            return
        try:
            engine = assembly.loaded(files.read(home / name))
        except OSError as error:
            raise cs.errors.SetupError(error) from error  # another one is made then
        assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(engine.get_function_address("f"))(3.0) == 1.5

    return read
