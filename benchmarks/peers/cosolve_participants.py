"""The masses as two programs that own their loops, coupled window by window through the hub at a local socket.

A parallel explicit scheme is Jacobi with held inputs. The programs are written for the interface of preCICE 3.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from serve import serve

from cosolve.precice.running import run_configuration

PROGRAM = """
import json, sys, time
sys.path.insert(0, {problems!r})
import numpy as np
import precice
from problems.oscillator import Mass

name, H = sys.argv[1], float(sys.argv[2])
owns_spring = name == "two"
mesh, reads, writes = ("M2", ("X", "V"), ("F",)) if owns_spring else ("M1", ("F",), ("X", "V"))
mass = Mass(owns_spring, H)
p = precice.Participant(name, "config.xml", 0, 1)
ids = p.set_mesh_vertices(mesh, [[0.0, 0.0]])
if p.requires_initial_data():
    for data, value in zip(writes, (mass.spring(0.0, 0.0),) if owns_spring else (mass.x, mass.v)):
        p.write_data(mesh, data, ids, [value])
p.initialize()
began, steps = time.perf_counter(), 0
while p.is_coupling_ongoing():
    given = [p.read_data(mesh, data, ids, 0.0).item() for data in reads]
    if owns_spring:
        mass.pulled(*given)
        values = (mass.spring(*given),)
    else:
        mass.step(*given)
        values = mass.x, mass.v
    for data, value in zip(writes, values):
        p.write_data(mesh, data, ids, [value])
    p.advance(p.get_max_time_step_size())
    steps += 1
seconds = (time.perf_counter() - began) / steps
p.finalize()
print(json.dumps({{"seconds": seconds, "state": [mass.x, mass.v]}}))
"""
CONFIG = """<precice-configuration>
  <data:scalar name="X" /><data:scalar name="V" /><data:scalar name="F" />
  <mesh name="M1" dimensions="2"><use-data name="X" /><use-data name="V" /><use-data name="F" /></mesh>
  <mesh name="M2" dimensions="2"><use-data name="X" /><use-data name="V" /><use-data name="F" /></mesh>
  <participant name="one"><provide-mesh name="M1" /><receive-mesh name="M2" from="two" />
    <write-data name="X" mesh="M1" /><write-data name="V" mesh="M1" /><read-data name="F" mesh="M1" />
    <mapping:nearest-neighbor direction="read" from="M2" to="M1" constraint="consistent" /></participant>
  <participant name="two"><provide-mesh name="M2" /><receive-mesh name="M1" from="one" />
    <write-data name="F" mesh="M2" /><read-data name="X" mesh="M2" /><read-data name="V" mesh="M2" />
    <mapping:nearest-neighbor direction="read" from="M1" to="M2" constraint="consistent" /></participant>
  <m2n:sockets acceptor="one" connector="two" />
  <coupling-scheme:parallel-explicit>
    <participants first="one" second="two" />
    <max-time-windows value="{steps}" /><time-window-size value="{H!r}" />
    <exchange data="X" mesh="M1" from="one" to="two" initialize="true" />
    <exchange data="V" mesh="M1" from="one" to="two" initialize="true" />
    <exchange data="F" mesh="M2" from="two" to="one" initialize="true" />
  </coupling-scheme:parallel-explicit>
</precice-configuration>"""


def apart(steps: int, H: float) -> dict[str, Any]:
    """From the end of `initialize` to the end, as the first program sees it."""
    home, problems = Path.cwd(), str(Path(__file__).resolve().parent.parent)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            Path("config.xml").write_text(CONFIG.format(steps=steps, H=H))
            Path("program.py").write_text(PROGRAM.format(problems=problems))
            run_configuration(
                "config.xml",
                {name: f"{sys.executable} program.py {name} {H!r}" for name in ("one", "two")},
                logs=Path("logs"),
            )
            said = [json.loads(Path(f"logs/{name}.log").read_text().splitlines()[-1]) for name in ("one", "two")]
        finally:
            os.chdir(home)
    return {"seconds": said[0]["seconds"], "answer": said[0]["state"] + said[1]["state"]}


if __name__ == "__main__":
    serve({"apart": apart}, "cosolve")
