"""The hand-written C master, loops in one call."""

from __future__ import annotations

import ctypes
from time import perf_counter
from typing import Any

from serve import serve

DOUBLES = ctypes.POINTER(ctypes.c_double)


def _start(built: dict[str, Any], first: str, second: str, values: dict[int, float]) -> ctypes.CDLL:
    master = ctypes.CDLL(built["master"])
    for name in ("jacobi", "semi_implicit", "force_jacobi"):
        getattr(master, name).restype = None
    master.jacobi_recorded.restype = ctypes.c_long
    refs, numbers = (ctypes.c_uint * len(values))(*values), (ctypes.c_double * len(values))(*values.values())
    paths = (built["libraries"][n].encode() for n in (first, second))
    if master.start(*paths, refs, ctypes.c_size_t(len(values)), numbers):
        raise RuntimeError("the FMUs could not be loaded")
    return master


def jacobi(built: dict[str, Any], steps: int, H: float) -> dict[str, Any]:
    """No checks, no recording."""
    master = _start(built, "mass_force", "mass_spring", {})
    end = (ctypes.c_double * 5)()
    began = perf_counter()
    master.jacobi(ctypes.c_long(steps), ctypes.c_double(H), end)
    return {"seconds": (perf_counter() - began) / steps, "answer": [end[0], end[1], end[3], end[4]]}


def jacobi_recorded(built: dict[str, Any], steps: int, H: float) -> dict[str, Any]:
    """Every status and number checked, every row kept."""
    master = _start(built, "mass_force", "mass_spring", {})
    began = perf_counter()
    rows = (ctypes.c_double * (9 * steps))()
    if master.jacobi_recorded(ctypes.c_long(steps), ctypes.c_double(H), rows) != steps:
        raise RuntimeError("a step failed")
    seconds = (perf_counter() - began) / steps
    last = rows[9 * (steps - 1) :]
    return {"seconds": seconds, "answer": [last[1], last[2], last[4], last[5]]}


def _force(name: str) -> Any:
    def run(built: dict[str, Any], steps: int, H: float, x2: float, ck: float, dk: float) -> dict[str, Any]:
        master = _start(built, "mass_force", "mass_force", {6: x2})
        end = (ctypes.c_double * 4)()
        began = perf_counter()
        getattr(master, name)(ctypes.c_long(steps), *(ctypes.c_double(v) for v in (H, ck, dk)), end)
        return {"seconds": (perf_counter() - began) / steps, "answer": list(end)}

    return run


if __name__ == "__main__":
    serve(
        {
            "jacobi": jacobi,
            "jacobi_recorded": jacobi_recorded,
            "semi_implicit": _force("semi_implicit"),
            "force_jacobi": _force("force_jacobi"),
        }
    )
