"""Rows of constraints and the motion of driven bodies, each formula against rigid motion written out with matrices.

The compiled functions are called as the Python that they are made from, so nothing is compiled here.
"""

import numpy as np
import pytest
from scipy.linalg import cho_solve, cholesky, expm
from scipy.spatial.transform import Rotation

from cosolve.multibody.equations import constraints, joint_math
from cosolve.multibody.equations.kinematics import BODY_WIDTH, POINT_WIDTH
from cosolve.multibody.equations.python_callbacks import _motion
from cosolve.multibody.model.arrays import DRIVEN, PERPENDICULAR, PLANE, POINT
from cosolve.multibody.model.parts import Drive


def hat(w):
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


class Moving:
    """A body at `r + v t + a t^2 / 2`, turned by `T exp(hat(omega t + alpha t^2 / 2))`: body-frame rates at t = 0."""

    def __init__(self, rng):
        self.r, self.v, self.a, self.omega, self.alpha = rng.normal(size=(5, 3))
        self.T = expm(hat(rng.normal(size=3)))
        self.point, self.axes = rng.normal(size=3), expm(hat(rng.normal(size=3)))

    def place(self, t):
        """Marker point and its axes as columns, in K0."""
        T = self.T @ expm(hat(self.omega * t + 0.5 * self.alpha * t**2))
        return self.r + self.v * t + 0.5 * self.a * t**2 + T @ self.point, T @ self.axes

    def rows(self):
        """The row of the table of bodies and that of the table of markers."""
        body, marker = np.empty(BODY_WIDTH), np.empty(POINT_WIDTH)
        w, lever = self.T @ self.omega, self.T @ self.point
        body[:] = [*self.T.ravel(), *self.r, *self.v, *self.omega, *w]
        centripetal = np.cross(w, np.cross(w, lever))
        marker[:] = [
            *(self.r + lever), *lever, *(self.v + np.cross(w, lever)), *centripetal, *(self.T @ self.axes).T.ravel()
        ]  # fmt: skip
        return body, marker

    @property
    def accelerations(self):
        return np.concatenate([self.a, self.alpha])


def value(row, one, two, t):
    kind, _, _, first, second, _, _ = row
    (p, E), (q, F) = one.place(t), two.place(t)
    if kind == POINT:
        return (p - q)[first]
    if kind == PLANE:
        return (p - q) @ F[:, second]
    return E[:, first] @ F[:, second]


def evaluated(rows, moving, n_free):
    tables = [np.array(table) for table in zip(*(body.rows() for body in moving), strict=True)]
    driven = np.zeros((len(moving) - n_free, DRIVEN))
    for k, body in enumerate(moving[n_free:]):
        driven[k, 13:] = body.accelerations
    J = np.full((len(rows), 12), np.nan)
    c, rate, gamma = np.full((3, len(rows)), np.nan)
    constraints.constraint_rows.py_func(n_free, rows, *tables, driven, J, c, rate, gamma)
    return J, c, rate, gamma


ROWS = np.array(
    [
        *([POINT, 0, 1, k, 0, 0, 1] for k in range(3)),
        *([PLANE, 0, 1, 0, k, 0, 1] for k in range(3)),
        *([PERPENDICULAR, 0, 1, k, j, 0, 1] for k in range(3) for j in range(3)),
    ]
)


@pytest.mark.parametrize("n_free", [2, 1, 0])
def test_values_rates_and_accelerations_are_those_of_the_motion(n_free):
    """`c`, `c'` and `c'' = J w' + gamma` by differences in time; what is known of driven bodies is in `gamma`."""
    rng = np.random.default_rng(1)
    one, two = moving = [Moving(rng), Moving(rng)]
    J, c, rate, gamma = evaluated(ROWS, moving, n_free)
    h = 1e-3
    for k, row in enumerate(ROWS):
        f = {n: value(row, one, two, n * h) for n in (-2, -1, 0, 1, 2)}
        slope = (8 * (f[1] - f[-1]) - (f[2] - f[-2])) / (12 * h)
        bend = (16 * (f[1] + f[-1]) - (f[2] + f[-2]) - 30 * f[0]) / (12 * h**2)
        assert c[k] == pytest.approx(f[0], abs=1e-12)
        assert rate[k] == pytest.approx(slope, abs=1e-8)
        free = [body.accelerations if i < n_free else np.zeros(6) for i, body in enumerate(moving)]
        assert J[k] @ np.concatenate(free) + gamma[k] == pytest.approx(bend, abs=1e-7)
    assert not J[:, 6 * n_free :].any()  # nothing of a driven body is left there


def test_multipliers_by_dense_matrices():
    """`C M^-1 C^T` of three bodies in a loop, its factor, solutions with it, and products with `C`."""
    rng = np.random.default_rng(2)
    moving = [Moving(rng) for _ in range(4)]  # the last one is driven
    rows = np.array([[POINT, a, b, k, 0, a, b] for a, b in ((0, 1), (1, 2)) for k in range(2)])
    rows = np.vstack([rows, [PERPENDICULAR, 2, 0, 0, 1, 2, 0], [PLANE, 3, 0, 0, 2, 3, 0]])
    n, m = 3, len(rows)
    J, _, _, _ = evaluated(rows, moving, n)
    bodies, inverse = np.zeros((n, 19)), np.zeros((6 * n, 6 * n))
    for i in range(n):
        A = rng.normal(size=(3, 3))
        inertia = A @ A.T + np.eye(3)
        bodies[i] = [1.0 + i, *inertia.ravel(), *np.linalg.inv(inertia).ravel()]
        at = slice(6 * i, 6 * i + 6)
        inverse[at, at] = np.block(
            [[np.eye(3) / (1.0 + i), np.zeros((3, 3))], [np.zeros((3, 3)), np.linalg.inv(inertia)]]
        )
    C = np.zeros((m, 6 * n))
    for k, row in enumerate(rows):
        for side, i in enumerate(row[5:]):
            if i < n:
                C[k, 6 * i : 6 * i + 6] += J[k, 6 * side : 6 * side + 6]
    weighted, L, scale = np.full((m, 12), np.nan), np.zeros((m, m)), np.empty(m)
    constraints.weigh_rows.py_func(n, rows, bodies, J, weighted)
    margin = constraints.factorise.py_func(rows, J, weighted, L, scale)
    S = C @ inverse @ C.T
    assert scale == pytest.approx(np.sqrt(np.diag(S)), rel=1e-12)
    assert pytest.approx(cholesky(S / np.outer(scale, scale), lower=True), rel=1e-9, abs=1e-12) == np.tril(L)
    assert margin == pytest.approx(np.diag(L).min(), rel=1e-15)
    assert 0.0 < margin < 1.0
    b, w = rng.normal(size=m), rng.normal(size=(n, 12))
    x = b.copy()
    constraints.solve_factorised.py_func(L, scale, x)
    assert x == pytest.approx(cho_solve((cholesky(S, lower=True), True), b), rel=1e-9)
    for at in (0, 6):
        product, total = np.empty(m), w.copy()
        constraints.rows_times.py_func(n, rows, J, w, at, product)
        assert product == pytest.approx(C @ w[:, at : at + 6].ravel(), rel=1e-12)
        constraints.add_transposed.py_func(n, rows, weighted, b, total, at)
        assert (total - w)[:, at : at + 6].ravel() == pytest.approx(inverse @ C.T @ b, rel=1e-9)
        assert (total - w)[:, 6 - at : 12 - at] == pytest.approx(0.0, abs=0.0)


def test_rotations_of_euler_parameters_and_angles():
    """Against scipy's rotations; rates against differences, in the body frame: `hat(omega) = T^T T'`."""
    rng = np.random.default_rng(4)
    q = rng.normal(size=4)
    q /= np.linalg.norm(q)
    T = Rotation.from_quat([*q[1:], q[0]]).as_matrix()
    assert joint_math.rotation_matrix(q) == pytest.approx(T, abs=1e-14)
    padded = np.array([9.0, *q])
    assert np.reshape(joint_math.rotation(padded, 1), (3, 3)) == pytest.approx(T, abs=1e-14)
    assert np.reshape(joint_math.rotation(3.0 * padded, 1), (3, 3)) == pytest.approx(T, abs=1e-14)  # of any length
    a, nine = rng.normal(size=3), tuple(T.ravel())
    assert joint_math.to_space(nine, tuple(a)) == pytest.approx(T @ a)
    assert joint_math.to_body(nine, tuple(a)) == pytest.approx(T.T @ a)
    w, h = rng.normal(size=3), 1e-6
    rate = np.array(joint_math.parameter_rate(padded, 1, tuple(w)))
    ahead, behind = (joint_math.rotation_matrix(q + sign * h * rate) for sign in (1, -1))
    assert T.T @ (ahead - behind) / (2 * h) == pytest.approx(hat(w), abs=1e-8)
    assert joint_math.parameter_rates(q) @ rate == pytest.approx(w, abs=1e-12)
    angles = rng.uniform(0.3, 1.2, size=3)
    R = Rotation.from_euler("ZXZ", angles).as_matrix()
    assert joint_math.euler_angle_rotation(angles) == pytest.approx(R, abs=1e-14)
    turn = joint_math.euler_angle_rates(angles) @ w
    ahead, behind = (Rotation.from_euler("ZXZ", angles + sign * h * turn).as_matrix() for sign in (1, -1))
    assert R.T @ (ahead - behind) / (2 * h) == pytest.approx(hat(w), abs=1e-8)


def tumbling(t):
    """Turned by `a` about z, then by `b` about the new x; Euler parameters, and rates in the body frame."""
    a, da, dda = np.sin(2 * t), 2 * np.cos(2 * t), -4 * np.sin(2 * t)
    b, db, ddb = 0.3 + t**2, 2 * t, 2.0
    q = [
        np.cos(a / 2) * np.cos(b / 2), np.cos(a / 2) * np.sin(b / 2),
        np.sin(a / 2) * np.sin(b / 2), np.sin(a / 2) * np.cos(b / 2),
    ]  # fmt: skip
    omega = [db, da * np.sin(b), da * np.cos(b)]
    alpha = [ddb, dda * np.sin(b) + da * db * np.cos(b), dda * np.cos(b) - da * db * np.sin(b)]
    return np.array(q), np.array(omega), np.array(alpha)


@pytest.mark.parametrize("given", [1, 2, 3])
def test_a_driven_body_moves_as_its_functions_say(given):
    """What is not given is a derivative of what is: `r = (sin 3t, t^3, 1)`, and a rotation about two axes."""
    turned = [lambda t, k=k: tumbling(t)[k] for k in range(3)]
    moved = [
        lambda t: np.array([np.sin(3 * t), t**3, 1.0]),
        lambda t: np.array([3 * np.cos(3 * t), 3 * t**2, 0.0]),
        lambda t: np.array([-9 * np.sin(3 * t), 6 * t, 0.0]),
    ]
    open_ = [None] * (3 - given)
    drive = Drive("body", *moved[:given], *open_, *turned[:given], *open_)
    t = 0.7
    row = _motion(drive, t, np.full(DRIVEN, np.nan))
    expected = [moved[0](t), tumbling(t)[0], moved[1](t), tumbling(t)[1], moved[2](t), tumbling(t)[2]]
    assert row == pytest.approx(np.concatenate(expected), abs=1e-7)


def test_what_a_drive_leaves_open_stays():
    row = np.arange(float(DRIVEN))
    still = _motion(Drive("body", lambda t: np.array([t, 0.0, 0.0]), *[None] * 5), 2.0, row)
    assert still[:3] == pytest.approx([2.0, 0.0, 0.0])
    assert (still[3:7] == row[3:7]).all()
    assert (still[10:13] == row[10:13]).all()
    assert (still[16:] == row[16:]).all()
