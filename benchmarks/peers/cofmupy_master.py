"""CoFmuPy: its default master, Jacobi, not iterative."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from cofmupy import Coordinator
from serve import serve


def jacobi(built: dict[str, Any], steps: int, H: float) -> dict[str, Any]:
    """Force/displacement; the coordinator records every step."""
    force = 100.0  # the spring at the start: nothing is exchanged before the first step
    wires = (("one", "x", "two", "x1"), ("one", "v", "two", "v1"), ("two", "F", "one", "f"))
    config = {
        "root": "",
        "fmus": [
            {"id": "one", "name": "one", "path": built["fmus"]["mass_force"], "initialization": {"f": force}},
            {"id": "two", "name": "two", "path": built["fmus"]["mass_spring"], "initialization": {}},
        ],
        "connections": [
            {"source": {"id": a, "variable": x, "type": "fmu"}, "target": {"id": b, "variable": y, "type": "fmu"}}
            for a, x, b, y in wires
        ],
        "cosim_method": "jacobi",
        "iterative": False,
        "edge_sep": " -> ",
        "data_storages": [],
    }
    coordinator = Coordinator()
    coordinator.start(config)
    began = perf_counter()
    for _ in range(steps):
        coordinator.do_step(H)
    seconds = perf_counter() - began
    answer = [coordinator.get_variable(name)[-1] for name in (("one", "x"), ("one", "v"), ("two", "x"), ("two", "v"))]
    return {"seconds": seconds / steps, "answer": [float(v) for v in answer]}


if __name__ == "__main__":
    serve({"jacobi": jacobi}, "cofmupy")
