"""The demonstration: two coupled models, each under an explicit, a semi-implicit and an implicit method.

The two-mass oscillator and the planar double pendulum of Schweizer and Lu (2014), 4.1 and 4.2, force/force coupled,
with macro steps at which the explicit method is unstable. The spectral radius of the macro step says so before anything
runs; the runs and their report show it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import cos, pi, sin
from pathlib import Path

import numpy as np

import cosolve as cs
from cosolve.basics.arrays import Vector
from cosolve.report import Comparison, write_comparisons
from cosolve.report.comparison import part
from cosolve.report.page import Cell

#: From this relative error on the verdict says how good a shorter step is.
_ROUGH = 0.01
#: Columns of its tables, to the left where negative.
_WIDTHS = (-16, -15, 7, 17, 7, 7, 9)
WIDTH = 2 + sum(map(abs, _WIDTHS))
#: What the demonstration recommends.
NEXT = (
    "cosolve new car: two coupled FMUs of your own, ready to run",
    "cosolve check system.toml: the same verdict for your system, before it runs",
)


@dataclass(frozen=True)
class Case:
    """A coupled model, its exact motion, and the methods to try on it with one macro step."""

    title: str
    text: str
    system: Callable[[], cs.System]
    exact: Callable[[Vector], Mapping[str, Vector]]
    quantities: Sequence[str]
    methods: Sequence[cs.Method]
    H: float
    t_end: float
    t_shown: float = np.inf


@dataclass
class Runs:
    """What came of a case: verdicts before the runs, and the runs."""

    case: Case
    radius: dict[str, float] = field(default_factory=dict)
    unstable: dict[str, bool] = field(default_factory=dict)
    results: dict[str, cs.Result] = field(default_factory=dict)

    @property
    def comparison(self) -> Comparison:
        """The case as a part of the report."""
        verdicts = {
            label: {
                "before the run": Cell.judged("unstable" if bad else "stable", not bad),
                "spectral radius": f"{self.radius[label]:.4f}",
            }
            for label, bad in self.unstable.items()
        }
        case = self.case
        return Comparison(self.results, case.title, case.text, case.exact, case.quantities, verdicts, case.t_shown, "s")

    @property
    def best(self) -> cs.Method:
        """The stable method with the fewest calls."""
        return min(
            (method for method in self.case.methods if not self.unstable[method.label]),
            key=lambda method: self.results[method.label].stats.total_calls,
        )

    def verdict(self) -> str:
        """What to take, why, and how good it is; where it is far off at this step, also at a fifth of it."""
        case, best, comparison = self.case, self.best, self.comparison
        others = [label for label, bad in self.unstable.items() if bad]
        error, calls = comparison.relative_error(best.label), self.results[best.label].stats.total_calls
        text = f"Take {best.label}: stable where {' and '.join(others)} blows up; {calls} calls, {part(error)} off"
        if error < _ROUGH:
            return f"{text}."
        fine = cs.simulate(case.system(), t_end=case.t_end, method=best, step=case.H / 5)
        finer = part(replace(comparison, results={best.label: fine}, verdicts={}).relative_error(best.label))
        return f"{text} at this step.\nAt {case.H / 5:g} s: {fine.stats.total_calls} calls, {finer} off."


def run_demo(out: Path, echo: Callable[[str], object] = print, *, wide: bool = True) -> tuple[Path, list[Comparison]]:
    """Run the demonstration, print the verdicts with `echo` and write `report.html` into the folder `out`.

    Tables become lists where `echo` has less than `WIDTH` columns (not `wide`). Returns the page and its parts.

    >>> from cosolve.demo import oscillator, run_case
    >>> runs = run_case(oscillator())
    >>> {label: round(radius, 2) for label, radius in runs.radius.items()}
    {'Jacobi(1)': 1.4, 'SemiImplicit(1)': 0.86, 'Implicit(1)': 0.86}
    """
    every = []
    for case in (oscillator(), double_pendulum()):
        echo(f"{case.title}: macro step {case.H:g} s, until {case.t_end:g} s")
        head = ("method", "before the run", "radius", f"error {case.quantities[0]}", "steps", "calls", "time")
        if wide:
            echo(_row(*head))
        runs = run_case(case)
        for cells in _table(runs):
            named = ", ".join(f"{name} {cell}" for name, cell in zip(head[1:], cells[1:], strict=True))
            echo(_row(*cells) if wide else f"  {cells[0]}: {named}")
        said = runs.verdict()
        echo("\n".join(f"  {line}" for line in said.splitlines()) + "\n")
        every.append(replace(runs.comparison, conclusion=said.splitlines()))
    path = write_comparisons(
        every,
        Path(out) / "report.html",
        title="cosolve demonstration: explicit, semi-implicit, implicit",
        text="Two models, each cut in two and joined by a stiff spring. The explicit method extrapolates the coupling "
        "force over the macro step, and with these steps it blows up. The semi-implicit method repeats the step once "
        "with a corrected force, the implicit method until force and motion agree. Stability is computed before the "
        "run: a spectral radius above 1 means growth from step to step.",
    )
    echo(f"report  {path}")
    for line in NEXT:
        echo(f"next    {line}")
    return path, every


def run_case(case: Case) -> Runs:
    """Analyse, then run, every method of a case; runs that fail keep what they have."""
    runs = Runs(case)
    for method in case.methods:
        step = cs.analysis.amplification_matrix(case.system(), method, case.H)
        runs.radius[method.label], runs.unstable[method.label] = step.radius, step.unstable
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cs.errors.StabilityWarning)  # the demo shows what it looks like
                result = cs.simulate(case.system(), t_end=case.t_end, method=method, step=case.H)
        except cs.errors.SimulationError as error:
            if error.result is None:
                raise
            result = error.result
        runs.results[method.label] = result
    return runs


def _table(runs: Runs) -> list[tuple[str, ...]]:
    comparison = runs.comparison
    rows: list[tuple[str, ...]] = []
    for label, result in runs.results.items():
        stats = result.stats
        verdict = "unstable" if runs.unstable[label] else "stable"
        error = part(comparison.relative_error(label))
        took = f"{stats.wall_seconds:.2f} s"
        counts = str(stats.steps), str(stats.total_calls)
        rows.append((label, verdict, f"{runs.radius[label]:.3f}", error, *counts, took))
    return rows


def _row(*cells: str) -> str:
    padded = [f"{c:<{-w}}" if w < 0 else f"{c:>{w}}" for c, w in zip(cells, _WIDTHS, strict=True)]
    return "  " + "".join(padded).rstrip()


# -- two masses --------------------------------------------------------------------------------------------


def oscillator(c: float = 1e5, d: float = 100.0, H: float = 5e-3) -> Case:
    """Two masses between walls, joined by a spring and a damper; all springs alike, all dampers alike."""
    masses = {"one": (1.0, 100.0), "two": (2.0, -100.0)}

    def system() -> cs.System:
        ports = [cs.Port("x", unit="m"), cs.Port("v", unit="m/s")]

        def mass(m: float, v: float) -> cs.Linear:
            A, B = np.array([[0, 1], [-c / m, -d / m]]), np.array([[0], [1 / m]])
            return cs.Linear(A, B, np.eye(2), x0=[0, v], inputs=[cs.Port("force", unit="N")], outputs=ports)

        joined = cs.System({name: mass(m, v) for name, (m, v) in masses.items()})
        joined.law(
            {"one.force": 1, "two.force": -1},
            lambda x1, v1, x2, v2: c * (x2 - x1) + d * (v2 - v1),
            of=["one.x", "one.v", "two.x", "two.v"],
            name="spring",
        )
        return joined

    (m1, v1), (m2, v2) = masses.values()
    A = np.array([[0, 1, 0, 0], [-2 * c, -2 * d, c, d], [0, 0, 0, 1], [c, d, -2 * c, -2 * d]])
    A[1] /= m1
    A[3] /= m2
    values, vectors = np.linalg.eig(A)
    amplitudes = np.linalg.solve(vectors, np.array([0, v1, 0, v2], dtype=complex))

    def exact(t: Vector) -> dict[str, Vector]:
        states = (np.exp(np.multiply.outer(t, values)) * amplitudes @ vectors.T).real
        spring = c * (states[:, 2] - states[:, 0]) + d * (states[:, 3] - states[:, 1])
        return {"one.x": states[:, 0], "two.x": states[:, 2], "spring": spring}

    return Case(
        "Two-mass oscillator",
        f"Two masses between walls, joined by a spring (c = {c:g} N/m) and a damper (d = {d:g} Ns/m). A macro step of "
        f"{H:g} s is almost half a period of the fast oscillation: too long to resolve it, yet the semi-implicit and "
        "the implicit method stay stable and settle with the exact solution. The model is linear, so one correction "
        "is exact and both give the same numbers.",
        system,
        exact,
        ["one.x", "spring"],
        [cs.Jacobi(degree=1), cs.SemiImplicit(degree=1), cs.Implicit(degree=1)],
        H,
        t_end=0.5,
        t_shown=0.15,
    )


# -- double pendulum ---------------------------------------------------------------------------------------

_GRAVITY = 9.81


def double_pendulum(H: float = 2e-3, t_end: float = 1.0) -> Case:
    """Two links of 1 m and 1 kg with a flexible joint between them; the upper one hangs on a torsion spring."""
    start = np.array([pi / 4, 0.0]), _lower_link_at(pi / 4, -pi / 4)
    h = H / 2

    def system() -> cs.System:
        # a force of 1000 N counts as "one": increments of difference quotients follow from it
        force = cs.Port("force", 2, unit="N", nominal=1e3)
        turning = [cs.Port("phi", unit="rad"), cs.Port("omega", unit="rad/s")]
        upper = cs.Ode(_upper, _state, x0=start[0], inputs=[force], outputs=turning, integrator="ode4", internal_step=h)
        units = {"x": "m", "y": "m", "phi": "rad", "vx": "m/s", "vy": "m/s", "omega": "rad/s"}
        ports = [cs.Port(name, unit=unit) for name, unit in units.items()]
        lower = cs.Ode(_lower, _state, x0=start[1], inputs=[force], outputs=ports, integrator="ode4", internal_step=h)
        joined = cs.System({"upper": upper, "lower": lower})
        of = ["upper.phi", "upper.omega", *(f"lower.{name}" for name in units)]
        joined.law({"upper.force": 1, "lower.force": -1}, _joint, of=of, name="joint")
        return joined

    def together(t: float, x: Vector) -> Vector:
        force = np.array(_joint(*x))
        return np.concatenate([_upper(t, x[:2], force), _lower(t, x[2:], -force)])

    from scipy.integrate import solve_ivp

    motion = solve_ivp(
        together, (0.0, t_end), np.concatenate(start), "DOP853", rtol=1e-11, atol=1e-11, dense_output=True
    ).sol
    assert motion is not None

    def exact(t: Vector) -> dict[str, Vector]:
        x = motion(t)
        return {"upper.phi": x[0], "lower.phi": x[4], "joint[0]": np.array([_joint(*row)[0] for row in x.T])}

    return Case(
        "Planar double pendulum",
        "A nonlinear model: two links whose joint is a stiff spring and damper, with two coupling forces. The motion "
        "is slow and smooth, and still the explicit method cannot take this step. One correction is no longer exact, "
        "but all but enough: the implicit method corrects only a few steps twice.",
        system,
        exact,
        ["upper.phi", "lower.phi", "joint[0]"],
        [cs.Jacobi(degree=2), cs.SemiImplicit(degree=2), cs.Implicit(degree=2)],
        H,
        t_end,
    )


def _state(t: float, x: Vector, u: Vector) -> Vector:
    return x


def _upper(t: float, x: Vector, force: Vector) -> Vector:
    """The upper link turns about the origin; the joint pulls at its tip."""
    phi, omega = x
    torque = -500.0 * (phi - 5 * pi / 16) - 5.0 * omega - 0.5 * _GRAVITY * cos(phi)
    return np.array([omega, 3.0 * (torque + cos(phi) * force[1] - sin(phi) * force[0])])


def _lower(t: float, x: Vector, force: Vector) -> Vector:
    """The lower link is free; the joint pulls at its first end."""
    _, _, phi, vx, vy, omega = x
    torque = -0.5 * cos(phi) * force[1] + 0.5 * sin(phi) * force[0]
    return np.array([vx, vy, omega, force[0], force[1] - _GRAVITY, 12.0 * torque])


def _joint(
    phi1: float, omega1: float, x: float, y: float, phi2: float, vx: float, vy: float, omega2: float
) -> tuple[float, float]:
    """Force on the tip of the upper link."""
    c1, s1, c2, s2 = cos(phi1), sin(phi1), 0.5 * cos(phi2), 0.5 * sin(phi2)
    return (
        1e5 * (x - c2 - c1) + 1e2 * (vx + s2 * omega2 + s1 * omega1),
        1e5 * (y - s2 - s1) + 1e2 * (vy - c2 * omega2 - c1 * omega1),
    )


def _lower_link_at(phi1: float, phi2: float) -> Vector:
    """At rest, its first end on the tip of the upper link."""
    return np.array([cos(phi1) + 0.5 * cos(phi2), sin(phi1) + 0.5 * sin(phi2), phi2, 0.0, 0.0, 0.0])
