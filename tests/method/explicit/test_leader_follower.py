"""Gauss-Seidel that follows the internal steps of a master (Schmoll (2015), 2.4.2.2)."""

import numpy as np
import pytest
from examples.two_mass.study import engine, global_error, known_past, with_micro_steps

import cosolve as cs


@pytest.mark.sample(1)
@pytest.mark.covers("SC-11")
@pytest.mark.parametrize("p", range(4))
def test_it_is_gauss_seidel_with_the_master_step(p: int) -> None:
    """One master step per macro step is Gauss-Seidel with H = h: bit for bit where times are exact (powers of two)."""
    h = 2.0**-17
    follow = engine(cs.LeaderFollower(p, leader="one"), h, 2048 * h, system=with_micro_steps("ode5", h))
    fixed = engine(cs.GaussSeidel(p), h, 2048 * h, system=with_micro_steps("ode5", h), startup=cs.RisingDegree())
    assert np.array_equal(follow.t, fixed.t)
    assert np.array_equal(follow.states, fixed.states)
    assert np.array_equal(follow.y, fixed.y)


@pytest.mark.sample(2)
@pytest.mark.covers("SC-11")
@pytest.mark.parametrize("p", range(4))
def test_it_needs_no_step(p: int) -> None:
    """Without a macro step the master alone decides; the same values up to rounding."""
    h = 1e-5
    follow = engine(cs.LeaderFollower(p, leader="one"), None, 0.01, system=with_micro_steps("ode5", h))
    fixed = engine(cs.GaussSeidel(p), h, 0.01, system=with_micro_steps("ode5", h), startup=cs.RisingDegree())
    np.testing.assert_allclose(follow.t, fixed.t, rtol=0, atol=1e-15)
    assert np.all(np.abs(follow.y - fixed.y) <= 1e-12 * np.abs(fixed.y).max(axis=0))


@pytest.mark.sample(1)
@pytest.mark.covers("SC-11")
@pytest.mark.parametrize("p", [1, 2, 3])
def test_order(p: int) -> None:
    """The macro step is the master's step, so refining the master refines the coupling: order p + 1."""
    steps = (2e-5, 1e-5)
    errors = [
        global_error(
            engine(
                cs.LeaderFollower(p, leader="one"), h, 0.05, system=with_micro_steps("ode5", h), startup=known_past()
            )
        )
        for h in steps
    ]
    assert cs.analysis.convergence_order(steps, errors) == pytest.approx(p + 1, abs=0.1)


@pytest.mark.covers("SC-11")
def test_it_follows_variable_steps() -> None:
    """An adaptive master: macro steps are its accepted steps, of many sizes, and the last ends at `t_end`."""
    system = with_micro_steps("ode5", 1e-5)
    variable = cs.Ode(
        system.subsystems["one"].rhs,
        lambda t, x, u: x,
        x0=[1.0, 0.0],
        inputs=["f"],
        outputs=["x", "v"],
        integrator="dopri5",
        rtol=1e-10,
        atol=1e-10,
    )
    system = cs.System({"one": variable, "two": system.subsystems["two"]})
    system.connect("one.x", "two.x1")
    system.connect("one.v", "two.v1")
    system.connect("two.F", "one.f")
    path = engine(cs.LeaderFollower(2, leader="one"), 1e-4, 0.02, system=system)
    assert len(set(np.round(path.H, 9))) > 10
    assert path.t[-1] == 0.02
    assert global_error(path) < 1e-2


@pytest.mark.covers("SC-11")
def test_a_master_without_own_steps_is_refused() -> None:
    """Exact propagation has no internal steps to follow; the message says what would do."""
    with pytest.raises(cs.errors.CapabilityError, match="internal steps"):
        engine(cs.LeaderFollower(1, leader="one"), None, 0.1)


@pytest.mark.slow
@pytest.mark.covers("SC-11")
@pytest.mark.parametrize(
    ("p", "startup", "printed", "tolerance"),
    [
        (1, known_past(), 1.4e-5, 0.1),
        (2, known_past(), 1.9e-8, 0.1),
        (1, None, 1.4e-5, 0.1),
        (2, None, 3.7e-8, 0.1),
        (3, None, 3.3e-8, 0.1),
    ],
    ids=["analytic 1", "analytic 2", "trivial 1", "trivial 2", "trivial 3"],
)
def test_errors_of_the_reference_code(p: int, startup, printed: float, tolerance: float) -> None:
    """The reference code: T = 0.2 s, h = 1e-6, two hundred thousand macro steps; within 10 %."""
    path = engine(cs.LeaderFollower(p, leader="one"), 1e-6, 0.2, system=with_micro_steps("ode5", 1e-6), startup=startup)
    assert global_error(path) == pytest.approx(printed, rel=tolerance)
