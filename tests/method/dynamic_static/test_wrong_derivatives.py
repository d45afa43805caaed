"""`output_jacobian` of a static subsystem is believed by variant B: a wrong one is found by what it foretells."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import cosolve as cs


class Film(cs.Static):
    """A nonlinear force whose derivatives may be spoilt from some call on."""

    def __init__(self, spoil, since=0):
        super().__init__(lambda t, u: [-50 * u[0] ** 3 - 3 * u[1] - 200 * u[0]], inputs=["x", "v"], outputs=["f"])
        self.spoil, self.since, self.count = spoil, since, 0

    def output_jacobian(self, t, u):
        self.count += 1
        right = np.array([[-150 * u[0] ** 2 - 200, -3.0]])
        return self.spoil(right) if self.count > self.since else right


def run(film, rtol=1e-5):
    ode = cs.Ode(
        lambda t, x, u: [x[1], -40 * x[0] - 2 * x[1] + u[0]],
        lambda t, x, u: x,
        x0=[1.0, 0.0],
        inputs=["f"],
        outputs=["x", "v"],
    )
    system = cs.System({"body": ode, "film": film})
    for a, b in (("body.x", "film.x"), ("body.v", "film.v"), ("film.f", "body.f")):
        system.connect(a, b)
    return cs.simulate(system, t_end=2.0, method=cs.DynamicStatic("B", rtol=rtol))


@pytest.mark.parametrize("since", [0, 50])
@pytest.mark.parametrize(
    ("spoil", "entry"),
    [
        (lambda J: 2 * J, "d f / d x"),
        (lambda J: J / 2, "d f / d x"),
        (lambda J: 0 * J, "d f / d x"),
        (lambda J: -J, "d f / d x"),
        (lambda J: J[:, ::-1].copy(), "d f / d x"),
    ],
    ids=["twice", "half", "zero", "negative", "swapped"],
)
def test_wrong_derivatives_are_named(spoil, entry, since):
    with pytest.raises(
        cs.errors.SubsystemError, match=f"'film': output_jacobian gives .* for {entry} .*differences give -"
    ):
        run(Film(spoil, since))


def test_right_derivatives_are_left_alone():
    """No test is made, and the answer is that of the undivided system."""
    film = Film(lambda J: J)
    result = run(film)
    whole = lambda t, x: [x[1], -40 * x[0] - 2 * x[1] - 50 * x[0] ** 3 - 3 * x[1] - 200 * x[0]]  # noqa: E731
    exact = solve_ivp(whole, (0, 2), [1, 0], method="DOP853", rtol=1e-12, atol=1e-13, dense_output=True).sol
    assert np.abs(result["body.x"] - exact(result.t)[0]).max() < 3e-3
    assert result.stats.calls["film"] == film.count


def test_a_kink_is_no_wrong_derivative():
    """A force that jumps in its slope every period: derivatives are those of either side."""

    class Stop(cs.Static):
        def __init__(self):
            super().__init__(lambda t, u: [-200 * u[0] - 5000 * max(u[0] - 0.3, 0.0)], inputs=["x", "v"], outputs=["f"])

        def output_jacobian(self, t, u):
            return np.array([[-200.0 - (5000.0 if u[0] > 0.3 else 0.0), 0.0]])

    assert run(Stop(), 1e-4).finished
