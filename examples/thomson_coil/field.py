"""The Thomson coil as a field: circuit and axisymmetric finite elements, in place of rings.

The unknown is the flux `psi = r A_phi`. Where nothing conducts it is at rest; in the plate eddy currents hold it back;
the coil's current, evenly spread over the sections of its turns (stranded wire), drives it:

    K(z) psi + M(T) psi' = b I,   (b' psi + Ll I)' = on U - (Rc + Rl) I,   C U' = -on I,   F = -psi' K'(z) psi / 2

Nodes of the plate belong to the plate, so that `psi'` at a node is the rate that the metal feels, and a term `v x B`
never appears. How the mesh follows the plate, and what makes it fast: `finite_elements.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import pi
from pathlib import Path
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.linalg import solveh_banded

import cosolve as cs

if __package__ in (None, ""):  # from field.toml: a file by itself
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from examples.thomson_coil.finite_elements import Matrices, Mesh
from examples.thomson_coil.model import FORCE, MOTION, ThomsonCoil, acceleration, connected, holding, mechanics

#: how far the plate has gone after a part of a step, from 0 to 1
Distance = Callable[[float], float]

# Alexander (1977): three implicit stages with one diagonal, order 3, damps what is stiff; its last stage is the result.
_G = 0.43586652150845967
_A = np.array(
    [
        [_G, 0.0, 0.0],
        [(1 - _G) / 2, _G, 0.0],
        [-(6 * _G**2 - 16 * _G + 1) / 4, (6 * _G**2 - 20 * _G + 5) / 4, _G],
    ]
)
_C = _A.sum(axis=1)


# -- the electromagnetic side ---------------------------------------------------------------------------------


class Machine:
    """Circuit and field in time. A state is one flat array; its parts have names, and nothing else is remembered.

    `psi` and its rate on the strip, current `I`, flux linkage `flux` of coil and lead, voltage `U`, the capacitor `on`,
    heat in J: of the coil and of the lead, and of each element of the plate.
    """

    def __init__(self, p: ThomsonCoil, mesh: Mesh) -> None:
        self.p, self.of = p, Matrices(p, mesh)
        n = self.of.n
        self.psi, self.rate = slice(0, n), slice(n, 2 * n)
        self.I, self.flux, self.U, self.on, self.coil_heat, self.lead_heat = range(2 * n, 2 * n + 6)
        self.heat = slice(2 * n + 6, 2 * n + 6 + len(self.of.local))
        self.inductance = self.of.coil_inductance_below + p.lead[1]
        self.coil_capacity = p.copper.density * p.copper.heat * 2 * pi * sum(p.turns) * p.wire[0] * p.wire[1]

    @property
    def x0(self) -> np.ndarray:
        x = np.zeros(self.heat.stop)
        x[self.U], x[self.on] = self.p.voltage, 1.0
        return x

    def stretch(self, z: float) -> float:
        """Of the band when the plate has gone `z`; a sentence where it would fold."""
        found = 1.0 + z / self.p.gap
        if not found > 0.05:
            raise cs.errors.SubsystemError(
                f"the plate is at z = {1e3 * z:.4g} mm, but the gap of {1e3 * self.p.gap:g} mm and the elements in it "
                f"are closed there; look at the force and the stops that hold the plate, or take a larger gap"
            )
        return found

    def metal(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Conductivity of the plate's elements relative to the cold metal, and the resistance of the coil."""
        p = self.p
        warm = 1.0 / (1.0 + p.aluminium.warming * x[self.heat] / self.of.heat_capacity)
        return warm, p.coil_resistance * (1.0 + p.copper.warming * x[self.coil_heat] / self.coil_capacity)

    def stage(
        self, x: np.ndarray, psi: np.ndarray, flux: float, U: float, z: float, time: float
    ) -> tuple[np.ndarray, float]:
        """Field and current after an implicit step of length `time` from these values, with the plate at `z`."""
        conductivity, resistance = self.metal(x)
        of, on = self.of, x[self.on]
        right = np.stack([of.held(conductivity / time, psi), of.b], axis=1)
        A = of.matrix(self.stretch(z), conductivity, time)
        free, driven = solveh_banded(A, right, lower=True, overwrite_ab=True, check_finite=False).T
        R = resistance + self.p.lead[0]
        held = of.b @ driven + self.inductance + time * R + on * time**2 / self.p.capacitance
        current = float((flux + time * on * U - of.b @ free) / held)
        return free + current * driven, current

    def step(self, x: np.ndarray, h: float, z: Distance) -> tuple[np.ndarray, list[float]]:
        """One step, and the force after each stage; metals have the temperature of its beginning."""
        p, time = self.p, _G * h
        conductivity, resistance = self.metal(x)
        nodes = self.of.plate_nodes
        new, forces = x.copy(), []
        rates: list[tuple[np.ndarray, float, float]] = []
        for row, weight, c in zip(_A, h * _A[-1], _C, strict=True):
            psi, flux, U = x[self.psi], x[self.flux], x[self.U]
            for a, (by_psi, by_flux, by_U) in zip(row, rates, strict=False):
                psi, flux, U = psi + h * a * by_psi, flux + h * a * by_flux, U + h * a * by_U
            there = z(c)
            found, current = self.stage(x, psi, flux, U, there, time)
            rate = np.zeros_like(found)
            rate[nodes] = (found[nodes] - psi[nodes]) / time
            fall = -x[self.on] * current / p.capacitance
            rise = x[self.on] * (U + time * fall) - (resistance + p.lead[0]) * current
            rates.append((rate, rise, fall))
            forces.append(self.of.force(self.stretch(there), found))
            new[self.heat] += weight * self.of.heating(conductivity, rate)
            new[self.coil_heat] += weight * resistance * current**2
            new[self.lead_heat] += weight * p.lead[0] * current**2
        new[self.psi], new[self.rate], new[self.I] = found, rate, current
        new[self.flux], new[self.U] = flux + time * rise, U + time * fall
        return new, forces

    def until_empty(self, x: np.ndarray, h: float, step: Callable[[float], np.ndarray]) -> tuple[np.ndarray, float]:
        """The state after `step(h)`, or after the shorter step that empties the capacitor, and how long it was."""
        new = step(h)
        if not x[self.on] or new[self.U] > 0.0:
            return new, h
        low, high, at_low, at_high = 0.0, h, x[self.U], new[self.U]
        for _ in range(60):  # false position; an end that stays loses half its weight (Illinois)
            middle = (low * at_high - high * at_low) / (at_high - at_low)
            new = step(middle)
            U = new[self.U]
            if abs(U) < 1e-9 * self.p.voltage or high - low < 1e-12 * h:
                break
            if U > 0:
                low, at_low, at_high = middle, U, 0.5 * at_high
            else:
                high, at_high, at_low = middle, U, 0.5 * at_low
        new[self.U] = new[self.on] = 0.0
        return new, middle

    def force(self, x: np.ndarray, z: float) -> float:
        return self.of.force(self.stretch(z), x[self.psi])

    def densities(self, x: np.ndarray) -> np.ndarray:
        """Current density in the middle of each element of the plate, in A/m2; positive is as in the coil."""
        radius = np.sqrt(self.of.middles[0])
        rate = x[self.rate][self.of.nodes].mean(axis=1)
        found: np.ndarray = -self.p.aluminium.conductivity * self.metal(x)[0] * rate / radius
        return found

    def energies(self, x: np.ndarray, z: float) -> dict[str, float]:
        """In the capacitor, in the field (with the lead's), and turned into heat so far, in J."""
        return {
            "capacitor": 0.5 * self.p.capacitance * float(x[self.U]) ** 2,
            "field": self.of.energy(self.stretch(z), x[self.psi], x[self.I])
            + 0.5 * self.p.lead[1] * float(x[self.I]) ** 2,
            "heat": float(x[self.coil_heat] + x[self.lead_heat] + x[self.heat].sum()),
        }


class FieldOfCoil(cs.Subsystem):
    """The field as a solver of its own: distance and speed of the plate in, force on it out.

    The speed is there so that rings and field fit the same connections: here it acts through `z(t)` alone.
    """

    inputs, outputs = MOTION, FORCE

    def __init__(self, p: ThomsonCoil, mesh: Mesh, internal_step: float) -> None:
        if not 0 < internal_step < np.inf:
            raise cs.errors.SetupError(f"internal_step = {internal_step!r} must be a time above zero")
        self.machine, self.internal_step = Machine(p, mesh), internal_step

    def start(self, t0: float) -> float:
        self.x = self.machine.x0
        return 0.0

    def advance(self, t0: float, t1: float, u: Any) -> float:
        count = max(1, int(np.ceil((t1 - t0) / self.internal_step - 1e-6)))
        for k in range(count):
            begin, end = t0 + (t1 - t0) * k / count, t0 + (t1 - t0) * (k + 1) / count
            while begin < end:
                x, h = self.x, end - begin

                def advance(h: float, x: np.ndarray = x, t: float = begin) -> np.ndarray:
                    return self.machine.step(x, h, lambda c: u(t + c * h)[0])[0]

                self.x, done = self.machine.until_empty(x, h, advance)
                begin = end if done == h else begin + done
        return self.machine.force(self.x, u(t1)[0])

    def save(self) -> np.ndarray:
        return self.x.copy()

    def restore(self, state: np.ndarray) -> None:
        self.x = state.copy()


def electromagnetics(
    p: ThomsonCoil | Mapping[str, Any] | None = None,
    internal_step: float = 2e-6,
    mesh: Mesh | None = None,
    finer: float = 1.0,
) -> FieldOfCoil:
    """Circuit and field, in place of `model.electromagnetics`; `finer=2` halves the elements.

    >>> coil = electromagnetics()
    >>> [port.name for port in coil.inputs], [port.name for port in coil.outputs]
    (['z', 'v'], ['F'])
    """
    return FieldOfCoil(ThomsonCoil.of(p), (mesh or Mesh()).finer(finer), internal_step)


# -- together -----------------------------------------------------------------------------------------------------


def split(
    p: ThomsonCoil | Mapping[str, Any] | None = None,
    internal_step: float = 2e-6,
    latched: bool = False,
    finer: float = 1.0,
) -> cs.System:
    """Field and mechanics, with the connections of `model.split`."""
    p = ThomsonCoil.of(p)
    return connected(electromagnetics(p, internal_step, finer=finer), mechanics(p, 5e-7, latched))


@dataclass(frozen=True)
class Flight:
    """The undivided machine after each step: states of the field, then `z` and `v`; and when the diode took over."""

    machine: Machine
    t: np.ndarray
    x: np.ndarray
    diode: float

    def signals(self, t: np.ndarray) -> dict[str, np.ndarray]:
        """`z`, `v`, `F` and the coil current `I`: cubic splines through the ends of the steps."""
        rows = self.x
        force = [self.machine.force(row, row[-2]) for row in rows]
        parts = {"z": rows[:, -2], "v": rows[:, -1], "F": force, "I": rows[:, self.machine.I]}
        return {name: CubicSpline(self.t, values)(t) for name, values in parts.items()}


def undivided(
    p: ThomsonCoil | Mapping[str, Any] | None = None,
    t_end: float = 1e-3,
    latched: bool = False,
    step: float = 2.5e-6,
    finer: float = 1.0,
) -> Flight:
    """Field and mechanics in one system of equations, stage by stage of the same integrator: no coupling engine.

    Stages of a step are found together: distances give forces, forces give distances, until none moves any more.
    """
    p = ThomsonCoil.of(p)
    machine, held = Machine(p, Mesh().finer(finer)), holding(p, latched)

    def take(x: np.ndarray, h: float) -> np.ndarray:
        v = np.full(3, x[-1])
        z = x[-2] + h * _A @ v
        for _ in range(20):
            field_after, forces = machine.step(x[:-2], h, dict(zip(_C, z, strict=True)).__getitem__)
            pull = np.array([acceleration(*one, *held) for one in zip(z, v, forces, strict=True)])
            before, v = z, x[-1] + h * _A @ pull
            z = x[-2] + h * _A @ v
            if np.abs(z - before).max() < 1e-15:
                break
        return np.concatenate([field_after, [z[-1], v[-1]]])

    count, diode = round(t_end / step), np.inf
    rows = [np.concatenate([machine.x0, [0.0, 0.0]])]
    for k in range(count):
        x, left = rows[-1], t_end / count
        while left > 0:
            x, done = machine.until_empty(x, left, partial(take, x))
            if done < left:
                diode = (k + 1) * t_end / count - left + done
            left = 0.0 if done == left else left - done
        rows.append(x)
    return Flight(machine, np.linspace(0.0, t_end, count + 1), np.array(rows), diode)
