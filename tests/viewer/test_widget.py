"""The widget of notebooks: the same bundle, answered by the kernel."""

import threading
from time import sleep

import numpy as np
import pytest
from tools.bundle import BUNDLE

import cosolve as cs
from cosolve.viewer.result_view import ResultView
from cosolve.viewer.viewer_session import ViewerSession
from cosolve.viewer.widget import answer


def test_the_same_bundle(result):
    shown = cs.plot.widget(result)
    assert str(shown._esm) == (BUNDLE / "viewer.js").read_text(encoding="utf-8")
    assert str(shown._css) == (BUNDLE / "viewer.css").read_text(encoding="utf-8")


def test_questions_and_answers(result):
    session = ViewerSession([ResultView(result, "one"), ResultView(result, "two")])
    reply, numbers = answer(session, {"id": 7, "ask": "about"})
    assert (reply["id"], len(reply["found"]["results"]), numbers) == (7, 2, [])
    asked = {"id": 8, "ask": "series", "result": 0, "ids": [0], "t0": 0, "t1": 2, "n": 1000}
    reply, (frame,) = answer(session, asked)
    assert reply == {"id": 8}
    assert frame == session.window(0, [0], 0.0, 2.0, 1000).frame()
    _, (frame,) = answer(session, asked | {"ask": "difference", "minus": 1})
    assert not np.frombuffer(frame[-8 * 201 :], "<f8").any()  # the same result twice


@pytest.mark.parametrize("question", [None, [], {}, {"ask": "series"}, {"ask": "series", "ids": "x", "n": 1}, 5])
def test_what_is_no_question(result, question):
    reply, numbers = answer(ViewerSession([ResultView(result, "one")]), question)
    assert reply["problem"] == "that is no question about a result"
    assert numbers == []


def test_without_the_extra_it_says_what_to_install(result, monkeypatch):
    from cosolve.viewer.widget import _kind

    _kind.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "anywidget", None)
    with pytest.raises(cs.errors.SetupError, match=r"pip install .cosolve\[notebook\]"):
        cs.plot.widget(result)


def test_a_run_is_followed_and_stopped_by_a_widget(masses):
    """As a notebook does it: the run in a thread, questions from the kernel's; no page is served."""
    live = cs.Live(open_browser=False, told=None, paused=True)
    shown = cs.plot.widget(live)
    found = {}

    def run():
        found["result"] = cs.simulate(masses, t_end=1e6, method=cs.Jacobi(), step=0.01, observers=[live])

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    asked = 0
    for what in ("step", "step", "stop"):
        while not answer(shown.session, {"id": 0, "ask": "state"})[0]["found"]["running"]:
            sleep(0.01)
        reply, _ = answer(shown.session, {"id": 1, "ask": "order", "order": {"do": what}})
        assert reply == {"id": 1, "found": None}
        asked += what == "step"
        while answer(shown.session, {"id": 0, "ask": "state"})[0]["found"]["steps"] < asked:
            sleep(0.01)
    thread.join(30.0)
    assert len(found["result"].t) == 3
    assert live.address == ""
    assert answer(shown.session, {"id": 2, "ask": "order", "order": 5})[0]["problem"]
    assert len(answer(shown.session, {"id": 3, "ask": "scene"})[0]["found"]) > 100_000


def test_no_run_is_watched(result):
    reply, _ = answer(ViewerSession([ResultView(result, "")]), {"id": 1, "ask": "state"})
    assert reply["problem"] == "no run is watched here"
