"""Interface equations with several solutions: a run follows the branch it began on, or says that it has changed."""

import numpy as np
import pytest

import cosolve as cs


def loop(c: float = 0.3, amplitude: float = 0.9, frequency: float = 6.0) -> cs.System:
    """`y = y + c (1 + a sin wt - y^2)`: two solutions of either sign."""
    square = cs.Static(
        lambda t, u: u[0] + c * (1.0 + amplitude * np.sin(frequency * t) - u[0] ** 2), inputs=["u"], outputs=["y"]
    )
    same = cs.Static(lambda t, u: u[0], inputs=["u"], outputs=["y"])
    system = cs.System({"a": square, "b": same})
    system.connect("a.y", "b.u")
    system.connect("b.y", "a.u")
    return system


@pytest.mark.parametrize(
    "method",
    [cs.Implicit(1), cs.Implicit(2), cs.Implicit(1, corrector=cs.Newton("iteration")), cs.SemiImplicit(1)],
    ids=lambda method: f"{method.label}-{getattr(method, 'corrector', '')}",
)
def test_a_guess_beyond_a_fold_leads_back(method):
    """Near the smallest value an extrapolated guess is negative: Newton went on with the other solution."""
    result = cs.simulate(loop(), t_end=4.0, method=method, step=0.25)
    true = np.sign(result["a.y"][0]) * np.sqrt(1.0 + 0.9 * np.sin(6.0 * result.t))
    assert np.abs(result["a.y"] - true).max() < 2e-3
    assert not [note for note in result.notes if note.kind == "branch"]


def test_a_run_that_is_continued_knows_its_branch(tmp_path):
    method, file = cs.Implicit(1), tmp_path / "half.state"
    whole = cs.simulate(loop(), t_end=4.0, method=method, step=0.25)
    cs.simulate(loop(), t_end=0.5, method=method, step=0.25, save_state=file)
    again = cs.simulate(loop(), t_end=4.0, method=method, step=0.25, resume=file)
    assert np.array_equal(again["a.y"][-1], whole["a.y"][-1])


def hysteresis(amplitude: float) -> cs.System:
    """`z^3 - z = a sin t`: from 0.385 on a branch ends, and only one far away is left."""
    drive = cs.Static(lambda t, u: amplitude * np.sin(t), inputs=[], outputs=["y"])
    tank = cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[0.0], inputs=["u"], outputs=["x"])
    system = cs.System({"drive": drive, "tank": tank})
    system.equations({"z": "tank.u"}, lambda z, y: z**3 - z - y, of=["drive.y"], initial={"z": 1.0})
    return system


@pytest.mark.parametrize(("amplitude", "told"), [(0.3, False), (0.6, True)])
def test_a_branch_that_ends_is_told(amplitude, told):
    result = cs.simulate(hysteresis(amplitude), t_end=10.0, method=cs.SemiImplicit(0), step=0.1)
    notes = [note for note in result.notes if note.kind == "branch"]
    assert bool(notes) is told
    assert bool((result["tank.x"] < -0.5).any()) is told
    for note in notes:
        assert note.level == "warning"
        assert "has gone over to another one in 2 macro steps, first in that from t = 3.8" in note.text
        assert len(note.sentence) < 300
