"""The Newton toy problem (Sicklinger (2014), Example 2.1): roots on lines, with a Jacobian that is singular on them.

    F(x) = (sin x1 - cos x2, cos x1 - sin x2),      x = (0, 0) to begin with,      stop at |F| < 1e-6

`iterate` runs a corrector on it and returns one row per evaluation of F, like the tables of the source; `system` is the
same problem as two subsystems and two interface equations.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

import cosolve as cs

#: |F| in Tables 2.1 to 2.5 of the source, as far as its text can be read; T2.2 begins like T2.1.
PUBLISHED = {
    "T2.1": [1.4142135623730951, 0.4259168303185923, 0.0067125111144309, 2.52045072e-8],
    "T2.2": [1.4142135623730951, 0.4259168303185923, 0.1729175269566564, 0.0713934561574834],
    "T2.3": [1.41421356, 0.42591683, 0.0337150010756715, 0.0002396172338851, 1.12696676e-8],
    "T2.4": [
        1.4142135623730951,
        1.4142135623730951,
        1.0036489262526811,
        1.2049665497942681,
        0.4810202555487200,
        0.0029567819957473,
        7.6062051e-6,
        5.383695e-10,
    ],
    "T2.5": [1.4142135623730951, 0.4259168225819227, 0.0067125092788733, 2.51897958e-8],
}


class Toy:
    """F and its Jacobian as a corrector sees them; counts the evaluations."""

    def __init__(self) -> None:
        self.evaluations = 0
        self.x = np.zeros(2)

    def residual(self, x: np.ndarray) -> np.ndarray:
        self.evaluations += 1
        self.x = x
        return np.array([np.sin(x[0]) - np.cos(x[1]), np.cos(x[0]) - np.sin(x[1])])

    def jacobian(self) -> np.ndarray:
        x1, x2 = self.x
        return np.array([[np.cos(x1), np.sin(x2)], [-np.sin(x1), -np.cos(x2)]])


@dataclass
class Iteration:
    """Rows of a table: the norms of F, and the iterates they belong to."""

    norms: list[float] = field(default_factory=list)
    x: list[np.ndarray] = field(default_factory=list)
    evaluations: int = 0

    @property
    def converged(self) -> bool:
        return self.norms[-1] < 1e-6


def iterate(corrector: cs.Corrector, start: tuple[float, float] = (0.0, 0.0), most: int = 60) -> Iteration:
    """Correct until |F| < 1e-6, at most `most` times."""
    toy, rows, x = Toy(), Iteration(), np.array(start)
    corrector.start_run(["x1", "x2"])
    corrector.start_step()
    while True:
        r = toy.residual(x)
        rows.norms.append(float(np.linalg.norm(r)))
        rows.x.append(x)
        if rows.converged or len(rows.norms) > most:
            rows.evaluations = toy.evaluations
            return rows
        x = corrector.correct(x, r, toy)


class Angle(cs.Subsystem):
    """Gives sine and cosine of what it is told; its own Jacobian is exact."""

    inputs, outputs = ("x",), ("sin", "cos")

    def __init__(self, start: float = 0.0) -> None:
        self._start = start

    def start(self, t0: float) -> tuple[float, float]:
        return float(np.sin(self._start)), float(np.cos(self._start))

    def advance(self, t0: float, t1: float, u: cs.InputSignal) -> tuple[float, float]:
        return float(np.sin(u.end[0])), float(np.cos(u.end[0]))

    def jacobian(self, t0: float, t1: float, u: cs.InputSignal, weight: np.ndarray) -> np.ndarray:
        return np.array([[np.cos(u.end[0])], [-np.sin(u.end[0])]]) * weight.sum()

    def save(self) -> None:
        return None

    def restore(self, state: None) -> None:
        pass


def system(start: tuple[float, float] = (0.0, 0.0)) -> cs.System:
    """One macro step of this system is the toy problem."""
    joined = cs.System({"one": Angle(start[0]), "two": Angle(start[1])})
    joined.equations(
        {"x1": "one.x", "x2": "two.x"},
        lambda x1, x2, sin1, cos1, sin2, cos2: (sin1 - cos2, cos1 - sin2),
        of=["one.sin", "one.cos", "two.sin", "two.cos"],
        initial={"x1": start[0], "x2": start[1]},
        solve_start=False,  # corrections are counted from there
    )
    return joined
