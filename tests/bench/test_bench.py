"""The plumbing of `make bench` without peers: answers, ratios, what is said about a peer that is not there."""

from __future__ import annotations

import importlib
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module", autouse=True)
def _on_the_path():
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))


def load(name: str):
    return importlib.import_module(name)


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    harness = load("harness")
    found = harness.Bench(quick=True, install=False, repeats=2, folder=tmp_path_factory.mktemp("bench"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def built():
    return asdict(load("problems.fmus").build())


def test_masters_agree_with_the_recurrence_and_the_recurrence_with_the_exact_solution(bench, built) -> None:
    """The C master over the FMUs, cosolve over the same FMUs, and Python subsystems all give the Jacobi scheme."""
    o = load("problems.oscillator")
    jobs = {
        "C": ("c_master", {"case": "jacobi", "built": built, "steps": 40, "H": o.H}),
        "C, recorded": ("c_master", {"case": "jacobi_recorded", "built": built, "steps": 40, "H": o.H}),
        "cosolve": ("cosolve_pair", {"case": "jacobi", "built": built, "steps": 40, "H": o.H, "compiled": False}),
        "Python": ("cosolve_pair", {"case": "python_subsystems", "steps": 40, "H": o.H}),
    }
    samples = bench.interleave(jobs)
    for sample in samples.values():
        assert not sample.missing, sample.missing
        assert len(sample.runs) == 2
        np.testing.assert_allclose(sample.answer, o.jacobi(40), rtol=0, atol=1e-12)
    # held inputs: first order, so half the step halves the distance to the monolithic solution
    right = load("rows.precision").exact()
    errors = [np.abs(np.array(o.jacobi(n, 1.0 / n)) - right).max() for n in (2000, 4000)]
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.05)


def test_rollback_solves_the_interface_equation(bench, built) -> None:
    o = load("problems.oscillator")
    order = {"case": "semi_implicit", "built": built, "steps": 30, "H": o.H, "x2": o.X2, "ck": o.CK, "dk": o.DK}
    jobs = {"C": ("c_master", order), "cosolve": ("cosolve_pair", {**order, "compiled": False})}
    for sample in bench.interleave(jobs).values():
        assert not sample.missing, sample.missing
        np.testing.assert_allclose(sample.answer, o.semi_implicit(30), rtol=0, atol=1e-10)


def test_fmus_take_input_derivatives(built) -> None:
    """An input of degree 3 over one long step against SciPy."""
    from scipy.integrate import solve_ivp

    import cosolve as cs
    from cosolve.signal.polynomial import Polynomial

    mass = cs.load_fmu(built["fmus"]["mass_force"])
    mass.start(0.0)
    signal = Polynomial(0.0, 0.1, np.array([[1.0], [-2.0], [3.0], [0.5]]))
    found = mass.advance(0.0, 0.1, signal)

    def slope(t: float, s: np.ndarray) -> list[float]:
        return [s[1], -100.0 * s[0] - 0.02 * s[1] + float(signal(t)[0])]

    right = solve_ivp(slope, (0.0, 0.1), [0.0, 0.0], rtol=1e-12, atol=1e-14).y[:, -1]
    np.testing.assert_allclose(found, right, rtol=1e-10)


def test_a_peer_that_is_not_there_is_named_with_the_reason(bench, tmp_path, monkeypatch) -> None:
    harness = load("harness")
    monkeypatch.setattr(harness, "ENVIRONMENTS", tmp_path)
    monkeypatch.setitem(harness.PEERS, "no_such_peer", ("", ()))
    alone = harness.Bench(install=False, repeats=1)
    samples = alone.interleave({"a": ("libcosim", {"case": "jacobi"}), "b": ("no_such_peer", {"case": "jacobi"})})
    assert samples["a"].missing == "not installed (run without --no-install)"
    assert "does not start" in samples["b"].missing
    assert "no_such_peer.py" in samples["b"].missing
    assert bench.interleave({"c": ("c_master", {"case": "dance"})})["c"].missing.startswith("KeyError")


def test_ratios_are_taken_repeat_by_repeat() -> None:
    harness = load("harness")
    slow = harness.Sample("slow", [{"seconds": s} for s in (2.0, 40.0, 6.0)])
    fast = harness.Sample("fast", [{"seconds": s} for s in (1.0, 10.0, 2.0)])
    found = harness.ratio(slow, fast)
    assert (found.median, found.low, found.high) == (3.0, 2.0, 4.0)  # a slow moment of the machine cancels
    assert harness.ratio(slow, harness.Sample("none", missing="why")) is None


def test_cost_at_an_error_is_interpolated_in_logarithms() -> None:
    precision = load("rows.precision")
    curve = [(1e-2, 100.0, 1.0), (1e-4, 1000.0, 10.0)]  # second order
    assert precision.at_error(curve, 1e-3, 1) == pytest.approx(10**2.5)
    assert precision.at_error(curve, 1e-3, 2) == pytest.approx(10**0.5)
    assert precision.at_error(curve, 1e-5, 1) == np.inf


def test_results_name_what_was_missed_and_why(tmp_path) -> None:
    report = load("report")
    harness = load("harness")
    good = report.judge("PF-1", "a / b", harness.Ratio(3.0, 2.0, 4.0), "<= 4", lambda r: r <= 4.0, "slow")
    bad = report.judge("PF-2", "c / d", harness.Ratio(5.0, 5.0, 5.0), "<= 4", lambda r: r <= 4.0, "too many copies")
    absent = report.judge("PF-3", "e / f", None, ">= 2", lambda r: True, "", "no wheel")
    section = report.Section("A row", ["text"], [good, bad, absent])
    report.write(tmp_path / "R.md", [section], harness.machine(), {"peer": "1.0"}, "A test.")
    text = (tmp_path / "R.md").read_text()
    assert "| PF-1 | a / b | 3 (2 to 4) | <= 4 | met |" in text
    assert "| PF-2 | c / d | 5 (5 to 5) | <= 4 | **missed** |" in text
    assert "- **PF-2**, c / d: too many copies" in text
    assert "- **PF-3**, e / f: no wheel" in text
    assert "slow" not in text


def test_a_row_runs_from_end_to_end(bench, monkeypatch) -> None:
    """PF-3 at tiny sizes: our figure is there, the missing peer is said."""
    harness, pair = load("harness"), load("rows.pair")
    monkeypatch.setattr(harness, "ENVIRONMENTS", bench.folder / "none")
    monkeypatch.setattr(harness.Bench, "size", lambda self, full, quick: 20)
    alone = harness.Bench(install=False, repeats=1)
    try:
        section = pair._python(alone, {})
    finally:
        alone.close()
    assert section.verdicts[0].met is None
    assert section.verdicts[0].why.startswith("not installed")
    assert "| cosolve, Python-defined subsystems | " in "\n".join(section.text)
