"""numbalsoda: LSODA on a numba callback, started anew in every macro step."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numba
import numpy as np
from numbalsoda import lsoda, lsoda_sig
from problems import pendulum as p
from problems.jitted import accelerations
from serve import serve


def restarted(rtol: float, D: float = 0.0) -> dict[str, Any]:
    """Macro step after macro step, each advanced twice from the same state."""
    inner = accelerations()

    @numba.cfunc(lsoda_sig)
    def slope(t: float, x: Any, dx: Any, data: Any) -> None:
        a1, a2 = inner(x[0], x[1], x[2], x[3], 0.0, D)
        dx[0], dx[1], dx[2], dx[3] = x[2], x[3], a1, a2

    x, steps = np.array(p.START), round(p.T_END / p.H)
    began = perf_counter()
    for k in range(steps):
        span = np.array([k * p.H, (k + 1) * p.H])
        for _ in range(2):
            found, ok = lsoda(slope.address, x, span, rtol=rtol, atol=rtol * 1e-2)
            if not ok:
                raise RuntimeError("LSODA failed")
        x = found[-1]
    return {"seconds": (perf_counter() - began) / steps / 2, "answer": [float(v) for v in x]}


if __name__ == "__main__":
    serve({"restarted": restarted}, "numbalsoda")
