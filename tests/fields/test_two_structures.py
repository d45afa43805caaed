"""Several structures in one flow, and a flow that takes steps of its own inside a macro step."""

import numpy as np
import pytest
from scipy.linalg import expm

import cosolve as cs


class Channel(cs.fields.FieldSubsystem):
    """A one-dimensional flow of an incompressible fluid between two flexible walls in one channel.

    Displacements of the walls in, pressures on them out; the flow rate is given at the inlet, the pressure at the
    outlet. Every wall feels the mass of the fluid that all walls upstream of it move.
    """

    length, area, density = 1.0, 0.1, 1000.0

    def __init__(self, walls, points, h):
        self.h, self.x = h, (np.arange(points) + 0.5) / points
        self.walls = [slice(int(a * points), int(b * points)) for a, b in walls]
        self.inputs = [cs.Port(f"w{k}", s.stop - s.start, "m", nominal=1e-4) for k, s in enumerate(self.walls)]
        self.outputs = [cs.Port(f"p{k}", s.stop - s.start, "Pa", nominal=100.0) for k, s in enumerate(self.walls)]
        dx = 1.0 / points
        sums = dx * np.tril(np.ones((points, points)))
        #: flow rate from the rates of the walls, and pressure from the rates of the flow
        self.to_flow, self.to_pressure = -sums, self.density / self.area * sums.T
        self.meshes = {
            f"{port}{k}": cs.mapping.Mesh.line(self.x[s], name=f"wall {k}")
            for k, s in enumerate(self.walls)
            for port in "wp"
        }

    def inlet(self, t):
        return 1e-3 * (1 - np.cos(2 * np.pi * t))

    def start(self, t0):
        self.w, self.q = np.zeros(len(self.x)), np.zeros(len(self.x))
        return np.zeros(sum(s.stop - s.start for s in self.walls))

    def advance(self, t0, t1, u):
        w, at = np.zeros(len(self.x)), 0
        for s in self.walls:
            w[s] = u.end[at : at + s.stop - s.start]
            at += s.stop - s.start
        q = self.inlet(t1) + self.to_flow @ ((w - self.w) / self.h)
        p = self.to_pressure @ ((q - self.q) / self.h)
        self.w, self.q = w, q
        return np.concatenate([p[s] for s in self.walls])

    def save(self):
        return self.w, self.q

    def restore(self, state):
        self.w, self.q = state

    def snapshot(self):
        return cs.fields.FieldSnapshot(
            np.column_stack([self.x, self.w]),
            {"line": np.column_stack([np.arange(len(self.x) - 1), np.arange(1, len(self.x))])},
            {"flow rate": self.q.copy()},
        )


class Wall(cs.Subsystem):
    """A stretched membrane on springs: pressure in, displacement out, backward Euler."""

    def __init__(self, n, dx, mass, spring, h):
        self.inputs, self.outputs = [cs.Port("p", n, "Pa", nominal=100.0)], [cs.Port("w", n, "m", nominal=1e-4)]
        self.h, self.mass, self.n = h, mass, n
        self.stiffness = spring * np.eye(n) + 5.0 / dx**2 * (2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1))
        self.inverse = np.linalg.inv(mass / h**2 * np.eye(n) + self.stiffness)

    def start(self, t0):
        self.now = self.old = np.zeros(self.n)
        return self.now

    def advance(self, t0, t1, u):
        new = self.inverse @ (u.end + self.mass / self.h**2 * (2 * self.now - self.old))
        self.now, self.old = new, self.now
        return new

    def save(self):
        return self.now, self.old

    def restore(self, state):
        self.now, self.old = state


H, STEPS, POINTS = 0.02, 12, 60


def parts():
    channel = Channel([(0.1, 0.4), (0.55, 0.9)], POINTS, H)
    walls = [Wall(s.stop - s.start, 1 / POINTS, m, k, H)
             for s, m, k in zip(channel.walls, (50.0, 20.0), (4e5, 8e5), strict=True)]  # fmt: skip
    return channel, walls


def monolithic():
    """The same equations, solved for both walls at once in every step."""
    channel, walls = parts()
    on = np.concatenate([np.arange(s.start, s.stop) for s in channel.walls])
    A = (channel.to_pressure @ channel.to_flow)[np.ix_(on, on)] / H**2
    K = np.zeros((len(on), len(on)))
    at = 0
    for wall in walls:
        K[at : at + wall.n, at : at + wall.n] = np.linalg.inv(wall.inverse)
        at += wall.n
    m = np.concatenate([np.full(wall.n, wall.mass) for wall in walls]) / H**2
    now = old = np.zeros(len(on))
    q, found = np.zeros(POINTS), []
    for k in range(1, STEPS + 1):
        rest = channel.to_pressure @ ((channel.inlet(k * H) - channel.to_flow[:, on] @ now / H - q) / H)
        new = np.linalg.solve(K - A, rest[on] + m * (2 * now - old))
        q = channel.inlet(k * H) + channel.to_flow[:, on] @ ((new - now) / H)
        now, old = new, now
        found.append(new)
    return np.array(found)


@pytest.mark.parametrize("corrector", [cs.IqnIls, cs.IqnImvj, cs.Anderson])
def test_two_walls_in_one_channel_agree_with_the_monolithic_solution(corrector):
    """The fluid is several times as heavy as the walls, so that nothing but a quasi-Newton method converges."""
    channel, walls = parts()
    system = cs.System({"fluid": channel, "wall0": walls[0], "wall1": walls[1]})
    for k in range(2):
        system.connect(f"fluid.p{k}", f"wall{k}.p")
        system.connect(f"wall{k}.w", f"fluid.w{k}")
    method = cs.Implicit(degree=0, tol=1e-9, corrector=corrector(), sweep="gauss-seidel", max_iterations=60)
    result = cs.simulate(system, t_end=STEPS * H, method=method, step=H)
    found, expected = np.hstack([result["wall0.w"][1:], result["wall1.w"][1:]]), monolithic()
    assert result.stats.unconverged == 0
    assert abs(found - expected).max() < 1e-6 * abs(expected).max()
    assert result.iterations[1:].mean() < (12 if corrector is not cs.Anderson else 25)
    plain = cs.Implicit(degree=0, tol=1e-9, corrector=cs.Relaxation(1.0), sweep="gauss-seidel")
    with pytest.raises(cs.errors.SimulationError):
        cs.simulate(system, t_end=STEPS * H, method=plain, step=H)


class Subcycled(cs.Subsystem):
    """A mass on a spring that follows another one, in `inner` steps (RK4) per macro step; asks for its input inside."""

    inputs, outputs = ["x_other"], ["x"]

    def __init__(self, stiffness, inner, x0):
        self.k, self.inner, self.x0 = stiffness, inner, x0

    def start(self, t0):
        self.s = np.array([self.x0, 0.0])
        return self.s[0]

    def advance(self, t0, t1, u):
        h = (t1 - t0) / self.inner
        for i in range(self.inner):
            t = t0 + i * h
            a = self._rate(t, self.s, u)
            b = self._rate(t + h / 2, self.s + h / 2 * a, u)
            c = self._rate(t + h / 2, self.s + h / 2 * b, u)
            d = self._rate(t + h, self.s + h * c, u)
            self.s = self.s + h / 6 * (a + 2 * b + 2 * c + d)
        return self.s[0]

    def _rate(self, t, s, u):
        return np.array([s[1], -self.k * s[0] + 3.0 * (float(u(t)[0]) - s[0])])

    def save(self):
        return self.s

    def restore(self, state):
        self.s = state


@pytest.mark.parametrize(("degree", "order"), [(0, 1), (1, 2), (2, 3)])
def test_waveforms_inside_the_macro_step_give_a_flow_with_inner_steps_its_order(degree, order):
    """Six inner steps on one side, two on the other; an input held over the macro step would leave order one."""
    A = np.array([[0, 1, 0, 0], [-8, 0, 3, 0], [0, 0, 0, 1], [3, 0, -4, 0]], dtype=float)
    exact = expm(2.0 * A) @ [1.0, 0.0, 0.0, 0.0]
    errors = []
    for steps in (20, 40, 80):
        system = cs.System({"flow": Subcycled(5.0, 6, 1.0), "solid": Subcycled(1.0, 2, 0.0)})
        system.connect("flow.x", "solid.x_other")
        system.connect("solid.x", "flow.x_other")
        method = cs.Implicit(degree=degree, tol=1e-12)
        result = cs.simulate(system, t_end=2.0, method=method, step=2.0 / steps)
        errors.append(np.hypot(result["flow.x"][-1] - exact[0], result["solid.x"][-1] - exact[2]))
    assert np.log2(errors[1] / errors[2]) == pytest.approx(order, abs=0.35)
