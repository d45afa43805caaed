"""A rigid, unbalanced rotor in a journal bearing: one dynamic subsystem and one static one (Schmoll (2015), ch. 5).

    m D'' = F(D, D', omega) - m g e_y + unbalance,   omega = omega_0 + ramp t,   F from the Reynolds equation

The rotor translates in its plane, gravity points to -y, the speed is prescribed. The source gives
no data; these are chosen here. States are dimensionless, so that one number serves as
tolerance: `e = D / c` and `w = D' / (c omega_0)`. Two ways to cut the model:

- `polar`: the source's. The film is given `eps, eps', delta'` (Eqs. 5.1-5.3) and returns dimensionless forces `F_r,
  F_delta`; the rotor turns and scales them (Eqs. 5.15, 5.16). Singular at the centre, where `eps >= 1e-6` guards it,
  and for positive speed only.
- `cartesian`: the film is given position, velocity and speed and returns forces in newtons. Regular everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import cosolve as cs
from examples.rotor_bearing.journal_bearing import JournalBearing

FORMS = ("polar", "cartesian")


@dataclass(frozen=True)
class Rotor:
    """Mass `m`, radius of the unbalance in m, speed ramp in rad/s and rad/s^2, start position in units of `c`."""

    bearing: JournalBearing = field(default_factory=lambda: JournalBearing(R=0.01, c=20e-6, B=0.01, eta=4e-3))
    m: float = 1.0
    unbalance: float = 6e-6
    gravity: float = 9.81
    omega_0: float = 600.0
    ramp: float = 2e4
    start: tuple[float, float] = (0.1, -0.3)

    # -- the rotor ---------------------------------------------------------------------------------------------

    def omega(self, t: float) -> float:
        return self.omega_0 + self.ramp * t

    def load(self, t: float) -> np.ndarray:
        """Gravity and unbalance; the angular acceleration counts too."""
        angle, omega = self.omega_0 * t + 0.5 * self.ramp * t**2, self.omega(t)
        out, along = np.array([np.cos(angle), np.sin(angle)]), np.array([np.sin(angle), -np.cos(angle)])
        pull: np.ndarray = self.m * (self.unbalance * (omega**2 * out + self.ramp * along) - [0.0, self.gravity])
        return pull

    @property
    def x0(self) -> np.ndarray:
        return np.array([*self.start, 0.0, 0.0])

    def motion(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Displacement and velocity of the journal in SI units."""
        return self.bearing.c * x[:2], self.bearing.c * self.omega_0 * x[2:]

    def slope(self, t: float, x: np.ndarray, force: np.ndarray) -> np.ndarray:
        acceleration = (force + self.load(t)) / (self.m * self.bearing.c * self.omega_0)
        return np.concatenate([self.omega_0 * x[2:], acceleration])

    def kinematics(self, t: float, x: np.ndarray) -> np.ndarray:
        """`eps, eps', delta'`."""
        return self.bearing.kinematics(*self.motion(x), self.omega(t))

    def force(self, t: float, x: np.ndarray, form: str = "polar") -> np.ndarray:
        """What the film does to the rotor, without any coupling in between."""
        if form == "cartesian":
            return self.bearing.force(*self.motion(x), self.omega(t))
        polar = self.bearing.polar(*self.kinematics(t, x)).force
        return self.bearing.to_cartesian(polar, self.motion(x)[0], self.omega(t))

    def reference(self, t_end: float, form: str = "polar", rtol: float = 1e-10) -> Callable[[np.ndarray], np.ndarray]:
        """The undivided model by a Runge-Kutta method of order 8: a function that gives states (rows) at times."""
        found = solve_ivp(
            lambda t, x: self.slope(t, x, self.force(t, x, form)),
            (0.0, t_end),
            self.x0,
            "DOP853",
            dense_output=True,
            rtol=rtol,
            atol=rtol,
        )
        assert found.success, found.message
        motion = found.sol
        assert motion is not None
        return lambda t: motion(t).T

    # -- the two subsystems ------------------------------------------------------------------------------------

    def system(self, form: str = "polar") -> cs.System:
        """Rotor and film, coupled."""
        if form not in FORMS:
            raise cs.errors.SetupError(f"Rotor: form must be one of {', '.join(FORMS)}, not {form!r}")
        polar = form == "polar"
        forces = ["F_r", "F_delta"] if polar else ["F_x", "F_y"]
        read = ["eps", "deps", "ddelta"] if polar else ["x", "y", "vx", "vy", "omega"]
        scaled = {"omega": self.omega_0} | ({} if polar else dict.fromkeys(forces, self.m * self.gravity))
        ports = {name: cs.Port(name, nominal=scaled.get(name, 1.0)) for name in (*forces, *read)}

        def slope(t: float, x: np.ndarray, u: np.ndarray) -> np.ndarray:
            force = self.bearing.to_cartesian(u, self.motion(x)[0], self.omega(t)) if polar else u
            return self.slope(t, x, force)

        def outputs(t: float, x: np.ndarray, u: np.ndarray) -> dict[str, Any]:
            plain = dict(zip(("x", "y", "vx", "vy"), x, strict=True)) | {"omega": self.omega(t)}
            if not polar:
                return plain
            return plain | dict(zip(("eps", "deps", "ddelta"), self.kinematics(t, x), strict=True))

        names = ["x", "y", "vx", "vy", "omega"] + (read if polar else [])
        rotor = cs.Ode(
            slope,
            outputs,
            x0=self.x0,
            inputs=[ports[name] for name in forces],
            outputs=[ports.get(name, name) for name in names],
        )
        bearing = FilmForces(
            self, polar, inputs=[ports[name] for name in read], outputs=[ports[name] for name in forces]
        )
        system = cs.System({"rotor": rotor, "bearing": bearing})
        for name in read:
            system.connect(f"rotor.{name}", f"bearing.{name}")
        for name in forces:
            system.connect(f"bearing.{name}", f"rotor.{name}")
        return system

    # -- what linear theory says ---------------------------------------------------------------------------------

    def equilibrium(self, omega: float) -> np.ndarray:
        """Where the balanced rotor rests, in metres: `F_x = 0`, `F_y = m g`."""
        return self.bearing.equilibrium(self.m * self.gravity, omega)

    def whirl(self, omega: float) -> complex:
        """The eigenvalue with the largest real part of small motions about the equilibrium, in 1/s."""
        K, C = self.bearing.coefficients(self.equilibrium(omega), omega)
        A = np.block([[np.zeros((2, 2)), np.eye(2)], [-K / self.m, -C / self.m]])
        values = np.linalg.eigvals(A)
        return complex(values[np.argmax(values.real)].real, np.abs(values[np.argmax(values.real)].imag))

    def threshold(self, low: float = 600.0, high: float = 6000.0) -> float:
        """The speed above which the equilibrium is unstable (oil whirl), in rad/s."""
        return float(brentq(lambda omega: self.whirl(omega).real, low, high, xtol=1e-3))

    def at_speed(self, omega: float, offset: float = 0.02) -> Rotor:
        """The balanced rotor at constant speed, released `offset` clearances above its equilibrium."""
        ex, ey = self.equilibrium(omega) / self.bearing.c
        return replace(self, omega_0=omega, ramp=0.0, unbalance=0.0, start=(float(ex), float(ey) + offset))


class FilmForces(cs.Static):
    """The film as a static subsystem that knows its derivatives: one solve per call instead of one per input more."""

    def __init__(self, rotor: Rotor, polar: bool, *, inputs: list[cs.Port], outputs: list[cs.Port]) -> None:
        super().__init__(lambda t, u: self._solve(u)[0], inputs=inputs, outputs=outputs)
        self.rotor, self.polar = rotor, polar
        self._last: tuple[bytes, np.ndarray, np.ndarray] | None = None

    def output_jacobian(self, t: float, u: np.ndarray) -> np.ndarray:
        return self._solve(u)[1]

    def _solve(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Forces and derivatives; the last solution is kept, for they are asked for one after the other."""
        key = u.tobytes()
        if self._last is None or self._last[0] != key:
            rotor, bearing = self.rotor, self.rotor.bearing
            if self.polar:
                polar = bearing.polar(*u)
                self._last = key, polar.force, polar.derivative
            else:
                film = bearing.solve(*rotor.motion(u[:4]), float(u[4]))
                unit = np.array([1.0, 1.0, rotor.omega_0, rotor.omega_0, 1.0])
                self._last = key, bearing.scale * film.force, bearing.scale * film.derivative * unit
        return self._last[1:]
