"""Propagators of many linear subsystems at once.

Over a step of length `H` with an input `sum_j c_j s^j`, `s = (t - t0)/H`, the state goes to `E x + sum_j F_j c_j` with

    E = exp(M),   F_j = j! sum_k M^k B H / (k + j + 1)!,   M = A H    (docs/theory.md, "Stability")

Both are summed as Taylor series, after the states are scaled by powers of two (which costs no rounding) so that rows
and columns of `M` are of equal size, and over `H / 2^n` where `M` is still large; `n` doublings follow:

    E(2h) = E E,   F_j(2h) = 2^-j (E F_j + sum_{i<=j} binomial(j, i) F_i).

Only products of the small matrices themselves occur, no linear solve; entries are as accurate as those of a single
exponential, but not the same in the last bits.
"""

from __future__ import annotations

import numpy as np

from cosolve.basics.arrays import Matrix
from cosolve.jit import njit

_EPS = 1e-18  # terms of the series below this (relative to 1) are left out
_LANES = 64  # variants side by side; loops over fewer are unrolled instead of vectorised
_LARGEST = 2.0**100  # norms beyond that give up: what comes out is no number anyway


@njit(cache=True, nogil=True)
def _balance(M: Matrix, d: Matrix, row: Matrix, column: Matrix, f: Matrix) -> None:
    """Scale states by powers of two, `M[i, j] d[j] / d[i]`, until rows and columns are of about one size (Osborne).

    Exponents are read from, and written to, the bits of the numbers; rows or columns of zeros are left as they are.
    """
    n = len(d)
    of_row, of_column, of_f = row.view(np.int64), column.view(np.int64), f.view(np.int64)
    d[:] = 1.0
    for _ in range(20):
        moved = 0
        for i in range(n):
            row[:] = 0.0
            column[:] = 0.0
            for j in range(n):
                if j != i:
                    for lane in range(_LANES):
                        row[lane] += abs(M[i, j, lane])
                        column[lane] += abs(M[j, i, lane])
            for lane in range(_LANES):
                r, c = of_row[lane] >> 52, of_column[lane] >> 52
                apart = (r - c + (r < c)) >> 1  # half the difference, towards zero
                apart = apart if 0 < r < 2047 and 0 < c < 2047 else 0
                of_f[lane] = (apart + 1023) << 52
                moved |= apart
            if moved == 0:
                continue
            for lane in range(_LANES):
                d[i, lane] *= f[lane]
            for j in range(n):
                if j != i:
                    for lane in range(_LANES):
                        M[i, j, lane] /= f[lane]
                        M[j, i, lane] *= f[lane]
        if moved == 0:
            return


@njit(cache=True, nogil=True)
def _halve(M: Matrix, norm: Matrix, h: Matrix, total: Matrix) -> int:
    """Bring the sizes of the matrices below 1 by halving, `h` in all; how often at most. Hopeless ones become NaN."""
    of_norm, of_h = norm.view(np.int64), h.view(np.int64)
    norm[:] = 0.0
    for i in range(len(M)):
        total[:] = 0.0
        for j in range(len(M)):
            for lane in range(_LANES):
                total[lane] += abs(M[i, j, lane])
        for lane in range(_LANES):
            norm[lane] = norm[lane] if total[lane] <= norm[lane] else total[lane]
    most = 0
    for lane in range(_LANES):
        times = max((of_norm[lane] >> 52) - 1022, 0)
        fits = norm[lane] < _LARGEST
        of_h[lane] = (1023 - times) << 52
        h[lane] = h[lane] if fits else np.nan
        norm[lane] = norm[lane] * h[lane] if fits else 0.0
        most = max(most, times if fits else 0)
    for i in range(len(M)):
        for j in range(len(M)):
            for lane in range(_LANES):
                M[i, j, lane] *= h[lane]
    return most


@njit(cache=True, nogil=True)
def _entry(X: Matrix, Y: Matrix, i: int, j: int, total: Matrix) -> None:
    """Entry `(i, j)` of the products `X Y`."""
    total[:] = 0.0
    for k in range(len(X)):
        for lane in range(_LANES):
            total[lane] += X[i, k, lane] * Y[k, j, lane]


@njit(cache=True, nogil=True)
def propagators(A: Matrix, B: Matrix, H: float, degree: int, first: int, last: int, P: Matrix) -> None:
    """`P[:, :, v]` for the variants `first` to `last`: rows of states, columns (states, c_0, ..., c_degree).

    `A[:, :, v]` and `B[:, :, v]` belong to variant `v`. Variants are worked on `_LANES` at a time, side by side, each
    with as many terms and doublings as it needs itself: neighbours do not change its bits.
    """
    n, p = B.shape[0], B.shape[1]
    M, term, new = np.empty((n, n, _LANES)), np.empty((n, n + p, _LANES)), np.empty((n, n + p, _LANES))
    E, E2 = np.empty((n, n, _LANES)), np.empty((n, n, _LANES))
    F, F2 = np.empty((degree + 1, n, p, _LANES)), np.empty((degree + 1, n, p, _LANES))
    d, norm, h, size = np.empty((n, _LANES)), np.empty(_LANES), np.empty(_LANES), np.empty(_LANES)
    share, total = np.empty(_LANES), np.empty(_LANES)
    choose = np.zeros((degree + 1, degree + 1))
    for j in range(degree + 1):
        choose[j, 0] = 1.0
        for i in range(1, j + 1):
            choose[j, i] = choose[j - 1, i - 1] + choose[j - 1, i]
    for begin in range(first, last, _LANES):
        count = min(_LANES, last - begin)
        for i in range(n):
            for j in range(n):
                for lane in range(_LANES):
                    M[i, j, lane] = A[i, j, begin + min(lane, count - 1)] * H
        _balance(M, d, size, share, total)
        doublings = _halve(M, norm, h, total)
        for i in range(n):
            for j in range(n):
                E[i, j] = term[i, j] = 1.0 if i == j else 0.0
            for j in range(p):
                for lane in range(_LANES):
                    term[i, n + j, lane] = B[i, j, begin + min(lane, count - 1)] * H * h[lane] / d[i, lane]
        F[:] = 0.0
        size[:] = 1.0
        # term = M^k (1/k! I, B h); F_j gets j! k!/(k + j + 1)! of its right part
        k = 0
        while True:
            weight = 1.0 / (k + 1)
            for q in range(degree + 1):
                for i in range(n):
                    for j in range(p):
                        for lane in range(_LANES):
                            F[q, i, j, lane] += weight * term[i, n + j, lane]
                weight *= (q + 1.0) / (k + q + 2.0)
            k += 1
            going = False
            for lane in range(_LANES):
                size[lane] *= norm[lane] / k
                share[lane] = 1.0 / k if size[lane] >= _EPS else 0.0  # what is small enough gets no more terms
                going |= size[lane] >= _EPS
            if not going:
                break
            for i in range(n):
                for j in range(n + p):
                    _entry(M, term, i, j, total)
                    for lane in range(_LANES):
                        new[i, j, lane] = total[lane] * share[lane]
            term, new = new, term
            for i in range(n):
                for j in range(n):
                    for lane in range(_LANES):
                        E[i, j, lane] += term[i, j, lane]
        for _ in range(doublings):
            # lanes whose step is whole already stay as they are
            half = 1.0
            for q in range(degree + 1):
                for i in range(n):
                    for j in range(p):
                        _entry(E, F[q], i, j, total)
                        for r in range(q + 1):
                            for lane in range(_LANES):
                                total[lane] += choose[q, r] * F[r, i, j, lane]
                        for lane in range(_LANES):
                            F2[q, i, j, lane] = half * total[lane] if h[lane] < 1.0 else F[q, i, j, lane]
                half *= 0.5
            for i in range(n):
                for j in range(n):
                    _entry(E, E, i, j, total)
                    for lane in range(_LANES):
                        E2[i, j, lane] = total[lane] if h[lane] < 1.0 else E[i, j, lane]
            E, E2 = E2, E
            F, F2 = F2, F
            for lane in range(_LANES):
                h[lane] = 2.0 * h[lane] if h[lane] < 1.0 else h[lane]
        # h is 1 again, or NaN where no number came of it
        for i in range(n):
            for j in range(n):
                for lane in range(count):
                    P[i, j, begin + lane] = h[lane] * E[i, j, lane] * d[i, lane] / d[j, lane]
            for q in range(degree + 1):
                for j in range(p):
                    for lane in range(count):
                        P[i, n + q * p + j, begin + lane] = F[q, i, j, lane] * d[i, lane]
