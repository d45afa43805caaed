"""The interface Jacobian G: differenced, exact, and its limit for small steps (Schweizer and Lu (2014), App. B)."""

from dataclasses import replace

import numpy as np
import pytest
from examples.two_mass.model import lu, split
from scipy.linalg import expm

from cosolve.engine.python.subsystem_caller import SubsystemCaller
from cosolve.engine.python.trial import Trial
from cosolve.method import Window
from cosolve.signal import History


def interface_jacobian(kind, H, p=None, degree=0, source="auto", increment=1e-5):
    plan = split(kind, p).plan()
    caller = SubsystemCaller(plan)
    _, z = caller.start(0.0)
    history = History(z, depth=max(degree, 1))
    for j in range(degree):
        history.append_past(z * (1 - 0.1 * j), H)
    trial = Trial(caller, history, Window(0.0, H, H), degree, source, increment)
    trial.run(z)
    return trial.jacobian()


def responses(m, c, d, H, inputs):
    """d(x, v)/d(constant inputs) over one step of a mass: own matrix exponential."""
    block = np.zeros((2 + inputs.shape[1],) * 2)
    block[:2, :2] = [[0, 1], [-c / m, -d / m]]
    block[:2, 2:] = inputs / m
    return expm(block * H)[:2, 2:]


@pytest.mark.covers("SL-06")
@pytest.mark.parametrize("kind", ["F/F", "F/D", "D/F", "D/D"])
@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("increment", [1e-7, 1e-5, 1e-3, 1.0])
def test_differenced_equals_exact(kind, degree, increment):
    """States are affine in u, so a difference quotient is exact for *any* increment: 1e-6 relative."""
    exact = interface_jacobian(kind, 1e-3, degree=degree)
    found = interface_jacobian(kind, 1e-3, degree=degree, source="difference", increment=increment)
    assert np.abs(found - exact).max() < 1e-6 * np.abs(exact).max()
    off = np.abs(exact - np.eye(len(exact))) > 1e-12  # also relative to the small entries
    assert np.abs(found - exact)[off].max() < 1e-6 * np.abs(exact - np.eye(len(exact))).max()


@pytest.mark.covers("SL-06")
def test_matrices_by_hand():
    """G of 2.2 written out with our own exponentials, to 1e-9 (the law is differenced, its entries are ~1e3)."""
    p, H = lu(), 1e-3
    c, d = p.ck, p.dk
    x1, v1 = responses(p.m1, p.c1, p.d1, H, np.array([[0.0], [1.0]]))[:, 0]
    x2, v2 = responses(p.m2, p.c2, p.d2, H, np.array([[0.0], [-1.0]]))[:, 0]
    assert interface_jacobian("F/F", H)[0, 0] == pytest.approx(1 - c * (x2 - x1) - d * (v2 - v1), abs=1e-9)

    foreign = np.array([[0.0, 0.0], [c, d]])
    X2 = responses(p.m2, p.c2 + c, p.d2 + d, H, foreign)  # columns x1~, v1~
    law = np.array([c, d])
    F_D = np.array([[1 + c * x1 + d * v1, *(-law @ X2)], [-x1, 1, 0], [-v1, 0, 1]])
    assert np.abs(interface_jacobian("F/D", H) - F_D).max() < 1e-9 * np.abs(F_D).max()

    X1 = responses(p.m1, p.c1 + c, p.d1 + d, H, foreign)
    D_D = np.block([[np.eye(2), -X2], [-X1, np.eye(2)]])  # our order: x2~, v2~, x1~, v1~
    assert np.abs(interface_jacobian("D/D", H) - D_D).max() < 1e-12


@pytest.mark.covers("SL-19", "LU-12")
def test_force_force_tends_to_identity_linearly():
    """H -> 0: states do not react in no time, so G -> I; with coupling damping like H (values to all digits)."""
    found = [abs(interface_jacobian("F/F", H)[0, 0] - 1) for H in (1e-3, 5e-4, 2.5e-4)]
    assert found[:2] == pytest.approx([1.568e-2, 7.671e-3], rel=5e-4)
    assert found == pytest.approx([1.568e-2, 7.67e-3, 3.79e-3], rel=1e-3)
    assert found[0] / found[1] == pytest.approx(2.04, abs=5e-3)


@pytest.mark.covers("SL-19", "LU-12")
def test_force_force_without_damping_is_quadratic():
    """Pure stiffness: a force moves the position only in H^2."""
    p = replace(lu(), dk=0.0)
    found = [abs(interface_jacobian("F/F", H, p)[0, 0] - 1) for H in (1e-3, 5e-4)]
    assert found == pytest.approx([7.479e-4, 1.872e-4], rel=3e-4)
    assert found[0] / found[1] == pytest.approx(3.99, abs=5e-3)


@pytest.mark.covers("SL-19", "LU-12")
@pytest.mark.parametrize(("dk", "order"), [(10.0, 1), (0.0, 2)])
def test_force_displacement_tends_to_identity(dk, order):
    """F/D behaves as F/F: O(H) with coupling damping, O(H^2) without."""
    p = replace(lu(), dk=dk)
    size = [np.abs(interface_jacobian("F/D", H, p) - np.eye(3)).max() for H in (1e-3, 5e-4, 2.5e-4)]
    assert np.log2(size[1] / size[2]) == pytest.approx(order, abs=0.03)


@pytest.mark.covers("SL-19", "LU-12")
@pytest.mark.parametrize("dk", [10.0, 0.0])
def test_displacement_displacement_tends_to_identity_linearly(dk):
    """D/D: O(H) with and without damping, because dv/dx~ = c H / m."""
    p = replace(lu(), dk=dk)
    off = [interface_jacobian("D/D", H, p) - np.eye(4) for H in (1e-3, 5e-4, 2.5e-4)]
    largest = [np.abs(part).max() for part in off]
    assert largest[0] / largest[1] == pytest.approx(2.0, abs=0.02)
    if dk:  # the values given are Frobenius norms
        assert [np.linalg.norm(part) for part in off] == pytest.approx([1.108, 0.5565, 0.2789], rel=5e-4)


@pytest.mark.covers("LU-12")
def test_other_degrees_tend_to_identity_too():
    """The weights of the leading terms are 1, 1/2 and 5/12 for k = 0, 1, 2, so the limit holds alike."""
    H = 1e-5
    base = interface_jacobian("F/F", H, degree=0)[0, 0] - 1
    ratios = [(interface_jacobian("F/F", H, degree=k)[0, 0] - 1) / base for k in (1, 2)]
    assert ratios == pytest.approx([1 / 2, 5 / 12], rel=2e-3)
