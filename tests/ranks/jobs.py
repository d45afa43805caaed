"""Starting MPI jobs from tests; where that is not possible the tests are skipped, with a reason."""

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from tests import processes

_TRIAL = "from mpi4py import MPI; import sys; sys.exit(0 if MPI.COMM_WORLD.size == 2 else 5)"


@cache
def _mpiexec() -> str:
    """The mpiexec of this environment; skips where it is missing or cannot start processes."""
    pytest.importorskip("mpi4py", reason="MPI is missing: mpi4py is not installed")
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        pytest.skip("MPI is missing: there is no mpiexec")
    ran = processes.run([found, "-n", "2", sys.executable, "-c", _TRIAL], limit=60.0)
    if ran.returncode:
        pytest.skip(f"mpiexec cannot start processes of this Python here: exit code {ran.returncode}")
    return found


def command(ranks: int, *arguments: object) -> list[str]:
    """`mpiexec -n ranks python arguments`."""
    return [_mpiexec(), "-n", str(ranks), sys.executable, *map(str, arguments)]


def run(ranks: int, *arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A job to its end."""
    return processes.run(command(ranks, *arguments), cwd=cwd, env=processes.environment(OPENBLAS_NUM_THREADS="1"))
