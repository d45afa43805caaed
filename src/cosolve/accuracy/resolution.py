"""How well macro points resolve the signals: what polynomials through them leave, by differences of the points."""

from __future__ import annotations

from math import inf

import numpy as np

from cosolve.accuracy.recorded_run import Track
from cosolve.basics.arrays import Matrix, Vector
from cosolve.method import Method

FLOOR = 2e-9  # of the largest value of a variable or an output

#: What polynomials of degree 0, 1, ... leave in a step, in differences of the next order: extrapolated, and ending in
#: a corrected value.
_EXTRAPOLATED = (1 / 2, 5 / 12, 3 / 8, 251 / 720, 95 / 288, 19087 / 60480)
_ENDING = (1 / 2, 1 / 12, 1 / 24, 19 / 720, 3 / 160, 863 / 60480)
#: What may be left between the points of the error of the method's own signals, and of that of constant ones: these
#: are so far off that much can hide behind it.
_BETWEEN, _BETWEEN_HELD = 0.5, 0.25

_LEFT_OUT = 4  # points at the start, which say more about the start than about the signals


def _left(method: Method, degree: int) -> float:
    constants = _EXTRAPOLATED if method.explicit or method.lags else _ENDING
    return constants[min(degree, len(constants) - 1)]


def resolution(method: Method, z: Matrix, steps: Vector) -> float:
    """How large the error of signals of one degree more is, compared with that of the method's: the ratio `R`.

    The worst coupling variable counts, of those with an error above the floor.

    >>> import cosolve as cs
    >>> t = np.linspace(0, 1, 101)
    >>> def ratio(values):
    ...     return resolution(cs.Jacobi(1), values[:, np.newaxis], np.diff(t))
    >>> bool(ratio(np.sin(t)) < 0.02), bool(ratio(np.sign(t - 0.497)) > 0.5)
    (True, True)
    """
    p, times = method.degree, np.concatenate([[0.0], np.cumsum(steps)])
    low, high = (_left(method, k) for k in (p, p + 1))
    left_out = _LEFT_OUT if len(times) >= _LEFT_OUT + p + 4 else 0
    values, times, steps = z[left_out:], times[left_out:], steps[left_out:]
    defect = low * _rms_difference(values, times, steps, p + 1)
    next_one = high * _rms_difference(values, times, steps, p + 2)
    seen = defect > FLOOR * np.abs(z).max(axis=0)
    return float((next_one[seen] / defect[seen]).max(initial=0.0)) if np.isfinite(defect).all() else inf


def roughness(degree: int, track: Track) -> float:
    """The same with the first points, and without the constants of the remainder, which hide a jump at degree 0."""
    times = np.concatenate([[0.0], np.cumsum(track.steps)])
    low, high = (_rms_difference(track.z, times, track.steps, degree + k) for k in (1, 2))
    seen = low > FLOOR * np.abs(track.z).max(axis=0)
    return float((high[seen] / low[seen]).max(initial=0.0))


def _rms_difference(z: Matrix, times: Vector, steps: Vector, order: int) -> Vector:
    rms: Vector = np.sqrt(np.mean(_differences(z, times, steps, order) ** 2, axis=0))
    return rms


def _differences(z: Matrix, times: Vector, steps: Vector, order: int) -> Matrix:
    """Backward differences; on uneven steps the derivative times a power of the step."""
    found = z
    for k in range(1, order + 1):
        found = k * np.diff(found, axis=0) / (times[k:] - times[:-k])[:, np.newaxis]
    scaled: Matrix = found * steps[order - 1 :, np.newaxis] ** order
    return scaled


def settled(method: Method, count: int) -> int:
    """How many of so many steps say more about the start than about the signals."""
    return min(_LEFT_OUT + method.degree, count // 10)


def between(method: Method, missed: Matrix, z: Matrix, steps: Vector, noise: Vector) -> float:
    """How far signals are from the polynomials between macro points, compared with the error of the method's own.

    `missed` says how far at a place in each step. What subsystems do by their own accuracy (`noise`) does not count.
    Both are added up from the start, squared, since an error carries what was done before; the largest ratio after
    the first few steps counts, of the worst coupling variable, in units of what is allowed.

    >>> import cosolve as cs
    >>> t = np.linspace(0, 1, 101)
    >>> z, steps = np.sin(t)[:, np.newaxis], np.diff(t)
    >>> bool(between(cs.Jacobi(1), np.full((100, 1), 1e-7), z, steps, np.zeros(1)) < 0.1)
    True
    >>> bool(between(cs.Jacobi(1), np.full((100, 1), 1e-3), z, steps, np.zeros(1)) > 1)
    True
    """
    order, times = method.degree + 1, np.concatenate([[0.0], np.cumsum(steps)])
    defect = _left(method, method.degree) * np.abs(_differences(z, times, steps, order))
    defect = np.vstack([np.repeat(defect[:1], len(steps) - len(defect), axis=0), defect])
    own = FLOOR * np.abs(z).max(axis=0)
    count = np.arange(1.0, len(steps) + 1.0)[:, np.newaxis]
    with np.errstate(over="ignore", invalid="ignore"):
        seen = np.cumsum(np.maximum(missed - noise, 0.0) ** 2, axis=0)
        mean = np.cumsum(defect**2, axis=0) / count
        ahead = mean[np.minimum(np.arange(len(mean)) + len(mean) // 10, len(mean) - 1)]  # a bar is as wide
        allowed = count * np.maximum(np.maximum(mean, ahead), own**2)
    first = settled(method, len(steps))
    ratio = np.sqrt(seen[first:] / np.maximum(allowed[first:], np.finfo(np.float64).tiny))
    limit = _BETWEEN if method.degree else _BETWEEN_HELD
    return float(ratio.max(initial=0.0)) / limit if np.isfinite(ratio).all() else inf
