"""The controller against its formulas: two loops of unlike gains, steps of unlike lengths, switched on late."""

import numpy as np
import pytest

import cosolve as cs
from cosolve.signal import Polynomial

GAINS = np.array([[2.0, -1.0], [0.5, 3.0], [0.1, -0.04]])
SETPOINT, FIRST = np.array([1.0, -2.0]), np.array([0.3, 0.4])
STEPS, MEASURED = [0.1, 0.25, 0.05], np.array([[0.5, 0.1], [0.9, -0.7], [1.3, -1.9]])


def pid(**options):
    ports = {"inputs": [cs.Port("u", 2)], "outputs": [cs.Port("psi", 2)]}
    return cs.Pid(*GAINS, **ports, setpoint=SETPOINT, u0=FIRST, **options)


def line(t, H, before, after):
    return Polynomial(t, H, np.array([before, np.subtract(after, before)]))


def advanced(control, t=0.0, start=True):
    """The outputs after each step."""
    if start:
        control.start(t)
    found, before = [], FIRST
    for H, u in zip(STEPS, MEASURED, strict=True):
        found.append(control.advance(t, t + H, line(t, H, before, u)))
        t, before = t + H, u
    return np.array(found)


def by_hand(on_at):
    t, integral, old, rows = 0.0, np.zeros(2), SETPOINT - FIRST, []
    for H, u in zip(STEPS, MEASURED, strict=True):
        error = SETPOINT - u
        if t >= on_at:
            integral = integral + H / 2 * (error + old)
            rows.append(GAINS[0] * error + GAINS[1] * integral + GAINS[2] * (error - old) / H)
        else:
            rows.append(np.zeros(2))
        t, old = t + H, error
    return np.array(rows)


@pytest.mark.parametrize("on_at", [None, 0.0, 0.1, 0.1 + 1e-3, 0.35, 9.0])
def test_outputs_are_those_of_the_formula(on_at):
    """Switched on at a macro point, the step that begins there counts; within a step, the next one."""
    found = advanced(pid(on_at=on_at))
    np.testing.assert_allclose(found, by_hand(0.0 if on_at is None else on_at), rtol=1e-14)
    assert np.count_nonzero(found.any(axis=1)) == {None: 3, 0.0: 3, 0.1: 2, 0.101: 1, 0.35: 1, 9.0: 0}[on_at]


@pytest.mark.parametrize("on_at", [None, 0.2])
def test_the_jacobian_is_what_differences_give(on_at):
    """By the weights of any signal; nothing where it is off."""
    control, weight, H = pid(on_at=on_at), np.array([0.2, 0.5]), 0.1
    control.start(0.0)
    for k, t in enumerate((0.0, H, 2 * H, 3 * H)):
        here = control.save()
        u = line(t, H, [0.1, 0.2], [0.4, -0.5])
        slope = control.jacobian(t, t + H, u, weight)
        base = control.advance(t, t + H, u)
        differences = np.empty((2, 2))
        for j in range(2):
            control.restore(here)
            moved = np.array(u.coefficients)
            moved[:, j] += weight
            differences[:, j] = control.advance(t, t + H, Polynomial(t, H, moved)) - base  # affine in what it measures
        np.testing.assert_allclose(slope, differences, rtol=1e-12, atol=1e-13)
        assert slope.any() == (on_at is None or k >= 2)


def test_what_it_gives_now_follows_what_it_measures_now():
    """Feed-through of each input to its own output, by the gain and what the last step adds."""
    control = pid()
    last = advanced(control)[-1]
    np.testing.assert_allclose(control.output(0.4, MEASURED[-1]), last, rtol=1e-15)
    moved = control.output(0.4, MEASURED[-1] + [0.0, 0.1]) - last
    assert (moved != 0.0).tolist() == [False, True]
    assert control.feedthrough().tolist() == [[True, False], [False, True]]
    assert moved[1] == pytest.approx(-0.1 * (GAINS[0] + 0.5 * STEPS[-1] * GAINS[1] + GAINS[2] / STEPS[-1])[1])


def test_a_state_goes_back_and_to_another_one():
    one, other = pid(), pid()
    advanced(one)
    kept, state = one.save(), one.get_state()
    assert state.shape == (4,)
    first = advanced(one, 0.4, start=False)
    one.restore(kept)
    assert advanced(one, 0.4, start=False).tobytes() == first.tobytes()
    other.start(0.0)
    other.set_state(state)
    assert other.get_state().tolist() == state.tolist()
    np.testing.assert_allclose(advanced(other, 0.4, start=False), first, rtol=1e-14)
    other.set_state(np.add(state, [0.0, 0.0, 1.0, 0.0]))  # the integral of the first loop
    moved = advanced(other, 0.4, start=False) - first
    np.testing.assert_allclose(moved, np.tile([GAINS[1, 0], 0.0], (3, 1)), atol=1e-13)
