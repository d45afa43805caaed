"""The demonstration tells the story it should, with the numbers of the literature."""

from dataclasses import replace

import numpy as np
import pytest

from cosolve.demo import double_pendulum, oscillator, run_case, run_demo


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    lines = []
    path, _ = run_demo(tmp_path_factory.mktemp("demo"), lines.append)
    return path, lines


def test_the_report_is_one_file_and_its_path_comes_after_the_verdicts(demo):
    path, lines = demo
    assert lines[-3] == f"report  {path}"
    assert [line.partition(":")[0] for line in lines[-2:]] == [
        "next    cosolve new car",
        "next    cosolve check system.toml",
    ]
    assert path.name == "report.html"
    text = path.read_text(encoding="utf-8")
    assert "Two-mass oscillator" in text
    assert "Planar double pendulum" in text
    assert "http" not in text
    assert path.stat().st_size < 2_000_000


def test_the_verdicts_are_printed_for_every_method(demo):
    _, lines = demo
    rows = {line.split()[0]: line.split()[1:] for line in lines if "stable" in line and "Take" not in line}
    assert {name: row[0] for name, row in rows.items()} == {
        "Jacobi(1)": "unstable",
        "SemiImplicit(1)": "stable",
        "Implicit(1)": "stable",
        "Jacobi(2)": "unstable",
        "SemiImplicit(2)": "stable",
        "Implicit(2)": "stable",
    }
    # largest |x| of the exact motion: 0.1766; errors 8.24e13 and 0.0703
    assert rows["Jacobi(1)"][1:4] == ["1.401", "4.7e+14", "times"]
    assert rows["SemiImplicit(1)"][1:4] == ["0.855", "40", "%"]


def test_it_ends_with_verdicts_in_words_and_relative_errors(demo):
    path, lines = demo
    said = [line.strip() for line in lines for line in line.splitlines() if line.strip().startswith(("Take", "At"))]
    assert said == [
        "Take SemiImplicit(1): stable where Jacobi(1) blows up; 400 calls, 40 % off at this step.",
        "At 0.001 s: 2000 calls, 1.7 % off.",
        "Take SemiImplicit(2): stable where Jacobi(2) blows up; 4000 calls, 0.0013 % off.",
    ]
    text = path.read_text(encoding="utf-8")
    assert all(line in text for line in said)
    assert text.count(">t [s]</text>") == 10
    assert "SemiImplicit(1) and Implicit(1)" in text  # one line, one entry of the legend


def test_oscillator_blows_up_explicitly_and_not_otherwise():
    # docs/validation/schweizer-lu.md: radius 1.401 and 0.855; largest |x| 8.2e13 explicit, 0.246 semi-implicit
    runs = run_case(oscillator())
    assert runs.radius["Jacobi(1)"] == pytest.approx(1.401, abs=5e-4)
    assert runs.radius["SemiImplicit(1)"] == pytest.approx(0.855, abs=5e-4)
    size = {label: max(np.abs(r["one.x"]).max(), np.abs(r["two.x"]).max()) for label, r in runs.results.items()}
    assert size["Jacobi(1)"] == pytest.approx(8.2e13, rel=0.01)
    assert size["SemiImplicit(1)"] == pytest.approx(0.246, abs=5e-4)
    # linear: one correction is all there is
    difference = runs.results["Implicit(1)"]["one.x"] - runs.results["SemiImplicit(1)"]["one.x"]
    assert np.abs(difference).max() < 1e-12


def test_oscillator_reference_is_the_exact_solution():
    # exact solution: c = 1000, d = 10, t = 0.1 and 0.5
    states = oscillator(1e3, 10.0).exact(np.array([0.1, 0.5]))
    assert states["one.x"] == pytest.approx([-1.5275368774, 0.0153268176], abs=1e-10)
    assert states["two.x"] == pytest.approx([-0.5503874963, 0.0344635069], abs=1e-10)


def test_pendulum_reference_and_errors():
    # reference: the motion at four times; reference code: the error of the semi-implicit method, degree 2, at H = 1e-3
    case = double_pendulum(H=1e-3)
    motion = case.exact(np.array([0.1, 0.2, 0.5, 1.0]))
    assert motion["upper.phi"] == pytest.approx([0.99953024, 1.05655304, 1.00133577, 0.96551845], abs=1e-8)
    assert motion["lower.phi"] == pytest.approx([-0.80196358, -0.94636201, -1.57081362, -2.07815200], abs=1e-8)
    early = replace(case, t_end=0.1, methods=case.methods[1:2])  # the largest error is in the first oscillations
    assert run_case(early).comparison.largest_error("SemiImplicit(2)") == pytest.approx(2.05e-6, rel=0.05)
