"""A magnetic actuator as a table: flux linkage and force over current and gap, as measured or from a field solver.

Between the points values follow cubic curves through four neighbours each way (Catmull-Rom), so that slopes have no
jumps; outside, the table's edge holds. The flux linkage is the state of a coil, `psi' = U - R i`, and `linked_current`
turns the table round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import cosolve as cs
from examples.elements.jit import Array, compiled


class MagnetTable(NamedTuple):
    """A magnetic actuator as a table of flux linkage and force over current and gap.

    Parameters
    ----------
    first_current : float
        First current in A.
    current_step : float
        Distance of currents in A.
    first_gap : float
        First gap in m.
    gap_step : float
        Distance of gaps in m.
    linkage : ndarray
        Flux linkage in Vs, one row per current, one column per gap.
    force : ndarray
        Force in N, likewise.

    Notes
    -----
    Values are interpolated by cubics (Catmull-Rom); outside, those of the edge hold. The flux linkage is the state of a
    coil, `psi' = U - R i`, and `linked_current` inverts the table.

    Examples
    --------
    >>> def linkage(i, g):                                   # a gap without iron
    ...     return 1e-4 * i / (1e-3 + g)
    >>> def force(i, g):
    ...     return -0.5e-4 * i**2 / (1e-3 + g) ** 2
    >>> table = MagnetTable.of(linkage, force, (0.0, 10.0, 41), (0.0, 4e-3, 81))
    >>> round(table_value(table.linkage, 7.3, 1.03e-3, table), 4), round(linkage(7.3, 1.03e-3), 4)
    (0.3596, 0.3596)
    >>> round(linked_current(0.3596, 1.03e-3, table), 3)
    7.3
    """

    first_current: float
    current_step: float
    first_gap: float
    gap_step: float
    linkage: Array
    force: Array

    @staticmethod
    def of(
        linkage: Callable[[float, float], float],
        force: Callable[[float, float], float],
        currents: tuple[float, float, int],
        gaps: tuple[float, float, int],
    ) -> MagnetTable:
        """Make a table from functions of current and gap.

        Parameters
        ----------
        linkage : callable
            `linkage(current, gap)` in Vs.
        force : callable
            `force(current, gap)` in N.
        currents : tuple of (float, float, int)
            First and last current in A, and number of points.
        gaps : tuple of (float, float, int)
            First and last gap in m, and number of points.

        Returns
        -------
        MagnetTable
            The table.
        """
        i, g = np.linspace(*currents), np.linspace(*gaps)
        values = [np.array([[f(a, b) for b in g] for a in i], np.float64) for f in (linkage, force)]
        return MagnetTable.from_points(i, g, *values)

    @staticmethod
    def from_points(currents: Array, gaps: Array, linkage: Array, force: Array) -> MagnetTable:
        """Make a table from given points.

        Parameters
        ----------
        currents : ndarray
            Evenly spaced currents in A.
        gaps : ndarray
            Evenly spaced gaps in m.
        linkage : ndarray
            Flux linkage in Vs, one row per current; it must grow with the current.
        force : ndarray
            Force in N, likewise.

        Returns
        -------
        MagnetTable
            The table.

        Raises
        ------
        SetupError
            If points are not even or the linkage does not grow.
        """
        steps = []
        for name, points in (("currents", currents), ("gaps", gaps)):
            if len(points) < 2:
                raise cs.errors.SetupError(f"MagnetTable needs at least two {name}, got {len(points)}")
            step = (points[-1] - points[0]) / (len(points) - 1)
            if not step > 0 or np.abs(np.diff(points) - step).max() > 1e-9 * step:
                raise cs.errors.SetupError(
                    f"MagnetTable needs {name} that rise evenly; interpolate the table to such points"
                )
            steps.append(float(step))
        for name, values in (("linkage", linkage), ("force", force)):
            if values.shape != (len(currents), len(gaps)) or not np.isfinite(values).all():
                raise cs.errors.SetupError(
                    f"MagnetTable: {name} must be finite numbers of shape {(len(currents), len(gaps))}, "
                    f"one row per current, not {values.shape}"
                )
        flat = np.argwhere(np.diff(linkage, axis=0) <= 0)
        if len(flat):
            k, j = flat[0]
            raise cs.errors.SetupError(
                f"MagnetTable: the linkage does not grow from current {currents[k]:g} to {currents[k + 1]:g} "
                f"at gap {gaps[j]:g}, so that no current belongs to it"
            )
        linkage, force = (np.ascontiguousarray(one, np.float64) for one in (linkage, force))
        return MagnetTable(float(currents[0]), steps[0], float(gaps[0]), steps[1], linkage, force)


@compiled
def _place(value: float, first: float, step: float, count: int) -> tuple[int, float]:
    """The point below a value and how far it is on the way to the next; the edges hold."""
    at = min(max((value - first) / step, 0.0), count - 1.0)
    k = min(int(at), count - 2)
    return k, at - k


@compiled
def _cubic(a: float, b: float, c: float, d: float, x: float) -> float:
    """Through `b` at 0 and `c` at 1, with the slopes `(c - a)/2` and `(d - b)/2`."""
    return b + 0.5 * x * (c - a + x * (2.0 * a - 5.0 * b + 4.0 * c - d + x * (3.0 * (b - c) + d - a)))


@compiled
def _along(values: Array, k: int, j: int, y: float) -> float:
    """Over the gap in row `k`; beyond the edge the row goes on straight."""
    last = values.shape[1] - 1
    b, c = values[k, j], values[k, j + 1]
    a = values[k, j - 1] if j > 0 else 2.0 * b - c
    d = values[k, j + 2] if j + 2 <= last else 2.0 * c - b
    return _cubic(a, b, c, d, y)


@compiled
def table_value(values: Array, current: float, gap: float, table: MagnetTable) -> float:
    """Interpolate in a magnet table.

    Parameters
    ----------
    values : ndarray
        `table.linkage` or `table.force`.
    current : float
        Current in A.
    gap : float
        Gap in m.
    table : MagnetTable
        The table.

    Returns
    -------
    float
        Value in Vs or N.

    Examples
    --------
    >>> corners = np.array([[0.0, 0.0], [1.0, 3.0]])
    >>> table = MagnetTable.from_points(np.array([0.0, 1.0]), np.array([0.0, 1.0]), corners, corners)
    >>> table_value(table.force, 0.5, 0.5, table), table_value(table.force, 9.0, -9.0, table)
    (1.0, 1.0)
    """
    rows, columns = values.shape
    k, x = _place(current, table.first_current, table.current_step, rows)
    j, y = _place(gap, table.first_gap, table.gap_step, columns)
    b, c = _along(values, k, j, y), _along(values, k + 1, j, y)
    a = _along(values, k - 1, j, y) if k > 0 else 2.0 * b - c
    d = _along(values, k + 2, j, y) if k + 2 < rows else 2.0 * c - b
    return _cubic(a, b, c, d, x)


@compiled
def linked_current(linkage: float, gap: float, table: MagnetTable) -> float:
    """Compute the current at which a magnet table has a flux linkage.

    Parameters
    ----------
    linkage : float
        Flux linkage in Vs.
    gap : float
        Gap in m.
    table : MagnetTable
        The table.

    Returns
    -------
    float
        Current in A; that of the edge if no current has this linkage.

    Examples
    --------
    >>> table = MagnetTable.of(lambda i, g: 2.0 * i, lambda i, g: 0.0, (0.0, 5.0, 6), (0.0, 1.0, 2))
    >>> linked_current(7.0, 0.3, table), linked_current(99.0, 0.3, table)
    (3.5, 5.0)
    """
    rows, columns = table.linkage.shape
    j, y = _place(gap, table.first_gap, table.gap_step, columns)
    low, high = 0, rows - 1
    if linkage <= _along(table.linkage, low, j, y):
        return table.first_current
    if linkage >= _along(table.linkage, high, j, y):
        last: float = table.first_current + table.current_step * (rows - 1)
        return last
    while high - low > 1:
        middle = (low + high) // 2
        if _along(table.linkage, middle, j, y) <= linkage:
            low = middle
        else:
            high = middle
    b, c = _along(table.linkage, low, j, y), _along(table.linkage, low + 1, j, y)
    a = _along(table.linkage, low - 1, j, y) if low > 0 else 2.0 * b - c
    d = _along(table.linkage, low + 2, j, y) if low + 2 < rows else 2.0 * c - b
    left, right, x = 0.0, 1.0, (linkage - b) / (c - b)
    for _ in range(60):  # Newton, kept inside its bracket
        value = _cubic(a, b, c, d, x)
        if value < linkage:
            left = x
        else:
            right = x
        slope = 0.5 * (c - a + x * (2.0 * (2.0 * a - 5.0 * b + 4.0 * c - d) + 3.0 * x * (3.0 * (b - c) + d - a)))
        better = x - (value - linkage) / slope if slope > 0.0 else left
        if abs(better - x) < 1e-15:
            break
        x = better if left < better < right else 0.5 * (left + right)
    return table.first_current + table.current_step * (low + x)
