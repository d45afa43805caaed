"""A method that a user adds in one file runs in every engine without another line."""

from dataclasses import dataclass

import numpy as np
import pytest

import cosolve as cs
from cosolve.operations import coupling_from_outputs, ending_in, extrapolated, predicted, rollback, sweep


def twice(m, o):
    """Predictor, and one repetition with what its outputs asked for (one fixed-point iteration)."""
    sweep(m, extrapolated(m, o.degree))
    z = coupling_from_outputs(m)
    rollback(m)
    sweep(m, ending_in(m, z))
    return coupling_from_outputs(m)


@dataclass(frozen=True)
class Twice(cs.Method):
    needs = ("rollback",)
    step_function = twice


def oscillators(k=3.0):
    def mass(stiffness, x0):
        A = [[0.0, 1.0], [-stiffness, -0.1]]
        return cs.Linear(A, [[0.0], [1.0]], [[1.0, 0.0]], x0=[x0, 0.0], inputs=["f"], outputs=["x"])

    system = cs.System({"one": mass(4.0, 1.0), "two": mass(k, 0.0)})
    system.connect("one.x", "two.f")
    system.connect("two.x", "one.f")
    return system


def run(method, step=0.02, k=3.0, **how):
    return cs.simulate(oscillators(k), t_end=2.0, method=method, step=step, **how)


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_the_readable_engine_and_machine_code_agree_in_every_bit(degree):
    readable, native = run(Twice(degree), compiled=False), run(Twice(degree), compiled=True)
    assert native.stats.compiled_steps > 90
    for name in ("one.x", "two.x", "two.f"):
        assert np.array_equal(readable[name], native[name])
    assert readable.stats.calls == native.stats.calls == {"one": 200, "two": 200}
    assert readable.stats.iterations == native.stats.iterations == 100


def test_it_does_not_end_its_steps_at_events_unless_it_says_so():
    with pytest.raises(cs.errors.CapabilityError, match="Twice does not end its macro steps at events; Jacobi"):
        run(Twice(1), stop_at_events=True)

    @dataclass(frozen=True)
    class Ending(Twice):
        stops_at_events = True

    with pytest.raises(cs.errors.SetupError, match="none of the subsystems can end a step at an event"):  # asked next
        run(Ending(1), stop_at_events=True)


def test_error_controlled_steps_agree_too():
    step = cs.Adaptive(rtol=1e-3)
    readable, native = run(Twice(1), compiled=False, step=step), run(Twice(1), compiled=True, step=step)
    assert native.stats.compiled_steps > 0
    assert np.array_equal(readable.t, native.t)
    assert np.array_equal(readable["two.x"], native["two.x"])
    assert readable.stats.calls == native.stats.calls
    assert readable.stats.iterations == native.stats.iterations


def asking(m, o):
    """The same, which asks for predictions of other degrees in between, also of more than the past allows."""
    predicted(m, o.degree + 1)
    sweep(m, ending_in(m, predicted(m, o.degree)))
    extrapolated(m, 0)
    z = coupling_from_outputs(m)
    rollback(m)
    sweep(m, ending_in(m, z))
    predicted(m, 0)
    return coupling_from_outputs(m)


@dataclass(frozen=True)
class Asking(cs.Method):
    needs = ("rollback",)
    step_function = asking


def test_the_error_estimate_is_the_distance_to_the_first_guess_whatever_else_is_asked_for():
    step = cs.Adaptive(rtol=1e-3)
    one, other = (run(method(2), compiled=False, step=step) for method in (Twice, Asking))
    assert len(one.t) == len(other.t)
    assert one.t == pytest.approx(other.t, rel=1e-12)


@pytest.mark.parametrize("degree", [0, 2])
def test_more_points_are_not_asked_for_than_there_are(degree):
    """Machine code would read beyond its memory."""
    readable, native = run(Asking(degree), compiled=False), run(Asking(degree), compiled=True)
    assert native.stats.compiled_steps > 90
    assert np.array_equal(readable["two.x"], native["two.x"])


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_blocks_of_variants_agree_with_single_runs(degree):
    stiffness = [2.0, 3.0, 5.0]
    system = {"methods": Twice(degree), "steps": 0.02, "t_end": 2.0, "record": "two.x"}
    found = cs.sweep(oscillators, {"k": stiffness}, compiled=True, **system)
    single = [run(Twice(degree), k=k, compiled=False)["two.x"][-1] for k in stiffness]
    assert np.ravel(found["two.x"]) == pytest.approx(single, rel=1e-12)


def test_one_repetition_is_of_second_order_with_degree_one():
    """Slope of the global error, with the default start, against a fine run of another method."""
    fine = run(cs.SemiImplicit(degree=3), step=1e-3)["two.x"][-1]
    errors = [abs(run(Twice(1), step=H)["two.x"][-1] - fine) for H in (0.04, 0.02, 0.01)]
    assert (-np.diff(np.log2(errors)) > 1.7).all()


def test_a_step_function_with_an_unknown_operation_is_refused_by_its_name():
    assert "operation 'reevaluated'" in cs.analysis.why_not_compiled(oscillators(), cs.Jacobi(1, outputs="exchanged"))
    assert "operation 'leader_step'" in cs.analysis.why_not_compiled(oscillators(), cs.LeaderFollower(leader="one"))


def by_word(m, o):
    sweep(m, extrapolated(m, o.degree if o.kind == "usual" else 0))
    return coupling_from_outputs(m)


@dataclass(frozen=True)
class Wordy(cs.Method):
    """The step function reads an option that is not a number; machine code cannot."""

    kind: str = "usual"
    step_function = by_word


def looking(m, o):
    """Fine in Python; numba does not know `vars`."""
    assert vars(o)
    sweep(m, extrapolated(m, o.degree))
    return coupling_from_outputs(m)


@dataclass(frozen=True)
class Looking(cs.Method):
    step_function = looking


@pytest.mark.parametrize(
    ("method", "words"),
    [(Wordy(1), "reads the option 'kind', which is no number"), (Looking(1), "numba cannot compile the macro step")],
    ids=["an option", "a text"],
)
@pytest.mark.parametrize("step", [0.02, cs.Adaptive(rtol=1e-3)], ids=["equal", "controlled"])
def test_a_text_that_cannot_be_machine_code_runs_in_the_readable_engine(method, words, step):
    with pytest.raises(cs.errors.SetupError, match=words):
        run(method, compiled=True, step=step)
    assert np.array_equal(run(method, step=step)["two.x"], run(cs.Jacobi(1), step=step)["two.x"])


def test_options_that_are_numpy_numbers_are_compiled_like_others():
    method = cs.SemiImplicit(degree=np.int64(1), final_update=np.bool_(False))
    plain = cs.SemiImplicit(degree=1, final_update=False)
    assert np.array_equal(run(method, compiled=True)["two.x"], run(plain, compiled=False)["two.x"])
