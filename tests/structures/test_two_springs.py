"""Two springs in four decompositions: printed eigenvalues, best relaxation factors, one-corrector property (IJ 3.3)."""

import numpy as np
import pytest
from examples.two_springs.model import (
    KINDS,
    LOAD,
    best_factor,
    eigenvalues,
    gauss_seidel_eigenvalue,
    interface_matrix,
    radius,
    system,
)
from hypothesis import given
from hypothesis import strategies as st

import cosolve as cs

stiffness = st.floats(0.05, 20.0) | st.floats(-20.0, -0.05)
factor = st.floats(-2.0, 0.5)

# Reference code: (k1, k2) -> (alpha, rho) for D/D, D/N, N/D, N/N. The last two of (0.1, 1) are ours, see
# docs/validation/sicklinger.md.
BEST = {
    (1.0, 1.0): [(-0.5, 0.7071)] * 4,
    (1.0, 2.0): [(-0.5, 0.5), (-0.667, 0.5774), (-0.5, 0.5), (-0.667, 0.5774)],
    (2.0, 1.0): [(-0.333, 0.8165), (-0.333, 0.8165), (-0.5, 0.7906), (-0.5, 0.7906)],
    (10.0, 1.0): [(-0.091, 0.9535), (-0.091, 0.9535), (-0.5, 0.8515), (-0.5, 0.8515)],
    (0.1, 1.0): [(-0.909, 0.3015), (-0.909, 0.3015), (-0.182, 0.7977), (-0.182, 0.7977)],
}


@pytest.mark.covers("IJ-10")
@pytest.mark.parametrize("kind", KINDS)
@given(stiffness, stiffness, factor)
def test_printed_eigenvalues(kind: str, k1: float, k2: float, alpha: float) -> None:
    """Against H = I + alpha G to 1e-12; where the two meet they are ill-conditioned, but not their sum and product."""
    H = np.eye(2) + alpha * interface_matrix(kind, k1, k2)
    found = eigenvalues(kind, k1, k2, alpha)
    size = 1 + np.abs(H).max() ** 2
    if abs(found[0] - found[1]) > 0.1 * size**0.5:
        assert np.sort_complex(found) == pytest.approx(np.sort_complex(np.linalg.eigvals(H)), abs=1e-12 * size)
    assert found.sum() == pytest.approx(np.trace(H), abs=1e-12 * size)
    assert found.prod() == pytest.approx(np.linalg.det(H), abs=1e-12 * size)


@pytest.mark.sample(3)
@pytest.mark.covers("IJ-10")
@pytest.mark.parametrize("pair", BEST)
def test_best_constant_factors(pair: tuple[float, float]) -> None:
    """The reference code's table, to its digits; D/N also in closed form."""
    for kind, printed in zip(KINDS, BEST[pair], strict=True):
        alpha, rho = best_factor(kind, *pair)
        assert (alpha, rho) == (pytest.approx(printed[0], abs=6e-4), pytest.approx(printed[1], abs=6e-5))
    q = pair[0] / pair[1]
    assert best_factor("D/N", *pair) == pytest.approx((-1 / (1 + q), np.sqrt(q / (1 + q))), abs=1e-6)


@pytest.mark.covers("IJ-10")
@given(stiffness, stiffness)
def test_gauss_seidel_has_half_the_jacobi_iterations(k1: float, k2: float) -> None:
    """rho_JC^2 = |H_GS| for the unrelaxed iteration; the best factor makes Gauss-Seidel exact in one iteration."""
    H = gauss_seidel_eigenvalue("D/N", k1, k2, -1.0)
    assert radius("D/N", k1, k2, -1.0) ** 2 == pytest.approx(abs(H), rel=1e-12)
    if abs(1 + k1 / k2) > 1e-3:
        assert gauss_seidel_eigenvalue("D/N", k1, k2, -1 / (1 + k1 / k2)) == pytest.approx(0.0, abs=1e-12)


def relaxed(kind: str, k1: float, k2: float, alpha: float) -> cs.Result:
    """One macro step of a run that iterates `U <- U + alpha R`; our factor has the other sign."""
    corrector = cs.Relaxation(-alpha)
    method = cs.Implicit(degree=0, tol=1e-11, absolute=True, max_iterations=4000, corrector=corrector)
    return cs.simulate(system(kind, k1, k2), t_end=1.0, method=method, step=1.0)


@pytest.mark.covers("IJ-10")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pair", [(1.0, 2.0), (10.0, 1.0), (0.1, 1.0)])
def test_a_run_contracts_as_the_eigenvalues_say(pair: tuple[float, float], kind: str) -> None:
    """Residuals of `Relaxation` obey `r[n+1] = s r[n] - p r[n-1]`, s and p sum and product of the printed eigenvalues.

    With the best factor of the table and with half of it. What the engine records is the largest entry of `r`; rows of
    the 2 x 2 problem are told apart by the first two residuals, which follow from the start.
    """
    (best, rho), G = best_factor(kind, *pair), interface_matrix(kind, *pair)
    for alpha, rate in ((best, rho), (0.5 * best, float(radius(kind, *pair, 0.5 * best)))):
        run = relaxed(kind, *pair, alpha)
        assert run["one.u"][-1] == pytest.approx(LOAD / sum(pair), rel=1e-9)
        norms, (first, second) = run.residual_norms[-1], eigenvalues(kind, *pair, alpha)
        loads = np.array([0.0 if kind[0] == "D" else LOAD / pair[0], -LOAD if kind[0] == "D" else 0.0])
        r = [loads, loads + alpha * G @ loads]  # nothing is displaced at the start
        while len(r) < len(norms):
            r.append(((first + second) * r[-1] - first * second * r[-2]).real)
        seen = norms > 1e-9
        assert norms[seen] == pytest.approx(np.abs(r).max(axis=1)[seen], rel=1e-4)
        assert norms[-1] <= 1e-11
        assert (norms[-1] / norms[0]) ** (1 / (len(norms) - 1)) == pytest.approx(rate, rel=0.1)


@pytest.mark.covers("IJ-10")
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_converges_where_the_map_says_so(kind: str) -> None:
    """On a grid of stiffnesses, negative ones too, and of factors: on both sides of the limit."""
    found = {True: 0, False: 0}
    for alpha in (-1.0, -0.5, -0.1):
        for k1 in (-4.5, -0.5, 0.5, 2.5):
            for k2 in (-2.5, 0.5, 4.5):
                rho = float(radius(kind, k1, k2, alpha))
                if abs(rho - 1) < 0.05 or abs(k1 + k2) < 1e-9:
                    continue
                found[rho < 1] += 1
                if rho < 1:
                    assert relaxed(kind, k1, k2, alpha)["two.u"][-1] == pytest.approx(LOAD / (k1 + k2), rel=1e-6)
                else:
                    with pytest.raises(cs.errors.ConvergenceError, match="did not converge"):
                        relaxed(kind, k1, k2, alpha)
    assert min(found.values()) >= 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("k1", "k2"), [(1.0, 1.0), (10.0, 1.0), (0.1, 1.0), (3.0, -1.0)])
def test_newton_needs_one_correction_in_every_decomposition(kind: str, k1: float, k2: float) -> None:
    result = cs.simulate(system(kind, k1, k2), t_end=1.0, method=cs.Implicit(degree=0, tol=1e-9), step=1.0)
    assert result.iterations.tolist() == [1]
    for name in ("one.u", "two.u"):
        assert result[name][-1] == pytest.approx(LOAD / (k1 + k2), rel=1e-9)
