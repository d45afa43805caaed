"""The quarter truck of libcosim's test data, run by cosolve, by libcosim and by a loop over FMPy: the same numbers?

    python -m benchmarks.quarter_truck FOLDER        # the folder with Chassis.fmu and Wheel.fmu

Two FMUs, chassis and wheel, joined by a velocity and a force; `Jacobi(0)` in cosolve is what libcosim's fixed-step
algorithm does. The FMUs are in the public repository of libcosim, tests/data/fmi2/quarter_truck, and are not copied
here. Each tool runs in a process of its own; libcosim is left out where the package `libcosimpy` is not installed. Ends
with code 1 when a difference exceeds 1e-12, relative to the largest value of the variable.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np

H, STEPS = 1e-3, 2000
FILES = {"chassis": "Chassis.fmu", "wheel": "Wheel.fmu"}
MASS = {"chassis": 400.0, "wheel": 40.0}
REALS = {"timeStep": 1e-5}
STRINGS = {"solverType": "Euler"}
CONNECTIONS = (("chassis", "velocity", "wheel", "in_vel"), ("wheel", "out_spring_damper_f", "chassis", "force"))
WATCHED = (("chassis", "velocity"), ("chassis", "position"), ("wheel", "velocity"), ("wheel", "position"))
LIMIT = 1e-12

Trace = dict[str, np.ndarray]


def by_cosolve(folder: Path) -> Trace:
    """The points 1 ... STEPS of a run with `Jacobi(0)`."""
    import cosolve as cs

    extra = {name: [v for part, v in WATCHED if part == name] for name in FILES}
    ports = {name: {v for a, v, _, _ in CONNECTIONS if a == name} for name in FILES}
    parts = {
        name: cs.load_fmu(
            folder / file,
            parameters={**REALS, **STRINGS, "mass": MASS[name]},
            outputs=sorted(ports[name].union(extra[name])),
        )
        for name, file in FILES.items()
    }
    system = cs.System(parts)
    for a, out, b, into in CONNECTIONS:
        system.connect(f"{a}.{out}", f"{b}.{into}")
    fed = {(b, into) for _, _, b, into in CONNECTIONS}
    for name, inputs in system.inputs.items():
        for port in inputs:
            if (name, port.name) not in fed:
                system.set(f"{name}.{port.name}", float(parts[name].description.variables[port.name].start or 0.0))
    result = cs.simulate(system, t_end=H * STEPS, method=cs.Jacobi(0), step=H)
    return {f"{part}.{v}": result[f"{part}.{v}"][1:] for part, v in WATCHED}


def by_fmpy(folder: Path) -> Trace:
    """A loop that holds the inputs over each step and exchanges all outputs after it."""
    import tempfile

    import fmpy
    from fmpy.fmi2 import FMU2Slave

    parts, references = {}, {}
    for name, file in FILES.items():
        read = fmpy.read_model_description(str(folder / file), validate=False)
        unpacked = fmpy.extract(str(folder / file), tempfile.mkdtemp())
        part = FMU2Slave(
            guid=read.guid,
            unzipDirectory=unpacked,
            modelIdentifier=read.coSimulation.modelIdentifier,
            instanceName=name,
        )
        references[name] = {v.name: v.valueReference for v in read.modelVariables}
        part.instantiate()
        part.setupExperiment(startTime=0.0)
        for variable, value in {**REALS, "mass": MASS[name]}.items():
            part.setReal([references[name][variable]], [value])
        for variable, text in STRINGS.items():
            part.setString([references[name][variable]], [text])
        part.enterInitializationMode()
        parts[name] = part

    def exchange() -> None:
        values = [parts[a].getReal([references[a][out]]) for a, out, _, _ in CONNECTIONS]
        for (_, _, b, into), value in zip(CONNECTIONS, values, strict=True):
            parts[b].setReal([references[b][into]], value)

    exchange()
    for part in parts.values():
        part.exitInitializationMode()
    rows = []
    for k in range(STEPS):
        exchange()
        for part in parts.values():
            part.doStep(currentCommunicationPoint=k * H, communicationStepSize=H)
        rows.append([parts[part].getReal([references[part][v]])[0] for part, v in WATCHED])
    for part in parts.values():
        part.terminate()
        part.freeInstance()
    return {f"{part}.{v}": column for (part, v), column in zip(WATCHED, np.array(rows).T, strict=True)}


def by_libcosim(folder: Path) -> Trace:
    """libcosim's fixed-step algorithm."""
    from libcosimpy.CosimExecution import CosimExecution
    from libcosimpy.CosimLogging import CosimLogLevel, log_output_level
    from libcosimpy.CosimObserver import CosimObserver
    from libcosimpy.CosimSlave import CosimLocalSlave

    log_output_level(CosimLogLevel.ERROR)
    execution = CosimExecution.from_step_size(round(H * 1e9))
    index = {name: execution.add_local_slave(CosimLocalSlave(str(folder / file), name)) for name, file in FILES.items()}
    references = {
        name: {v.name.decode(): v.reference for v in execution.slave_variables(k)} for name, k in index.items()
    }
    for name, k in index.items():
        for variable, value in {**REALS, "mass": MASS[name]}.items():
            execution.real_initial_value(k, references[name][variable], value)
        for variable, text in STRINGS.items():
            execution.string_initial_value(k, references[name][variable], text)
    for a, out, b, into in CONNECTIONS:
        execution.connect_real_variables(index[a], references[a][out], index[b], references[b][into])
    observer = CosimObserver.create_last_value()
    execution.add_observer(observer)
    rows = []
    for _ in range(STEPS):
        if not execution.step():
            raise RuntimeError("libcosim stopped")
        rows.append([observer.last_real_values(index[part], [references[part][v]])[0] for part, v in WATCHED])
    return {f"{part}.{v}": column for (part, v), column in zip(WATCHED, np.array(rows).T, strict=True)}


def alone(tool: Callable[[Path], Trace], folder: Path) -> Trace:
    """Run it in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=_silent) as pool:
        return pool.submit(tool, folder).result()


def _silent() -> None:
    """These FMUs print on the terminal."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def main() -> int:
    """Run the tools and print the differences to cosolve."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder with Chassis.fmu and Wheel.fmu")
    folder = parser.parse_args().folder.resolve()
    ours = alone(by_cosolve, folder)
    others = {"FMPy": by_fmpy}
    if find_spec("libcosimpy"):
        others["libcosim"] = by_libcosim
    worst = 0.0
    for label, tool in others.items():
        theirs = alone(tool, folder)
        for name, column in theirs.items():
            scale = max(1.0, float(np.abs(column).max()))
            gap = float(np.abs(column - ours[name]).max()) / scale
            worst = max(worst, gap)
            print(f"{label:<9} {name:<17} at the end {column[-1]:+.12e}, largest difference {gap:.1e}")
    print(f"largest difference {worst:.1e}, limit {LIMIT:g}")
    return int(not worst <= LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
