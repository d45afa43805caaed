"""Results on disk: bit for bit there and back, readable after a kill, bounded memory, clear refusals."""

import os
import shutil
import signal
import sys
import tracemalloc
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

import h5py
import numpy as np
import pytest
from examples.two_mass.model import force_displacement
from tests import processes

import cosolve as cs
from cosolve.result import Channel, Layout, Row, Stats
from cosolve.result import store as store_module
from cosolve.result.store import Stream, load, save_result

COLUMNS = (
    *("t", "y", "z", "H", "iterations", "residual", "error", "rejected", "calls", "norms_end", "norms"),
    "seconds",
)


def _run(save=None, **options):
    arguments = {"t_end": 0.01, "method": cs.SemiImplicit(degree=1), "step": 1e-4, **options}
    return cs.simulate(force_displacement(), save=save, **arguments)


def _same(one, other):
    for name in COLUMNS:
        a, b = one.column(name), other.column(name)
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes(), name
    assert one.channels == other.channels
    assert one.subsystems == other.subsystems
    assert one.meta == other.meta
    assert one.error == other.error
    np.testing.assert_equal(asdict(one.stats), asdict(other.stats))  # NaN equals NaN here


@pytest.mark.parametrize("method", [cs.SemiImplicit(degree=1), cs.Jacobi(degree=1)], ids=["residuals", "NaN residuals"])
def test_saving_and_loading_keeps_every_bit(tmp_path, method):
    result = _run(method=method)
    _same(result, load(result.save(tmp_path / "run.h5")))


def test_a_streamed_run_is_the_run_in_memory(tmp_path):
    memory, streamed = _run(), _run(save=tmp_path / "run.h5")
    for name in COLUMNS[:-1]:  # all but the seconds, which no two runs share
        assert memory.column(name).tobytes() == streamed.column(name).tobytes()
    _same(streamed, load(tmp_path / "run.h5"))


def test_a_system_without_coupling_variables_and_a_vector_port(tmp_path):
    clock = cs.Static(lambda t, u: [t, 2 * t, -t], inputs=[], outputs=[("r", 3)])
    result = cs.simulate(
        cs.System({"clock": clock}), t_end=1.0, method=cs.Jacobi(), step=0.25, save=tmp_path / "run.h5"
    )
    again = load(tmp_path / "run.h5")
    assert again.column("z").shape == (5, 0)
    np.testing.assert_array_equal(again["clock.r"], np.outer([0, 0.25, 0.5, 0.75, 1.0], [1, 2, -1]))
    _same(result, again)
    header, *lines = result.save(tmp_path / "run.csv").read_text().splitlines()
    assert header == "t,clock.r[0],clock.r[1],clock.r[2]"
    assert lines[1] == "0.25,0.25,0.5,-0.25"


def test_csv_reads_back_exactly(tmp_path):
    result = _run()
    path = result.save(tmp_path / "run.csv")
    header = path.read_text().partition("\n")[0].split(",")
    assert header == ["t", *result.names]
    values = np.loadtxt(path, delimiter=",", skiprows=1)
    for i, name in enumerate(result.names):  # the shortest exact decimals: equal, not close
        np.testing.assert_array_equal(values[:, i + 1], result[name])


def test_copying_a_loaded_result_to_another_file_and_onto_itself(tmp_path):
    first = _run(save=tmp_path / "a.h5")
    copy = load(load(tmp_path / "a.h5").save(tmp_path / "b.h5"))
    _same(first, copy)
    load(tmp_path / "a.h5").save(tmp_path / "a.h5")
    _same(load(tmp_path / "a.h5"), copy)


def test_a_run_that_stops_early_keeps_its_rows_and_its_reason(tmp_path):
    def rhs(t, x, u):
        if t > 0.5:
            raise RuntimeError("valve stuck")
        return -x

    ode = cs.Ode(rhs, lambda t, x, u: x, x0=[1.0], inputs=[], outputs=["x"], integrator="ode4", internal_step=0.1)
    with pytest.raises(cs.errors.SimulationError, match="valve stuck") as stopped:
        cs.simulate(cs.System({"tank": ode}), t_end=1.0, method=cs.Jacobi(), step=0.1, save=tmp_path / "run.h5")
    kept = load(tmp_path / "run.h5")
    assert kept.t[-1] == pytest.approx(0.5)  # the last macro point before the right-hand side failed
    assert not kept.finished
    assert "valve stuck" in kept.error
    _same(stopped.value.result, kept)


def test_an_interrupted_run_does_not_claim_to_be_finished(tmp_path):
    def stop(fraction):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _run(save=tmp_path / "run.h5", progress=stop)
    kept = load(tmp_path / "run.h5")
    assert "KeyboardInterrupt" in kept.error
    assert len(kept) > 0


KILLED = """
import sys, numpy as np
from pathlib import Path
from cosolve.result import Channel, Layout, Row
from cosolve.result.store import Stream
stream = Stream(Path(sys.argv[1]), Layout(2, 1, 1), {"a.x": Channel("y", (1,), True)}, ("a",), {"method": "none"})
for n in range(10_000_000):
    stream.append(Row(n * 0.5, np.array([0.0, 3.0 * n]), np.array([1.0]), 0.5, 2, 1e-9, calls=np.array([3])))
"""


def test_a_killed_run_is_readable_up_to_the_last_flush(tmp_path):
    path = tmp_path / "run.h5"
    with processes.started([sys.executable, "-c", KILLED, str(path)]) as process:
        assert processes.until(lambda: path.exists() and path.stat().st_size > 2_000_000)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    result = load(path)
    rows = len(result)
    assert rows > 4096  # the first row and at least one block
    n = np.arange(rows)
    np.testing.assert_array_equal(result.t, 0.5 * n)
    np.testing.assert_array_equal(result["a.x"], 3.0 * n)
    assert not result.finished
    assert "did not finish" in result.error
    assert f"t = {0.5 * (rows - 1):.9g}" in result.error
    assert result.meta == {"method": "none"}
    assert (result.stats.steps, result.stats.iterations, result.stats.calls) == (rows - 1, 2 * rows, {"a": 3 * rows})


def test_totals_of_an_unfinished_run_are_sums_of_its_rows(tmp_path):
    """Of two subsystems; steps in machine code are not timed one by one (NaN), residuals may be missing."""
    channels = {"a.x": Channel("y", (0,), True)}
    stream = Stream(tmp_path / "run.h5", Layout(1, 1, 2), channels, ("a", "b"), {})
    rows = [
        Row(0.0, np.zeros(1), np.zeros(1)),
        Row(0.5, np.ones(1), np.ones(1), 0.5, 2, 1e-3, 0.1, 1, np.array([3, 5]), np.array([0.25, 2.0])),
        Row(1.0, np.ones(1), np.ones(1), 0.5, 4, np.nan, 0.1, 0, np.array([7, 1]), np.array([np.nan, np.nan])),
        Row(1.5, np.ones(1), np.ones(1), 0.5, 1, 1e-5, 0.1, 2, np.array([1, 1]), np.array([0.5, 1.0])),
    ]
    for row in rows:
        stream.append(row)
    stream.flush()
    stats = load(tmp_path / "run.h5").stats
    assert (stats.steps, stats.iterations, stats.rejected, stats.max_residual) == (3, 7, 3, 1e-3)
    assert stats.calls == {"a": 11, "b": 7}
    assert stats.seconds == {"a": 0.75, "b": 3.0}
    assert np.isnan(stats.wall_seconds)
    stream.finish(Stats(), None)
    stream.close()


def test_a_running_file_can_be_watched_from_another_process(tmp_path):
    stream = _stream(tmp_path / "run.h5")
    stream.append(Row(0.0, np.zeros(1), np.zeros(1)))
    code = f"from cosolve.result.store import load; print(len(load({str(tmp_path / 'run.h5')!r})))"
    assert processes.run([sys.executable, "-c", code], check=True).stdout.strip() == "1"
    stream.finish(Stats(), None)
    stream.close()


def _stream(path, n_y=1):
    channels = {"a.x": Channel("y", (0,), True)}
    return Stream(path, Layout(n_y, 1, 1), channels, ("a",), {})


def test_memory_does_not_grow_with_the_run(tmp_path):
    stream = _stream(tmp_path / "run.h5")
    y, z = np.zeros(1), np.zeros(1)
    peaks = []
    tracemalloc.start()
    for n in range(60_000):
        stream.append(Row(float(n), y, z))
        if n in (20_000, 59_999):
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.reset_peak()
    tracemalloc.stop()
    stream.finish(Stats(), None)
    stream.close()
    # one block of 4096 rows of 84 bytes, and the copies made while arrays double: below 2 MB however long the run
    assert max(peaks) < 2e6
    assert len(load(tmp_path / "run.h5")) == 60_000


def test_wide_rows_are_flushed_before_they_fill_the_memory(tmp_path):
    stream = _stream(tmp_path / "run.h5", n_y=300_000)  # a field: 2.4 MB a row, so 8 MB hold three of them
    for n in range(8):
        stream.append(Row(float(n), np.full(300_000, n), np.zeros(1)))
    assert len(load(tmp_path / "run.h5")) >= 7  # the first row and two blocks of three are on disk already
    stream.finish(Stats(), None)
    stream.close()
    assert load(tmp_path / "run.h5")["a.x"].tolist() == list(range(8))


def test_a_result_whose_file_was_overwritten_says_so(tmp_path):
    first = _run(save=tmp_path / "run.h5")
    _run(save=tmp_path / "run.h5", t_end=0.02)
    with pytest.raises(cs.errors.OutputFileError, match="holds another run"):
        first.column("y")


def test_a_result_file_survives_a_change_of_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = _run(save="run.h5")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert len(result.t) == 101


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("missing/run.h5", "does not exist"),
        ("file.txt/run.h5", "Not a directory"),
        ("folder.h5", "is a folder"),
    ],
)
def test_an_unwritable_path_is_refused_before_the_run(tmp_path, where, reason):
    (tmp_path / "file.txt").write_text("")
    (tmp_path / "folder.h5").mkdir()

    def rhs(t, x, u):
        raise AssertionError("the run started")

    ode = cs.Ode(rhs, lambda t, x, u: x, x0=[1.0], inputs=[], outputs=["x"])
    with pytest.raises(cs.errors.OutputFileError, match=reason):
        cs.simulate(cs.System({"a": ode}), t_end=1.0, method=cs.Jacobi(), step=0.1, save=tmp_path / where)
    with pytest.raises(cs.errors.OutputFileError, match=reason):
        save_result(_run(), (tmp_path / where).with_suffix(".h5"))


@pytest.mark.skipif(os.name != "posix", reason="other rights of files")
def test_a_folder_without_permission_is_refused(tmp_path):
    """In a process of its own: root may write everywhere until that right is taken from it."""
    without = []
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root may write everywhere, and setpriv is missing")
        without = ["setpriv", "--bounding-set=-dac_override"]
    tmp_path.chmod(0o500)
    script = "import sys; from tests.result.test_store import _run; _run(save=sys.argv[1])"
    command = [*without, sys.executable, "-c", script, str(tmp_path / "run.h5")]
    done = processes.run(command, env=processes.environment())
    assert done.returncode == 1
    assert "OutputFileError: " in done.stderr
    assert "Permission denied" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_picture_is_headed_by_the_method_and_its_degree():
    assert _run().plot("one.x").axes[0].get_title(loc="left") == "SemiImplicit(1)"


def test_unknown_endings_are_refused(tmp_path):
    with pytest.raises(cs.errors.SetupError, match=r"\.h5.*or \.csv"):
        _run().save(tmp_path / "run.xlsx")
    with pytest.raises(cs.errors.SetupError, match=r"must end in \.h5"):
        _run(save=tmp_path / "run.csv")
    assert not list(tmp_path.iterdir())


def test_files_that_are_no_results_are_refused(tmp_path):
    with pytest.raises(cs.errors.OutputFileError, match="there is no result file"):
        load(tmp_path / "nothing.h5")
    text = tmp_path / "text.csv"
    text.write_text("t,x\n0,1\n")
    with pytest.raises(cs.errors.OutputFileError, match=r"not an HDF5 file.*pandas"):
        load(text)
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["x"] = [1.0]
    with pytest.raises(cs.errors.OutputFileError, match="not a cosolve result"):
        load(tmp_path / "other.h5")
    with pytest.raises(cs.errors.OutputFileError, match="is a folder"):
        load(tmp_path)


def test_columns_are_lazy_and_unknown_ones_are_an_error(tmp_path):
    result = _run(save=tmp_path / "run.h5")
    columns = result._columns()
    assert set(columns) == set(COLUMNS)
    with pytest.raises(KeyError):
        columns["about"]  # in the file, but not a column


def test_path_objects_and_strings_do(tmp_path):
    _run(save=str(tmp_path / "run.h5"))
    assert load(str(tmp_path / "run.h5")).finished
    assert load(Path(tmp_path / "run.h5")).finished


def test_residual_norms_of_every_iterate_survive_blocks_and_files(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "_BLOCK_ROWS", 7)
    loop = cs.System({"a": cs.Static(lambda t, u: 0.5 * u + t, inputs=["u"], outputs=["y"])})
    loop.connect("a.y", "a.u")
    method = cs.Implicit(0, corrector=cs.Relaxation(1.0), tol=1e-6)
    kept = cs.simulate(loop, t_end=3.0, step=0.1, method=method)
    streamed = cs.simulate(loop, t_end=3.0, step=0.1, method=method, save=tmp_path / "run.h5")
    for other in (streamed, load(tmp_path / "run.h5"), load(kept.save(tmp_path / "copy.h5"))):
        assert len(other.residual_norms) == 30
        for ours, theirs in zip(kept.residual_norms, other.residual_norms, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    for norms, iterations in zip(kept.residual_norms, kept.iterations, strict=True):
        assert len(norms) == iterations + 1
        assert norms[-1] <= 1e-6 < norms[-2]  # the last is the first that meets the tolerance
        np.testing.assert_allclose(norms[-1] / norms[-2], 0.5, rtol=1e-3)  # the loop's own contraction


def test_files_without_residual_norms_can_be_read(tmp_path):
    path = _run(save=tmp_path / "run.h5") and tmp_path / "run.h5"
    with h5py.File(path, "a") as file:
        del file["norms"], file["norms_end"]
    old = load(path)
    assert all(len(norms) == 0 for norms in old.residual_norms)
    assert len(old.residual_norms) == len(old.t) - 1


FELLED = """
import os, signal, sys
import cosolve as cs

class Tank(cs.Subsystem):
    inputs, outputs = [], ["h"]
    def start(self, t0):
        return 1.0
    def advance(self, t0, t1, u):
        if t0 > float(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)
        return 2.0

cs.simulate(cs.System({"tank": Tank()}), t_end=1.0, step=0.1, method=cs.Jacobi(0), save="run.h5", compiled=False)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("until", [-1.0, 0.05, 0.55])
def test_a_killed_run_leaves_the_old_file_or_a_new_one_that_can_be_read(tmp_path, until):
    clock = cs.Static(lambda t, u: t, inputs=[], outputs=["h"])
    cs.simulate(cs.System({"tank": clock}), t_end=1.0, step=0.1, method=cs.Jacobi(0), save=tmp_path / "run.h5")
    done = processes.run([sys.executable, "-c", FELLED, str(until)], cwd=tmp_path)
    assert done.returncode == -9
    found = load(tmp_path / "run.h5")
    assert len(found) >= 2
    assert found.finished == (found["tank.h"][0] == 0.0)  # the old one, from 0 to 1, is whole
    assert found.finished or until > 0.0  # as long as no step stands it is there


def test_a_link_stays_one(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "run.h5").symlink_to(tmp_path / "far" / "run.h5")
    clock = cs.Static(lambda t, u: t, inputs=[], outputs=["t"])
    for _ in range(2):
        cs.simulate(cs.System({"clock": clock}), t_end=1.0, step=0.1, method=cs.Jacobi(0), save=tmp_path / "run.h5")
        assert (tmp_path / "run.h5").is_symlink()
        assert len(load(tmp_path / "far" / "run.h5")) == 11


def test_the_state_of_an_earlier_run_goes_with_its_result(tmp_path):
    """And not before: a run that cannot start leaves both."""
    (tmp_path / "run.h5.state").write_text("kept")
    clock, bad = (cs.Static(f, inputs=[], outputs=["t"]) for f in (lambda t, u: t, lambda t, u: [1 // 0]))
    cs.simulate(cs.System({"clock": clock}), t_end=1.0, step=0.1, method=cs.Jacobi(0)).save(tmp_path / "run.h5")
    for function, kept in ((bad, True), (clock, False)):
        system = cs.System({"clock": function})
        with pytest.raises(cs.errors.SubsystemError) if kept else nullcontext():
            cs.simulate(system, t_end=1.0, step=0.1, method=cs.Jacobi(0), save=tmp_path / "run.h5")
        assert (tmp_path / "run.h5.state").exists() == kept
        assert load(tmp_path / "run.h5").finished
