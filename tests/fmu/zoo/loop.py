"""An independent master for the zoo: FMPy's calls in the order of the FMI standard, and nothing of cosolve.

    parts = {"a": Part(path, {"rate": 3.0}), "b": Part(other)}
    found = run(parts, {"a.u": ("b.y", -0.25), "b.u": ("a.y", 0.5)}, t_end=1.0, step=0.05)
    found["a.y"]                                    # at all macro points, the start included

Fresh instances for every run; parameters between `SetupExperiment` and `EnterInitializationMode`; outputs read after
`ExitInitializationMode`; every step promises not to go back. Inputs are held at the last exchange: Jacobi sweeps of
degree 0, Gauss-Seidel sweeps in the order of the parts, or implicit steps, iterated with saved states until the values
at the end of the step are the ones that were held.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from fmpy import extract, read_model_description
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave


@dataclass(frozen=True)
class Part:
    """An FMU, what is set before its run, and its ports by their FMI names."""

    file: Path
    given: Mapping[str, float] = field(default_factory=dict)
    takes: str = "u"
    gives: str = "y"


class _Alive:
    """One fresh instance."""

    def __init__(self, part: Part, t0: float, stack: ExitStack) -> None:
        described = read_model_description(str(part.file), validate=False)
        folder = extract(str(part.file))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        self.references = {v.name: v.valueReference for v in described.modelVariables}
        self.part, self.two = part, described.fmiVersion.startswith("2")
        options: dict[str, Any] = {
            "guid": described.guid,
            "unzipDirectory": folder,
            "modelIdentifier": described.coSimulation.modelIdentifier,
            "instanceName": "loop",
        }
        self.fmu: Any = FMU2Slave(**options) if self.two else FMU3Slave(**options)
        self.fmu.instantiate()
        stack.callback(self._end)
        if self.two:
            self.fmu.setupExperiment(startTime=t0)
        for name, value in part.given.items():
            self.put(name, value)
        if self.two:
            self.fmu.enterInitializationMode()
        else:
            self.fmu.enterInitializationMode(startTime=t0)

    def put(self, name: str, value: float) -> None:
        (self.fmu.setReal if self.two else self.fmu.setFloat64)([self.references[name]], [value])

    @property
    def output(self) -> float:
        return float((self.fmu.getReal if self.two else self.fmu.getFloat64)([self.references[self.part.gives]])[0])

    def step(self, t: float, h: float, u: float | None) -> float:
        if u is not None:
            self.put(self.part.takes, u)
        self.fmu.doStep(t, h, noSetFMUStatePriorToCurrentPoint=True)
        return self.output

    def save(self) -> Any:
        return (self.fmu.getFMUstate if self.two else self.fmu.getFMUState)()

    def restore(self, state: Any) -> None:
        (self.fmu.setFMUstate if self.two else self.fmu.setFMUState)(state)

    def forget(self, state: Any) -> None:
        (self.fmu.freeFMUstate if self.two else self.fmu.freeFMUState)(state)

    def _end(self) -> None:
        self.fmu.terminate()
        self.fmu.freeInstance()


def run(
    parts: Mapping[str, Part],
    links: Mapping[str, tuple[str, float]],
    *,
    t_end: float,
    step: float,
    sweep: str = "jacobi",
) -> dict[str, np.ndarray]:
    """Outputs over time; `links` says which factor times which output an input is."""
    with ExitStack() as stack:
        alive = {name: _Alive(part, 0.0, stack) for name, part in parts.items()}
        for each in alive.values():
            each.fmu.exitInitializationMode()
        source = {name: links.get(f"{name}.{part.takes}") for name, part in parts.items()}
        now = {f"{name}.{each.part.gives}": each.output for name, each in alive.items()}
        found = {name: [value] for name, value in now.items()}
        for n in range(round(t_end / step)):
            now = _SWEEPS[sweep](alive, source, now, n * step, step)
            for name, value in now.items():
                found[name].append(value)
        return {name: np.array(values) for name, values in found.items()}


_Wires = Mapping[str, tuple[str, float] | None]


def _one_sweep(
    alive: Mapping[str, _Alive], source: _Wires, seen: dict[str, float], t: float, h: float, serial: bool
) -> Any:
    """All parts over one step; a serial sweep sees what was computed in it."""
    new = dict(seen)
    for name, each in alive.items():
        wire = source[name]
        u = None if wire is None else wire[1] * (new if serial else seen)[wire[0]]
        new[f"{name}.{each.part.gives}"] = each.step(t, h, u)
    return new


def _implicit(alive: Mapping[str, _Alive], source: _Wires, seen: dict[str, float], t: float, h: float) -> Any:
    """Fixed-point iteration to the last digit."""
    saved = {name: each.save() for name, each in alive.items()}
    for _ in range(200):
        new = _one_sweep(alive, source, seen, t, h, True)
        if all(abs(new[name] - seen[name]) <= 1e-15 * (1.0 + abs(new[name])) for name in new):
            break
        seen = new
        for name, each in alive.items():
            each.restore(saved[name])
    else:
        raise AssertionError(f"no fixed point at t = {t}")
    for name, each in alive.items():
        each.forget(saved[name])
    return new


_SWEEPS: dict[str, Any] = {
    "jacobi": lambda *state: _one_sweep(*state, False),
    "gauss-seidel": lambda *state: _one_sweep(*state, True),
    "implicit": _implicit,
}
