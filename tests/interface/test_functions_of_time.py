"""Functions of time that no polynomial follows: they run in a bounded number of parts, and a note says how well."""

import numpy as np
import pytest

import cosolve as cs
from cosolve.interface import driven_inputs
from cosolve.interface.driven_inputs import Function
from cosolve.signal.polynomial import horner

NOISE = np.random.default_rng(1).normal(size=100_001)
HARD = {
    "noise": (lambda t: NOISE[int(t * 1e6) % len(NOISE)], 0.0),
    "few digits": (lambda t: float(np.float32(np.sin(t))), 0.0),
    "rounded": (lambda t: round(np.sin(t), 6), 0.0),
    "a square wave of 1 kHz": (lambda t: np.sign(np.sin(2 * np.pi * 1000 * t)), 0.0),
    "noise of 1e-10": (lambda t: np.sin(t) + 1e-10 * np.sin(1e7 * t), 0.0),
    "an hour later": (lambda t: 325 * np.sin(2 * np.pi * 50 * t), 3600.0),
    "seconds since 1970": (lambda t: np.sin(20 * (t - 1.7e9)), 1.7e9),
}


def _driven(function):
    system = cs.System({"a": cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[0.0], inputs=["f"], outputs=["x"])})
    system.set("a.f", function)
    return system


@pytest.mark.parametrize("name", HARD)
def test_hard_signals_run(name):
    """Bounded calls in every step: what is asked for at most is 34 values of each of 2 * 1024 parts."""
    function, start = HARD[name]
    calls = [0]

    def counted(t):
        calls[0] += 1
        return function(t)

    H, steps = 0.1, 3
    result = cs.simulate(_driven(counted), t_start=start, t_end=start + steps * H, step=H, method=cs.Jacobi(1))
    assert result.finished
    assert calls[0] <= steps * 40 * 2 * driven_inputs._MOST
    noted = result.stats.note("driven-input")
    levels = {"noise": "warning", "a square wave of 1 kHz": "warning", "rounded": "info"}
    found = [note for note in result.stats.notes if note.kind == "driven-input"]
    assert [note.level for note in found] == [levels[name] for _ in [0] if name in levels], noted
    assert all("'a.f' does not follow its function of time closely" in note.text for note in found)


def test_what_a_note_says_is_the_difference():
    """Of a square wave that 32 parts cannot follow, by a sum over a fine grid: within a factor of 2."""
    function, _ = HARD["a square wave of 1 kHz"]
    drive = Function(function, "a.f", 1)
    pieces = drive.pieces(0.0, 0.1)
    assert len(pieces) <= 2 * driven_inputs._FEW
    t = (np.arange(20_000) + 0.5) / 200_000
    starts = np.array([piece.a for piece in pieces])
    mine = [pieces[k] for k in np.searchsorted(starts, t, side="right") - 1]
    values = [horner(p.coefficients, (s - p.a) / (p.b - p.a))[0] for p, s in zip(mine, t, strict=True)]
    difference = np.abs(np.array(values) - np.sign(np.sin(2 * np.pi * 1000 * t))).mean()
    assert drive._worst == pytest.approx(difference, rel=1.0)
    drive.begin()
    assert drive.note("a.f") is None


@pytest.mark.parametrize("jumps", [1, 3, 12])
def test_jumps_are_still_found_to_rounding(jumps):
    """As closely as before there was a bound: the integral over a step is off by 1e-7 of it at most."""
    places = np.sort(np.random.default_rng(jumps).random(jumps))
    drive = Function(lambda t: float(np.searchsorted(places, t)), "a.f", 1)
    pieces = drive.pieces(0.0, 1.0)
    assert [piece.a for piece in pieces[1:]] == [piece.b for piece in pieces[:-1]]
    powers = (piece.coefficients[:, 0] / (1 + np.arange(len(piece.coefficients))) for piece in pieces)
    found = sum((piece.b - piece.a) * float(one.sum()) for piece, one in zip(pieces, powers, strict=True))
    assert found == pytest.approx(np.sum(1.0 - places), abs=1e-7 * jumps)
    assert drive.note("a.f") is None
