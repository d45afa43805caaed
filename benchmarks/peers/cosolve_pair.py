"""cosolve on the cheap pair: two FMUs in the compiled loop and in the Python engine, and Python subsystems."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from problems.plain import Plain
from serve import serve

import cosolve as cs

_SYSTEMS: dict[Any, cs.System] = {}


def _pair(built: dict[str, Any]) -> cs.System:
    if "pair" not in _SYSTEMS:
        system = cs.System(
            {"one": cs.load_fmu(built["fmus"]["mass_force"]), "two": cs.load_fmu(built["fmus"]["mass_spring"])}
        )
        system.connect("one.x", "two.x1")
        system.connect("one.v", "two.v1")
        system.connect("two.F", "one.f")
        _SYSTEMS["pair"] = system
    return _SYSTEMS["pair"]


def _forces(built: dict[str, Any], x2: float, ck: float, dk: float) -> cs.System:
    import numba

    if "forces" not in _SYSTEMS:
        path = built["fmus"]["mass_force"]
        system = cs.System({"one": cs.load_fmu(path), "two": cs.load_fmu(path, start={"x": x2})})
        law = numba.njit(lambda x1, v1, x2, v2: ck * (x2 - x1) + dk * (v2 - v1))
        system.law({"one.f": 1, "two.f": -1}, law, of=["one.x", "one.v", "two.x", "two.v"], name="lam")
        _SYSTEMS["forces"] = system
    return _SYSTEMS["forces"]


def _end(result: cs.Result) -> list[float]:
    return [float(result[name][-1]) for name in ("one.x", "one.v", "two.x", "two.v")]


def _timed(system: cs.System, method: cs.Method, steps: int, H: float, compiled: bool) -> dict[str, Any]:
    began = perf_counter()
    result = cs.simulate(system, t_end=steps * H, method=method, step=H, compiled=compiled)
    seconds = perf_counter() - began
    assert result.stats.steps == steps
    return {
        "seconds": (seconds - result.stats.loading_seconds) / steps,  # loading is a row of its own
        "inside": result.stats.compiled_seconds / steps,
        "loading": result.stats.loading_seconds,
        "rows": len(result.t),
        "answer": _end(result),
    }


def jacobi(built: dict[str, Any], steps: int, H: float, compiled: bool = True) -> dict[str, Any]:
    """The whole `simulate` call, every row recorded."""
    return _timed(_pair(built), cs.Jacobi(0), steps, H, compiled)


def force_jacobi(built: dict[str, Any], steps: int, H: float, x2: float, ck: float, dk: float) -> dict[str, Any]:
    """Two masses and a law between them, explicitly."""
    return _timed(_forces(built, x2, ck, dk), cs.Jacobi(0), steps, H, True)


def semi_implicit(
    built: dict[str, Any], steps: int, H: float, x2: float, ck: float, dk: float, compiled: bool = True
) -> dict[str, Any]:
    """Predictor, one difference column, corrector, with rollback."""
    return _timed(_forces(built, x2, ck, dk), cs.SemiImplicit(0, jacobian="difference"), steps, H, compiled)


def python_subsystems(steps: int, H: float) -> dict[str, Any]:
    """Python-defined subsystems in the Python engine; the same subsystem steps in a bare loop are taken off."""
    one, two = Plain(False, H), Plain(True, H)
    system = cs.System({"one": one, "two": two})
    system.connect("one.x", "two.x1")
    system.connect("one.v", "two.v1")
    system.connect("two.F", "one.f")
    began = perf_counter()
    result = cs.simulate(system, t_end=steps * H, method=cs.Jacobi(0), step=H, compiled=False)
    whole = (perf_counter() - began) / steps
    answer = _end(result)
    signals = cs.Polynomial(0.0, H, np.zeros((1, 1))), cs.Polynomial(0.0, H, np.zeros((1, 2)))
    began = perf_counter()
    for k in range(steps):
        one.advance(k * H, (k + 1) * H, signals[0])
        two.advance(k * H, (k + 1) * H, signals[1])
    own = (perf_counter() - began) / steps
    return {"seconds": whole - own, "whole": whole, "own": own, "answer": answer}


if __name__ == "__main__":
    cases = {
        "jacobi": jacobi,
        "force_jacobi": force_jacobi,
        "semi_implicit": semi_implicit,
        "python_subsystems": python_subsystems,
    }
    serve(cases, "cosolve", "numba", "numpy")
