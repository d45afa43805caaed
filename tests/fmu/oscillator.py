"""The two-mass oscillator (examples/two_mass) cut into FMUs, the twin of `split` and `force_displacement` there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from examples.two_mass.model import SCHMOLL, TwoMass, lu, spring
from tests.fmu.build import fmu

import cosolve as cs

KINDS = ("F/F", "F/D", "D/F", "D/D")


def mass(letter: str, fmi: int, p: TwoMass, side: int, **options: Any) -> cs.Subsystem:
    m, c, d, x, v = (p.m1, p.c1, p.d1, p.x1, p.v1) if side == 1 else (p.m2, p.c2, p.d2, p.x2, p.v2)
    file = {"F": "mass_force", "D": "mass_motion", "S": "mass_spring"}[letter]
    return mass_from(fmu(file, fmi), m, c, d, p, x, v, **options)


def mass_from(file: Path, m: float, c: float, d: float, p: TwoMass, x: float, v: float, **options: Any) -> cs.Subsystem:
    parameters = {"m": m, "c": c, "d": d, "ck": p.ck, "dk": p.dk}
    return cs.load_fmu(file, parameters=parameters, start={"x": x, "v": v}, **options)


def fmu_split(kind: str, fmi: int, p: TwoMass | None = None, **options: Any) -> cs.System:
    """`examples.two_mass.model.split` with FMUs."""
    p = lu() if p is None else p
    system = cs.System({"one": mass(kind[0], fmi, p, 1, **options), "two": mass(kind[2], fmi, p, 2, **options)})
    forces = {name: sign for name, sign, letter in (("one.f", 1.0, kind[0]), ("two.f", -1.0, kind[2])) if letter == "F"}
    if forces:
        system.law(forces, spring(p.ck, p.dk), of=["one.x", "one.v", "two.x", "two.v"], name="lam")
    for letter, here, there in ((kind[0], "one", "two"), (kind[2], "two", "one")):
        if letter == "D":
            system.connect(f"{there}.x", f"{here}.foreign_x")
            system.connect(f"{there}.v", f"{here}.foreign_v")
    return system


def fmu_force_displacement(fmi: int, p: TwoMass = SCHMOLL, **options: Any) -> cs.System:
    """`examples.two_mass.model.force_displacement` with FMUs; subsystem two has direct feed-through."""
    system = cs.System({"one": mass("F", fmi, p, 1, **options), "two": mass("S", fmi, p, 2, **options)})
    system.connect("one.x", "two.x1")
    system.connect("one.v", "two.v1")
    system.connect("two.F", "one.f")
    return system
