"""One run of one case by one tool; imported in the process that belongs to this run alone.

Every tool makes the same run: the same communication points, inputs at their start values, and the same tolerances. A
trace is `{"t": times, name: values}` with one column for each element of an output.

Model exchange: each tool has its own integrator, both at the tolerance `ACCURACY`.
"""

from __future__ import annotations

import csv
import re
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Job = Mapping[str, Any]
Trace = dict[str, Any]
ACCURACY = 1e-9  # relative tolerance of both integrators in model exchange
SSP, MODEL_EXCHANGE = "SSP", "model exchange"


class Refused(Exception):
    """A tool cannot make this run; its text says why."""


# -- cosolve -------------------------------------------------------------------------------------------------------


def by_cosolve(job: Job) -> Iterator[Trace]:
    """Two runs of the same `System`."""
    import cosolve as cs

    if job["kind"] == SSP:
        system = cs.fmi.read_ssp(job["file"], method=cs.Jacobi(0), step=job["step"], t_end=job["t_end"]).system
        names = {
            f"{where}.{port.name}": f"{where}.{port.name}" for where, ports in system.outputs.items() for port in ports
        }
    else:
        options: dict[str, Any] = {"tolerance": job["tolerance"]}
        if job["kind"] == MODEL_EXCHANGE:
            options |= {"rtol": ACCURACY, "atol": ACCURACY * 1e-2}
        part = cs.load_fmu(
            job["file"], kind=job["kind"] or None, outputs=job["outputs"], inputs=[*job["inputs"]], **options
        )
        system = cs.System({"fmu": part})
        for port, start in zip(system.inputs["fmu"], job["inputs"].values(), strict=True):
            system.set(f"fmu.{port.name}", numbers(start, port.size or 1) if port.size else numbers(start, 1)[0])
        names = {f"fmu.{port.name}": given for port, given in zip(system.outputs["fmu"], job["outputs"], strict=True)}
    stopped: cs.errors.SimulationError | None = None
    for _ in range(2):
        try:
            result = cs.simulate(system, t_start=job["t0"], t_end=job["t_end"], method=cs.Jacobi(0), step=job["step"])
        except cs.errors.SimulationError as error:
            if error.result is None or len(error.result.t) < 2:
                raise
            stopped, result = stopped or error, error.result
        yield columns(result.t, {shown: result[name] for name, shown in names.items()})
    if stopped is not None:  # what there was before it stopped is compared all the same
        raise stopped


# -- FMPy ----------------------------------------------------------------------------------------------------------


def by_fmpy(job: Job) -> Iterator[Trace]:
    """One run of `simulate_fmu`, with the calls that cosolve makes: event mode and early return where declared."""
    import fmpy

    if job["kind"] == SSP:
        yield _ssp_by_fmpy(job)
        return
    short = {MODEL_EXCHANGE: "ModelExchange", "co-simulation": "CoSimulation"}.get(job["kind"])
    relative = ACCURACY if job["kind"] == MODEL_EXCHANGE else job["tolerance"]
    read = fmpy.read_model_description(job["file"], validate=False)
    lengths = {v.name: int(np.prod(v.shape)) if v.shape else 0 for v in read.modelVariables}
    absent = {
        name: 0.0 if not lengths[name] else numbers(None, lengths[name])
        for name, start in job["inputs"].items()
        if start is None
    }
    options = {
        "validate": False,
        "start_time": job["t0"],
        "stop_time": job["t_end"],
        "output_interval": job["step"],
        "relative_tolerance": relative,
        "fmi_type": short,
        "output": job["outputs"],
        "start_values": absent,
        "record_events": False,
        "early_return_allowed": job["early_return"],
    }
    try:
        found = fmpy.simulate_fmu(job["file"], use_event_mode=job["event_mode"], **options)
    except Exception as error:
        if not (job["event_mode"] and "instantiate" in str(error)):
            raise
        found = fmpy.simulate_fmu(job["file"], **options)  # declared and then refused: without, as cosolve does
    yield columns(found["time"], {name: found[name] for name in found.dtype.names if name != "time"})


def by_fmpy_points(job: Job) -> Iterator[Trace]:
    """FMI 2.0 co-simulation at the very points of cosolve: `simulate_fmu` has others, which differ in the last bit.

    An FMU with steps of its own may make one more or less for that.
    """
    import fmpy
    from fmpy.fmi2 import FMU2Slave

    read = fmpy.read_model_description(job["file"], validate=False)
    folder = job["file"] if Path(job["file"]).is_dir() else fmpy.extract(job["file"])
    variables = {v.name: v for v in read.modelVariables}
    part = FMU2Slave(
        guid=read.guid,
        unzipDirectory=folder,
        modelIdentifier=read.coSimulation.modelIdentifier,
        instanceName=read.modelName,
    )
    part.instantiate()
    part.setupExperiment(tolerance=job["tolerance"], startTime=job["t0"], stopTime=job["t_end"])
    part.enterInitializationMode()
    part.exitInitializationMode()
    getters = {"Real": part.getReal, "Boolean": part.getBoolean}

    def values() -> list[float]:
        found = []
        for name in job["outputs"]:
            get = getters.get(variables[name].type, part.getInteger)
            found.append(float(get([variables[name].valueReference])[0]))
        return found

    rows = [values()]
    for t in job["times"][:-1]:
        part.doStep(currentCommunicationPoint=t, communicationStepSize=job["step"])
        rows.append(values())
    part.terminate()
    part.freeInstance()
    yield columns(job["times"], dict(zip(job["outputs"], np.array(rows).T, strict=True)))


def _ssp_by_fmpy(job: Job) -> Trace:
    from fmpy.ssp.simulation import simulate_ssp

    with tempfile.TemporaryDirectory() as folder:
        file = packed(Path(job["file"]), Path(folder))
        found = simulate_ssp(str(file), start_time=job["t0"], stop_time=job["t_end"], step_size=job["step"])
    # a row carries the time at which its step began and the values at which it ended
    return columns(found["time"] + job["step"], {name: found[name] for name in found.dtype.names if name != "time"})


def packed(path: Path, folder: Path) -> Path:
    """An SSP as an archive: itself, or what lies beside a `.ssd`."""
    if path.suffix.lower() != ".ssd":
        return path
    target = folder / "system.ssp"
    with zipfile.ZipFile(target, "w") as archive:
        for file in sorted(path.parent.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(path.parent).as_posix())
    return target


# -- libcosim ------------------------------------------------------------------------------------------------------


def outside_libcosim(job: Job) -> str:
    """Why a case is none for libcosim; empty where it is one."""
    if job["kind"] == MODEL_EXCHANGE:
        return "co-simulation only"
    if job["fmi"].startswith("3"):
        return "FMI 1 and 2 only"
    if Path(job["file"]).is_dir():
        return "packed FMUs only"
    if job["t0"] != 0.0 or abs(round(job["step"] * 1e9) * 1e-9 - job["step"]) > 1e-9 * job["step"]:
        return "starts at 0 and counts whole nanoseconds"
    return ""


def by_libcosim(job: Job) -> Iterator[Trace]:
    """One run of the fixed-step algorithm of libcosim, which has no point at the start."""
    from libcosimpy.CosimEnums import CosimVariableType
    from libcosimpy.CosimExecution import CosimExecution
    from libcosimpy.CosimLogging import CosimLogLevel, log_output_level
    from libcosimpy.CosimObserver import CosimObserver
    from libcosimpy.CosimSlave import CosimLocalSlave

    nanoseconds = round(job["step"] * 1e9)
    log_output_level(CosimLogLevel.FATAL)
    if job["kind"] == SSP:
        file = Path(job["file"])
        execution = CosimExecution.from_ssp_file(str(file if file.suffix == ".ssp" else file.parent), nanoseconds)
    else:
        execution = CosimExecution.from_step_size(nanoseconds)
        execution.add_local_slave(CosimLocalSlave(job["file"], "fmu"))
    observer = CosimObserver.create_last_value()
    execution.add_observer(observer)
    readers = {
        CosimVariableType.REAL.value: observer.last_real_values,
        CosimVariableType.INTEGER.value: observer.last_integer_values,
        CosimVariableType.BOOLEAN.value: observer.last_boolean_values,
    }
    wanted, names = [], []
    for slave in execution.slave_infos():
        where = "" if job["kind"] != SSP else slave.name.decode() + "."
        for variable in execution.slave_variables(slave.index):
            name = variable.name.decode()
            if variable.type in readers and (job["kind"] == SSP or name in job["outputs"]):
                wanted.append((readers[variable.type], slave.index, variable.reference))
                names.append(where + name)
    rows = []
    for k in range(job["steps"]):
        if not execution.step():
            from libcosimpy._internal import get_last_error_message

            said = get_last_error_message()
            raise Refused(f"step {k}: {said.decode() if isinstance(said, bytes) else said}")
        rows.append([read(index, [reference])[0] for read, index, reference in wanted])
    t = job["step"] * np.arange(1, job["steps"] + 1)
    yield columns(t, dict(zip(names, np.array(rows, dtype=float).T, strict=True)))


# -- OMSimulator ---------------------------------------------------------------------------------------------------


def outside_omsimulator(job: Job) -> str:
    """Why a case is none for OMSimulator's command; empty where it is one."""
    packed_file = Path(job["file"]).suffix.lower() in (".fmu", ".ssp")
    return "" if packed_file and not Path(job["file"]).is_dir() else "packed FMUs and SSPs only"


def by_omsimulator(job: Job) -> Iterator[Trace]:
    """One run of the command `OMSimulator`, which writes a CSV file whose columns end in the names of variables."""
    words = {
        "mode": "me" if job["kind"] == MODEL_EXCHANGE else "cs",
        "startTime": job["t0"],
        "stopTime": job["t_end"],
        "stepSize": job["step"],
        "intervals": job["steps"],
        "tolerance": ACCURACY if job["kind"] == MODEL_EXCHANGE else job["tolerance"] or 1e-6,
        "emitEvents": "false",
        "resultFile": "omsimulator.csv",
    }
    command = ["OMSimulator", job["file"], *(f"--{name}={value}" for name, value in words.items())]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    result = Path("omsimulator.csv")
    if done.returncode or not result.is_file():
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise Refused(lines[-1] if lines else f"ended with code {done.returncode}")
    with result.open(newline="", encoding="utf-8") as stream:
        heads, *rows = csv.reader(stream)
    table = np.array([row for row in rows if row], dtype=float)
    heads = [head.strip().strip('"') for head in heads]
    found: dict[str, Any] = {}
    for k, head in enumerate(heads[1:], 1):
        if job["kind"] == SSP:
            found[head.partition(".")[2].partition(".")[2] or head] = table[:, k]
            continue
        name = next((n for n in job["outputs"] if head == n or head.endswith(f".{n}")), None)
        if name is not None:
            found[name] = table[:, k]
    yield columns(table[:, 0], found)


TOOLS = {
    "cosolve": by_cosolve,
    "FMPy": by_fmpy,
    "FMPy at these points": by_fmpy_points,
    "libcosim": by_libcosim,
    "OMSimulator": by_omsimulator,
}


# -- pieces --------------------------------------------------------------------------------------------------------


def numbers(text: str | None, length: int) -> list[float]:
    """A start value as the model description writes it; 0 where it has none."""
    words = [{"true": "1", "false": "0"}.get(word, word) for word in (text or "0").split()]
    found = [float(word) for word in words]
    return found if len(found) == length else [found[0]] * length


def columns(t: Any, values: Mapping[str, Any]) -> Trace:
    """A trace with one column for each element."""
    found: Trace = {"t": np.asarray(t, dtype=float)}
    for name, value in values.items():
        array = np.asarray(value).astype(float)
        if array.ndim == 1:
            found[name] = array
            continue
        flat = array.reshape(len(array), -1)
        for k in range(flat.shape[1]):
            found[f"{name}[{k}]"] = flat[:, k]
    return found


def plain(name: str) -> str:
    """What is left of an address when tools write dots, slashes and brackets in their own way."""
    return re.sub(r"\W+", "_", name).strip("_")
