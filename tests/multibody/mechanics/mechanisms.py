"""The mechanisms of docs/validation/drift.md in absolute planar coordinates, and as multibody models."""

import numpy as np
from tests.multibody.mechanics.constrained import Constrained, Motion

import cosolve as cs

G = 9.81

pendulum = Constrained(
    mass=np.eye(2),
    force=lambda t, q, v: np.array([0.0, -G]),
    c=lambda q: np.array([q[0] * q[0] + q[1] * q[1] - 1.0]),
    C=lambda q: np.array([[2 * q[0], 2 * q[1]]]),
    gamma=lambda q, v: np.array([2 * (v[0] * v[0] + v[1] * v[1])]),
)


def pendulum_energy(run):
    return 0.5 * (run.v**2).sum(axis=1) + G * run.q[:, 1]


def planar(bodies, pins, fixed=()):
    """Bodies (mass, inertia) with pins [(i, local point, j or None, local or ground point)] and fixed coordinates."""
    n = 3 * len(bodies)
    M = np.diag([entry for m, J in bodies for entry in (m, m, J)])
    weight = np.array([entry for m, _ in bodies for entry in (0.0, -m * G, 0.0)])
    m = 2 * len(pins) + len(fixed)

    def arm(q, i, p):
        c, s = np.cos(q[3 * i + 2]), np.sin(q[3 * i + 2])
        return c * p[0] - s * p[1], s * p[0] + c * p[1]

    def c(q):
        out = np.empty(m)
        for k, (i, p, j, r) in enumerate(pins):
            x, y = arm(q, i, p)
            out[2 * k], out[2 * k + 1] = q[3 * i] + x, q[3 * i + 1] + y
            if j is None:
                out[2 * k] -= r[0]
                out[2 * k + 1] -= r[1]
            else:
                x, y = arm(q, j, r)
                out[2 * k] -= q[3 * j] + x
                out[2 * k + 1] -= q[3 * j + 1] + y
        for k, index in enumerate(fixed):
            out[2 * len(pins) + k] = q[index]
        return out

    def C(q):
        out = np.zeros((m, n))
        for k, (i, p, j, r) in enumerate(pins):
            for body, point, sign in ((i, p, 1.0), (j, r, -1.0)):
                if body is not None:
                    x, y = arm(q, body, point)
                    out[2 * k, 3 * body], out[2 * k, 3 * body + 2] = sign, -sign * y
                    out[2 * k + 1, 3 * body + 1], out[2 * k + 1, 3 * body + 2] = sign, sign * x
        for k, index in enumerate(fixed):
            out[2 * len(pins) + k, index] = 1.0
        return out

    def gamma(q, v):
        out = np.zeros(m)
        for k, (i, p, j, r) in enumerate(pins):
            for body, point, sign in ((i, p, 1.0), (j, r, -1.0)):
                if body is not None:
                    x, y = arm(q, body, point)
                    w2 = v[3 * body + 2] ** 2
                    out[2 * k] -= sign * w2 * x
                    out[2 * k + 1] -= sign * w2 * y
        return out

    return Constrained(M, lambda t, q, v: weight, c, C, gamma)


def planar_energy(bodies, run):
    total = np.zeros(len(run.t))
    for i, (m, J) in enumerate(bodies):
        v = run.v[:, 3 * i : 3 * i + 3]
        total += 0.5 * m * (v[:, 0] ** 2 + v[:, 1] ** 2) + 0.5 * J * v[:, 2] ** 2 + m * G * run.q[:, 3 * i + 1]
    return total


def link(length, mass):
    return mass, mass * length**2 / 12


SLIDER_CRANK_BODIES = [link(0.5, 0.5), link(1.0, 1.0), (1.0, 0.01)]
FOUR_BAR_BODIES = [link(0.5, 0.5), link(1.5, 1.5), link(1.25, 1.25)]


def slider_crank():
    a, b = 0.5, 1.0
    th = np.pi / 4
    be = -np.arcsin(a * np.sin(th) / b)
    A = a * np.array([np.cos(th), np.sin(th)])
    rod = A + 0.5 * b * np.array([np.cos(be), np.sin(be)])
    q0 = np.array([*(0.5 * A), th, *rod, be, A[0] + b * np.cos(be), 0.0, 0.0])
    pins = [(0, (-a / 2, 0), None, (0, 0)), (0, (a / 2, 0), 1, (-b / 2, 0)), (1, (b / 2, 0), 2, (0, 0))]
    return planar(SLIDER_CRANK_BODIES, pins, fixed=(7, 8)), q0


def four_bar():
    a, b, c, d = 0.5, 1.5, 1.25, 1.5
    A, D = np.array([0.0, a]), np.array([d, 0.0])
    gap = np.linalg.norm(D - A)
    along = (b**2 - c**2 + gap**2) / (2 * gap)
    e = (D - A) / gap
    B = A + along * e + np.sqrt(b**2 - along**2) * np.array([-e[1], e[0]])  # upper intersection
    angle = [np.pi / 2, *(np.arctan2(w[1], w[0]) for w in (B - A, B - D))]
    q0 = np.array([*(A / 2), angle[0], *((A + B) / 2), angle[1], *((B + D) / 2), angle[2]])
    pins = [
        (0, (-a / 2, 0), None, (0, 0)),
        (0, (a / 2, 0), 1, (-b / 2, 0)),
        (1, (b / 2, 0), 2, (c / 2, 0)),
        (2, (-c / 2, 0), None, (d, 0)),
    ]
    return planar(FOUR_BAR_BODIES, pins), q0


def as_model(bodies, names, q0):
    model = cs.multibody.MultibodyModel(gravity=(0, -G, 0))
    for k, (name, (m, J)) in enumerate(zip(names, bodies, strict=True)):
        model.planar_body(name, m, J, position=q0[3 * k : 3 * k + 2], angle=q0[3 * k + 2])
    return model


def with_euler_parameters(system, q0, *, t_end, h, form, beta=None):
    """The RK4 of `integrate_constrained` with `cos` and `sin` of half the angles as coordinates, of length 1 again
    after every step: an independent reference for multibody models, whose error constant depends on the coordinates.
    """
    n = len(q0) // 3
    beta = (beta or 0.0) if form == "baumgarte" else 0.0

    def angles(e):
        q = e[:, :3].copy()
        q[:, 2] = 2 * np.arctan2(e[:, 3], e[:, 2])
        return q.ravel()

    def parameters(q):
        x, y, angle = q.reshape(n, 3).T
        return np.column_stack([x, y, np.cos(angle / 2), np.sin(angle / 2)])

    def rates(t, e, v):
        w = v[2::3]
        return (
            np.column_stack([v[0::3], v[1::3], -0.5 * w * e[:, 3], 0.5 * w * e[:, 2]]),
            system.accelerations(t, angles(e), v, beta, beta)[0],
        )

    e, v = parameters(q0), np.zeros(3 * n)
    t, q, rows = np.arange(round(t_end / h) + 1) * h, [q0], [v]
    for now in t[:-1]:
        e1, v1 = rates(now, e, v)
        e2, v2 = rates(now + h / 2, e + h / 2 * e1, v + h / 2 * v1)
        e3, v3 = rates(now + h / 2, e + h / 2 * e2, v + h / 2 * v2)
        e4, v4 = rates(now + h, e + h * e3, v + h * v3)
        e, v = e + h / 6 * (e1 + 2 * e2 + 2 * e3 + e4), v + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
        e[:, 2:] /= np.linalg.norm(e[:, 2:], axis=1)[:, np.newaxis]
        here = angles(e)
        if "projection" in form:
            here, v = system.project(here, v, velocity=form == "projection")
            e = parameters(here)
        q.append(here)
        rows.append(v)
    return Motion(t, np.array(q), np.array(rows), np.zeros(0), np.zeros(0))


def slider_crank_model():
    _, q0 = slider_crank()
    model = as_model(SLIDER_CRANK_BODIES, ("crank", "rod", "slider"), q0)
    for name, body, x in (("c0", "crank", -0.25), ("c1", "crank", 0.25), ("r0", "rod", -0.5), ("r1", "rod", 0.5)):
        model.marker(name, body, (x, 0, 0))
    along_x = [[0, 0, 1], [1, 0, 0], [0, 1, 0]]  # the marker's z axis, along which it slides, is the x axis
    model.marker("shoe", "slider", axes=along_x)
    model.marker("rail", "ground", axes=along_x)
    model.joint("A", "revolute", "c0", "ground")
    model.joint("B", "revolute", "c1", "r0")
    model.joint("C", "revolute", "r1", "slider")
    model.joint("D", "translational", "shoe", "rail")
    return model


def four_bar_model():
    _, q0 = four_bar()
    model = as_model(FOUR_BAR_BODIES, ("crank", "coupler", "rocker"), q0)
    for name, body, x in (
        ("c0", "crank", -0.25),
        ("c1", "crank", 0.25),
        ("k0", "coupler", -0.75),
        ("k1", "coupler", 0.75),
        ("r0", "rocker", -0.625),
        ("r1", "rocker", 0.625),
    ):
        model.marker(name, body, (x, 0, 0))
    model.marker("far", "ground", (1.5, 0, 0))
    model.joint("A", "revolute", "c0", "ground")
    model.joint("B", "revolute", "c1", "k0")
    model.joint("C", "revolute", "k1", "r1")
    model.joint("D", "revolute", "r0", "far")
    return model


class Inputs:
    """Inputs of a macro step for calling a subsystem directly: a polynomial given by its coefficients."""

    def __init__(self, t0, H, coefficients):
        self.t0, self.H, self.coefficients = t0, H, np.atleast_2d(np.asarray(coefficients, dtype=float))
        self.degree = len(self.coefficients) - 1

    @property
    def end(self):
        return self.coefficients.sum(axis=0)

    def __call__(self, t):
        s = (t - self.t0) / self.H
        return sum(c * s**k for k, c in enumerate(self.coefficients))


def advance(subsystem, t0, t1, u=None, steps=1):
    """Let a subsystem advance [t0, t1] in `steps` macro steps with constant inputs; its last outputs."""
    n = sum(port.length for port in subsystem.inputs)
    u = np.zeros(n) if u is None else np.asarray(u, dtype=float)
    H = (t1 - t0) / steps
    y = None
    for k in range(steps):
        y = subsystem.advance(t0 + k * H, t0 + (k + 1) * H, Inputs(t0 + k * H, H, [u]))
    return y
