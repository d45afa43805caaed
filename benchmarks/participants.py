"""Cost of an explicit window between two programs with one number each way, through the hub: in Python, and in C++.

    python benchmarks/participants.py [windows]

prints microseconds per window: on the wall (the mean, and what a quarter of the windows stays below), and the processor
time of the hub and of each program. The mean only means something on a quiet machine; the quarter leaves out windows in
which another process had the core. Three processes take turns, so two cores are enough.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cosolve as cs
from cosolve.precice.running import run_configuration

PROGRAM = """
import sys, time
import numpy as np
import precice

name, mesh, into, out = sys.argv[1:5]
p = precice.Participant(name, "config.xml", 0, 1)
ids = p.set_mesh_vertices(mesh, [[0.0, 0.0]])
p.initialize()
wall, processor, ends = time.perf_counter(), time.process_time(), []
while p.is_coupling_ongoing():
    dt = p.get_max_time_step_size()
    p.write_data(mesh, out, ids, p.read_data(mesh, into, ids, dt))
    p.advance(dt)
    ends.append(time.perf_counter())
n, taken = len(ends), time.process_time() - processor
quarter = sorted(b - a for a, b in zip([wall, *ends], ends))[n // 4]
print((ends[-1] - wall) / n * 1e6, quarter * 1e6, taken / n * 1e6)
"""
COMPILED = r"""
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <vector>
#include <precice/precice.hpp>

int main(int, char** argv) {
  using clock = std::chrono::steady_clock;
  const char *name = argv[1], *mesh = argv[2], *into = argv[3], *out = argv[4];
  precice::Participant p(name, "config.xml", 0, 1);
  std::vector<double> at{0.0, 0.0}, value(1);
  std::vector<int> ids(1);
  p.setMeshVertices(mesh, at, ids);
  p.initialize();
  const auto began = clock::now();
  const auto processor = std::clock();
  auto last = began;
  std::vector<double> windows;
  while (p.isCouplingOngoing()) {
    const double dt = p.getMaxTimeStepSize();
    p.readData(mesh, into, ids, dt, value);
    p.writeData(mesh, out, ids, value);
    p.advance(dt);
    const auto now = clock::now();
    windows.push_back(std::chrono::duration<double, std::micro>(now - last).count());
    last = now;
  }
  const double taken = 1e6 * double(std::clock() - processor) / CLOCKS_PER_SEC, n = double(windows.size());
  std::sort(windows.begin(), windows.end());
  std::printf("%g %g %g\n", std::chrono::duration<double, std::micro>(last - began).count() / n,
              windows[windows.size() / 4], taken / n);
}
"""
CONFIG = """<precice-configuration>
  <data:scalar name="X" /><data:scalar name="Y" />
  <mesh name="MA" dimensions="2"><use-data name="X" /><use-data name="Y" /></mesh>
  <mesh name="MB" dimensions="2"><use-data name="X" /><use-data name="Y" /></mesh>
  <participant name="A"><provide-mesh name="MA" /><receive-mesh name="MB" from="B" />
    <write-data name="Y" mesh="MA" /><read-data name="X" mesh="MA" />
    <mapping:nearest-neighbor direction="read" from="MB" to="MA" constraint="consistent" /></participant>
  <participant name="B"><provide-mesh name="MB" /><receive-mesh name="MA" from="A" />
    <write-data name="X" mesh="MB" /><read-data name="Y" mesh="MB" />
    <mapping:nearest-neighbor direction="read" from="MA" to="MB" constraint="consistent" /></participant>
  <m2n:sockets acceptor="A" connector="B" />
  <coupling-scheme:{scheme}>
    <participants first="A" second="B" /><max-time-windows value="{windows}" /><time-window-size value="1" />
    <exchange data="Y" mesh="MA" from="A" to="B" /><exchange data="X" mesh="MB" from="B" to="A" />
  </coupling-scheme:{scheme}>
</precice-configuration>"""


def main(windows: int = 5000) -> None:
    """The table."""
    print(f"{'programs':<9} {'scheme':<20} {'wall':>8} {'quarter':>8} {'hub':>8} {'A':>8} {'B':>8}   us per window")
    with tempfile.TemporaryDirectory() as folder:
        kinds = {"Python": python(Path(folder))}
        if shutil.which("c++"):
            kinds["C++"] = compiled(Path(folder))
        for kind, program in kinds.items():
            for scheme in ("serial-explicit", "parallel-explicit"):
                short, _ = measured(program, scheme, windows // 10)  # what starting costs is in both
                whole, (a, b) = measured(program, scheme, windows)
                hub = (whole - short) / (windows - windows // 10) * 1e6
                print(f"{kind:<9} {scheme:<20} {a[0]:8.0f} {a[1]:8.0f} {hub:8.0f} {a[2]:8.0f} {b[2]:8.0f}", flush=True)


def python(folder: Path) -> str:
    """The command of the program in Python."""
    (folder / "program.py").write_text(PROGRAM)
    return f"{sys.executable} {folder}/program.py"


def compiled(folder: Path) -> str:
    """The command of the same program in C++, built against the package's own library."""
    (folder / "program.cpp").write_text(COMPILED)
    library = cs.remote.build_participant_library(folder / "library", precice=True) / "precice"
    words = [
        "c++",
        "-O2",
        "-std=c++17",
        str(folder / "program.cpp"),
        "-o",
        str(folder / "program"),
        f"-I{library}/include",
    ]
    subprocess.run([*words, f"-L{library}/lib", "-lprecice", f"-Wl,-rpath,{library}/lib"], check=True, timeout=300)
    return str(folder / "program")


def measured(program: str, scheme: str, windows: int) -> tuple[float, list[list[float]]]:
    """Processor time of the hub, and what the programs have measured themselves."""
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            Path("config.xml").write_text(CONFIG.format(scheme=scheme, windows=windows))
            commands = {"A": f"{program} A MA X Y", "B": f"{program} B MB Y X"}
            began = time.process_time()
            run_configuration("config.xml", commands, logs=Path("logs"))
            taken = time.process_time() - began
            logs = [Path(f"logs/{name}.log").read_text().splitlines()[-1] for name in "AB"]
            return taken, [[float(word) for word in line.split()] for line in logs]
        finally:
            os.chdir(home)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
