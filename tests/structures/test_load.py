"""Loads of a structure, constant and over time, against closed forms."""

from typing import Any

import numpy as np
import pytest

from cosolve.signal import Polynomial
from cosolve.structures import DofPort, SecondOrder, Structure, StructureIntegrator

M, K = np.array([2.0, 0.5]), np.diag([8.0, 18.0])  # two oscillators apart: 2 and 6 rad/s
FORCE = np.array([3.0, -1.0])


def motion(load: Any, linear: bool = True, t_end: float = 1.0, steps: int = 400) -> np.ndarray:
    """Displacements at the end, from rest, by the average acceleration."""
    stiffness: dict[str, Any] = {"K": K} if linear else {"internal_force": lambda q: K @ q, "tangent": lambda q: K}
    structure = Structure(np.diag(M), **stiffness, load=load)
    part = SecondOrder(structure, StructureIntegrator.trapezoidal(), inputs=[], outputs=[DofPort("x", [0, 1])])
    part.start(0.0)
    y = np.zeros(2)
    for n in range(steps):
        t0, t1 = n * t_end / steps, (n + 1) * t_end / steps
        y = part.advance(t0, t1, Polynomial(t0, t1 - t0, np.zeros((1, 0))))
    return np.asarray(y)


@pytest.mark.parametrize("linear", [True, False])
def test_a_constant_load(linear: bool) -> None:
    w = np.sqrt(np.diag(K) / M)
    assert motion(FORCE, linear) == pytest.approx(FORCE / np.diag(K) * (1 - np.cos(w)), abs=2e-5)


@pytest.mark.parametrize("linear", [True, False])
def test_a_load_over_time(linear: bool) -> None:
    """A ramp on one degree of freedom, a harmonic load on the other: unlike, so that none can stand for the other."""
    w = np.sqrt(np.diag(K) / M)
    ramp = FORCE[0] / K[0, 0] * (1.0 - np.sin(w[0]) / w[0])
    harmonic = FORCE[1] / M[1] / (w[1] ** 2 - 9.0) * (np.sin(3.0) - 3.0 / w[1] * np.sin(w[1]))
    found = motion(lambda t: np.array([FORCE[0] * t, FORCE[1] * np.sin(3.0 * t)]), linear)
    assert found == pytest.approx([ramp, harmonic], abs=2e-5)


def test_no_load() -> None:
    assert not motion(None).any()
