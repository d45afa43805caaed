"""Consistent values at the start when outputs with feed-through and laws form a loop."""

import pytest

import cosolve as cs


def test_a_law_of_two_outputs_inside_an_algebraic_loop() -> None:
    """f = 30 (b - a) with b = x + f / 1000: f = 30 (x - a) / (1 - 0.03), though b is not known before f."""
    mass = cs.Linear([[0, 1], [-40, -1]], [[0], [1]], [[1, 0]], x0=[0.3, 0], inputs=["f"], outputs=["x"])
    gauge = cs.Ode(lambda t, x, u: -x, lambda t, x, u: x[0] + 1e-3 * u[0], x0=[0.2], inputs=["f"], outputs=["x"])
    system = cs.System({"one": mass, "two": gauge})
    system.law(["one.f", "two.f"], lambda a, b: (30.0 * (b - a), 30.0 * (b - a)), of=["one.x", "two.x"])
    with pytest.warns(cs.errors.StabilityWarning, match="algebraic loop"):
        result = cs.simulate(system, method=cs.Jacobi(0), step=1e-3, t_end=1e-3)
    assert result["two.f"][0] == pytest.approx(30 * (0.2 - 0.3) / 0.97, rel=1e-9)
    assert result["two.x"][0] == pytest.approx(0.2 + 1e-3 * result["two.f"][0], rel=1e-12)


def test_a_loop_through_a_law_is_solved_at_the_start() -> None:
    """`y = u / 2 + 1` and `u = y / 2 + 1`: both are 2, at the start and after a change of the inputs that are held."""
    system = cs.System({"a": cs.Static(lambda t, u: 0.5 * u[0] + u[1], inputs=["u", "v"], outputs=["y"])})
    system.law("a.u", lambda y: 0.5 * y + 1.0, of="a.y")
    system.set("a.v", 1.0)
    with cs.Stepper(system, method=cs.Implicit(degree=0), step=0.1) as stepper:
        assert (stepper["a.y"], stepper["a.u"]) == (pytest.approx(2.0), pytest.approx(2.0))
        stepper.set("a.v", 4.0)
        assert (stepper["a.y"], stepper["a.u"]) == (pytest.approx(6.0), pytest.approx(4.0))
