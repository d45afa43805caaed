"""What the campaigns found, one by one: each of these failed before it was mended."""

import gc
import json
import tracemalloc

import numpy as np
import pytest

import cosolve as cs
from cosolve.basics.checks import is_number
from cosolve.engine.native import operations
from cosolve.engine.native.loops import compiled_step_function
from cosolve.engine.step_functions import bind_step_function
from cosolve.fmu import findings
from cosolve.process.worker import LocalServer


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def tank(rhs=lambda t, x, u: u - x, output=lambda t, x, u: x, **options):
    return cs.Ode(rhs, output, x0=[1.0], inputs=["q"], outputs=["h"], **options)


def stopped(system, **options) -> str:
    with pytest.raises(cs.errors.SimulationError) as caught:
        cs.simulate(system, t_end=1.0, step=0.1, **{"method": cs.Jacobi(1), **options})
    assert "\n" not in str(caught.value)
    assert caught.value.result is not None
    return str(caught.value)


def driven(function) -> cs.System:
    system = cs.System({"tank": tank()})
    system.set("tank.q", function)
    return system


# -- what users' functions raise -----------------------------------------------------------------------------------


def raising(error):
    def function(t, x, u):
        raise error

    return driven_by_output(function)


def driven_by_output(function) -> cs.System:
    system = cs.System({"tank": tank(output=function)})
    system.set("tank.q", 0.0)
    return system


def test_an_exception_that_cannot_be_shown_is_told():
    said = stopped(raising(Unprintable()))
    assert "its text cannot be shown, because that raises RuntimeError (Unprintable)" in said


def test_an_exception_of_two_lines_is_told_in_one():
    assert "first second (ValueError)" in stopped(raising(ValueError("first\n   second")))


def test_an_exception_that_cannot_be_shown_leaves_a_process_alive():
    """The worker answers with the failure, instead of dying over its text."""
    from cosolve.process import message as m

    class Bad(cs.Subsystem):
        inputs, outputs = (), ("x",)

        def start(self, t0):
            raise Unprintable

    server = LocalServer()
    server.subsystem = Bad()
    answer = m.read_answer(memoryview(b"".join(server.answer(_bytes(m.write_request(m.START, times=(0, 0, 0, 0)))))))
    assert answer.form == m.FAILURE
    assert "cannot be shown" in server.contents.unpack(answer.value)[2]


def _bytes(parts) -> memoryview:
    return memoryview(b"".join(bytes(part) for part in parts))


# -- what users' functions return ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("1.0", "text instead of real numbers"),
        (np.datetime64("2020-01-01"), "dates instead of real numbers"),
        (1 + 1j, "complex numbers instead of real numbers"),
    ],
)
def test_a_driven_input_takes_real_numbers_only(value, words):
    """NumPy would have made numbers of them: seconds of a date, the real part."""
    assert words in stopped(driven(lambda t: 0.0 if t < 0.5 else value))


def test_a_law_jacobian_of_text_is_refused():
    system = cs.System({"a": tank(), "b": tank()})
    system.connect("a.h", "b.q")
    system.law("a.q", lambda h: 2.0 * h, of=["b.h"], jacobian=lambda h: [["2.0"]])
    assert "the Jacobian of the law for a.q returned [['2.0']]" in stopped(system, method=cs.SemiImplicit(1))


def test_a_solver_that_stands_still_is_ended():
    """LSODA takes steps that round to nothing, for ever."""
    mass = cs.Ode(
        lambda t, x, u: [x[1], -40.0 * x[0] - 2.0 * x[1] + u[0]],
        lambda t, x, u: x,
        x0=[-1.0, 0.0],
        inputs=["f"],
        outputs=["x", "v"],
        integrator="LSODA",
    )
    system = cs.System({"mass": mass})
    system.set("mass.f", -2e301)
    assert "does not get beyond t" in stopped(system)


@pytest.mark.parametrize("t", [0.0, -1.0, float("nan")])
def test_a_free_running_solver_must_move_forward(t):
    class Still(cs.Subsystem):
        inputs, outputs = ("q",), ("h",)

        def start(self, t0):
            return 1.0

        def step(self, t0, t_max, u):
            return t, 1.0

    system = cs.System({"tank": cs.InterpolatedOutputs(Still())})
    system.set("tank.q", 0.0)
    assert "a step must move forward" in stopped(system)


# -- odd arguments -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda: cs.load_result(3),
        lambda: cs.load_result("a" * 5000),
        lambda: cs.load_system([]),
        lambda: cs.fmi.read_ssp(None),
        lambda: cs.fmi.export_fmu(cs.System({"a": tank()}), 1.5),
        lambda: cs.analysis.convergence_order([0.1], "x"),
        lambda: cs.analysis.nrmse("x", [1.0]),
        lambda: cs.check(3),
        lambda: cs.analysis.spectral_radius(driven(0.0), cs.Jacobi(), "x"),
        lambda: cs.analysis.order_estimate(3, "jacobi", step=0.1, t_end=1.0, names=["a"]),
        lambda: cs.multibody.MultibodyModel().marker("a", []),
        lambda: cs.DynamicStatic([]),
        lambda: cs.DynamicStatic("A", order=np.zeros(2)),
        lambda: cs.Broyden(initial=np.zeros(2)),
        lambda: cs.Anderson(mixing=10**400),
        lambda: cs.Newton(np.zeros(0)),
        lambda: cs.Adaptive(rtol=1e-3, max_step=np.zeros(2)),
        lambda: tank(integrator=[]),
        lambda: cs.System({"a": tank()}).law("a.q", lambda h: h, of=1.5),
        lambda: cs.System({"a": tank()}).equations({"z": "a.q"}, lambda z, h: z - h, of="a.h", initial=1.0),
        lambda: cs.simulate(driven(0.0), t_end=1.0, method="jacobi", step=0.1, startup="x"),
        lambda: cs.simulate(driven(0.0), t_end=1.0, method="jacobi", step=0.1, record=1.0),
        lambda: cs.simulate(driven(0.0), t_end=1.0, method="jacobi", step=0.1, progress=range(3)),
        lambda: cs.simulate(driven(0.0), t_end=1.0, method="jacobi", step=0.1, stop_at_events=np.zeros(0)),
        lambda: cs.remote.StaticProgram(1.5, inputs=[], outputs=["y"]),
        lambda: cs.Static(np.zeros((2, 2, 2)), inputs=[], outputs=["y"]),
    ],
)
def test_odd_arguments_are_refused_in_a_sentence(call):
    with pytest.raises(cs.CosolveError) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert 10 < len(str(caught.value)) < 1500


def test_whole_numbers_of_any_size_are_numbers():
    assert is_number(10**30)
    assert not is_number(10**400)


# -- memory --------------------------------------------------------------------------------------------------------


def test_the_step_function_of_a_method_is_compiled_once():
    """Every compiled run made its loop anew, and 1.2 MB of machine code stayed in memory."""
    from pathlib import Path

    method = cs.SemiImplicit(degree=1)
    first, second = (
        bind_step_function(
            method, method.declaration, operations.OPERATIONS, compiled_step_function, Path(operations.__file__)
        ).step
        for _ in range(2)
    )
    assert first is second


@pytest.mark.parametrize("method", [cs.Jacobi(degree=1), cs.SemiImplicit(degree=1)], ids=["explicit", "semi-implicit"])
def test_a_compiled_run_leaves_nothing_behind(method):
    """Neither objects nor memory of arrays, which the collector of Python does not see but tracemalloc does."""
    system = cs.System(
        {name: cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["q"], outputs=["h"]) for name in "ab"}
    )
    system.connect("a.h", "b.q")
    system.connect("b.h", "a.q")
    objects, sizes = [], []
    tracemalloc.start()
    try:
        for _ in range(8):
            result = cs.simulate(system, t_end=100.0, method=method, step=0.01, compiled=True)
            size = sum(result[name].nbytes for name in result.names)
            del result
            gc.collect()
            objects.append(len(gc.get_objects()))
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert size > 300_000
    assert objects[-1] - objects[1] < 6  # less than one for each run
    assert sizes[-1] - sizes[1] < size / 10  # of six runs; one array of one of them is a quarter of `size`


# -- runs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.Implicit(1)], ids=["explicit", "implicit"])
def test_a_run_without_an_end_is_refused(method):
    """It would go on for ever; `Stepper` is for that."""
    tank = cs.Linear([[-1]], [[1]], [[1]], x0=[1], inputs=["q"], outputs=["h"])
    with pytest.raises(
        cs.errors.SetupError, match="t_end must be a finite number, not None; a Stepper runs without an end"
    ):
        cs.simulate(cs.System({"tank": tank}), t_end=None, method=method, step=0.1, max_steps=20)


@pytest.mark.parametrize("given", [np.zeros(0), np.zeros(2), np.array(["auto", "auto"])], ids=["empty", "two", "texts"])
def test_an_array_is_no_method_and_no_error_bar(given):
    """Comparing an array with a word gives an array, which is neither true nor false."""
    tank = cs.Linear([[-1]], [[1]], [[1]], x0=[1], inputs=["q"], outputs=["h"])
    for options in ({"method": given, "step": 0.1}, {"method": given, "rtol": 1e-3}):
        with pytest.raises(cs.errors.SetupError, match="method"):
            cs.simulate(cs.System({"tank": tank}), t_end=1.0, **options)
    with pytest.raises(cs.errors.SetupError, match="method"):
        cs.choose(cs.System({"tank": tank}), t_end=1.0, method=given)
    with pytest.raises(cs.errors.SetupError, match="error_bar must be True, False or 'sure'"):
        cs.simulate(cs.System({"tank": tank}), t_end=1.0, method="jacobi", step=0.1, error_bar=given)


def test_a_trial_of_an_fmu_is_made_of_texts(tmp_path):
    """A claim that is a table was looked up among the claims."""
    (tmp_path / "modelDescription.xml").write_text("<fmiModelDescription/>")
    finding = {"claim": {"a": 1}, "verdict": "fails", "text": "other numbers"}
    content = {"format": findings.FORMAT, "digest": findings.facts.digest(tmp_path), "findings": [finding]}
    (tmp_path / "trial.json").write_text(json.dumps(content))
    with pytest.raises(cs.errors.SetupError, match=r"is not the trial of an FMU \(a finding is made of texts\)"):
        findings.facts.read(tmp_path / "trial.json", tmp_path)
