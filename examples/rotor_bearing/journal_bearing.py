"""A plain journal bearing in SI units: film forces on the journal, stiffness and damping, place of equilibrium.

The journal centre is displaced by `D = (D_x, D_y)` from the centre of the bush, moves with `V` and turns with `omega`
(bush at rest). After Schmoll (2015), Eqs. 5.1-5.3, 5.15, 5.16. The film is solved in the frame at
rest, so there is no angle and no division by the eccentricity or the speed: the forces and their derivatives are
regular at the centre (`eps = 0`) and at `omega = 0`, where Eqs. 5.2 and 5.3 are singular.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

import cosolve as cs
from examples.rotor_bearing.elrod import Elrod, Groove
from examples.rotor_bearing.reynolds import CAVITATION, Array, Film, PolarFilm, Reynolds, positive

# Below this eccentricity the direction of the line of centres carries no information (docs/validation/schmoll.md).
_LEAST_ECCENTRICITY = 1e-6


@dataclass(frozen=True)
class JournalBearing:
    """Bush radius `R`, clearance `c = R - r`, width `B` (metres), oil viscosity `eta` (Pa s), grid, cavitation.

    `cavitation`: "guembel" (negative pressure is cut), "elrod" (mass-conserving, fed by a `groove` whose angle counts
    from the x-axis and whose pressure is in Pa), or "none".

    >>> bearing = JournalBearing(R=0.01, c=20e-6, B=0.01, eta=4e-3)
    >>> F_x, F_y = bearing.force(D=(0.0, -10e-6), V=(0.0, 0.0), omega=600.0)
    >>> round(float(F_x), 1), round(float(F_y), 1)          # below the centre: lifted, and pushed to the side
    (30.3, 18.7)
    """

    R: float
    c: float
    B: float
    eta: float
    n_theta: int = 64
    n_z: int = 16
    cavitation: str = "guembel"
    groove: Groove | None = None

    def __post_init__(self) -> None:
        for name, what in (("R", "radius"), ("c", "clearance"), ("B", "width"), ("eta", "viscosity")):
            positive("JournalBearing", f"the {what} {name}", getattr(self, name))
        if self.c >= self.R:
            raise cs.errors.SetupError(
                f"JournalBearing: the clearance c = {self.c:g} must be below the radius R = {self.R:g}"
            )
        if self.cavitation not in (*CAVITATION, "elrod"):
            known = ", ".join((*CAVITATION, "elrod"))
            raise cs.errors.SetupError(f"JournalBearing: cavitation must be one of {known}, not {self.cavitation!r}")
        if self.groove is not None and self.cavitation != "elrod":
            raise cs.errors.SetupError(
                "JournalBearing: a groove feeds the mass-conserving film; give cavitation='elrod' with it"
            )
        _ = self.film  # refuses a bad grid now

    @cached_property
    def film(self) -> Reynolds | Elrod:
        """The dimensionless solver. Its angle 0 lies opposite to the x-axis, its pressure is per unit of speed."""
        width = self.B / self.R
        if self.cavitation != "elrod":
            return Reynolds(width, self.n_theta, self.n_z, self.cavitation)
        groove = self.groove or Groove(theta=np.pi / 2)
        supply = groove.pressure / self.pressure_scale
        return Elrod(width, self.n_theta, self.n_z, Groove(groove.theta - np.pi, groove.length, supply))

    @property
    def pressure_scale(self) -> float:
        """Pressure in Pa of one unit of film pressure (Eq. 5.5 without omega)."""
        return 6 * self.eta * (self.R / self.c) ** 2

    @property
    def scale(self) -> float:
        """Force in N of one unit of film force (Eq. 5.15 without omega)."""
        return self.R * self.B * self.pressure_scale

    def solve(self, D: npt.ArrayLike, V: npt.ArrayLike, omega: float) -> Film:
        """The film in the frame at rest; its derivatives are by `D / c`, `V / c` and `omega`."""
        (ex, ey), (vx, vy) = np.divide(D, self.c).tolist(), np.divide(V, self.c).tolist()
        return self.film.at_rest((ex, ey), (vx, vy), omega)

    def force(self, D: npt.ArrayLike, V: npt.ArrayLike, omega: float) -> Array:
        """Force `(F_x, F_y)` of the film on the journal."""
        return self.scale * self.solve(D, V, omega).force

    def jacobian(self, D: npt.ArrayLike, V: npt.ArrayLike, omega: float) -> Array:
        """Derivatives of the force by `D_x, D_y, V_x, V_y, omega`, shape (2, 5).

        >>> bearing = JournalBearing(R=0.01, c=20e-6, B=0.01, eta=4e-3)
        >>> bool(np.isfinite(bearing.jacobian((0.0, 0.0), (0.0, 0.0), omega=0.0)).all())     # centre, standstill
        True
        """
        per_unit: Array = self.scale / np.array([self.c, self.c, self.c, self.c, 1.0])
        return self.solve(D, V, omega).derivative * per_unit

    def coefficients(self, D: npt.ArrayLike, omega: float) -> tuple[Array, Array]:
        """Stiffness `K = -dF/dD` and damping `C = -dF/dV` (2 x 2 each) of the journal at rest at `D`.

        >>> bearing = JournalBearing(R=0.01, c=20e-6, B=0.01, eta=4e-3)
        >>> K, C = bearing.coefficients(bearing.equilibrium(load=9.81, omega=600.0), omega=600.0)
        >>> bool(C[0, 0] > 0 and C[1, 1] > 0 and K[0, 1] * K[1, 0] < 0)      # advance stiffness of opposite signs
        True
        """
        J = self.jacobian(D, (0.0, 0.0), omega)
        return -J[:, :2], -J[:, 2:4]

    def equilibrium(self, load: float, omega: float, tol: float = 1e-12) -> Array:
        """Where the film carries `load` in the direction -y: `F_x = 0`, `F_y = load`, by damped Newton.

        >>> bearing = JournalBearing(R=0.01, c=20e-6, B=0.01, eta=4e-3)
        >>> D = bearing.equilibrium(load=9.81, omega=600.0)
        >>> bool(abs(bearing.force(D, (0.0, 0.0), 600.0) - (0.0, 9.81)).max() < 1e-9)
        True
        """
        positive("equilibrium", "the load", load)
        positive("equilibrium", "the speed omega", omega)
        target, rest = np.array([0.0, load]), np.zeros(2)
        D = self.c * np.array([0.3, -0.2])
        gap = self.force(D, rest, omega) - target
        for _ in range(200):
            if np.abs(gap).max() <= tol * load:
                return D
            move = np.linalg.solve(self.jacobian(D, rest, omega)[:, :2], -gap)
            size, reach = 1.0, np.hypot(*D)
            while size > 1e-10:
                trial = D + size * move
                # no more than half way from here to contact
                if np.hypot(*trial) <= reach + 0.5 * (self.c - reach):
                    trial_gap = self.force(trial, rest, omega) - target
                    if np.linalg.norm(trial_gap) < np.linalg.norm(gap):
                        D, gap = trial, trial_gap
                        break
                size /= 2
            else:
                break
        if np.abs(gap).max() <= 1e3 * tol * load:  # the kinks of the cut pressure limit the descent
            return D
        raise cs.errors.SubsystemError(
            f"JournalBearing: no equilibrium found for load {load:g} N at omega = {omega:g} rad/s; stopped at "
            f"eccentricity {np.hypot(*D) / self.c:.6g} with a force defect of {np.abs(gap).max():.3g} N"
        )

    # -- the polar form of the source ------------------------------------------------------------------------

    def kinematics(self, D: npt.ArrayLike, V: npt.ArrayLike, omega: float) -> Array:
        """`(eps, eps', delta')` of Eqs. 5.1-5.3, with the guard `eps >= 1e-6`; only for `omega > 0`.

        The rates are per unit of speed and do not exist at standstill; at negative speed the dimensionless pressure has
        the opposite sign of the pressure, and cutting its negative part would keep suction instead.

        >>> bearing = JournalBearing(R=0.01, c=20e-6, B=0.01, eta=4e-3)
        >>> bearing.kinematics((10e-6, 0.0), (0.0, 3e-3), omega=600.0).tolist()
        [0.5, 0.0, 0.5]
        """
        if not omega > 0:
            raise cs.errors.SubsystemError(
                f"JournalBearing: eps' and delta' are rates per unit of speed and need omega > 0, not {omega:g}; "
                "use force(D, V, omega), which holds for every speed"
            )
        (x, y), (vx, vy) = np.divide(D, self.c).tolist(), np.divide(V, self.c).tolist()
        eps = max(float(np.hypot(x, y)), _LEAST_ECCENTRICITY)
        return np.array([eps, (x * vx + y * vy) / (eps * omega), (x * vy - y * vx) / (eps**2 * omega)])

    def polar(self, eps: float, deps: float, ddelta: float) -> PolarFilm:
        """Dimensionless forces `F_r, F_delta` and their derivatives: what the source's static solver returns."""
        if isinstance(self.film, Elrod):
            raise cs.errors.SetupError(
                "JournalBearing: with a groove the film has no polar form; use force(D, V, omega)"
            )
        return self.film.polar(eps, deps, ddelta)

    def to_cartesian(self, F: npt.ArrayLike, D: npt.ArrayLike, omega: float) -> Array:
        """`(F_x, F_y)` in newtons from dimensionless `(F_r, F_delta)`, Eqs. 5.15 and 5.16 with `atan2`.

        >>> bearing = JournalBearing(R=0.01, c=20e-6, B=0.01, eta=4e-3)
        >>> D, V, omega = (4e-6, -9e-6), (1e-3, 2e-3), 600.0
        >>> F = bearing.polar(*bearing.kinematics(D, V, omega)).force
        >>> error = bearing.to_cartesian(F, D, omega) - bearing.force(D, V, omega)
        >>> bool(abs(error).max() < 0.2)                            # the same film on a turned grid
        True
        """
        x, y = np.asarray(D, dtype=np.float64).tolist()
        delta = np.arctan2(y, x)
        turn = np.array([[np.cos(delta), -np.sin(delta)], [np.sin(delta), np.cos(delta)]])
        turned: Array = self.scale * omega * (turn @ np.asarray(F, dtype=np.float64))
        return turned
