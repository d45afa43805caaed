"""Propagators of many linear subsystems at once.

Over a step of length `H` with an input `sum_j c_j s^j`, `s = (t - t0)/H`, the state goes to `E x + sum_j F_j c_j` with

    E = exp(M),   F_j = j! sum_k M^k B H / (k + j + 1)!,   M = A H    (spec: semi-implicit 10.2)

Both are summed as Taylor series, after the states are scaled by powers of two (which costs no rounding) so that rows
and columns of `M` are of equal size, and over `H / 2^n` where `M` is still large; `n` doublings follow:

    E(2h) = E E,   F_j(2h) = 2^-j (E F_j + sum_{i<=j} binomial(j, i) F_i).

Only products of the small matrices themselves occur, no linear solve; entries are as accurate as those of a single
exponential, but not the same in the last bits.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg"

from __future__ import annotations

import numpy as np
from numba import njit

_EPS = 1e-18  # terms of the series below this (relative to 1) are left out
_LARGEST = 2.0**100  # norms beyond that give up: what comes out is no number anyway


@njit(cache=True, nogil=True)
def _balance(M, d):
    """Scale states by powers of two, `M[i, j] d[j] / d[i]`, until rows and columns are of one size (Osborne)."""
    n = len(d)
    for i in range(n):
        d[i] = 1.0
    for _ in range(20):
        done = True
        for i in range(n):
            row, column = 0.0, 0.0
            for j in range(n):
                if j != i:
                    row += abs(M[i, j])
                    column += abs(M[j, i])
            if row == 0.0 or column == 0.0 or not np.isfinite(row + column):
                continue
            f = 1.0
            while column * f * f < 0.5 * row and f < 1e100:
                f *= 2.0
            while column * f * f > 2.0 * row and f > 1e-100:
                f *= 0.5
            if f != 1.0:
                done = False
                d[i] *= f
                for j in range(n):
                    if j != i:
                        M[i, j] /= f
                        M[j, i] *= f
        if done:
            return


@njit(cache=True, nogil=True)
def _norm(M):
    largest = 0.0
    for i in range(M.shape[0]):
        total = 0.0
        for j in range(M.shape[1]):
            total += abs(M[i, j])
        if not total <= largest:
            largest = total
    return largest


@njit(cache=True, nogil=True)
def propagators(A, B, H, degree, first, last, P):
    """`P[:, :, v]` for the variants `first` to `last`: rows of states, columns (states, c_0, ..., c_degree).

    `A[:, :, v]` and `B[:, :, v]` belong to variant `v`.
    """
    n, p = B.shape[0], B.shape[1]
    M, term, new = np.empty((n, n)), np.empty((n, n + p)), np.empty((n, n + p))
    E, F, E2, F2 = np.empty((n, n)), np.empty((degree + 1, n, p)), np.empty((n, n)), np.empty((degree + 1, n, p))
    d, choose = np.ones(n), np.zeros((degree + 1, degree + 1))
    for j in range(degree + 1):
        choose[j, 0] = 1.0
        for i in range(1, j + 1):
            choose[j, i] = choose[j - 1, i - 1] + choose[j - 1, i]
    for v in range(first, last):
        for i in range(n):
            for j in range(n):
                M[i, j] = A[i, j, v] * H
        _balance(M, d)
        norm, doublings = _norm(M), 0
        if not norm < _LARGEST:
            for i in range(n):
                for j in range(P.shape[1]):
                    P[i, j, v] = np.nan
            continue
        while norm > 1.0:
            norm *= 0.5
            doublings += 1
        h = 0.5**doublings
        for i in range(n):
            for j in range(n):
                M[i, j] *= h
                E[i, j] = term[i, j] = 1.0 if i == j else 0.0
            for j in range(p):
                term[i, n + j] = B[i, j, v] * H * h / d[i]
        # term = M^k (1/k! I, B h); F_j gets j! k!/(k + j + 1)! of its right part
        k, size = 0, 1.0
        for q in range(degree + 1):
            for i in range(n):
                for j in range(p):
                    F[q, i, j] = 0.0
        while True:
            weight = 1.0 / (k + 1)
            for q in range(degree + 1):
                for i in range(n):
                    for j in range(p):
                        F[q, i, j] += weight * term[i, n + j]
                weight *= (q + 1.0) / (k + q + 2.0)
            k += 1
            size *= norm / k
            if size < _EPS:
                break
            for i in range(n):
                for j in range(n + p):
                    total = 0.0
                    for q in range(n):
                        total += M[i, q] * term[q, j]
                    new[i, j] = total / k
            term, new = new, term
            for i in range(n):
                for j in range(n):
                    E[i, j] += term[i, j]
        for _ in range(doublings):
            half = 1.0
            for q in range(degree + 1):
                for i in range(n):
                    for j in range(p):
                        total = 0.0
                        for m in range(n):
                            total += E[i, m] * F[q, m, j]
                        for m in range(q + 1):
                            total += choose[q, m] * F[m, i, j]
                        F2[q, i, j] = half * total
                half *= 0.5
            for i in range(n):
                for j in range(n):
                    total = 0.0
                    for m in range(n):
                        total += E[i, m] * E[m, j]
                    E2[i, j] = total
            E, E2 = E2, E
            F, F2 = F2, F
        for i in range(n):
            for j in range(n):
                P[i, j, v] = E[i, j] * d[i] / d[j]
            for q in range(degree + 1):
                for j in range(p):
                    P[i, n + q * p + j, v] = F[q, i, j] * d[i]
