"""A method that somebody adds in one file runs in every engine without another line."""

from dataclasses import dataclass

import numpy as np
import pytest

import cosolve as cs
from cosolve.verbs import asked, ending_in, extrapolated, rewind, sweep


def twice(m, o):
    """Predictor, and one repetition with what its outputs asked for (one fixed-point iteration)."""
    sweep(m, extrapolated(m, o.degree))
    z = asked(m)
    rewind(m)
    sweep(m, ending_in(m, z))
    return asked(m)


@dataclass(frozen=True)
class Twice(cs.Method):
    needs = ("rollback",)
    text = twice


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


def test_error_controlled_steps_agree_too():
    step = cs.Adaptive(rtol=1e-3)
    readable, native = run(Twice(1), compiled=False, step=step), run(Twice(1), compiled=True, step=step)
    assert native.stats.compiled_steps > 0
    assert np.array_equal(readable.t, native.t)
    assert np.array_equal(readable["two.x"], native["two.x"])
    assert readable.stats.calls == native.stats.calls
    assert readable.stats.iterations == native.stats.iterations


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


def test_a_text_with_a_verb_that_an_engine_does_not_know_is_refused_by_it_with_the_verb():
    assert "verb 'settled'" in cs.why_not_compiled(oscillators(), cs.Jacobi(1, outputs="exchanged"))
    assert "verb 'lead'" in cs.why_not_compiled(oscillators(), cs.LeaderFollower(leader="one"))


def by_word(m, o):
    sweep(m, extrapolated(m, o.degree if o.kind == "usual" else 0))
    return asked(m)


@dataclass(frozen=True)
class Wordy(cs.Method):
    """Its text reads an option that is no number, which machine code cannot."""

    kind: str = "usual"
    text = by_word


def looking(m, o):
    """Fine in Python; numba does not know `vars`."""
    assert vars(o)
    sweep(m, extrapolated(m, o.degree))
    return asked(m)


@dataclass(frozen=True)
class Looking(cs.Method):
    text = looking


@pytest.mark.parametrize(
    ("method", "words"),
    [(Wordy(1), "reads the option 'kind', which is no number"), (Looking(1), "numba cannot compile the macro step")],
    ids=["an option", "a text"],
)
@pytest.mark.parametrize("step", [0.02, cs.Adaptive(rtol=1e-3)], ids=["equal", "controlled"])
def test_a_text_that_cannot_be_machine_code_runs_in_the_readable_engine(method, words, step):
    with pytest.raises(cs.SetupError, match=words):
        run(method, compiled=True, step=step)
    assert np.array_equal(run(method, step=step)["two.x"], run(cs.Jacobi(1), step=step)["two.x"])


def test_options_that_are_numpy_numbers_are_compiled_like_others():
    method = cs.SemiImplicit(degree=np.int64(1), final_update=np.bool_(False))
    plain = cs.SemiImplicit(degree=1, final_update=False)
    assert np.array_equal(run(method, compiled=True)["two.x"], run(plain, compiled=False)["two.x"])
