"""The job of `cosolve_ranks.py`: mpiexec -n 2 python ranks_job.py STEPS H."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # problems

from problems.plain import Plain

import cosolve as cs


def main(steps: int, H: float) -> None:
    ranks = cs.remote.on_ranks(
        {"one": partial(Plain, False, h=H), "two": partial(Plain, True, h=H)}, placement={"two": 1}
    )
    system = cs.System(ranks.subsystems)
    system.connect("one.x", "two.x1")
    system.connect("one.v", "two.v1")
    system.connect("two.F", "one.f")
    run: dict[str, Any] = {"method": cs.Jacobi(0), "step": H}
    cs.simulate(system, t_end=3 * H, **run)
    began = perf_counter()
    result = cs.simulate(system, t_end=steps * H, **run)
    seconds = (perf_counter() - began) / steps
    print(
        json.dumps({"seconds": seconds, "answer": [float(result[n][-1]) for n in ("one.x", "one.v", "two.x", "two.v")]})
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
