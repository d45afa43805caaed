"""The drop tower: fall, impact and rebound of a guided body on a foam block, and the finite elements by themselves.

Reference: both sides in one system of equations, by a Runge-Kutta loop of the example that knows nothing of the engine.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from examples.drop_tower.model import DropTower, Fall, _foam_rates, split, undivided

import cosolve as cs

THRESHOLD = 15.0  # N, above which it counts as contact


@cache
def fall(tilt: float, t_end: float, step: float = 2e-6) -> Fall:
    return undivided(DropTower(tilt), t_end, step=step)


def foam_forces(machine: DropTower, displacements: np.ndarray, speeds: np.ndarray | None = None) -> np.ndarray:
    """Forces of the free nodes, with the block far away."""
    n = len(machine.mesh[0])
    x = np.zeros(6 + 4 * n)
    x[1] = 1.0
    x[6 : 6 + 2 * n] = displacements.ravel()
    if speeds is not None:
        x[6 + 2 * n :] = speeds.ravel()
    point = np.array([0.0, 1.0 + machine.specimen.block_height / 2, 0.0, 0.0, 0.0, 0.0])
    per_row = machine.elements[0] + 1
    rates = _foam_rates(x, point, machine.specimen, *machine.mesh, *machine.slopes, machine.masses, per_row)
    return rates[6 + 2 * n :].reshape(n, 2) * machine.masses[:, np.newaxis]


def strain_energy(machine: DropTower, displacements: np.ndarray) -> float:
    """By the principal stretches, as the law is written: an independent way to the stress."""
    s, (nodes, corners), (slopes, volumes) = machine.specimen, machine.mesh, machine.slopes
    total = 0.0
    for e, corner in enumerate(corners):
        for k in range(4):
            F = np.eye(2) + displacements[corner].T @ slopes[e, k]
            stretches = np.linalg.svd(F, compute_uv=False)
            total += volumes[e, k] * 2 * s.shear / 64 * float((stretches**8 - 1 - 8 * np.log(stretches)).sum())
    assert len(nodes) == 42
    return total


def test_forces_of_the_foam_are_slopes_of_its_energy() -> None:
    """At a large random deformation, for every free node, by central differences."""
    machine = DropTower(5.0)
    u = 4e-4 * np.random.default_rng(3).standard_normal((42, 2))
    u[:7] = 0.0
    found = foam_forces(machine, u)
    for i in (7, 20, 41):
        for k in range(2):
            shifted = [u.copy(), u.copy()]
            shifted[0][i, k] -= 1e-8
            shifted[1][i, k] += 1e-8
            slope = (strain_energy(machine, shifted[1]) - strain_energy(machine, shifted[0])) / 2e-8
            assert found[i, k] == pytest.approx(-slope, rel=1e-5, abs=1e-5)


def test_foam_does_not_feel_rigid_motion() -> None:
    """Turned as a whole, without any stress."""
    machine = DropTower()
    nodes, angle = machine.mesh[0], 0.3
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    assert np.abs(foam_forces(machine, nodes @ turn.T - nodes)).max() < 1e-6


@pytest.mark.covers("AP-40", "SC-46")
def test_the_first_impact() -> None:
    """Contact, lowest point and peak force without tilt; 0.5 %."""
    course = fall(0.0, 0.13, 4e-6)
    load, point = course.load()[:, 1], course.point()
    touches = int((load > THRESHOLD).argmax())
    assert course.t[touches] == pytest.approx(0.1116, abs=2e-4)
    assert point[touches, 4] == pytest.approx(-1.046, rel=0.01)
    assert load.max() == pytest.approx(516.9, rel=5e-3)
    assert course.t[load.argmax()] == pytest.approx(0.1252, rel=5e-3)
    assert course.t[point[:, 1].argmin()] == pytest.approx(0.1267, rel=5e-3)
    assert 0.07 - point[:, 1].min() == pytest.approx(9.437e-3, rel=5e-3)


@pytest.mark.slow
@pytest.mark.covers("AP-40", "AP-41")
@pytest.mark.parametrize(
    ("tilt", "begin", "end", "peak", "lowest"),
    [(0.0, 0.1116, 0.1420, 516.9, 9.437), (2.5, 0.1103, 0.1427, 517.4, 9.491), (5.0, 0.1091, 0.1441, 513.6, 9.538)],
)
def test_three_tilts(tilt: float, begin: float, end: float, peak: float, lowest: float) -> None:
    """Contact lasts longer with tilt, and the force is lowest at five degrees."""
    course = fall(tilt, 0.15)
    load, y = course.load()[:, 1], course.point()[:, 1]
    during = np.flatnonzero(load > THRESHOLD)
    assert course.t[during[[0, -1]]] == pytest.approx([begin, end], rel=5e-3)
    assert load.max() == pytest.approx(peak, rel=5e-3)
    assert 1e3 * (0.07 - y.min()) == pytest.approx(lowest, rel=5e-3)


@pytest.mark.slow
@pytest.mark.covers("AP-46")
def test_strong_coupling_at_large_steps() -> None:
    """Semi-implicit steps of 0.1 ms stay bounded, with the peak force within 2 %."""
    run = cs.simulate(split(), t_end=0.13, method=cs.SemiImplicit(2), step=1e-4)
    assert np.ravel(run["fe.load"][:, 1]).max() == pytest.approx(516.9, rel=0.02)
