"""Field solvers without physics, so that files of their snapshots have values that are known."""

from __future__ import annotations

import numpy as np

import cosolve as cs

#: A square of two second-order triangles and one quadrilateral beside it.
CORNERS = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0], [1, 0.5], [0.5, 0.5], [0.5, 1], [0, 0.5], [2, 0], [2, 1]])
CELLS = {
    "triangle6": np.array([[0, 1, 2, 4, 5, 6], [0, 2, 3, 6, 7, 8]]),
    "quad": np.array([[1, 9, 10, 2]]),
}


class Plate(cs.Linear, cs.fields.FieldSubsystem):
    """One linear state `h` that follows an input, shown as a plate that moves up with it."""

    def __init__(self, level: float) -> None:
        super().__init__([[-1.0]], [[1.0]], [[1.0]], x0=[level], inputs=["q"], outputs=["h"])

    def snapshot(self) -> cs.fields.FieldSnapshot:
        """Points that move, a scalar and a vector at the points, a number per cell."""
        h = float(self.get_state()[0])
        points = CORNERS + np.array([0.0, h])
        velocity = np.column_stack([CORNERS[:, 0] * h, CORNERS[:, 1] - h])
        return cs.fields.FieldSnapshot(
            points, CELLS, {"pressure": h + CORNERS[:, 0] ** 2, "velocity": velocity}, {"rank": np.array([h, 1.0, 2.0])}
        )


class Still(cs.fields.FieldSubsystem):
    """Nothing moves; every subsystem step counts one more in a field of whole numbers."""

    inputs: list[str]
    outputs: list[str]
    inputs, outputs = [], ["n"]
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])

    def start(self, t0):
        self.n = 0
        return 0.0

    def advance(self, t0, t1, u):
        self.n += 1
        return float(self.n)

    def save(self):
        return self.n

    def restore(self, state):
        self.n = state

    def snapshot(self):
        return cs.fields.FieldSnapshot(self.points, {"tetra": np.array([[0, 1, 2, 3]])}, {"n": np.full(4, self.n)})


def system() -> cs.System:
    """Two plates that follow each other."""
    both = cs.System({"one": Plate(1.0), "two": Plate(0.0)})
    both.connect("one.h", "two.q")
    both.connect("two.h", "one.q")
    return both


RUN = {"t_end": 1.0, "method": cs.SemiImplicit(degree=1), "step": 0.05}
