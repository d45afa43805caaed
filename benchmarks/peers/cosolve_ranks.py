"""cosolve with the second mass on another rank of an MPI job, which every request starts: `ranks_job.py`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from serve import serve


def apart(steps: int, H: float) -> dict[str, Any]:
    """The whole `simulate` call on rank 0; the job is started before."""
    beside = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if mpiexec is None:
        raise FileNotFoundError("there is no mpiexec (pip install 'cosolve[mpi]')")
    program = [sys.executable, str(Path(__file__).with_name("ranks_job.py")), str(steps), str(H)]
    ran = subprocess.run([mpiexec, "-n", "2", *program], capture_output=True, text=True, timeout=150.0)
    if ran.returncode:
        raise RuntimeError(
            f"the job ended with {ran.returncode}: {(ran.stderr.strip().splitlines() or ['no word'])[-1]}"
        )
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    serve({"apart": apart}, "cosolve")
