"""Subsystems written in JAX: the same numbers as the native ones, derivatives exact to rounding."""

import sys
from functools import lru_cache
from math import exp
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from examples.nonlinear_oscillator.model import oscillator
from tests import processes
from tests.choice import quick

import cosolve as cs
from cosolve.integrator.kernels import NOT_FINITE, OK, STUCK, TOO_MANY_STEPS
from cosolve.jax.integrators import kvaerno
from cosolve.signal import Polynomial

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

FIXED = ["ode1", "ode2", "ode3", "ode4", "ode5"]
SETTINGS = [{"integrator": name, "internal_step": 0.013} for name in (*FIXED, "radau5")] + [
    {"integrator": "dopri5", "rtol": 1e-11}
]
KVAERNO = {"integrator": "kvaerno5", "rtol": 1e-10, "atol": 1e-11}  # long to compile
WEIGHTS = [np.array([1.0]), np.array([0.0, 1.0]), np.array([-0.5, 0.25, 1.25])]


def rhs(np_: ModuleType, t, x, u):
    """Two coupled oscillators, forced through both inputs and by time; nothing is linear."""
    return np_.array([x[1], -np_.sin(x[0]) - 0.1 * x[1] ** 3 + u[0] * x[2], x[0] * u[1] - x[2] ** 2 + np_.cos(3.0 * t)])


def measured(np_: ModuleType, t, x, u):
    return np_.array([x[0], x[1] * x[2] + 0.3 * u[0] ** 2])


def model(kind: type = cs.JaxOde, **settings) -> cs.Subsystem:
    lib = jnp if kind is cs.JaxOde else np
    return kind(
        lambda t, x, u: rhs(lib, t, x, u),
        lambda t, x, u: measured(lib, t, x, u),
        x0=[1.0, 0.2, -0.3],
        inputs=["a", "b"],
        outputs=["p", "q"],
        **settings,
    )


@lru_cache
def compiled(solver: str) -> cs.Subsystem:
    """One model per solver for all tests that start it anew."""
    return model(**next(s for s in [*SETTINGS, KVAERNO] if s["integrator"] == solver))


def wave(t0: float, H: float, degree: int = 2) -> Polynomial:
    """Inputs that change over the step."""
    return Polynomial(t0, H, np.array([[0.7, -0.4], [0.5, 0.3], [-0.2, 0.6]])[: degree + 1])


# -- against the native solvers ----------------------------------------------------------------------------


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "settings", [s for s in SETTINGS if s["integrator"] != "radau5"], ids=lambda s: s["integrator"]
)
def test_the_same_numbers_as_the_native_solver(settings: dict) -> None:
    ours, native = compiled(settings["integrator"]), model(cs.Ode, **settings)
    ours.start(0.0)
    native.start(0.0)
    for n in range(10):
        u = wave(0.1 * n, 0.1, degree=n % 3)
        y = np.asarray(ours.advance(u.t0, u.t0 + 0.1, u)), np.asarray(native.advance(u.t0, u.t0 + 0.1, u))
        assert np.abs(y[0] - y[1]).max() < 1e-12
        assert np.abs(ours.get_state() - native.get_state()).max() < 1e-12


def test_the_same_steps_as_the_native_solver_where_many_are_rejected() -> None:
    """A pulse, a hundredth of the macro step wide, is passed by steps that shrink again and again, and then grow."""

    def part(kind: type, lib: Any) -> cs.Subsystem:
        return kind(
            lambda t, x, u: lib.array([40.0 * lib.exp(-(((t - 0.53) / 0.01) ** 2)) - 3.0 * x[0] * x[1], x[0] - x[1]]),
            lambda t, x, u: x, x0=[1.0, 0.2], inputs=[], outputs=["x", "y"], integrator="dopri5", rtol=1e-6,
        )  # fmt: skip

    ours, native = part(cs.JaxOde, jnp), part(cs.Ode, np)
    for one in (ours, native):
        one.start(0.0)
    for k in range(2):
        u = Polynomial(float(k), 1.0, np.zeros((1, 0)))
        x, y = (np.asarray(one.advance(u.t0, u.t0 + 1.0, u)) for one in (ours, native))
        np.testing.assert_allclose(x, y, rtol=1e-13)


def test_equations_and_outputs_are_those_of_the_model() -> None:
    ours, native = compiled("dopri5"), model(cs.Ode)
    x, u = np.array([0.3, -1.0, 0.5]), np.array([0.2, 0.9])
    for of_ours, of_native in zip(ours.equations()[:2], native.equations()[:2], strict=True):
        assert of_ours(0.4, x, u) == pytest.approx(np.asarray(of_native(0.4, x, u)), rel=1e-15)
    ours.set_state(x)
    native.set_state(x)
    assert ours.output(0.4, u) == pytest.approx(native.output(0.4, u), rel=1e-15)
    assert ours.output_jacobian(0.4, u) == pytest.approx(np.array([[0.0, 0.0], [0.6 * 0.2, 0.0]]), abs=1e-16)


# -- derivatives -------------------------------------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize("weight", WEIGHTS, ids=["constant", "ramp", "quadratic"])
@pytest.mark.parametrize(
    "settings",
    [*(pytest.param(s, marks=pytest.mark.slow) for s in (*SETTINGS[:-2], KVAERNO)), *SETTINGS[-2:]],
    ids=lambda s: s["integrator"],
)
def test_jacobian_against_central_differences(settings: dict, weight: np.ndarray) -> None:
    subsystem, u, d = compiled(settings["integrator"]), wave(0.3, 0.2, 1), 1e-5
    subsystem.start(0.0)
    exact = subsystem.jacobian(0.3, 0.5, u, weight)
    columns = []
    for k in range(2):
        ends = []
        for sign in (-1.0, 1.0):
            coefficients = np.zeros((3, 2))
            coefficients[:2] = u.coefficients
            coefficients[: len(weight), k] += sign * d * weight
            subsystem.start(0.0)
            ends.append(subsystem.advance(0.3, 0.5, Polynomial(0.3, 0.2, coefficients)))
        columns.append((ends[1] - ends[0]) / (2.0 * d))
    assert exact.shape == (2, 2)
    assert np.abs(exact).max() > 0.01
    assert np.abs(exact - np.array(columns).T).max() < 1e-7


@pytest.mark.parametrize("name", quick(FIXED, "ode1", "ode3"))
@pytest.mark.parametrize("weight", WEIGHTS, ids=["constant", "ramp", "quadratic"])
def test_jacobian_is_the_sensitivity_equation_on_the_same_grid(name: str, weight: np.ndarray) -> None:
    """A Runge-Kutta step of (x, dx/du) is the derivative of the Runge-Kutta step of x: equal to rounding."""

    def augmented(t, z, u):
        x, S = z[:3], z[3:].reshape(3, 2)
        A = np.array(
            [[0.0, 1.0, 0.0], [-np.cos(x[0]), -0.3 * x[1] ** 2, u[0]], [u[1], 0.0, -2.0 * x[2]]],
        )
        B = np.array([[0.0, 0.0], [x[2], 0.0], [0.0, x[0]]])
        s = np.polynomial.polynomial.polyval((t - 0.3) / 0.2, weight)
        return np.concatenate([rhs(np, t, x, u), (A @ S + B * s).ravel()])

    native = cs.Ode(
        augmented, lambda t, z, u: z, x0=[1.0, 0.2, -0.3, *np.zeros(6)], inputs=["a", "b"], outputs=[("z", 9)],
        integrator=name, internal_step=0.013,
    )  # fmt: skip
    native.start(0.0)
    u = wave(0.3, 0.2)
    z = np.asarray(native.advance(0.3, 0.5, u))
    x, S = z[:3], z[3:].reshape(3, 2)
    by_state = np.array([[1.0, 0.0, 0.0], [0.0, x[2], x[1]]])
    by_input = np.array([[0.0, 0.0], [0.6 * u.end[0], 0.0]])
    ours = compiled(name)
    ours.start(0.0)
    assert np.abs(ours.jacobian(0.3, 0.5, u, weight) - (by_state @ S + by_input * weight.sum())).max() < 1e-14


def mass(kind: str) -> cs.Subsystem:
    A, B, C = np.array([[0.0, 1.0], [-4.0, -0.2]]), np.array([[0.0], [1.0]]), np.eye(2)
    if kind == "exact":
        return cs.Linear(A, B, C, x0=[1.0, 0.0], inputs=["f"], outputs=["x", "v"])
    return cs.JaxOde(
        lambda t, x, u: A @ x + B @ u, lambda t, x, u: C @ x, x0=[1.0, 0.0], inputs=["f"], outputs=["x", "v"],
        rtol=1e-12, atol=1e-13,
    )  # fmt: skip


@lru_cache
def chain(kind: str) -> cs.System:
    system = cs.System({"one": mass(kind), "two": mass(kind)})
    system.law(
        {"one.f": 1, "two.f": -1},
        lambda x1, v1, x2, v2: 50.0 * (x2 - 2.0 * x1) ** 3 + (v2 - v1),
        of=["one.x", "one.v", "two.x", "two.v"],
    )
    return system


def test_as_many_calls_as_with_given_jacobians() -> None:
    """Automatic derivatives cost no step: the counts are those of `Linear`, whose Jacobian is in closed form."""
    results = {
        kind: cs.simulate(chain(kind), t_end=1.0, method=cs.Implicit(degree=1, tol=1e-10), step=0.02)
        for kind in ("exact", "jax")
    }
    exact, ours = results["exact"], results["jax"]
    assert ours.iterations.tolist() == exact.iterations.tolist()
    assert ours.stats.calls == exact.stats.calls
    assert np.abs(ours["one.x"] - exact["one.x"]).max() < 1e-9
    differenced = cs.simulate(
        chain("jax"), t_end=1.0, method=cs.Implicit(degree=1, tol=1e-10, jacobian="difference"), step=0.02
    )
    assert differenced.stats.calls["one"] > ours.stats.calls["one"]


def test_linear_model_has_the_closed_form_jacobian() -> None:
    """`Linear` propagates exactly; at a tolerance of 1e-12 so does the adaptive solver."""
    exact, ours = mass("exact"), chain("jax").subsystems["one"]
    for subsystem in (exact, ours):
        subsystem.start(0.0)
    u = Polynomial(0.0, 0.3, np.array([[0.4], [-0.7]]))
    for weight in WEIGHTS:
        expected = exact.jacobian(0.0, 0.3, u, weight)
        assert np.abs(ours.jacobian(0.0, 0.3, u, weight) - expected).max() < 1e-11


# -- the nonlinear oscillator, solved with automatic derivatives -------------------------------------------


def jax_oscillator() -> cs.System:
    def force(t, u):
        return -1e5 * jnp.sign(u[0]) * (jnp.exp(3.0 * jnp.abs(u[0])) - 1.0) - 1e-5 * jnp.sign(u[1]) * jnp.abs(u[1]) ** 3

    def motion(t, z, u):
        x, v = z
        return [v, -1e5 * jnp.sign(x) * x**4 - 5e-4 * jnp.sign(v) * v**2 + u[0]]

    law = cs.JaxStatic(force, inputs=["x", "v"], outputs=["force"])
    body = cs.JaxOde(motion, lambda t, z, u: z, x0=[2.0, -100.0], inputs=["force"], outputs=["x", "v"])
    system = cs.System({"mass": body, "law": law})
    system.connect("mass.x", "law.x")
    system.connect("mass.v", "law.v")
    system.connect("law.force", "mass.force")
    return system


def test_nonlinear_oscillator_by_implicit_coupling() -> None:
    """The law is steep, 3e5 exp(6) N/m: its derivative carries the iteration. Same solution, half the calls."""
    method = cs.Implicit(degree=2, tol=1e-10, corrector=cs.Newton("iteration"))
    ours = cs.simulate(jax_oscillator(), t_end=1e-3, method=method, step=5e-6)
    native = cs.simulate(oscillator(), t_end=1e-3, method=method, step=5e-6)
    assert np.abs(ours["mass.x"] - native["mass.x"]).max() < 1e-7
    assert ours.stats.unconverged == 0
    assert ours.iterations.max() <= 2
    assert ours.stats.calls["law"] == ours.iterations.sum() + len(ours.iterations)
    assert native.stats.calls["law"] > 2 * ours.stats.calls["law"]


def test_dynamic_static_takes_equations_and_given_derivatives() -> None:
    """Variant A reads rhs and output of the mass and the derivative of the law: no perturbed calls of the law."""
    method = cs.DynamicStatic("A", rtol=1e-6, first_step=1e-7, max_step=1e-4)
    system = jax_oscillator()
    asked = []
    law = system.subsystems["law"]
    given = law.output_jacobian
    law.output_jacobian = lambda t, u: asked.append(t) or given(t, u)
    ours = cs.simulate(system, t_end=1e-3, method=method)
    native = cs.simulate(oscillator(), t_end=1e-3, method=method)
    assert ours["mass.x"][-1] == pytest.approx(native["mass.x"][-1], abs=1e-6)
    assert len(asked) >= ours.stats.steps


# -- stiff equations ---------------------------------------------------------------------------------------


def curve(h: float, lam: float = -1e6) -> cs.JaxOde:
    """Prothero and Robinson: x' = lam (x - cos t) - sin t, solved by cos t."""
    return cs.JaxOde(
        lambda t, x, u: lam * (x - jnp.cos(t)) - jnp.sin(t) + u, lambda t, x, u: x, x0=[1.0], inputs=["u"],
        outputs=["x"], integrator="radau5", internal_step=h,
    )  # fmt: skip


def test_radau_integrates_stiff_equations() -> None:
    subsystem = curve(0.05)
    subsystem.start(0.0)
    u = Polynomial(0.0, 1.0, np.zeros((1, 1)))
    assert float(subsystem.advance(0.0, 1.0, u)[0]) == pytest.approx(np.cos(1.0), abs=1e-9)
    J = subsystem.jacobian(1.0, 2.0, Polynomial(1.0, 1.0, np.zeros((1, 1))), np.ones(1))
    assert float(J[0, 0]) == pytest.approx(1e-6, rel=1e-6)  # -1 / lam once the transient is gone


def test_radau_has_order_five() -> None:
    fine = cs.JaxOde(lambda t, x, u: [x[1], -jnp.sin(x[0])], lambda t, x, u: x, x0=[2.0, 0.0], inputs=[],
                     outputs=["x", "v"], rtol=1e-13, atol=1e-14)  # fmt: skip
    u = Polynomial(0.0, 2.0, np.zeros((1, 0)))
    fine.start(0.0)
    reference = fine.advance(0.0, 2.0, u)
    coarse = cs.JaxOde(lambda t, x, u: [x[1], -jnp.sin(x[0])], lambda t, x, u: x, x0=[2.0, 0.0], inputs=[],
                       outputs=["x", "v"], integrator="radau5", internal_step=1.0)  # fmt: skip
    steps, errors = [0.5, 0.25, 0.125], []
    for h in steps:
        coarse.internal_step = h  # needs no new compilation
        coarse.start(0.0)
        errors.append(np.abs(coarse.advance(0.0, 2.0, u) - reference).max())
    assert cs.analysis.convergence_order(steps[1:], errors[1:]) == pytest.approx(5.0, abs=0.3)


@pytest.mark.parametrize(
    ("end", "bad", "status"),
    [("ok", (), OK), ("steps", (), TOO_MANY_STEPS), ("other", (), STUCK), ("other", (0.5,), NOT_FINITE),
     ("other", (1.5,), NOT_FINITE), ("steps", (0.5,), TOO_MANY_STEPS), ("ok", (1.5,), OK)],
)  # fmt: skip
def test_how_a_solver_of_diffrax_ended(end: str, bad: tuple[float, ...], status: int) -> None:
    """Without diffrax itself: what it is given, and what is made of its answer."""
    given: dict[str, Any] = {}

    def solve(term: Any, solver: Any, t0: float, t1: float, first: Any, x: Any, **options: Any) -> Any:
        given.update(options, t0=t0, t1=t1, first=float(first))
        return SimpleNamespace(ys=np.array([[9.0], [7.0]]), result=end, stats={"num_accepted_steps": np.array(4)})

    def rhs(t: float, x: Any) -> Any:
        return np.array([np.nan if t in bad else 1.0, 2.0])

    made = SimpleNamespace(
        diffeqsolve=solve, ODETerm=lambda f: f, Kvaerno5=str, ForwardMode=str, PIDController=lambda **o: o,
        RESULTS=SimpleNamespace(successful="ok", max_steps_reached="steps"),
    )  # fmt: skip
    x, step, found, t = kvaerno(made, np, 1e-5, 1e-7, 50, rhs, 0.5, 1.5, np.array([1.0]), 0.0)
    assert (x.tolist(), float(step), int(found), float(t)) == ([7.0], 0.25, status, 1.5 if status == OK else 0.5)
    assert (given["t0"], given["t1"], given["max_steps"], given["throw"]) == (0.5, 1.5, 50, False)
    assert (given["stepsize_controller"]["rtol"], given["stepsize_controller"]["atol"]) == (1e-5, 1e-7)
    assert given["first"] == 1e-3
    for first, taken in ((0.3, 0.3), (4.0, 1.0)):  # the step that the last one proposed, within this one
        kvaerno(made, np, 1e-5, 1e-7, 50, rhs, 0.5, 1.5, np.array([1.0]), first)
        assert given["first"] == taken


@pytest.mark.slow
def test_kvaerno_chooses_its_steps_for_stiff_equations() -> None:
    """x' = -1e6 (x - cos t) follows cos t, 1e-6 sin t behind; an explicit method would need steps of 3e-6."""
    tolerance = {"rtol": 1e-9, "atol": 1e-9}
    part = decaying(rhs=lambda t, x, u: -1e6 * (x - jnp.cos(t)), integrator="kvaerno5", max_steps=200, **tolerance)
    part.start(0.0)
    for k in range(4):
        (x,) = part.advance(k / 4, (k + 1) / 4, Polynomial(k / 4, 0.25, np.zeros((1, 1))))
        assert part.save()[1] > 1e-3
    assert abs(x - np.cos(1.0) - 1e-6 * np.sin(1.0)) < 1e-9


@pytest.mark.slow  # compiling
def test_kvaerno_says_where_it_is_stuck() -> None:
    part = decaying(rhs=lambda t, x, u: 1e3 * jnp.sin(1e4 * t) * jnp.ones(1), integrator="kvaerno5", max_steps=5)
    part.start(0.0)
    with pytest.raises(
        cs.errors.SubsystemError, match=r"kvaerno5 needs more than 5 steps after t = 0; check rhs for a jump"
    ):
        part.advance(0.0, 1.0, Polynomial(0.0, 1.0, np.zeros((1, 1))))


def test_without_diffrax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "diffrax", None)
    with pytest.raises(cs.errors.SetupError, match=r"'kvaerno5' needs diffrax, .*; run: pip install 'cosolve\[jax\]'"):
        decaying(integrator="kvaerno5")
    decaying()  # the others do without it


def test_explicit_solver_gives_up_on_stiff_equations() -> None:
    stiff = cs.JaxOde(lambda t, x, u: -1e9 * (x - u), lambda t, x, u: x, x0=[1.0], inputs=["u"], outputs=["x"],
                      max_steps=200)  # fmt: skip
    stiff.start(0.0)
    with pytest.raises(cs.errors.SubsystemError, match=r"more than 200 steps at t = .*radau5"):
        stiff.advance(0.0, 1.0, Polynomial(0.0, 1.0, np.zeros((1, 1))))


# -- repeatability -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [SETTINGS[-1], *(pytest.param(s, marks=pytest.mark.slow) for s in (*SETTINGS[-3:-1], KVAERNO))],
    ids=lambda s: s["integrator"],
)
def test_rollback_and_new_runs_give_the_same_bits(settings: dict) -> None:
    one, two = compiled(settings["integrator"]), model(**settings)
    one.start(0.0)
    one.advance(0.0, 0.1, wave(0.0, 0.1))
    state = one.save()
    first = one.advance(0.1, 0.2, wave(0.1, 0.1))
    one.restore(state)
    one.jacobian(0.1, 0.2, wave(0.1, 0.1), np.ones(1))
    again = one.advance(0.1, 0.2, wave(0.1, 0.1))
    two.start(0.0)
    two.advance(0.0, 0.1, wave(0.0, 0.1))
    other = two.advance(0.1, 0.2, wave(0.1, 0.1))
    assert first.tobytes() == again.tobytes() == other.tobytes()


def test_runs_repeat_bit_for_bit() -> None:
    method = cs.Implicit(degree=1)
    runs = [cs.simulate(chain("jax"), t_end=0.5, method=method, step=0.05, workers=w)["two.x"] for w in (1, 1, 2)]
    assert runs[0].tobytes() == runs[1].tobytes() == runs[2].tobytes()


def test_precision_of_other_programs_is_left_alone() -> None:
    subsystem = compiled("dopri5")
    subsystem.start(0.0)
    assert subsystem.advance(0.0, 0.1, wave(0.0, 0.1)).dtype == np.float64
    assert jnp.ones(1).dtype == np.float32


def test_jax_is_loaded_only_when_used() -> None:
    code = "import sys, cosolve as cs; cs.JaxOde; assert 'jax' not in sys.modules"
    processes.run([sys.executable, "-c", code], check=True)


# -- parameters, laws --------------------------------------------------------------------------------------


def test_new_parameters_need_no_new_trace() -> None:
    traces = []

    def decay(t, x, u, p):
        traces.append(1)
        return -p["rate"] * x

    subsystem = cs.JaxOde(decay, lambda t, x, u, p: p["gain"] * x, x0=[1.0], inputs=[], outputs=["y"],
                          parameters={"rate": 1.0, "gain": 2.0}, rtol=1e-11, atol=1e-13)  # fmt: skip
    u = Polynomial(0.0, 1.0, np.zeros((1, 0)))
    subsystem.start(0.0)
    assert float(subsystem.advance(0.0, 1.0, u)[0]) == pytest.approx(2.0 * exp(-1.0), rel=1e-9)
    count = len(traces)
    subsystem.parameters = {"rate": 3.0, "gain": 1.0}
    subsystem.start(0.0)
    assert float(subsystem.advance(0.0, 1.0, u)[0]) == pytest.approx(exp(-3.0), rel=1e-9)
    assert len(traces) == count


def test_differentiate_gives_what_a_law_wants() -> None:
    """A scalar and a vector in, two values out: values by rows, all arguments by columns."""
    f = cs.jax_derivative(lambda a, w: [a * jnp.sum(w**2), jnp.exp(a) + w[1]])
    found = f(0.5, np.array([1.0, 2.0, 3.0]))
    assert found == pytest.approx(np.array([[14.0, 1.0, 2.0, 3.0], [exp(0.5), 0.0, 1.0, 0.0]]), rel=1e-15)


def test_law_with_automatic_jacobian() -> None:
    def spring(x1, v1, x2, v2):
        return 50.0 * (x2 - 2.0 * x1) ** 3 + (v2 - v1)

    system = cs.System({"one": mass("exact"), "two": mass("exact")})
    given = cs.jax_derivative(spring)
    asked = []

    def noted(*values):
        asked.append(values)
        return given(*values)

    of = ["one.x", "one.v", "two.x", "two.v"]
    system.law({"one.f": 1, "two.f": -1}, spring, of=of, jacobian=noted)
    method = cs.Implicit(degree=1, tol=1e-10)
    ours = cs.simulate(system, t_end=1.0, method=method, step=0.02)
    differenced = cs.simulate(chain("exact"), t_end=1.0, method=method, step=0.02)
    assert np.abs(ours["one.x"] - differenced["one.x"]).max() < 1e-9
    assert len(asked) >= len(ours.iterations)


# -- bad input ---------------------------------------------------------------------------------------------


def decaying(**options) -> cs.JaxOde:
    given = {"rhs": lambda t, x, u: -x + u, "output": lambda t, x, u: x, "x0": [1.0], "inputs": ["u"], "outputs": ["x"]}
    given.update(options)
    return cs.JaxOde(given.pop("rhs"), given.pop("output"), **given)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rhs": 3}, "rhs must be a function of"),
        ({"rhs": lambda t, x, u: np.sin(x)}, "rhs cannot be traced by JAX; use jax.numpy instead of numpy"),
        ({"rhs": lambda t, x, u: -x if x[0] > 0 else x}, "rhs cannot be traced by JAX.*jnp.where instead of if"),
        ({"rhs": lambda t, x, u: [x[0], x[0]]}, "rhs returns 2 numbers, expected 1, one per state"),
        ({"output": lambda t, x, u: [x, x]}, "output returns 2 numbers, expected 1"),
        ({"output": lambda t, x, u: {"y": x}}, r"values for \['y'\], expected the ports \['x'\]"),
        ({"rhs": lambda t, x, u: -x[3.5]}, "rhs cannot be traced by JAX"),
        ({"integrator": "rk45"}, "unknown integrator 'rk45'; choose one of dopri5, kvaerno5, ode1"),
        ({"integrator": "ode4"}, "takes fixed steps and needs internal_step"),
        ({"internal_step": 0.1}, "internal_step belongs to the integrators with fixed steps"),
        ({"rtol": -1.0}, "rtol must be a positive number"),
        ({"x0": [float("nan")]}, "x0 holds a NaN"),
    ],
)
def test_bad_settings(options: dict, words: str) -> None:
    with pytest.raises(cs.errors.SetupError, match=words):
        decaying(**options)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"integrator": "ode4", "internal_step": 0.01},
        pytest.param({"integrator": "radau5", "internal_step": 0.01}, marks=pytest.mark.slow),  # compile for long
        pytest.param({"integrator": "kvaerno5"}, marks=pytest.mark.slow),
    ],
)
def test_a_nan_is_never_passed_on(settings: dict) -> None:
    subsystem = decaying(rhs=lambda t, x, u: jnp.where(t > 0.5, jnp.nan, -x), **settings)
    subsystem.start(0.0)
    with pytest.raises(cs.errors.SubsystemError, match=r"NaN|nan"):
        subsystem.advance(0.0, 1.0, Polynomial(0.0, 1.0, np.zeros((1, 1))))


def test_missing_jax_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    static = lambda: cs.JaxStatic(lambda t, u: u, inputs=["u"], outputs=["y"])  # noqa: E731
    for make in (decaying, static, lambda: cs.jax_derivative(abs)):
        with pytest.raises(cs.errors.SetupError, match=r"needs jax, .*pip install 'cosolve\[jax\]'"):
            make()


def test_static_output_of_wrong_length() -> None:
    with pytest.raises(cs.errors.SetupError, match="returns 2 numbers, expected 1"):
        cs.JaxStatic(lambda t, u: [u[0], u[0]], inputs=["u"], outputs=["y"])
