"""A ball that bounces while it is coupled to a tank, as a subsystem of a user's own, and its exact solution.

Ball: x' = v, v' = -g + push, v -> -0.7 v where x reaches zero. Tank: h' = v - h, and it pushes the ball with 2 h.
"""

import numpy as np
from scipy.integrate import solve_ivp

import cosolve as cs

G, E, PUSH = 9.81, 0.7, 2.0


class Ball(cs.Subsystem):
    """Exact for polynomial inputs; `advance` keeps its bounces to itself, `advance_to_event` stops before them."""

    inputs, outputs = ["push"], ["x", "v"]

    def start(self, t0):
        self.x, self.v, self.bounces, self.due = 1.0, 0.0, 0, False
        return [self.x, self.v]

    def _fly(self, t0, t1, u):
        """Up to `t1` or to the ground, whatever comes first; the time there."""
        polynomial = np.polynomial.Polynomial(u.coefficients[:, 0], domain=[u.t0, u.t0 + u.H], window=[0.0, 1.0])
        v = (polynomial - G).integ(1, k=[self.v], lbnd=t0)
        x = v.integ(1, k=[self.x], lbnd=t0)
        down = [r.real for r in x.roots() if abs(r.imag) < 1e-12 and t0 + 1e-12 < r.real <= t1 and v(r.real) < 0]
        t = min(down, default=t1)
        self.x, self.v, self.due = (0.0 if down else float(x(t))), float(v(t)), bool(down)
        return t

    def advance(self, t0, t1, u):
        t = t0
        while t < t1:
            t = self._fly(t, t1, u)
            self._bounce()
        return [self.x, self.v]

    def _bounce(self):
        if self.due:
            self.v, self.due = -E * self.v, False
            self.bounces += 1

    def advance_to_event(self, t0, t1, u):
        return self._fly(t0, t1, u), [self.x, self.v], self.due

    def handle_event(self, t, u):
        self._bounce()
        return [self.x, self.v]


class GoingBack(Ball):
    """The same with rollback."""

    def save(self):
        return self.x, self.v, self.bounces, self.due

    def restore(self, state):
        self.x, self.v, self.bounces, self.due = state


def tank():
    return cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[0.0], inputs=["v"], outputs=["h"])


def coupled(ball, other=None):
    """The ball and the tank, which sees the speed and pushes."""
    system = cs.System({"tank": other or tank(), "ball": ball})
    system.connect("ball.v", "tank.v")
    system.law("ball.push", lambda h: PUSH * h, of="tank.h")
    return system


def exact(t_end):
    """Times of the bounces, and (x, v, h) at the end."""

    def rhs(t, s):
        return [s[1], -G + PUSH * s[2], s[1] - s[2]]

    def ground(t, s):
        return s[0] if t > begin + 1e-6 else 1.0

    ground.terminal, ground.direction = True, -1
    begin, state, times = 0.0, np.array([1.0, 0.0, 0.0]), []
    while True:
        run = solve_ivp(rhs, (begin, t_end), state, method="DOP853", rtol=1e-12, atol=1e-13, events=ground)
        state, begin = run.y[:, -1], run.t[-1]
        if run.status != 1:
            return np.array(times), state
        times.append(begin)
        state = np.array([0.0, -E * state[1], state[2]])
