"""Starts of runs that know something about their past: function, table, file, rates; and inputs that follow rates.

One model: a mass that is pushed by a spring whose other end moves, cut at the spring; it begins in full motion.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

import cosolve as cs

W, T0, H = 3.0, 0.4, 0.01


@njit
def _spring(t, x, u):
    return 50.0 * (u[:1] - x)


@njit
def _force(t, x, u):
    return 9.0 * u[:1] + 0.0 * x


def parts() -> tuple[cs.Linear, cs.Ode]:
    """`x'' = -9 x`: what moves, and what answers with a force."""
    x0 = [np.cos(W * T0), -W * np.sin(W * T0)]
    one = cs.Linear([[0, 1], [0, 0]], [[0], [-1]], np.eye(2), x0=x0, inputs=["f"], outputs=["x", "v"])
    settings = {"integrator": "ode4", "internal_step": 1e-3}
    two = cs.Ode(_spring, _force, x0=[x0[0]], inputs=["x", "v"], outputs=["f"], **settings)
    return one, two


def pair(*, integrated: bool = False) -> cs.System:
    one, two = parts()
    second: Any = cs.IntegratedInputs(two, {"x": "v"}) if integrated else two
    system = cs.System({"one": one, "two": second})
    for source, target in (("one.x", "two.x"), ("one.v", "two.v"), ("two.f", "one.f")):
        system.connect(source, target)
    return system


def exact(t: Any) -> dict[str, Any]:
    return {"one.x": np.cos(W * t), "one.v": -W * np.sin(W * t), "two.f": 9.0 * np.cos(W * t)}


def run(system: cs.System, degree: int = 2, startup: Any = None, step: Any = H, **more: Any) -> cs.Result:
    return cs.simulate(system, t_start=T0, t_end=T0 + 1.0, method=cs.Jacobi(degree), step=step, startup=startup, **more)


def error(result: cs.Result) -> float:
    return float(np.abs(result["one.x"] - np.cos(W * result.t)).max())


def table(times: Any) -> dict[str, Any]:
    return {"t": times, **exact(np.asarray(times))}


def test_a_table_is_as_good_as_a_function() -> None:
    """The same times give the same bits; other times, not even equally spaced, the same error."""
    by_function = run(pair(), startup=cs.KnownHistory(exact))
    by_table = run(pair(), startup=cs.KnownHistory(table=table([T0 - 2 * H, T0 - H, T0, T0 + H])))
    assert by_table["one.x"] == pytest.approx(by_function["one.x"], rel=1e-14)  # the times of the table are rounded
    uneven = run(pair(), startup=cs.KnownHistory(table=table([T0 - 3 * H, T0 - 2.2 * H, T0 - 0.7 * H])))
    assert error(uneven) == pytest.approx(error(by_function), rel=0.05)
    rising = run(pair(), startup=cs.RisingDegree())
    assert error(by_function) < 0.1 * error(rising)  # else nothing would be gained by knowing the past


def test_a_table_comes_from_a_file_in_a_system_file(tmp_path: Path) -> None:
    """The path is relative to the system file; what a run wrote as CSV serves as the past of the next."""
    before = cs.simulate(pair(), t_start=T0, t_end=T0 + 0.1, method=cs.Jacobi(2), step=H)
    before.save(tmp_path / "past.csv")
    (tmp_path / "system.toml").write_text(
        """
        [subsystems]
        one = {factory = "model:one"}
        two = {factory = "model:two"}
        [[connections]]
        from = "one.x"
        to = "two.x"
        [[connections]]
        from = "one.v"
        to = "two.v"
        [[connections]]
        from = "two.f"
        to = "one.f"
        [simulation]
        t_start = 0.5
        t_end = 0.7
        method = {name = "jacobi", degree = 2}
        step = 0.01
        startup = {name = "known-history", table = "past.csv"}
        """
    )
    (tmp_path / "model.py").write_text(
        "import cosolve as cs\n"
        "def one(): return cs.Ode(lambda t, x, u: [x[1], -u[0]], lambda t, x, u: x, x0=[0.3, -2.0], inputs=['f'], "
        "outputs=['x', 'v'], integrator='ode4', internal_step=1e-3)\n"
        "def two(): return cs.Static(lambda t, u: 9.0 * u[0], inputs=['x', 'v'], outputs=['f'])\n"
    )
    described = cs.load_system(tmp_path / "system.toml")
    assert isinstance(described.options.startup, cs.KnownHistory)
    assert described.options.startup.table == str(tmp_path / "past.csv")
    found = described.run()
    assert len(found.t) == 21
    text = (tmp_path / "system.toml").read_text().replace('"known-history", table', '"known-rates", rates')
    (tmp_path / "system.toml").write_text(text.replace('"past.csv"', '{"one.x" = "one.v"}'))
    assert cs.load_system(tmp_path / "system.toml").options.startup == cs.KnownRates({"one.x": "one.v"})


ALL_RATES = {"one.x": "one.v", "one.v": [-9.0 * np.cos(W * T0)], "two.f": -9.0 * W * np.sin(W * T0)}


@pytest.mark.parametrize(
    ("method", "startup"),
    [
        (cs.Jacobi(2), cs.KnownHistory(exact)),
        (cs.Jacobi(2), cs.KnownRates(ALL_RATES)),
        pytest.param(cs.GaussSeidel(1), cs.KnownRates(ALL_RATES), marks=pytest.mark.slow),
        pytest.param(cs.SemiImplicit(2), cs.KnownHistory(exact), marks=pytest.mark.slow),
    ],
)
def test_both_engines_have_the_same_bits(method: cs.Jacobi, startup: Any) -> None:
    for integrated in (False, True):
        settings = {"t_start": T0, "t_end": T0 + 2.0, "method": method, "step": H, "startup": startup}
        fast = cs.simulate(pair(integrated=integrated), **settings, compiled=True)
        slow = cs.simulate(pair(integrated=integrated), **settings, compiled=False)
        assert fast.stats.compiled_steps > 150
        assert slow.stats.compiled_steps == 0
        assert np.array_equal(fast.column("y"), slow.column("y"))


def test_rates_keep_the_order_up_to_degree_two() -> None:
    """All rates known: order 3 with degree 2, and no start-up error to be seen with degree 1."""
    rates = ALL_RATES
    errors = [error(run(pair(), startup=cs.KnownRates(rates), step=step)) for step in (0.04, 0.02)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(3.0, abs=0.4)
    one, known = (error(run(pair(), 1, s)) for s in (cs.KnownRates(rates), cs.KnownHistory(exact)))
    assert one == pytest.approx(known, rel=0.1)


def test_integrated_inputs_are_one_order_better() -> None:
    """Degree 0: the place moves on with the speed. Alone the force is held then, which leaves order 1."""
    held, moved = (error(run(pair(integrated=one), 0)) for one in (False, True))
    assert moved < 0.7 * held
    drive = cs.Static(lambda t, u: [np.cos(W * t), -W * np.sin(W * t)], inputs=[], outputs=["x", "v"])
    errors = []
    for step in (0.02, 0.01):
        system = cs.System({"one": drive, "two": cs.IntegratedInputs(parts()[1], {"x": "v"})})
        system.connect("one.x", "two.x")
        system.connect("one.v", "two.v")
        run_0 = cs.simulate(system, t_start=T0, t_end=T0 + 1, method=cs.Jacobi(0), step=step)
        errors.append(np.abs(run_0["two.f"][1:] - 9.0 * np.cos(W * run_0.t[1:])).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize(
    ("startup", "sentence"),
    [
        (cs.KnownHistory(table=table([T0 - H])), "has 1 row before the start at t = 0.4 .* looks back at 2; give more"),
        (cs.KnownHistory(table=table([T0, T0 + H])), "has 0 rows before the start"),
        (cs.KnownHistory(table=table([-1.1, -1.0])), "is at t = -1, 140 macro steps back"),
        (cs.KnownHistory(table=table([T0 - H, T0 - 2 * H])), "must be numbers that increase"),
        (cs.KnownHistory(table={"t": [0.1, 0.2], "one.x": [1.0]}), "2 times, but 1 for 'one.x'"),
        (cs.KnownHistory(table={"one.x": [1.0]}), "times under 't'"),
        (cs.KnownHistory(table={"t": ["a"], "one.x": [1.0]}), "something else than columns of numbers"),
        (cs.KnownHistory(table="nowhere.csv"), "there is no file 'nowhere.csv'"),
        (cs.KnownHistory(lambda t: {**exact(t), "one.y": 0.0}), "names 'one.y', which is no output.*'one.x'"),
        (cs.KnownHistory(lambda t: {**exact(t), "one.x": [1.0, 2.0]}), "'one.x': expected 1 finite number"),
        (cs.KnownHistory(lambda t: {**exact(t), "one.x": np.nan}), "expected 1 finite number, not nan"),
        (cs.KnownHistory(lambda t: {"one.x": 0.0}), "gives no value for 'one.v', which is read"),
        (cs.KnownHistory(lambda t: 3.0), "returned 3.0"),
        (cs.KnownHistory(exact, spacing=-1.0), "spacing must be a positive number"),
        (cs.KnownRates({"one.x": "one.w"}), "name 'one.w', which is no output"),
        (cs.KnownRates({"two.x": 1.0}), "name 'two.x', which is no output"),
        (cs.KnownRates({"one.x": [1.0, 2.0]}), "the rate of 'one.x': expected 1 finite number"),
        (cs.KnownRates(["one.x"]), "rates map addresses to rates"),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_fit_is_said(startup: Any, sentence: str) -> None:
    with pytest.raises(cs.errors.SetupError, match=sentence):
        run(pair(), startup=startup)


@pytest.mark.parametrize("method", [cs.GaussSeidel(0), cs.SemiImplicit(0), cs.Implicit(0)], ids=lambda m: m.label)
def test_inputs_cannot_go_on_from_the_end_of_the_step(method: cs.GaussSeidel) -> None:
    with pytest.raises(
        cs.errors.CapabilityError, match=r"at values of the end of the step, but 'two' .* take degree 1, or"
    ):
        cs.simulate(pair(integrated=True), t_start=T0, t_end=T0 + 0.1, method=method, step=H)


def test_what_does_not_fit_is_said_at_once() -> None:
    _, two = parts()
    with pytest.raises(cs.errors.SetupError, match="a table has times of its own"):
        cs.KnownHistory(exact, table={})
    with pytest.raises(cs.errors.SetupError, match="must be a function of time"):
        cs.KnownHistory({"t": [0.0]})  # type: ignore[arg-type]
    with pytest.raises(cs.errors.SetupError, match="there is no input 'w'; there are 'x', 'v'"):
        cs.IntegratedInputs(two, {"x": "w"})
    with pytest.raises(cs.errors.SetupError, match="integrated once"):
        cs.IntegratedInputs(two, {"x": "v", "v": "x"})
    with pytest.raises(cs.errors.SetupError, match="rates map inputs to their rates"):
        cs.IntegratedInputs(two, {})
    wide = cs.Static(lambda t, u: u[:1], inputs=[("x", 2), "v"], outputs=["y"])
    with pytest.raises(cs.errors.SetupError, match="'x' has 2 numbers, but 'v', its rate, 1 number"):
        cs.IntegratedInputs(wide, {"x": "v"})
