"""A monolithic linear system, cut anywhere, converges to its matrix exponential by any method, begun as by default."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

import cosolve as cs

T = 1.0


@st.composite
def cut_systems(draw):
    """A random stable matrix, an initial state, and a cut of the states into two to four groups."""
    groups = draw(st.lists(st.integers(1, 3), min_size=2, max_size=4))
    seed = draw(st.integers(0, 2**31))
    random = np.random.default_rng(seed)
    n = sum(groups)
    A = random.normal(size=(n, n))
    A -= (np.linalg.eigvals(A).real.max() + 0.3) * np.eye(n)
    A *= 1.5 / np.linalg.norm(A, 2)
    return A, random.normal(size=n) + 1.0, np.split(np.arange(n), np.cumsum(groups)[:-1])


def cut(A, x0, groups):
    boxes = {}
    for i, own in enumerate(groups):
        others = [(k, g) for k, g in enumerate(groups) if k != i]
        boxes[f"s{i}"] = cs.Linear(
            A[np.ix_(own, own)],
            np.hstack([A[np.ix_(own, g)] for _, g in others]),
            np.eye(len(own)),
            x0=x0[own],
            inputs=[(f"from{k}", len(g)) for k, g in others],
            outputs=[("x", len(own))],
        )
    system = cs.System(boxes)
    for k in range(len(groups)):
        system.connect(f"s{k}.x", *(f"s{i}.from{k}" for i in range(len(groups)) if i != k))
    return system


def end_error(A, x0, groups, method, steps):
    system = cut(A, x0, groups)
    result = cs.simulate(system, t_end=T, method=method, step=T / steps)
    x = np.concatenate([result[f"s{i}.x"][-1] for i in range(len(groups))])
    return np.linalg.norm(x - expm(A * T) @ x0)


CASES = [
    (method, degree) for method in (cs.Jacobi, cs.GaussSeidel, cs.SemiImplicit, cs.Implicit) for degree in (0, 1, 2, 3)
]


@pytest.mark.sample(4)
@pytest.mark.parametrize(("method", "degree"), CASES, ids=lambda v: getattr(v, "__name__", v))
def test_order_is_degree_plus_one(method, degree):
    @settings(max_examples=4)
    @given(cut_systems())
    def check(case):
        counts = (32, 64, 128) if degree < 3 else (16, 32, 64)
        errors = [end_error(*case, method(degree=degree), n) for n in counts]
        assert errors[-1] < 0.1
        slope = np.log2(errors[-2] / errors[-1])
        drift = abs(slope - np.log2(errors[-3] / errors[-2]))  # a case that has not settled may be off by its drift
        assert slope > degree + 1 - 0.25 - drift
        assert slope < degree + 1 + 0.6 + drift

    check()


@settings(max_examples=5)
@given(cut_systems())
def test_one_newton_step_is_the_implicit_solution_on_linear_systems(case):
    A, x0, groups = case
    runs = [
        cs.simulate(cut(A, x0, groups), t_end=T, method=method, step=0.05)
        for method in (
            cs.SemiImplicit(degree=2),
            cs.SemiImplicit(degree=2, predictor=0),
            cs.SemiImplicit(degree=2, jacobian="difference"),
            cs.Implicit(degree=2, tol=1e-13),
        )
    ]
    for other in runs[1:]:
        np.testing.assert_allclose(other.column("y"), runs[0].column("y"), atol=1e-9)
