"""cosolve's methods on the pair of FMUs to t = 1 s: error, subsystem solves and time."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from serve import serve

import cosolve as cs

_SYSTEMS: dict[str, cs.System] = {}


def advanced(built: dict[str, Any], steps: int, method: str, T: float) -> dict[str, Any]:
    """One run; `method` is an expression such as `SemiImplicit(2)`."""
    if not _SYSTEMS:
        system = cs.System(
            {"one": cs.load_fmu(built["fmus"]["mass_force"]), "two": cs.load_fmu(built["fmus"]["mass_spring"])}
        )
        system.connect("one.x", "two.x1")
        system.connect("one.v", "two.v1")
        system.connect("two.F", "one.f")
        _SYSTEMS["pair"] = system
    chosen: cs.Method = eval(f"cs.{method}", {"cs": cs})
    began = perf_counter()
    result = cs.simulate(_SYSTEMS["pair"], t_end=T, method=chosen, step=T / steps, compiled=True)
    seconds = perf_counter() - began - result.stats.loading_seconds
    answer = [float(result[name][-1]) for name in ("one.x", "one.v", "two.x", "two.v")]
    return {"seconds": seconds, "solves": sum(result.stats.calls.values()), "answer": answer}


if __name__ == "__main__":
    serve({"advanced": advanced}, "cosolve")
