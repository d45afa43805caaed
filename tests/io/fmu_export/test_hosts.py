"""Exported FMUs in a host that is not cosolve: an exception inside must not take the host along."""

import sys

import pytest
from tests import processes

MODEL = """
import cosolve as cs


def rate(t, x, u):
    if t > 0.25:
        raise ValueError("valve stuck")
    return -x


def tank():
    return cs.Ode(rate, lambda t, x, u: x, x0=[1.0], inputs=[], outputs=["h"])
"""
HOST = """
import fmpy
from fmpy.fmi2 import FMU2Slave

description, folder = fmpy.read_model_description("tank.fmu"), fmpy.extract("tank.fmu")
name = description.coSimulation.modelIdentifier
fmu = FMU2Slave(guid=description.guid, unzipDirectory=folder, modelIdentifier=name, instanceName="a")
fmu.instantiate()
fmu.setupExperiment(startTime=0.0)
fmu.enterInitializationMode()
fmu.exitInitializationMode()
for k in range(5):
    try:
        fmu.doStep(0.1 * k, 0.1)
    except Exception:
        print("refused")
fmu.freeInstance()
print("freed", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a wrapper library of Linux")
def test_a_host_may_call_and_free_an_fmu_after_an_exception(tmp_path):
    """The wrapper gives back its references whenever a method raises, and then uses them again."""
    (tmp_path / "model.py").write_text(MODEL)
    options = {"cwd": tmp_path, "env": processes.environment()}
    export = [sys.executable, "-m", "cosolve.cli", "export", "model.py:tank", "tank.fmu"]
    processes.run(export, check=True, **options)
    done = processes.run([sys.executable, "-c", HOST], **options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["refused"] * 3 + ["freed"]
