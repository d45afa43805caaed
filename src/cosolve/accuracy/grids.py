"""A run once more with steps twice as long, or half as long: what moves its outputs, and by how much.

A shadow knows the signals only at the macro points. What begins and ends between two of them, such as an impact, and a
part that is much faster than the steps leave no trace there. Another grid is the only way to see them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosolve.accuracy.recorded_run import Track
from cosolve.accuracy.shadow import Counts
from cosolve.basics.arrays import Index, Matrix
from cosolve.errors import SetupError
from cosolve.interface import Plan
from cosolve.method import Method
from cosolve.run.core import Core
from cosolve.run.engines import Engines
from cosolve.run.startup import Startup
from cosolve.stepsize.sequence import GivenSteps, Uniform, Windows

_SAME = 1e-6  # of a step: so close are points that belong to both runs


@dataclass(frozen=True)
class OtherGrid:
    """A run on another grid: at the points `at` of the first run, which are the points `own` of this one.

    `moved` is how far the outputs of the two runs are apart there, `spent` what the run took, `events` at how many
    events its macro steps ended.
    """

    track: Track
    at: Index
    own: Index
    moved: Matrix
    spent: Counts
    events: int = 0


def longer_steps(plan: Plan, method: Method, startup: Startup, track: Track, stop_at_events: bool = False) -> OtherGrid:
    """Steps twice as long; error-controlled ones are taken together two by two."""
    windows: Windows
    if track.uniform:
        windows = Uniform(float(track.t[0]), float(track.t[-1]), 2.0 * float(track.steps.max()))
    else:
        at = np.append(np.arange(0, len(track.t) - 1, 2), len(track.t) - 1)
        windows = GivenSteps(track.t[at].tolist(), np.add.reduceat(track.steps, at[:-1]).tolist())
    return _run(plan, method, startup, track, windows, stop_at_events)


def shorter_steps(
    plan: Plan, method: Method, startup: Startup, track: Track, stop_at_events: bool = False, *, pieces: int = 2
) -> OtherGrid:
    """Shorter steps: each step of the run is divided in so many pieces."""
    windows: Windows
    if track.uniform:
        windows = Uniform(float(track.t[0]), float(track.t[-1]), float(track.steps.max()) / pieces)
    else:
        inside = track.t[:-1, np.newaxis] + track.steps[:, np.newaxis] * (np.arange(pieces) / pieces)
        times = np.append(inside.ravel(), track.t[-1])
        windows = GivenSteps(times.tolist(), np.repeat(track.steps / pieces, pieces).tolist())
    return _run(plan, method, startup, track, windows, stop_at_events)


def _run(
    plan: Plan, method: Method, startup: Startup, track: Track, windows: Windows, stop_at_events: bool
) -> OtherGrid:
    core = Core(plan, method.with_given_steps(), startup, windows, stop_at_events=stop_at_events)
    t, steps = [np.array([windows.t])], [np.zeros(0)]
    try:
        core.start(windows.t)
        z, y = [core.z[np.newaxis]], [core.y[np.newaxis]]
        engines = Engines(core, None if track.compiled else False, resumed=track.compiled)
        while not core.done:
            chunk = engines.take()
            t.append(chunk.t)
            steps.append(np.broadcast_to(chunk.H, len(chunk)))
            z.append(chunk.z[:, : plan.n_z])
            y.append(chunk.y)
            if chunk.failure is not None:
                raise chunk.failure
    finally:
        core.close()
    spent = np.array([core.caller.calls, core.caller.jacobians])
    joined = [np.concatenate(rows) for rows in (t, steps, z, y)]
    other = Track(joined[0], joined[1], joined[2], joined[3], track.uniform, track.compiled)
    at, own = _common(track, other)
    moved = np.abs(track.y[at] - other.y[own])
    return OtherGrid(other, at, own, moved, spent, 0 if core.caller.watch is None else core.caller.watch.stops)


def _common(track: Track, other: Track) -> tuple[Index, Index]:
    """Points of both runs, the last of each included; with events there are others between them."""
    near = np.clip(np.searchsorted(other.t, track.t), 1, len(other.t) - 1)
    near = near - (track.t - other.t[near - 1] < other.t[near] - track.t)
    at = np.flatnonzero(np.abs(other.t[near] - track.t) <= _SAME * np.append(track.steps, track.steps[-1]))
    if len(at) < min(len(track.t), len(other.t)) // 4 or at[-1] != len(track.t) - 1:
        raise SetupError("the steps of the run cannot be taken two by two")
    return at, near[at]
