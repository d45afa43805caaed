"""Two runs give the same bits, and so does one that goes on from a saved state."""

from functools import partial

import pytest
from tests.precice.test_acceleration import BOTH, ONE, quasi
from tests.precice.test_many import FLOW, HEAD, measured, scheme, three
from tests.precice.together import MEASURES, config, constant, couple, iterations, pair

from cosolve.errors import SetupError

CASES = {
    "serial-explicit": "",
    "parallel-explicit": "",
    "serial-implicit constant": MEASURES.replace("1e-8", "1e-3") + constant(0.5),
    "serial-implicit aitken": quasi("aitken"),
    "serial-implicit IQN-ILS": quasi("IQN-ILS", ONE),
    "serial-implicit IQN-IMVJ": quasi("IQN-IMVJ", ONE),
    "parallel-implicit IQN-ILS": quasi("IQN-ILS", BOTH),
}


@pytest.mark.covers("PX-20")
@pytest.mark.parametrize("case", CASES)
def test_a_resumed_coupling_gives_the_bits_of_an_uninterrupted_one(case, tmp_path):
    kind, body = case.split()[0], CASES[case]
    whole, all_of_it = couple(config(kind, body), pair(2, 3))
    again, _ = couple(config(kind, body), pair(2, 3))
    assert {k: v.tolist() for k, v in again.items()} == {k: v.tolist() for k, v in whole.items()}
    state = tmp_path / "state.zip"
    five = '<max-time-windows value="5" />'
    clocks = ([0.0], [0.0])
    _, first = couple(config(kind, body, end=five), pair(2, 3, clocks), state=state)
    rest, second = couple(config(kind, body), pair(2, 3, clocks), resume=state)
    assert {k: v.tolist() for k, v in rest.items()} == {k: v.tolist() for k, v in whole.items()}
    assert iterations(first, "B") + iterations(second, "B") == iterations(all_of_it, "B")


@pytest.mark.covers("PX-20")
def test_the_logs_of_two_runs_are_equal(tmp_path, monkeypatch):
    texts = []
    for k in range(2):
        (tmp_path / str(k)).mkdir()
        monkeypatch.chdir(tmp_path / str(k))
        couple(config("serial-implicit", quasi("IQN-ILS", ONE)), pair(), record=True)
        texts.append({p.name: p.read_text() for p in (tmp_path / str(k)).iterdir()})
    assert texts[0] == texts[1]
    assert len(texts[0]) == 3


@pytest.mark.covers("PX-20")
@pytest.mark.parametrize("kind", ["serial-implicit", "parallel-implicit"])
def test_the_logs_of_a_resumed_coupling_go_on(kind, tmp_path, monkeypatch):
    """Line by line the logs of the first run and of the second are those of the whole: windows and totals go on."""
    text = partial(config, kind, quasi("IQN-ILS", ONE if kind == "serial-implicit" else BOTH))
    five, clocks = '<max-time-windows value="5" />', ([0.0], [0.0])
    runs = {
        "whole": lambda: couple(text(), pair(), record=True),
        "first": lambda: couple(text(end=five), pair(1, 1, clocks), record=True, state=tmp_path / "state.zip"),
        "rest": lambda: couple(text(), pair(1, 1, clocks), record=True, resume=tmp_path / "state.zip"),
    }
    logs = {}
    for name, run in runs.items():
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        run()
        logs[name] = {p.name: p.read_text().splitlines() for p in (tmp_path / name).iterdir() if p.suffix == ".log"}
    assert set(logs["whole"]) == {"precice-A-iterations.log", "precice-B-convergence.log", "precice-B-iterations.log"}
    for name, (head, *lines) in logs["whole"].items():
        assert logs["first"][name][0] == logs["rest"][name][0] == head
        assert logs["first"][name][1:] + logs["rest"][name][1:] == lines, name


@pytest.mark.covers("PX-20")
def test_a_state_of_others_is_refused(tmp_path):
    state = tmp_path / "state.zip"
    couple(config("serial-explicit"), pair(), state=state)
    who = '<participant name="A" /><participant name="B" /><participant name="C" control="true" />'
    text = HEAD + scheme("multi", who, FLOW, measured(*FLOW)) + "</precice-configuration>"
    with pytest.raises(SetupError, match=r"state\.zip holds the state of other participants \(A, B\)"):
        couple(text, three(), resume=state)


def test_the_state_of_every_third_window_and_of_the_last(tmp_path):
    state = tmp_path / "state.zip"
    _, coupling = couple(config("serial-explicit"), pair(), state=state, every=3)
    from cosolve.state.codec import read_tree

    assert read_tree(state)["participants"]["A"]["time"] == 1.0
    assert coupling.keeper._count == 10
