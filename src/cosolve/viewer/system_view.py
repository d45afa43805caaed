"""A system before it is run: its coupling with units, loops, advice, which methods fit, and a map of stability."""

from __future__ import annotations

from typing import Any

import numpy as np

from cosolve.analysis import amplification_matrix, coupling_structure, critical_step
from cosolve.analysis.advice import check
from cosolve.analysis.black_box import hides_state
from cosolve.basics.arrays import Vector
from cosolve.errors import CosolveError
from cosolve.interface import System
from cosolve.interface.representation import graph
from cosolve.method import Method
from cosolve.method.named import MethodLike, as_method, proposals
from cosolve.viewer.drawing import coupling
from cosolve.viewer.frames import plain_dict

_LARGEST = 60  # coupling variables, with their outputs: above that the map takes too long to wait for
_STEPS = 25
_RANGE = 30.0  # between the step in the middle of the map and its ends


def described(system: System, method: MethodLike | None = None, step: float | None = None) -> dict[str, Any]:
    """Everything that the page shows of a system, as plain data; `method` and `step` are those to be judged.

    >>> import cosolve as cs
    >>> mass = lambda x: cs.Linear([[0, 1], [-1, 0]], [[0], [1]], [[1, 0]], x0=[x, 0], inputs=["f"], outputs=["x"])
    >>> system = cs.System({"one": mass(0), "two": mass(1)})
    >>> system.law({"one.f": 1, "two.f": -1}, lambda x1, x2: 9 * (x2 - x1), of=["one.x", "two.x"])
    >>> found = described(system, cs.SemiImplicit(degree=1), 0.05)
    >>> found["findings"][0]["text"], found["loops"], found["map"]["methods"][0]
    ('SemiImplicit(1) can run this system', [], 'Jacobi(1)')
    """
    chosen = None if method is None else as_method(method)
    advice = check(system, chosen, step if isinstance(step, float) else None)
    shown = coupling(graph(system), None)
    if shown is not None:
        for box in shown["subsystems"]:
            box["input_units"] = [port.unit for port in system.inputs[box["name"]]]
            box["output_units"] = [port.unit for port in system.outputs[box["name"]]]
    found: dict[str, Any] = {
        "title": f"{len(system.subsystems)} coupled subsystems",
        "coupling": shown,
        "text": str(system),
        "findings": [{"level": f.level, "text": f.text} for f in advice.findings],
        "method": "" if chosen is None else repr(chosen) + (f" with H = {step:g}" if isinstance(step, float) else ""),
        "loops": [],
        "methods": [],
        "map": None,
        "no_map": "",
    }
    try:
        found["loops"] = coupling_structure(system).loops
        found |= _methods(system, chosen, step if isinstance(step, float) else None)
    except CosolveError as error:  # said in the findings as well, unless it comes later
        found["no_map"] = f"There is no map of stability: {error}"
    return plain_dict(found)


def _methods(system: System, chosen: Method | None, step: float | None) -> dict[str, Any]:
    """Which methods fit and why not the others, and the spectral radius over step and method."""
    methods = _candidates(chosen)
    reasons = [_refusal(method, system) for method in methods]
    why = _why_no_map(system)
    fitting = [method for method, reason in zip(methods, reasons, strict=True) if not reason]
    steps = _steps(system, step, fitting) if not why else np.zeros(0)
    points = [[_point(system, method, float(H)) for H in steps] for method in fitting]
    listed = []
    for method, reason in zip(methods, reasons, strict=True):
        limit, sentence = ("", reason) if reason else (None, "the subsystems can do everything that it needs")
        if not reason and not why:
            limit, sentence = _limit(steps, points[fitting.index(method)])
        listed.append(
            {"name": method.label, "fits": not reason, "chosen": method == chosen, "critical": limit, "why": sentence}
        )
    if why:
        return {"methods": listed, "no_map": why}
    at = None
    if chosen in fitting and step is not None:
        at = [fitting.index(chosen), int(np.argmin(np.abs(np.log(steps / step))))]
    labels = [method.label for method in fitting]
    return {"methods": listed, "map": {"steps": steps, "methods": labels, "points": points, "chosen": at}}


def _candidates(chosen: Method | None) -> list[Method]:
    usual = proposals("map")
    if chosen is None or chosen in usual:
        return usual
    return [chosen, *usual]


def _refusal(method: Method, system: System) -> str:
    try:
        method.refuse_unfit(system.plan())
    except CosolveError as error:
        return str(error)
    return ""


def _why_no_map(system: System) -> str:
    plan = system.plan()
    if hides_state(plan):
        return "A subsystem does not show its state, so that there is no map; cosolve check tries steps out instead."
    if not plan.n_z:
        return "Nothing is coupled here, so every step is stable."
    if 3 * plan.n_z + plan.n_y > _LARGEST:
        return "The system is too large for a map at once; cs.analysis.spectral_radius gives single points of it."
    return ""


def _steps(system: System, step: float | None, methods: list[Method]) -> Vector:
    """Macro steps around the one that was chosen, or else around where a method loses its stability."""
    middle = step
    for method in methods:
        if middle is None:
            limit = critical_step(system, method)
            middle = limit if np.isfinite(limit) and limit > 0 else None
    return (middle or 1e-2) * _RANGE ** (np.arange(_STEPS) / (_STEPS // 2) - 1.0)


def _point(system: System, method: Method, H: float) -> tuple[float, bool] | None:
    """The spectral radius of a macro step and whether it is stable, which a radius of 1 does not tell."""
    try:
        found = amplification_matrix(system, method, H)
    except CosolveError:
        return None
    return float(found.radius), not found.unstable


def _limit(steps: Vector, points: list[tuple[float, bool] | None]) -> tuple[str, str]:
    """Up to which step of the map a method is stable, and what that means."""
    bad = [k for k, point in enumerate(points) if point is None or not point[1]]
    if not bad:
        return f"more than {steps[-1]:.2g}", "stable in the whole map"
    if bad[0] == 0:
        return f"less than {steps[0]:.2g}", "errors grow in the whole map"
    return f"about {np.sqrt(steps[bad[0] - 1] * steps[bad[0]]):.2g}", "stable below that step, errors grow above it"
