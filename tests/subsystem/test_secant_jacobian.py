"""Secants for the Jacobian of one subsystem: they learn, they reset, they know their pattern."""

from __future__ import annotations

import numpy as np
import pytest

import cosolve as cs
from cosolve.signal import Polynomial

A = np.array([[2.0, -1.0, 0.0], [0.0, 3.0, 0.5]])


def flow(noise: float = 0.0) -> cs.OneStep:
    def step(t, H, x, u, new, y):
        new[0] = t + H
        y[:] = A @ u + 0.01 * np.sin(u[:2])

    return cs.OneStep(step, x0=[0.0], y0=np.zeros(2), inputs=[("u", 3)], outputs=[("y", 2)], noise=noise)


def advanced(wrapped: cs.SecantJacobian, u: np.ndarray, t: float = 0.0) -> np.ndarray:
    state = wrapped.save()
    y = wrapped.advance(t, t + 1.0, Polynomial(t, 1.0, np.array([u])))
    wrapped.restore(state)
    return y


def slopes(wrapped: cs.SecantJacobian, u: np.ndarray) -> np.ndarray:
    return wrapped.jacobian(0.0, 1.0, Polynomial(0.0, 1.0, np.array([u])), np.ones(1))


def test_first_slopes_are_differences() -> None:
    wrapped = cs.SecantJacobian(flow())
    wrapped.start(0.0)
    u = np.array([0.3, -0.2, 1.0])
    exact = A + 0.01 * np.hstack([np.diag(np.cos(u[:2])), np.zeros((2, 1))])
    assert slopes(wrapped, u) == pytest.approx(exact, abs=1e-7)


def test_two_subsystem_steps_over_a_macro_step_give_the_secant_along_their_difference() -> None:
    wrapped = cs.SecantJacobian(flow(), initial=np.zeros((2, 3)))
    wrapped.start(0.0)
    one, two = np.array([0.0, 0.0, 0.0]), np.array([0.5, 0.1, -0.3])
    change = advanced(wrapped, two) - advanced(wrapped, one)
    assert slopes(wrapped, one) @ (two - one) == pytest.approx(change, rel=1e-13)


def test_a_pattern_keeps_slopes_where_they_belong() -> None:
    wrapped = cs.SecantJacobian(flow(), pattern=A != 0, initial=np.zeros((2, 3)))
    wrapped.start(0.0)
    one, two = np.zeros(3), np.array([0.5, 0.1, -0.3])
    change = advanced(wrapped, two) - advanced(wrapped, one)
    found = slopes(wrapped, one)
    assert found @ (two - one) == pytest.approx(change, rel=1e-13)
    assert (found[A == 0] == 0).all()


def test_nothing_is_learnt_across_steps_and_everything_is_forgotten_in_a_new_run() -> None:
    wrapped = cs.SecantJacobian(flow(), initial=np.zeros((2, 3)))
    wrapped.start(0.0)
    advanced(wrapped, np.zeros(3), t=0.0)
    advanced(wrapped, np.ones(3), t=1.0)  # another step: another state stands behind these outputs
    assert not slopes(wrapped, np.ones(3)).any()
    advanced(wrapped, np.zeros(3), t=1.0)
    assert slopes(wrapped, np.ones(3)).any()
    wrapped.start(0.0)
    assert not slopes(wrapped, np.ones(3)).any()


def test_a_coupled_run_ends_where_exact_jacobians_end() -> None:
    def spring(t, H, x, u, new, y):
        new[0] = y[0] = x[0] + H * (-u[0] - x[0])
        y[1], y[2] = 0.5 * y[0], 1.0

    def system(wrap: bool) -> cs.System:
        body = cs.OneStep(spring, x0=[1.0], y0=[1.0, 0.5, 1.0], inputs=[("f", 2)], outputs=[("x", 3)])
        made = cs.System({"flow": cs.SecantJacobian(flow()) if wrap else flow(), "body": body})
        made.connect("body.x", "flow.u")
        made.connect("flow.y", "body.f")
        return made

    how = cs.Implicit(degree=1, tol=1e-13, corrector=cs.Newton())
    one, two = (cs.simulate(system(wrap), t_end=1.0, method=how, step=0.05) for wrap in (True, False))
    assert one["body.x"] == pytest.approx(two["body.x"], abs=1e-12)
    assert one.stats.calls["flow"] <= 4 * 20  # a fixed point of factor 0.1 would take 13 subsystem steps a step


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((3.0,), "give a cosolve.Subsystem"),
        ((flow(), np.ones((2, 2))), "2 rows"),
        ((flow(), None, [[1, 2, 3], [4, 5, np.inf]]), "finite numbers"),
    ],
)
def test_nonsense_is_refused(arguments, sentence: str) -> None:
    with pytest.raises(cs.errors.SetupError, match=sentence):
        cs.SecantJacobian(*arguments)


def test_a_saved_run_goes_on_with_what_was_learnt_to_the_bit(tmp_path) -> None:
    """Steps that are repeated to test rollback, in the first step of the second run, teach nothing."""

    def tank(t, H, x, u, new, y):
        new[0] = y[0] = x[0] + H * (u[0] - np.sqrt(x[0]))

    def valve(t, H, x, u, new, y):
        new[0] = y[0] = 0.9 * u[0] ** 2

    def system() -> cs.System:
        one = cs.OneStep(tank, x0=[1.0], y0=[1.0], inputs=["inflow"], outputs=["level"])
        two = cs.OneStep(valve, x0=[0.0], y0=[1.0], inputs=["level"], outputs=["flow"])
        made = cs.System({"tank": one, "valve": cs.SecantJacobian(two)})
        made.connect("tank.level", "valve.level")
        made.connect("valve.flow", "tank.inflow")
        return made

    how = {"method": cs.Implicit(degree=1, tol=1e-10), "step": 0.1}
    whole = cs.simulate(system(), t_end=2.0, **how)
    cs.simulate(system(), t_end=1.0, save_state=tmp_path / "half.state", **how)
    rest = cs.simulate(system(), t_end=2.0, resume=tmp_path / "half.state", **how)
    assert np.array_equal(whole["tank.level"][-10:], rest["tank.level"][-10:])
