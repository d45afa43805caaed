"""What the coupling method promises beyond the oscillator: linear parts, Jacobians, networks, threads, DAEs."""

import dataclasses
from contextlib import suppress
from threading import Barrier, BrokenBarrierError, current_thread, main_thread

import numpy as np
import pytest
from examples.nonlinear_oscillator.model import X0, oscillator, whole
from scipy.integrate import solve_ivp

import cosolve as cs
from cosolve.engine.python.subsystem_caller import SubsystemCaller
from cosolve.integrator.bdf_control import BdfControl
from cosolve.method.dynamic_static import DynamicStatic, _Coupled
from cosolve.subsystem.dae import Dae
from cosolve.subsystem.static_residual import StaticResidual

VARIANTS = ["A", "B", "C"]


def mass(**ports) -> cs.Ode:
    return cs.Ode(
        lambda t, x, u: [x[1], u.sum() - x[0] ** 3], lambda t, x, u: x, x0=[1.0, 0.0], outputs=["x", "v"], **ports
    )


def joined(parts: dict[str, cs.Subsystem], *connections: tuple[str, str]) -> cs.System:
    system = cs.System(parts)
    for source, target in connections:
        system.connect(source, target)
    return system


def spring_mass(function, **options) -> cs.System:
    spring = cs.Static(function, inputs=["x", "v"], outputs=["force"])
    for name, value in options.items():
        setattr(spring, name, value)
    return joined(
        {"mass": mass(inputs=["force"]), "spring": spring},
        ("mass.x", "spring.x"),
        ("mass.v", "spring.v"),
        ("spring.force", "mass.force"),
    )


def exact(rhs, x0, t: np.ndarray) -> np.ndarray:
    return solve_ivp(rhs, (0.0, t[-1]), x0, method="DOP853", rtol=1e-12, atol=1e-13, t_eval=t).y.T


@pytest.mark.covers("SC-35")
def test_linear_static_part_makes_the_variants_agree() -> None:
    """Nothing to linearise: end states agree to 1e-7, the rounding of forward differences."""
    runs = {}
    for variant in VARIANTS:
        method = DynamicStatic(variant, step=0.01, order=3, fixed_order=True, rtol=1e-10)
        runs[variant] = cs.simulate(spring_mass(lambda t, u: -40.0 * u[0] - 0.7 * u[1] + 3.0), t_end=3.0, method=method)
    for variant in "BC":
        for name in ("mass.x", "mass.v"):
            assert np.abs(runs[variant][name] - runs["A"][name]).max() <= 1e-7


@pytest.mark.covers("SC-35")
@pytest.mark.parametrize("rtol", [1e-4, 1e-8])
def test_linear_static_part_with_variable_steps(rtol: float) -> None:
    runs = [
        cs.simulate(spring_mass(lambda t, u: -40.0 * u[0] - 0.7 * u[1]), t_end=3.0, method=DynamicStatic(v, rtol=rtol))
        for v in VARIANTS
    ]
    assert len({run.stats.steps for run in runs}) == 1
    for run in runs[1:]:  # at the common end: rounding moves the points in between
        assert abs(run["mass.x"][-1] - runs[0]["mass.x"][-1]) <= 1e-7


@pytest.mark.covers("SC-36")
@pytest.mark.parametrize("z", [X0, np.array([-1.5, 900.0]), np.array([0.4, -4500.0])])
def test_chain_rule_jacobian_is_that_of_full_differences(z: np.ndarray) -> None:
    """Static derivatives composed by the chain rule against central differences through the static model: 1e-5."""
    system = oscillator(z)
    caller = SubsystemCaller(system.plan())
    _, coupling = caller.start(0.0)
    problem = _Coupled(DynamicStatic("A"), caller)
    problem.resume(coupling, 0.0)
    _, J = problem.evaluate(0.0, z, True)
    step = 1e-6 * np.maximum(1.0, np.abs(z))
    full = np.column_stack([(whole(0.0, z + d) - whole(0.0, z - d)) / (2 * d.max()) for d in np.diag(step)])
    np.testing.assert_allclose(J, full, rtol=1e-5, atol=1e-9 * np.abs(full).max())
    assert caller.calls.tolist() == [0, 1]
    assert caller.jacobians[1] == 1


@pytest.mark.covers("SC-36")
def test_rebuild_counts_follow_the_pattern() -> None:
    """One rebuild per attempt when fewer than five iterations are needed; with T everywhere one per iteration."""
    system = spring_mass(lambda t, u: -30.0 * u[0] ** 3 - u[1])
    by_pattern = cs.simulate(system, t_end=2.0, method=DynamicStatic("A", pattern="T:F:F:F:T:F:F:F:T:F")).stats
    assert by_pattern.iterations < 4 * by_pattern.calls["mass"]
    assert by_pattern.jacobians["mass"] == by_pattern.calls["mass"] == by_pattern.jacobians["spring"]
    always = cs.simulate(system, t_end=2.0, method=DynamicStatic("A", pattern="T" * 10)).stats
    assert always.jacobians["mass"] == always.iterations == always.calls["spring"] == always.jacobians["spring"]


# -- networks of static subsystems -------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize("variant", VARIANTS)
def test_network_of_statics_laws_sources_and_observers(variant: str) -> None:
    """Two in a chain, one beside it, a law on top, a source of time and one that only watches."""

    def static(function, takes, gives):
        return cs.Static(function, inputs=takes, outputs=gives)

    parts = {
        "mass": mass(inputs=["one", "two", "three"]),
        "stretch": static(lambda t, u: np.sinh(u[0]), ["x"], ["s"]),
        "spring": static(lambda t, u: -4.0 * u[0] - u[0] ** 3, ["s"], ["force"]),
        "damper": static(lambda t, u: -0.3 * u[0] * abs(u[0]), ["v"], ["force"]),
        "drive": static(lambda t, u: np.sin(3 * t), [], ["force"]),
        "meter": static(lambda t, u: u[0] ** 2, ["x"], ["energy"]),
    }
    system = joined(
        parts,
        ("mass.x", "stretch.x"),
        ("stretch.s", "spring.s"),
        ("mass.v", "damper.v"),
        ("mass.x", "meter.x"),
        ("spring.force", "mass.one"),
        ("drive.force", "mass.three"),
    )
    system.law("mass.two", lambda damping, x: damping * (1 + x**2), of=["damper.force", "mass.x"])

    def rhs(t: float, x: np.ndarray) -> list[float]:
        s = np.sinh(x[0])
        damping = -0.3 * x[1] * abs(x[1]) * (1 + x[0] ** 2)
        return [x[1], -4 * s - s**3 + damping + np.sin(3 * t) - x[0] ** 3]

    result = cs.simulate(system, t_end=3.0, method=DynamicStatic(variant, rtol=1e-7))
    right = exact(rhs, [1.0, 0.0], result.t)
    assert np.abs(result["mass.x"] - right[:, 0]).max() < (1e-3 if variant == "B" else 2e-5)
    np.testing.assert_allclose(result["meter.energy"], result["mass.x"] ** 2, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(result["drive.force"], np.sin(3 * result.t), atol=1e-12)
    np.testing.assert_allclose(result["mass.one"], result["spring.force"])
    stats = result.stats
    expected = {"A": stats.iterations, "B": stats.steps, "C": stats.calls["mass"]}[variant]
    assert stats.calls["spring"] == stats.calls["stretch"] == stats.calls["damper"] == expected
    assert stats.calls["meter"] == stats.steps


@pytest.mark.parametrize("variant", VARIANTS)
def test_dae_with_a_static_part(variant: str) -> None:
    """The force balance as an algebraic equation of the dynamic part: `x' = v, 0 = u - d v`."""
    slider = Dae(
        lambda t, x, u: [x[1], u[0] - 2.0 * x[1]], lambda t, x, u: x[0], E=np.diag([1.0, 0.0]), x0=[1.0, -2.5],
        inputs=["force"], outputs=["x"],
    )  # fmt: skip
    spring = cs.Static(lambda t, u: -4.0 * u[0] - u[0] ** 3, inputs=["x"], outputs=["force"])
    system = joined({"slider": slider, "spring": spring}, ("slider.x", "spring.x"), ("spring.force", "slider.force"))
    result = cs.simulate(system, t_end=2.0, method=DynamicStatic(variant, rtol=1e-7))
    right = exact(lambda t, x: -2.0 * x - x**3 / 2, [1.0], result.t)[:, 0]
    assert np.abs(result["slider.x"] - right).max() < (1e-3 if variant == "B" else 1e-5)


def test_dae_runs_under_other_methods_too() -> None:
    slider = Dae(
        lambda t, x, u: [x[1], u[0] - 2.0 * x[1]], lambda t, x, u: x[0], E=np.diag([1.0, 0.0]), x0=[1.0, -2.0],
        inputs=["force"], outputs=["x"],
    )  # fmt: skip
    spring = cs.Static(lambda t, u: -4.0 * u[0], inputs=["x"], outputs=["force"])
    system = joined({"slider": slider, "spring": spring}, ("slider.x", "spring.x"), ("spring.force", "slider.force"))
    result = cs.simulate(system, t_end=0.5, method=cs.SemiImplicit(degree=2), step=0.05)
    assert result["slider.x"][-1] == pytest.approx(np.exp(-1.0), abs=1e-3)


# -- derivatives, threads, limits --------------------------------------------------------------------------


def test_own_derivatives_spare_the_perturbed_solves() -> None:
    class Spring(cs.Static):
        asked = 0

        def output_jacobian(self, t, u):
            Spring.asked += 1
            return [[-3.0 * u[0] ** 2, -0.5]]

    solves = []
    spring = Spring(lambda t, u: solves.append(t) or -(u[0] ** 3) - 0.5 * u[1], inputs=["x", "v"], outputs=["force"])
    system = joined(
        {"mass": mass(inputs=["force"]), "spring": spring},
        ("mass.x", "spring.x"), ("mass.v", "spring.v"), ("spring.force", "mass.force"),
    )  # fmt: skip
    system.plan()
    solves.clear()
    stats = cs.simulate(system, t_end=1.0, method=DynamicStatic("C")).stats
    assert Spring.asked == stats.calls["spring"]
    assert len(solves) <= stats.calls["spring"] + 10  # a few at the start, before the first step


def test_threads_give_the_same_bits_at_the_same_time() -> None:
    def run(workers: int) -> cs.Result:
        two_inside = Barrier(2, timeout=60.0)

        def spring(t: float, u: np.ndarray) -> float:
            if current_thread() is not main_thread():
                with suppress(BrokenBarrierError):  # waits until another column is at work too, at the first time
                    two_inside.wait()
                    met.append(workers)
                two_inside.abort()
            return float(-5.0 * u[0] ** 3 - u[1])

        system = spring_mass(spring, concurrent=True)
        return cs.simulate(system, t_end=1.0, method=DynamicStatic("C", rtol=1e-4), workers=workers)

    met: list[int] = []
    serial, threaded = run(1), run(3)
    assert np.array_equal(serial["mass.x"], threaded["mass.x"])
    assert np.array_equal(serial.t, threaded.t)
    assert set(met) == {3}


def test_warm_started_residual_gives_the_same_bits_in_threads() -> None:
    def run(workers: int) -> cs.Result:
        spring = StaticResidual(
            lambda t, f, u: f + 0.1 * f**3 + 4.0 * u[0] + u[1], lambda t, f, u: f, x0=[0.0],
            inputs=["x", "v"], outputs=["force"],
        )  # fmt: skip
        system = joined(
            {"mass": mass(inputs=["force"]), "spring": spring},
            ("mass.x", "spring.x"), ("mass.v", "spring.v"), ("spring.force", "mass.force"),
        )  # fmt: skip
        return cs.simulate(system, t_end=2.0, method=DynamicStatic("A", rtol=1e-6), workers=workers)

    assert np.array_equal(run(1)["mass.x"], run(2)["mass.x"])


def test_runs_end_exactly_and_respect_limits() -> None:
    system = spring_mass(lambda t, u: -u[0] - u[1])
    result = cs.simulate(system, t_end=1.7, method=DynamicStatic("C", rtol=1e-4, max_step=0.05))
    assert result.t[-1] == 1.7
    assert result.H.max() <= 0.05 * (1 + 1e-12)
    by_step = cs.simulate(system, t_end=1.7, method=DynamicStatic("C", rtol=1e-4), step=0.03)
    assert by_step.H.max() <= 0.03 * (1 + 1e-12)
    fixed = cs.simulate(system, t_end=1.0, method=DynamicStatic("C", step=0.03))
    np.testing.assert_allclose(fixed.H[:-1], 0.03)
    assert fixed.t[-1] == 1.0


def test_runs_repeat_bit_for_bit() -> None:
    system = spring_mass(lambda t, u: -np.sinh(u[0]) - u[1])
    method = DynamicStatic("C", rtol=1e-6)
    first, second = (cs.simulate(system, t_end=2.0, method=method) for _ in range(2))
    assert np.array_equal(first["mass.x"], second["mass.x"])


def test_small_states_need_their_own_atol() -> None:
    """A film of micrometres: with `atol` of its size the motion is resolved and increments suit it."""
    scale = 1e-6
    film = cs.Static(
        lambda t, u: -1.0 * (u[0] / scale) ** 3 - u[1] / scale,
        inputs=[cs.Port("x", nominal=scale), cs.Port("v", nominal=scale)],
        outputs=["force"],
    )
    journal = cs.Ode(
        lambda t, x, u: [x[1], scale * u[0]], lambda t, x, u: x, x0=[scale, 0.0], inputs=["force"], outputs=["x", "v"]
    )
    system = joined(
        {"journal": journal, "film": film},
        ("journal.x", "film.x"), ("journal.v", "film.v"), ("film.force", "journal.force"),
    )  # fmt: skip
    result = cs.simulate(system, t_end=5.0, method=DynamicStatic("C", rtol=1e-6, atol=1e-6 * scale))
    right = exact(lambda t, x: [x[1], -(x[0] ** 3) - x[1]], [1.0, 0.0], result.t)
    assert np.abs(result["journal.x"] / scale - right[:, 0]).max() < 1e-4


def test_every_setting_of_the_integrator_arrives() -> None:
    given = {
        "rtol": 1e-5, "atol": (1e-7, 1e-8), "order": 3, "fixed_order": True, "step": 1e-3, "first_step": 1e-4,
        "min_step": 1e-9, "max_step": 0.5, "pattern": "TF", "newton": 0.02, "safety": 0.8,
    }  # fmt: skip
    assert given.keys() == {field.name for field in dataclasses.fields(BdfControl)}
    for name, value in given.items():
        options = {"step": 1e-3, "first_step": 1e-4} if name == "first_step" else {name: value}
        control = cs.DynamicStatic("C", **options).control()
        assert control == BdfControl(**options)
        assert getattr(control, name) == value != getattr(BdfControl(), name)
