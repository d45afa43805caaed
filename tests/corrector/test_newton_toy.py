"""The tables 2.1 to 2.5 of Sicklinger (2014): every row is one evaluation of F."""

import numpy as np
import pytest
from examples.newton_toy.model import PUBLISHED, iterate, system

import cosolve as cs
from cosolve.corrector import Broyden, LineSearch, NewtonKrylov

#: F is evaluated to a few rounding units, so the last rows cannot agree to more digits than that.
ROUNDING = 4e-16


def agrees(found, printed, digits):
    return all(abs(a - b) <= 10.0**-digits * b + ROUNDING for a, b in zip(found, printed, strict=True))


@pytest.mark.covers("IJ-02")
def test_newton_takes_four_rows():
    rows = iterate(cs.Newton())
    assert len(rows.norms) == rows.evaluations == 4
    assert agrees(rows.norms[:3], PUBLISHED["T2.1"][:3], 12)
    assert agrees(rows.norms[3:], PUBLISHED["T2.1"][3:], 8.2)  # 2.520450708e-8; printed with nine digits
    errors = [np.linalg.norm(x - np.pi / 4) for x in rows.x[1:]]
    assert agrees(errors[:2], [0.3034928278335036, 0.0047464710388979], 12)
    assert all(b / a**2 < 0.5 for a, b in zip(rows.norms[1:], rows.norms[2:], strict=False))  # quadratic


@pytest.mark.covers("IJ-03")
def test_modified_newton_takes_seventeen_rows():
    rows = iterate(cs.Newton(refresh="step"))
    assert len(rows.norms) == 17
    assert agrees(rows.norms[:4], PUBLISHED["T2.2"], 12)
    assert rows.norms[-1] == pytest.approx(7.538526886e-7, rel=1e-9)
    assert rows.norms[-1] / rows.norms[-2] == pytest.approx(2**0.5 - 1, abs=1e-6)


@pytest.mark.covers("IJ-04")
@pytest.mark.parametrize("form", ["direct", "inverse"])
def test_broyden_from_the_exact_jacobian_takes_five_rows(form):
    rows = iterate(Broyden(initial="exact", form=form))
    assert len(rows.norms) == 5
    assert agrees(rows.norms[:2], PUBLISHED["T2.3"][:2], 8)
    assert agrees(rows.norms[2:4], PUBLISHED["T2.3"][2:4], 11)
    assert rows.norms[4] == pytest.approx(PUBLISHED["T2.3"][4], rel=1e-7)


@pytest.mark.covers("IJ-04")
@pytest.mark.parametrize("form", ["direct", "inverse"])
def test_broyden_from_the_identity_finds_another_root_in_eight_rows(form):
    rows = iterate(Broyden(form=form))
    assert len(rows.norms) == 8
    assert agrees(rows.norms[:6], PUBLISHED["T2.4"][:6], 10)
    assert rows.norms[6] == pytest.approx(PUBLISHED["T2.4"][6], rel=1e-8)
    assert rows.norms[7] == pytest.approx(PUBLISHED["T2.4"][7], rel=2e-6)  # of 5e-10, known to a rounding unit
    assert rows.x[-1] == pytest.approx([-1.0100908470, -3.7022981334], abs=1e-9)
    assert rows.x[-1].sum() == pytest.approx(-1.5 * np.pi, abs=1e-8)


@pytest.mark.covers("IJ-04")
@pytest.mark.parametrize("initial", [1.0, "exact"])
def test_both_forms_of_broyden_give_the_same_iterates(initial):
    direct, inverse = (iterate(Broyden(initial=initial, form=form)) for form in ("direct", "inverse"))
    assert np.allclose(direct.x, inverse.x, rtol=0, atol=1e-12)


@pytest.mark.covers("IJ-05")
def test_newton_krylov_takes_four_rows_with_two_vectors_each():
    solver = NewtonKrylov(rtol=1e-12)
    rows = iterate(solver)
    assert len(rows.norms) == 4
    assert solver.krylov_vectors == [2, 2, 2]
    assert rows.evaluations == 4 + 6
    assert agrees(rows.norms[:3], PUBLISHED["T2.5"][:3], 6.3)  # digits beyond depend on the increment
    assert rows.norms[3] == pytest.approx(PUBLISHED["T2.5"][3], rel=2e-3)


@pytest.mark.covers("IJ-05")
def test_gmres_solves_a_random_system():
    rng = np.random.default_rng(5)
    A, b = rng.normal(size=(20, 20)) + 5 * np.eye(20), rng.normal(size=20)

    class Line:
        def residual(self, z):
            return A @ z - b

    solver, z = NewtonKrylov(rtol=1e-13, increment=1.0), rng.normal(size=20)  # exact differences: it is affine
    z = solver.correct(z, A @ z - b, Line())
    assert np.abs(z - np.linalg.solve(A, b)).max() < 1e-10
    assert solver.krylov_vectors[0] <= 20


@pytest.mark.covers("IJ-02", "IJ-03", "IJ-04", "IJ-05")
@pytest.mark.parametrize(
    ("corrector", "rows"),
    [
        (cs.Newton(), 4),
        (cs.Newton(refresh="step"), 17),
        (Broyden(initial="exact"), 5),
        (Broyden(), 8),
        (NewtonKrylov(rtol=1e-12), 4),
        (LineSearch(cs.Newton()), 4),
    ],
    ids=repr,
)
def test_the_engine_takes_the_same_rows(corrector, rows):
    # largest entry, of no size but its own; the tables have |F| < 1e-6
    method = cs.Implicit(degree=0, tol=7e-7, absolute=True, corrector=corrector)
    result = cs.simulate(system(), t_end=1.0, method=method, step=1.0)
    assert list(result.iterations) == [rows - 1]
    assert result["x1"][-1] == pytest.approx(iterate(corrector).x[-1][0], abs=1e-7)
