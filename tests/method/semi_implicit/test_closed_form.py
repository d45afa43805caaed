"""The amplification matrix written a second time from semi-implicit 10.2, and the engine held against it.

Nothing of the engine is used in `ClosedForm`: one matrix exponential of the stacked subsystems with polynomial inputs,
the coupling solved exactly.
"""

from math import factorial

import numpy as np
import pytest
from examples.two_mass.model import lu, split
from scipy.linalg import expm

import cosolve as cs

CASES = [(kind, k) for kind in ("F/F", "F/D", "D/F", "D/D") for k in (0, 1, 2)]


class ClosedForm:
    """z' = A z + B u with z = (x1, v1, x2, v2), u = Y z; variables in the engine's order."""

    def __init__(self, kind, p):
        law = np.array([[-p.ck, -p.dk, p.ck, p.dk]])
        one, two = np.eye(4)[:2], np.eye(4)[2:]
        self.A = np.zeros((4, 4))
        self.A[:2, :2] = [[0, 1], [-p.c1 / p.m1, -p.d1 / p.m1]]
        self.A[2:, 2:] = [[0, 1], [-p.c2 / p.m2, -p.d2 / p.m2]]
        rows, columns = [], []
        if "F" in kind:
            rows.append(law)
            columns.append(np.array([[0], [(kind[0] == "F") / p.m1], [0], [-(kind[2] == "F") / p.m2]]))
        if kind[0] == "D":
            self.A[1, :2] -= np.array([p.ck, p.dk]) / p.m1
            rows.append(two)
            columns.append(np.outer([0, 1, 0, 0], [p.ck, p.dk]) / p.m1)
        if kind[2] == "D":
            self.A[3, 2:] -= np.array([p.ck, p.dk]) / p.m2
            rows.append(one)
            columns.append(np.outer([0, 0, 0, 1], [p.ck, p.dk]) / p.m2)
        self.Y, self.B = np.vstack(rows), np.hstack(columns)
        self.n = len(self.Y)
        self._known = {}

    def weights(self, degree, H, nodes):
        """Phi and the weight of the value at each node (times relative to T_N)."""
        key = (degree, H, tuple(nodes))
        if key not in self._known:
            self._known[key] = self._weights(degree, H, nodes)
        return self._known[key]

    def _weights(self, degree, H, nodes):
        n = self.n
        chain = np.zeros((4 + n * (degree + 1),) * 2)
        chain[:4, :4], chain[:4, 4 : 4 + n] = self.A, self.B
        for j in range(degree):
            chain[4 + n * j : 4 + n * (j + 1), 4 + n * (j + 1) : 4 + n * (j + 2)] = np.eye(n)
        flow = expm(chain * H)
        gamma = [factorial(j) * flow[:4, 4 + n * j : 4 + n * (j + 1)] for j in range(degree + 1)]
        L = np.linalg.inv(np.vander(nodes, degree + 1, increasing=True))  # coefficients = L @ node values
        return flow[:4, :4], [sum(L[j, m] * gamma[j] for j in range(degree + 1)) for m in range(degree + 1)]

    def semi_implicit(self, z, past, degree, H):
        """(z_{N+1}, u_{N+1}) from z_N and past = [u_N, u_{N-1}, ...]."""
        q = min(degree, len(past))
        phi, W = self.weights(q, H, H * np.arange(1.0, -q, -1.0)[: q + 1])
        known = phi @ z + sum((W[m] @ past[m - 1] for m in range(1, q + 1)), np.zeros(4))
        u = np.linalg.solve(np.eye(self.n) - self.Y @ W[0], self.Y @ known)
        return known + W[0] @ u, u

    def explicit(self, z, past, degree, H):
        q = min(degree, len(past) - 1)
        phi, W = self.weights(q, H, -H * np.arange(q + 1.0))
        z = phi @ z + sum(W[m] @ past[m] for m in range(q + 1))
        return z, self.Y @ z

    def matrix(self, step, degree, H):
        """The map on (z_N, u_N, ..., u_{N-degree}), column by column."""
        size = 4 + self.n * (degree + 1)
        columns = []
        for unit in np.eye(size):
            past = list(unit[4:].reshape(degree + 1, self.n))
            z, u = step(unit[:4], past, degree, H)
            columns.append(np.concatenate([z, u, *past[:degree]]))
        return np.array(columns).T

    def trajectory(self, step, degree, H, steps, z):
        past, states = [self.Y @ z], [z]
        for _ in range(steps):
            z, u = step(z, past, degree, H)
            past = [u, *past][: degree + 1]
            states.append(z)
        return np.array(states)


def outputs(result):
    return np.array([result[name] for name in ("one.x", "one.v", "two.x", "two.v")]).T


@pytest.mark.sample(4)
@pytest.mark.covers("SL-07")
@pytest.mark.parametrize(("kind", "k"), CASES)
@pytest.mark.parametrize("jacobian", ["auto", "difference"])
def test_three_step_algorithm_is_the_closed_form(kind, k, jacobian):
    """Predictor, perturbed runs and corrector against the closed form: 2e-11 in x, 1e-9 in v (T = 0.5, H = 1e-3)."""
    p, H = lu(), 1e-3
    closed = ClosedForm(kind, p)
    expected = closed.trajectory(closed.semi_implicit, k, H, 500, p.z0)
    result = cs.simulate(split(kind), t_end=0.5, method=cs.SemiImplicit(degree=k, jacobian=jacobian), step=H)
    gap = np.abs(outputs(result) - expected).max(axis=0)
    assert gap[[0, 2]].max() < 2e-11
    assert gap[[1, 3]].max() < 1e-9


@pytest.mark.covers("SL-08")
@pytest.mark.parametrize(("kind", "k"), CASES)
def test_explicit_run_is_the_closed_form(kind, k):
    """The same for the explicit scheme (extrapolate, integrate, evaluate)."""
    p, H = lu(), 1e-3
    closed = ClosedForm(kind, p)
    expected = closed.trajectory(closed.explicit, k, H, 500, p.z0)
    result = cs.simulate(split(kind), t_end=0.5, method=cs.Jacobi(degree=k), step=H, startup=cs.RisingDegree())
    gap = np.abs(outputs(result) - expected).max(axis=0)
    assert gap[[0, 2]].max() < 2e-11
    assert gap[[1, 3]].max() < 1e-9


@pytest.mark.covers("SL-10", "LU-11")
@pytest.mark.parametrize(("kind", "k"), CASES)
@pytest.mark.parametrize("H", [1e-3, 5e-3, 5e-2, 1e-1])
def test_amplification_matrix_matrix(kind, k, H):
    """The analysed matrix is the closed-form one, entry by entry, and has 4 + n_g (k+1) rows.

    1e-7 of the largest entry: laws are differenced to 1e-10, amplified where cH^2/m is large.
    """
    closed = ClosedForm(kind, lu())
    for method, step in ((cs.SemiImplicit(degree=k), closed.semi_implicit), (cs.Jacobi(degree=k), closed.explicit)):
        found = cs.analysis.amplification_matrix(split(kind), method, H)
        expected = closed.matrix(step, k, H)
        assert found.linear
        assert found.matrix.shape == (4 + closed.n * (k + 1),) * 2
        assert np.abs(found.matrix - expected).max() < 1e-7 * np.abs(expected).max()
        assert found.radius == pytest.approx(np.abs(np.linalg.eigvals(expected)).max(), abs=1e-7)


@pytest.mark.covers("SL-11", "LU-10")
@pytest.mark.parametrize("kind", ["F/F", "F/D", "D/F", "D/D"])
def test_radii_over_the_parameter_plane(kind):
    """Engine and closed form agree on random points of the map 1e2 <= c <= 1e5, 1 <= d <= 1e4 (1e-6)."""
    random = np.random.default_rng(3)
    for c, d in 10.0 ** random.uniform([2, 0], [5, 4], (6, 2)):
        p = lu(c, d)
        closed = ClosedForm(kind, p)
        for k in (0, 1, 2):
            expected = np.abs(np.linalg.eigvals(closed.matrix(closed.semi_implicit, k, 5e-3))).max()
            found = cs.analysis.spectral_radius(split(kind, p), cs.SemiImplicit(degree=k), 5e-3)
            assert found == pytest.approx(expected, abs=1e-6)
