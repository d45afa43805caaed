"""The cylinder in a computed flow: finite elements against the lattice, coupled steps, lock-in and control.

Quick tests take coarse flows and a few steps. The slow ones are the figures of the source (Sicklinger (2014), 5.2) and
of a cylinder that is held; docs/fields.md has those of larger runs.
"""

import sys
from pathlib import Path

import numpy as np
import pytest
from examples.cylinder_control.model import Cylinder, frequency
from examples.cylinder_flow import ngsolve_cylinder, run
from examples.cylinder_flow.cross_flow import CrossFlow
from examples.cylinder_flow.lattice_boltzmann import LatticeBoltzmannCylinder
from examples.cylinder_flow.model import Discretisation, controlled, coupled, fixed, flow, method, spectrum
from examples.cylinder_flow.ngsolve_cylinder import FiniteElementCylinder
from scipy.special import kv

import cosolve as cs
from cosolve.signal import Polynomial

WATER = CrossFlow(velocity=0.0625, diameter=1.6e-3, viscosity=1e-6, span=0.12)
STEP = 4e-4


def elements(step: float = STEP, **options: float) -> FiniteElementCylinder:
    """1300 unknowns."""
    shape = {"refinement": 0.3, "upstream": 4.0, "downstream": 8.0, "side": 4.0}
    return FiniteElementCylinder(WATER, step, **shape | options)


@pytest.fixture(scope="module")
def started() -> FiniteElementCylinder:
    fluid = elements()
    fluid.start(0.0)
    return fluid


def ramp(t0: float, v0: float, v1: float, H: float = STEP) -> Polynomial:
    return Polynomial(t0, H, np.array([[v0], [v1 - v0]]))


# -- finite elements ---------------------------------------------------------------------------------------


@pytest.mark.covers("FS-11")
def test_acceleration_meets_added_mass_and_friction() -> None:
    """Stokes' cylinder: in one step the fluid answers with `m (1 + 4 K1(z) / (z K0(z)))` times the acceleration.

    `m` is the mass of the fluid displaced and `z = R sqrt(s / nu)`, where `s = 3 / (2 h)` is the growth rate that BDF2
    has in the step. At Re = 1 the layer at the wall (a fifth of the radius) is resolved, and the flow hardly counts.
    """
    oil = CrossFlow(velocity=0.0625, diameter=1.6e-3, viscosity=1e-4, span=0.12)
    fluid = FiniteElementCylinder(oil, STEP, refinement=0.5, upstream=8.0, downstream=8.0, side=8.0)
    fluid.start(0.0)
    by_v = fluid.jacobian(0.0, STEP, ramp(0.0, 0.0, 1e-4), np.array([0.0, 1.0]))[0, 0]
    mass, rate = np.pi / 4.0 * oil.density * oil.diameter**2 * oil.span, 1.5 / STEP
    z = 0.5 * oil.diameter * np.sqrt(rate / oil.viscosity)
    assert by_v == pytest.approx(-mass * rate * (1.0 + 4.0 * kv(1, z) / (z * kv(0, z))), rel=0.02)


@pytest.mark.covers("FS-08")
def test_jacobian_is_what_differences_give(started: FiniteElementCylinder) -> None:
    """A step is affine in the velocity at its end, so a difference of any size has the slope, up to rounding."""
    started.start(0.0)
    started.advance(0.0, STEP, ramp(0.0, 0.0, 0.002))
    here = started.save()
    slope = started.jacobian(STEP, 2 * STEP, ramp(STEP, 0.002, 0.003), np.array([0.0, 1.0]))
    found = []
    for v in (0.003, 0.013):
        started.restore(here)
        found.append(started.advance(STEP, 2 * STEP, ramp(STEP, 0.002, v)))
    assert (found[1] - found[0]) / 0.01 == pytest.approx(slope[:, 0], rel=1e-9, abs=1e-9 * abs(slope[0, 0]))


@pytest.mark.covers("FS-08")
def test_jacobian_over_several_steps(started: FiniteElementCylinder) -> None:
    """With convection of the first step in the second it is no longer affine, but nearly: a central difference."""
    H = 2 * STEP
    started.start(0.0)
    here = started.save()
    slope = started.jacobian(0.0, H, ramp(0.0, 0.0, 0.003, H), np.array([0.0, 1.0]))
    found = []
    for v in (0.0031, 0.0029):
        started.restore(here)
        found.append(started.advance(0.0, H, ramp(0.0, 0.0, v, H)))
    assert (found[0] - found[1])[0] / 2e-4 == pytest.approx(slope[0, 0], rel=1e-6)


@pytest.mark.covers("FS-08")
def test_finite_elements_roll_back_to_the_same_bits(started: FiniteElementCylinder) -> None:
    started.start(0.0)
    started.advance(0.0, STEP, ramp(0.0, 0.0, 0.002))
    here = started.save()
    first = started.advance(STEP, 2 * STEP, ramp(STEP, 0.002, 0.003))
    second = started.advance(2 * STEP, 3 * STEP, ramp(2 * STEP, 0.003, 0.001))
    started.restore(here)
    started.advance(STEP, 2 * STEP, ramp(STEP, 0.002, -0.01))
    started.restore(here)
    assert started.advance(STEP, 2 * STEP, ramp(STEP, 0.002, 0.003)).tobytes() == first.tobytes()
    assert started.advance(2 * STEP, 3 * STEP, ramp(2 * STEP, 0.003, 0.001)).tobytes() == second.tobytes()
    other = elements()  # as in another process: a state is all that it knows
    other.start(0.0)
    other.set_portable_state(here)
    assert other.advance(STEP, 2 * STEP, ramp(STEP, 0.002, 0.003)).tobytes() == first.tobytes()


@pytest.mark.covers("FS-11")
def test_snapshot_of_finite_elements(started: FiniteElementCylinder) -> None:
    """The wall moves with the cylinder, the flow comes in undisturbed, and vorticity sits on both sides of the wall."""
    started.start(0.0)
    started.advance(0.0, STEP, ramp(0.0, 0.0, 0.002))
    shot = started.snapshot()
    x, y = shot.points.T / WATER.diameter
    y = y - started.displacement / WATER.diameter
    wall, inlet = np.isclose(np.hypot(x, y), 0.5), np.isclose(x, -4.0)
    assert wall.sum() > 8
    assert shot.point_data["velocity"][wall] == pytest.approx(np.tile([0.0, 0.002], (wall.sum(), 1)))
    assert shot.point_data["velocity"][inlet] == pytest.approx(np.tile([0.0625, 0.0], (inlet.sum(), 1)))
    turning = shot.point_data["vorticity"]
    assert turning[wall & (y > 0.4)].max() < 0.0 < turning[wall & (y < -0.4)].min()


@pytest.mark.covers("FS-20")
def test_finite_elements_say_what_is_wrong(monkeypatch: pytest.MonkeyPatch, started: FiniteElementCylinder) -> None:
    with pytest.raises(cs.errors.SetupError, match="upstream must be at least 3 diameters"):
        elements(upstream=1.0)
    with pytest.raises(cs.errors.SetupError, match="refinement must be a positive number"):
        elements(refinement=0.0)
    started.start(0.0)
    with pytest.raises(cs.errors.SetupError, match=r"no whole number of steps of 0.0004 s"):
        started.advance(0.0, 6e-4, ramp(0.0, 0.0, 0.0, 6e-4))
    started._now[100] = np.nan
    with pytest.raises(cs.errors.SubsystemError, match=r"no finite force.*unstable; take a smaller step than 0.0004 s"):
        started.advance(0.0, STEP, ramp(0.0, 0.0, 0.0))
    monkeypatch.setitem(sys.modules, "ngsolve", None)
    with pytest.raises(cs.errors.SetupError, match=r"needs ngsolve, .*: pip install 'cosolve"):
        ngsolve_cylinder.ngsolve()


@pytest.mark.covers("FS-11")
def test_flow_refuses_what_cannot_be() -> None:
    with pytest.raises(cs.errors.SetupError, match="viscosity must be a positive number"):
        CrossFlow(velocity=1.0, diameter=1.0, viscosity=0.0)


# -- coupled -----------------------------------------------------------------------------------------------


def tiny(solver: str) -> Discretisation:
    """The example with a fluid of the size of these tests."""

    class Tiny(Discretisation):
        def fluid(self, water: CrossFlow) -> cs.fields.FieldSubsystem:
            if solver == "elements":
                shape = {"refinement": 0.3, "upstream": 4.0, "downstream": 8.0, "side": 4.0}
                return FiniteElementCylinder(water, self.h, **shape)
            return LatticeBoltzmannCylinder(water, self.h / 5, cells=8, upstream=4, downstream=6, width=6)

    return Tiny(solver)


@pytest.mark.covers("FS-08", "FS-12")
@pytest.mark.parametrize("solver", ["lattice", "elements"])
def test_coupled_steps_on_a_spring(solver: str, tmp_path: Path) -> None:
    """Few evaluations per step, and a run that goes on from a file has the bits of one that was not interrupted."""
    how = tiny(solver)
    p = controlled(Cylinder(), how.h, 3 * how.h)
    whole = cs.simulate(coupled(how, p, 0.3 * p.diameter), t_end=6 * how.h, method=method(), step=how.h)
    assert whole.iterations.max() + 1 <= 4
    assert np.ptp(whole["signal.psi"]) > 0.0  # control has set in
    with cs.Stepper(coupled(how, p, 0.3 * p.diameter), method=method(), step=how.h, t_end=6 * how.h) as stepper:
        stepper.run_until(3 * how.h)
        stepper.save_file(tmp_path / "state")
    with cs.Stepper(coupled(how, p, 0.3 * p.diameter), method=method(), step=how.h, t_end=6 * how.h) as stepper:
        stepper.restore_file(tmp_path / "state")
        stepper.run_until(6 * how.h)
        for name in ("structure.u", "fluid.lift", "fluid.drag"):
            assert stepper[name] == whole[name][-1]


def test_spectrum_has_the_amplitude_where_the_frequency_is() -> None:
    t = np.arange(0.0, 10.0, 1e-3)
    f, a = spectrum(t, 0.3 * np.sin(2.0 * np.pi * 6.99 * t) + 5.0)
    assert f[a.argmax()] == pytest.approx(6.99, abs=0.02)
    assert a.max() == pytest.approx(0.3, rel=0.01)


# -- the figures -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.covers("FS-11")
@pytest.mark.parametrize("solver", ["lattice", "elements"])
def test_cylinder_that_is_held_at_re_100(solver: str) -> None:
    """At 4 to 5 % blockage; minutes of processor time."""
    how, water = Discretisation(solver), flow(Cylinder(), 100.0)
    t_end = round(150.0 * water.unit_time / how.h) * how.h
    result = cs.simulate(fixed(how, Cylinder()), t_end=t_end, method=cs.Jacobi(degree=1), step=how.h)
    found = run.shedding(result, water, 0.7 * t_end)
    assert 0.164 <= found["St"] <= 0.170
    assert 1.33 <= found["C_D"] <= 1.43
    assert 0.32 <= found["C_L"] <= 0.37


@pytest.mark.slow
@pytest.mark.covers("FS-11")
def test_far_sides_give_the_frequency_of_an_unbounded_flow() -> None:
    """1.3 % blockage; minutes of processor time."""
    how, water = Discretisation("elements", wide=True), flow(Cylinder(), 100.0)
    t_end = round(150.0 * water.unit_time / how.h) * how.h
    result = cs.simulate(fixed(how, Cylinder()), t_end=t_end, method=cs.Jacobi(degree=1), step=how.h)
    assert run.shedding(result, water, 0.7 * t_end)["St"] == pytest.approx(0.164, rel=0.02)


@pytest.mark.slow
def test_forced_motion(tmp_path: Path) -> None:
    """Table 5.3 of Sicklinger (2014): 0.71 by Placzek et al., 0.70 his; minutes of processor time."""
    assert run.led(Discretisation("lattice"), Cylinder(), tmp_path, 150.0) == pytest.approx(0.71, rel=0.03)


@pytest.mark.slow
@pytest.mark.covers("FS-12", "FS-13")
def test_lock_in_and_control_on_the_lattice() -> None:
    """The water lowers the frequency; evaluations per step, and how much less it swings with control."""
    how, t_free, t_held = Discretisation("lattice"), 8.0, 3.0
    p = controlled(Cylinder(), how.h, t_free)
    result = cs.simulate(coupled(how, p, 0.36 * p.diameter), t_end=t_free + t_held, method=method(), step=how.h)
    t, u = result.t, result["structure.u"]
    free = (t > t_free / 2) & (t <= t_free)
    dry = np.sqrt(p.k / p.m - (p.d / p.m / 2) ** 2) / (2 * np.pi)
    dry = np.arctan(np.pi * dry * how.h) / (np.pi * how.h)  # as the trapezoidal rule turns at this step
    shift = frequency(t[free], u[free]) - dry
    assert -0.01 < shift < 0.0  # -0.002 Hz; the source has -0.026 (docs/fields.md: not reproduced)
    assert (result.iterations + 1).mean() <= 4.0
    swing, held = np.abs(u[free]).max(), np.abs(u[t > t_free + t_held - 1.0]).max()
    assert swing / held >= 50.0
