"""Runs an exported FMU in FMPy and prints what it saw as JSON; a process of its own, as the FMU brings Python code."""

import json
import sys

import fmpy
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave
from fmpy.validation import validate_fmu

path, job = sys.argv[1], json.loads(sys.argv[2])
found = {"problems": validate_fmu(path)}

if "simulate" in job:
    result = fmpy.simulate_fmu(path, **job["simulate"])
    found["columns"] = {name: [float(v).hex() for v in result[name].ravel()] for name in result.dtype.names}

if "steps" in job:
    folder = str(fmpy.extract(path))
    description = fmpy.read_model_description(folder)
    two = description.fmiVersion == "2.0"
    reference = {v.name: v.valueReference for v in description.modelVariables}

    def instance():
        kind = FMU2Slave if two else FMU3Slave
        fmu = kind(
            guid=description.guid if two else description.instantiationToken,
            unzipDirectory=folder,
            modelIdentifier=description.coSimulation.modelIdentifier,
            instanceName="x",
        )
        fmu.instantiate()
        for name, value in job.get("parameters", {}).items():
            put(fmu, name, value)
        if two:
            fmu.setupExperiment(startTime=0.0)
            fmu.enterInitializationMode()
        else:
            fmu.enterInitializationMode(startTime=0.0)
        fmu.exitInitializationMode()
        return fmu

    def put(fmu, name, value):
        (fmu.setReal if two else fmu.setFloat64)([reference[name]], [value])

    def see(fmu):
        get = fmu.getReal if two else fmu.getFloat64
        return [get([reference[name]])[0].hex() for name in job["see"]]

    def run(fmu, t, steps):
        seen = []
        for h, inputs in steps:
            for name, value in inputs.items():
                put(fmu, name, value)
            fmu.doStep(t, h)
            t += h
            seen.append(see(fmu))
        return seen

    fmu = instance()
    found["first"] = see(fmu)
    half = len(job["steps"]) // 2
    t_half = sum(h for h, _ in job["steps"][:half])
    before = run(fmu, 0.0, job["steps"][:half])
    flags = description.coSimulation
    found["flags"] = [flags.canGetAndSetFMUstate, flags.canSerializeFMUstate]
    state = fmu.getFMUState()
    after = run(fmu, t_half, job["steps"][half:])
    fmu.setFMUState(state)
    found["again"] = run(fmu, t_half, job["steps"][half:])
    data = fmu.serializeFMUState(state)
    fmu.freeFMUState(state)
    other = instance()
    state = other.deserializeFMUState(data)
    other.setFMUState(state)
    found["elsewhere"] = run(other, t_half, job["steps"][half:])
    found["seen"] = before + after
    for one in (fmu, other):
        one.terminate()
        one.freeInstance()

print("FOUND" + json.dumps(found))
