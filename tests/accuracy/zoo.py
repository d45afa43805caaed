"""Coupled systems with a reference, on which estimates of the coupling error and automatic choices are judged.

`CASES` by name: smooth ones, stiff ones, ones with kinks, rigid joints. `SIXTEEN` are those on which the figures of
docs/validation/trust.md were taken. `random_networks` are aside: nothing is tuned on them.

The subsystems solve to 1e-10 or better, so the difference to the reference is the coupling error. An error is the
largest over the macro points, relative to the largest reference value of that output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from examples.double_pendulum_flexible.model import split as flexible_pendulum
from examples.double_pendulum_rigid import model as pendulum
from examples.four_bar import model as four_bar
from examples.nonlinear_oscillator import model as nonlinear
from examples.planar.case import Case as Mechanism
from examples.rotor_bearing.model import Rotor
from examples.slider_crank import model as slider
from examples.two_mass.model import BAR, SCHMOLL, TwoMass, force_displacement, lu
from examples.two_mass.model import split as two_mass
from examples.two_mass_rigid import model as rigid_rod
from tests.accuracy.whole import Monolithic, Values

import cosolve as cs

ACCURATE = {"integrator": "dopri5", "rtol": 1e-11, "atol": 1e-12}


@dataclass(frozen=True)
class Case:
    """One system from 0 to `t_end`.

    Steps are `t_end / N` with `N = coarsest * 2**k`, `k < levels`. Tags: "stiff", "kinks", "joint", "chaotic". `known`
    gives some of the outputs at times; without it the undivided system is solved, with `kinks` and `jumps`.
    """

    name: str
    build: Callable[[], cs.System]
    t_end: float
    tags: tuple[str, ...] = ()
    coarsest: int = 32
    levels: int = 7
    degrees: tuple[int, ...] = (0, 1, 2, 3)
    known: Callable[[np.ndarray], Values] | None = None
    kinks: Sequence[Callable[[float, Values], float]] = ()
    jumps: Sequence[float] = ()

    @property
    def smooth(self) -> bool:
        """True without any tag."""
        return not self.tags

    @property
    def explicit(self) -> bool:
        """True when methods without repeated steps apply."""
        return "joint" not in self.tags

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of equal steps, from coarse to fine."""
        return tuple(self.coarsest * 2**k for k in range(self.levels))

    def methods(self) -> Iterator[cs.Method]:
        """Jacobi, Gauss-Seidel and semi-implicit methods of all degrees, as far as they apply."""
        for degree in self.degrees:
            if self.explicit:
                yield cs.Jacobi(degree)
                yield cs.GaussSeidel(degree)
                yield cs.SemiImplicit(degree)
            else:  # multipliers enter the history as they were solved for
                yield cs.SemiImplicit(degree, final_update=False)

    @cached_property
    def _solution(self) -> Callable[[np.ndarray], Values]:
        return self.known or Monolithic(self.build(), self.t_end, self.kinks, self.jumps)

    def truth(self, times: np.ndarray) -> dict[str, np.ndarray]:
        """The reference at `times`: one row each."""
        return {name: np.asarray(rows).reshape(len(times), -1) for name, rows in self._solution(times).items()}

    def errors(self, result: cs.Result) -> dict[str, np.ndarray]:
        """The error over the macro points, of each output's worst entry, relative to its largest reference value."""
        found = {}
        for name, right in self.truth(result.t).items():
            gap = np.abs(np.asarray(result[name]).reshape(right.shape) - right).max(axis=1)
            found[name] = gap / max(np.abs(right).max(), np.finfo(float).tiny)
        return found

    def error(self, result: cs.Result) -> float:
        """The largest of all."""
        return max(float(error.max()) for error in self.errors(result).values())


# -- models ----------------------------------------------------------------------------------------------------------


def tanks(one: float = 1.0, two: float = 1.0) -> cs.System:
    """Two tanks that feed each other, by these factors."""

    def tank(level: float, factor: float) -> cs.Linear:
        return cs.Linear([[-1]], [[factor]], [[1]], x0=[level], inputs=["q"], outputs=["h"])

    return _connected({"one": tank(1.0, one), "two": tank(0.0, two)}, {"one.h": ["two.q"], "two.h": ["one.q"]})


def lorenz() -> cs.System:
    """The equations of Lorenz, cut between the first and the others."""
    one = _ode(lambda t, x, u: [10 * (u[0] - x[0])], [1.0], ["y"], ["x"])
    others = _ode(
        lambda t, s, u: [u[0] * (28 - s[1]) - s[0], u[0] * s[0] - 8 / 3 * s[1]], [1.0, 1.0], ["x"], ["y", "z"]
    )
    return _connected({"one": one, "two": others}, {"one.x": ["two.x"], "two.y": ["one.y"]})


def van_der_pol(mu: float = 20.0) -> cs.System:
    """Relaxation oscillations: position and velocity in subsystems of their own."""
    one = _ode(lambda t, x, u: [u[0]], [2.0], ["v"], ["x"])
    two = _ode(lambda t, v, u: [mu * (1 - u[0] ** 2) * v[0] - u[0]], [0.0], ["x"], ["v"])
    return _connected({"one": one, "two": two}, {"one.x": ["two.x"], "two.v": ["one.v"]})


def rc_chain() -> cs.System:
    """Three thermal lumps with time constants of 0.01, 0.5 and 20 s, the first one driven."""

    def lump(tau: float, start: float, neighbours: int) -> cs.Linear:
        fed = [f"T{k}" for k in range(neighbours)]
        return cs.Linear([[-neighbours / tau]], [[1 / tau] * neighbours], [[1]], x0=[start], inputs=fed, outputs=["T"])

    drive = cs.Static(lambda t, u: [np.sin(2 * t)], inputs=[], outputs=["T"])
    lumps = {"fast": lump(0.02, 0.0, 2), "mid": lump(1.0, 0.0, 2), "slow": lump(20.0, 1.0, 1)}
    return _connected(
        {"drive": drive, **lumps},
        {"drive.T": ["fast.T0"], "mid.T": ["fast.T1", "slow.T0"], "fast.T": ["mid.T0"], "slow.T": ["mid.T1"]},
    )


def quarter_car(road: Callable[[float], float]) -> cs.System:
    """A body on a wheel on a road of this height."""
    body = cs.Linear([[0, 1], [0, 0]], [[0], [1 / 400]], np.eye(2), x0=[0, 0], inputs=["f"], outputs=["x", "v"])
    wheel = _ode(lambda t, s, u: [s[1], (2e5 * (road(t) - s[0]) - u[0]) / 40], [0.0, 0.0], ["f"], ["x", "v"])
    system = cs.System({"body": body, "wheel": wheel})
    moved = ["body.x", "body.v", "wheel.x", "wheel.v"]
    system.law({"body.f": 1.0, "wheel.f": 1.0}, lambda x, v, X, V: 2e4 * (X - x) + 1.5e3 * (V - v), of=moved, name="F")
    return system


def contact() -> cs.System:
    """A mass on a soft spring that hits a plate on a stiff one: the force has a kink where they meet."""
    ball = cs.Linear([[0, 1], [-5, 0]], [[0], [1]], np.eye(2), x0=[1.0, 0.0], inputs=["f"], outputs=["x", "v"])
    plate = cs.Linear([[0, 1], [-100, -2]], [[0], [1]], np.eye(2), x0=[0.0, 0.0], inputs=["f"], outputs=["x", "v"])
    system = cs.System({"ball": ball, "plate": plate})
    of = ["ball.x", "plate.x"]
    system.law({"ball.f": 1.0, "plate.f": -1.0}, lambda x, X: 400.0 * max(X - x, 0.0), of=of, name="F")
    return system


def predator() -> cs.System:
    """Prey and predators, Lotka and Volterra."""
    prey = _ode(lambda t, x, u: [x[0] * (1.1 - 0.4 * u[0])], [10.0], ["y"], ["x"])
    hunters = _ode(lambda t, x, u: [x[0] * (0.1 * u[0] - 0.4)], [10.0], ["x"], ["y"])
    return _connected({"a": prey, "b": hunters}, {"a.x": ["b.x"], "b.y": ["a.y"]})


def pid_plant() -> cs.System:
    """A plant of second order under PI control, whose actuator saturates."""
    plant = _ode(lambda t, s, u: [s[1], u[0] - 0.6 * s[1] - s[0]], [0.0, 0.0], ["u"], ["y"], lambda t, s, u: [s[0]])
    control = _ode(
        lambda t, s, u: [1.0 - u[0]],
        [0.0],
        ["y"],
        ["u", "wanted"],
        lambda t, s, u: [np.clip(4 * (1.0 - u[0]) + 2 * s[0], -1.5, 1.5), 4 * (1.0 - u[0]) + 2 * s[0]],
    )
    return _connected({"plant": plant, "control": control}, {"plant.y": ["control.y"], "control.u": ["plant.u"]})


def _ode(
    slope: Callable[..., list[float]],
    x0: list[float],
    inputs: list[str],
    outputs: list[str],
    output: Callable[..., object] = lambda t, x, u: x,
) -> cs.Ode:
    return cs.Ode(slope, output, x0=x0, inputs=inputs, outputs=outputs, **ACCURATE)


def _connected(parts: Mapping[str, cs.Subsystem], wires: Mapping[str, Sequence[str]]) -> cs.System:
    system = cs.System(dict(parts))
    for source, targets in wires.items():
        for target in targets:
            system.connect(source, target)
    return system


# -- references of their own -----------------------------------------------------------------------------------------


def _coordinates(mechanism: Mechanism) -> Callable[[np.ndarray], Values]:
    """The coordinates of a mechanism, solved in absolute coordinates from the start to all times asked for."""

    def at(times: np.ndarray) -> Values:
        late = times > 0.0
        q = mechanism.reference(np.concatenate([[0.0], times[late]]))[0]
        rows = np.vstack([np.repeat(q[:1], np.count_nonzero(~late), axis=0), q[1:]])
        return {name: rows[:, k] for k, name in enumerate(mechanism.coordinates)}

    return at


def _rod(times: np.ndarray) -> Values:
    x, v = rigid_rod.RigidTwoMass().exact(times).T
    return {"one.x": x, "one.v": v, "two.x": x, "two.v": v}


def _between_kinks(times: np.ndarray) -> Values:
    states = nonlinear.reference(0.005)(times)
    force = [nonlinear.coupling_force(float(x), float(v)) for x, v in states]
    return {"mass.x": states[:, 0], "mass.v": states[:, 1], "law.force": np.array(force)}


@lru_cache(maxsize=1)
def _whirling() -> Callable[[np.ndarray], np.ndarray]:
    return Rotor().reference(0.01, "cartesian", rtol=1e-11)


def _whirl(times: np.ndarray) -> Values:
    states = _whirling()(times)
    return {f"rotor.{name}": states[:, k] for k, name in enumerate(("x", "y", "vx", "vy"))}


# -- the cases -------------------------------------------------------------------------------------------------------

WEAK = TwoMass(1.0, 2.0, 1e3, 1e3, 20.0, 1.0, 1.0, 0.2, x1=0.0, v1=100.0, x2=0.0, v2=-100.0)
FREE = TwoMass(1.0, 2.0, 1e3, 1e3, 1e3, 0.0, 0.0, 0.0, x1=0.0, v1=100.0, x2=0.0, v2=-100.0)
STIFF = TwoMass(1.0, 2.0, 1e3, 1e3, 1e6, 10.0, 10.0, 1e3, x1=0.0, v1=100.0, x2=0.0, v2=-100.0)


def _sine_road(t: float) -> float:
    return 0.05 * (1 - np.cos(8 * t)) / 2


def _bump(t: float) -> float:
    return 0.05 if 0.3 < t < 0.6 else 0.0


def _gap(t: float, y: Values) -> float:
    return float(y["plate.x"][0] - y["ball.x"][0])


def _below(t: float, y: Values) -> float:
    return float(y["control.wanted"][0] - 1.5)


def _above(t: float, y: Values) -> float:
    return float(y["control.wanted"][0] + 1.5)


def _joint(name: str, build: Callable[[], cs.System], t_end: float, known: Callable[[np.ndarray], Values]) -> Case:
    return Case(name, build, t_end, ("joint",), levels=6, degrees=(1, 2), known=known)


_ALL = (
    Case("tanks", tanks, 5.0),
    Case("tanks_loop", lambda: tanks(-3.0, 0.9), 5.0),
    Case("schmoll", lambda: force_displacement(SCHMOLL), 0.02, ("stiff",), levels=8),
    Case("bar", lambda: force_displacement(BAR), 0.05, levels=8),
    Case("lu_FF", lambda: two_mass("F/F", lu()), 0.5, levels=8),
    Case("lu_FD", lambda: two_mass("F/D", lu()), 0.5, levels=8),
    Case("lu_DD", lambda: two_mass("D/D", lu()), 0.5, levels=8),
    Case("lu_weak", lambda: two_mass("F/F", WEAK), 0.5, levels=8),
    Case("lu_free", lambda: two_mass("F/F", FREE), 0.5, levels=8),
    Case("lu_stiff", lambda: two_mass("F/F", STIFF), 0.2, ("stiff",), levels=8),
    Case("rc_chain", rc_chain, 5.0, ("stiff",), levels=8),
    Case("quarter_car", lambda: quarter_car(_sine_road), 2.0),
    Case("quarter_bump", lambda: quarter_car(_bump), 2.0, ("kinks",), jumps=(0.3, 0.6)),
    Case("contact", contact, 4.0, ("kinks",), levels=8, kinks=(_gap,)),
    Case("pid_plant", pid_plant, 8.0, ("kinks",), levels=6, kinks=(_below, _above)),
    Case("predator", predator, 20.0),
    Case("van_der_pol", van_der_pol, 60.0, ("stiff",), coarsest=64, levels=6),
    Case("lorenz_short", lorenz, 2.0),
    Case("lorenz_long", lorenz, 20.0, ("chaotic",), coarsest=128, levels=6),
    Case("nl_oscillator", nonlinear.oscillator, 0.005, ("kinks",), coarsest=64, levels=6, known=_between_kinks),
    Case("pendulum_FF", lambda: flexible_pendulum("F/F", integrator="dopri5"), 0.5, ("stiff",), coarsest=64, levels=6),
    Case("pendulum_FD", lambda: flexible_pendulum("F/D", integrator="dopri5"), 0.5, ("stiff",), coarsest=64, levels=6),
    Case("slider_flexible", lambda: slider.flexible(integrator="dopri5"), 1.0, levels=6),
    _joint("slider_rigid", lambda: slider.rigid(integrator="dopri5"), 1.0, _coordinates(slider.RIGID_JOINT)),
    _joint("pendulum_rigid", lambda: pendulum.split(integrator="dopri5"), 0.5, _coordinates(pendulum.CASE)),
    _joint("four_bar", lambda: four_bar.split(integrator="dopri5"), 0.5, _coordinates(four_bar.CASE)),
    _joint("two_mass_rigid", rigid_rod.split, 0.5, _rod),
    Case("rotor", lambda: Rotor().system("cartesian"), 0.01, coarsest=64, levels=5, known=_whirl),
)
CASES: dict[str, Case] = {case.name: case for case in _ALL}
SIXTEEN = (
    "bar",
    "contact",
    "lorenz_short",
    "lu_FD",
    "lu_stiff",
    "lu_weak",
    "nl_oscillator",
    "pendulum_rigid",
    "predator",
    "rc_chain",
    "schmoll",
    "slider_flexible",
    "slider_rigid",
    "tanks",
    "tanks_loop",
    "two_mass_rigid",
)


# -- held out --------------------------------------------------------------------------------------------------------


def random_networks(seed: int, count: int = 8) -> list[Case]:
    """Networks of two to five oscillators, joined by springs along random lines: nothing is tuned on them.

    A spring is a law between two oscillators or belongs to one of them, which takes the other's motion and gives the
    force; one law in three hardens, and one oscillator in four has a hardening spring of its own.
    """
    random = np.random.default_rng(seed)
    return [_network(f"network_{seed}_{k}", random) for k in range(count)]


@dataclass(frozen=True)
class _Oscillator:
    """Mass, stiffness, damping, cubic part of the spring, and the start."""

    m: float
    c: float
    d: float
    hardening: float
    x: float
    v: float


@dataclass(frozen=True)
class _Spring:
    """Between two oscillators; `owned` by the second one, else a law."""

    a: int
    b: int
    c: float
    d: float
    hardening: float
    owned: bool

    def force(self, x: float, v: float, X: float, V: float) -> float:
        """On the first one."""
        return self.c * (X - x) + self.d * (V - v) + self.hardening * (X - x) ** 3


def _network(name: str, random: np.random.Generator) -> Case:
    n = int(random.integers(2, 6))
    nodes, springs = [], []
    for _ in range(n):
        m, omega = random.uniform(0.5, 2.0), random.uniform(2.0, 10.0)
        c = m * omega**2
        hardening = c * random.uniform(0.1, 0.5) if random.random() < 0.25 else 0.0
        nodes.append(
            _Oscillator(m, c, random.uniform(0.0, 0.1) * m * omega, hardening, random.normal(), omega * random.normal())
        )
    lines = [(int(random.integers(k)), k) for k in range(1, n)]  # a tree, and some more
    lines += [(a, b) for a in range(n) for b in range(a + 1, n) if (a, b) not in lines and random.random() < 0.2]
    for a, b in lines:
        c = random.uniform(0.1, 1.0) * min(nodes[a].c, nodes[b].c)
        owned = bool(random.random() < 0.5)
        hardening = c * random.uniform(0.1, 0.5) if not owned and random.random() < 1 / 3 else 0.0
        springs.append(_Spring(a, b, c, random.uniform(0.0, 0.01) * c, hardening, owned))
    return Case(name, lambda: _joined(nodes, springs), 3.0, coarsest=64, levels=5)


def _joined(nodes: Sequence[_Oscillator], springs: Sequence[_Spring]) -> cs.System:
    system = cs.System({f"n{k}": _node(k, node, springs) for k, node in enumerate(nodes)})
    for j, spring in enumerate(springs):
        a, b = f"n{spring.a}", f"n{spring.b}"
        if spring.owned:
            system.connect(f"{a}.x", f"{b}.x{j}")
            system.connect(f"{a}.v", f"{b}.v{j}")
            system.connect(f"{b}.F{j}", f"{a}.f{j}")
        else:
            of = [f"{a}.x", f"{a}.v", f"{b}.x", f"{b}.v"]
            system.law({f"{a}.f{j}": 1.0, f"{b}.f{j}": -1.0}, spring.force, of=of, name=f"law{j}")
    return system


def _node(k: int, node: _Oscillator, springs: Sequence[_Spring]) -> cs.Subsystem:
    """One oscillator as matrices: forces come in, and motions at springs of its own, whose forces go out."""
    own = [j for j, spring in enumerate(springs) if spring.owned and spring.b == k]
    foreign = [j for j, spring in enumerate(springs) if k in (spring.a, spring.b) and j not in own]
    inputs = [f"f{j}" for j in foreign] + [name for j in own for name in (f"x{j}", f"v{j}")]
    A = np.array([[0.0, 1.0], [-node.c / node.m, -node.d / node.m]])
    B, C, D = np.zeros((2, len(inputs))), np.eye(2), np.zeros((2 + len(own), len(inputs)))
    B[1, : len(foreign)] = 1.0 / node.m
    for place, j in enumerate(own):
        gains, at = np.array([springs[j].c, springs[j].d]), len(foreign) + 2 * place
        A[1] -= gains / node.m
        B[1, at : at + 2] = gains / node.m
        C = np.vstack([C, gains])
        D[2 + place, at : at + 2] = -gains
    outputs = ["x", "v"] + [f"F{j}" for j in own]
    if not node.hardening:
        return cs.Linear(A, B, C, D, x0=[node.x, node.v], inputs=inputs, outputs=outputs)

    def slope(t: float, s: np.ndarray, u: np.ndarray) -> np.ndarray:
        return A @ s + B @ u - np.array([0.0, node.hardening * s[0] ** 3 / node.m])

    def output(t: float, s: np.ndarray, u: np.ndarray) -> list[float]:
        forces = []  # each from the motion at its own spring alone: an unknown (NaN) input must not reach the others
        for place in range(len(own)):
            at = len(foreign) + 2 * place
            forces.append(float(C[2 + place] @ s + D[2 + place, at : at + 2] @ u[at : at + 2]))
        return [*s, *forces]

    return cs.Ode(slope, output, x0=[node.x, node.v], inputs=inputs, outputs=outputs, **ACCURATE)
