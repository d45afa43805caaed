"""The call as users see it: labels, failures, order, where things run, and bad input."""

import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from tests.sweeps.models import jitted, no_system, once_deadly, oscillator, pendulum, sometimes_deadly, symmetric

import cosolve as cs

RUN = {"methods": cs.Jacobi(1), "steps": 1e-2, "t_end": 0.2}


class Uneven:
    """A table of columns that do not fit together."""

    columns = ("ck", "dk")

    def __getitem__(self, name):
        return [1e3, 2e3] if name == "ck" else [1.0]


def outcome(system: cs.System, **run) -> tuple[cs.Result, cs.errors.SimulationError | None]:
    """What `simulate` gives, and the error where it stops early."""
    try:
        with np.errstate(all="ignore"):
            return cs.simulate(system, **run), None
    except cs.errors.SimulationError as error:
        return error.result, error


def last_angle(result: cs.Result) -> dict[str, float]:
    return {"angle": result["rod.x"][-1], "points": len(result.t)}


def assert_same(one: xr.Dataset, other: xr.Dataset) -> None:
    """The same bits and labels; how long it took and where it ran may differ."""
    xr.testing.assert_equal(one, other)


def test_grid_methods_and_steps_are_dimensions() -> None:
    found = cs.sweep(
        symmetric,
        {"c": [500.0, 1000.0, 1500.0], "d": [5.0, 10.0]},
        methods=[cs.Jacobi(1), cs.SemiImplicit(1), cs.Implicit(1)],
        steps=[1e-3, 2e-3],
        t_end=0.1,
        record=["one.x", "two.x"],
    )
    assert isinstance(found, xr.Dataset)
    assert found.sizes == {"c": 3, "d": 2, "coupling": 3, "step": 2}
    assert found["two.x"].dims == ("c", "d", "coupling", "step")
    assert not cs.failed_runs(found)
    assert found["coupling"].values.tolist() == ["Jacobi(1)", "SemiImplicit(1)", "Implicit(1)"]
    for method in (cs.Jacobi(1), cs.SemiImplicit(1), cs.Implicit(1)):
        run = cs.simulate(symmetric(1000.0, 5.0), method=method, step=2e-3, t_end=0.1)
        part = found.sel(c=1000.0, d=5.0, coupling=method.label, step=2e-3)
        np.testing.assert_allclose(part["one.x"], run["one.x"][-1], rtol=1e-12)
        np.testing.assert_allclose(part["two.x"], run["two.x"][-1], rtol=1e-12)
    # one correction is exact for linear systems: both corrected methods agree
    for name in ("one.x", "two.x"):
        corrected = found[name].sel(coupling="SemiImplicit(1)"), found[name].sel(coupling="Implicit(1)")
        np.testing.assert_allclose(*corrected, rtol=1e-8)
    assert "24 runs in compiled blocks" in found.attrs["how"]
    assert "12 runs one by one" in found.attrs["how"]
    assert "Implicit does not run in blocks" in found.attrs["how"]


def test_rows_of_values() -> None:
    rows = [{"ck": 1e3, "dk": 1.0}, {"ck": 2e3, "dk": 3.0}, {"ck": 1e3, "dk": 2.0}]
    found = cs.sweep(oscillator, rows, **RUN, record=["two.F"])
    table = cs.sweep(oscillator, pd.DataFrame(rows), **RUN, record=["two.F"])
    assert found["two.F"].dims == ("variant",)
    np.testing.assert_array_equal(found["two.F"], table["two.F"])
    part = found.isel(variant=found["ck"] == 1e3)
    assert part["two.F"].values.tolist() == found["two.F"].values[[0, 2]].tolist()
    frame = found.to_dataframe()
    assert set(frame.columns) == {"ck", "dk", "two.F", "error", "note"}
    assert frame["dk"].tolist() == [1.0, 3.0, 2.0]


def test_trajectories() -> None:
    grid = {"c": [500.0, 1000.0], "d": [5.0]}
    one = cs.sweep(symmetric, grid, methods=cs.Jacobi(1), steps=1e-2, t_end=0.105, reduce="trajectory", every=3)
    run = cs.simulate(symmetric(1000.0, 5.0), method=cs.Jacobi(1), step=1e-2, t_end=0.105, every=3)
    assert one["two.v"].dims == ("c", "d", "t")
    np.testing.assert_array_equal(one["t"], run.t)
    np.testing.assert_allclose(one.sel(c=1000.0, d=5.0)["two.v"], run["two.v"], rtol=1e-11)
    two = cs.sweep(symmetric, grid, methods=cs.Jacobi(1), steps=[0.01, 0.02], t_end=0.1, reduce="trajectory")
    assert two["two.v"].dims == ("c", "d", "step", "point")
    longer = two["two.v"].sel(step=0.02)
    assert np.isnan(longer[..., 6:]).all()
    assert np.isfinite(longer[..., :6]).all()
    np.testing.assert_allclose(longer["t"][:6], np.arange(6) * 0.02)
    frame = two.to_dataframe().reset_index()
    assert frame[frame["step"] == 0.02]["t"].dropna().max() == 0.1


@pytest.mark.parametrize("reduce", ["end", "trajectory"])
@pytest.mark.filterwarnings("ignore:values grow without bound")  # of the runs that the sweep is compared with
def test_runs_that_blow_up_are_marked_and_the_others_kept(reduce) -> None:
    """Large steps: stiff variants are unstable; same verdict and same last good step as `simulate`."""
    stiff = np.geomspace(1e2, 1e7, 70)
    grid = {"ck": stiff, "dk": [1.0]}
    with np.errstate(all="ignore"):
        found = cs.sweep(oscillator, grid, methods=cs.Jacobi(0), steps=1e-2, t_end=6.0, record="two.F", reduce=reduce)
    failures = cs.failed_runs(found)
    assert 0 < len(failures) < 70
    assert (found["error"] != "").sum() == len(failures)
    words = {failure.at["ck"]: failure.message for failure in failures}
    verdicts = set()
    for k in (0, 10, 40, 60, 69):
        run, failure = outcome(oscillator(stiff[k]), method=cs.Jacobi(0), step=1e-2, t_end=6.0)
        verdicts.add(failure is None)
        values = np.atleast_1d(found["two.F"].values[k, 0])
        if failure is None:
            assert stiff[k] not in words
            np.testing.assert_allclose(values[-1], run["two.F"][-1], rtol=1e-9)
            continue
        assert f"from t = {failure.time:.9g};" in words[stiff[k]]
        assert np.isnan(values[-1])
        if reduce == "trajectory":
            np.testing.assert_allclose(values[: len(run.t)], run["two.F"], rtol=1e-7)
            assert np.isnan(values[len(run.t) :]).all()
    assert verdicts == {True, False}
    assert (found.to_dataframe()["error"] != "").any()
    assert str(failures[0]).startswith(f"ck = {failures[0].at['ck']}, dk = 1.0: an output is no longer finite")


def test_growth_is_told_of_the_variant_and_does_not_warn_of_the_sweep(recwarn) -> None:
    """Runs one by one, of which some grow without bound."""
    found = cs.sweep(
        oscillator, {"ck": [1e3, 2e4]}, methods=cs.Jacobi(0), steps=1e-2, t_end=1.0, record="two.F", executor="serial",
        reduce=lambda result: result["two.F"][-1],
    )  # fmt: skip
    assert not [w for w in recwarn if issubclass(w.category, cs.errors.StabilityWarning)]
    with pytest.warns(cs.errors.StabilityWarning, match="grow without bound"):
        outcome(oscillator(2e4), method=cs.Jacobi(0), step=1e-2, t_end=1.0)
    assert "grow without bound" in str(found["note"].values[1])


def test_a_variant_that_cannot_be_built_is_marked() -> None:
    def build(length):
        if length == 2.0:
            raise ValueError("too long")
        return pendulum(length)

    found = cs.sweep(build, {"length": [2.0, 1.0, 2.0, 3.0]}, **RUN, record="rod.x", executor="serial")
    assert np.isnan(found["rod.x"].values).tolist() == [True, False, True, False]
    assert [f.message for f in cs.failed_runs(found)] == ["build failed: too long (ValueError)"] * 2


def test_variants_of_different_structure() -> None:
    """Two kinds of linear systems and one that is not linear, mixed: each as `simulate` gives it."""

    def build(kind):
        return {"a": oscillator(), "b": symmetric(1e3, 1.0), "c": _with_ode()}[kind]

    def _with_ode():
        system = symmetric(1e3, 1.0)
        twin = cs.System({**system.subsystems, "clock": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])})
        for source, target in (("two.x", "one.foreign_x"), ("two.v", "one.foreign_v")):
            twin.connect(source, target)
            twin.connect(source.replace("two", "one"), target.replace("one", "two"))
        return twin

    found = cs.sweep(build, {"kind": list("abcabc")}, **RUN, record="one.x")
    expected = [cs.simulate(build(k), method=cs.Jacobi(1), step=1e-2, t_end=0.2)["one.x"][-1] for k in "abc"] * 2
    np.testing.assert_allclose(found["one.x"], expected, rtol=1e-12)
    assert "4 runs in compiled blocks" in found.attrs["how"]
    assert "2 runs one by one" in found.attrs["how"]


def test_a_function_of_the_result() -> None:
    found = cs.sweep(pendulum, {"length": [1.0, 2.0]}, **RUN, reduce=last_angle)
    assert list(found.data_vars) == ["angle", "points", "error", "note"]
    assert found["points"].values.tolist() == [21.0, 21.0]
    number = cs.sweep(pendulum, {"length": [1.0, 2.0]}, **RUN, reduce=lambda result: result["rod.x"].max())
    assert number["value"].dims == ("length",)
    assert number["value"].values.tolist() == [1.0, 1.0]
    row = cs.sweep(pendulum, {"length": [1.0, 2.0]}, **RUN, reduce=lambda result: result["rod.x"][:3])
    assert row["value"].dims == ("length", "quantity")
    parameter = cs.sweep(pendulum, {"length": [1.0, 2.0]}, **RUN, reduce=lambda result: {"length": 3.0, "error": 4.0})
    assert parameter["length_"].values.tolist() == [3.0, 3.0]
    assert parameter["error_"].values.tolist() == [4.0, 4.0]
    uneven = cs.sweep(pendulum, {"length": [1.0, 2.0]}, **RUN, reduce=lambda r: np.zeros(2 + (r["rod.x"][-1] > 0.9)))
    assert "reduce returned values of shape (3,), but (2,) for other variants" in cs.failed_runs(uneven)[0].message
    broken = cs.sweep(pendulum, {"length": [1.0]}, **RUN, reduce=lambda result: result["nothing"])
    assert "reduce failed" in cs.failed_runs(broken)[0].message
    assert np.isnan(broken["value"]).all()


def test_steps_that_choose_themselves() -> None:
    found = cs.sweep(
        pendulum, {"length": [1.0]}, methods=cs.Jacobi(1), steps=cs.Adaptive(rtol=1e-4), t_end=0.5, record="rod.x"
    )
    exact = cs.simulate(pendulum(1.0), method=cs.Jacobi(2), step=1e-3, t_end=0.5)
    assert abs(found["rod.x"][0] - exact["rod.x"][-1]) < 1e-3
    with pytest.raises(cs.errors.SetupError, match="whole trajectories need macro steps of one length"):
        cs.sweep(pendulum, {"length": [1.0]}, methods=cs.Jacobi(1), steps=cs.Adaptive(), t_end=1, reduce="trajectory")


def test_the_compiled_loop_runs_what_does_not_run_in_blocks() -> None:
    """20 000 steps of all variants together repay loading it; the same bits as the Python engine."""
    run = {"methods": cs.Implicit(1), "steps": 1e-3, "t_end": 1.0, "record": ["one.x"], "workers": 1}
    damping = np.linspace(1.0, 10.0, 20)
    found = cs.sweep(symmetric, {"c": [1e3], "d": damping}, **run)
    assert found.attrs["how"] == (
        "20 runs one by one through the compiled loop in this process, not in blocks "
        "(Implicit does not run in blocks: its macro step uses the operation 'converged', which has no meaning there)"
    )
    readable = cs.sweep(symmetric, {"c": [1e3], "d": damping[:1]}, **run, compiled=False)
    assert "compiled loop" not in readable.attrs["how"]
    np.testing.assert_array_equal(found["one.x"][:, :1], readable["one.x"])


@pytest.mark.slow
def test_jitted_systems_go_through_the_compiled_loop() -> None:
    run = {"methods": cs.Jacobi(1), "steps": 1e-3, "t_end": 3.0, "record": ["rod.x"]}
    found = cs.sweep(jitted, {"start": np.linspace(0.1, 1.0, 8)}, **run)
    assert "through the compiled loop" in found.attrs["how"]
    assert "'rod' (Ode) is not a Linear subsystem" in found.attrs["how"]
    readable = cs.sweep(jitted, {"start": np.linspace(0.1, 1.0, 8)[:2]}, **run, compiled=False)
    np.testing.assert_array_equal(found["rod.x"][:2], readable["rod.x"])


def test_order_and_place_do_not_matter() -> None:
    """Serial, threads, processes, and the variants the other way round: the same bits."""
    lengths = [0.5, 1.0, 1.5, 2.0, 2.5]
    here = cs.sweep(pendulum, {"length": lengths}, **RUN, executor="serial")
    there = cs.sweep(pendulum, {"length": lengths}, **RUN, executor="processes", workers=2)
    assert "in 2 processes" in there.attrs["how"]
    assert_same(here, there)
    back = cs.sweep(pendulum, {"length": lengths[::-1]}, **RUN, executor="serial")
    assert_same(here, back.isel(length=slice(None, None, -1)))
    stiff = {"ck": np.linspace(1e3, 2e3, 70)}
    one, two = (cs.sweep(oscillator, stiff, **RUN, workers=n) for n in (1, 2))
    assert_same(one, two)
    turned = cs.sweep(oscillator, {"ck": stiff["ck"][::-1]}, **RUN)
    assert_same(one, turned.isel(ck=slice(None, None, -1)))


def test_a_process_that_dies_takes_only_its_variant_with_it() -> None:
    lengths = [1.0, 1.5, 3.0, 2.0]
    found = cs.sweep(sometimes_deadly, {"length": lengths}, **RUN, record="rod.x", executor="processes", workers=2)
    assert [f.at for f in cs.failed_runs(found)] == [{"length": 3.0}]
    assert "its worker process died" in cs.failed_runs(found)[0].message
    good = cs.sweep(pendulum, {"length": [1.0, 1.5, 2.0]}, **RUN, record="rod.x", executor="serial")
    np.testing.assert_array_equal(found["rod.x"][[0, 1, 3]], good["rod.x"])
    assert "1 of them ended their process" in found.attrs["how"]


def test_build_that_other_processes_cannot_import_runs_here() -> None:
    found = cs.sweep(lambda length: pendulum(length), {"length": [1.0]}, **RUN, executor="processes")
    assert "define it at the top of a module" in found.attrs["how"]
    assert not cs.failed_runs(found)


def test_dask() -> None:
    distributed = pytest.importorskip("dask.distributed")
    with distributed.Client(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as client:
        grid = {"ck": np.linspace(1e3, 2e3, 70), "dk": [1.0, 2.0]}
        spread = cs.sweep(oscillator, grid, **RUN, client=client)
        lengths = cs.sweep(lambda length: pendulum(length), {"length": [1.0, 2.0, 3.0]}, **RUN, client=client)
    assert_same(spread, cs.sweep(oscillator, grid, **RUN))
    here = cs.sweep(pendulum, {"length": [1.0, 2.0, 3.0]}, **RUN, executor="serial")
    assert_same(lengths, here)
    assert "Dask cluster" in spread.attrs["how"]
    with pytest.raises(cs.errors.SetupError, match=r"client must be a dask.distributed.Client, not a int"):
        cs.sweep(oscillator, grid, **RUN, client=3)


@pytest.mark.slow
def test_dask_goes_on_when_a_worker_of_the_cluster_is_killed(tmp_path) -> None:
    """Two processes, one of which is gone in the middle: the cluster gives its variants to another."""
    distributed = pytest.importorskip("dask.distributed")
    lengths = [1.0, 1.5, 3.0, 2.0, 2.5]
    with distributed.Client(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as client:
        found = cs.sweep(partial(once_deadly, folder=str(tmp_path)), {"length": lengths}, **RUN, client=client)
    assert (tmp_path / "grave").exists()
    assert not cs.failed_runs(found)
    assert_same(found, cs.sweep(pendulum, {"length": lengths}, **RUN, executor="serial"))


def test_without_dask(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    with pytest.raises(cs.errors.SetupError, match=r"needs dask.*pip install 'cosolve\[cluster\]'"):
        cs.sweep(oscillator, {"ck": [1e3]}, **RUN, executor="dask")


def test_progress() -> None:
    seen: list[float] = []
    cs.sweep(oscillator, {"ck": [1e3, 2e3], "dk": [1.0, 2.0]}, **RUN, progress=seen.append)
    assert seen[-1] == 1.0
    assert seen == sorted(seen)
    seen.clear()
    cs.sweep(pendulum, {"length": [1.0, 2.0]}, **RUN, progress=seen.append)
    assert seen[-1] == 1.0


@pytest.mark.parametrize(
    ("parameters", "more", "words"),
    [
        ({}, {}, "no parameters are given, so there is nothing to run"),
        ({"ck": []}, {}, "'ck' has no values"),
        ([], {}, "no rows"),
        ({"ck": 1e3}, {}, r"give a list, \[1000.0\] for a single one"),
        ({"ckk": [1.0]}, {}, "build takes no parameter 'ckk'; did you mean 'ck'?"),
        ({"step": [1.0]}, {}, "cannot be called 'step'"),
        ([{"ck": 1.0, "dk": 1.0}, {"ck": 1.0}], {}, "row 1 differs from row 0 in 'dk'"),
        (7, {}, "parameters are a dict of lists"),
        ({"ck": [1e3]}, {"record": ["two.FF"]}, "there is no 'two.FF'; did you mean 'two.F'?"),
        ({"ck": [1e3]}, {"workers": 0}, "workers must be a whole number of at least 1, not 0"),
        ({"ck": [1e3]}, {"every": 0}, "every must be a whole number of at least 1, not 0"),
        ({"ck": [1e3]}, {"executor": "cloud"}, "executor must be 'auto', 'serial', 'processes' or 'dask'"),
        ({"ck": [1e3]}, {"reduce": "mean"}, "reduce must be one of 'end', 'max', 'min', 'peak', 'trajectory' or"),
        ({"ck": [1e3]}, {"methods": []}, "no methods given"),
        ({"ck": [1e3]}, {"methods": ["Jakobi"]}, "there is no method 'Jakobi'; did you mean 'jacobi'"),
        ({"ck": [1e3]}, {"steps": []}, "no steps given"),
        ({"ck": [1e3]}, {"steps": [0.1, -0.1]}, "steps must be a positive, finite number"),
        ({"ck": [1e3]}, {"steps": [0.1, 0.1]}, "the same step is given twice"),
        ({"ck": [1e3]}, {"t_end": 0.0}, "is not after t_start"),
    ],
)
def test_bad_input(parameters, more, words) -> None:
    with pytest.raises(cs.errors.SetupError, match=words):
        cs.sweep(oscillator, parameters, **{**RUN, **more})


def test_bad_builds() -> None:
    with pytest.raises(cs.errors.SetupError, match="build returned a dict, not a System; end it with 'return system'"):
        cs.sweep(no_system, {"length": [1.0]}, **RUN)
    with pytest.raises(cs.errors.SetupError, match="'length' is no parameter and no constant input of the system"):
        cs.sweep(oscillator(), {"length": [1.0]}, **RUN)
    with pytest.raises(cs.errors.SetupError, match="build needs a value for 'd'"):
        cs.sweep(symmetric, {"c": [1.0]}, **RUN)
    with pytest.raises(
        cs.errors.SetupError, match="none of the 2 variants can be built; the first one: build failed: division"
    ):
        cs.sweep(lambda a: 1 / 0, {"a": [1, 2]}, **RUN)
    with pytest.raises(
        cs.errors.SetupError, match=r"columns of different lengths, {'ck': 2, 'dk': 1}; each row is one variant"
    ):
        cs.sweep(oscillator, Uneven(), **RUN)


def test_thousands_of_failures() -> None:
    """5000 of 10 000 variants failed, and one has NaN for a parameter; parts know their own failures."""
    count = 10_000
    c = np.linspace(1.0, 2.0, count)
    c[7] = np.nan
    errors = np.array([f"no {k}" if k % 2 else "" for k in range(count)], dtype=object)
    found = xr.Dataset(
        {"x": ("variant", np.ones(count)), "error": ("variant", errors)},
        {"variant": np.arange(count), "c": ("variant", c)},
    )
    failures = cs.failed_runs(found)
    assert [f.message for f in failures] == [f"no {k}" for k in range(1, count, 2)]
    assert failures[0].at == {"variant": 1, "c": c[1]}
    part = found.isel(variant=slice(0, count, 5))
    assert [f.at["variant"] for f in cs.failed_runs(part)] == list(range(5, count, 10))
    one = cs.failed_runs(found.sel(variant=7))
    assert (len(one), one[0].at["variant"], np.isnan(one[0].at["c"])) == (1, 7, True)
    with pytest.raises(
        cs.errors.SetupError, match=r"there is no variable 'error', only x; give what cs.sweep returned"
    ):
        cs.failed_runs(found[["x"]])


def test_failures_at_nan_in_a_grid() -> None:
    found = cs.sweep(oscillator, {"ck": [1e3, np.nan], "dk": [1.0, 2.0]}, **RUN)
    assert (found["error"] != "").values.tolist() == [[False, False], [True, True]]
    assert found.to_dataframe()["error"].astype(bool).tolist() == [False, False, True, True]
    assert len(cs.failed_runs(found.sel(dk=2.0))) == 1


def test_a_table_of_trajectories_with_several_steps() -> None:
    """Macro points of each step; points that a longer step does not have are NaN."""
    found = cs.sweep(
        oscillator, {"ck": [1e3]}, methods=cs.Jacobi(1), steps=[1e-2, 2e-2], t_end=0.06, reduce="trajectory"
    )
    table = found.to_dataframe().reset_index()
    np.testing.assert_allclose(table["t"][table["step"] == 1e-2], np.arange(7) * 1e-2)
    np.testing.assert_allclose(table["t"][table["step"] == 2e-2], [0.0, 0.02, 0.04, 0.06, *[np.nan] * 3])


def test_units_version_and_what_was_done_stand_in_the_attributes() -> None:
    def tank(level):
        subsystem = cs.Linear([[-1]], [], [[1]], x0=[level], inputs=[], outputs=[cs.Port("h", unit="m")])
        return cs.System({"tank": subsystem})

    found = cs.sweep(tank, {"level": [1.0, 2.0]}, methods=cs.Jacobi(1), steps=0.5, t_end=1.0)
    assert found["tank.h"].attrs == {"units": "m"}
    kept = {name: found.attrs[name] for name in ("cosolve_version", "t_start", "t_end", "reduce", "coupling", "step")}
    assert kept == {
        "cosolve_version": cs.__version__,
        "t_start": 0.0,
        "t_end": 1.0,
        "reduce": "end",
        "coupling": "Jacobi(1)",
        "step": 0.5,
    }
    assert 0.0 < found.attrs["seconds_building"] < found.attrs["seconds"]


def test_a_sweep_in_a_netcdf_file(tmp_path) -> None:
    """Numbers, labels, messages and attributes come back from a file that every netCDF tool reads."""
    pytest.importorskip("h5netcdf")
    steps = [1e-2, cs.Adaptive()]
    found = cs.sweep(oscillator, {"ck": [1e3, np.nan]}, methods=[cs.Jacobi(1), cs.Implicit(1)], steps=steps, t_end=0.02)
    found.to_netcdf(tmp_path / "sweep.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "sweep.nc", engine="h5netcdf") as back:
        xr.testing.assert_equal(back, found)
        assert back.attrs == found.attrs
        assert [f.message for f in cs.failed_runs(back)] == [f.message for f in cs.failed_runs(found)]


def test_a_parameter_of_objects_is_a_label() -> None:
    """Tuples and functions can be swept over; they are kept as they are."""
    starts = [(1.0, 0.0), (2.0, 0.0)]

    def build(start):
        return pendulum(start[0])

    found = cs.sweep(build, {"start": starts}, **RUN, record="rod.x")
    assert found["start"].values.tolist() == starts
    assert found["rod.x"].shape == (2,)


def test_xarray_is_imported_with_the_first_sweep() -> None:
    script = (
        "import sys, cosolve as cs\n"
        "cs.sweep, cs.simulate, cs.failed_runs\n"
        "assert 'xarray' not in sys.modules\n"
        "def build(k): return cs.System({'a': cs.Linear([[-k]], [], [[1]], x0=[1], inputs=[], outputs=['x'])})\n"
        "cs.sweep(build, {'k': [1.0]}, methods=cs.Jacobi(), steps=0.5, t_end=0.5, compiled=False)\n"
        "assert 'xarray' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
