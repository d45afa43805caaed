"""Compiled loops in error-controlled steps: the loops of equal steps, taken one step at a time.

Clock, node weights, error estimate and controller repeat `stepsize/clock.py`, `signal/polynomial.py` and
`stepsize/control.py` number for number; a rejected step is undone and tried again shorter: `stepsize/sequence.py`.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np

from cosolve.engine.native import corrected, explicit
from cosolve.engine.native.parts import restore_all
from cosolve.jit import njit
from cosolve.stepsize.sequence import LEAST_TICKS

_TICKS = 2**52  # as in stepsize/clock.py
_TINY = 1e-300  # as in stepsize/control.py

JACOBI, GAUSS_SEIDEL, SEMI_IMPLICIT, IMPLICIT = 0, 1, 2, 3


@njit(cache=True)
def _weights(nodes, count, out):
    """`lagrange_weights` of the first `count` nodes."""
    basis, grown = np.zeros(count + 1), np.zeros(count + 1)
    for j in range(count):
        basis[:] = 0.0
        basis[0] = 1.0
        length = 1
        for other in range(count):
            if other == j:
                continue
            grown[0] = 0.0
            for k in range(length):
                grown[k + 1] = basis[k]
            for k in range(length):
                grown[k] -= nodes[other] * basis[k]
            length += 1
            for k in range(length):
                basis[k] = grown[k] / (nodes[j] - nodes[other])
        for k in range(count):
            out[k, j] = basis[k] + 0.0


@njit(cache=True)
def _fit(H, span, tick):
    """Ticks of a step of about `H`."""
    left = _TICKS - tick
    ticks = max(1, int(np.rint(min(1.0, H / span) * _TICKS)))
    return left if left - ticks < 1e-6 * ticks else min(ticks, left)


@njit(cache=True)
def _at(tick, t_start, t_end, span):
    return t_end if tick >= _TICKS else min(t_end, t_start + span * (tick / _TICKS))


@njit(cache=True)
def _estimate(z, predicted, nominal, rtol, atol):
    total = 0.0
    for q in range(len(z)):
        weight = atol * nominal[q] + rtol * max(abs(z[q]), abs(predicted[q]))
        share = (z[q] - predicted[q]) / max(weight, _TINY)
        total = share * share if q == 0 else total + share * share
    return np.sqrt(total / len(z))


@njit(cache=True)
def run(
    kind,
    w,
    degree,
    guess,
    values,
    steps,
    clock,
    control,
    nominal,
    may_reject,
    lapack,
    size,
    settings,
    plain,
    least,
    rows,
    Y,
    Z,
    R,
    N,
    norms,
):
    """Steps until the rows are full, the end is reached, or one is out of the ordinary; the number of steps taken.

    `clock`: start, end, tick, proposed length, last error (NaN: none). `control`: rtol, atol, H_min, H_max, q, q_min,
    q_max, power of the I or PI controller without a past, alpha, beta, 1 for PI. `settings`: increment, final update,
    tolerance, iterations at most, Jacobian in every iteration. `rows`: time, length, error, rejections, sweeps,
    Jacobians.
    """
    t_start, t_end = clock[0], clock[1]
    span = t_end - t_start
    tick, H, previous = int(clock[2]), clock[3], clock[4]
    rtol, atol, H_min, H_max = control[0], control[1], control[2], control[3]
    q, q_min, q_max, power, alpha, beta, pi = control[4:11]
    order = degree + 1
    n_z = values.shape[1]
    before, predicted = values.copy(), np.empty(n_z)
    W, P = np.zeros((degree + 1, degree + 1)), np.zeros((guess + 1, guess + 1))
    V = np.ones((max(degree + 1, 1), max(degree + 1, 1)))
    nodes, times = np.zeros(max(degree, guess) + 2), np.zeros(2)
    s = filled = 0
    rejected = sweeps = renewed = 0
    while s < len(Y) and tick < _TICKS:
        ticks = _fit(H, span, tick)
        t0, t1 = _at(tick, t_start, t_end, span), _at(tick + ticks, t_start, t_end, span)
        length = span * (ticks / _TICKS)
        # nodes of the extrapolation: 0, -H_1 / H, ...; of the interpolation: 1 in front of them
        nodes[0], back = 0.0, 0.0
        for j in range(max(degree, guess)):
            back += steps[j]
            nodes[j + 1] = -back / length
        _weights(nodes, degree + 1, W)
        _weights(nodes, guess + 1, P)
        if degree > 0:
            for j in range(max(degree, guess), -1, -1):
                nodes[j + 1] = nodes[j]
            nodes[0] = 1.0
            _weights(nodes, degree + 1, V)
        before[:] = values
        times[0], times[1] = t0, t1
        y, z, r, n = Y[s : s + 1], Z[s : s + 1], R[s : s + 1], N[s : s + 1]
        if kind == JACOBI:
            done = explicit.jacobi(w, W, values, times, length, True, y, z)
        elif kind == GAUSS_SEIDEL:
            done = explicit.gauss_seidel(w, W, V, values, times, length, True, y, z)
        elif kind == SEMI_IMPLICIT:
            done = corrected.semi_implicit(
                w, lapack, P, V, values, size, settings[0], settings[1] != 0.0, False, times, length, y, z, r
            )
        else:
            if filled + settings[3] + 2 > len(norms):
                return s, filled
            done = corrected.implicit(
                w,
                lapack,
                P,
                V,
                values,
                size,
                settings[0],
                plain,
                least,
                settings[2],
                int(settings[3]),
                settings[4] != 0.0,
                False,
                times,
                length,
                y,
                z,
                r,
                n,
                norms[filled:],
            )
        if done == 0:
            break
        sweeps += n[0] if kind == IMPLICIT else (2 if kind == SEMI_IMPLICIT else 1)
        if kind == SEMI_IMPLICIT:
            renewed += 1
        elif kind == IMPLICIT:
            renewed += n[0] - 1 if settings[4] != 0.0 else (1 if n[0] > 1 else 0)
        weights = P if kind >= SEMI_IMPLICIT else W
        _predict(weights, before, predicted)
        error = _estimate(z[0], predicted, nominal, rtol, atol)
        if may_reject and error > 1.0 and H_min * (1 + 1e-9) < length:
            shrink = max(q_min, q * error ** (-1.0 / (guess + 1 if kind >= SEMI_IMPLICIT else order)))
            shorter = max(H_min, length * shrink)
            if _fit(shorter, span, tick) <= LEAST_TICKS or t0 + shorter == t0:  # the readable engine says what is wrong
                restore_all(w)
                values[:] = before
                break
            H, previous = shorter, np.nan
            restore_all(w)
            values[:] = before
            rejected += 1
            continue
        power_order = guess + 1 if kind >= SEMI_IMPLICIT else order
        tick += ticks
        for j in range(len(steps) - 1, 0, -1):
            steps[j] = steps[j - 1]
        steps[0] = length
        bounded = max(error, _TINY)
        if pi == 0.0 or np.isnan(previous):
            proposal = length * bounded ** (-power / power_order)
        else:
            proposal = length * bounded ** (-alpha / power_order) * max(previous, _TINY) ** (beta / power_order)
        H = min(H_max, q_max * length, max(H_min, q_min * length, q * proposal))
        previous = error
        rows[s, 0], rows[s, 1], rows[s, 2], rows[s, 3] = t1, length, error, rejected
        rows[s, 4], rows[s, 5] = sweeps, renewed
        if kind == IMPLICIT:
            filled += n[0]
        rejected = sweeps = renewed = 0
        clock[2], clock[3], clock[4] = tick, H, previous
        s += 1
    return s, filled


@njit(cache=True)
def _predict(weights, values, out):
    """The extrapolated values at the end of the step: coefficients first, then their sum, as the engine does it."""
    n = weights.shape[0]
    for q in range(values.shape[1]):
        total = 0.0
        for j in range(n):
            coefficient = weights[j, 0] * values[0, q]
            for k in range(1, n):
                coefficient += weights[j, k] * values[k, q]
            total = coefficient if j == 0 else total + coefficient
        out[q] = total
