"""The turbine with blades that bend: its parts, its coupling, its energy.

Reference: the undivided machine of the example, one implicit step for everything, in code that knows nothing of the
coupling engine. Quick tests cover the first tenths of a second with steps of 4 ms; slow ones the whole brake.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from examples.wind_turbine.aerodynamics import Rotor, steady
from examples.wind_turbine.blade import BladeData, blade
from examples.wind_turbine.drive import Train, drive
from examples.wind_turbine.flexible import Turbine, apart, driven, reference, split
from examples.wind_turbine.flexible_monolithic import Course
from examples.wind_turbine.flexible_monolithic import run as undivided
from examples.wind_turbine.flexible_study import CORRECTORS, SPEED_ONLY, Corrector, energies, evaluations, loose, method
from examples.wind_turbine.generator import FLEXIBLE, generator
from examples.wind_turbine.rotor import hub, one_blade, rotor, turned
from examples.wind_turbine.solid import solid_modes
from scipy.optimize import brentq

import cosolve as cs

RPM_72 = 72 * 2 * np.pi / 60
NEWTON = cs.Implicit(degree=1, tol=1e-12, predictor=2, corrector=cs.Newton())
MM = 1e-3


@cache
def whole(h: float) -> Course:
    """The whole brake, undivided."""
    return undivided(*reference(), h, 10.0)


# -- blade ----------------------------------------------------------------------------------------------------------


@pytest.mark.covers("IJ-36", "AP-12")
def test_blade_at_rest_and_turning() -> None:
    beam = BladeData().beam()
    assert beam.total_mass == pytest.approx(60.20, rel=1e-3)
    assert beam.centre_of_mass == pytest.approx(2.266, rel=1e-3)
    assert beam.frequencies(2) == pytest.approx([7.313, 30.062], rel=1e-3)  # measured
    assert beam.frequencies(3) == pytest.approx([7.316, 30.078, 74.356], rel=5e-4)
    assert beam.frequencies(1, other=True) == pytest.approx([9.062], rel=5e-4)
    assert beam.frequencies(3, speed=RPM_72) == pytest.approx([7.4677, 30.225, 74.500], rel=5e-4)
    assert beam.frequencies(1, other=True, speed=RPM_72, in_plane=True) == pytest.approx([9.1061], rel=5e-4)
    assert 2 * beam.inertia == pytest.approx(805.11, rel=1e-5)
    assert blade().pull[3:] == pytest.approx([18.494, -6.313, 3.149], rel=2e-4)


@pytest.mark.covers("IJ-36")
def test_sections_of_the_middle_of_elements_give_the_fitted_frequencies() -> None:
    """The published fit had one section per element: 7.3130, 30.0620, 74.315 Hz, 60.200 kg, 2.2660 m."""
    data = BladeData()
    smooth = data.beam()
    nodes = np.asarray(smooth.nodes)
    s = (0.5 * (nodes[1:] + nodes[:-1]) - data.root) / (data.tip - data.root)
    beam = cs.structures.Beam(nodes, data.mass(s), data.flap(s))
    assert beam.frequencies(3) == pytest.approx([7.3130, 30.0620, 74.315], rel=2e-5)
    assert (beam.total_mass, beam.centre_of_mass) == pytest.approx((60.200, 2.2660), rel=2e-5)


@pytest.mark.slow
def test_a_box_of_hexahedra_has_the_frequencies_of_the_beam() -> None:
    """Solid elements know shear, turning sections and the clamp, which change a slender box by less than 0.5 %."""
    pytest.importorskip("skfem")
    found, beam = solid_modes(), BladeData().beam()
    assert found.mass == pytest.approx(beam.total_mass, rel=1e-3)
    assert found.flap[:2] == pytest.approx(beam.frequencies(2), rel=5e-3)
    assert found.edge[:2] == pytest.approx(beam.frequencies(2, other=True), rel=5e-3)


@pytest.mark.slow
def test_modes_and_all_finite_elements_agree() -> None:
    """Three modes leave out what lies above 75 Hz; a push over 40 ms hardly excites that."""
    tips = []
    for modes in (3, None):
        one = one_blade(blade(modes=modes), speed=RPM_72)
        x, u, y = one.x0, np.zeros(42), np.empty(43)
        u[:20], u[40] = np.linspace(0.0, 60.0, 20), RPM_72
        for _ in range(10):
            new = np.empty(len(x))
            assert one.step_function(0.0, 4e-3, x, u, new, y) == 0
            x = new
        tips.append(y[41])
    assert tips[1] == pytest.approx(tips[0], rel=5e-3)
    assert tips[0] > 5 * MM


# -- sensitivities, mapping -------------------------------------------------------------------------------------------


def subsystems() -> dict[str, cs.OneStep]:
    how = {"speed": 6.0, "pitch": 0.2}
    rules = ("bdf2", "energy")
    return {
        **{f"rotor {rule}": rotor(rule=rule, **how) for rule in rules},
        **{f"three blades {rule}": rotor(rule=rule, blades=3, alike=False, **how) for rule in rules},
        **{f"blade {rule}": one_blade(rule=rule, **how) for rule in rules},
        **{f"hub {rule}": hub(800.0, rule=rule, speed=6.0) for rule in rules},
        **{f"generator {rule}": generator(rule=rule, speed=0.6) for rule in rules},
    }


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", list(subsystems()))
def test_sensitivities_are_those_of_the_step(name: str) -> None:
    """In a third step, so that all of the past takes part; central differences."""
    one, rng = subsystems()[name], np.random.default_rng(3)
    kind = {"flap": 50.0, "edge": 50.0, "torq": 1000.0, "gene": 1000.0}
    sizes = np.concatenate([np.full(port.length, kind.get(port.name[:4], 1.0)) for port in one.inputs])
    middle = np.concatenate([np.full(port.length, 6.0 if port.name == "speed" else 0.1) for port in one.inputs])
    if name.startswith("generator"):
        middle[:] = 0.6, 1.0  # with the parking brake on
    x, H = one.x0, 2e-3
    for _ in range(3):
        u = middle + 0.1 * sizes * rng.normal(size=len(sizes)) * (not name.startswith("generator"))
        before, new, y = x, np.empty(len(x)), np.empty(len(one.y0))
        one.step_function(0.0, H, x, u, new, y)
        x = new
    D, F = np.zeros((len(y), len(u))), np.zeros((len(y), len(u)))
    one.jacobian_function(0.0, H, before, u, D)
    for k, size in enumerate(sizes):
        by, ends = 1e-4 * size, []
        for sign in (1, -1):
            moved, y = u.copy(), np.empty(len(one.y0))
            moved[k] += sign * by
            one.step_function(0.0, H, before, moved, np.empty(len(x)), y)
            ends.append(y)
        F[:, k] = (ends[0] - ends[1]) / (2 * by)
    assert D == pytest.approx(F, abs=1e-6 * np.abs(D).max())
    column = np.abs(D).max(axis=0)
    assert (np.abs(D - F).max(axis=0) <= 2e-5 * column + 1e-12 * np.abs(D).max()).all()


def test_loads_keep_their_work_their_sum_and_their_moment() -> None:
    turbine, rng = Turbine(), np.random.default_rng(1)
    r, length = turbine.air.stations[:, 0], turbine.air.stations[:, 1]
    f, v = rng.normal(size=20), rng.normal(size=20)
    at_nodes = turbine.loading @ f
    assert at_nodes @ v == pytest.approx((f * length) @ (turbine.motion @ v), rel=1e-13)
    assert at_nodes.sum() == pytest.approx((f * length).sum(), rel=1e-12)
    assert at_nodes @ turbine.blade.nodes == pytest.approx((f * length) @ r, rel=1e-13)


# -- generator --------------------------------------------------------------------------------------------------------


@pytest.mark.covers("IJ-38")
def test_generator_in_both_causalities() -> None:
    rigid, h = Train(), 1e-3
    speed_by_torque, torque_by_speed = np.empty((1, 2)), np.empty((1, 2))
    by_torque = drive(rigid).jacobian_function
    getattr(by_torque, "py_func", by_torque)(0.0, h, np.array([0.5, 0.5, 1 / h]), np.zeros(2), speed_by_torque)
    generator(rigid).jacobian_function(0.0, h, np.array([0.5, 0.5, h]), np.array([0.5, 0.0]), torque_by_speed)
    assert speed_by_torque[0, 0] == pytest.approx(6.005623e-6, rel=1e-6)
    assert torque_by_speed[0, 0] == pytest.approx(3 * 111 / (2 * h) + 10.62, rel=1e-13)
    assert speed_by_torque[0, 0] * torque_by_speed[0, 0] == pytest.approx(1.0, abs=1e-12)
    generator(rigid, unit="deg/s").jacobian_function(
        0.0, h, np.array([0.5, 0.5, h]), np.array([30.0, 0.0]), torque_by_speed
    )
    assert 1 / torque_by_speed[0, 0] == pytest.approx(3.44097e-4, rel=1e-5)


@pytest.mark.covers("IJ-38")
def test_degrees_are_converted_by_the_connection() -> None:
    runs = [cs.simulate(shaft(805.1, unit), t_end=0.01, method=NEWTON, step=1e-3) for unit in ("rad/s", "deg/s")]
    assert runs[1]["rotor.speed"] == pytest.approx(runs[0]["rotor.speed"], rel=1e-13)


def shaft(inertia: float, unit: str = "rad/s", h: float = 1e-3) -> cs.System:
    """A stiff rotor with 770 Nm against the generator without motor and brake, both at 1 rad/s a step before too."""
    train = FLEXIBLE._replace(motor_torque=0.0, parking_torque=0.0)
    made = cs.System(
        {
            "generator": generator(train, speed=1.0, unit=unit, before=h),
            "rotor": hub(inertia, blades=1, speed=1.0, before=h),
        }
    )
    made.set("rotor.torque1", 770.0)
    made.set("generator.brake", 0.0)
    made.connect("rotor.speed", "generator.speed")
    made.connect("generator.torque", "rotor.generator")
    return made


@pytest.mark.covers("IJ-40")
@pytest.mark.parametrize(("inertia", "end"), [(805.1, 1.06863947508), (80.51, 1.27037865968)])
def test_stiff_rotor_and_generator(inertia: float, end: float) -> None:
    """A serial iteration has the factor -(J + 2/3 h D)/I = -0.2001 and 14 evaluations, or -2.0006 and diverges."""
    serial = cs.Implicit(
        degree=1, tol=1e-12, absolute=True, predictor=0, corrector=cs.Relaxation(), sweep="gauss-seidel",
        order=["generator", "rotor"],
    )  # fmt: skip
    exact = [1.0, 1.0]
    total, h = inertia + 161.0, 1e-3
    for _ in range(100):
        exact.append((total * (2 * exact[-1] - 0.5 * exact[-2]) / h + 770.0) / (1.5 * total / h + 100.1))
    run = cs.simulate(shaft(inertia), t_end=0.1, method=NEWTON, step=h)
    assert run["rotor.speed"][-1] == pytest.approx(end, abs=1e-11)
    assert np.abs(run["rotor.speed"] - exact[1:]).max() <= 2e-14
    assert (run.iterations + 1 == 2).all()
    if inertia > 161:
        assert (cs.simulate(shaft(inertia), t_end=0.1, method=serial, step=h).iterations + 1 == 14).all()
    else:
        with pytest.raises(cs.errors.ConvergenceError, match=r"'rotor\.speed'") as caught:
            cs.simulate(shaft(inertia), t_end=0.1, method=serial, step=h)
        assert "3.8e+05, 7.5e+05, 1.5e+06" in str(caught.value)  # a factor of two every time


# -- four subsystems --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.covers("AP-14", "IJ-40")
def test_four_subsystems_are_the_undivided_machine() -> None:
    """Interface residuals below 1e-12 of each variable; the two codes share no line of the step."""
    turbine = Turbine()
    system = split(turbine)
    run, exact = cs.simulate(system, t_end=0.2, method=NEWTON, step=4e-3), undivided(*reference(turbine), 4e-3, 0.2)
    assert run["rotor.speed"] == pytest.approx(exact.speed, abs=1e-12)
    assert run["air.torque"][1:] == pytest.approx(exact.torque[1:], abs=1e-9)
    assert run["rotor.tip"] == pytest.approx(exact.tip, abs=1e-13)
    assert (run.iterations + 1).max() <= 3
    for name, place in (("generator", 0), ("control", 2)):  # the speed is the same everywhere
        assert system.subsystems[name].x[place] == pytest.approx(run["rotor.speed"][-1], abs=1e-12)


def test_blades_in_subsystems_of_their_own() -> None:
    """Hub, two blades, air, generator and control unit: the same machine, however it is cut."""
    one = cs.simulate(split(), t_end=0.08, method=NEWTON, step=4e-3)
    two = cs.simulate(split(alike=False), t_end=0.08, method=NEWTON, step=4e-3)
    each = cs.simulate(apart(), t_end=0.08, method=NEWTON, step=4e-3)
    for run, speed, tip in ((two, "rotor.speed", "rotor.tip2"), (each, "hub.speed", "blade2.tip")):
        assert run[speed] == pytest.approx(one["rotor.speed"], abs=1e-11)
        assert run[tip] == pytest.approx(one["rotor.tip"], abs=1e-11)


def test_three_blades_need_only_data() -> None:
    turbine = Turbine(air=Rotor(blades=3))
    one = cs.simulate(split(turbine), t_end=0.04, method=NEWTON, step=4e-3)
    each = cs.simulate(apart(turbine), t_end=0.04, method=NEWTON, step=4e-3)
    exact = undivided(*reference(turbine), 4e-3, 0.04)
    assert one["rotor.speed"] == pytest.approx(exact.speed, abs=1e-12)
    assert each["hub.speed"] == pytest.approx(exact.speed, abs=1e-11)
    assert each["blade3.tip"] == pytest.approx(exact.tip, abs=1e-11)


def test_serial_iteration_needs_the_shaft_on_the_side_of_the_rotor() -> None:
    """Bending blades leave the hub light: with the generator's 161 kg m2 behind the cut every sweep makes it worse."""
    here, there = (Corrector("fixed point", cs.Relaxation, serial=True, on_rotor=on) for on in (True, False))
    mean, most, run = evaluations(here, Turbine(), 4e-3, 0.08, method(here))
    assert mean <= 6.5
    assert most <= 8
    newton = cs.simulate(split(), t_end=0.08, method=NEWTON, step=4e-3)
    assert run["rotor.speed"] == pytest.approx(newton["rotor.speed"], abs=1e-9)
    with pytest.raises(cs.CosolveError, match="coupling iteration diverges"):
        evaluations(there, Turbine(), 4e-3, 0.08, method(there))


def test_secants_for_the_air_end_where_exact_sensitivities_end() -> None:
    exact, secant = (cs.simulate(split(secant=on), t_end=0.08, method=NEWTON, step=4e-3) for on in (False, True))
    assert secant["rotor.speed"] == pytest.approx(exact["rotor.speed"], abs=1e-11)
    assert exact.stats.calls["air"] < secant.stats.calls["air"] <= 5 * 20


@pytest.mark.covers("IJ-40")
def test_energy_of_the_energy_rule_is_kept_to_rounding() -> None:
    """Motor, damping, pitch drive, generator: with what is exchanged as means of a step nothing is missing."""
    braked = Turbine(rule="energy", schedule=Turbine().schedule._replace(command=0.04))
    found, _ = energies(braked, 4e-3, 0.2)
    assert np.abs(found.missing + found.shaft_missing).max() < 1e-10 * found.throughput
    assert abs(found.missing).max() < 1e-10 * found.throughput
    assert np.abs(found.pitch[-1]) > 0  # the pitch drive took part
    exact = undivided(*reference(Turbine()), 1e-3, 0.04)
    straight = cs.simulate(split(Turbine(rule="energy")), t_end=0.04, method=NEWTON, step=1e-3)
    assert straight["rotor.tip"][-1, 0] == pytest.approx(exact.tip[-1, 0], rel=0.03)  # the same machine


# -- what is refused --------------------------------------------------------------------------------------------------


def test_a_blade_that_goes_too_far_is_named_with_its_time() -> None:
    soft = blade(BladeData(flap=lambda s: 40.0 * np.exp(-3.011029 * s)))
    slow = Turbine(blade=soft, train=FLEXIBLE._replace(motor_torque=0.0))  # too slow to be drawn tight
    with pytest.raises(cs.errors.SubsystemError, match=r"blade 1 is deflected by more than 1\.36 m at 0\.\d+ s"):
        cs.simulate(split(slow), t_end=2.0, method=NEWTON, step=4e-3)


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: BladeData(root=6.0), "from its root outwards"),
        (lambda: BladeData(flap_damping=(1.5,)), "shares of critical damping"),
        (lambda: BladeData(divergence=0.0), "share of the length"),
        (lambda: BladeData(mass=lambda s: s - 0.5).beam(), "mass is -0"),
        (lambda: blade(nodes=0), "whole number of nodes"),
        (lambda: blade(modes=500), "500 modes"),
        (lambda: rotor(blades=0), "whole number of blades"),
        (lambda: rotor(rule="euler"), "'bdf2' or 'energy'"),
        (lambda: rotor(hub_inertia=-1.0), "must not be negative"),
        (lambda: hub(0.0), "must be positive"),
        (lambda: generator(FLEXIBLE._replace(damping=-1.0)), "damping of a generator cannot be negative"),
        (lambda: generator(unit="rpm"), "rad/s or deg/s"),
    ],
)  # fmt: skip
def test_nonsense_is_refused(made, sentence: str) -> None:
    with pytest.raises(cs.errors.SetupError, match=sentence):
        made()


@pytest.mark.covers("AP-14")
def test_equilibrium_with_the_generator() -> None:
    """Without a brake the air and the damping of the generator meet at 442.35 deg/s and 772.82 Nm."""
    found = brentq(lambda w: steady(Rotor(), w).torque - FLEXIBLE.damping * w, 7.4, 8.2)
    assert np.degrees(found) == pytest.approx(442.35, rel=2e-5)
    assert FLEXIBLE.damping * found == pytest.approx(772.82, rel=2e-5)


# -- prescribed speed -------------------------------------------------------------------------------------------------


def fixed_speed(h: float, t_end: float) -> cs.Result:
    serial = cs.Implicit(
        degree=1, tol=1e-10, absolute=True, corrector=cs.Relaxation(), sweep="gauss-seidel", order=["air", "blade"],
    )  # fmt: skip
    return cs.simulate(driven(), t_end=t_end, method=serial, step=h)


@pytest.mark.covers("AP-13")
def test_sudden_wind_at_prescribed_speed() -> None:
    run = fixed_speed(2e-3, 0.12)
    assert run["blade.tip"][:, 0].max() == pytest.approx(29.9 * MM, rel=5e-3)
    assert (run.iterations[1:] + 1).max() <= 7


def static_tip(turbine: Turbine, speed: float) -> np.ndarray:
    """By linear algebra: stiffness and rotation against the steady loads."""
    at, b = steady(turbine.air, speed), turbine.blade
    loads = np.concatenate([turbine.loading @ at.flap_load, turbine.loading @ at.edge_load])
    return b.tip @ np.linalg.solve(turned(b.stiffness, 0.0) + speed**2 * b.tightening, b.shapes.T @ loads)


@pytest.mark.covers("AP-13")
def test_static_deflection_at_prescribed_speed() -> None:
    """16.60 mm downwind. Edgewise the specification has 1.95 mm; all finite elements without any mapping say 1.892."""
    turbine, speed = Turbine(), np.radians(432.0)
    tip, at, beam = static_tip(turbine, speed), steady(turbine.air, speed), BladeData().beam()
    shapes, length = beam.shapes(at.r), turbine.air.stations[:, 1]
    K = beam.stiffness_matrix(other=True) + speed**2 * (beam.rotation_stiffness() - beam.mass_matrix())
    edge = beam.shapes([turbine.air.tip]) @ np.linalg.solve(K, shapes.T @ (at.edge_load * length))
    assert tip[0] == pytest.approx(16.60 * MM, rel=2e-3)
    assert tip[1] == pytest.approx(edge[0], rel=3e-3)
    assert edge[0] == pytest.approx(1.892 * MM, rel=1e-3)


@pytest.mark.slow
@pytest.mark.covers("AP-13")
def test_deflection_at_prescribed_speed() -> None:
    """The ringing ends at the static deflection, and bending does not change the torque."""
    run = fixed_speed(2e-3, 14.0)
    last = run.t > 12.0
    tip = run["blade.tip"][last].mean(axis=0)
    assert tip == pytest.approx(static_tip(Turbine(), np.radians(432.0)), rel=5e-3)
    assert abs(run["air.torque"][last].mean() - 778.91) < 0.02
    counts = run.iterations[1:] + 1
    assert counts.max() <= 7
    assert 3 <= counts.mean() <= 7


# -- the whole brake --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.covers("AP-14")
def test_the_whole_brake_undivided() -> None:
    run, h = whole(1e-3), 1e-3
    at = lambda t: round(t / h)  # noqa: E731
    assert run.speed[[at(4), at(6)]] == pytest.approx([6.5539, 2.9413], rel=3e-3)
    assert run.torque[at(4)] == pytest.approx(763.5, rel=3e-3)
    assert run.tip[at(4), 0] == pytest.approx(14.97 * MM, rel=3e-3)
    top, high, low = run.tip[:, 0].argmax(), run.torque.argmax(), run.torque.argmin()
    assert (run.tip[top, 0], run.torque[high], run.torque[low]) == pytest.approx((18.34 * MM, 826.7, -2378.9), rel=3e-3)
    slow = np.flatnonzero((run.t > 4) & (run.speed < 0.8))[0]
    assert run.t[[top, high, low, slow]] == pytest.approx([4.351, 1.206, 5.427, 8.059], abs=2.1e-3)


@pytest.mark.slow
@pytest.mark.covers("AP-14", "AP-15", "IJ-40")
def test_the_whole_brake_in_four_subsystems() -> None:
    run, exact = cs.simulate(split(), t_end=10.0, method=NEWTON, step=2e-3), whole(2e-3)
    assert run["rotor.speed"] == pytest.approx(exact.speed, abs=1e-10)
    assert run["air.torque"][1:] == pytest.approx(exact.torque[1:], abs=1e-7)
    assert run["rotor.tip"] == pytest.approx(exact.tip, abs=1e-11)
    assert (run.iterations + 1).mean() <= 2.7
    assert (run.iterations + 1).max() <= 5


@pytest.mark.slow
@pytest.mark.covers("IJ-40")
def test_secants_for_the_air_over_the_whole_brake() -> None:
    """With the speed to 1e-12 and fields to 1e-6 m/s and 1e-3 N: at most 2.7 subsystem steps a step, for 4e-7 rad/s."""
    row = next(row for row in CORRECTORS if row.secant)
    mean, most, run = evaluations(row, Turbine(), 2e-3, 10.0, method(row, 1e-12, 2, atol=SPEED_ONLY))
    assert mean <= 2.7
    assert most <= 5
    assert run["rotor.speed"] == pytest.approx(whole(2e-3).speed, abs=1e-6)


@pytest.mark.slow
@pytest.mark.covers("AP-15")
def test_serial_iterations_and_loose_coupling_until_the_parking_brake() -> None:
    """Until the brake grips (8.06 s), which belongs to the generator here and pulls at the cut."""
    row = Corrector("fixed point", cs.Relaxation, serial=True, on_rotor=True)
    mean, most, _ = evaluations(row, Turbine(), 2e-3, 8.0, method(row))
    assert mean == pytest.approx(5.2, rel=0.1)
    assert most <= 7
    cut, exact = replace(Turbine(), shaft_on_rotor=True), whole(2e-3)
    run = loose(cut, 2e-3, 8.0)
    n = len(run.t)
    assert np.abs(run["rotor.speed"] - exact.speed[:n]).max() == pytest.approx(1.4e-4, rel=0.3)
    assert np.abs(run["air.torque"] - exact.torque[:n])[1:].max() == pytest.approx(7.5, rel=0.3)
    assert np.abs(run["rotor.tip"][:, 0] - exact.tip[:n, 0]).max() == pytest.approx(0.010 * MM, rel=0.3)


@pytest.mark.slow
@pytest.mark.covers("AP-15", "IJ-40")
def test_energy_over_the_whole_brake() -> None:
    """BDF2 loses energy where motor and brake switch inside steps: first order. The energy rule loses nothing."""
    coarse, fine = (energies(Turbine(), h, 10.0)[0] for h in (4e-3, 2e-3))
    lost = [one.missing[-1] + one.shaft_missing[-1] for one in (coarse, fine)]
    assert lost[0] / lost[1] == pytest.approx(2.0, rel=0.05)
    switched = 5000.0 * 6.0 + 3000.0 * 0.8  # a torque that begins or ends counts half a step too much or too little
    assert lost == pytest.approx([-0.5 * h * switched for h in (4e-3, 2e-3)], rel=0.05)
    assert abs(coarse.residual) < 2.5e-3
    kept, _ = energies(Turbine(rule="energy"), 4e-3, 10.0)
    assert np.abs(kept.missing + kept.shaft_missing).max() < 1e-6 * kept.throughput
