"""Observers: the order of their calls, what they may do, and what happens when they fail."""

import numpy as np
import pytest

import cosolve as cs


def tanks():
    def tank(level):
        return cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[level], inputs=["q"], outputs=["h"])

    system = cs.System({"one": tank(1.0), "two": tank(0.0)})
    system.connect("one.h", "two.q")
    system.connect("two.h", "one.q")
    return system


class Diary(cs.Observer):
    """Writes down what it is told."""

    def __init__(self, most=None):
        self.most, self.calls, self.t, self.h = most, [], [], []

    def start(self, run):
        self.calls.append("start")
        self.t.append(run.t)
        self.h.append(run["one.h"])

    def limit(self, run):
        return np.inf if self.most is None else self.most

    def accepted(self, run, steps):
        self.calls.append("accepted")
        self.t += steps.t.tolist()
        self.h += run.values(steps, "one.h").tolist()

    def rejected(self, run, attempts):
        self.calls.append(f"rejected {attempts}")

    def restored(self, run):
        self.calls.append("restored")

    def finished(self, run, failure):
        self.calls.append("finished" if failure is None else f"finished: {type(failure).__name__}")

    def closed(self, run, result):
        self.calls.append(f"closed {len(result.t)}")


RUN = {"t_end": 1.0, "method": cs.SemiImplicit(degree=1), "step": 0.1}


@pytest.mark.parametrize("compiled", [False, True])
def test_every_engine_shows_every_step_in_order(compiled):
    diary = Diary()
    result = cs.simulate(tanks(), **RUN, compiled=compiled, observers=[diary])
    assert diary.t == result.t.tolist()
    assert diary.h == result["one.h"].tolist()
    assert (diary.calls[0], *diary.calls[-2:]) == ("start", "finished", "closed 11")
    assert set(diary.calls[1:-2]) == {"accepted"}


@pytest.mark.parametrize("compiled", [False, True])
def test_a_limit_of_one_shows_each_step_by_itself_and_changes_no_bit(compiled):
    diary = Diary(most=1)
    watched = cs.simulate(tanks(), **RUN, compiled=compiled, observers=[diary])
    assert diary.calls.count("accepted") == 10
    assert np.array_equal(watched["one.h"], cs.simulate(tanks(), **RUN)["one.h"])


def test_a_limit_of_zero_ends_the_run():
    class Enough(cs.Observer):
        def limit(self, run):
            return 0 if run["one.h"] < 0.8 else 1

    result = cs.simulate(tanks(), **RUN, observers=[Enough()])
    assert result["one.h"][-1] < 0.8 <= result["one.h"][-2]
    assert "stopped by hand" in result.ended


def test_rejected_attempts_are_told_before_the_steps_they_belong_to():
    diary = Diary(most=1)
    control = cs.Adaptive(rtol=1e-8, first_step=0.5)
    result = cs.simulate(tanks(), t_end=1.0, method=cs.SemiImplicit(1), step=control, observers=[diary])
    told = [int(call.split()[1]) for call in diary.calls if call.startswith("rejected")]
    assert sum(told) == result.stats.rejected > 0
    first = diary.calls.index(f"rejected {told[0]}")
    assert diary.calls[first + 1] == "accepted"


def test_a_failing_observer_is_named_and_the_result_is_kept():
    class Broken(cs.Observer):
        def accepted(self, run, steps):
            if run.t > 0.45:
                raise ZeroDivisionError("division by zero")

        def limit(self, run):
            return 1

    with pytest.raises(
        cs.errors.SimulationError, match=r"the observer Broken failed at t = 0\.5: division by zero"
    ) as told:
        cs.simulate(tanks(), **RUN, observers=[Broken()])
    assert told.value.result.t[-1] == pytest.approx(0.5)


def test_observers_learn_of_a_failure_of_the_run():
    diary = Diary()
    with pytest.raises(cs.errors.StepSizeError):
        cs.simulate(tanks(), **RUN, max_steps=3, observers=[diary])
    assert diary.calls[-2:] == ["finished: StepSizeError", "closed 4"]


def test_a_stepper_shows_its_steps_and_that_it_went_back():
    diary = Diary()
    with cs.Stepper(tanks(), method=cs.Jacobi(1), step=0.1, record=True, observers=[diary]) as stepper:
        here = stepper.save()
        stepper.run_until(0.3)
        stepper.restore(here)
        stepper.step()
    assert diary.calls == ["start", *["accepted"] * 3, "restored", "accepted", "finished", "closed 2"]


def test_bad_observers_are_refused():
    for given, sentence in (
        ("live", "observers is a list of Observer objects or their names"),
        (["lve"], "there is no observer 'lve'; did you mean 'live'"),
        ([3], "observer is a name or a table with a name, not 3"),
        ([{"name": "fields", "pth": "a"}], "has no option 'pth'; did you mean 'path'"),
    ):
        with pytest.raises(cs.errors.SetupError, match=sentence):
            cs.simulate(tanks(), **RUN, observers=given)
    diary = Diary()
    with pytest.raises(cs.errors.SetupError, match="one object is given twice"):
        cs.simulate(tanks(), **RUN, observers=[diary, diary])


def test_what_an_observer_kept_is_there_when_a_run_is_resumed(tmp_path):
    class Sum(cs.Observer):
        def start(self, run):
            self.sum, self.resumed = 0.0, False

        def accepted(self, run, steps):
            self.sum += run.values(steps, "one.h").sum()

        def memory(self, run):
            return {"sum": self.sum}

        def resume(self, run, memory):
            self.sum, self.resumed = memory["sum"], True

    whole, part, rest = Sum(), Sum(), Sum()
    cs.simulate(tanks(), **RUN, observers=[whole], compiled=False)
    kept = {"save": tmp_path / "run.h5", "state_every": 4, "compiled": False}
    with pytest.raises(cs.errors.StepSizeError):
        cs.simulate(tanks(), **RUN, **kept, max_steps=6, observers=[part])
    with pytest.raises(cs.errors.SetupError, match="the observers of the run holds something of your own"):
        cs.resume(tmp_path / "run.h5", tanks(), max_steps=100)
    cs.resume(tmp_path / "run.h5", tanks(), max_steps=100, observers=[rest])
    assert rest.resumed
    assert rest.sum == pytest.approx(whole.sum, rel=1e-15)
