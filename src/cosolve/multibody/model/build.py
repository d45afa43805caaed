"""From a described model to its arrays: numbering, rows of the joints, and constraints that say nothing new.

`consistent_start` finds initial values that satisfy the constraints, or names the constraints that cannot be satisfied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cosolve.errors import SetupError
from cosolve.multibody.equations.entries import residuals
from cosolve.multibody.equations.joint_math import rotation_matrix
from cosolve.multibody.model.arrays import (
    DRIVEN,
    EULER_ANGLES,
    EULER_PARAMETERS,
    SPRING,
    STATE,
    TORSION,
    Arrays,
    Index,
    Matrix,
    Vector,
)
from cosolve.multibody.model.joints import JOINTS
from cosolve.multibody.model.model import GROUND, MultibodyModel

#: Below this sine of the angle to the other rows a constraint counts as repeated.
REPEATED = 1e-8


@dataclass(frozen=True)
class Built:
    """A model in arrays, with the names that messages need."""

    arrays: Arrays
    free: tuple[str, ...]  # names of the free bodies, in order
    others: tuple[str, ...]  # driven bodies, then the ground
    marker_index: dict[str, int]
    row_names: tuple[str, ...]
    x0: Vector
    driven0: Matrix  # one row of 19 per driven body and the ground
    dropped: tuple[str, ...]  # repeated constraints that were left out on request
    dropped_rows: Index

    def body_index(self, name: str) -> int:
        """Number of a body; free ones come first."""
        return (*self.free, *self.others).index(name)


def build(model: MultibodyModel, *, coordinates: str, redundant: str) -> Built:
    """Arrays of a model.

    `redundant`: "refuse" or "drop" constraints that the other ones imply at the initial position.

    >>> model = MultibodyModel()
    >>> model.body("ball", 1.0, [0.1, 0.1, 0.1])
    >>> model.joint("hold", "spherical", "ball", "ground")
    >>> build(model, coordinates="euler_parameters", redundant="refuse").row_names
    ("joint 'hold' (atpoint x)", "joint 'hold' (atpoint y)", "joint 'hold' (atpoint z)")
    """
    if not model.bodies:
        raise SetupError("the multibody model has no body; add one with model.body(...)")
    free = tuple(name for name in model.bodies if name not in model.drives)
    others = (*(name for name in model.bodies if name in model.drives), GROUND)
    if not free:
        raise SetupError("all bodies of the multibody model are driven; there is nothing to integrate")
    order = (*free, *others)
    bodies = np.ones((len(order), 19))
    for i, name in enumerate(order[:-1]):
        body = model.bodies[name]
        bodies[i] = [body.mass, *body.inertia.ravel(), *np.linalg.inv(body.inertia).ravel()]
    marker_index = {name: k for k, name in enumerate(model.markers)}
    marker_body = np.array([order.index(m.body) for m in model.markers.values()], dtype=np.int64)
    markers = np.array([[*m.point, *m.axes.T.ravel()] for m in model.markers.values()])
    kind = {"euler_parameters": EULER_PARAMETERS, "euler_angles": EULER_ANGLES}[coordinates]
    driven = np.zeros((len(others), DRIVEN))
    for i, name in enumerate(others):
        driven[i, :STATE] = model.bodies[name].start if name != GROUND else [0, 0, 0, 1, *[0] * 9]
        if name in model.drives:
            driven[i, 7:] = 0.0  # held; a moving drive overwrites the whole row
    names, rows = _rows(model, marker_index, marker_body)
    arrays = Arrays(
        counts=np.array([kind, len(free), len(order)], dtype=np.int64),
        numbers=np.array([*model.gravity, 0.0, 0.0]),
        bodies=bodies,
        marker_body=marker_body,
        markers=markers,
        rows=rows,
        elements=np.array(
            [[e.kind, marker_index[e.first], marker_index[e.second]] for e in model.elements.values()], dtype=np.int64
        ).reshape(-1, 3),
        element_data=_element_data(model),
        ports=np.zeros((0, 5), dtype=np.int64),
        ends=np.zeros((0, 6), dtype=np.int64),
        end_constants=np.zeros(0),
        parts=np.zeros(3, dtype=np.int64),
    )
    x0 = np.concatenate([_start_row(model.bodies[name].start, name, kind) for name in free])
    keep = _without_planar_repeats(model, arrays, x0, driven)
    names, arrays = [names[k] for k in keep], arrays._replace(rows=rows[keep])
    repeated = repeated_rows(arrays, x0, driven)
    dropped = tuple(names[k] for k in repeated)
    if repeated and redundant == "refuse":
        raise SetupError(
            f"over-constrained: at the initial position {listed(dropped)} repeat{'s' if len(dropped) == 1 else ''} "
            "what the constraints before say; use joints with fewer conditions (spherical, inline, ...) or "
            "redundant='drop'"
        )
    kept = [k for k in range(len(names)) if k not in set(repeated)]
    return Built(
        arrays=arrays._replace(rows=arrays.rows[kept].reshape(-1, 7)),
        free=free,
        others=others,
        marker_index=marker_index,
        row_names=tuple(names[k] for k in kept),
        x0=x0,
        driven0=driven,
        dropped=dropped,
        dropped_rows=arrays.rows[repeated].reshape(-1, 7),
    )


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names for a message, not too many of them.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _rows(model: MultibodyModel, marker_index: dict[str, int], marker_body: Index) -> tuple[list[str], Index]:
    """All rows of all joints, those that hold planar bodies in their plane first."""
    names: list[str] = []
    rows: list[list[int]] = []
    planes = [
        (name, "planar", name, GROUND) for name, b in model.bodies.items() if b.planar and name not in model.drives
    ]
    for label, kind, first, second in (
        *((f"plane of '{name}'", kind, first, second) for name, kind, first, second in planes),
        *((f"joint '{j.name}'", j.kind, j.first, j.second) for j in model.joints.values()),
    ):
        for row in JOINTS[kind]:
            names.append(f"{label} ({row.label})")
            a, b = marker_index[first], marker_index[second]
            rows.append([row.kind, a, b, row.first, row.second, int(marker_body[a]), int(marker_body[b])])
    return names, np.array(rows, dtype=np.int64).reshape(-1, 7)


def dense_jacobian(arrays: Arrays, x: Vector, driven: Matrix) -> Matrix:
    """`C` (rows x 6 velocities of the free bodies)."""
    m, n = len(arrays.rows), int(arrays.counts[1])
    J, _, _ = residuals(arrays, x, driven)
    C = np.zeros((m, n, 6))
    for k in range(m):
        for side in range(2):
            i = arrays.rows[k, 5 + side]
            if i < n:
                C[k, i] += J[k, 6 * side : 6 * side + 6]
    return C.reshape(m, 6 * n)


def weighted_rows(arrays: Arrays, C: Matrix) -> Matrix:
    """`C M^(-1/2)` with rows of length one, so that angles between rows are those of `C M^-1 C^T`."""
    n = int(arrays.counts[1])
    W = C.copy()
    for i in range(n):
        W[:, 6 * i : 6 * i + 3] /= np.sqrt(arrays.bodies[i, 0])
        L = np.linalg.cholesky(arrays.bodies[i, 10:19].reshape(3, 3))
        W[:, 6 * i + 3 : 6 * i + 6] = W[:, 6 * i + 3 : 6 * i + 6] @ L
    length = np.linalg.norm(W, axis=1)
    return W / np.where(length > 0, length, 1.0)[:, np.newaxis]


def repeated_rows(arrays: Arrays, x: Vector, driven: Matrix) -> list[int]:
    """Rows that depend on the rows before them; how many there are is settled by QR with pivoting."""
    if not len(arrays.rows):
        return []
    W = weighted_rows(arrays, dense_jacobian(arrays, x, driven))
    if W.shape[0] <= W.shape[1] and np.linalg.svd(W, compute_uv=False)[-1] > REPEATED:
        return []  # no row, of length one at most, is nearer to the others than the smallest singular value
    from scipy.linalg import qr

    diagonal = np.abs(np.diag(qr(W.T, mode="r", pivoting=True)[0]))
    rank = int((diagonal > REPEATED * diagonal[0]).sum()) if diagonal.size and diagonal[0] > 0 else 0
    if rank == len(W):
        return []
    basis: list[Vector] = []
    remains = np.empty(len(W))
    for k, row in enumerate(W):
        rest = row.copy()
        for _ in range(2):
            for b in basis:
                rest = rest - (b @ rest) * b
        remains[k] = np.linalg.norm(rest)
        if remains[k] > REPEATED and len(basis) < rank:
            basis.append(rest / remains[k])
        else:
            remains[k] = 0.0
    return [k for k in range(len(W)) if remains[k] == 0.0]


def _without_planar_repeats(model: MultibodyModel, arrays: Arrays, x: Vector, driven: Matrix) -> list[int]:
    """Rows to keep: those of joints between planar bodies that only say that the bodies are planar go."""
    flat = {name for name, body in model.bodies.items() if body.planar} | {GROUND}
    body_of = [m.body for m in model.markers.values()]
    pairs = [(body_of[row[1]], body_of[row[2]]) for row in arrays.rows]
    planes = 3 * sum(1 for name in flat if name in model.bodies and name not in model.drives)
    keep = list(range(planes))
    if planes == 0:
        return list(range(len(pairs)))
    W = weighted_rows(arrays, dense_jacobian(arrays, x, driven))
    for k in range(planes, len(pairs)):
        if set(pairs[k]) <= flat:
            rest = W[k] - W[:planes].T @ np.linalg.lstsq(W[:planes].T, W[k], rcond=None)[0]
            if np.linalg.norm(rest) < REPEATED:
                continue
        keep.append(k)
    return keep


def _element_data(model: MultibodyModel) -> Matrix:
    """Data of the force elements, with initial lengths and angles where they start unstressed."""
    data = np.array([e.data for e in model.elements.values()]).reshape(-1, 16)
    for k, element in enumerate(model.elements.values()):
        if not element.unstressed:
            continue
        ends = []
        for name in (element.first, element.second):
            marker = model.markers[name]
            z = model.bodies[marker.body].start if marker.body != GROUND else np.array([0.0, 0, 0, 1, 0, 0, 0])
            T = rotation_matrix(z[3:7])
            ends.append((z[:3] + T @ marker.point, T @ marker.axes))
        (p, S), (q, R) = ends
        if element.kind == SPRING:
            data[k, 2] = np.linalg.norm(p - q)
        elif element.kind == TORSION:
            data[k, 2] = np.arctan2(S[:, 0] @ R[:, 1], S[:, 0] @ R[:, 0])
    return data


def _start_row(start: Vector, name: str, kind: int) -> Vector:
    """The 13 numbers of a body in the chosen coordinates."""
    if kind == EULER_PARAMETERS:
        return start
    T = rotation_matrix(start[3:7])
    sine = float(np.hypot(T[2, 0], T[2, 1]))
    if sine < 1e-3:
        raise SetupError(
            f"body '{name}': Euler angles (z-x-z) are singular at the initial orientation (sin theta = {sine:.2g}); "
            "use coordinates='euler_parameters' or turn the body frame"
        )
    row = start.copy()
    row[3:7] = [np.arctan2(T[0, 2], -T[1, 2]), np.arctan2(sine, T[2, 2]), np.arctan2(T[2, 0], T[2, 1]), 0.0]
    return row


#: Violations below this are taken for printed digits and removed without asking.
ROUNDED = 1e-6


def violations(built: Built, x: Vector, driven: Matrix) -> tuple[Vector, Vector]:
    """`c` and `c'` of all rows."""
    _, c, rate = residuals(built.arrays, x, driven)
    return c, rate


def consistent_start(
    built: Built, x0: Vector, driven: Matrix, initial: str, project: Callable[[Vector, Matrix, int], int]
) -> tuple[Vector, str]:
    """Consistent values near `x0` and a sentence on how far they are from it.

    `initial="refuse"` only removes rounding; `"find"` projects positions, then velocities, weighted with the masses, by
    `project(x, driven, level)`.
    """
    c, rate = violations(built, x0, driven)
    names = built.row_names
    wrong = [f"{names[k]} by {c[k]:.3g}" for k in range(len(c)) if abs(c[k]) > ROUNDED]
    fast = [f"{names[k]} at the rate {rate[k]:.3g}" for k in range(len(c)) if abs(rate[k]) > ROUNDED]
    if initial == "refuse" and (wrong or fast):
        level = "position" if wrong else "velocity"
        raise SetupError(
            f"the initial values violate the constraints at {level} level: {listed(wrong or fast)}; correct them or "
            "let them be found with initial='find'"
        )
    x = x0.copy()
    if len(c) and project(x, driven, 2) < 0:
        raise SetupError(
            f"no consistent initial position was found near the given one, which violates {listed(wrong)}; check the "
            "geometry of these joints or start closer"
        )
    if len(built.dropped_rows):
        whole = built.arrays._replace(rows=built.dropped_rows)
        _, c_dropped, _ = residuals(whole, x, driven)
        broken = [
            f"{name} by {a:.3g}" for name, a in zip(built.dropped, c_dropped, strict=True) if abs(a) > 1e3 * ROUNDED
        ]
        if broken:
            raise SetupError(f"constraints contradict each other: {listed(broken)} cannot hold together with the rest")
    moved = np.abs((x - x0).reshape(-1, STATE))
    return x, (
        f"initial values moved by at most {moved[:, :3].max():.3g} m, {moved[:, 3:7].max():.3g} in the orientation, "
        f"{moved[:, 7:10].max():.3g} m/s and {moved[:, 10:].max():.3g} rad/s"
    )


def involved(built: Built, x: Vector, driven: Matrix) -> str:
    """The joints whose constraints depend on each other at a singular position (smallest left singular vector)."""
    U, _, _ = np.linalg.svd(weighted_rows(built.arrays, dense_jacobian(built.arrays, x, driven)))
    share = np.abs(U[:, len(built.row_names) - 1])
    order = [int(k) for k in np.argsort(-share) if share[k] > 0.1 * share.max()]
    joints = dict.fromkeys(built.row_names[k].rsplit(" (", 1)[0] for k in order)
    return listed(list(joints))
