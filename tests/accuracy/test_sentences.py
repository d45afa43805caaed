"""What a choice says of itself, word for word and number for number, in every branch."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cosolve as cs
from cosolve.accuracy.auto import sentences

STEP = cs.Adaptive(rtol=2e-5)


def trial(method: Any = None, **facts: Any) -> Any:
    """A trial with these facts."""
    given = {"steps": 12, "known": True, "power": None, "error": 3.14e-5, "factor": 1.57, "blind": "", "why": ""}
    return SimpleNamespace(method=method or cs.Jacobi(2), t=np.array([0.0, 0.25]), **given | facts)


def candidates(**facts: Any) -> Any:
    return SimpleNamespace(**{"complaints": [], "corrected": cs.SemiImplicit(1)} | facts)


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({}, "a pilot of 12 steps had a coupling error of 3.1e-05 (1.6 times its rtol)"),
        ({"power": 2.0}, "a pilot of 12 steps has a coupling error of about 3.1e-05, by another one"),
        (
            {"known": False, "blind": "nothing is known"},
            "a pilot of 12 steps ran well, but nothing is known, so successive runs must agree",
        ),
    ],
)
def test_what_was_chosen(facts: dict[str, Any], told: str) -> None:
    found = sentences.chosen(trial(**facts), STEP, 1e-4, "the remark")
    assert found == f"Jacobi(2), Adaptive(rtol=2e-05) for a coupling error of 0.0001: {told}; the remark"


def test_the_faster_of_two() -> None:
    one = trial(seconds={"a": 1e-3, "b": 2.5e-2}, time=lambda tolerance: 2.0 * tolerance)
    other = trial(cs.SemiImplicit(1), time=lambda tolerance: 7.0 * tolerance)
    assert sentences.faster(one, other, 1e-4) == (
        "SemiImplicit(1) would take fewer subsystem steps but about 3.5 times as long: a subsystem step of 'b' was "
        "measured to take 2.5e-02 s"
    )


@pytest.mark.parametrize(
    ("best", "trials", "found", "told"),
    [
        (cs.Jacobi(2), [trial(cs.Implicit(1), why="too slow; see")], {}, "Implicit(1) was given up (too slow)"),
        (cs.Jacobi(2), [trial(cs.Jacobi(2), why="itself")], {}, "that is so cheap that no other method was tried"),
        (cs.Jacobi(2), [], {"complaints": ["no rollback", "other"]}, "no rollback"),
        (cs.SemiImplicit(1), [], {"complaints": ["no rollback"]}, "no rollback"),
        (cs.Jacobi(2), [], {"corrected": None}, "the method was given"),
        (cs.SemiImplicit(1), [], {}, "the method was given"),
    ],
)  # fmt: skip
def test_why_no_other(best: Any, trials: list[Any], found: dict[str, Any], told: str) -> None:
    assert sentences.others(trial(best), trials, candidates(**found)) == told


def test_nothing_was_found() -> None:
    """The trial that came farthest speaks; one without a step has failed."""
    far, near = trial(why="it blew up; sorry"), trial(cs.Jacobi(0), steps=3, why="it too")
    far.t, near.t = np.array([0.0, 0.75]), np.array([0.0, 0.5])
    ending = "; loosen rtol, or give method and step"
    for trials in ([far, near], [near, far]):
        found = sentences.nothing(1e-4, trials, [])
        assert (
            found == f"no method and step were found for rtol = 0.0001 (Jacobi(2) came to t = 0.75: it blew up){ending}"
        )
    failed = trial(steps=0, why="at once")
    assert "(Jacobi(2) failed: at once)" in sentences.nothing(1e-4, [failed], [])
    assert sentences.nothing(1e-4, [], ["no method fits", "other"]).endswith(f"(no method fits){ending}")
    tried = [trial(blind="it is blind"), trial(cs.Implicit(1), why="the last")]  # the first speaks
    assert sentences.none_at(1e-4, 0.1, tried) == (
        "no method was found for rtol = 0.0001 with step 0.1 (Jacobi(2): it is blind); give no step, or method and step"
    )
    assert sentences.everything([far, far, failed], ["complaint"]) == (
        "Jacobi(2) came to t = 0.75: it blew up; sorry; Jacobi(2) failed: at once; complaint"
    )


def test_doubts() -> None:
    assert sentences.percent(0.999) == "100 %"
    assert sentences.percent(1.0) == "more than 100 %"
    first = "Jacobi(2): good; in doubt, since before"
    assert sentences.repeated(first, 1e-6, 2e-3) == (
        "Jacobi(2): good; in doubt, since it moved the run before it by 2.0e-03, so again with rtol 1e-06"
    )
    assert sentences.repeated("good; its run had 1", 1e-6, 2e-3, missed=True) == (
        "good; its run had a coupling error of 2.0e-03, so again with rtol 1e-06"
    )
    assert sentences.doubt(2e-3, 1e-3, last=False) == (
        "in doubt: the run differs by 2.0e-03 from the one before it, where 1.0e-03 is explained"
    )
    assert sentences.doubt(2e-3, 1e-3, last=True).startswith(
        "no estimate of the coupling error: the last two runs differ by 2.0e-03 where 1.0e-03 is allowed; "
    )
    assert sentences.over(2e-3, 1e-3).startswith(
        "the coupling error is about 2.0e-03, more than the 0.001 that was asked"
    )


def test_long_reasons_end_at_a_word() -> None:
    """A clause of exactly the most letters stays whole; one more, and it ends before a word, with dots."""
    for count, ends in ((170, "word w"), (171, "word ...")):
        reason = ("word " * 60)[: count - 1] + "w"
        found = sentences.nothing(1e-4, [], [reason]).partition("(")[2].partition(")")[0]
        assert found.endswith(ends if count == 171 else reason[-6:])
        assert len(found) <= 170
