"""FMPy: the loop that its users write, `FMU2Slave` with setReal, doStep and getReal."""

from __future__ import annotations

from ctypes import byref
from time import perf_counter
from typing import Any

from fmpy import extract, read_model_description
from fmpy.fmi2 import FMU2Slave
from serve import serve

_UNPACKED: dict[str, tuple[str, Any]] = {}  # unpacking again over a loaded library would crash the process


def _slave(path: str, **start: float) -> tuple[FMU2Slave, dict[str, int]]:
    if path not in _UNPACKED:
        _UNPACKED[path] = extract(path), read_model_description(path)
    folder, about = _UNPACKED[path]
    refs = {v.name: v.valueReference for v in about.modelVariables}
    slave = FMU2Slave(
        guid=about.guid,
        unzipDirectory=folder,
        modelIdentifier=about.coSimulation.modelIdentifier,
        instanceName="it",
    )
    slave.instantiate()
    slave.setupExperiment(startTime=0.0)
    for name, value in start.items():
        slave.setReal([refs[name]], [value])
    slave.enterInitializationMode()
    slave.exitInitializationMode()
    return slave, refs


def jacobi(built: dict[str, Any], steps: int, H: float) -> dict[str, Any]:
    """Force/displacement, nothing recorded."""
    one, ports = _slave(built["fmus"]["mass_force"])
    two, others = _slave(built["fmus"]["mass_spring"])
    f, xv = [ports["f"]], [ports["x"], ports["v"]]
    inputs, outputs = [others["x1"], others["v1"]], [others["F"], others["x"], others["v"]]
    motion = one.getReal(xv)
    two.setReal(inputs, motion)
    out = two.getReal(outputs)
    began = perf_counter()
    for k in range(steps):
        one.setReal(f, out[:1])
        two.setReal(inputs, motion)
        one.doStep(currentCommunicationPoint=k * H, communicationStepSize=H)
        two.doStep(currentCommunicationPoint=k * H, communicationStepSize=H)
        motion = one.getReal(xv)
        out = two.getReal(outputs)
    return {"seconds": (perf_counter() - began) / steps, "answer": [*motion, *out[1:]]}


def semi_implicit(built: dict[str, Any], steps: int, H: float, x2: float, ck: float, dk: float) -> dict[str, Any]:
    """Predictor, one difference column, corrector; the FMUs are set back in between."""
    path = built["fmus"]["mass_force"]
    (one, ports), (two, _) = _slave(path), _slave(path, x=x2)
    f, xv = [ports["f"]], [ports["x"], ports["v"]]

    def sweep(t: float, lam: float) -> tuple[float, list[float]]:
        one.setReal(f, [lam])
        two.setReal(f, [-lam])
        one.doStep(currentCommunicationPoint=t, communicationStepSize=H)
        two.doStep(currentCommunicationPoint=t, communicationStepSize=H)
        (x1, v1), (x2, v2) = one.getReal(xv), two.getReal(xv)
        return ck * (x2 - x1) + dk * (v2 - v1), [x1, v1, x2, v2]

    (x1, v1), (x2, v2) = one.getReal(xv), two.getReal(xv)
    lam, y = ck * (x2 - x1) + dk * (v2 - v1), [x1, v1, x2, v2]
    saved = one.getFMUstate(), two.getFMUstate()
    began = perf_counter()
    for k in range(steps):
        t = k * H
        one.fmi2GetFMUstate(one.component, byref(saved[0]))  # into the same memory; getFMUstate() takes new memory
        two.fmi2GetFMUstate(two.component, byref(saved[1]))
        r = lam - sweep(t, lam)[0]
        by = 1e-6 * max(abs(lam), 1.0)
        one.setFMUstate(saved[0])
        two.setFMUstate(saved[1])
        moved = lam + by - sweep(t, lam + by)[0]
        lam -= r * by / (moved - r)
        one.setFMUstate(saved[0])
        two.setFMUstate(saved[1])
        lam, y = sweep(t, lam)
    return {"seconds": (perf_counter() - began) / steps, "answer": y}


if __name__ == "__main__":
    serve({"jacobi": jacobi, "semi_implicit": semi_implicit}, "fmpy")
