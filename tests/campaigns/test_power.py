"""Power cuts: what comes first to the disk, what a torn file gives, and a judge that can say no."""

import os
import sys
from random import Random

import numpy as np
import pytest
from campaigns.power import REFERENCES, Entry, after, judged

import cosolve as cs
from campaigns import power
from cosolve.basics import atomic_files
from cosolve.result.journal import Journal
from cosolve.result.recorder import Layout, Memory, Row

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="preloaded libraries")


CONTENT = bytes([1, 2, 3, 4]) * 512


def clocks():
    clock = cs.Static(lambda t, u: t, inputs=[], outputs=["t"])
    return cs.System({"clock": clock})


def told(monkeypatch):
    """What is brought to the disk and renamed, in order."""
    done = []
    sync, rename = os.fsync, os.replace

    def synced(file):
        done.append(("sync", os.path.basename(os.readlink(f"/proc/self/fd/{file}"))))
        sync(file)

    def renamed(old, new):
        done.append(("name", os.path.basename(new)))
        rename(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    return done


@LINUX
def test_content_comes_before_the_name_and_the_name_before_the_return(tmp_path, monkeypatch):
    done = told(monkeypatch)
    with atomic_files.replacing(tmp_path / "a.txt") as draft:
        draft.write_text("new")
    assert done == [("sync", "a.txt.part"), ("name", "a.txt"), ("sync", tmp_path.name)]


@LINUX
def test_rows_are_on_the_disk_before_the_state_that_needs_them(tmp_path, monkeypatch):
    """And an earlier result gives way to a journal only when that is there."""
    file = tmp_path / "run.h5"
    for older in (False, True):
        done = told(monkeypatch)
        cs.simulate(clocks(), t_end=0.3, step=0.1, method=cs.Jacobi(), save=file, state_every=1)
        state = done.index(("name", "run.h5.state"))
        name = done.index(("name", "run.h5"))
        assert name < state
        assert ("sync", tmp_path.name) in done[name:state]
        assert [word for word, _ in done[:state]].count("sync") >= 3
        if older:
            assert done[name - 1] == ("sync", "run.h5.part")
        assert done[-1] == ("sync", tmp_path.name)
        monkeypatch.undo()


def test_a_journal_ends_at_the_first_block_that_is_torn(tmp_path):
    """Blocks behind it may be whole: a disk writes in any order."""
    path, layout, ends = tmp_path / "run.h5", Layout(1, 0, 1), []
    with path.open("xb+", buffering=0) as file:
        journal = Journal.begin(file, path, {"run": "1"}, layout)
        for block in range(5):
            rows = Memory(layout)
            for n in range(3):
                rows.append(Row(0.1 * (3 * block + n), np.array([float(n)]), np.zeros(0)))
            journal.add(rows)
            ends.append(journal.end)
    whole = path.read_bytes()
    for torn in range(5):
        data = bytearray(whole)
        data[ends[torn] - 8 : ends[torn]] = bytes(byte ^ 255 for byte in data[ends[torn] - 8 : ends[torn]])
        path.write_bytes(data)
        left = Journal.opened(path)
        assert left.rows == 3 * torn
        left.close()


def test_zeros_at_the_end_of_a_sweep_are_no_case(tmp_path):
    """A file may have got its length and not its content."""
    file = tmp_path / "a.sweep"

    def sweep():
        return cs.sweep(power.build, {"rate": [0.5, 1.0]}, methods=cs.Jacobi(1), steps=0.1, t_end=0.5, save=file)

    whole = sweep()["a.h"].values
    data = file.read_bytes()
    file.write_bytes(data + bytes(700))
    assert np.array_equal(sweep()["a.h"].values, whole)
    assert file.read_bytes() == data
    head = data.index(b"\n") + 1
    for begun in (data[:head] + bytes(300), data[: head + 20], data[: head + 40] + bytes(100)):
        file.write_bytes(begun)
        assert np.array_equal(sweep()["a.h"].values, whole)


def entries():
    """Eight sectors, half of them brought to the disk, and a new name that was not."""
    return [
        Entry("c", 7, 0, b"/x/a.part"),
        Entry("w", 7, 0, CONTENT),
        Entry("s", 7, 0, b"/x/a.part"),
        Entry("d", 1, 0, b"/x"),
        Entry("w", 7, 2048, CONTENT),
        Entry("r", 7, 0, b"/x/a.part\0/x/a"),
    ]


def test_what_a_disk_may_have_forgotten():
    """What was brought to it stays; of the rest some sectors come and some do not, also the name."""
    names, sizes, torn = set(), set(), 0
    for seed in range(60):
        left, promised = after(entries(), {}, Random(seed))
        ((name, data),) = left.items()
        names.add(name)
        sizes.add(len(data))
        assert data[:2048] == CONTENT
        torn += b"\0" * 512 in data
        assert promised == []
    assert names == {"a", "a.part"}
    assert {2048, 4096} <= sizes
    assert torn > 5


def test_numbers_of_files_are_used_again():
    """The content of a file that was replaced does not become that of the next one."""
    again = [*entries(), Entry("d", 1, 0, b"/x"), Entry("c", 7, 0, b"/x/b"), Entry("w", 7, 0, b"new")]
    left, _ = after(again, {}, Random(1))
    assert left["a"][:2048] == CONTENT


def test_the_judge_can_say_no(tmp_path):
    """Fewer rows than promised, other rows, and no file at all."""
    result = power.run_of("readable", t_end=1.0)
    REFERENCES["readable"] = result["a.h"]
    file = result.save(tmp_path / "saved.h5")
    left = {"run.h5": file.read_bytes()}
    verdicts = []
    for number, (rows, files) in enumerate(((101, left), (102, left), (101, {}), (0, {}))):
        home = tmp_path / str(number)
        home.mkdir()
        verdicts.append(judged("readable", files, [f"rows {rows}"], home)[0])
    assert verdicts == ["right", "LOST", "LOST", "nothing yet"]


@LINUX
@pytest.mark.slow
def test_a_sample_of_power_cuts():
    outcome = power.run(quick=True)
    assert outcome.good, outcome.notes
