"""The added-mass string on non-matching meshes: evaluations per step, and the monolithic solution."""

from functools import cache

import numpy as np
import pytest
from examples.added_mass_string.model import TABLE, U_END, Model, march, simulate

import cosolve as cs
from cosolve.corrector import Aitken, Anderson, Broyden, IqnIls, IqnImvj, LineSearch, NewtonKrylov, Relaxation

RHO = tuple(TABLE)


@cache
def monolithic(rho, pluck=False):
    return Model(rho, pluck).monolithic()


@pytest.mark.covers("IJ-31")
@pytest.mark.parametrize(("rho", "ratio"), [(0.2, 0.1260), (1.0, 0.6302), (10.0, 6.3015)])
def test_the_fluid_is_as_heavy_as_in_the_reference_code(rho, ratio):
    assert Model(rho).ratio == pytest.approx(ratio, abs=1e-4)
    assert np.abs(monolithic(rho)[-1]).max() == pytest.approx(U_END[rho], abs=1e-10)


@pytest.mark.covers("IJ-31")
@pytest.mark.parametrize("rho", RHO)
@pytest.mark.parametrize(
    ("column", "corrector", "serial"),
    [
        ("jacobi", lambda p: Relaxation(1.0), False),
        ("optimal", lambda p: Relaxation(1 / (1 + p.ratio)), False),
        ("aitken", lambda p: Aitken(initial=0.1), True),
        ("broyden", lambda p: Broyden(), False),
        ("newton", lambda p: cs.Newton(), False),
    ],
    ids=["jacobi", "optimal", "aitken", "broyden", "newton"],
)
def test_evaluations_per_step_are_those_of_the_table(rho, column, corrector, serial):
    p = Model(rho)
    found = march(p, corrector(p), serial)
    expected = TABLE[rho][column]
    if expected is None:
        assert found.u is None
        return
    # Broyden with the heavy fluid depends on rounding: 10.04 to 11.38 by the order of sums and by the processor
    assert found.per_step == pytest.approx(expected, rel=0.1 if (column, rho) == ("broyden", 10.0) else 0.05)
    assert np.abs(found.u - monolithic(rho)[-1]).max() < (3e-9 if column in ("jacobi", "optimal") else 5e-10)


@pytest.mark.covers("IJ-31")
@pytest.mark.parametrize(
    ("rho", "column"),
    [
        (0.2, "jacobi"),
        (0.2, "optimal"),
        (0.2, "aitken"),
        (0.2, "broyden"),
        pytest.param(1.0, "jacobi", marks=pytest.mark.slow),
        (1.0, "optimal"),
        (1.0, "aitken"),
        pytest.param(10.0, "optimal", marks=pytest.mark.slow),
        (10.0, "aitken"),
        pytest.param(10.0, "broyden", marks=pytest.mark.slow),
    ],
)
def test_evaluations_per_step_of_runs_are_those_of_the_table_too(rho, column):
    """Runs of `Implicit`, which judge every entry instead of root mean squares: up to 3 % more evaluations.

    But for Broyden with rho = 1, which takes 8.3 instead of 4.0 (docs/validation/sicklinger.md).
    """
    p = Model(rho)
    corrector, sweep = {
        "jacobi": (Relaxation(1.0), "jacobi"),
        "optimal": (Relaxation(1 / (1 + p.ratio)), "jacobi"),
        "aitken": (Aitken(initial=0.1), "gauss-seidel"),
        "broyden": (Broyden(), "jacobi"),
    }[column]
    run = simulate(p, corrector, sweep)
    allowed = 0.1 if (column, rho) == ("broyden", 10.0) else 0.05  # see above
    assert (run.iterations + 1).mean() == pytest.approx(TABLE[rho][column], rel=allowed)


@pytest.mark.covers("IJ-31")
@pytest.mark.parametrize("rho", RHO)
def test_newton_krylov_spares_the_closing_product_that_the_table_counts(rho):
    """The table counts the product by which SciPy's GMRES checks its solution; ours follows from earlier ones."""
    p, solver = Model(rho), NewtonKrylov(rtol=1e-12, vectors=100, increment=1.0)  # affine: differences are exact
    found = march(p, solver)
    closing = len(solver.krylov_vectors) / p.steps
    assert found.per_step + closing == pytest.approx(TABLE[rho]["jfnk"], rel=0.05)
    assert np.abs(found.u - monolithic(rho)[-1]).max() < 1e-11


@pytest.mark.covers("IJ-31")
@pytest.mark.parametrize("rho", RHO)
def test_the_exact_jacobian_needs_two_evaluations_in_the_engine(rho):
    result = simulate(Model(rho), cs.Newton())
    assert (result.iterations == 1).all()
    assert np.abs(result["string.u"] - monolithic(rho)).max() < 3e-14


@pytest.mark.covers("IJ-31")
def test_plain_parallel_sweeps_diverge_with_a_heavy_fluid():
    with pytest.raises(cs.errors.ConvergenceError, match="did not converge"):
        simulate(Model(10.0), Relaxation(1.0))


@pytest.mark.sample(10)
@pytest.mark.covers("IJ-31")
@pytest.mark.parametrize("pluck", [False, True])
@pytest.mark.parametrize("rho", RHO)
@pytest.mark.parametrize(
    ("corrector", "sweep", "most"),
    [
        (Aitken(), "gauss-seidel", 25.0),
        (Broyden(), "jacobi", 14.0),
        (Broyden(), "gauss-seidel", 8.0),
        (Anderson(), "gauss-seidel", 12.0),
        (Anderson(depth=30), "jacobi", 20.0),
        (IqnIls(), "jacobi", 6.0),
        (IqnIls(), "gauss-seidel", 4.0),
        (IqnImvj(), "jacobi", 9.0),
        (IqnImvj(), "gauss-seidel", 5.0),
        (NewtonKrylov(), "jacobi", 8.0),
        (NewtonKrylov(), "gauss-seidel", 8.0),
        (LineSearch(cs.Newton()), "jacobi", 2.0),
    ],
    ids=lambda value: str(value),
)
def test_every_accelerator_reaches_the_monolithic_solution(corrector, sweep, most, rho, pluck):
    result = simulate(Model(rho, pluck), corrector, sweep)
    assert (result.iterations + 1).mean() <= most
    assert np.abs(result["string.u"] - monolithic(rho, pluck)).max() < 2e-9
