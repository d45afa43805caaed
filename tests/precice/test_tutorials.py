"""Public tutorials for preCICE 3, unchanged, in the folder that COSOLVE_PRECICE_TUTORIALS names (a checkout of them).

Counts and errors were measured with preCICE 3.4.1. Only those whose participants need nothing but numpy, scipy and a
C++ compiler; others run in the same way once their solvers are there.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cosolve as cs

FOLDER = os.environ.get("COSOLVE_PRECICE_TUTORIALS", "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.covers("PX-21"),
    pytest.mark.skipif(not FOLDER, reason="COSOLVE_PRECICE_TUTORIALS names no folder"),
]


@pytest.fixture
def case(tmp_path):
    """Copies a tutorial, and the function that couples two of its participants; gives counts and what they printed."""

    def coupled(name, commands, **environment):
        folder = tmp_path / name
        shutil.copytree(Path(FOLDER) / name, folder, dirs_exist_ok=True)
        ours = subprocess.run(["cosolve", "precice", "path"], capture_output=True, text=True, check=True).stdout.strip()
        logs = tmp_path / "logs"
        asked = [sys.executable, "-m", "cosolve.cli", "precice", "run", "precice-config.xml", "--logs", str(logs)]
        for who, (where, what) in commands.items():
            asked += ["-p", f"{who}=cd {where} && {what}"]
        told = os.environ | {"PYTHONPATH": f"{ours}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"} | environment
        done = subprocess.run(asked, cwd=folder, env=told, capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 0, done.stderr
        counts = [int(n) for n in re.findall(r"(\d+) iterations", done.stdout)]
        return max(counts, default=0), {log.stem: log.read_text() for log in logs.glob("*.log")}, folder

    return coupled


def errors(words):
    """What both masses print last: step and error."""
    return [float(text.strip().splitlines()[-1].split(",")[1]) for _, text in sorted(words.items())]


@pytest.mark.parametrize(
    ("scheme", "iterations", "error"),
    [
        ("Newmark_beta", 386, [1.6296661803397727e-3, 1.5724021218319062e-3]),
        ("runge_kutta_4", 367, None),
        ("radauIIA", 367, None),
        ("generalized_alpha", 372, None),
    ],
)
def test_oscillator(case, scheme, iterations, error):
    run = f"{sys.executable} ../solver-python/oscillator.py"
    counted, words, _ = case(
        "oscillator",
        {
            f"Mass-{side}": (f"mass-{side.lower()}-python", f"{run} Mass-{side} -ts {scheme}")
            for side in ("Left", "Right")
        },
    )
    assert counted == pytest.approx(iterations, abs=1 if scheme == "radauIIA" else 0)
    if error is not None:
        assert errors(words) == pytest.approx(error, rel=1e-12)


def test_oscillator_overlap(case):
    run = f"{sys.executable} ../solver-python/oscillator.py"
    counted, words, _ = case(
        "oscillator-overlap",
        {f"Mass-{side}": (f"mass-{side.lower()}-python", f"{run} Mass-{side}") for side in ("Left", "Right")},
    )
    assert counted == 400
    assert 0.025975300322033934 in [pytest.approx(e, rel=1e-12) for e in errors(words)]


def test_resonant_circuit(case):
    """How many substeps its solvers take depends on rounding, so that one kind of BLAS has to be asked for."""
    counted, _, _ = case(
        "resonant-circuit",
        {
            "Coil": ("coil-python", f"{sys.executable} coil.py"),
            "Capacitor": ("capacitor-python", f"{sys.executable} capacitor.py"),
        },
        OPENBLAS_CORETYPE="Haswell",  # others: 40 to 45 iterations
    )
    assert counted == pytest.approx(40, rel=0.07)


def test_elastic_tube(case):
    counted, _, _ = case(
        "elastic-tube-1d",
        {
            "Fluid": ("fluid-python", f"{sys.executable} FluidSolver.py ../precice-config.xml"),
            "Solid": ("solid-python", f"{sys.executable} SolidSolver.py ../precice-config.xml"),
        },
    )
    assert counted == pytest.approx(859, rel=0.07)


def test_perpendicular_flap_with_stand_ins(case):
    counted, _, _ = case(
        "perpendicular-flap",
        {side: (f"{side.lower()}-fake", f"{sys.executable} fake.py") for side in ("Fluid", "Solid")},
    )
    assert counted == pytest.approx(991, rel=0.07)


@pytest.mark.skipif(shutil.which("cmake") is None, reason="no CMake")
def test_elastic_tube_in_cpp_linked_to_our_library(case, tmp_path):
    """Their sources, compiled as their CMake files say, against the library that looks like the one they ask for."""
    library = cs.remote.build_participant_library(tmp_path / "library", precice=True)
    programs = {}
    for side in ("fluid", "solid"):
        source, made = Path(FOLDER) / "elastic-tube-1d" / f"{side}-cpp", tmp_path / f"{side}-made"
        for command in (
            ["cmake", "-S", source, "-B", made, f"-DCMAKE_PREFIX_PATH={library}/precice", "-DCMAKE_BUILD_TYPE=Release"],
            ["cmake", "--build", made],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if "LAPACK" in done.stdout + done.stderr and done.returncode:
                pytest.skip("no LAPACK to compile their solver with")
            assert done.returncode == 0, done.stdout + done.stderr
        programs[side] = next(p for p in made.iterdir() if p.is_file() and os.access(p, os.X_OK))
    counted, _, _ = case(
        "elastic-tube-1d",
        {
            "Fluid": ("fluid-cpp", f"{programs['fluid']} ../precice-config.xml"),
            "Solid": ("solid-python", f"{sys.executable} SolidSolver.py ../precice-config.xml"),
        },
        LD_LIBRARY_PATH=str(library / "precice" / "lib"),
    )
    assert counted == pytest.approx(859, rel=0.07)
