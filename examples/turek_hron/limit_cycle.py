"""FSI3 in its limit cycle, stored in single precision, so that the interesting part is there in half a minute.

`limit_cycle.npz` holds two points of a run to 10 s, as values at points: on the meshes it was made on they are taken as
they are, on others they are interpolated. A run that starts from it needs a few steps to forget both.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import cosolve as cs

FILE = Path(__file__).with_name("limit_cycle.npz")


def store(flow: cs.NgsFlow, flag: cs.NgsSolid, path: Path = FILE) -> None:
    """Write where both stand, at the end of a run."""
    moving, bending = flow.motion(), flag.motion()
    del moving["displacement"]  # that of the solid counts
    arrays = {"fluid_points": flow.points_at_rest, "solid_points": flag.points_at_rest, "h": np.array(moving.pop("h"))}
    del bending["h"]
    arrays |= {f"fluid_{name}": np.array(pair) for name, pair in moving.items()}
    arrays |= {f"solid_{name}": np.array(pair) for name, pair in bending.items()}
    points = {"fluid_points", "solid_points", "h"}
    np.savez_compressed(path, **{k: v if k in points else v.astype(np.float32) for k, v in arrays.items()})


def set_start(flow: cs.NgsFlow, flag: cs.NgsSolid | cs.ElasticSolid, path: Path = FILE) -> None:
    """Let runs start from what is stored."""
    with np.load(path) as stored:
        h = float(stored["h"])
        at_fluid, at_solid = stored["fluid_points"], stored["solid_points"]
        corners = len(stored["fluid_pressure"][0])
        velocity = [_moved(at_fluid, v, flow.points_at_rest) for v in stored["fluid_velocity"]]
        pressure = [_moved(at_fluid[:corners], p, flow.points_at_rest) for p in stored["fluid_pressure"]]
        bend = [_moved(at_solid, d, flag.points_at_rest) for d in stored["solid_displacement"]]
        speed = [_moved(at_solid, v, flag.points_at_rest) for v in stored["solid_velocity"]]
    flag.set_start(h, (bend[0], bend[1]), (speed[0], speed[1]))
    trace = flag.trace_to(flow.meshes["displacement"])
    on_surface = [trace.consistent(flag.at_surface(d)) for d in bend]
    flow.set_start(h, (velocity[0], velocity[1]), (pressure[0], pressure[1]), (on_surface[0], on_surface[1]))


def _moved(points: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Values at other points: of the nearest where they coincide, otherwise linear between."""
    from scipy.interpolate import LinearNDInterpolator
    from scipy.spatial import cKDTree

    distance, nearest = cKDTree(points).query(wanted)
    found = values[nearest].astype(np.float64)
    if distance.max() > 1e-9:
        between = LinearNDInterpolator(points, values.astype(np.float64))(wanted)
        inside = np.isfinite(between if between.ndim == 1 else between[:, 0]) & (distance > 1e-9)
        found[inside] = between[inside]
    return found
