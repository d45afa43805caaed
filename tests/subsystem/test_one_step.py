"""`OneStep`: a solver's own time step as a function, in both engines, with its own Jacobian or with differences."""

import numba
import numpy as np
import pytest

import cosolve as cs

J, D, K = 2.0, 0.3, 40.0  # inertia, damping, hardening spring


@numba.njit
def wheel(t, H, x, u, new, y):
    """`J w' + D w + D w^3 = u`, BDF2 with one step of BDF1 (the flag is state 2), solved by Newton."""
    first = x[2] == 0.0
    a = (1.0 if first else 1.5) / H
    past = x[0] / H if first else (2.0 * x[0] - 0.5 * x[1]) / H
    w = x[0]
    for _ in range(50):
        r = J * (a * w - past) + D * w + D * w**3 - u[0] - u[1]
        dw = r / (J * a + D + 3.0 * D * w**2)
        w -= dw
        if abs(dw) <= 1e-15 * (1.0 + abs(w)):
            break
    new[0], new[1], new[2] = w, x[0], 1.0
    y[0], y[1] = w, w**2
    return 7 if abs(w) > 50.0 else 0


@numba.njit
def wheel_jacobian(t, H, x, u, D_):
    new, y = np.empty(3), np.empty(2)
    wheel(t, H, x, u, new, y)
    a = (1.0 if x[2] == 0.0 else 1.5) / H
    slope = 1.0 / (J * a + D + 3.0 * D * new[0] ** 2)
    D_[0, 0] = D_[0, 1] = slope
    D_[1, 0] = D_[1, 1] = 2.0 * new[0] * slope


@numba.njit
def shaft(t, H, x, u, new, y):
    """A torsion spring that integrates the difference of two speeds (trapezoidal rule)."""
    new[0] = x[0] + 0.5 * H * (u[0] - u[1] + x[1])
    new[1] = u[0] - u[1]
    y[0] = K * new[0] + 0.2 * (u[0] - u[1])


def one(w: float, jacobian=wheel_jacobian, step=wheel, **more):
    return cs.OneStep(
        step,
        x0=[w, w, 0.0],
        y0=[w, w**2],
        inputs=["torque", "load"],
        outputs=["speed", "square"],
        jacobian=jacobian,
        **more,
    )


def drive(jacobian=wheel_jacobian) -> cs.System:
    spring = cs.OneStep(shaft, x0=[0.0, 1.0], y0=[0.2], inputs=["a", "b"], outputs=["torque"])
    system = cs.System({"motor": one(1.0, jacobian), "fan": one(0.0, jacobian), "shaft": spring})
    system.connect("motor.speed", "shaft.a")
    system.connect("fan.speed", "shaft.b")
    system.law({"motor.torque": -1.0, "fan.torque": 1.0}, _same, of=["shaft.torque"])
    system.law("motor.load", _push, of=["motor.speed"])
    system.set("fan.load", 0.0)
    return system


@numba.njit
def _same(torque):
    return torque


@numba.njit
def _push(w):
    return 3.0 - 0.5 * w


METHODS = {
    "jacobi": cs.Jacobi(1),
    "semi-implicit": cs.SemiImplicit(1),
    "implicit": cs.Implicit(1, tol=1e-11),
    "every iteration": cs.Implicit(2, corrector=cs.Newton("iteration")),
}


@pytest.mark.parametrize("name", METHODS)
def test_both_engines_give_the_same_bits_with_the_solver_s_own_jacobian(name):
    runs = [
        cs.simulate(drive(), t_end=0.5, step=0.005, method=METHODS[name], compiled=compiled)
        for compiled in (True, False)
    ]
    assert runs[0].stats.compiled_steps > 90
    assert not runs[1].stats.compiled_steps
    for signal in ("motor.speed", "fan.square", "shaft.torque"):
        assert np.array_equal(runs[0][signal], runs[1][signal])
    assert runs[0].stats.jacobians == runs[1].stats.jacobians


@pytest.mark.slow
def test_steps_of_changing_length_are_compiled_with_it_too():
    runs = [
        cs.simulate(drive(), t_end=0.5, step=cs.Adaptive(rtol=1e-3), method=cs.Implicit(1), compiled=compiled)
        for compiled in (True, False)
    ]
    assert np.array_equal(runs[0].t, runs[1].t)
    assert np.array_equal(runs[0]["fan.speed"], runs[1]["fan.speed"])


def test_the_own_jacobian_is_the_one_that_differences_find_and_spares_their_subsystem_steps():
    runs = [
        cs.simulate(drive(jacobian), t_end=0.5, step=0.005, method=cs.Implicit(1, tol=1e-11))
        for jacobian in (wheel_jacobian, None)
    ]
    assert runs[0]["fan.speed"] == pytest.approx(runs[1]["fan.speed"], rel=1e-9)
    assert not cs.analysis.check_jacobians(drive(), step=0.005, method=cs.Implicit(1), after=3)
    assert runs[0].stats.calls["fan"] < 0.7 * runs[1].stats.calls["fan"]


def test_the_order_is_that_of_the_solver_s_own_rule_with_the_default_start():
    """BDF2 with one BDF1 step is second order; the coupling is solved to tolerance, so it must stay so."""
    ends = [
        cs.simulate(drive(), t_end=0.5, step=0.5 / n, method=cs.Implicit(1, tol=1e-12))["fan.speed"][-1]
        for n in (50, 100, 200, 400)
    ]
    e = np.abs(np.diff(ends))
    assert np.log2(e[:-1] / e[1:]) == pytest.approx([2.0, 2.0], abs=0.25)


def test_check_knows_the_limit_before_the_run():
    """An inertia driven through its own acceleration: loose coupling of an added mass has a limit in the ratio."""

    @numba.njit
    def mass(t, H, x, u, new, y):  # the force -m a of an added mass, by backward differences of the speed
        new[0] = u[0]
        y[0] = -1.0 * (u[0] - x[0]) / H

    @numba.njit
    def body(t, H, x, u, new, y):
        new[0] = x[0] + H * u[0] / 0.9
        y[0] = new[0]

    @numba.njit
    def heavy(t, H, x, u, new, y):
        new[0] = x[0] + H * u[0] / 1.1
        y[0] = new[0]

    radii = []
    for step in (body, heavy):
        b = cs.OneStep(step, x0=[1.0], y0=[1.0], inputs=["f"], outputs=["v"])
        w = cs.OneStep(mass, x0=[1.0], y0=[0.0], inputs=["v"], outputs=["f"])
        system = cs.System({"body": b, "water": w})
        system.connect("body.v", "water.v")
        system.connect("water.f", "body.f")
        radii.append(cs.analysis.spectral_radius(system, cs.GaussSeidel(0, order=["body", "water"]), step=0.01))
    assert radii[0] > 1.0 + 1e-3 > 1.0 >= radii[1] - 1e-9


def test_begin_finds_state_and_outputs_for_the_inputs_at_the_start():
    def begin(t, u):
        return [u[0], u[0], 0.0], [u[0], u[0] ** 2]

    system = cs.System(
        {"wheel": one(0.0, begin=begin), "source": cs.Static(lambda t, u: 2.5, inputs=[], outputs=["y"])}
    )
    system.connect("source.y", "wheel.torque")
    system.set("wheel.load", 0.0)
    result = cs.simulate(system, t_end=0.01, step=0.005, method=cs.Jacobi(0))
    assert result["wheel.square"][0] == 6.25


def test_a_status_becomes_the_sentence_of_failure_and_the_result_so_far_is_kept():
    def failure(status, t, H, x, u):
        return f"wheel burst ({status}) at {x[0]:.0f} rad/s"

    system = cs.System({"wheel": one(49.0, failure=failure)})
    system.set("wheel.torque", 60000.0)
    system.set("wheel.load", 0.0)
    for step in (0.02, 0.02):
        with pytest.raises(cs.errors.SubsystemError, match=r"'wheel' .*wheel burst \(7\)"):
            cs.simulate(system, t_end=5.0, step=step, method=cs.Jacobi(0))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: cs.OneStep(3, x0=[0], y0=[0], inputs=["u"], outputs=["y"]), "step"),
        (lambda: cs.OneStep(lambda t, x: 0, x0=[0], y0=[0], inputs=["u"], outputs=["y"]), "called with 6 arguments"),
        (lambda: cs.OneStep(shaft, x0=[0], y0=[0, 1], inputs=["u"], outputs=["y"]), "y0 must be 1 finite number"),
        (lambda: cs.OneStep(shaft, x0=[np.nan], y0=[0], inputs=["u"], outputs=["y"]), "x0"),
        (lambda: one(1.0, jacobian=lambda t: 0), "jacobian takes"),
    ],
)
def test_bad_input_gets_a_sentence(make, sentence):
    with pytest.raises(cs.errors.SetupError, match=sentence):
        make()


def test_a_step_that_forgets_a_state_is_named():
    def forgetful(t, H, x, u, new, y):
        new[0], y[0] = x[0], x[0]

    system = cs.System({"a": cs.OneStep(forgetful, x0=[1.0, 2.0], y0=[1.0], inputs=["u"], outputs=["y"])})
    system.connect("a.y", "a.u")
    with pytest.raises(cs.errors.NonFiniteError, match="left state 1 at nan"):
        cs.simulate(system, t_end=1.0, step=0.1, method=cs.Jacobi(0))


def test_a_plain_python_step_says_what_would_compile_it():
    def plain(t, H, x, u, new, y):
        new[0] = y[0] = x[0] + H * u[0]

    system = cs.System({"a": cs.OneStep(plain, x0=[1.0], y0=[1.0], inputs=["u"], outputs=["y"])})
    system.connect("a.y", "a.u")
    assert "numba.njit" in str(cs.analysis.why_not_compiled(system, cs.Jacobi(0), step=0.1))


def test_a_field_between_two_solvers_is_compiled_and_bends_no_bit():
    """Ninety coupling variables, laws that read many of them: sums must be added up in one order everywhere."""
    n = 44

    @numba.njit
    def string(t, H, x, u, new, y):
        for k in range(n):
            new[n + k] = x[n + k] + H * (u[k] - 0.1 * x[k] ** 3)
            new[k] = x[k] + H * new[n + k]
            y[k] = new[k]
        y[n] = 0.0
        for k in range(n):
            y[n] += new[k] * (k + 1.0)

    @numba.njit
    def bed(t, H, x, u, new, y):
        for k in range(n):
            y[k] = -(50.0 + k) * u[k] - (0.0 if k == 0 else 3.0 * (u[k] - u[k - 1]))
        y[n] = np.sin(u[n])
        new[0] = 0.0

    def coupled() -> cs.System:
        field = cs.OneStep(
            string,
            x0=np.concatenate([np.sin(np.arange(n) / 7.0), np.zeros(n)]),
            y0=np.concatenate([np.sin(np.arange(n) / 7.0), [0.0]]),
            inputs=[("load", n)],
            outputs=[("shape", n), "moment"],
        )
        base = cs.OneStep(
            bed,
            x0=[0.0],
            y0=np.zeros(n + 1),
            inputs=[("shape", n), "moment"],
            outputs=[("load", n), "answer"],
        )
        system = cs.System({"string": field, "bed": base})
        system.connect("string.shape", "bed.shape")
        system.connect("string.moment", "bed.moment")
        system.connect("bed.load", "string.load")
        return system

    runs = [
        cs.simulate(coupled(), t_end=0.02, step=0.001, method=cs.Implicit(1, corrector=cs.Newton()), compiled=compiled)
        for compiled in (True, False)
    ]
    assert runs[0].stats.compiled_steps > 10
    assert np.array_equal(runs[0]["string.shape"], runs[1]["string.shape"])
