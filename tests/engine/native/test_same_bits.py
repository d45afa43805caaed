"""The compiled loop and the Python engine give the same bits, whatever the method and the system."""

import ctypes
import ctypes.util

import numba
import numpy as np
import pytest
from examples.two_mass.model import force_displacement, lu, split
from tests.choice import quick

import cosolve as cs

#: Steps beyond every limit, and loops that explicit methods leave open: bits are compared, whatever they say.
pytestmark = pytest.mark.filterwarnings("ignore::cosolve.errors.StabilityWarning")

METHODS = {
    "jacobi 0": cs.Jacobi(0),
    "jacobi 3": cs.Jacobi(3),
    "gauss-seidel 0": cs.GaussSeidel(0),
    "gauss-seidel 2, other order": cs.GaussSeidel(2, order=["two", "one"]),
    "semi-implicit 0": cs.SemiImplicit(0),
    "semi-implicit 2": cs.SemiImplicit(2),
    "semi-implicit 1, guess of degree 0": cs.SemiImplicit(1, predictor=0),
    "semi-implicit 0, guess of degree 2": cs.SemiImplicit(0, predictor=2),
    "implicit 0, guess of degree 2": cs.Implicit(0, predictor=2),
    "semi-implicit 1, no final update": cs.SemiImplicit(1, final_update=False),
    "semi-implicit 2, differences": cs.SemiImplicit(2, jacobian="difference"),
    "implicit 1": cs.Implicit(1),
    "semi-implicit 0, means": cs.SemiImplicit(0, signal="bdf"),
    "semi-implicit 1, means": cs.SemiImplicit(1, signal="bdf"),
    "semi-implicit 2, means, differences": cs.SemiImplicit(2, signal="bdf", jacobian="difference"),
    "implicit 2, means": cs.Implicit(2, signal="bdf"),
    "semi-implicit, two points": cs.SemiImplicit(1, signal="collocation"),
    "semi-implicit, two points, differences": cs.SemiImplicit(1, signal="radau", jacobian="difference"),
    "implicit, two points": cs.Implicit(1, signal="radau"),
    "implicit 1, means, guess of degree 2": cs.Implicit(1, signal="bdf", predictor=2),
    "implicit 2, every iteration, differences": cs.Implicit(2, jacobian="difference", corrector=cs.Newton("iteration")),
    "implicit 0, absolute": cs.Implicit(0, absolute=True, tol=1e-9, atol=1e-8),
}


@numba.njit
def pendulum(t, x, u):
    slope = np.empty(2)
    slope[0] = x[1]
    slope[1] = -9.81 * np.sin(x[0]) - 0.1 * x[1] + u[0] + np.cos(3.0 * t)
    return slope


@numba.njit
def motion(t, x, u):
    return x


@numba.njit
def angle(t, x, u):
    return x[0] + 0.001 * u[0]


@numba.njit
def bush(x1, v1, x2, v2):
    return 50.0 * (x2 - x1) + 0.5 * (v2 - v1) + 20.0 * (x2 - x1) ** 3


@numba.njit
def two_forces(a, b):
    return 30.0 * (b - a) + np.sin(a), np.tanh(a - b)


def pendulums(solver: str, h: float | None = None, law=bush) -> cs.System:
    def ode(x0: list[float]) -> cs.Subsystem:
        return cs.Ode(pendulum, motion, x0=x0, inputs=["f"], outputs=["x", "v"], integrator=solver, internal_step=h)

    system = cs.System({"one": ode([1.0, 0.0]), "two": ode([0.0, 0.5])})
    system.law({"one.f": 1, "two.f": -1}, law, of=["one.x", "one.v", "two.x", "two.v"], name="force")
    return system


def unlike() -> cs.System:
    """A linear mass and a pendulum with a scalar output and feed-through, a law with two values, constants, factors."""
    mass = cs.Linear([[0, 1], [-40, -1]], [[0, 0], [1, 2]], [[1, 0]], x0=[0.3, 0], inputs=["f", "g"], outputs=["x"])
    ode = cs.Ode(pendulum, angle, x0=[0.2, 0.0], inputs=["f"], outputs=["x"], integrator="ode3", internal_step=3e-3)
    tail = cs.Linear([[-3]], [[1, 2]], [[1]], x0=[0.1], inputs=["a", "b"], outputs=["y"])
    system = cs.System({"one": mass, "two": ode, "tail": tail})
    system.law(["one.f", "two.f"], two_forces, of=["one.x", "two.x"])
    system.connect("one.x", "tail.a")
    system.connect("tail.y", "one.g")
    system.set("tail.b", 0.25)
    return system


SYSTEMS = {
    "force/displacement": lambda: force_displacement(),
    "displacement/displacement": lambda: split("D/D", lu()),
    "pendulums, ode4": lambda: pendulums("ode4", 4e-3),
    "pendulums, adaptive": lambda: pendulums("auto"),
    "pendulums, stiff solver": lambda: pendulums("rodas4"),
    "unlike subsystems": unlike,
}


def same(ours: cs.Result, theirs: cs.Result) -> None:
    for name in ("t", "y", "z", "H", "iterations", "residual", "rejected", "calls", "norms_end", "norms"):
        np.testing.assert_array_equal(ours.column(name), theirs.column(name), err_msg=name)
    assert (ours.stats.calls, ours.stats.jacobians) == (theirs.stats.calls, theirs.stats.jacobians)
    assert (ours.stats.steps, ours.stats.iterations) == (theirs.stats.steps, theirs.stats.iterations)
    np.testing.assert_equal(ours.stats.max_residual, theirs.stats.max_residual)


@pytest.mark.sample(14)
@pytest.mark.parametrize("system", quick(SYSTEMS, *(name for name in SYSTEMS if name != "pendulums, stiff solver")))
@pytest.mark.parametrize("method", METHODS)
def test_same_bits(method, system) -> None:
    run = {"method": METHODS[method], "step": 1e-3, "t_end": 0.06}
    if system == "force/displacement" and METHODS[method].degree == 0:
        run["t_end"] = 0.02  # Schmoll's oscillator is unstable there
    readable = cs.simulate(SYSTEMS[system](), **run, compiled=False)
    compiled = cs.simulate(SYSTEMS[system](), **run, compiled=True)
    assert compiled.stats.compiled_steps >= readable.stats.steps - 5  # all but the start
    assert readable.stats.compiled_steps == 0
    same(compiled, readable)


@pytest.mark.parametrize("every", [1, 7, 1000])
@pytest.mark.parametrize("save", [False, True])
def test_same_rows_when_some_are_left_out(every, save, tmp_path) -> None:
    run = {"method": cs.Implicit(1), "step": 1e-3, "t_end": 0.0605, "every": every, "record": ["force", "one.x"]}
    readable = cs.simulate(pendulums("ode4", 1e-3), **run, compiled=False)
    path = tmp_path / "run.h5"
    compiled = cs.simulate(pendulums("ode4", 1e-3), **run, compiled=True, save=path if save else None)
    same(compiled, readable)
    if save:
        same(cs.load_result(path), readable)


def test_a_run_goes_on_from_a_saved_state_in_either_engine(tmp_path) -> None:
    """Readable to the middle, compiled from there (and the other way round), like one run."""
    run = {"method": cs.SemiImplicit(2), "step": 1e-3}
    whole = cs.simulate(pendulums("auto"), **run, t_end=0.1, compiled=False)
    for first in (True, False):
        stepper = cs.Stepper(pendulums("auto"), **run, t_end=0.1)
        with stepper:
            stepper.run_until(0.05)
            stepper.save_file(tmp_path / "half.state")
        rest = cs.simulate(pendulums("auto"), **run, t_end=0.1, compiled=first, resume=tmp_path / "half.state")
        np.testing.assert_array_equal(rest["one.x"], whole["one.x"][50:])


@numba.cfunc("float64(float64, float64)")
def stiffness(a, b):
    return 40.0 * (b - a)


library = ctypes.CDLL(ctypes.util.find_library("m"))
library.hypot.restype, library.hypot.argtypes = ctypes.c_double, [ctypes.c_double] * 2


@pytest.mark.parametrize("law", [stiffness, library.hypot], ids=["cfunc", "C function"])
def test_laws_given_as_compiled_functions(law) -> None:
    system = pendulums("ode4", 4e-3, law=numba.njit(lambda x1, v1, x2, v2: 0.0))
    system = cs.System({name: system.subsystems[name] for name in ("one", "two")})
    system.law({"one.f": 1, "two.f": -1}, law, of=["one.x", "two.x"])
    run = {"method": cs.SemiImplicit(1), "step": 1e-3, "t_end": 0.06}
    ours, theirs = cs.simulate(system, **run, compiled=True), cs.simulate(system, **run, compiled=False)
    same(ours, theirs)


def test_c_functions_of_something_else_are_left_to_the_readable_engine() -> None:
    system = pendulums("ode4", 4e-3)
    system = cs.System({name: system.subsystems[name] for name in ("one", "two")})
    system.law({"one.f": 1, "two.f": -1}, ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_float)(abs), of="one.x")
    assert "not made of Python" in str(cs.analysis.why_not_compiled(system, cs.Jacobi(0), 1e-3))


@numba.njit
def pendulum_in_c(t, x, u):
    slope = np.empty(2)
    slope[0] = x[1]
    slope[1] = -9.81 * library_sin(x[0]) + u[0]
    return slope


library_sin = library.sin
library_sin.restype, library_sin.argtypes = ctypes.c_double, [ctypes.c_double]


def test_an_ode_that_calls_a_c_library() -> None:
    ports = {"inputs": ["f"], "outputs": ["x", "v"]}
    ode = {
        k: cs.Ode(pendulum_in_c, motion, x0=[k, 0.0], **ports, integrator="ode4", internal_step=4e-3)
        for k in (0.5, 1.0)
    }
    system = cs.System({"one": ode[0.5], "two": ode[1.0]})
    system.law({"one.f": 1, "two.f": -1}, bush, of=["one.x", "one.v", "two.x", "two.v"])
    run = {"method": cs.Jacobi(1), "step": 1e-3, "t_end": 0.06}
    same(cs.simulate(system, **run, compiled=True), cs.simulate(system, **run, compiled=False))


@numba.njit
def friction(x1, v1, x2, v2):
    return 50.0 * (x2 - x1) + 5.0 * np.tanh(20.0 * (v2 - v1))


def test_steps_that_are_accepted_without_convergence() -> None:
    """One correction is too few where the relative velocity changes its sign: those steps are advanced by the readable
    engine, which decides on them, and machine code goes on from what it has accepted."""
    method = cs.Implicit(1, tol=1e-6, max_iterations=1, accept_unconverged=True)
    run = {"method": method, "step": 0.01, "t_end": 0.8}
    readable = cs.simulate(pendulums("ode4", 4e-3, friction), **run, compiled=False)
    compiled = cs.simulate(pendulums("ode4", 4e-3, friction), **run, compiled=True)
    same(compiled, readable)
    assert compiled.stats.unconverged == readable.stats.unconverged == 2
    assert compiled.stats.compiled_steps == readable.stats.steps - 3  # the start, and those two
