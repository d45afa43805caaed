"""The report of one run: self-contained, complete, honest about runs that failed or blew up."""

import re

import numpy as np
import pytest

import cosolve as cs
from cosolve.errors import OutputFileError
from cosolve.report import write_report
from cosolve.result import Channel, Result, Stats


def oscillator(c=1e3, d=10.0):
    def mass(m, v):
        A, B = [[0, 1], [-c / m, -d / m]], [[0], [1 / m]]
        return cs.Linear(A, B, np.eye(2), x0=[0, v], inputs=["f"], outputs=[cs.Port("x", unit="m"), "v"])

    system = cs.System({"one": mass(1.0, 100.0), "two": mass(2.0, -100.0)})
    of = ["one.x", "one.v", "two.x", "two.v"]
    law = lambda x1, v1, x2, v2: c * (x2 - x1) + d * (v2 - v1)  # noqa: E731
    system.law({"one.f": 1, "two.f": -1}, law, of=of, name="lam")
    return system


def made_up(t, columns, channels, subsystems=("a",), **stats):
    """A result without a run."""
    n = len(t)
    y, z = columns.get("y", np.zeros((n, 0))), columns.get("z", np.zeros((n, 0)))
    data = {
        "t": t,
        "y": y,
        "z": z,
        "H": np.concatenate([[np.nan], np.diff(t)]),
        "iterations": columns.get("iterations", np.zeros(n, dtype=np.int32)),
        "residual": columns.get("residual", np.full(n, np.nan)),
        "error": columns.get("error", np.full(n, np.nan)),
        "rejected": columns.get("rejected", np.zeros(n, dtype=np.int32)),
        "calls": np.ones((n, len(subsystems)), dtype=np.int64),
        "seconds": np.ones((n, len(subsystems))),
    }
    return Result(lambda: data, channels, subsystems, stats=Stats(**stats), meta={"method": "Jacobi(degree=1)"})


def test_the_numbers_of_the_run_are_in_it(tmp_path, read):
    result = cs.simulate(oscillator(), t_end=0.5, method=cs.SemiImplicit(degree=1), step=5e-3)
    page = read(write_report(result, tmp_path / "report.html"))
    assert "Finished: reached t = 0.5." in page.text
    # predictor and corrector cross every step in both subsystems: 2 * 2 * 100
    assert "100 macro steps, 0 rejected, 100 corrections, 400 subsystem calls" in page.text
    assert page.row("one")[1:3] == ["200", "100"]
    assert "All recorded macro steps have the length H = 0.005." in page.text
    assert "Every macro step took 1 correction." in page.text
    assert page.row("lam")[1:] == ["law", "lam = law(one.x, one.v, two.x, two.v) → one.f, −two.f"]
    labels = [a["aria-label"] for tag, a in page.elements if tag == "svg"]
    assert any(label.startswith("lam over time: between -3") for label in labels)
    assert any(f"at the end {result['one.x'][-1]:.6g}" in label for label in labels)
    assert "one.x [m]" in page.text


def test_the_title_is_the_users(tmp_path, read):
    result = cs.simulate(oscillator(), t_end=0.01, method=cs.Jacobi(), step=5e-3)
    page = read(write_report(result, tmp_path / "deep" / "er" / "report.html", title="Brakes <& wheels>"))
    assert "Brakes <& wheels>" in page.text


def test_a_run_that_stopped_says_when_and_why(tmp_path, read):
    def rhs(t, x, u):
        return -x + u if t < 0.55 else np.full_like(x, np.nan)

    tank = cs.Ode(rhs, lambda t, x, u: x, x0=[1.0], inputs=["q"], outputs=["h"], integrator="ode4", internal_step=0.05)
    system = cs.System({"tank": tank})
    system.set("tank.q", 0.0)
    with pytest.raises(cs.errors.SimulationError) as stopped:
        cs.simulate(system, t_end=2.0, method=cs.Jacobi(), step=0.1)
    page = read(write_report(stopped.value.result, tmp_path / "report.html"))
    assert "Stopped early: the last good point is t = 0.5 of 2." in page.text
    assert str(stopped.value) in page.text
    assert "5 macro steps" in page.text


def test_a_run_that_fails_in_its_first_step_still_has_a_report(tmp_path, read):
    def refuse(t, u):
        if t > 0:
            raise RuntimeError("no licence")
        return 1.0

    with pytest.raises(cs.errors.SimulationError) as stopped:
        cs.simulate(
            cs.System({"a": cs.Static(refuse, inputs=[], outputs=["y"])}), t_end=1.0, method=cs.Jacobi(), step=0.1
        )
    page = read(write_report(stopped.value.result, tmp_path / "report.html"))
    assert "no licence" in page.text
    assert "0 macro steps" in page.text


def test_a_run_that_blew_up_is_not_called_good(tmp_path, read):
    with pytest.warns(cs.errors.StabilityWarning, match="grow without bound"):
        result = cs.simulate(oscillator(1e5, 100.0), t_end=0.5, method=cs.Jacobi(degree=1), step=5e-3)
    page = read(write_report(result, tmp_path / "report.html"))
    assert "Reached t = 0.5, but the result cannot be trusted." in page.text
    assert "logarithmic axis away from zero" in page.text


def test_values_at_the_edge_of_the_number_range_can_be_drawn(tmp_path, read):
    t = np.linspace(0.0, 1.0, 400)
    wild = np.sign(np.sin(40 * t)) * np.exp(np.linspace(-5, 709, 400))
    tiny = 1e-300 * np.sin(9 * t)
    broken = np.where(t < 0.5, t, np.nan)
    y = np.stack([wild, tiny, broken, np.zeros(400)], axis=1)
    channels = {f"a.{n}": Channel("y", (i,), True) for i, n in enumerate(("wild", "tiny", "broken", "flat"))}
    page = read(write_report(made_up(t, {"y": y}, channels), tmp_path / "report.html"))
    assert "a.broken" in page.text


def test_a_million_points_stay_small_and_keep_their_peak(tmp_path, read):
    t = np.linspace(0.0, 100.0, 1_000_000)
    y = np.random.default_rng(0).standard_normal((t.size, 3))
    y[424_242, 1] = 33.0
    channels = {f"a.{n}": Channel("y", (i,), True) for i, n in enumerate("xyz")}
    path = write_report(made_up(t, {"y": y}, channels), tmp_path / "report.html")
    read(path)
    label = next(a["aria-label"] for tag, a in read(path).elements if tag == "svg" and "a.y" in a["aria-label"])
    assert "and 33," in label
    drawing = path.read_text(encoding="utf-8").split("a.y over time")[1].split("</svg>")[0]
    heights = [float(y) for _, y in _points(drawing)]
    assert min(heights) < np.median(heights) - 3 * (np.median(heights) - np.percentile(heights, 1))


def _points(drawing):
    line = max(re.findall(r' d="([^"]*)"', drawing), key=len)
    return re.findall(r"([-\d.]+) ([-\d.]+)", line)


def test_many_outputs_are_chosen_fairly_and_the_rest_is_named(tmp_path, read):
    t = np.linspace(0.0, 1.0, 20)
    names = [f"s{i}.y{k}" for i in range(15) for k in range(3)]
    y = np.outer(t, np.arange(len(names)))
    channels = {n: Channel("y", (i,), True) for i, n in enumerate(names)}
    subsystems = tuple(f"s{i}" for i in range(15))
    calls = dict.fromkeys(subsystems, 7)
    result = made_up(t, {"y": y}, channels, subsystems, calls=calls, seconds=dict.fromkeys(subsystems, 0.5))
    page = read(write_report(result, tmp_path / "report.html"))
    labels = " ".join(a["aria-label"] for tag, a in page.elements if tag == "svg")
    assert all(f"s{i}.y0 over" in labels for i in range(12))
    assert "s0.y1 over" not in labels
    assert "Not drawn: 33 more (s12.y0, s13.y0" in page.text


def test_fields_are_drawn_as_their_range(tmp_path, read):
    t = np.linspace(0.0, 1.0, 30)
    y = np.outer(np.cos(t), np.linspace(-2.0, 4.0, 100))
    channels = {"plate.T": Channel("y", tuple(range(100)), False, unit="K")}
    page = read(write_report(made_up(t, {"y": y}, channels, ("plate",)), tmp_path / "report.html"))
    assert "100 values: their range and mean" in page.text
    assert "plate.T [K]" in page.text


def test_the_history_of_a_controlled_run_is_drawn(tmp_path, read):
    tank = lambda h: cs.Linear([[-1]], [[1]], [[1]], x0=[h], inputs=["q"], outputs=["h"])  # noqa: E731
    system = cs.System({"one": tank(1.0), "two": tank(0.0)})
    system.connect("one.h", "two.q")
    system.connect("two.h", "one.q")
    result = cs.simulate(system, t_end=1.0, method=cs.Implicit(), step=cs.Adaptive(rtol=1e-3, first_step=0.2))
    page = read(write_report(result, tmp_path / "report.html"))
    for title in ("macro step H", "interface residual left", "error estimate / tolerance"):
        assert title in page.text
    assert f"{result.stats.steps} macro steps, {result.stats.rejected} rejected" in page.text


def test_a_result_read_back_from_its_file_gives_the_same_report(tmp_path):
    result = cs.simulate(oscillator(), t_end=0.1, method=cs.Implicit(), step=5e-3)
    first = write_report(result, tmp_path / "first.html").read_text(encoding="utf-8")
    again = write_report(cs.load_result(result.save(tmp_path / "run.h5")), tmp_path / "again.html")
    assert again.read_text(encoding="utf-8") == first


def test_memory_addresses_do_not_leak_into_the_report(tmp_path, read):
    result = cs.simulate(oscillator(), t_end=0.01, method=cs.Implicit(), step=5e-3)
    assert "0x" not in read(write_report(result, tmp_path / "report.html")).text


def test_a_path_that_cannot_be_written_is_said_plainly(tmp_path):
    result = cs.simulate(oscillator(), t_end=0.01, method=cs.Jacobi(), step=5e-3)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputFileError, match="cannot be written to"):
        write_report(result, tmp_path / "file" / "report.html")


def test_time_in_compiled_steps_is_not_measured(tmp_path):
    """A compiled run does not say how long its subsystems took, in print and report; a run in Python does."""
    system = cs.System(
        {n: cs.Linear([[-1]], [[1]], [[1]], x0=[k], inputs=["u"], outputs=["x"]) for k, n in enumerate("ab")}
    )
    system.connect("a.x", "b.u")
    system.connect("b.x", "a.u")
    runs = [cs.simulate(system, t_end=3.0, method=cs.Jacobi(1), step=0.01, compiled=way) for way in (True, False)]
    for run, compiled in zip(runs, (True, False), strict=True):
        text = cs.write_report(run, tmp_path / "report.html").read_text(encoding="utf-8")
        assert ("Time inside the subsystems: not measured (compiled)." in text) is compiled
        assert ("in the coupling itself" in text) is not compiled
        assert (run.stats.inside is None) is compiled
        lines = [line for line in str(run.stats).splitlines() if line.startswith(("  a: ", "  b: "))]
        assert [line.endswith("calls, not measured (compiled)") for line in lines] == [compiled] * 2


def test_the_method_has_its_degree_and_times_their_unit(tmp_path):
    """Of a run and of its file: "SemiImplicit" alone said too little, and t had no unit."""
    result = cs.simulate(cs.System({"clock": _clock()}), t_end=1.0, method=cs.SemiImplicit(2), step=0.1)
    for each in (result, cs.load_result(result.save(tmp_path / "clock.h5") or tmp_path / "clock.h5")):
        page = write_report(each, tmp_path / "page.html").read_text(encoding="utf-8")
        assert "SemiImplicit(2) run of 1 subsystem" in page
        assert "t [s]" in page
        assert "0 … 1 s" in page
        figure = each.plot("clock.t")
        assert figure.axes[-1].get_xlabel() == "t [s]"
        assert figure.axes[0].get_title(loc="left") == "SemiImplicit(2)"


def _clock():
    return cs.Static(lambda t, u: t, inputs=[], outputs=["t"])
