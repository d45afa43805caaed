"""Static subsystems given by a residual or by another program, alone and inside a coupled run."""

import copy
import sys
from pathlib import Path

import numpy as np
import pytest
from examples.nonlinear_oscillator.model import coupling_force, oscillator

import cosolve as cs
from cosolve.method.dynamic_static import DynamicStatic
from cosolve.process.static_program import StaticProgram
from cosolve.subsystem.static_residual import StaticResidual


def cubic(**options) -> StaticResidual:
    """`f + f^3 = u`, one real solution."""
    return StaticResidual(
        lambda t, x, u: x + x**3 - u, lambda t, x, u: x, x0=[0.0], inputs=["u"], outputs=["f"], **options
    )


def solution(u: float) -> float:
    roots = np.roots([1.0, 0.0, 1.0, -u])
    return float(roots[np.argmin(np.abs(roots.imag))].real)


@pytest.mark.parametrize("jacobian", [None, lambda t, x, u: [[1 + 3 * x[0] ** 2]]])
def test_residual_is_solved(jacobian) -> None:
    static = cubic(jacobian=jacobian)
    static.start(0.0)
    for u in (0.0, 2.0, -30.0, 1e6):
        assert static.output(0.0, np.array([u]))[0] == pytest.approx(solution(u), rel=1e-9, abs=1e-12)


def test_warm_start_saves_iterations_and_rolls_back_bit_for_bit() -> None:
    static = cubic()
    static.start(0.0)
    static.output(0.0, np.array([1e6]))
    cold = static.iterations
    saved = static.save()
    first = static.output(0.0, np.array([1.001e6]))
    assert static.iterations - cold <= 4 < cold
    static.output(0.0, np.array([-5.0]))
    static.restore(saved)
    assert np.array_equal(static.output(0.0, np.array([1.001e6])), first)
    static.start(0.0)
    assert static.iterations == static.solves == 0


def test_failed_solve_names_its_number_and_inputs() -> None:
    static = StaticResidual(lambda t, x, u: x**2 + u, lambda t, x, u: x, x0=[1.0], inputs=["u"], outputs=["y"])
    static.start(0.0)
    static.output(0.0, np.array([-4.0]))
    with pytest.raises(cs.errors.SubsystemError, match=r"solve 2 of the static equations with u = \[3\.\] failed"):
        static.output(0.0, np.array([3.0]))


def test_singular_jacobian_is_named() -> None:
    static = StaticResidual(
        lambda t, x, u: [x[0] + x[1] - u[0], 2 * x[0] + 2 * x[1] - 1.0], lambda t, x, u: x[0], x0=[0.0, 0.0],
        inputs=["u"], outputs=["y"],
    )  # fmt: skip
    with pytest.raises(cs.errors.SubsystemError, match="d residual / dx is singular"):
        static.output(0.0, np.array([3.0]))


def test_residual_of_the_wrong_size_is_named() -> None:
    static = StaticResidual(lambda t, x, u: [1.0, 2.0], lambda t, x, u: x, x0=[1.0], inputs=["u"], outputs=["y"])
    with pytest.raises(cs.errors.SubsystemError, match="residual returned 2 numbers, expected 1: one per unknown"):
        static.output(0.0, np.array([3.0]))


@pytest.mark.parametrize(
    ("options", "words"),
    [({"tol": 0.0}, "tol must lie"), ({"max_iterations": 0}, "max_iterations"), ({"jacobian": 3}, "jacobian must be")],
)
def test_bad_settings_of_a_residual(options: dict, words: str) -> None:
    with pytest.raises(cs.errors.SetupError, match=words):
        cubic(**options)


@pytest.mark.sample(1)
@pytest.mark.parametrize("variant", ["A", "B", "C"])
def test_implicit_force_law_gives_the_motion_of_the_explicit_one(variant: str) -> None:
    """Eq. 4.24 as it is printed, `0 = F_k - ...`: same steps, same motion."""
    implicit = StaticResidual(
        lambda t, f, u: (f - coupling_force(float(u[0]), float(u[1]))) / 1e7, lambda t, f, u: f, x0=[0.0],
        inputs=["x", "v"], outputs=["force"], tol=1e-12,
    )  # fmt: skip
    method = DynamicStatic(variant, rtol=1e-6, first_step=1e-7, max_step=1e-4)
    one = cs.simulate(oscillator(), t_end=1e-3, method=method)
    two = cs.simulate(oscillator(static=implicit), t_end=1e-3, method=method)
    assert one.stats.steps == two.stats.steps
    assert two["mass.x"][-1] == pytest.approx(one["mass.x"][-1], rel=1e-6)


# -- another program ---------------------------------------------------------------------------------------

PROGRAM = """
import json, math, os, sys, time
for line in sys.stdin:
    request = json.loads(line)
    x, v = request["inputs"]["x"], request["inputs"]["v"]
    if x > 100: sys.exit("too far out")
    if x > 50: time.sleep(60)
    if x > 40: answer = {"outputs": {"force": [1.0, 2.0]}}
    elif x > 30: answer = {"error": "mesh is tangled"}
    elif x > 20: answer = 7
    else: answer = {"outputs": {"force": -x ** 3 - 0.3 * v}, "pid": os.getpid()}
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    (tmp_path / "force.py").write_text(PROGRAM)
    return [sys.executable, str(tmp_path / "force.py")]


def external(command: list[str], **options) -> StaticProgram:
    return StaticProgram(command, inputs=["x", "v"], outputs=["force"], **options)


@pytest.mark.parametrize("keep", [True, False])
def test_program_answers(command: list[str], keep: bool) -> None:
    static = external(command, keep=keep)
    static.start(0.0)
    first = static._child
    for x in (1.0, 2.0):
        assert static.output(0.0, np.array([x, 0.1]))[0] == -(x**3) - 0.3 * 0.1
    assert first is None
    assert (static._child is None) is not keep
    static.close()


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (101.0, "ended with code 1 instead of answering; its last output: too far out"),
        (41.0, "returned 2 numbers for 'force', expected 1"),
        (31.0, "reports: mesh is tangled"),
        (21.0, "answered '7.*expected one line of JSON"),
    ],
)
def test_program_that_fails_gets_a_sentence_and_can_be_called_again(command: list[str], x: float, words: str) -> None:
    static = external(command)
    with pytest.raises(cs.errors.SubsystemError, match=words):
        static.output(0.0, np.array([x, 0.0]))
    assert static.output(0.0, np.array([1.0, 0.0]))[0] == -1.0
    static.close()


def test_program_that_hangs_is_ended(command: list[str]) -> None:
    static = external(command, timeout=0.5)
    with pytest.raises(cs.errors.SubsystemError, match=r"no answer within 0\.5 s"):
        static.output(0.0, np.array([51.0, 0.0]))
    assert static._child is None


def test_program_that_does_not_exist() -> None:
    with pytest.raises(cs.errors.SubsystemError, match="cannot run the program 'no-such-solver'"):
        external(["no-such-solver"]).output(0.0, np.zeros(2))
    with pytest.raises(cs.errors.SetupError, match="command is a list"):
        external("python force.py")


def test_coupled_run_with_a_program_in_parallel_instances(command: list[str]) -> None:
    """Perturbed solves in child processes of their own; same bits as a Python function."""
    mass = lambda: cs.Ode(  # noqa: E731
        lambda t, x, u: [x[1], u[0]], lambda t, x, u: x, x0=[1.0, 0.0], inputs=["force"], outputs=["x", "v"]
    )
    function = cs.Static(lambda t, u: -(u[0] ** 3) - 0.3 * u[1], inputs=["x", "v"], outputs=["force"])
    runs = []
    for static, workers in ((function, 1), (external(command), 1), (external(command), 2)):
        system = cs.System({"mass": mass(), "spring": static})
        system.connect("mass.x", "spring.x")
        system.connect("mass.v", "spring.v")
        system.connect("spring.force", "mass.force")
        runs.append(cs.simulate(system, t_end=1.0, method=DynamicStatic("C", rtol=1e-4), workers=workers))
        if isinstance(static, StaticProgram):
            static.close()
    assert np.array_equal(runs[0]["mass.x"], runs[1]["mass.x"])
    assert np.array_equal(runs[0]["mass.x"], runs[2]["mass.x"])


def test_copies_of_a_program_have_their_own_child(command: list[str]) -> None:
    one = external(command)
    one.output(0.0, np.zeros(2))
    two = copy.deepcopy(one)
    two.output(0.0, np.zeros(2))
    assert one._child.process.pid != two._child.process.pid
    one.close()
    two.close()


@pytest.mark.parametrize("variant", "ABC")
def test_laws_of_static_subsystems_that_follow_each_other(variant: str) -> None:
    """`x' = -a - 2 b` with `a = x` and `b = 3 a + x`, by laws of several outputs: `x' = -9 x`."""
    tank = cs.Ode(lambda t, x, u: u, lambda t, x, u: x, x0=[1.0], inputs=["u"], outputs=["x"])
    first = cs.Static(lambda t, u: u, inputs=["u"], outputs=["a"])
    second = cs.Static(lambda t, u: u, inputs=["u"], outputs=["b"])
    system = cs.System({"tank": tank, "second": second, "first": first})
    system.connect("tank.x", "first.u")
    system.law("second.u", lambda a, x: 3.0 * a + x, of=["first.a", "tank.x"])
    system.law("tank.u", lambda a, b: -a - 2.0 * b, of=["first.a", "second.b"])
    run = cs.simulate(system, t_end=0.5, method=cs.DynamicStatic(variant, rtol=1e-7))
    assert run["tank.x"] == pytest.approx(np.exp(-9.0 * run.t), abs=2e-4 if variant == "B" else 2e-6)
    assert run["second.u"] == pytest.approx(4.0 * run["tank.x"], rel=1e-6)
    assert run["second.b"] == pytest.approx(4.0 * run["tank.x"], rel=1e-6)
    assert run["tank.u"][1:] == pytest.approx(-9.0 * run["tank.x"][1:], rel=1e-6)


@pytest.mark.parametrize("variant", "ABC")
def test_outputs_that_react_at_once_are_those_of_the_new_inputs(variant: str) -> None:
    """The dynamic side gives out its rate, which is its input: of the accepted point, not of the last iterate."""
    tank = cs.Ode(lambda t, x, u: u, lambda t, x, u: [x[0], u[0]], x0=[2.0], inputs=["u"], outputs=["x", "rate"])
    spring = cs.Static(lambda t, u: -9.0 * u**3, inputs=["x"], outputs=["f"])
    system = cs.System({"tank": tank, "spring": spring})
    system.connect("tank.x", "spring.x")
    system.connect("spring.f", "tank.u")
    run = cs.simulate(system, t_end=0.3, method=cs.DynamicStatic(variant, rtol=1e-3, newton=0.1))
    assert (run["tank.rate"][1:] == run["tank.u"][1:]).all()
    assert run["tank.x"][-1] == pytest.approx((0.25 + 18.0 * 0.3) ** -0.5, rel=0.05)  # x' = -9 x^3
