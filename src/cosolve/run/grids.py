"""A run once more with steps twice as long, or half as long: what moves its outputs, and by how much.

A shadow knows the signals only at the macro points. What begins and ends between two of them, such as an impact, and a
part that is much faster than the steps leave no trace there. Another grid is the only way to see them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosolve.basics.arrays import Index, Matrix
from cosolve.errors import SetupError
from cosolve.interface import Plan
from cosolve.method import GaussSeidel, LeaderFollower, Method
from cosolve.run.core import Core
from cosolve.run.shadow import Counts, Track
from cosolve.run.startup import Startup
from cosolve.stepsize.sequence import Given, Uniform, Windows

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
        windows = Given(track.t[at].tolist(), np.add.reduceat(track.steps, at[:-1]).tolist())
    return _run(plan, method, startup, track, windows, stop_at_events)


def shorter_steps(
    plan: Plan, method: Method, startup: Startup, track: Track, stop_at_events: bool = False
) -> OtherGrid:
    """Steps half as long: each step of the run is divided in two."""
    windows: Windows
    if track.uniform:
        windows = Uniform(float(track.t[0]), float(track.t[-1]), 0.5 * float(track.steps.max()))
    else:
        times = np.empty(2 * len(track.t) - 1)
        times[::2], times[1::2] = track.t, track.t[:-1] + 0.5 * track.steps
        windows = Given(times.tolist(), np.repeat(0.5 * track.steps, 2).tolist())
    return _run(plan, method, startup, track, windows, stop_at_events)


def _run(
    plan: Plan, method: Method, startup: Startup, track: Track, windows: Windows, stop_at_events: bool
) -> OtherGrid:
    if isinstance(method, LeaderFollower):  # the leader does not choose these steps
        method = GaussSeidel(method.degree, method.outputs, (method.leader, *method.order))
    core = Core(plan, method, startup, windows, stop_at_events=stop_at_events)
    t, steps, z, y = [windows.t], [], [], []
    try:
        core.start(windows.t)
        z.append(core.z)
        y.append(core.y)
        while not core.done:
            outcome = core.cross()
            t.append(core.t)
            steps.append(t[-1] - t[-2] if outcome.H is None else outcome.H)
            z.append(outcome.z)
            y.append(outcome.y)
    finally:
        core.close()
    spent = np.array([core.crew.calls, core.crew.jacobians])
    other = Track(np.array(t), np.array(steps), np.array(z), np.array(y), track.uniform)
    at, own = _common(track, other)
    moved = np.abs(track.y[at] - other.y[own])
    return OtherGrid(other, at, own, moved, spent, 0 if core.crew.watch is None else core.crew.watch.stops)


def _common(track: Track, other: Track) -> tuple[Index, Index]:
    """Points of both runs, the last of each included; with events there are others between them."""
    near = np.clip(np.searchsorted(other.t, track.t), 1, len(other.t) - 1)
    near = near - (track.t - other.t[near - 1] < other.t[near] - track.t)
    at = np.flatnonzero(np.abs(other.t[near] - track.t) <= _SAME * np.append(track.steps, track.steps[-1]))
    if len(at) < min(len(track.t), len(other.t)) // 4 or at[-1] != len(track.t) - 1:
        raise SetupError("the steps of the run cannot be taken two by two")
    return at, near[at]
