"""Plane elements of foam by themselves: uniform strain, waves in a bar, damping, and an element that collapses."""

from __future__ import annotations

import numpy as np
import pytest

from examples import elements as el

SHEAR, DENSITY = 0.75e6, 120.0  # Young's modulus 1.5 MPa


def stiffness(nodes: np.ndarray, corners: np.ndarray, slopes: np.ndarray, volumes: np.ndarray) -> np.ndarray:
    """By central differences about rest."""
    n, columns = nodes.size, []
    for k in range(n):
        forces = []
        for by in (-1e-7, 1e-7):
            u = np.zeros(n)
            u[k] = by
            at_rest = np.zeros(nodes.shape)
            forces.append(el.foam_forces(u.reshape(-1, 2), at_rest, corners, slopes, volumes, SHEAR, 0.0).ravel())
        columns.append(-(forces[1] - forces[0]) / 2e-7)
    return np.array(columns).T


def first_frequency(rows: int, length: float) -> float:
    """Of a bar with a fixed base, in Hz: the lowest shape in which only `y` moves."""
    nodes, corners = el.block_mesh(0.01, length, (1, rows))
    slopes, volumes = el.shape_slopes(nodes, corners)
    masses = el.lumped_masses(corners, volumes, DENSITY)
    free = np.arange(5, nodes.size, 2)  # y of all nodes but the two of the base
    K = stiffness(nodes, corners, slopes, volumes)[np.ix_(free, free)]
    values, shapes = np.linalg.eig(K / masses[free // 2, np.newaxis])
    together = np.abs(np.sum(np.sign(shapes), axis=0)) == len(free)  # all nodes go the same way
    return float(np.sqrt(values.real[together].min()) / (2 * np.pi))


def test_a_bar_rings_as_the_wave_equation_says() -> None:
    """`c / 4L` with `c = sqrt(E / rho)`; the lumped chain has `sin` of it, an error of order 2."""
    length, speed = 0.05, np.sqrt(2 * SHEAR / DENSITY)
    errors = []
    for rows in (5, 10):
        found, exact = first_frequency(rows, length), speed / (4 * length)
        chain = 2 * rows * speed / length / (2 * np.pi) * np.sin(np.pi / (4 * rows))  # springs and masses in a row
        assert found == pytest.approx(chain, rel=1e-5)
        errors.append(1 - found / exact)
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.02)
    assert errors[1] < 2e-3


def test_uniform_strain_leaves_no_force_inside() -> None:
    """A large stretch and shear of a skewed mesh: the inner node is in balance, the border has the law's stress."""
    nodes, corners = el.block_mesh(2.0, 2.0, (2, 2))
    nodes[4] += [0.2, -0.1]  # the one inside
    F = np.array([[1.2, 0.1], [-0.05, 0.8]])
    slopes, volumes = el.shape_slopes(nodes, corners)
    force = el.foam_forces(nodes @ (F - np.eye(2)).T, np.zeros((9, 2)), corners, slopes, volumes, SHEAR, 0.0)
    assert np.abs(force[4]).max() < 1e-9 * np.abs(force).max()
    C = F.T @ F
    stress = F @ (SHEAR / 4 * (np.linalg.matrix_power(C, 3) - np.linalg.inv(C)))
    assert -force[6:].sum(axis=0) == pytest.approx(stress @ [0.0, 1.0] * 2.0, rel=1e-12)


def test_viscosity_takes_energy() -> None:
    """Without strain the power of random speeds is that of the viscous stress: `-viscosity * integral E' : E'`."""
    nodes, corners = el.block_mesh(1.0, 1.0, (1, 1))
    slopes, volumes = el.shape_slopes(nodes, corners)
    v = np.random.default_rng(1).standard_normal((4, 2))
    force = el.foam_forces(np.zeros((4, 2)), v, corners, slopes, volumes, SHEAR, 7.0)
    rates = [0.5 * (G + G.T) for G in (v[corners[0]].T @ slopes[0, k] for k in range(4))]
    expected = -7.0 * sum(volumes[0, k] * np.sum(E * E) for k, E in enumerate(rates))
    assert np.sum(force * v) == pytest.approx(expected, rel=1e-12)


def test_an_element_that_is_turned_inside_out_is_said() -> None:
    nodes, corners = el.block_mesh(1.0, 1.0, (1, 1))
    crushed = np.column_stack([np.zeros(4), -1.5 * nodes[:, 1]])
    with pytest.raises(ValueError, match="turned inside out"):
        el.foam_forces(crushed, np.zeros((4, 2)), corners, *el.shape_slopes(nodes, corners), SHEAR, 0.0)
