"""Tall, skinny least squares: fits, filters and low-rank matrices against dense linear algebra."""

from copy import deepcopy

import numpy as np
import pytest

from cosolve.corrector import Anderson, Broyden, IqnIls, IqnImvj, Secant
from cosolve.corrector.algebra.least_squares import Balance
from cosolve.corrector.algebra.low_rank import LowRank
from cosolve.corrector.algebra.secants import Secants
from cosolve.corrector.algebra.span import Span


@pytest.mark.parametrize("weighed", [False, True])
def test_a_fit_is_the_least_squares_solution(weighed):
    rng = np.random.default_rng(0)
    n, k = 200, 12
    R, Z = rng.normal(size=(n, k)) * 10.0 ** rng.uniform(-9, 3, k), rng.normal(size=(n, k))
    secants, weight = Secants(n, 50, 1e-7), rng.uniform(0.1, 10, n) if weighed else np.ones(n)
    if weighed:
        secants.weigh(weight)
    for j in range(k):
        secants.add(R[:, j], Z[:, j])
    r = rng.normal(size=n)
    c = secants.fit(r)
    exact = np.linalg.lstsq(R / np.linalg.norm(R, axis=0) * weight[:, None], r * weight, rcond=None)[0]
    exact = exact / np.linalg.norm(R, axis=0)
    assert secants.dr(c) == pytest.approx(R @ exact, rel=1e-10, abs=1e-12)
    assert secants.dz(c) == pytest.approx(Z @ exact, rel=1e-9)


def test_columns_within_the_span_of_newer_ones_are_dropped():
    rng = np.random.default_rng(1)
    old, new = rng.normal(size=(2, 30))
    secants = Secants(30, 10, 1e-3)
    secants.add(old + 1e-5 * new, np.ones(30))  # older, and nearly the same direction as the next
    secants.add(old, np.zeros(30))
    secants.add(new, np.zeros(30))
    c = secants.fit(old)
    assert len(secants) == 2
    assert secants.dr(c) == pytest.approx(old, abs=1e-12)
    assert not secants.dz(c).any()


@pytest.mark.parametrize(("tol", "kept"), [(0.019, 2), (0.021, 1)])
def test_an_older_column_counts_when_it_adds_more_than_the_filter_asks_for(tol, kept):
    """Of the older of two columns at an angle, `sin(angle) = 0.02` of its length stands off the newer one.

    Where it is dropped, what it would have added to the fit is missing: here all of the second component.
    """
    older, newer = np.array([np.sqrt(1 - 0.02**2), 0.02, 0.0]), np.array([7.0, 0.0, 0.0])
    secants = Secants(3, 3, tol)
    secants.add(40.0 * older, 40.0 * older)
    secants.add(newer, newer)
    fitted = secants.dr(secants.fit(np.array([1.0, 5.0, 9.0])))
    assert len(secants) == kept
    assert fitted == pytest.approx([1.0, 5.0 if kept == 2 else 0.0, 0.0], abs=1e-12)


def test_units_may_change_more_than_once():
    """What was learnt in one unit is what would have been learnt in the next, residuals and variables alike."""
    rng = np.random.default_rng(6)
    columns, units = rng.normal(size=(3, 2, 8)), rng.uniform(0.1, 10.0, (2, 3, 8))
    changed, steady = Secants(8, 5, 1e-10), Secants(8, 5, 1e-10)
    steady.weigh(units[0, 2])
    steady.weigh_z(units[1, 2])
    for (dr, dz), of_r, of_z in zip(columns, *units, strict=True):
        changed.weigh(of_r)
        changed.weigh_z(of_z)
        changed.add(dr, dz)
        steady.add(dr, dz)
    r = rng.normal(size=8)
    one, other = changed.fit(r), steady.fit(r)
    assert one == pytest.approx(other, rel=1e-9)
    assert changed.dr(one) == pytest.approx(steady.dr(other), rel=1e-9)
    assert changed.dz(one) == pytest.approx(columns[:, 1].T @ one[:3], rel=1e-9)
    for found, exact in zip(changed.pairs()[:2], columns.transpose(1, 0, 2), strict=True):
        assert np.sort(found, axis=0) == pytest.approx(np.sort(exact, axis=0), rel=1e-9)


def test_old_steps_and_old_columns_are_forgotten():
    rng = np.random.default_rng(2)
    secants = Secants(20, 4, 1e-6)
    for _ in range(3):
        secants.next_step(keep=1)
        for _ in range(2):
            secants.add(rng.normal(size=20), rng.normal(size=20))
    assert len(secants) == 4
    secants.next_step(keep=1)
    assert len(secants) == 2
    for _ in range(9):
        secants.add(rng.normal(size=20), rng.normal(size=20))
    assert len(secants) == 4


def test_a_field_in_metres_counts_next_to_a_force_in_newtons():
    balance = Balance(["u[0]", "u[1]", "u[2]", "f"])
    balance.learn(np.array([1e-6, -1e-6, 1e-6, 1e6]))
    weight = balance.new_weight()
    assert weight[:3] == pytest.approx(weight[3] * 1e12 * np.ones(3))
    assert balance.new_weight() is None


def test_every_residual_counts_alike_for_the_units_however_large_it_is():
    """Shares of the norm, per entry, added up: a large residual at first does not outweigh the later ones."""
    balance = Balance(["u[0]", "u[1]", "f"])
    balance.learn(1e6 * np.array([3.0, 4.0, 0.0]))  # all of it in the field: 25 / 2 per entry of 25
    balance.learn(1e-3 * np.array([0.0, 0.0, 7.0]))  # all of it in the force
    balance.learn(np.array([0.3, 0.4, 1e-3]))
    total = 0.25 + 1e-6
    of_u, of_f = 2**-0.5 + (0.125 / total) ** 0.5, 1.0 + 1e-3 / total**0.5
    assert balance.new_weight() is None  # less than a factor of ten apart
    for _ in range(40):
        balance.learn(np.array([0.3, 0.4, 0.0]))
    weight = balance.new_weight()
    assert weight == pytest.approx([1.0, 1.0, (of_u + 40 * 2**-0.5) / of_f], rel=1e-12)


def test_what_a_span_has_dropped_is_gone():
    """Places of vectors that were not kept hold nothing, whatever else is put in later."""
    e = np.eye(12)
    for shrink in ("scale", "free_columns"):
        span = Span(12, 2)
        for k in range(10):  # ten directions fill it
            span.put(k % 2, (k + 1.0) * e[k])
        span.put(0, e[:10].sum(axis=0))  # in all of them
        if shrink == "scale":
            span.scale(np.full(12, 2.0), [1])
        else:
            span.free_columns([1])
        assert span.rank == 1
        assert span.combined(np.array([1.0, 0.0])) == pytest.approx(np.zeros(12), abs=0.0)
        assert span.combined(np.array([0.0, 1.0])) == pytest.approx((20.0 if shrink == "scale" else 10.0) * e[9])
    span.scale(np.ones(12), [])
    span.put(1, e[3])
    assert span.combined(np.array([1.0, 0.0])) == pytest.approx(np.zeros(12), abs=0.0)


def test_a_compressed_matrix_keeps_its_largest_singular_values():
    rng = np.random.default_rng(3)
    n, rank = 300, 12
    full, matrix = np.zeros((n, n)), LowRank(n, rank)
    for k in range(40):
        a, b = rng.normal(size=(2, n)) * 10.0 ** (-0.5 * k)
        full += np.outer(a, b)
        matrix.add(a * 1e6, b * 1e-6)
        assert len(matrix) <= rank
    x = rng.normal(size=n)
    dropped = np.linalg.svd(full)[1][rank - 3]
    assert np.linalg.norm(matrix @ x - full @ x) < 10 * dropped * np.linalg.norm(x)
    assert np.linalg.norm(matrix.transposed(x) - full.T @ x) < 10 * dropped * np.linalg.norm(x)


def nonlinear(z, t):
    A = np.diag(np.linspace(1, 4, len(z))) + np.diag(np.full(len(z) - 1, 0.5), 1)
    return A @ z + 0.1 * z**3 - np.sin(t + np.arange(len(z)))


def solve(corrector, steps=5, n=8, tol=1e-11, most=60):
    """Evaluations per step and the last solution."""
    corrector.start_run([f"z[{i}]" for i in range(n)])
    z, counts = np.zeros(n), []
    for step in range(steps):
        corrector.start_step()
        r, count = nonlinear(z, 0.1 * step), 1
        while np.abs(r).max() >= tol and count < most:
            z = corrector.correct(z, r, None)
            r, count = nonlinear(z, 0.1 * step), count + 1
        corrector.accept(z, r)
        counts.append(count)
    return counts, z


def test_anderson_without_mixing_is_iqn_ils_without_reuse():
    one, two = solve(Anderson(depth=100)), solve(IqnIls(reuse=0))
    assert one[0] == two[0]
    assert one[1] == pytest.approx(two[1], abs=1e-12)


def test_past_steps_pay():
    without, reusing, multi = (sum(solve(c)[0]) for c in (IqnIls(reuse=0), IqnIls(reuse=4), IqnImvj()))
    assert reusing < 0.7 * without
    assert multi < 0.7 * without


def test_compressing_looks_at_products_and_not_at_the_lengths_of_their_sides():
    """`sum a b^T` where one side of each product is much longer than the other, now the left and now the right."""
    rng = np.random.default_rng(7)
    n, rank = 40, 8
    A, B = rng.normal(size=(2, rank + 1, n))
    scale = np.where(np.arange(rank + 1) % 2, 1e9, 1e-9)[:, np.newaxis]
    matrix = LowRank(n, rank)
    for a, b in zip(A * scale, B / scale, strict=True):
        matrix.add(a, b)
    U, s, VT = np.linalg.svd(A.T @ B)
    best = (U[:, : rank - 2] * s[: rank - 2]) @ VT[: rank - 2]  # a quarter of the columns is left free
    x = rng.normal(size=n)
    assert matrix @ x == pytest.approx(best @ x, rel=1e-9)


@pytest.mark.parametrize(
    "corrector",
    [
        IqnIls(initial=0.4),
        IqnImvj(initial=0.4),
        Anderson(initial=0.4, reuse=1),
        Broyden(initial=0.4),
        Broyden(initial=0.4, form="direct"),
    ],
    ids=str,
)
def test_the_accepted_iterate_is_learnt(corrector):
    """A linear problem of one number: two evaluations teach the slope, although the second one is accepted."""
    corrector.start_run(["z"])
    corrector.start_step()
    z = corrector.correct(np.array([3.0]), np.array([6.0]), None)  # r = 2 z: a factor of 0.5 would be the right one
    assert z == pytest.approx([0.6])
    corrector.accept(z, 2.0 * z)
    corrector.start_step()
    assert corrector.correct(np.array([-7.0]), np.array([-14.0]), None) == pytest.approx([0.0], abs=1e-14)


@pytest.mark.parametrize(
    ("make", "first"),
    [(lambda carry: Secant(initial=4.0, carry=carry), 3.0 - 6.0 / 4.0), (lambda carry: Broyden(0.4, carry), 0.6)],
    ids=["Secant", "Broyden"],
)
@pytest.mark.parametrize("carry", [True, False])
def test_what_was_learnt_is_kept_for_the_next_step_or_forgotten(make, first, carry):
    """`r = 2 z`: the slope is known after two evaluations; without `carry` every step begins with the first guess."""
    corrector = make(carry)
    corrector.start_run(["z"])
    for step in range(2):
        corrector.start_step()
        z = corrector.correct(np.array([3.0]), np.array([6.0]), None)
        assert z == pytest.approx([0.0 if carry and step else first], abs=1e-14)
        assert corrector.correct(z, 2.0 * z, None) == pytest.approx([0.0], abs=1e-14)


def test_multi_vector_follows_its_dense_formula():
    rng = np.random.default_rng(4)
    n = 6
    A, b = np.eye(n) + 0.4 * rng.normal(size=(n, n)), rng.normal(size=n)
    solver = IqnImvj(initial=0.3)
    solver.start_run([f"z[{i}]" for i in range(n)])
    M_old = np.eye(n)
    for step in range(3):
        solver.start_step()
        z = rng.normal(size=n)
        iterates, residuals = [z], [A @ z - b]
        for _ in range(2):
            z = solver.correct(z, residuals[-1], None)
            iterates.append(z)
            residuals.append(A @ z - b)
        solver.accept(z, residuals[-1])
        dR, dZ = np.diff(residuals, axis=0).T, np.diff(iterates, axis=0).T
        M = M_old + (dZ - M_old @ dR) @ np.linalg.pinv(dR)
        if step:  # the first correction used M_old, the second what one difference added to it
            M_one = M_old + (dZ[:, :1] - M_old @ dR[:, :1]) @ np.linalg.pinv(dR[:, :1])
            assert iterates[1] == pytest.approx(iterates[0] - M_old @ residuals[0], rel=1e-9)
            assert iterates[2] == pytest.approx(iterates[1] - M_one @ residuals[1], rel=1e-9)
        M_old = M


def test_a_span_gives_back_what_was_put_in():
    """Also after more vectors than it has places for, and in other units."""
    rng = np.random.default_rng(5)
    n, columns = 60, 6
    span, held = Span(n, columns), {}
    for count in range(40):
        k = count % columns
        held.pop(k, None)
        span.free_columns(list(held))
        v = rng.normal(size=n) * 10.0 ** rng.uniform(-8, 2)
        if held and count % 3 == 0:  # nearly dependent
            v = held[(k - 1) % columns] * (1 + 1e-9 * rng.normal(size=n))
        span.put(k, v)
        held[k] = v
        assert span.basis @ span.basis.T == pytest.approx(np.eye(span.rank), abs=1e-13)
    unit = rng.uniform(0.1, 10.0, n)
    span.scale(unit, list(held))
    for k, v in held.items():
        assert span.combined(np.eye(columns)[k]) == pytest.approx(v * unit, abs=1e-13 * np.abs(v).max())


def test_a_short_direction_is_kept_when_it_is_as_steep_as_the_others():
    """Of a linear problem everything is kept; what contradicts the other slopes is dropped, if it is short."""
    rng = np.random.default_rng(6)
    n = 40
    A = np.eye(n) + 0.2 * rng.normal(size=(n, n)) / np.sqrt(n)
    first, other = rng.normal(size=(2, n))
    for error, kept in ((0.0, 2), (1e-3, 1)):  # 1e-3 of the column does not follow from the slope
        secants = Secants(n, 10, 1e-10)
        near = first + 1e-6 * other
        secants.next_step(keep=9)
        secants.add(A @ near, near + error * other)
        secants.next_step(keep=9)
        secants.add(A @ first, first)
        secants.fit(other)
        assert len(secants) == kept
    secants = Secants(n, 10, 1e-10)  # a long direction is never doubted
    secants.add(A @ other, other + 50.0 * first)
    secants.add(A @ first, first)
    secants.fit(other)
    assert len(secants) == 2


def evaluations_with_noise(level):
    """Mean evaluations per step of a linear problem with 30 unknowns whose residual is wrong by `level`."""
    rng = np.random.default_rng(7)
    n = 30
    A = np.diag(np.linspace(1, 6, n)) + 0.3 * np.diag(np.ones(n - 1), 1)
    corrector, counts = IqnIls(), []
    corrector.start_run([f"z[{i}]" for i in range(n)])
    z = np.zeros(n)
    for step in range(25):
        corrector.start_step()
        b, count = np.sin(0.3 * step * np.arange(1, n + 1) / n), 0
        while True:
            r = A @ z - b + level * rng.normal(size=n)
            count += 1
            if np.abs(r).max() < 1e-10 or count > 60:
                break
            z = corrector.correct(z, r, None)
        corrector.accept(z, r)
        counts.append(count)
    return np.mean(counts)


def test_noise_a_thousand_times_below_the_tolerance_costs_little():
    """(A hundred times below it costs three times the evaluations: the last differences of a step are noise then.)"""
    assert evaluations_with_noise(1e-13) < evaluations_with_noise(0.0) + 2


def test_a_field_that_begins_without_residual_gets_its_weight_later():
    """A first residual of rounding size must not make that field rule the fit."""
    labels = [*(f"u[{i}]" for i in range(5)), *(f"f[{i}]" for i in range(5))]
    G = np.block([[np.eye(5), -1e-3 * np.eye(5)], [400.0 * np.diag(np.arange(1.0, 6.0)), np.eye(5)]])
    counts = []
    for rounding in (0.0, 1e-13):
        corrector, z, count = IqnIls(), np.zeros(10), 0
        corrector.start_run(labels)
        corrector.start_step()
        b = np.concatenate([np.linspace(1.0, 2.0, 5), np.full(5, rounding)])
        r = G @ z - b
        while np.abs(r / np.repeat([1.0, 400.0], 5)).max() > 1e-9:
            z = corrector.correct(z, r, None)
            r, count = G @ z - b, count + 1
            assert count < 40
        counts.append(count)
    assert counts[1] <= counts[0] + 2


def test_the_memory_of_a_corrector_can_be_copied():
    rng = np.random.default_rng(8)
    secants = Secants(20, 6, 1e-10)
    for _ in range(9):
        secants.add(rng.normal(size=20), rng.normal(size=20))
    secants.weigh(rng.uniform(0.5, 2.0, 20))
    twin, r = deepcopy(secants), rng.normal(size=20)
    assert np.array_equal(twin.dz(twin.fit(r)), secants.dz(secants.fit(r)))
    twin.add(rng.normal(size=20), rng.normal(size=20))
    assert not np.array_equal(twin.dz(twin.fit(r)), secants.dz(secants.fit(r)))
