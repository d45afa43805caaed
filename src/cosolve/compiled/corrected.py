"""Compiled loops of `method/semi_implicit.py` and `method/implicit.py`: equal steps, a full history, Newton.

A step that is out of the ordinary (a failed crossing, a NaN, a singular Jacobian, an iteration that stands still) is
not decided here: the loop goes back to the beginning of that step and returns, and the readable engine takes it.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np
from numba import njit

from cosolve.compiled.interface import (
    end_in,
    factorise,
    jacobian,
    largest,
    norm_of,
    output_partials,
    predict,
    residual,
    solve,
    sweep,
    workspace,
)
from cosolve.compiled.parts import GOOD, bare, copy, evaluate, push, restore_all, room, save_all

_LOST = 1e12  # as in method/implicit.py


@njit(cache=True)
def semi_implicit(w, lapack, P, V, values, size, increment, update, steady, times, H, slots, Y, Z, R):
    """Predictor (weights `P`), one Newton step, corrector (weights `V`); returns the number of steps taken.

    `steady` says that the interface Jacobian is the same in every step.
    """
    n_z, n = values.shape[1], V.shape[0]
    coefficients, base, guess = np.empty((n, n_z)), np.zeros((n, n_z)), np.empty((P.shape[0], n_z))
    weight = np.ascontiguousarray(V[:, 0])
    z, z_p, r, dz = np.empty(n_z), np.empty(n_z), np.empty(n_z), np.empty(n_z)
    (y, moved, dr_dy, G), (rows, columns, scaled), (pivots, integers), (work, rates) = workspace(w, n_z)
    u, arguments, out = room(w, n)
    other = out.copy()
    room_for = (coefficients, base, guess, weight, z, z_p, r, dz, u, arguments, out, other)
    work_for = (y, moved, dr_dy, G, rows, columns, scaled, pivots, integers, work, rates)
    return _semi_implicit(
        w, lapack, P, V, values, size, increment, update, steady, times, H, slots, Y, Z, R, room_for, work_for
    )


@bare
def _semi_implicit(
    w, lapack, P, V, values, size, increment, update, steady, times, H, slots, Y, Z, R, room_for, work_for
):
    coefficients, base, guess, weight, z, z_p, r, dz, u, arguments, out, other = room_for
    y, moved, dr_dy, G, rows, columns, scaled, pivots, integers, work, rates = work_for
    n_z, known = len(z), False
    for s in range(len(Y)):
        t0, t1 = times[s], times[s + 1]
        if save_all(w, slots) != 0:
            return s
        bad = True
        while True:  # once; `break` means trouble
            predict(P, V, values, base, guess, z_p)
            end_in(base, weight, z_p, coefficients)
            if sweep(w, t0, t1, H, coefficients, u, y) != GOOD:
                break
            if residual(w, z_p, y, r, arguments, out) != GOOD:
                break
            if not (steady and known):
                if output_partials(w, y, dr_dy, arguments, out, other) != GOOD:
                    break
                needed = (coefficients, u, moved, dr_dy, G)
                if jacobian(w, z_p, y, base, weight, size, increment, t0, t1, H, slots, needed) != GOOD:
                    break
                if factorise(lapack, G, rows, columns, scaled, pivots, integers, work, rates) != GOOD:
                    break
                known = True
            if solve(lapack, scaled, pivots, rows, columns, integers, r, dz) != GOOD:
                break
            for q in range(n_z):
                z[q] = z_p[q] - dz[q]
            end_in(base, weight, z, coefficients)
            if restore_all(w, slots) != 0 or sweep(w, t0, t1, H, coefficients, u, y) != GOOD:
                break
            for q in range(n_z):
                size[q] = max(size[q], abs(z[q]))
            if residual(w, z, y, r, arguments, out) != GOOD:
                break
            left = 0.0
            for q in range(n_z):
                left = max(left, abs(r[q]))
            R[s] = left
            if update and evaluate(w, y, z, arguments, out) != GOOD:
                break
            bad = False
            break
        if bad:
            restore_all(w, slots)
            return s
        push(values, z)
        copy(y, Y, s)
        copy(z, Z, s)
    return len(Y)


@njit(cache=True)
def implicit(
    w,
    lapack,
    P,
    V,
    values,
    size,
    increment,
    plain,
    least,
    tol,
    most,
    every,
    steady,
    times,
    H,
    slots,
    Y,
    Z,
    R,
    N,
    norms,
):
    """Newton's method to tolerance; `N` gets the number of norms per step. Returns the number of steps taken.

    `plain` marks rows measured against 1, `least` the sizes at which absolute tolerances take over, `every` a Jacobian
    per iteration instead of one per step, `steady` that it is the same in every step.
    """
    n_z, n = values.shape[1], V.shape[0]
    coefficients, base, guess = np.empty((n, n_z)), np.zeros((n, n_z)), np.empty((P.shape[0], n_z))
    weight = np.ascontiguousarray(V[:, 0])
    z, r, dz = np.empty(n_z), np.empty(n_z), np.empty(n_z)
    (y, moved, dr_dy, G), (rows, columns, scaled), (pivots, integers), (work, rates) = workspace(w, n_z)
    u, arguments, out = room(w, n)
    other = out.copy()
    room_for = (coefficients, base, guess, weight, z, r, dz, u, arguments, out, other)
    work_for = (y, moved, dr_dy, G, rows, columns, scaled, pivots, integers, work, rates)
    how = (increment, tol, most, every, steady)
    return _implicit(
        w, lapack, P, V, values, size, how, plain, least, times, H, slots, Y, Z, R, N, norms, room_for, work_for
    )


@bare
def _implicit(w, lapack, P, V, values, size, how, plain, least, times, H, slots, Y, Z, R, N, norms, room_for, work_for):
    coefficients, base, guess, weight, z, r, dz, u, arguments, out, other = room_for
    y, moved, dr_dy, G, rows, columns, scaled, pivots, integers, work, rates = work_for
    increment, tol, most, every, steady = how
    n_z, filled, known = len(z), 0, False
    for s in range(len(Y)):
        t0, t1 = times[s], times[s + 1]
        if filled + most + 2 > len(norms) or save_all(w, slots) != 0:
            return s
        bad = True
        count = 0
        while True:  # once; `break` means trouble
            predict(P, V, values, base, guess, z)
            end_in(base, weight, z, coefficients)
            if sweep(w, t0, t1, H, coefficients, u, y) != GOOD:
                break
            if residual(w, z, y, r, arguments, out) != GOOD:
                break
            start = largest(size) + largest(z) + largest(r)
            norm = first = norm_of(z, r, size, plain, least, start)
            norms[filled] = norm
            count = 1
            known = known and steady
            trouble = False
            while not norm <= tol:
                if count > most or not norm < 1e6 * max(first, 1.0):
                    trouble = True
                    break
                if (every and not steady) or not known:
                    needed = (coefficients, u, moved, dr_dy, G)
                    if (
                        output_partials(w, y, dr_dy, arguments, out, other) != GOOD
                        or jacobian(w, z, y, base, weight, size, increment, t0, t1, H, slots, needed) != GOOD
                        or factorise(lapack, G, rows, columns, scaled, pivots, integers, work, rates) != GOOD
                    ):
                        trouble = True
                        break
                    known = True
                if solve(lapack, scaled, pivots, rows, columns, integers, r, dz) != GOOD:
                    trouble = True
                    break
                for q in range(n_z):
                    z[q] = z[q] - dz[q]
                end_in(base, weight, z, coefficients)
                if restore_all(w, slots) != 0 or sweep(w, t0, t1, H, coefficients, u, y) != GOOD:
                    trouble = True
                    break
                if residual(w, z, y, r, arguments, out) != GOOD:
                    trouble = True
                    break
                before, norm = norm, norm_of(z, r, size, plain, least, start)
                norms[filled + count] = norm
                count += 1
                if (norm > tol and norm > 0.5 * before) or largest(z) > _LOST * start:
                    trouble = True  # stands still, or runs away: the readable engine knows what to make of that
                    break
            if trouble:
                break
            for q in range(n_z):
                size[q] = max(size[q], abs(z[q]))
            R[s] = largest(r)
            if evaluate(w, y, z, arguments, out) != GOOD:
                break
            bad = False
            break
        if bad:
            restore_all(w, slots)
            return s
        N[s] = count
        filled += count
        push(values, z)
        copy(y, Y, s)
        copy(z, Z, s)
    return len(Y)
