"""Compiled loops of `method/semi_implicit.py` and `method/implicit.py`: equal steps, a full history, Newton.

A step that is out of the ordinary (a failed crossing, a NaN, a singular Jacobian, an iteration that stands still) is
not decided here: the loop goes back to the beginning of that step and returns, and the readable engine takes it.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np

from cosolve.engine.native.interface import (
    end_in,
    factorise,
    jacobian,
    largest,
    norm_of,
    output_partials,
    predict,
    residual,
    solve,
    workspace,
)
from cosolve.engine.native.parts import GOOD, push, record, restore_all, save_all, sweep
from cosolve.jit import bare, njit, short_loop

_LOST = 1e12  # as in method/implicit.py


@njit(cache=True)
def semi_implicit(w, lapack, P, V, values, size, increment, update, steady, times, H, Y, Z, R):
    """Predictor (weights `P`), one Newton step, corrector (weights `V`); returns the number of steps taken.

    `steady` says that the interface Jacobian is the same in every step.
    """
    n_z, n = values.shape[1], V.shape[0]
    coefficients, base, guess = np.empty((n, n_z)), np.zeros((n, n_z)), np.empty((P.shape[0], n_z))
    weight = np.ascontiguousarray(V[:, 0])
    z, z_p, asked, r, dz = np.empty(n_z), np.empty(n_z), np.empty(n_z), np.empty(n_z), np.empty(n_z)
    (dr_dy, G), (rows, columns, scaled), (pivots, integers), (work, rates) = workspace(Y.shape[1], n_z)
    room_for = (coefficients, base, guess, weight, z, z_p, asked, r, dz)
    work_for = (dr_dy, G, rows, columns, scaled, pivots, integers, work, rates)
    return _semi_implicit(
        w, lapack, P, V, values, size, increment, update, steady, times, H, Y, Z, R, room_for, work_for
    )


@bare
def _semi_implicit(w, lapack, P, V, values, size, increment, update, steady, times, H, Y, Z, R, room_for, work_for):
    coefficients, base, guess, weight, z, z_p, asked, r, dz = room_for
    dr_dy, G, rows, columns, scaled, pivots, integers, work, rates = work_for
    n_z, known = len(z), False
    for s in range(len(Y)):
        t0, t1 = times[s], times[s + 1]
        if save_all(w) != 0:
            return s
        bad = True
        while True:  # once; `break` means trouble
            predict(P, V, values, base, guess, z_p)
            end_in(base, weight, z_p, coefficients)
            if sweep(w, t0, t1, H, len(weight), coefficients.ctypes.data, n_z) != GOOD:
                break
            if residual(w, z_p, asked, r) != GOOD:
                break
            if not (steady and known):
                if output_partials(w, dr_dy) != GOOD:
                    break
                if jacobian(w, z_p, base, weight, size, increment, t0, t1, H, coefficients, dr_dy, G) != GOOD:
                    break
                if factorise(lapack, G, rows, columns, scaled, pivots, integers, work, rates) != GOOD:
                    break
                known = True
            if solve(lapack, scaled, pivots, rows, columns, integers, r, dz) != GOOD:
                break
            for q in range(n_z):
                short_loop()
                z[q] = z_p[q] - dz[q]
            end_in(base, weight, z, coefficients)
            if restore_all(w) != 0 or sweep(w, t0, t1, H, len(weight), coefficients.ctypes.data, n_z) != GOOD:
                break
            for q in range(n_z):
                short_loop()
                size[q] = max(size[q], abs(z[q]))
            if residual(w, z, asked, r) != GOOD:
                break
            R[s] = largest(r)
            bad = False
            break
        if bad:
            restore_all(w)
            return s
        newest = asked if update else z
        push(values, newest)
        record(w, newest, Y, Z, s)
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
    z, asked, r, dz = np.empty(n_z), np.empty(n_z), np.empty(n_z), np.empty(n_z)
    (dr_dy, G), (rows, columns, scaled), (pivots, integers), (work, rates) = workspace(Y.shape[1], n_z)
    room_for = (coefficients, base, guess, weight, z, asked, r, dz)
    work_for = (dr_dy, G, rows, columns, scaled, pivots, integers, work, rates)
    how = (increment, tol, most, every, steady)
    return _implicit(w, lapack, P, V, values, size, how, plain, least, times, H, Y, Z, R, N, norms, room_for, work_for)


@bare
def _implicit(w, lapack, P, V, values, size, how, plain, least, times, H, Y, Z, R, N, norms, room_for, work_for):
    coefficients, base, guess, weight, z, asked, r, dz = room_for
    dr_dy, G, rows, columns, scaled, pivots, integers, work, rates = work_for
    increment, tol, most, every, steady = how
    n_z, filled, known = len(z), 0, False
    for s in range(len(Y)):
        t0, t1 = times[s], times[s + 1]
        if filled + most + 2 > len(norms) or save_all(w) != 0:
            return s
        bad = True
        count = 0
        while True:  # once; `break` means trouble
            predict(P, V, values, base, guess, z)
            end_in(base, weight, z, coefficients)
            if sweep(w, t0, t1, H, len(weight), coefficients.ctypes.data, n_z) != GOOD:
                break
            if residual(w, z, asked, r) != GOOD:
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
                    if (
                        output_partials(w, dr_dy) != GOOD
                        or jacobian(w, z, base, weight, size, increment, t0, t1, H, coefficients, dr_dy, G) != GOOD
                        or factorise(lapack, G, rows, columns, scaled, pivots, integers, work, rates) != GOOD
                    ):
                        trouble = True
                        break
                    known = True
                if solve(lapack, scaled, pivots, rows, columns, integers, r, dz) != GOOD:
                    trouble = True
                    break
                for q in range(n_z):
                    short_loop()
                    z[q] = z[q] - dz[q]
                end_in(base, weight, z, coefficients)
                if restore_all(w) != 0 or sweep(w, t0, t1, H, len(weight), coefficients.ctypes.data, n_z) != GOOD:
                    trouble = True
                    break
                if residual(w, z, asked, r) != GOOD:
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
                short_loop()
                size[q] = max(size[q], abs(z[q]))
            R[s] = largest(r)
            bad = False
            break
        if bad:
            restore_all(w)
            return s
        N[s] = count
        filled += count
        push(values, asked)
        record(w, asked, Y, Z, s)
    return len(Y)
