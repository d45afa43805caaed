"""What happens to a result file while a run writes it: full disks, limits, other programs, other runs, power cuts."""

import random
import sys
import threading
from dataclasses import asdict

import h5py
import numpy as np
import pytest
from tests import processes

import cosolve as cs
from cosolve.basics import file_lock as claim_module
from cosolve.basics.hdf5 import written_hdf5
from cosolve.result import Channel, Layout, Row, Stats
from cosolve.result.journal import MAGIC
from cosolve.result.store import Stream, load

ROWS = 30_000

RUN = """
import os, resource, shutil, sys
import numpy as np
import cosolve as cs

def deed(what, path):
    size = os.path.getsize(path)
    if what == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 1000, resource.RLIM_INFINITY))
    elif what == "deleted":
        os.remove(path)
    elif what == "cut":
        os.truncate(path, size // 2)
    elif what == "emptied":
        os.truncate(path, 0)
    elif what == "zeros":
        with open(path, "r+b") as file:
            file.write(bytes(size // 2))
    elif what == "replaced":
        os.remove(path)
        with open(path, "w") as file:
            file.write("a letter")
    elif what == "no folder":
        shutil.rmtree(os.path.dirname(path))

class Count(cs.Subsystem):
    inputs, outputs = [], ["n"]
    def start(self, t0):
        self.n = 0.0
        return 0.0
    def advance(self, t0, t1, u):
        self.n += 1.0
        if self.n == 20_000:
            deed(sys.argv[1], sys.argv[2])
        return self.n

os.makedirs(os.path.dirname(sys.argv[2]))
try:
    result = cs.simulate(cs.System({"c": Count()}), t_end=30_000.0, step=1.0, method=cs.Jacobi(0), save=sys.argv[2])
    print("finished", len(result.t), np.allclose(result["c.n"], result.t), *result.notes)
except cs.errors.CosolveError as error:
    held = error.result
    try:
        print("stopped", len(held.t), np.allclose(held["c.n"], held.t), error)
    except cs.errors.CosolveError as unreadable:
        print("stopped unreadable", error, unreadable)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of processes")
@pytest.mark.parametrize(
    ("deed", "outcome", "said", "least", "most"),
    [
        ("limit", "stopped", "File too large", 12_000, 20_100),
        ("deleted", "finished", "", ROWS + 1, ROWS + 1),
        ("cut", "stopped", "another program has changed it", 4096, 20_000),
        ("emptied", "stopped", "another program has changed it", 0, 0),
        ("zeros", "stopped unreadable", "damaged by another program", None, None),
        ("replaced", "stopped", "another file has taken its place", None, None),
        ("no folder", "stopped", "No such file or directory", None, None),
    ],
)
def test_a_file_that_something_happens_to(tmp_path, deed, outcome, said, least, most):
    """The process ends with a sentence, and what was written before, and not destroyed, can be read."""
    path = tmp_path / "folder" / "run.h5"
    done = processes.run([sys.executable, "-c", RUN, deed, str(path)])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(outcome)
    assert said in done.stdout
    if least is not None:
        kept = load(path)
        assert least <= len(kept) <= most
        np.testing.assert_array_equal(kept["c.n"], np.arange(len(kept)))
        assert not list(path.parent.glob("*.*.*"))
    if deed in ("limit", "no folder"):
        count, right = done.stdout.split()[1:3]
        assert int(count) >= 20_000  # in memory is what was not written as well
        assert right == "True"
    if deed == "replaced":
        assert path.read_text() == "a letter"
        assert len(load(path.with_name("run-2.h5"))) >= 20_000


@pytest.mark.skipif(sys.platform == "win32", reason="limits of processes")
@pytest.mark.parametrize("limit", [0, 300, 3000, 100_000])
def test_hdf5_hears_nothing_of_a_file_that_cannot_grow(tmp_path, limit):
    """It would end the process, at once or when Python exits."""
    script = f"""
import resource, sys
from pathlib import Path
from cosolve.basics.hdf5 import written_hdf5
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, resource.RLIM_INFINITY))
try:
    with written_hdf5(Path({str(tmp_path / "a.h5")!r})) as file:
        for k in range(20):
            file[str(k)] = [1.0] * 5000
except OSError as failure:
    print(failure.strerror)
"""
    done = processes.run([sys.executable, "-c", script])
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "File too large", "")


def _stream(path, n_y=1):
    return Stream(path, Layout(n_y, 0, 1), {"a.x": Channel("y", (0,), True)}, ("a",), {})


def _row(n):
    return Row(float(n), np.array([3.0 * n]), np.zeros(0), 1.0, 1, norms=(1.0,))


def test_one_run_at_a_time_writes_a_file(tmp_path):
    """The second is refused before it has touched anything; the first, and later ones, are not."""
    first = _stream(tmp_path / "run.h5")
    for n in range(3):
        with pytest.raises(cs.errors.SetupError, match="still going on; wait, end it, or give this one another file"):
            _stream(tmp_path / "run.h5")
        first.append(_row(n))
        first.flush()
    assert [p.name for p in tmp_path.iterdir()] == ["run.h5"]
    assert first.finish(Stats(), None) is None
    assert len(load(tmp_path / "run.h5")) == 3
    _stream(tmp_path / "run.h5").close()
    assert len(load(tmp_path / "run.h5")) == 3


def test_two_commands_in_one_folder(tmp_path):
    """Which one is first is left to chance; it finishes, and the other says why it does not."""
    (tmp_path / "slow.py").write_text(
        "import time\nimport cosolve as cs\n"
        "def slow(t, u):\n    time.sleep(0.02)\n    return t\n"
        "def make():\n    return cs.Static(slow, inputs=[], outputs=['t'])\n"
    )
    (tmp_path / "two.toml").write_text(
        "[simulation]\nt_end = 2.0\nstep = 0.01\nmethod = 'jacobi(degree=0)'\n"
        "[subsystems.clock]\nfactory = 'slow:make'\n"
    )
    command = [sys.executable, "-m", "cosolve.cli", "run", "two.toml"]
    done = [None, None]

    def run(k):
        done[k] = processes.run(command, cwd=tmp_path)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    codes = sorted(one.returncode for one in done)
    said = "".join(one.stdout + one.stderr for one in done)
    assert codes in ([0, 2], [0, 0]), said  # both, where one ended before the other began
    assert codes == [0, 0] or "still going on" in " ".join(said.split())
    assert len(load(tmp_path / "result.h5")) == 201


def test_a_system_without_locks_writes_too(tmp_path, monkeypatch):
    monkeypatch.setattr(claim_module, "fcntl", None)
    stream = _stream(tmp_path / "run.h5")
    stream.append(_row(0))
    assert stream.finish(Stats(), None) is None
    assert len(load(tmp_path / "run.h5")) == 1


@pytest.fixture
def journal(tmp_path):
    """The bytes of a run that was killed: five blocks of 100 rows."""
    stream = _stream(tmp_path / "run.h5")
    ends = [(stream.path.stat().st_size, 0)]
    for n in range(500):
        stream.append(_row(n))
        if n % 100 == 99:
            stream.flush()
            ends.append((stream.path.stat().st_size, len(load(stream.path))))
    stream._open = False
    return tmp_path / "run.h5", (tmp_path / "run.h5").read_bytes(), ends


def test_a_journal_that_is_cut_anywhere_is_read_to_its_last_whole_block(journal):
    path, data, ends = journal
    assert data.startswith(MAGIC)
    places = random.Random(1).sample(range(len(data)), 150) + [end for end, _ in ends] + [end - 1 for end, _ in ends]
    for place in places:
        path.write_bytes(data[:place])
        if place < ends[0][0]:
            with pytest.raises(cs.errors.OutputFileError, match=r"not an HDF5 file|beginning was cut off"):
                load(path)
            continue
        rows = len(load(path))
        assert rows >= max((n for end, n in ends if end <= place), default=0)
        np.testing.assert_array_equal(load(path)["a.x"], 3.0 * np.arange(rows))


def test_what_was_brought_to_the_disk_survives_a_power_cut(journal):
    """After it the part that was not brought there may hold anything: pages that are lost are zeros, or old ones."""
    path, data, ends = journal
    rng = random.Random(2)
    for _ in range(200):
        end, rows = rng.choice(ends)
        tail = bytearray(data[end:])
        for page in range(0, len(tail), 512):
            kind = rng.randrange(4)
            part = tail[page : page + 512]
            if kind < 2:
                tail[page : page + 512] = bytes(len(part)) if kind else rng.randbytes(len(part))
        path.write_bytes(data[:end] + bytes(tail[: rng.randrange(len(tail) + 1)]))
        found = load(path)
        assert len(found) >= rows
        values = found["a.x"][:rows]
        np.testing.assert_array_equal(values, 3.0 * np.arange(rows))


def test_a_result_that_cannot_become_hdf5_stays_readable(tmp_path, monkeypatch):
    """All rows, totals and notes; and it can be saved as HDF5 later."""
    path, real = tmp_path / "run.h5", written_hdf5

    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cosolve.result.store.written_hdf5", full)
    clock = cs.System({"clock": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])})
    result = cs.simulate(clock, t_end=1.0, step=0.1, method=cs.Jacobi(0), save=path)
    assert "could not be completed as HDF5 (No space left on device)" in result.stats.note("file")
    monkeypatch.setattr("cosolve.result.store.written_hdf5", real)
    again = load(path)
    assert again.finished
    np.testing.assert_equal(asdict(again.stats), asdict(result.stats))
    np.testing.assert_array_equal(again["clock.t"], result["clock.t"])
    assert h5py.is_hdf5(again.save(tmp_path / "copy.h5"))
    assert not h5py.is_hdf5(path)
    assert len(load(tmp_path / "copy.h5")) == 11


def test_a_text_that_is_longer_than_32_megabytes(tmp_path):
    """Such are those of systems of 60 000 scalar ports; HDF5 loses them in strings of its usual kind."""
    clock = cs.System({"clock": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])})
    result = cs.simulate(clock, t_end=1.0, step=0.1, method=cs.Jacobi(0))
    result.meta["system"] = "x" * (33 << 20)
    again = load(result.save(tmp_path / "run.h5"))
    assert len(again.meta["system"]) == 33 << 20
    assert again["clock.t"].tolist() == result["clock.t"].tolist()


def test_what_is_the_same_in_all_rows_takes_no_room(tmp_path):
    """Compiled runs tell so; the values that are read are the same."""
    a, b = (cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[x], inputs=["q"], outputs=["h"]) for x in (1.0, 0.0))
    system = cs.System({"a": a, "b": b})
    system.connect("a.h", "b.q")
    system.connect("b.h", "a.q")
    run = {"t_end": 50.0, "step": 1e-3, "method": cs.Jacobi(degree=1), "compiled": True}
    kept, saved = cs.simulate(system, **run), cs.simulate(system, **run, save=tmp_path / "run.h5")
    with h5py.File(tmp_path / "run.h5") as file:
        assert file["H"].id.get_storage_size() < file["t"].id.get_storage_size() / 4
        np.testing.assert_array_equal(file["H"][1:], kept.H)
    for name in ("t", "y", "z", "H", "iterations", "residual", "error", "rejected", "calls", "norms_end", "norms"):
        assert kept.column(name).tobytes() == saved.column(name).tobytes(), name


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.999])
def test_rows_that_another_program_has_cut_off_are_told_in_a_sentence(tmp_path, share):
    """Also where the head of a block is gone, not only its numbers."""
    stream = _stream(tmp_path / "run.h5")
    for n in range(6):
        stream.append(_row(n))
        stream.flush()
    size = stream.path.stat().st_size
    with stream.path.open("r+b") as file:
        file.truncate(int(share * size))
    with pytest.raises(cs.errors.OutputFileError, match="was damaged by another program"):
        dict(stream.columns())
    stream.close()
