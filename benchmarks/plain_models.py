"""What users write, per macro step: lambdas and jitted functions of four models, against the same arithmetic in C.

    python benchmarks/plain_models.py            # a table of nanoseconds per macro step
    python benchmarks/plain_models.py --python   # the same through the Python engine

Models: README's pair, the car of getting started, the double pendulum, and two halves of a nonlinear chain of 50
masses. Each with the default integrator ("auto", as written on the pages) and with ode4 in two internal steps, as in C.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import cosolve as cs

Decorate = Callable[[Any], Any]


def pair(decorate: Decorate, **options: Any) -> tuple[cs.System, float]:
    """README's two masses."""

    def mass(m: float, x: float) -> cs.Ode:
        rhs, output = (lambda t, s, u: np.array([s[1], u[0] / m])), (lambda t, s, u: s)
        named = {"x0": [x, 0.0], "inputs": ["f"], "outputs": ["x", "v"]}
        return cs.Ode(decorate(rhs), decorate(output), **named, **options)

    system = cs.System({"one": mass(1.0, 0.0), "two": mass(2.0, 1.0)})
    law = decorate(lambda x1, v1, x2, v2: 100 * (x2 - x1) + 2 * (v2 - v1))
    system.law({"one.f": 1, "two.f": -1}, law, of=["one.x", "one.v", "two.x", "two.v"])
    return system, 0.02


def car(decorate: Decorate, **options: Any) -> tuple[cs.System, float]:
    """The body and the wheel of getting started."""
    mass, stiffness, damping, light, tyre = 300.0, 2e4, 1500.0, 40.0, 2e5
    force = decorate(lambda x, u: stiffness * (x[0] - u[0]) + damping * (x[1] - u[1]))
    named = {"x0": [0.0, 0.0], **options}
    body = cs.Ode(
        decorate(lambda t, x, u: np.array([x[1], -force(x, u) / mass])),
        decorate(lambda t, x, u: np.array([x[0], force(x, u)])),
        **{"inputs": ["z_wheel", "v_wheel"], "outputs": ["z", "force"], **named},
    )
    wheel = cs.Ode(
        decorate(lambda t, x, u: np.array([x[1], (u[0] + tyre * (u[1] - x[0])) / light])),
        decorate(lambda t, x, u: x),
        **{"inputs": ["force", "road"], "outputs": ["z", "v"], **named},
    )
    system = cs.System({"body": body, "wheel": wheel})
    for source, target in (("wheel.z", "body.z_wheel"), ("wheel.v", "body.v_wheel"), ("body.force", "wheel.force")):
        system.connect(source, target)
    system.set("wheel.road", 0.05)
    return system, 5e-3


def pendulum(decorate: Decorate, **options: Any) -> tuple[cs.System, float]:
    """Two rods with a bushing between them (examples/double_pendulum_flexible)."""
    c, d, turn, slow = 1e5, 1e2, 500.0, 5.0

    def rod_1(t, s, u):  # type: ignore[no-untyped-def]
        torque = -turn * (s[0] - 5.0 * np.pi / 16.0) - slow * s[1] - 0.5 * 9.81 * np.cos(s[0])
        return np.array([s[1], (torque + np.cos(s[0]) * u[1] - np.sin(s[0]) * u[0]) * 3.0])

    def rod_2(t, s, u):  # type: ignore[no-untyped-def]
        turning = (0.5 * np.cos(s[2]) * u[1] - 0.5 * np.sin(s[2]) * u[0]) * 12.0
        return np.array([s[3], s[4], s[5], -u[0], -u[1] - 9.81, turning])

    def bushing(a, w, x, y, b, vx, vy, wb):  # type: ignore[no-untyped-def]
        ca, sa, cb, sb = np.cos(a), np.sin(a), np.cos(b), np.sin(b)
        first = c * (x - 0.5 * cb - ca) + d * (vx + 0.5 * sb * wb + sa * w)
        return first, c * (y - 0.5 * sb - sa) + d * (vy - 0.5 * cb * wb - ca * w)

    a, b = np.pi / 4, -np.pi / 4
    second = [np.cos(a) + 0.5 * np.cos(b), np.sin(a) + 0.5 * np.sin(b), b, 0.0, 0.0, 0.0]
    output, force = decorate(lambda t, s, u: s), [("f", 2)]
    one = cs.Ode(decorate(rod_1), output, x0=[a, 0.0], inputs=force, outputs=["phi", "w"], **options)
    names = ["x", "y", "phi", "vx", "vy", "w"]
    two = cs.Ode(decorate(rod_2), output, x0=second, inputs=force, outputs=names, **options)
    system = cs.System({"one": one, "two": two})
    reads = ["one.phi", "one.w", *(f"two.{name}" for name in names)]
    system.law({"one.f": 1, "two.f": 1}, decorate(bushing), of=reads)
    return system, 1e-3


def chain(decorate: Decorate, **options: Any) -> tuple[cs.System, float]:
    """Two halves of 25 masses with cubic springs, and such a spring between them."""
    n = 25

    def half(t, s, u):  # type: ignore[no-untyped-def]
        slope = np.empty(2 * n)
        for k in range(n):
            left = s[k] - (s[k - 1] if k > 0 else 0.0)
            right = (s[k + 1] if k < n - 1 else s[k]) - s[k]
            slope[k] = s[n + k]
            slope[n + k] = 100.0 * (right - left) + 10.0 * (right * right * right - left * left * left) - 0.1 * s[n + k]
        slope[2 * n - 1] = slope[2 * n - 1] + u[0]
        return slope

    output = decorate(lambda t, s, u: s[n - 1])
    x0 = [0.02 * np.sin(0.3 * k) for k in range(n)] + [0.0] * n
    part = lambda sign: cs.Ode(  # noqa: E731
        decorate(half), output, x0=[sign * x for x in x0], inputs=["f"], outputs=["x"], **options
    )
    system = cs.System({"left": part(1.0), "right": part(-0.5)})
    law = decorate(lambda a, b: 100.0 * (b - a) + 10.0 * (b - a) * (b - a) * (b - a))
    system.law({"left.f": 1, "right.f": -1}, law, of=["left.x", "right.x"])
    return system, 1e-2


MODELS = {"pair": pair, "car": car, "pendulum": pendulum, "chain": chain}
METHODS = {"Jacobi(1)": cs.Jacobi(1), "SemiImplicit(1)": cs.SemiImplicit(1), "Implicit(1)": cs.Implicit(1)}


def per_step(model: Any, decorate: Decorate, method: Any, fixed: bool, compiled: bool | None) -> float:
    """CPU nanoseconds per macro step, loading apart; the best of three."""
    _, H = model(decorate)
    options = {"integrator": "ode4", "internal_step": H / 2} if fixed else {}
    system, _ = model(decorate, **options)
    cs.simulate(system, t_end=40 * H, method=method, step=H, compiled=compiled)
    steps, best = 50, np.inf
    for _ in range(8):
        began = time.process_time()
        cs.simulate(system, t_end=steps * H, method=method, step=H, compiled=compiled)
        spent = time.process_time() - began
        if spent < 0.2:
            steps = int(min(20.0, max(2.0, 0.4 / max(spent, 1e-3))) * steps)
        else:
            best = min(best, spent / steps)
    return best * 1e9


C = Path(__file__).parent / "problems" / "plain_models.c"


def in_c(model: str) -> float:
    """The same arithmetic under Jacobi(1), written out by hand."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "models.so"
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, C, "-lm"], check=True)
        run = getattr(ctypes.CDLL(str(library)), model)
        run.restype, run.argtypes = ctypes.c_double, [ctypes.c_long]
        best = np.inf
        for _ in range(5):
            began = time.process_time()
            run(200_000)
            best = min(best, time.process_time() - began)
    return float(best) / 200_000 * 1e9


def main() -> None:
    """Print the table."""
    given = argparse.ArgumentParser()
    given.add_argument("--python", action="store_true", help="through the Python engine")
    given.add_argument("--models", nargs="*", default=list(MODELS))
    given.add_argument("--plain", action="store_true", help="lambdas only")
    given.add_argument("--default", action="store_true", help="as the package chooses the engine")
    options = given.parse_args()
    import numba

    compiled = False if options.python else None if options.default else True
    print("| model | functions | integrator |", " | ".join(METHODS), "|\n|---|---|---|---|---|---|")
    for name in options.models:
        for flavour, decorate in (("lambda", lambda f: f), ("jitted", numba.njit)):
            if options.plain and flavour == "jitted":
                continue
            for fixed in (False, True):
                found = [per_step(MODELS[name], decorate, m, fixed, compiled) for m in METHODS.values()]
                kind = "ode4, two steps" if fixed else "auto"
                print(f"| {name} | {flavour} | {kind} |", " | ".join(f"{ns:.0f}" for ns in found), "|", flush=True)
        if C.exists():
            print(f"| {name} | C | ode4, two steps | {in_c(name):.0f} | | |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
