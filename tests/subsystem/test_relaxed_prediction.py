"""Relaxed prediction with a factor: the recurrence, and the added mass that it tames."""

import numpy as np
import pytest

import cosolve as cs


def added_mass(ratio: float, beta: float, h: float = 0.01, steps: int = 400) -> np.ndarray:
    """A mass on a spring beside a fluid whose force is `-ratio` times its acceleration, staggered once per step."""

    def solid(t, H, x, u, new, y):  # x'' + x = f by the trapezoidal rule; x, v, a
        new[0] = (u[0] + 4 / H**2 * x[0] + 4 / H * x[1] + x[2]) / (4 / H**2 + 1)
        new[1] = 2 / H * (new[0] - x[0]) - x[1]
        new[2] = 2 / H * (new[1] - x[1]) - x[2]
        y[0] = new[0]
        y[1] = new[2]

    body = cs.OneStep(
        solid, x0=[1.0, 0.0, -1.0 / (1 + ratio)], y0=[1.0, -1.0 / (1 + ratio)], inputs=["f"], outputs=["x", "a"]
    )
    fluid = cs.Static(lambda t, a: -ratio * a, inputs=["a"], outputs=["f"])
    system = cs.System({"fluid": fluid, "weak": cs.relaxed_prediction(beta), "body": body})
    system.connect("body.a", "fluid.a")
    system.connect("fluid.f", "weak.u")
    system.connect("weak.y", "body.f")
    method = cs.GaussSeidel(degree=0, order=["fluid", "weak", "body"])
    return cs.simulate(system, t_end=h * steps, method=method, step=h)["body.x"]


def test_a_blend_keeps_an_added_mass_stable():
    """With 1.5 times its mass in the fluid the plain staggered scheme blows up, and with a fifth of the force not."""
    with pytest.warns(cs.errors.StabilityWarning):
        plain = added_mass(1.5, 1.0)
    assert not np.abs(plain).max() < 10.0
    tamed = added_mass(1.5, 0.2)
    t = 0.01 * np.arange(len(tamed))
    assert np.abs(tamed - np.cos(t / np.sqrt(2.5))).max() < 0.02


def test_whole_values_pass_unchanged():
    """beta = 1 hands on what comes."""
    source = cs.Static(lambda t, u: [t, t**2], inputs=[], outputs=[("y", 2)])
    system = cs.System({"source": source, "weak": cs.relaxed_prediction(1.0, 2)})
    system.connect("source.y", "weak.u")
    result = cs.simulate(system, t_end=1.0, method=cs.GaussSeidel(order=["source", "weak"]), step=0.25)
    assert np.array_equal(result["weak.y"], result["source.y"])


def test_steps_of_other_lengths():
    """A straight line is what was expected, whatever the steps are."""
    weak = cs.relaxed_prediction(0.3)
    weak.start(0.0)
    weak.begin(0.0, np.array([1.0]))
    t = 0.0
    values = []
    for H in (0.1, 0.1, 0.4, 0.05, 0.2):
        values.append(float(weak.advance(t, t + H, cs.Polynomial(t, H, np.array([[1.0]])))[0]))
        t += H
    assert values == pytest.approx([1.0] * 5, abs=1e-15)


@pytest.mark.parametrize("beta", [0.0, -0.5, 1.5, float("nan"), "half"])
def test_other_factors_are_refused(beta):
    with pytest.raises(cs.errors.SetupError, match="beta must be a number above 0 and at most 1"):
        cs.relaxed_prediction(beta)
