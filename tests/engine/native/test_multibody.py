"""Multibody models in the compiled loop: the bits of the Python engine, its words where a step fails, and the reasons
where Python is needed.
"""

import copy
import pickle

import numba
import numpy as np
import pytest
from tests.engine.native.test_same_bits import same

import cosolve as cs
from cosolve.multibody.subsystem.kernels import _advance
from cosolve.signal.polynomial import Polynomial
from cosolve.subsystem.native import ADVANCE, REPLAY


@numba.njit
def spring(p, v, q, w):
    """Force on the first of two points: spring of stiffness 200 and free length 0, with damping."""
    return 200.0 * (q - p) + 3.0 * (w - v)


@numba.njit
def drag(p, v):
    return -0.4 * np.sqrt(np.sum(v * v)) * v - 0.1 * p


@numba.njit
def uphill(p):
    return p * p


def rod(model: cs.multibody.MultibodyModel, name: str, position: tuple[float, ...], **more: object) -> None:
    model.body(name, mass=1.0, inertia=(0.09, 0.08, 0.01), position=position, **more)
    model.marker(f"{name}_top", name, (0, 0, 0.5))
    model.marker(f"{name}_end", name, (0, 0, -0.5))


def pendulum(x: float = 0.0, links: int = 1, **options: object) -> cs.multibody.MultibodySubsystem:
    """Rods on a chain of joints below `(x, 0, 0)`; the first hangs on a ball joint, the others on hinges."""
    model = cs.multibody.MultibodyModel()
    above = "hook"
    model.marker("hook", "ground", (x, 0, 0))
    for k in range(links):
        rod(model, f"rod{k}", (x, 0, -0.5 - k), angular_velocity=(0.3, 0, 0) if links == 1 else (0, 0, 0.2))
        model.joint(f"joint{k}", "revolute" if k else "spherical", above, f"rod{k}_top")
        above = f"rod{k}_end"
    return cs.multibody.MultibodySubsystem(model, ports=[(above, ["force"])], initial="find", **options)


def coupled(one: cs.multibody.MultibodySubsystem, two: cs.multibody.MultibodySubsystem) -> cs.System:
    """The free ends pull at each other."""
    system = cs.System({"one": one, "two": two})
    ends = [port.name.removesuffix("_force") for part in (one, two) for port in part.inputs]
    seen = [
        f"{name}.{end}_{what}"
        for name, end in zip(("one", "two"), ends, strict=True)
        for what in ("position", "velocity")
    ]
    system.law({f"one.{ends[0]}_force": 1, f"two.{ends[1]}_force": -1}, spring, of=seen, name="pull")
    return system


def flying() -> cs.System:
    """A free body with drag, and one on a spring of its own, in fixed steps that do not divide the macro step."""
    free = cs.multibody.MultibodyModel()
    rod(free, "rod", (0, 0, 1), velocity=(1, 2, 0), angular_velocity=(1, 0.5, 2))
    held = cs.multibody.MultibodyModel()
    rod(held, "rod", (0.2, 0, 0), orientation=(0.8, 0.6, 0, 0))
    held.marker("wall", "ground", (0, 0, 1))
    held.spring_damper("coil", "rod_top", "wall", stiffness=80.0, damping=0.5, length=0.2)
    options = {"ports": [("rod_end", ["force"])], "integrator": "rk4", "internal_step": 4e-3}
    return coupled(
        cs.multibody.MultibodySubsystem(free, **options),
        cs.multibody.MultibodySubsystem(held, coordinates="euler_angles", **options),
    )


SYSTEMS = {
    "pendulums": lambda: coupled(pendulum(), pendulum(0.3)),
    "double pendulum and pendulum": lambda: coupled(pendulum(links=2), pendulum(0.2, rtol=1e-5)),
    "bodies in rk4": flying,
}
METHODS = [
    *(cs.Jacobi(0), cs.Jacobi(2), cs.GaussSeidel(1)),
    *(cs.SemiImplicit(0), cs.SemiImplicit(2), cs.Implicit(1), cs.Implicit(2, corrector=cs.Newton("iteration"))),
]


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.label)
def test_same_bits_in_equal_steps(method, system) -> None:
    run = {"method": method, "step": 5e-3, "t_end": 0.1}
    readable = cs.simulate(SYSTEMS[system](), **run, compiled=False)
    compiled = cs.simulate(SYSTEMS[system](), **run, compiled=True)
    assert compiled.stats.compiled_steps >= readable.stats.steps - 3  # all but the start
    same(compiled, readable)


@pytest.mark.sample(3)
@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.label)
def test_same_steps_and_bits_with_step_control(method) -> None:
    """Rejected steps go back to where they began, with the integrator's step size and its margin."""
    rejected = 0
    for rtol in (1e-1, 3e-3):
        run = {"method": method, "step": cs.Adaptive(rtol=rtol, first_step=2e-2, min_step=1e-4), "t_end": 0.3}
        readable = cs.simulate(SYSTEMS["double pendulum and pendulum"](), **run, compiled=False)
        compiled = cs.simulate(SYSTEMS["double pendulum and pendulum"](), **run, compiled=True)
        assert compiled.stats.compiled_steps >= 0.5 * readable.stats.steps
        same(compiled, readable)
        rejected += int(readable.column("rejected").sum())
    assert rejected > 0


@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.SemiImplicit(1)], ids=lambda m: m.label)
def test_same_bits_in_threads(method) -> None:
    """Each model has memory of its own, and the interpreter is free while one of them is advanced."""
    run = {"method": method, "step": 5e-3, "t_end": 0.1, "compiled": False}
    same(*(cs.simulate(SYSTEMS["double pendulum and pendulum"](), **run, workers=n) for n in (1, 2)))


@pytest.mark.parametrize("options", [{"form": "ggl", "stages": 2}, {"integrator": "radau"}], ids=["ggl", "projected"])
def test_same_bits_of_radau(options) -> None:
    run = {"method": cs.SemiImplicit(1), "step": 5e-3, "t_end": 0.05}
    runs = [
        cs.simulate(coupled(pendulum(internal_step=5e-3, **options), pendulum(0.3)), **run, compiled=compiled)
        for compiled in (False, True)
    ]
    assert runs[1].stats.compiled_steps > 5
    same(*runs)


def test_the_subsystem_step_itself() -> None:
    """By address as by method: outputs, state, step size and grid; repeated on the grid; and back again."""
    ours, theirs = pendulum(links=2), pendulum(links=2)
    for part in (ours, theirs):
        part.start(0.0)
    native = ours.native(0.02, 1)
    native.enter()
    began, y = native.state.copy(), np.zeros(19)
    kept = theirs.save()
    for mode, advance in ((ADVANCE, theirs.advance), (REPLAY, theirs.replay)):
        for slope in (5.0, 6.0):
            coefficients = np.array([[1.0, 0.0, 0.5], [slope, 1.0, 0.0]])
            assert _advance(native.data, mode, 0.0, 0.02, 0.02, 2, coefficients.ctypes.data, y.ctypes.data) == 0
            np.testing.assert_array_equal(y, advance(0.0, 0.02, Polynomial(0.0, 0.02, coefficients)))
            native.leave()
            np.testing.assert_array_equal(ours.x, theirs.x)
            assert ours.save()[1:] == theirs.save()[1:]
            native.state[:] = began
            theirs.restore(kept)


def tumbling() -> cs.System:
    """A disc that turns about its x axis until its Euler angles are singular."""
    model = cs.multibody.MultibodyModel(gravity=(0, 0, 0))
    turned = (np.cos(0.5), np.sin(0.5), 0.0, 0.0)
    spin = {"orientation": turned, "angular_velocity": (2.0, 0.0, 0.0)}
    model.body("disc", mass=1.0, inertia=(0.1, 0.1, 0.2), velocity=(0.1, 0.0, 0.0), **spin)
    model.marker("rim", "disc", (0, 0, 0))
    disc = cs.multibody.MultibodySubsystem(model, ports=[("rim", ["force"])], coordinates="euler_angles")
    system = cs.System({"disc": disc})
    system.law("disc.rim_force", drag, of=["disc.rim_position", "disc.rim_velocity"])
    return system


def running_away() -> cs.System:
    """A force that grows with the square of the place: infinite in finite time."""
    model = cs.multibody.MultibodyModel(gravity=(0, 0, 0))
    model.body("ball", mass=1.0, inertia=(1, 1, 1), position=(30, 30, 30))
    system = cs.System(
        {
            "ball": cs.multibody.MultibodySubsystem(
                model, ports=[("ball", ["force"])], integrator="rk4", internal_step=1e-2
            )
        }
    )
    system.law("ball.ball_force", uphill, of=["ball.ball_position"])
    return system


@pytest.mark.parametrize(
    ("system", "method", "words"),
    [
        (tumbling, cs.Jacobi(1), r"Euler angles of body 'disc' are singular near t = 1\.0"),
        (tumbling, cs.Implicit(1), r"Euler angles of body 'disc' are singular near t = 1\.0"),
        (running_away, cs.Jacobi(1), "returned inf"),
        (running_away, cs.Implicit(1), "did not converge"),
    ],
    ids=lambda what: getattr(what, "label", getattr(what, "__name__", "")),
)
def test_a_step_that_fails_is_told_by_the_readable_engine(system, method, words) -> None:
    ended = []
    for compiled in (False, True):
        with np.errstate(all="ignore"), pytest.raises(cs.errors.SimulationError, match=words) as failure:
            cs.simulate(system(), method=method, step=1e-2, t_end=5.0, compiled=compiled)
        ended.append((str(failure.value), failure.value.result))
    assert ended[0][0] == ended[1][0]
    same(ended[1][1], ended[0][1])
    assert ended[1][1].stats.compiled_steps > 20


def test_words_for_a_failure_that_cannot_be_undone() -> None:
    """Next to a subsystem without rollback the loop itself must say what went wrong."""
    disc = tumbling().plan().subsystems[0]
    disc.start(0.0)
    native, inputs, y = disc.native(1.1, 0), np.zeros(3), np.zeros(19)
    native.enter()
    status = _advance(native.data, ADVANCE, 0.0, 1.1, 1.1, 1, inputs.ctypes.data, y.ctypes.data)
    with pytest.raises(cs.errors.SubsystemError, match=r"Euler angles of body 'disc' are singular near t = 1\.1"):
        native.explain(status)


def test_what_calls_python_is_not_compiled() -> None:
    model = cs.multibody.MultibodyModel()
    rod(model, "rod", (0, 0, 0))
    model.load("rod_end", force=lambda t: [0.0, 0.0, np.sin(t)])
    loaded = cs.multibody.MultibodySubsystem(model, ports=[("rod_top", ["force"])])
    watched = pendulum(monitors=["energy"])
    for part, words in ((loaded, "it calls Python functions"), (watched, r"its monitors \(energy\)")):
        system = coupled(part, pendulum())
        with pytest.raises(cs.errors.SetupError, match=f"'one' cannot be advanced from compiled code: {words}"):
            cs.simulate(system, method=cs.Jacobi(1), step=1e-2, t_end=0.1, compiled=True)
    assert cs.analysis.why_not_compiled(coupled(pendulum(), pendulum()), cs.Jacobi(1), 1e-2) is None


def test_jacobians_of_its_own_stay_with_the_readable_engine() -> None:
    """They change from step to step; with differences the same system is compiled."""
    system = coupled(pendulum(sensitivities=True), pendulum(0.3))
    with pytest.raises(cs.errors.SetupError, match="'one' gives a Jacobian of its own"):
        cs.simulate(system, method=cs.SemiImplicit(1), step=1e-2, t_end=0.1, compiled=True)
    runs = [
        cs.simulate(system, method=cs.SemiImplicit(1, jacobian="difference"), step=1e-2, t_end=0.1, compiled=compiled)
        for compiled in (False, True)
    ]
    assert runs[1].stats.compiled_steps > 5
    same(*runs)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda part: pickle.loads(pickle.dumps(part))], ids=["copy", "pickle"]
)
def test_a_copy_has_its_own_memory(copied) -> None:
    part = pendulum()
    cs.simulate(coupled(part, pendulum(0.3)), method=cs.Jacobi(1), step=1e-2, t_end=0.1, compiled=True)
    other = copied(part)
    assert other.save()[1:] == part.save()[1:]
    before, at = part.x.copy(), other._stepping.memory.address
    assert at != part._stepping.memory.address
    run = {"method": cs.Jacobi(1), "step": 1e-2, "t_end": 0.1}
    again = cs.simulate(coupled(other, pendulum(0.3)), **run, compiled=True)
    np.testing.assert_array_equal(part.x, before)
    same(again, cs.simulate(coupled(pendulum(), pendulum(0.3)), **run, compiled=False))
