"""The coupled pairs of the zoo's tests: an animal `a` and a well-behaved lag `b` that feed each other.

    a: x' = 3 (-0.25 u - x), x(0) = 0.5        b: x' = 2 (0.5 u - x), x(0) = 1        both: y = 2 x

`expected` runs the same pair in the independent loop.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from tests.fmu.zoo.loop import Part, run
from tests.fmu.zoo.members import STRANGE, animal

import cosolve as cs

#: what is set before the run
A, B = {"rate": 3.0, "gain": -0.25, "x": 0.5}, {"gain": 0.5}
#: animals that bring their own rate: from a file
OWN_RATE = ("resources", "working_folder")
LINKS = {"a.u": ("b.y", 1.0), "b.u": ("a.y", 1.0)}


def given(name: str) -> dict[str, float]:
    """What is set in an animal of that name."""
    values = {key: value for key, value in A.items() if not (key == "rate" and name in OWN_RATE)}
    return {STRANGE[key] if name == "names" and key in STRANGE else key: value for key, value in values.items()}


def part(name: str, fmi: int, rate: float | None = None, **options: Any) -> Any:
    """An animal as a subsystem."""
    values = {**given(name), **({} if rate is None else {"rate": rate})}
    state = STRANGE["x"] if name == "names" else "x"
    parameters = {key: value for key, value in values.items() if key != state}
    return cs.load_fmu(animal(name, fmi), parameters=parameters, start={state: values[state]}, **options)


def pair(a: Any, fmi: int = 2, b: Any = None) -> cs.System:
    """The animal and its well-behaved partner."""
    system = cs.System({"a": a, "b": cs.load_fmu(animal("plain", fmi), parameters=B) if b is None else b})
    system.connect("a." + a.outputs[0].name, "b.u")
    system.connect("b.y", "a." + a.inputs[0].name)
    return system


def y(result: cs.Result, a: Any) -> tuple[np.ndarray, np.ndarray]:
    """Both outputs."""
    return result["a." + a.outputs[0].name], result["b.y"]


@cache
def expected(name: str, fmi: int, sweep: str = "jacobi", step: float = 0.05, t_end: float = 1.0) -> Any:
    """Both outputs in the independent loop."""
    ports = (STRANGE["u"], STRANGE["y"]) if name == "names" else ("u", "y")
    links = {f"a.{ports[0]}": ("b.y", 1.0), "b.u": (f"a.{ports[1]}", 1.0)}
    parts = {"a": Part(animal(name, fmi), given(name), *ports), "b": Part(animal("plain", fmi), B)}
    found = run(parts, links, t_end=t_end, step=step, sweep=sweep)
    return found[f"a.{ports[1]}"], found["b.y"]
