"""cosolve with one or both masses in processes of their own, in Python or as machine code, under either engine.

They are reached through shared memory or pipes, or over the network as from another machine: TCP, encrypted.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from problems import oscillator as o
from problems.plain import Plain
from serve import serve

import cosolve as cs


def linear(owns_spring: bool) -> cs.Linear:
    """A mass that compiled code can advance, here or there."""
    c, d = (o.C + o.CK, o.D + o.DK) if owns_spring else (o.C, o.D)
    A = np.array([[0.0, 1.0], [-c, -d]]) / o.M
    A[0] *= o.M
    if not owns_spring:
        return cs.Linear(A, [[0.0], [1.0 / o.M]], np.eye(2), x0=[0.0, 0.0], inputs=["f"], outputs=["x", "v"])
    B, C = np.array([[0.0, 0.0], [o.CK, o.DK]]) / o.M, np.array([[o.CK, o.DK], [1.0, 0.0], [0.0, 1.0]])
    D = np.array([[-o.CK, -o.DK], [0.0, 0.0], [0.0, 0.0]])
    return cs.Linear(A, B, C, D, x0=[o.X2, 0.0], inputs=["x1", "v1"], outputs=["F", "x", "v"])


def second_mass() -> Plain:
    """What a server offers."""
    return Plain(True, o.H)


@contextmanager
def remote() -> Iterator[cs.remote.Remote]:
    """The second mass behind `cosolve serve` on this machine."""
    command = [sys.executable, "-c", "from cosolve.cli import main; main()", "serve", f"{__file__}:second_mass"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            server.stdout.readline()
            _, address, _, key, _ = server.stdout.readline().split("'")
            far = cs.remote.Remote(address, key=key, timeout=60.0)
            yield far
            far.close()
        finally:
            server.terminate()


def apart(
    steps: int,
    H: float,
    workers: int = 1,
    transport: str = "shared_memory",
    masses: int = 2,
    compiled: bool = False,
    python: bool = True,
) -> dict[str, Any]:
    """The whole `simulate` call; the processes (one per mass, or only the second one's) are started before.

    `compiled` is the loop over the macro steps, `python` what the masses are written in; the transport "network" is
    that of other machines, for the second mass.
    """
    far: dict[str, Any] = {"transport": transport, "timeout": 60.0}
    make = partial(Plain, h=H) if python else linear
    with ExitStack() as stack:
        one = cs.remote.Isolated(partial(make, False), **far) if masses == 2 else make(False)
        two = (
            stack.enter_context(remote()) if transport == "network" else cs.remote.Isolated(partial(make, True), **far)
        )
        system = cs.System({"one": one, "two": two})
        system.connect("one.x", "two.x1")
        system.connect("one.v", "two.v1")
        system.connect("two.F", "one.f")
        run: dict[str, Any] = {"method": cs.Jacobi(0), "step": H, "workers": workers, "compiled": compiled}
        cs.simulate(system, t_end=3 * H, **run)
        began = perf_counter()
        result = cs.simulate(system, t_end=steps * H, **run)
        seconds = (perf_counter() - began) / steps
        answer = [float(result[name][-1]) for name in ("one.x", "one.v", "two.x", "two.v")]
        for part in (one, two):
            if isinstance(part, cs.remote.Isolated):
                part.close()
    return {"seconds": seconds, "answer": answer}


if __name__ == "__main__":
    serve({"apart": apart}, "cosolve")
