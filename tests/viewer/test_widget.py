"""The widget of notebooks: the same bundle, answered by the kernel."""

import numpy as np
import pytest
from tools.bundle import BUNDLE

import cosolve as cs
from cosolve.viewer.exhibit import Exhibit
from cosolve.viewer.exhibition import Exhibition
from cosolve.viewer.widget import answer


def test_the_same_bundle(result):
    shown = cs.widget(result)
    assert str(shown._esm) == (BUNDLE / "viewer.js").read_text(encoding="utf-8")
    assert str(shown._css) == (BUNDLE / "viewer.css").read_text(encoding="utf-8")


def test_questions_and_answers(result):
    exhibition = Exhibition([Exhibit(result, "one"), Exhibit(result, "two")])
    reply, numbers = answer(exhibition, {"id": 7, "ask": "about"})
    assert (reply["id"], len(reply["found"]["results"]), numbers) == (7, 2, [])
    asked = {"id": 8, "ask": "series", "result": 0, "ids": [0], "t0": 0, "t1": 2, "n": 1000}
    reply, (frame,) = answer(exhibition, asked)
    assert reply == {"id": 8}
    assert frame == exhibition.window(0, [0], 0.0, 2.0, 1000).frame()
    _, (frame,) = answer(exhibition, asked | {"ask": "difference", "minus": 1})
    assert not np.frombuffer(frame[-8 * 201 :], "<f8").any()  # the same result twice


@pytest.mark.parametrize("question", [None, [], {}, {"ask": "series"}, {"ask": "series", "ids": "x", "n": 1}, 5])
def test_what_is_no_question(result, question):
    reply, numbers = answer(Exhibition([Exhibit(result, "one")]), question)
    assert reply["problem"] == "that is no question about a result"
    assert numbers == []


def test_without_the_extra_it_says_what_to_install(result, monkeypatch):
    from cosolve.viewer.widget import _kind

    _kind.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "anywidget", None)
    with pytest.raises(cs.SetupError, match=r"pip install .cosolve\[notebook\]"):
        cs.widget(result)
