"""Spoilt results, fields, sweeps and journals: files that a person may get from others, and look at.

Faults are of two kinds: bytes that changed, and files that are whole but say what makes no sense.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import h5py
import numpy as np

import cosolve as cs
from campaigns import mutated
from cosolve.fields import FieldSnapshot
from cosolve.fields.field_series import FieldSeries
from cosolve.result import Layout, Row, Stats
from cosolve.result.result import Channel
from cosolve.result.store import Stream
from cosolve.viewer.field_view import FieldView
from cosolve.viewer.result_view import ResultView
from cosolve.viewer.sweep_map import read_sweep

Target = Callable[[int, Path], None]
_ODD = (-1, 0, 2**40, 10**12, np.nan, "x", "", [1, 2], [[1.0]])


def results(home: Path) -> Target:
    """Everything that a page, a report and a table ask of a result."""
    good, saved = home / "good.h5", home / "out"
    cs.simulate(_tanks(), t_end=1.0, method=cs.SemiImplicit(degree=1), step=0.01, save=good, error_bar=True)

    def read(n: int, home: Path) -> None:
        file = home / "bad.h5"
        _spoil(Random(f"result {n}"), good, file, n)
        result = cs.load_result(file)
        str(result), repr(result), str(result.error_bar), result.stats.notes, result.H, result.residual
        for name in result.channels:
            result[name]
        result.save(saved.with_suffix(".csv")), result.save(saved.with_suffix(".h5"))
        shown = ResultView(result, "x")
        json.dumps(shown.about())
        some = [signal.id for signal in shown.signals.all][:8]
        shown.window(some, -1e9, 1e9, 100).frame(), shown.sample(some, 10)
        if n % 20 == 0:
            cs.write_report(result, saved.with_suffix(".html"))

    return read


def journals(home: Path) -> Target:
    """Files of runs that were killed: what is read are rows that were written."""
    good = home / "good.h5"
    stream = Stream(good, Layout(1, 0, 1), {"a.x": Channel("y", (0,), True)}, ("a",), {})
    for n in range(300):
        stream.append(Row(float(n), np.array([3.0 * n]), np.zeros(0), 1.0, 1, norms=(1.0,)))
        if n % 50 == 49:
            stream.flush()
    whole = good.read_bytes()
    stream.finish(Stats(), None)

    def read(n: int, home: Path) -> None:
        file = home / "bad.h5"
        file.write_bytes(mutated.data(Random(f"journal {n}"), whole) if n else whole)
        result = cs.load_result(file)
        np.testing.assert_array_equal(result["a.x"], 3.0 * np.arange(len(result)))
        np.testing.assert_array_equal(result.t, np.arange(len(result)))

    return read


def fields(home: Path) -> Target:
    """Snapshots, and their page."""
    points = np.random.default_rng(0).random((6, 2))
    cells = {"triangle": np.array([[0, 1, 2], [2, 3, 4], [3, 4, 5]])}
    data = {"p": np.arange(6.0), "v": np.ones((6, 2))}
    shots = [FieldSnapshot(points + 0.01 * k, cells, data, {"c": np.arange(3.0)}) for k in range(4)]
    good = FieldSeries.write(home / "good.vtkhdf", [0.0, 0.1, 0.2, 0.3], shots, "flow")

    def read(n: int, home: Path) -> None:
        file = home / "bad.vtkhdf"
        _spoil(Random(f"fields {n}"), good, file, n)
        series = cs.fields.read_fields(file)
        series.at(0.1), series[len(series) - 1]
        page = FieldView(series)
        json.dumps(page.about())
        page.mesh(), page.frame(0, 0), page.limits(0)

    return read


def sweeps(home: Path) -> Target:
    """Sweeps in netCDF files."""
    good = home / "good.nc"
    cs.sweep(_tank, {"rate": [1.0, 2.0], "level": [1.0, 3.0]}, methods=cs.Jacobi(), steps=0.1, t_end=1.0).to_netcdf(
        good, engine="h5netcdf"
    )

    def read(n: int, home: Path) -> None:
        file = home / "bad.nc"
        _spoil(Random(f"sweep {n}"), good, file, n)
        shown = read_sweep(file)
        about = shown.about()
        json.dumps(about)
        names = [one["name"] for one in about["dimensions"]]
        shown.map(shown.quantities[0], names[0], names[1] if len(names) > 1 else "", {})
        shown.cell(dict.fromkeys(names, 0))

    return read


def sweep_journals(home: Path) -> Target:
    """Sweeps go on from spoilt journals with the right numbers."""
    given = {"rate": [1.0, 2.0], "level": [1.0, 3.0]}
    options: dict[str, Any] = {"methods": cs.Jacobi(), "steps": 0.1, "t_end": 1.0, "executor": "serial"}
    whole = cs.sweep(_tank, given, save=home / "good.sweep", **options)
    data = (home / "good.sweep").read_bytes()

    def read(n: int, home: Path) -> None:
        file = home / "bad.sweep"
        file.write_bytes(mutated.data(Random(f"sweep journal {n}"), data) if n else data)
        found = cs.sweep(_tank, given, save=file, **options)
        np.testing.assert_array_equal(found["a.h"].values, whole["a.h"].values)

    return read


def _tank(rate: float, level: float) -> cs.System:
    return cs.System({"a": cs.Linear([[-rate]], [], [[1]], x0=[level], inputs=[], outputs=["h"])})


def _tanks() -> cs.System:
    one = cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=[cs.Port("q", unit="m/s")], outputs=["h"])
    two = cs.Linear(-np.eye(2), np.eye(2), np.eye(2), x0=[0.0, 1.0], inputs=[("q", 2)], outputs=[("h", 2)])
    system = cs.System({"a": one, "b": two})
    system.law("a.q", lambda h: h[0], of=["b.h"])
    system.law("b.q", lambda h: [h, h], of=["a.h"])
    return system


def _spoil(random: Random, good: Path, bad: Path, n: int) -> None:
    """The file itself, changed bytes, or changed contents."""
    shutil.copy(good, bad)
    if n == 0:
        return
    if n % 3 == 0:
        bad.write_bytes(mutated.data(random, good.read_bytes()))
        return
    with h5py.File(bad, "r+", libver="latest") as file, suppress(KeyError, ValueError, TypeError, RuntimeError):
        names: list[str] = []
        file.visit(names.append)
        name = random.choice(names)
        if random.random() < 0.2 and file[name].attrs:
            changed = random.choice(list(file[name].attrs))
            file[name].attrs[changed] = random.choice(_ODD)
        elif random.random() < 0.3 and "about" in file:
            text = bytes(file["about"][()])
            del file["about"]
            file["about"] = np.bytes_(json.dumps(mutated.tree(random, json.loads(text))).encode())
        elif random.random() < 0.2 and "outcome" in file:
            text = bytes(file["outcome"][:])
            del file["outcome"]
            file["outcome"] = np.frombuffer(json.dumps(mutated.tree(random, json.loads(text))).encode(), np.uint8)
        else:
            _replace(random, file, name)


def _replace(random: Random, file: h5py.File, name: str) -> None:
    """A member of the file by another one, or by none."""
    old = file[name][()] if isinstance(file[name], h5py.Dataset) else None
    del file[name]
    kind = random.randrange(9)
    if kind == 1:
        file[name] = random.choice(_ODD)
    elif kind == 2:
        file.create_group(name)
    elif kind == 3:
        file[name] = h5py.ExternalLink("/etc/hostname", "/t")
    elif kind == 4:
        file[name] = h5py.SoftLink("/t")
    elif kind == 5:
        file.create_dataset(name, (10**6,), "f8", external=[("/etc/passwd", 0, 8 * 10**6)])
    elif kind == 6:
        file.create_dataset(name, (10**9,), "f8", chunks=(10**5,), compression="gzip")
    elif isinstance(old, np.ndarray) and old.ndim:
        file[name] = old[: len(old) // 2] if kind == 7 else -old if old.dtype.kind in "if" else old[::-1]
