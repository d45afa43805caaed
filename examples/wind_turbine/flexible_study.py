"""What coupling the flexible turbine costs, and what becomes of its energy.

    python -m examples.wind_turbine.flexible_study correctors|cuts|loose|energy [--step 2e-3] [--until 10]

prints one table: evaluations per step of every corrector; serial iterations by where the shaft is cut; the error of
loose coupling; the energy that is missing in the end.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

import cosolve as cs
from examples.wind_turbine.drive import SOFT
from examples.wind_turbine.flexible import Turbine, reference, split
from examples.wind_turbine.flexible_monolithic import run as undivided
from examples.wind_turbine.rotor import HEAD, PITCH, SPEED, energy_of, turned

#: A serial order in which every coupling variable has one value within a sweep: the subsystem that needs the speed runs
#: first.
ORDER = ("control", "air", "generator", "rotor")

#: Only the speed to the last digits; the rest so loosely that the run is off by 4e-7 rad/s in the end.
SPEED_ONLY = {
    "air.flap_rate": 1e-6,
    "air.edge_rate": 1e-6,
    "rotor.flap_load": 1e-3,
    "rotor.edge_load": 1e-3,
    "generator.torque": 1e-3,
}


class Corrector(NamedTuple):
    """A row of the table: how the interface equations are solved, where the shaft is cut, and what the air knows."""

    name: str
    make: Callable[[], cs.Corrector]
    serial: bool = False
    on_rotor: bool = False
    secant: bool = False


CORRECTORS = (
    Corrector("Newton, exact Jacobians", cs.Newton),
    Corrector("Newton, exact, once a step", lambda: cs.Newton("step")),
    Corrector("Newton, secants for the air", cs.Newton, secant=True),
    Corrector("Broyden from the exact Jacobian", lambda: cs.Broyden(initial="exact")),
    Corrector("Broyden", cs.Broyden),
    Corrector("IQN-ILS", lambda: cs.IqnIls(initial=1.0)),
    Corrector("IQN-IMVJ", lambda: cs.IqnImvj(initial=1.0)),
    Corrector("Anderson", lambda: cs.Anderson(initial=1.0)),
    Corrector("serial: fixed point", cs.Relaxation, serial=True, on_rotor=True),
    Corrector("serial: Aitken", lambda: cs.Aitken(initial=1.0), serial=True, on_rotor=True),
    Corrector("serial: secant", cs.Secant, serial=True, on_rotor=True),
    Corrector("serial: Broyden", cs.Broyden, serial=True, on_rotor=True),
    Corrector("serial: Anderson", lambda: cs.Anderson(initial=1.0), serial=True, on_rotor=True),
    Corrector("serial: IQN-ILS", lambda: cs.IqnIls(initial=1.0), serial=True, on_rotor=True),
    Corrector("serial: IQN-IMVJ", lambda: cs.IqnImvj(initial=1.0), serial=True, on_rotor=True),
    Corrector("serial: Newton-Krylov", cs.NewtonKrylov, serial=True, on_rotor=True),
)


def method(row: Corrector, tol: float = 1e-10, predictor: int = 1, **more: object) -> cs.Implicit:
    """The implicit coupling of a row; the first guess is a polynomial of degree `predictor` through the past."""
    how: dict[str, object] = {"sweep": "gauss-seidel", "order": ORDER} if row.serial else {}
    return cs.Implicit(
        degree=1, tol=tol, predictor=predictor, corrector=row.make(), max_iterations=100, **how, **more  # type: ignore[arg-type]
    )  # fmt: skip


def evaluations(
    row: Corrector, turbine: Turbine, h: float, t_end: float, how: cs.Implicit
) -> tuple[float, int, cs.Result]:
    """Mean and largest number of subsystem steps of all subsystems in a step, the last one included; and the run."""
    cut = replace(turbine, shaft_on_rotor=row.on_rotor)
    run = cs.simulate(split(cut, secant=row.secant), t_end=t_end, method=how, step=h)
    per_step = run.column("calls")[1:].reshape(len(run.iterations), -1).max(axis=1)
    return run.stats.calls["air"] / len(run.iterations), int(per_step.max()), run


def loose(turbine: Turbine, h: float, t_end: float, degree: int = 1) -> cs.Result:
    """Serial, one subsystem step per macro step, signals extrapolated by polynomials of this degree."""
    return cs.simulate(split(turbine), t_end=t_end, method=cs.GaussSeidel(degree, order=ORDER), step=h)


# -- energy ------------------------------------------------------------------------------------------------------------


class Balance(NamedTuple):
    """Energies in J over a run, one row per macro point, beginning at zero; `missing` is what does not add up.

    `air` is the work of the loads, `generator` what the generator took from the shaft, `damping` what the blades lost,
    `pitch` what the pitch drive put in, `stored` what the rotor has more of than at the start. `shaft_missing` is the
    same for the generator: what it took less its kinetic energy and losses, and plus its motor.
    """

    t: np.ndarray
    air: np.ndarray
    generator: np.ndarray
    damping: np.ndarray
    pitch: np.ndarray
    stored: np.ndarray
    missing: np.ndarray
    shaft_missing: np.ndarray

    @property
    def throughput(self) -> float:
        """All work of the air and of the shaft, whatever its sign."""
        return float(np.abs(np.diff(self.air)).sum() + np.abs(np.diff(self.generator)).sum())

    @property
    def residual(self) -> float:
        """What is missing of the whole machine in the end, of all work of the air, whatever its sign."""
        return float((self.missing[-1] + self.shaft_missing[-1]) / np.abs(np.diff(self.air)).sum())


class Kept(cs.OneStep):
    """Keeps the state from which it advanced over every macro step, however often."""

    begun: dict[float, np.ndarray]

    def start(self, t0: float) -> np.ndarray:
        self.begun = {}
        return super().start(t0)

    def advance(self, t0: float, t1: float, u: cs.InputSignal) -> np.ndarray:
        self.begun[t0] = self.x
        return super().advance(t0, t1, u)

    @property
    def states(self) -> np.ndarray:
        """After a run, one row per macro point."""
        return np.array([*(self.begun[t] for t in sorted(self.begun)), self.x])


def balance(turbine: Turbine, run: cs.Result, states: np.ndarray) -> Balance:
    """Of a run of `split(turbine)` whose rotor was in these `states`, one row per macro point.

    With the rule `"energy"` the exchanged rates, loads and torques are those of the step, and works are their products;
    with `"bdf2"` they are values at macro points, and works are trapezoids.
    """
    p, b, n = turbine, turbine.blade, len(turbine.blade.pull)
    many, t = float(p.air.blades), run.t
    H = np.diff(t)
    mean = p.rule == "energy"
    q, v = states[:, HEAD : HEAD + n], states[:, HEAD + n : HEAD + 2 * n]
    loads = np.hstack([run["rotor.flap_load"], run["rotor.edge_load"]])
    rates = np.hstack([run["rotor.flap_rate"], run["rotor.edge_rate"]])
    speed, pitch = run["rotor.speed"], states[:, PITCH]

    def work(power: np.ndarray) -> np.ndarray:
        steps = H * (power[1:] if mean else 0.5 * (power[1:] + power[:-1]))
        return np.concatenate([[0.0], np.cumsum(steps)])

    air = work(many * (np.einsum("ij,ij->i", loads, rates) + (loads @ b.arm) * speed))
    taken = work(run["generator.torque"] * speed)
    K = np.array([turned(b.stiffness, angle) for angle in pitch])
    C = np.array([turned(b.damping, angle) for angle in pitch])
    if mean:
        acting, C = np.diff(q, axis=0) / H[:, None], 0.5 * (C[1:] + C[:-1])
        lost = np.concatenate([[0.0], np.cumsum(H * many * np.einsum("ij,ijk,ik->i", acting, C, acting))])
    else:
        lost = work(many * np.einsum("ij,ijk,ik->i", v, C, v))
    change = np.diff(K, axis=0)
    pushed = sum(np.einsum("ij,ijk,ik->i", end, change, end) for end in (q[1:], q[:-1]))
    put_in = np.concatenate([[0.0], np.cumsum(0.25 * many * pushed)])
    energy = np.array([energy_of(b, x, p.inertia, many) for x in states])
    stored = energy - energy[0]
    return Balance(t, air, taken, lost, put_in, stored, air - taken - lost + put_in - stored, _shaft(p, run, states))


def _shaft(p: Turbine, run: cs.Result, states: np.ndarray) -> np.ndarray:
    """What the generator took from the shaft and does not account for."""
    train, t, speed = p.generator, run.t, run["rotor.speed"]
    mean, H = p.rule == "energy", np.diff(run.t)
    before = states[:-1, SPEED]
    motor = np.where(t[1:] <= train.motor_until + 1e-9, train.motor_torque, 0.0)
    parked = (run["control.brake"][1:] > 0.5) & (np.abs(before) < train.parking_speed)

    def power(w: np.ndarray) -> np.ndarray:
        held = np.where(parked, train.parking_torque, 0.0) * np.tanh(w / SOFT)
        return (motor - held) * w - train.damping * w**2

    inner = H * power(speed[1:]) if mean else 0.5 * H * (power(speed[1:]) + power(speed[:-1]))
    shaft = run["generator.torque"] * speed
    given = H * (shaft[1:] if mean else 0.5 * (shaft[1:] + shaft[:-1]))
    kinetic = 0.5 * train.inertia * (states[1:, SPEED] ** 2 - states[0, SPEED] ** 2)
    return np.concatenate([[0.0], np.cumsum(given + inner) - kinetic])


def kept(turbine: Turbine) -> tuple[cs.System, Kept]:
    """The coupled system with a rotor that keeps its states."""
    system = split(turbine)
    rotor = system.subsystems["rotor"]
    rotor.__class__ = Kept
    return system, rotor  # type: ignore[return-value]


def energies(turbine: Turbine, h: float, t_end: float, tol: float = 1e-12) -> tuple[Balance, cs.Result]:
    """A run with Newton's method, and its balance."""
    system, rotor = kept(turbine)
    run = cs.simulate(
        system, t_end=t_end, method=cs.Implicit(degree=1, tol=tol, predictor=2, corrector=cs.Newton()), step=h
    )
    return balance(turbine, run, rotor.states), run


# -- tables ------------------------------------------------------------------------------------------------------------


def print_correctors(h: float, t_end: float, tol: float) -> None:
    """Evaluations per step of every row."""
    turbine = Turbine()
    exact = undivided(*reference(turbine), h, t_end)
    print(f"evaluations per step, h = {1e3 * h:g} ms, until {t_end:g} s, |r| < {tol:g}")
    for row in CORRECTORS:
        try:
            mean, most, run = evaluations(row, turbine, h, t_end, method(row, tol, 2))
            off = np.abs(run["rotor.speed"] - exact.speed).max()
            print(f"    {row.name:34s} {mean:6.2f} {most:4d}   speed off by {off:.1e} rad/s", flush=True)
        except cs.CosolveError as error:
            print(f"    {row.name:34s} none: {error}", flush=True)
    row = CORRECTORS[2]
    for name in ("exact", "secants"):
        row = CORRECTORS[0 if name == "exact" else 2]
        mean, most, _ = evaluations(row, turbine, h, t_end, method(row, 1e-12, 2, atol=SPEED_ONLY))
        print(f"    speed to 1e-12 only, {name:13s} {mean:6.2f} {most:4d}")


def print_cuts(h: float, t_end: float) -> None:
    """Serial iterations to 1e-10, with the inertia of the generator on either side of the cut."""
    for on_rotor in (True, False):
        row = Corrector("fixed point", cs.Relaxation, serial=True, on_rotor=on_rotor)
        try:
            mean, most, _ = evaluations(row, Turbine(), h, t_end, method(row))
            print(f"    shaft on the rotor's side: {on_rotor!s:5s} {mean:6.2f} {most:4d}", flush=True)
        except cs.CosolveError as error:
            print(f"    shaft on the rotor's side: {on_rotor!s:5s} none: {error}", flush=True)


def print_loose(h: float, t_end: float) -> None:
    """Largest errors of loose coupling."""
    for on_rotor in (True, False):
        turbine = replace(Turbine(), shaft_on_rotor=on_rotor)
        exact = undivided(*reference(turbine), h, t_end)
        try:
            run = loose(turbine, h, t_end)
        except cs.CosolveError as error:
            print(f"    shaft on the rotor's side: {on_rotor!s:5s} {error}")
            continue
        speed = np.abs(run["rotor.speed"] - exact.speed).max()
        torque = np.abs(run["air.torque"] - exact.torque)[1:].max()
        tip = 1e3 * np.abs(run["rotor.tip"][:, 0] - exact.tip[:, 0]).max()
        print(
            f"    shaft on the rotor's side: {on_rotor!s:5s} {speed:.2e} rad/s {torque:.2f} Nm {tip:.4f} mm", flush=True
        )


def print_energy(h: float, t_end: float) -> None:
    """What is missing in the end, of the work of the air, for both rules."""
    for rule in ("bdf2", "energy"):
        found, _ = energies(Turbine(rule=rule), h, t_end)  # type: ignore[arg-type]
        print(
            f"    {rule:7s} h = {1e3 * h:g} ms: {found.residual:.2e} of the work of the air; "
            f"largest {np.abs(found.missing + found.shaft_missing).max() / found.throughput:.2e} of the throughput",
            flush=True,
        )


def main() -> None:
    """One table by name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=["correctors", "cuts", "loose", "energy"])
    parser.add_argument("--step", type=float, default=2e-3)
    parser.add_argument("--until", type=float, default=10.0)
    parser.add_argument("--tol", type=float, default=1e-12)
    chosen = parser.parse_args()
    if chosen.table == "correctors":
        print_correctors(chosen.step, chosen.until, chosen.tol)
    else:
        {"cuts": print_cuts, "loose": print_loose, "energy": print_energy}[chosen.table](chosen.step, chosen.until)


if __name__ == "__main__":
    main()
