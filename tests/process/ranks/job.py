"""One MPI job that tries much: systems on its ranks beside the same in one process. Prints a line for each, in JSON."""

from __future__ import annotations

import json
import sys
from functools import partial

import numpy as np
from tests.method.explicit import test_topologies as topologies
from tests.process.ranks import parts

import cosolve as cs
from cosolve.process.mpi import world

STEP = 0.05


def ode(x: float) -> cs.Ode:
    """With a Jacobian of its own, steps of its own, and equations."""
    return cs.Ode(
        lambda t, x, u: [x[1], -4.0 * np.sin(x[0]) - 0.1 * x[1] + u[0]],
        lambda t, x, u: {"x": x[0], "v": x[1]},
        x0=[x, 0.0],
        inputs=["force"],
        outputs=["x", "v"],
    )


RING = parts.ring(4)
PAIR = {"a": partial(ode, 0.5), "b": partial(ode, -0.2)}
FIELD = {"f": partial(parts.Field, 20_000), "g": partial(parts.Field, 20_000)}
TREE = {f"client{k}": partial(topologies.client, k) for k in (1, 2, 3)}
#: rank 0 has one of the ring, rank 1 two of them
PLACEMENT = {
    "s0": 0,
    "s1": 1,
    "s2": 2,
    "s3": 1,
    "a": 1,
    "b": 2,
    "f": 1,
    "g": 0,
    "one": 0,
    "two": 1,
    "three": 2,
    "late": 2,
    "client1": 1,
    "client2": 2,
    "client3": 1,
}


def driven(members: dict[str, cs.Subsystem]) -> cs.System:
    """An input with a kink inside a macro step, which is then advanced in parts."""
    system = cs.System(members)
    system.law("s1.force", lambda x, y: 3.0 * np.tanh(y - x), of=["s1.x", "s2.x"])
    system.set("s2.force", cs.Table([0.0, 0.33, 2.0], [0.0, 1.0, 0.0]))
    return system


def wave(t: float) -> float:
    """No polynomial, and with a jump inside a macro step."""
    return float(np.sin(17.0 * t) * np.exp(0.3 * t)) + (0.5 if t > 0.33 else 0.0)


def waving(members: dict[str, cs.Subsystem], function=wave) -> cs.System:
    """An input driven by a function of time."""
    system = cs.System(members)
    system.law("s1.force", lambda x, y: 3.0 * np.tanh(y - x), of=["s1.x", "s2.x"])
    system.set("s2.force", function)
    return system


def looped(members: dict[str, cs.Subsystem]) -> cs.System:
    """A large field that goes round."""
    system = cs.System(members)
    system.connect("f.y", "g.u")
    system.connect("g.y", "f.u")
    return system


CASES = {
    "jacobi": (RING, parts.joined, {"method": cs.Jacobi(degree=1), "step": STEP}),
    "gauss-seidel": (RING, parts.joined, {"method": cs.GaussSeidel(degree=1), "step": STEP}),
    "semi-implicit": (RING, parts.joined, {"method": cs.SemiImplicit(degree=1), "step": STEP}),
    "newton": (RING, parts.joined, {"method": cs.Implicit(degree=1), "step": STEP}),
    "quasi-newton": (RING, parts.joined, {"method": cs.Implicit(degree=0, corrector=cs.IqnIls()), "step": STEP}),
    "threads too": (RING, parts.joined, {"method": cs.SemiImplicit(degree=1), "step": STEP, "workers": 2}),
    "error control": (
        RING,
        parts.joined,
        {"method": cs.Jacobi(degree=1), "step": cs.Adaptive(rtol=1e-3, first_step=0.02)},
    ),
    "jacobians": (PAIR, parts.joined, {"method": cs.SemiImplicit(degree=2), "step": STEP}),
    "leader": (PAIR, parts.joined, {"method": cs.LeaderFollower(leader="a"), "step": STEP}),
    "driven": ({n: RING[n] for n in ("s1", "s2")}, driven, {"method": cs.Jacobi(degree=1), "step": STEP}),
    "function": ({n: RING[n] for n in ("s1", "s2")}, waving, {"method": cs.Jacobi(degree=1), "step": STEP}),
    "function, newton": ({n: RING[n] for n in ("s1", "s2")}, waving, {"method": cs.Implicit(degree=1), "step": STEP}),
    "field": (FIELD, looped, {"method": cs.Jacobi(degree=1), "step": 0.1}),
}


class Counting:
    """A communicator that counts how often it is asked for a message."""

    def __init__(self, comm):
        self.comm, self.looks = comm, 0

    def Improbe(self, *arguments):
        self.looks += 1
        return self.comm.Improbe(*arguments)

    def __getattr__(self, name):
        return getattr(self.comm, name)


def main(folder: str) -> None:
    meeting = partial(parts.Rendezvous, folder)
    met = {
        "one": partial(meeting, "one", "three", 0.1),
        "two": partial(parts.Oscillator, 0.2),
        "three": partial(meeting, "three", "one", 0.3),
    }
    late = {"late": partial(parts.Slow, 0.4)}
    everything = {**RING, **PAIR, **FIELD, **met, **late, **TREE}
    ranks = cs.remote.on_ranks(everything, placement=PLACEMENT, timeout=120.0, functions=[np.cos, wave])
    say = lambda what, value: print(json.dumps([what, value]), flush=True)  # noqa: E731
    say("placement", str(ranks))
    for name, (sources, join, options) in CASES.items():
        far = cs.simulate(join({n: ranks.subsystems[n] for n in sources}), t_end=1.0, **options)
        near = cs.simulate(join({n: make() for n, make in sources.items()}), t_end=1.0, **options)
        same = [np.array_equal(near[channel], far[channel]) for channel in near.names]
        say(name, bool(all(same) and np.array_equal(near.t, far.t) and len(near.t) > 2))
    names = ("s1", "s2")
    unknown = waving({n: ranks.subsystems[n] for n in names}, lambda t: wave(t))  # travels as a polynomial
    far = cs.simulate(unknown, t_end=1.0, method=cs.Jacobi(degree=1), step=STEP)
    near = cs.simulate(waving({n: RING[n]() for n in names}), t_end=1.0, method=cs.Jacobi(degree=1), step=STEP)
    off = np.abs(near["s2.x"] - far["s2.x"]).max()
    say("unknown function", bool(0.0 < off < 1e-9))
    for name, method in (("together", cs.Jacobi(degree=1)), ("columns together", cs.SemiImplicit(degree=1))):
        run = cs.simulate(parts.joined({n: ranks.subsystems[n] for n in met}), t_end=0.3, method=method, step=0.1)
        say(name, len(run.t))
    apart = topologies.tree({name: ranks.subsystems[name] for name in TREE})
    two = [cs.simulate(s, t_end=0.2, method=cs.Jacobi(2), step=1e-3) for s in (apart, topologies.joined())]
    names = [("centre.x", "centre.x"), *((f"client{k}.f", f"clients.f{k}") for k in (1, 2, 3))]
    off = [np.abs(two[0][a] - two[1][b]).max() / np.abs(two[1][b]).max() for a, b in names]
    say("tree", bool(max(off) <= 1e-12))
    far, comm = cs.System({"late": ranks.subsystems["late"]}), Counting(world()._comm)
    far.set("late.force", 0.0)
    world()._comm = comm
    cs.simulate(far, t_end=0.2, method=cs.Jacobi(degree=0), step=0.1)
    world()._comm = comm.comm
    say("looks while it waits", comm.looks)
    ranks.place({**ranks.placement, "s0": 2, "s1": 0})
    moved = cs.simulate(
        parts.joined({n: ranks.subsystems[n] for n in RING}), t_end=1.0, method=cs.SemiImplicit(degree=1), step=STEP
    )
    near = cs.simulate(
        parts.joined({n: make() for n, make in RING.items()}), t_end=1.0, method=cs.SemiImplicit(degree=1), step=STEP
    )
    say("moved", all(np.array_equal(near[channel], moved[channel]) for channel in near.names))
    print("rank 0 is the only one that comes here", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
