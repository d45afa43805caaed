"""Slender beams that bend: Hermite elements of varying section, clamped at their first node, at rest or on a rotor.

Euler and Bernoulli: every node has a deflection and a slope, between two nodes the deflection is a cubic. Sections are
integrated by Gauss points where they are given as functions of position. A beam that turns about an axis at position 0,
at right angles to it, is drawn tight by its own mass: tension `N(r) = speed^2 int_r^R mu r dr` adds the stiffness
`speed^2 G` in both planes, and in the plane of rotation the centrifugal force turns with the deflection, `speed^2 (G -
M)` (Meirovitch (1980)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import is_number, whole
from cosolve.errors import SetupError

#: A quantity per length: a number, one for every element, or a function of an array of positions.
Section: TypeAlias = float | npt.ArrayLike | Callable[[Vector], Any]

_POINTS, _WEIGHTS = (np.array(x) for x in np.polynomial.legendre.leggauss(6))
#: Positions and weights on an element from 0 to 1.
_AT, _WEIGHT = 0.5 * (1 + _POINTS), 0.5 * _WEIGHTS


@dataclass(frozen=True, eq=False)
class Beam:
    """A slender beam in bending, clamped at its first node, at rest or on a rotor.

    Hermite elements. The degrees of freedom are deflection and slope of every node after the first: `w1, s1, w2, s2,
    ...`.

    Parameters
    ----------
    nodes : array_like
        Positions along the axis in m, increasing.
    mass : float, array_like or callable
        Mass per length in kg/m: a number, one per element, or a function of an array of positions.
    stiffness : float, array_like or callable
        Bending stiffness E I in N m^2, likewise.
    other_stiffness : float, array_like, callable or None, default None
        Bending stiffness in the second plane.

    Notes
    -----
    A beam that turns with the speed `s` about an axis through position 0, at right angles to it, has the tension `N(r)
    = s^2 int_r^R mu r dr` of its own mass, which adds the stiffness `s^2 G`; in the plane of rotation `s^2 (G - M)`.

    References
    ----------
    .. [1] L. Meirovitch, Computational Methods in Structural Dynamics, Sijthoff and Noordhoff, 1980.

    Examples
    --------
    >>> rod = Beam(np.linspace(0.0, 2.0, 11), mass=3.0, stiffness=100.0)
    >>> rod.n, round(rod.total_mass, 12), round(rod.centre_of_mass, 12)
    (20, 6.0, 1.0)
    >>> rod.frequencies(2).round(4)                        # 1.87510^2 and 4.69409^2 sqrt(E I/mu)/(2 pi L^2)
    array([0.8077, 5.0619])
    >>> load = np.zeros(rod.n); load[-2] = 3.0             # a force at the tip: P L^3/(3 E I)
    >>> round(float(np.linalg.solve(rod.stiffness_matrix(), load)[-2]), 12)
    0.08
    """

    nodes: npt.ArrayLike
    mass: Section
    stiffness: Section
    other_stiffness: Section | None = None

    def __post_init__(self) -> None:
        try:
            nodes = np.array(self.nodes, dtype=np.float64)
        except (TypeError, ValueError):
            raise SetupError("Beam: nodes are positions along the axis, a list of numbers") from None
        if nodes.ndim != 1 or len(nodes) < 2 or not np.isfinite(nodes).all() or not (np.diff(nodes) > 0).all():
            raise SetupError("Beam: nodes must be at least two finite positions, each beyond the one before")
        object.__setattr__(self, "nodes", nodes)
        for name in ("mass", "stiffness", "other_stiffness"):
            given = getattr(self, name)
            if given is not None:
                self._values(name, given)

    # -- what it is ------------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of degrees of freedom: two for every node after the first."""
        return 2 * (len(self._nodes) - 1)

    @property
    def length(self) -> float:
        """Length from the clamp to the tip in m."""
        return float(self._nodes[-1] - self._nodes[0])

    @property
    def total_mass(self) -> float:
        """Mass in kg, the clamped end included."""
        return float(self._moment(0))

    @property
    def centre_of_mass(self) -> float:
        """Position of the centre of mass in m."""
        return float(self._moment(1) / self._moment(0))

    @property
    def inertia(self) -> float:
        """Moment of inertia about position 0, at right angles to the axis.

        >>> round(Beam([0.0, 3.0], mass=2.0, stiffness=1.0).inertia, 12)
        18.0
        """
        return float(self._moment(2))

    # -- matrices --------------------------------------------------------------------------------------

    def mass_matrix(self) -> Matrix:
        """Compute the consistent mass matrix `int mu N^T N`.

        Returns
        -------
        ndarray
            Shape (n, n).
        """
        return self._assembled(0, self._values("mass", self.mass))

    def stiffness_matrix(self, *, other: bool = False) -> Matrix:
        """Compute the bending stiffness `int E I N''^T N''`.

        Parameters
        ----------
        other : bool, default False
            Use `other_stiffness`.

        Returns
        -------
        ndarray
            Shape (n, n).
        """
        return self._assembled(2, self._bending(other))

    def tension_stiffness(self, tension: Section) -> Matrix:
        """Compute the geometric stiffness `int T N'^T N'` of a tension.

        Parameters
        ----------
        tension : float, array_like or callable
            Tension in N: a number, one per element, or a function of position.

        Returns
        -------
        ndarray
            Shape (n, n).

        Examples
        --------
        >>> Beam([0.0, 1.0], mass=1.0, stiffness=1.0).tension_stiffness(30.0).round(12)
        array([[36., -3.], [-3.,  4.]])
        """
        return self._assembled(1, self._values("tension", tension, signed=True))

    def rotation_stiffness(self) -> Matrix:
        """Compute the geometric stiffness by rotation about position 0 at 1 rad/s.

        Returns
        -------
        ndarray
            `G`, shape (n, n).
        """
        return self._assembled(1, self.centrifugal_tension())

    def centrifugal_tension(self) -> Matrix:
        """Compute the tension by rotation about position 0 at 1 rad/s, `int_r^R mu r dr`.

        Returns
        -------
        ndarray
            Values at the Gauss points, one row per element.

        Examples
        --------
        >>> Beam([0.0, 2.0], mass=3.0, stiffness=1.0).centrifugal_tension()[0, 0].round(2)    # 3/2 (2^2 - r^2)
        np.float64(5.99)
        """
        mass, sizes = self._values("mass", self.mass), self._sizes
        pull = mass * self._places
        beyond = np.append(np.cumsum((pull @ _WEIGHT * sizes)[::-1])[::-1], 0.0)[1:]
        # from each Gauss point to the end of its element: the polynomial through the Gauss points, integrated
        powers = _AT[:, np.newaxis] ** np.arange(len(_AT))
        orders = np.arange(1, len(_AT) + 1)
        to_end = np.linalg.solve(powers.T, ((1 - _AT[:, np.newaxis] ** orders) / orders).T).T
        found: Matrix = beyond[:, np.newaxis] + (pull @ to_end.T) * sizes[:, np.newaxis]
        return found

    def inertia_vector(self) -> Vector:
        """Compute `int mu r N`, by which a change of the speed acts in the plane of rotation.

        Returns
        -------
        ndarray
            Shape (n,).
        """
        found = np.zeros(self.n + 2)
        pull = self._values("mass", self.mass) * self._places
        for e, size in enumerate(self._sizes):
            found[2 * e : 2 * e + 4] += size * (_WEIGHT * pull[e]) @ _hermite(_AT, size)
        return found[2:]

    def shapes(self, positions: npt.ArrayLike) -> Matrix:
        """Compute the deflections at positions by the degrees of freedom.

        Parameters
        ----------
        positions : array_like
            Positions in m.

        Returns
        -------
        ndarray
            One row per position.

        Examples
        --------
        >>> Beam([0.0, 2.0], mass=1.0, stiffness=1.0).shapes([1.0, 2.0])
        array([[ 0.5 , -0.25], [ 1.  ,  0.  ]])
        """
        at = np.atleast_1d(np.asarray(positions, dtype=np.float64))
        nodes = self._nodes
        slack = 1e-12 * self.length
        outside = ~((at >= nodes[0] - slack) & (at <= nodes[-1] + slack))
        if outside.any():
            raise SetupError(
                f"Beam: position {at[outside][0]:g} is not on the beam, which goes from {nodes[0]:g} to {nodes[-1]:g}"
            )
        element = np.clip(np.searchsorted(nodes, at, side="right") - 1, 0, len(nodes) - 2)
        found = np.zeros((len(at), self.n + 2))
        for k, e in enumerate(element):
            size = self._sizes[e]
            found[k, 2 * e : 2 * e + 4] = _hermite((at[k] - nodes[e]) / size, size)
        return found[:, 2:]

    # -- modes -----------------------------------------------------------------------------------------

    def modes(
        self, count: int, *, other: bool = False, speed: float = 0.0, in_plane: bool = False
    ) -> tuple[Vector, Matrix]:
        """Compute the lowest natural frequencies and mode shapes.

        Parameters
        ----------
        count : int
            Number of modes.
        other : bool, default False
            Bending with `other_stiffness`.
        speed : float, default 0.0
            Speed of a rotor in rad/s.
        in_plane : bool, default False
            Bending in the plane of rotation.

        Returns
        -------
        tuple of (ndarray, ndarray)
            Frequencies in Hz, and mode shapes as columns, of modal mass 1 and with a positive deflection of the tip.

        Examples
        --------
        >>> rod = Beam(np.linspace(0.0, 1.0, 9), mass=1.0, stiffness=1.0)
        >>> f, shapes = rod.modes(3)
        >>> np.allclose(shapes.T @ rod.mass_matrix() @ shapes, np.eye(3))
        True
        """
        from scipy.linalg import eigh

        whole("Beam.modes", "count", count)
        if count > self.n:
            raise SetupError(
                f"Beam.modes: {count} modes of a beam with {self.n} degrees of freedom; give it more nodes"
            )
        if not is_number(speed):
            raise SetupError(f"Beam.modes: speed must be a finite number of rad/s, not {speed!r}")
        M, K = self.mass_matrix(), self.stiffness_matrix(other=other)
        if speed:
            K = K + speed**2 * (self.rotation_stiffness() - (M if in_plane else 0.0))
        squares, shapes = eigh(K, M, subset_by_index=(0, count - 1))
        if squares[0] < 0:
            raise SetupError(f"Beam.modes: at {speed:g} rad/s the beam has no position of rest; it is too soft")
        return np.sqrt(squares) / (2 * np.pi), shapes * np.where(shapes[-2] < 0, -1.0, 1.0)

    def frequencies(self, count: int, *, other: bool = False, speed: float = 0.0, in_plane: bool = False) -> Vector:
        """Compute the lowest natural frequencies.

        Parameters
        ----------
        count : int
            Number of frequencies.
        other : bool, default False
            See `modes`.
        speed : float, default 0.0
            See `modes`.
        in_plane : bool, default False
            See `modes`.

        Returns
        -------
        ndarray
            Frequencies in Hz.
        """
        return self.modes(count, other=other, speed=speed, in_plane=in_plane)[0]

    # -- inside ----------------------------------------------------------------------------------------

    @property
    def _nodes(self) -> Vector:
        return np.asarray(self.nodes)

    @cached_property
    def _sizes(self) -> Vector:
        sizes: Vector = np.diff(self._nodes)
        return sizes

    @cached_property
    def _places(self) -> Matrix:
        """Positions of the Gauss points, one row per element."""
        places: Matrix = self._nodes[:-1, np.newaxis] + self._sizes[:, np.newaxis] * _AT
        return places

    def _moment(self, power: int) -> float:
        density = self._values("mass", self.mass) * self._places**power
        return float((density @ _WEIGHT * self._sizes).sum())

    def _bending(self, other: bool) -> Matrix:
        if not other:
            return self._values("stiffness", self.stiffness)
        if self.other_stiffness is None:
            raise SetupError("Beam: it has no second plane of bending; give other_stiffness")
        return self._values("other_stiffness", self.other_stiffness)

    def _values(self, name: str, given: Section, *, signed: bool = False) -> Matrix:
        """The section at all Gauss points, one row per element."""
        places = self._places
        try:
            values = np.asarray(given(places) if callable(given) else given, dtype=np.float64)
        except (TypeError, ValueError):
            raise SetupError(f"Beam: {name} must be a number, one per element, or a function of position") from None
        if values.shape == (len(places),) and not callable(given):
            values = np.repeat(values[:, np.newaxis], places.shape[1], axis=1)
        if values.shape not in ((), places.shape):
            many = f"one number for each of the {len(places)} elements"
            raise SetupError(f"Beam: {name} has the shape {values.shape}; give a number, {many} or a function")
        values = np.broadcast_to(values, places.shape)
        bad = ~np.isfinite(values) if signed else ~(np.isfinite(values) & (values > 0))
        if bad.any():
            e, g = (int(i) for i in np.argwhere(bad)[0])
            what = "finite" if signed else "positive"
            raise SetupError(f"Beam: {name} is {values[e, g]:g} at position {places[e, g]:.6g}; it must be {what}")
        return values

    def _assembled(self, derivative: int, section: Matrix) -> Matrix:
        """`int section N^(d)^T N^(d)` over all elements, without the clamped node."""
        A = np.zeros((self.n + 2, self.n + 2))
        for e, size in enumerate(self._sizes):
            N = _hermite(_AT, size, derivative)
            A[2 * e : 2 * e + 4, 2 * e : 2 * e + 4] += N.T * (size * _WEIGHT * section[e]) @ N
        return A[2:, 2:]


def _hermite(x: Any, size: float, derivative: int = 0) -> Matrix:
    """The four cubics of an element at `x` from 0 to 1 (or their derivatives by position), one row per place."""
    x = np.asarray(x, dtype=np.float64)
    if derivative == 0:
        rows = (1 - 3 * x**2 + 2 * x**3, size * x * (1 - x) ** 2, x**2 * (3 - 2 * x), size * x**2 * (x - 1))
    elif derivative == 1:
        rows = (
            6 * (x**2 - x) / size,
            1 - 4 * x + 3 * x**2,
            6 * (x - x**2) / size,
            3 * x**2 - 2 * x,
        )
    else:
        rows = ((12 * x - 6) / size**2, (6 * x - 4) / size, (6 - 12 * x) / size**2, (6 * x - 2) / size)
    return np.stack(rows, axis=-1)
