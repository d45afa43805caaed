"""FSI2 and FSI3 in their limit cycles, stored in single precision, so that the interesting part is there in half a
minute.

The files hold two points at the end of long runs, as values at points: on the meshes they were made on these are taken
as they are, on others they are interpolated. A run that starts from them needs a few steps to forget both, and some
periods where the mesh is another one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import cosolve as cs

FOLDER = Path(__file__).parent

#: Case and fineness of the meshes of what is stored.
STORED = {
    ("FSI2", 1.5): "limit_cycle_fsi2.npz",
    ("FSI3", 1.0): "limit_cycle_fsi3.npz",
    ("FSI3", 1.5): "limit_cycle_fsi3_fine.npz",
}


def nearest(case: str, fineness: float) -> Path:
    """The file of a case whose meshes are most like those of this fineness."""
    return FOLDER / min((abs(f - fineness), name) for (c, f), name in STORED.items() if c == case)[1]


FILE = nearest("FSI3", 1.0)


def store(flow: cs.fields.NgsFlow, flag: cs.fields.NgsSolid, path: Path) -> None:
    """Write where both stand, at the end of a run."""
    moving, bending = flow.motion(), flag.motion()
    del moving["displacement"]  # that of the solid counts
    arrays = {"fluid_points": flow.points_at_rest, "solid_points": flag.points_at_rest, "h": np.array(moving.pop("h"))}
    del bending["h"]
    arrays |= {f"fluid_{name}": np.array(pair) for name, pair in moving.items()}
    arrays |= {f"solid_{name}": np.array(pair) for name, pair in bending.items()}
    points = {"fluid_points", "solid_points", "h"}
    np.savez_compressed(path, **{k: v if k in points else v.astype(np.float32) for k, v in arrays.items()})


def set_start(
    flow: cs.fields.NgsFlow, flag: cs.fields.NgsSolid | cs.fields.ElasticSolid, path: Path = FILE, t0: float = 0.0
) -> cs.KnownHistory:
    """Let runs start from what is stored, and give the `startup` of a run that does so at `t0`.

    It says where the flag comes from: the first guess would be that it stops, and what the flow then does to it is more
    than it stands. Forces of the past are not kept; no step looks at them, since the flow goes first.
    """
    with np.load(path) as stored:
        h = float(stored["h"])
        at_fluid, at_solid = stored["fluid_points"], stored["solid_points"]
        corners = len(stored["fluid_pressure"][0])
        velocity = [_moved(at_fluid, v, flow.points_at_rest) for v in stored["fluid_velocity"]]
        pressure = [_moved(at_fluid[:corners], p, flow.points_at_rest) for p in stored["fluid_pressure"]]
        bend = [_moved(at_solid, d, flag.points_at_rest, smooth=True) for d in stored["solid_displacement"]]
        speed = [_moved(at_solid, v, flag.points_at_rest, smooth=True) for v in stored["solid_velocity"]]
    flag.set_start(h, (bend[0], bend[1]), (speed[0], speed[1]))
    trace = flag.trace_to(flow.meshes["displacement"])
    at_surface = [flag.at_surface(d) for d in bend]
    on_surface = [trace.consistent(d) for d in at_surface]
    flow.set_start(h, (velocity[0], velocity[1]), (pressure[0], pressure[1]), (on_surface[0], on_surface[1]))
    no_force = np.zeros_like(on_surface[0])

    def past(t: float) -> dict[str, np.ndarray]:
        back = at_surface[1] - at_surface[0]
        return {"solid.displacement": at_surface[0] + (t0 - t) / h * back, "fluid.force": no_force}

    return cs.KnownHistory(past)


def _moved(points: np.ndarray, values: np.ndarray, wanted: np.ndarray, smooth: bool = False) -> np.ndarray:
    """Values at other points: of the nearest where they coincide, otherwise linear between.

    `smooth` goes through the nearest points without kinks, also at the edge: a solid with kinks is full of stress.
    """
    from scipy.interpolate import LinearNDInterpolator, RBFInterpolator
    from scipy.spatial import cKDTree

    values = values.astype(np.float64)
    distance, nearest = cKDTree(points).query(wanted)
    if distance.max() <= 1e-9:
        return values[nearest]
    if smooth:
        return RBFInterpolator(points, values, neighbors=30, kernel="cubic", degree=2)(wanted)
    between = LinearNDInterpolator(points, values)(wanted)
    inside = np.isfinite(between if between.ndim == 1 else between[:, 0]) & (distance > 1e-9)
    found = values[nearest]
    found[inside] = between[inside]
    return found
