"""Feed-through all the way round is found before the run, with its ports (Schmoll (2015), 2.3 and 3.3.2)."""

import numpy as np
import pytest
from examples.two_mass.model import force_displacement, split

import cosolve as cs


def mass_with_acceleration(m: float = 1.0) -> cs.Linear:
    """A mass that gives out its acceleration, which reacts at once to the force."""
    return cs.Linear(
        [[0, 1], [-100.0 / m, -1.0 / m]],
        [[0], [1 / m]],
        [[1, 0], [0, 1], [-100.0 / m, -1.0 / m]],
        [[0], [0], [1 / m]],
        x0=[1.0, 0.0],
        inputs=["f"],
        outputs=["x", "v", "a"],
    )


def bar_with_end_mass(mass: float) -> cs.Ode:
    """A driven bar whose reaction force contains the mass of the driven node (Eq. 3.22): acceleration as an input."""
    return cs.Ode(
        lambda t, x, u: np.array([x[1], -300.0 * x[0] - x[1] + 200.0 * u[0] + u[1]]),
        lambda t, x, u: 200.0 * (x[0] - u[0]) + (x[1] - u[1]) - mass * u[2],
        x0=[0.5, 0.0],
        inputs=["x", "v", "a"],
        outputs=["f"],
        integrator="ode4",
        internal_step=1e-3,
    )


def acceleration_coupled(mass: float) -> cs.System:
    system = cs.System({"mass": mass_with_acceleration(), "bar": bar_with_end_mass(mass)})
    for port in ("x", "v", "a"):
        system.connect(f"mass.{port}", f"bar.{port}")
    system.connect("bar.f", "mass.f")
    return system


@pytest.mark.covers("SC-23")
@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.GaussSeidel(1)], ids=["J", "GS"])
def test_an_acceleration_input_is_flagged(method: cs.Method) -> None:
    """The driven node's mass in the reaction force makes the acceleration an input: a loop through both subsystems."""
    advice = cs.check(acceleration_coupled(0.5), method)
    found = [finding for finding in advice.findings if finding.code == "algebraic-loop"]
    assert len(found) == 1
    assert found[0].level == "warning"
    for word in ("mass.f", "mass.a", "bar.a", "bar.f", "acceleration"):
        assert word in found[0].text
    assert found[0].text in str(advice)


@pytest.mark.covers("SC-23")
def test_only_the_ports_on_the_loop_are_named() -> None:
    """Displacement and velocity feed through in the bar only, so they are on no loop."""
    (loop,) = cs.analysis.coupling_structure(acceleration_coupled(0.5)).loops
    assert set(loop) == {"mass.f", "mass.a", "bar.a", "bar.f"}


@pytest.mark.covers("SC-23")
def test_without_the_acceleration_there_is_no_loop() -> None:
    """The remedy of Schmoll (2015), 3.3.2.2: the driven node's mass moves from the reaction force to the other side."""
    system = cs.System({"mass": mass_with_acceleration(), "bar": bar_with_end_mass(0.0)})
    system.connect("mass.x", "bar.x")
    system.connect("mass.v", "bar.v")
    system.set("bar.a", 0.0)
    system.connect("bar.f", "mass.f")
    assert cs.analysis.coupling_structure(system).loops == ()
    assert "algebraic-loop" not in cs.check(system, cs.Jacobi(1), step=1e-3).codes()


@pytest.mark.covers("SC-23")
@pytest.mark.parametrize("build", [force_displacement, lambda: split("F/F"), lambda: split("D/D")])
def test_the_splits_of_the_two_masses_have_no_loop(build) -> None:
    """Schmoll (2015), 2.3: feed-through in one subsystem only, or in none."""
    assert cs.analysis.coupling_structure(build()).loops == ()


@pytest.mark.covers("SC-23")
def test_double_feed_through_is_reported() -> None:
    """Two subsystems that both answer at once, as in constraint coupling."""
    gain = [cs.Static(lambda t, u, k=k: k * u[0] + 1, inputs=["u"], outputs=["y"]) for k in (0.5, -2.0)]
    system = cs.System({"one": gain[0], "two": gain[1]})
    system.connect("one.y", "two.u")
    system.connect("two.y", "one.u")
    assert "algebraic-loop" in cs.check(system, cs.Jacobi(0)).codes()
    levels = {f.code: f.level for f in cs.check(system, cs.SemiImplicit(0)).findings}
    assert levels["algebraic-loop"] == "note"  # solved there, so no warning


@pytest.mark.covers("SC-23")
def test_the_warning_is_deserved() -> None:
    """A loop gain above 1 (node mass above the free mass) is unstable for Jacobi however small the step."""
    for H in (1e-3, 1e-4, 1e-5):
        assert cs.analysis.spectral_radius(acceleration_coupled(1.5), cs.Jacobi(0), H) > 1.1
        assert cs.analysis.spectral_radius(acceleration_coupled(1.5), cs.SemiImplicit(1), H) < 1
