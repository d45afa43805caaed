"""Hard cases for method and step from a tolerance: each run meets it, or one sentence says what to do.

    python -m tests.accuracy.hard_cases [NAME ...]

Clutch, stick-slip, contact, index 2, sampled control, subsystems with steps of one length, laws that jump, delays,
waves, parts far apart in time. References come from closed forms, matrix exponentials and scipy, undivided.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import cosolve as cs

TOLERANCES = (1e-2, 1e-3, 1e-4)
LONGEST = 300  # letters of a sentence

Truth = Callable[[np.ndarray], dict[str, np.ndarray]]


@dataclass(frozen=True)
class Hard:
    """A system, its outputs at given times, and options of the run."""

    build: Callable[[], cs.System]
    truth: Truth
    t_end: float
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What became of one run: `kind` is met, said, too long or silent; `ratio` the error in tolerances."""

    kind: str
    ratio: float
    sentence: str
    seconds: float


def undivided(f: Any, x0: Any, t_end: float, names: dict[str, int], events: Any = None, **options: Any) -> Truth:
    """The whole system as one, by scipy."""
    options = {"method": "LSODA", "rtol": 1e-10, "atol": 1e-12, "dense_output": True} | options
    found = solve_ivp(f, (0.0, t_end), x0, **options).sol
    return lambda t: {name: found(t)[k] for name, k in names.items()}


def rotor(J: float, w: float, drive: float = 0.0) -> cs.Subsystem:
    """An inertia with a torque of its own and one from outside."""
    return cs.Ode(lambda t, s, u: [(drive + u[0]) / J], lambda t, s, u: s, x0=[w], inputs=["T"], outputs=["w"])


def mass(m: float, x: float, v: float, own: Callable[[float, float], float]) -> cs.Subsystem:
    """A mass with a force of its own and one from outside."""
    return cs.Ode(
        lambda t, s, u: [s[1], (own(s[0], s[1]) + u[0]) / m],
        lambda t, s, u: s,
        x0=[x, v],
        inputs=["f"],
        outputs=["x", "v"],
        rtol=1e-10,
        atol=1e-12,
    )


# -- friction ----------------------------------------------------------------------------------------------------------


def clutch(friction: Callable[[float], float]) -> Callable[[], cs.System]:
    def build() -> cs.System:
        system = cs.System({"one": rotor(1.0, 10.0), "two": rotor(2.0, 0.0)})
        system.law({"one.T": -1, "two.T": 1}, lambda a, b: friction(a - b), of=["one.w", "two.w"])
        return system

    return build


def clutch_truth(t: np.ndarray) -> dict[str, np.ndarray]:
    """Torque 5: the difference of 10 falls by 7.5 per second, until both turn together."""
    stuck = np.minimum(t, 10.0 / 7.5)
    return {"one.w": 10.0 - 5.0 * stuck, "two.w": 2.5 * stuck}


def smooth_clutch_truth() -> Truth:
    def f(t: float, s: Any) -> list[float]:
        T = 5.0 * np.tanh((s[0] - s[1]) / 0.05)
        return [-T, 0.5 * T]

    return undivided(f, [10.0, 0.0], 2.0, {"one.w": 0, "two.w": 1}, method="Radau")


def stribeck(slip: float) -> float:
    return float((1.0 + 0.5 * np.exp(-abs(slip))) * np.tanh(slip / 0.01))


def stick_slip() -> cs.System:
    block = mass(1.0, 0.0, 0.0, lambda x, v: -20.0 * x)
    belt = cs.Ode(
        lambda t, s, u: [5.0 * (0.3 - s[0]) - 0.1 * u[0]], lambda t, s, u: s, x0=[0.3], inputs=["f"], outputs=["v"]
    )
    system = cs.System({"block": block, "belt": belt})
    system.law({"block.f": 1, "belt.f": 1}, lambda vb, v: stribeck(vb - v), of=["belt.v", "block.v"])
    return system


def stick_slip_truth() -> Truth:
    def f(t: float, s: Any) -> list[float]:
        F = stribeck(s[2] - s[1])
        return [s[1], -20.0 * s[0] + F, 5.0 * (0.3 - s[2]) - 0.1 * F]

    return undivided(f, [0.0, 0.0, 0.3], 2.0, {"block.x": 0, "block.v": 1, "belt.v": 2}, method="Radau")


# -- contact -----------------------------------------------------------------------------------------------------------


def push(x: float, y: float) -> float:
    return max(0.0, 2000.0 * (y - x))


def contact() -> cs.System:
    ball = mass(0.2, 0.2, 0.0, lambda x, v: -0.2 * 9.81)
    table = mass(1.0, 0.0, 0.0, lambda x, v: -400.0 * x - 2.0 * v)
    system = cs.System({"ball": ball, "table": table})
    system.law({"ball.f": 1, "table.f": -1}, push, of=["ball.x", "table.x"])
    return system


def contact_truth() -> Truth:
    def f(t: float, s: Any) -> list[float]:
        N = push(s[0], s[2])
        return [s[1], N / 0.2 - 9.81, s[3], -400.0 * s[2] - 2.0 * s[3] - N]

    return undivided(f, [0.2, 0.0, 0.0, 0.0], 0.6, {"ball.x": 0, "ball.v": 1, "table.x": 2}, max_step=1e-4)


def hybrid_contact() -> cs.System:
    """The contact inside the ball, with events; macro steps do not end there."""

    def force(x: Any, u: Any) -> float:
        return 2e3 * (u[0] - x[0])

    ball = cs.HybridOde(
        lambda t, x, u: [x[1], (force(x, u) if x[2] == 1 else 0.0) / 0.2 - 9.81, 0.0],
        lambda t, x, u: [x[0], force(x, u) if x[2] == 1 else 0.0],
        x0=[0.2, 0.0, 0.0],
        inputs=["y"],
        outputs=["x", "N"],
        indicators=lambda t, x, u: [x[0] - u[0]],
        jump=lambda t, x, u, c: [x[0], x[1], 1.0 if c[0] < 0 else 0.0],
        rtol=1e-10,
        atol=1e-12,
    )
    table = cs.Ode(
        lambda t, s, u: [s[1], -400.0 * s[0] - 2.0 * s[1] - u[0]],
        lambda t, s, u: s[:1],
        x0=[0.0, 0.0],
        inputs=["N"],
        outputs=["x"],
    )
    system = cs.System({"ball": ball, "table": table})
    system.connect("table.x", "ball.y")
    system.connect("ball.N", "table.N")
    return system


def hybrid_contact_truth() -> Truth:
    found = contact_truth()
    return lambda t: {name: found(t)[name] for name in ("ball.x", "table.x")}


# -- higher index ------------------------------------------------------------------------------------------------------


def cell(C: float, v: float) -> cs.Subsystem:
    return cs.Linear([[-1.0 / C]], [[1.0 / C]], [[1.0]], x0=[v], inputs=["i"], outputs=["v"])


def parallel_cells() -> cs.System:
    """Two capacities with leaks, joined without any resistance: their current is a multiplier of index 2."""
    system = cs.System({"a": cell(1.0, 2.0), "b": cell(3.0, 2.0)})
    system.equations({"i": {"a.i": 1, "b.i": -1}}, lambda i, va, vb: va - vb, of=["a.v", "b.v"])
    return system


def parallel_cells_truth(t: np.ndarray) -> dict[str, np.ndarray]:
    return {"a.v": 2.0 * np.exp(-0.5 * t), "b.v": 2.0 * np.exp(-0.5 * t)}


# -- sampled control, steps of one length ----------------------------------------------------------------------------

PERIOD = 0.02


def sampled(period: float = PERIOD) -> cs.System:
    plant = cs.Linear([[0, 1], [-5, -0.4]], [[0], [1]], [[1, 0]], x0=[1.0, 0.0], inputs=["u"], outputs=["x"])
    control = cs.Sampled(cs.Static(lambda t, u: -10 * u, inputs=["x"], outputs=["u"]), period)
    system = cs.System({"plant": plant, "control": control})
    system.connect("plant.x", "control.x")
    system.connect("control.u", "plant.u")
    return system


def two_rates() -> cs.System:
    """A second controller whose period is no multiple."""
    system = sampled()
    other = cs.Sampled(cs.Static(lambda t, u: -u, inputs=["x"], outputs=["u"]), 0.013)
    plant = cs.Linear([[0, 1], [-5, -0.4]], [[0, 0], [1, 1]], [[1, 0]], x0=[1.0, 0.0], inputs=["u", "w"], outputs=["x"])
    system = cs.System({"plant": plant, "control": system.subsystems["control"], "other": other})
    for name, port in (("control", "u"), ("other", "w")):
        system.connect("plant.x", f"{name}.x")
        system.connect(f"{name}.u", f"plant.{port}")
    return system


def sampled_truth(t: np.ndarray) -> dict[str, np.ndarray]:
    matrix, state, n, u, begun, found = (
        np.array([[0, 1.0, 0], [-5, -0.4, 1], [0, 0, 0]]),
        np.array([1.0, 0]),
        0,
        0.0,
        0.0,
        [],
    )
    for now in t:
        while n * PERIOD <= now + 1e-12:
            state = (expm(matrix * (n * PERIOD - begun)) @ np.append(state, u))[:2]
            begun, u, n = n * PERIOD, -10 * state[0], n + 1
        found.append((expm(matrix * (now - begun)) @ np.append(state, u))[0])
    return {"plant.x": np.array(found)}


class FixedStep(cs.Subsystem):
    """A tank that takes Euler steps of 0.01 and no others, as many exported FMUs do."""

    inputs, outputs, fixed_step = ["q"], ["h"], 0.01

    def start(self, t0: float) -> float:
        self.h = 1.0
        return self.h

    def advance(self, t0: float, t1: float, u: Any) -> float:
        count = round((t1 - t0) / self.fixed_step)
        if count < 1 or abs(count * self.fixed_step - (t1 - t0)) > 1e-9:
            raise ValueError(f"the step {t1 - t0:g} is no multiple of {self.fixed_step:g}")
        for k in range(count):
            self.h += self.fixed_step * (u(t0 + k * self.fixed_step)[0] - self.h)
        return self.h

    def save(self) -> float:
        return self.h

    def restore(self, state: float) -> None:
        self.h = state


def fixed_step() -> cs.System:
    tank = cs.Linear([[-1]], [[1]], [[1]], x0=[0.0], inputs=["q"], outputs=["h"])
    system = cs.System({"one": FixedStep(), "two": tank})
    system.connect("one.h", "two.q")
    system.connect("two.h", "one.q")
    return system


def fixed_step_truth(t: np.ndarray) -> dict[str, np.ndarray]:
    """With the Euler steps of the one, and the other exact on what is held in each of them."""
    h, other, rows = 1.0, 0.0, [(1.0, 0.0)]
    for _ in range(round(t[-1] / 0.01)):
        h, other = h + 0.01 * (other - h), other * np.exp(-0.01) + (1 - np.exp(-0.01)) * h
        rows.append((h, other))
    at = np.round(t / 0.01).astype(int)
    return {"one.h": np.array(rows)[at, 0], "two.h": np.array(rows)[at, 1]}


# -- laws that jump ----------------------------------------------------------------------------------------------------


def relay() -> cs.System:
    """A heater that is on below 1: the state slides along the switch."""
    room = cs.Ode(lambda t, s, u: [-s[0] + u[0]], lambda t, s, u: s, x0=[0.0], inputs=["q"], outputs=["T"])
    system = cs.System(
        {"room": room, "wall": cs.Linear([[-0.1]], [[0.1]], [[1]], x0=[0.0], inputs=["T"], outputs=["w"])}
    )
    system.law({"room.q": 1}, lambda T: 3.0 if T < 1.0 else 0.0, of=["room.T"])
    system.connect("room.T", "wall.T")
    return system


def relay_truth(t: np.ndarray) -> dict[str, np.ndarray]:
    on = np.log(1.5)
    room = np.where(t < on, 3.0 * (1.0 - np.exp(-t)), 1.0)
    wall_on = 3.0 * (1.0 - np.exp(-0.1 * t)) - 0.3 * (np.exp(-0.1 * t) - np.exp(-t)) / 0.9
    at = 3.0 * (1.0 - np.exp(-0.1 * on)) - 0.3 * (np.exp(-0.1 * on) - np.exp(-on)) / 0.9
    return {"room.T": room, "wall.w": np.where(t < on, wall_on, 1.0 + (at - 1.0) * np.exp(-0.1 * (t - on)))}


def one_switch() -> cs.System:
    """A valve that opens once: the law jumps from 0 to 1 where the level passes 0.5, and not back."""
    up = cs.Ode(lambda t, s, u: [1.0], lambda t, s, u: s, x0=[0.0], inputs=["q"], outputs=["h"])
    down = cs.Linear([[-1]], [[1]], [[1]], x0=[0.0], inputs=["q"], outputs=["h"])
    system = cs.System({"up": up, "down": down})
    system.law({"down.q": 1}, lambda h: 1.0 if h > 0.5 else 0.0, of=["up.h"])
    system.connect("down.h", "up.q")
    return system


def one_switch_truth(t: np.ndarray) -> dict[str, np.ndarray]:
    return {"up.h": t, "down.h": np.where(t > 0.5, 1.0 - np.exp(-(t - 0.5)), 0.0)}


def encoder() -> cs.System:
    """A law that rounds to hundredths, as an encoder does; the reference has it too."""
    one = mass(1.0, 1.0, 0.0, lambda x, v: -4.0 * x - 0.4 * v)
    two = mass(1.0, 0.0, 0.0, lambda x, v: -9.0 * x - 0.4 * v)
    system = cs.System({"one": one, "two": two})
    system.law(
        {"one.f": 1, "two.f": -1}, lambda a, b: 2.0 * (round(100 * b) - round(100 * a)) / 100, of=["one.x", "two.x"]
    )
    return system


def encoder_truth() -> Truth:
    def f(t: float, s: Any) -> list[float]:
        F = 2.0 * (np.round(100 * s[2]) - np.round(100 * s[0])) / 100
        return [s[1], -4.0 * s[0] - 0.4 * s[1] + F, s[3], -9.0 * s[2] - 0.4 * s[3] - F]

    return undivided(
        f, [1.0, 0, 0, 0], 3.0, {"one.x": 0, "two.x": 2}, method="RK45", max_step=2e-4, rtol=1e-6, atol=1e-9
    )


# -- delays, waves, parts far apart ------------------------------------------------------------------------------------


class Delay(cs.Subsystem):
    """A line: what comes in leaves it 0.25 later; inputs are kept at points a hundredth of that apart, or closer."""

    inputs, outputs, tau = ["u"], ["y"], 0.25

    def start(self, t0: float) -> float:
        self.t, self.v = [t0 - self.tau, t0], [1.0, 1.0]
        return 1.0

    def advance(self, t0: float, t1: float, u: Any) -> float:
        points = np.linspace(t0, t1, 2 + int((t1 - t0) / 0.0025))
        self.t += points[1:].tolist()
        self.v += [float(u(t)[0]) for t in points[1:]]
        return float(np.interp(t1 - self.tau, self.t, self.v))

    def save(self) -> Any:
        return len(self.t)

    def restore(self, state: Any) -> None:
        del self.t[state:], self.v[state:]


def delay() -> cs.System:
    """A tank that gets back what it was a quarter of a second ago."""
    tank = cs.Ode(lambda t, s, u: [-2.0 * u[0] + np.sin(t)], lambda t, s, u: s, x0=[1.0], inputs=["q"], outputs=["h"])
    system = cs.System({"tank": tank, "line": Delay()})
    system.connect("tank.h", "line.u")
    system.connect("line.y", "tank.q")
    return system


def delay_truth() -> Truth:
    """By the method of steps, with steps of 1e-4; the tank was at 1 before the start."""
    H, lag, count = 1e-4, 2500, 30_000
    h = np.ones(count + 1)
    for n in range(count):
        a, b, t = h[max(n - lag, 0)], h[max(n - lag + 1, 0)], n * H
        h[n + 1] = h[n] - H * (a + b) + H * (np.sin(t) + 4 * np.sin(t + H / 2) + np.sin(t + H)) / 6
    times = H * np.arange(count + 1)
    return lambda t: {"tank.h": np.interp(t, times, h)}


def string(n: int, x0: np.ndarray) -> cs.Linear:
    """Half a string of `n` masses, one end fixed; the other one is pulled at."""
    c2 = (n / 0.5) ** 2
    K = c2 * (-2.0 * np.eye(n) + np.eye(n, k=1) + np.eye(n, k=-1))
    K[-1, -1] = -c2
    A = np.block([[np.zeros((n, n)), np.eye(n)], [K, -0.1 * np.eye(n)]])
    B = np.zeros((2 * n, 1))
    B[-1, 0] = c2
    C = np.zeros((1, 2 * n))
    C[0, n - 1] = 1.0
    return cs.Linear(A, B, C, x0=np.concatenate([x0, np.zeros(n)]), inputs=["f"], outputs=["x"])


STRING = 10


def wave() -> cs.System:
    shape = np.exp(-60.0 * (np.linspace(0.05, 0.5, STRING) - 0.25) ** 2)
    system = cs.System({"left": string(STRING, shape), "right": string(STRING, np.zeros(STRING))})
    system.law({"left.f": 1, "right.f": -1}, lambda a, b: b - a, of=["left.x", "right.x"])
    return system


def wave_truth() -> Truth:
    n, parts = STRING, wave().subsystems
    left, right = parts["left"], parts["right"]
    A = np.zeros((4 * n, 4 * n))
    A[: 2 * n, : 2 * n], A[2 * n :, 2 * n :] = left.A, right.A
    b = np.asarray(left.B)[:, 0]
    A[: 2 * n, n - 1] -= b
    A[: 2 * n, 3 * n - 1] += b
    A[2 * n :, n - 1] += b
    A[2 * n :, 3 * n - 1] -= b
    shape = np.exp(-60.0 * (np.linspace(0.05, 0.5, n) - 0.25) ** 2)
    x0 = np.concatenate([shape, np.zeros(3 * n)])
    return undivided(lambda t, x: A @ x, x0, 1.5, {"left.x": n - 1, "right.x": 3 * n - 1}, method="DOP853")


def far_apart() -> cs.System:
    """A part of 300 rad/s that settles, beside a pendulum of 1 rad/s."""
    fast = cs.Linear([[0, 1], [-9e4, -30]], [[0], [9e3]], [[1, 0]], x0=[0.1, 0.0], inputs=["a"], outputs=["q"])
    slow = cs.Ode(
        lambda t, s, u: [s[1], -np.sin(s[0]) + 2 * u[0]],
        lambda t, s, u: s[:1],
        x0=[1.0, 0.0],
        inputs=["q"],
        outputs=["a"],
        rtol=1e-10,
        atol=1e-12,
    )
    system = cs.System({"fast": fast, "slow": slow})
    system.connect("slow.a", "fast.a")
    system.connect("fast.q", "slow.q")
    return system


def far_apart_truth() -> Truth:
    def f(t: float, s: Any) -> list[float]:
        return [s[1], -9e4 * s[0] - 30 * s[1] + 9e3 * s[2], s[3], -np.sin(s[2]) + 2 * s[0]]

    return undivided(f, [0.1, 0, 1.0, 0], 2.0, {"fast.q": 0, "slow.a": 2}, method="DOP853")


def at_rest() -> cs.System:
    one, two = (mass(1.0, 0.0, 0.0, lambda x, v: -x) for _ in range(2))
    system = cs.System({"one": one, "two": two})
    system.law({"one.f": 1, "two.f": -1}, lambda a, b: b - a, of=["one.x", "two.x"])
    return system


def root() -> cs.System:
    """A tank that runs empty through a root of its level: a law that is not defined below 0."""

    def flow(h: float) -> float:
        if h < 0:
            raise ValueError("no level")
        return float(np.sqrt(h))

    tank = cs.Ode(lambda t, s, u: [-u[0]], lambda t, s, u: s, x0=[1.0], inputs=["q"], outputs=["h"])
    pool = cs.Ode(lambda t, s, u: [u[0]], lambda t, s, u: s, x0=[0.0], inputs=["q"], outputs=["h"])
    system = cs.System({"tank": tank, "pool": pool})
    system.law({"tank.q": 1, "pool.q": 1}, flow, of=["tank.h"])
    return system


def root_truth(t: np.ndarray) -> dict[str, np.ndarray]:
    h = np.maximum(0.0, 1.0 - 0.5 * t) ** 2
    return {"tank.h": h, "pool.h": 1.0 - h}


HARD: dict[str, Callable[[], Hard]] = {
    "clutch, law with a sign": lambda: Hard(clutch(lambda d: 5.0 * float(np.sign(d))), clutch_truth, 2.0),
    "clutch, steep": lambda: Hard(clutch(lambda d: 5.0 * float(np.tanh(d / 0.05))), smooth_clutch_truth(), 2.0),
    "stick-slip": lambda: Hard(stick_slip, stick_slip_truth(), 2.0),
    "contact by a law": lambda: Hard(contact, contact_truth(), 0.6),
    "contact by events": lambda: Hard(hybrid_contact, hybrid_contact_truth(), 0.6),
    "contact, steps end at events": lambda: Hard(hybrid_contact, hybrid_contact_truth(), 0.6, {"stop_at_events": True}),
    "index 2": lambda: Hard(parallel_cells, parallel_cells_truth, 2.0),
    "sampled": lambda: Hard(sampled, sampled_truth, 2.0),
    "sampled, steps end at events": lambda: Hard(sampled, sampled_truth, 2.0, {"stop_at_events": True}),
    "two sampling rates": lambda: Hard(two_rates, sampled_truth, 2.0),
    "steps of one length": lambda: Hard(fixed_step, fixed_step_truth, 2.0),
    "relay": lambda: Hard(relay, relay_truth, 2.0),
    "law that jumps once": lambda: Hard(one_switch, one_switch_truth, 2.0),
    "law that rounds": lambda: Hard(encoder, encoder_truth(), 3.0),
    "delay": lambda: Hard(delay, delay_truth(), 3.0),
    "wave": lambda: Hard(wave, wave_truth(), 1.5),
    "far apart in time": lambda: Hard(far_apart, far_apart_truth(), 2.0),
    "at rest": lambda: Hard(at_rest, lambda t: {"one.x": 0 * t, "two.x": 0 * t}, 2.0),
    "law not defined everywhere": lambda: Hard(root, root_truth, 2.5),
}


def outcome(hard: Hard, rtol: float, **more: Any) -> Outcome:
    """One run, and what became of it; errors that are no sentence come through."""
    began = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = cs.simulate(hard.build(), t_end=hard.t_end, rtol=rtol, **hard.options, **more)
        except cs.CosolveError as error:
            kind = "said" if len(str(error)) < LONGEST else "too long"
            return Outcome(kind, np.nan, f"{type(error).__name__}: {error}", time.process_time() - began)
    right, ratio = hard.truth(result.t), 0.0
    for name, values in right.items():
        size = np.abs(values).max() or 1.0
        ratio = max(ratio, float(np.abs(result[name] - values).max() / size / rtol))
    told = [str(one.message) for one in caught if issubclass(one.category, cs.errors.AccuracyWarning)]
    seconds = time.process_time() - began
    sentence = told[-1] if told else f"{result.method.label}, {result.stats.steps} steps"
    if told and max(map(len, told)) >= LONGEST:
        return Outcome("too long", ratio, sentence, seconds)
    if told:
        return Outcome("said", ratio, sentence, seconds)
    return Outcome("met" if ratio <= 1.0 else "silent", ratio, sentence, seconds)


def main(names: list[str]) -> None:
    """A line for each run."""
    counts: dict[str, int] = {}
    for name in names or HARD:
        hard = HARD[name]()
        for rtol in TOLERANCES:
            found = outcome(hard, rtol)
            counts[found.kind] = counts.get(found.kind, 0) + 1
            print(
                f"{name:30} {rtol:g} {found.kind:8} {found.ratio:9.2f} {found.seconds:6.1f} s  "
                f"{len(found.sentence)}: {found.sentence[:300]}",
                flush=True,
            )
    print(counts)


if __name__ == "__main__":
    main(sys.argv[1:])
