"""cosolve with both masses in processes of their own, behind shared memory."""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import Any

from problems.plain import Plain
from serve import serve

import cosolve as cs


def apart(steps: int, H: float, workers: int = 1, transport: str = "shared memory", masses: int = 2) -> dict[str, Any]:
    """The whole `simulate` call; the processes (one per mass, or only the second one's) are started before."""
    far = {"transport": transport, "timeout": 60.0}
    one = cs.Isolated(partial(Plain, False, H), **far) if masses == 2 else Plain(False, H)
    two = cs.Isolated(partial(Plain, True, H), **far)
    system = cs.System({"one": one, "two": two})
    system.connect("one.x", "two.x1")
    system.connect("one.v", "two.v1")
    system.connect("two.F", "one.f")
    cs.simulate(system, t_end=3 * H, method=cs.Jacobi(0), step=H)
    began = perf_counter()
    result = cs.simulate(system, t_end=steps * H, method=cs.Jacobi(0), step=H, workers=workers)
    seconds = (perf_counter() - began) / steps
    answer = [float(result[name][-1]) for name in ("one.x", "one.v", "two.x", "two.v")]
    for part in (one, two):
        if isinstance(part, cs.Isolated):
            part.close()
    return {"seconds": seconds, "answer": answer}


if __name__ == "__main__":
    serve({"apart": apart}, "cosolve")
