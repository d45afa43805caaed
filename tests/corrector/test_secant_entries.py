"""Known entries of the interface Jacobian beside secants: one correction where all are known, and what is refused."""

import numpy as np
import pytest

import cosolve as cs

LABELS = ["a", "b", "c"]
J = np.array([[1.0, 0.5, 0.0], [-2.0, 1.0, 3.0], [0.25, 0.0, 1.0]])
ENTRIES = [(LABELS[i], LABELS[j], float(J[i, j])) for i in range(3) for j in range(3) if i != j and J[i, j]]


def corrected(secant: cs.Secant, count: int) -> np.ndarray:
    """Iterates of `J z = (1, 2, 3)` from zero."""
    secant.start_run(LABELS)
    secant.start_step()
    z = np.zeros(3)
    for _ in range(count):
        z = secant.correct(z, J @ z - [1.0, 2.0, 3.0], None)
    return z


def test_all_entries_known_is_newton():
    assert np.abs(corrected(cs.Secant(known=ENTRIES), 1) - np.linalg.solve(J, [1.0, 2.0, 3.0])).max() < 1e-14


def test_a_secant_beside_a_known_entry_of_the_same_row():
    """Row b has two entries: 3 is known, so that the secant finds -2 in one pair of iterates."""
    known = [entry for entry in ENTRIES if entry[:2] != ("b", "a")]
    secant = cs.Secant([("b", "a")], initial=0.0, known=known)
    assert np.abs(corrected(secant, 2) - np.linalg.solve(J, [1.0, 2.0, 3.0])).max() < 1e-12
    assert "known=[('a', 'b', 0.5)" in repr(secant)


def test_fields_entry_by_entry_and_sparse():
    """Four hundred numbers each, which are solved for with sparse matrices."""
    n = 400
    labels = [f"{name}[{k}]" for name in ("u", "f") for k in range(n)]
    secant = cs.Secant(known=[("u", "f", 0.5), ("f", "u", -3.0)])
    secant.start_run(labels)
    secant.start_step()
    eye = np.eye(n)
    full = np.block([[eye, 0.5 * eye], [-3.0 * eye, eye]])
    right = np.arange(2.0 * n)
    assert np.abs(full @ secant.correct(np.zeros(2 * n), -right, None) - right).max() < 1e-10


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"known": [("a", "b")]}, r"a known entry is \(variable of the row, variable it depends on, number\), not"),
        ({"known": [("a", "b", "much")]}, "a known entry is"),
        ({"known": [("a", "x", 1.0)]}, "pairs name 'x', but the coupling variables are 'a', 'b', 'c'"),
        (
            {"known": [("a", "b", 1.0)], "pairs": [("a", "b")]},
            r"\('a', 'b'\) is a pair and known; leave one of them out",
        ),
        ({"pairs": [("a", "b"), ("a", "c")]}, "the first of two pairs"),
    ],
)
def test_what_is_refused(options, said):
    with pytest.raises(cs.errors.SetupError, match=said):
        corrected(cs.Secant(**options), 1)


def test_a_slope_that_came_from_elsewhere_does_not_hold_a_variable_for_good():
    """The residual of `b` changes by 1 while `b` itself moves by 1e-12: the slope of 1e12 would not let it go."""
    secant = cs.Secant()
    secant.start_run(["a", "b"])
    secant.start_step()
    z, places = np.array([1.0, 1.0]), []
    for residual_of_b in (1e-12, 1.0, 1e-5, 1e-5):
        z = secant.correct(z, np.array([0.1, residual_of_b]), None)
        places.append(z[1])
    np.testing.assert_allclose(np.array(places[:3]) - 1.0, 0.0, atol=1e-11)
    np.testing.assert_allclose(places[3], 1.0 - 1e-5, rtol=1e-10)
