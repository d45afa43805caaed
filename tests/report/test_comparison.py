"""Several runs on one page: errors against the three kinds of reference, verdicts, and what is refused."""

import numpy as np
import pytest

import cosolve as cs
from cosolve.report import Comparison, write_comparison
from cosolve.report.comparison import reference_values, values_of


def tanks():
    tank = lambda h: cs.Linear([[-1]], [[1]], [[1]], x0=[h], inputs=["q"], outputs=["h"])  # noqa: E731
    system = cs.System({"one": tank(1.0), "two": tank(0.0)})
    system.connect("one.h", "two.q")
    system.connect("two.h", "one.q")
    return system


def exact(t):
    return {"one.h": (1 + np.exp(-2 * t)) / 2, "two.h": (1 - np.exp(-2 * t)) / 2}


@pytest.fixture(scope="module")
def runs():
    methods = (cs.Jacobi(degree=0), cs.SemiImplicit(degree=1))
    return {m.label: cs.simulate(tanks(), t_end=1.0, method=m, step=0.1) for m in methods}


def test_the_page_holds_the_errors_and_the_verdicts(tmp_path, read, runs):
    verdicts = {label: {"spectral radius": "1.0000"} for label in runs}
    page = read(write_comparison(runs, tmp_path / "c.html", reference=exact, verdicts=verdicts, title="Two tanks"))
    for label, result in runs.items():
        error = np.abs(result["one.h"] - exact(result.t)["one.h"]).max()
        row = page.row(label)
        assert row[1:5] == ["finished", f"{100 * error:.2g} %", f"{error:.2e}", "1.0000"]  # the largest value is 1
        assert row[7] == str(result.stats.total_calls)
    assert "Two tanks" in page.text
    assert "error of one.h" in page.text


def test_a_function_arrays_and_a_finer_run_are_equal_references(runs):
    t = np.linspace(0.0, 1.0, 501)
    fine = cs.simulate(tanks(), t_end=1.0, method=cs.SemiImplicit(degree=2), step=1e-3)
    result = runs["Jacobi(0)"]
    by_function = reference_values(exact, "one.h", result.t)
    assert reference_values({"t": t, **exact(t)}, "one.h", result.t) == pytest.approx(by_function, abs=1e-10)
    assert reference_values(fine, "one.h", result.t) == pytest.approx(by_function, abs=1e-8)


def test_without_a_reference_runs_are_only_overlaid(tmp_path, read, runs):
    page = read(write_comparison(runs, tmp_path / "c.html", quantities=["two.h"]))
    assert "error of" not in page.text
    labels = [a["aria-label"] for tag, a in page.elements if tag == "svg" and "over time" in a["aria-label"]]
    assert len(labels) == 1
    assert labels[0].startswith("two.h over time (Jacobi(0), SemiImplicit(1)): between 0 and 0.4")


def test_a_run_that_stopped_and_one_that_blew_up_are_marked(tmp_path, read):
    t = np.linspace(0.0, 1.0, 11)

    def system(stop):
        def output(t, u):
            if t > stop:
                raise RuntimeError("out of fuel")
            return np.sin(t) if stop < 1 else np.sinh(30 * t)

        return cs.System({"a": cs.Static(output, inputs=[], outputs=["y"])})

    with pytest.raises(cs.errors.SimulationError) as stopped:
        cs.simulate(system(0.55), t_end=1.0, method=cs.Jacobi(), step=0.1)
    grown = cs.simulate(system(2.0), t_end=1.0, method=cs.Jacobi(), step=0.1)
    results = {"stopped": stopped.value.result, "grown": grown}
    page = read(write_comparison(results, tmp_path / "c.html", reference={"t": t, "a.y": np.sin(t)}))
    assert page.row("stopped")[1] == "stopped at t = 0.5"
    assert page.row("grown")[1] == "blew up"
    assert "out of fuel" in page.text
    assert "grown leaves the picture; it reaches 5.3e+12" in page.text  # sinh(30)


def test_entries_of_vectors_can_be_named(runs):
    field = cs.Static(lambda t, u: [[t, 2 * t, 3 * t]], inputs=[], outputs=[("p", 3)])
    result = cs.simulate(cs.System({"a": field}), t_end=1.0, method=cs.Jacobi(), step=0.5)
    assert values_of(result, "a.p[2]").tolist() == [0.0, 1.5, 3.0]
    with pytest.raises(cs.errors.SetupError, match=r"'a.p' is a vector of 3, name one entry as 'a.p\[0\]'"):
        values_of(result, "a.p")
    with pytest.raises(cs.errors.SetupError, match=r"'one\.h' is a scalar"):
        values_of(runs["Jacobi(0)"], "one.h[0]")


def test_what_cannot_be_compared_is_refused_with_a_reason(runs):
    with pytest.raises(cs.errors.SetupError, match="at least one result"):
        Comparison({})
    with pytest.raises(cs.errors.SetupError, match="there is no result 'Jacobi'"):
        Comparison(runs, verdicts={"Jacobi": {}})
    with pytest.raises(cs.errors.SetupError, match=r"it has no 'one\.x'"):
        reference_values(exact, "one.x", np.zeros(1))
    with pytest.raises(cs.errors.SetupError, match="under the key 't'"):
        reference_values({"one.h": [1.0]}, "one.h", np.zeros(1))
    with pytest.raises(cs.errors.SetupError, match=r"it ends at t = 0\.5"):
        reference_values({"t": [0.0, 0.25, 0.5], "one.h": [1, 1, 1]}, "one.h", np.array([0.0, 1.0]))
