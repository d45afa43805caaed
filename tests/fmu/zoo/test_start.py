"""Initial values travel from FMU to FMU before initialisations end, where the initial state follows the inputs.

The `steady` animals begin in the steady state of their input, `y = 2 gain u`, and no output reacts to an input later.
"""

from itertools import pairwise

import numpy as np
import pytest
from tests.fmu.zoo.members import animal

import cosolve as cs

KINDS = pytest.mark.parametrize(("fmi", "kind"), [(f, k) for f in (2, 3) for k in ("co-simulation", "model-exchange")])
ANIMALS = pytest.mark.parametrize("name", ["steady", "steady_unsaid"])


def steady(fmi, kind="co-simulation", name="steady", gain=0.5, **options):
    return cs.load_fmu(animal(name, fmi), kind=kind, parameters={"gain": gain}, **options)


@KINDS
@ANIMALS
@pytest.mark.parametrize("method", [cs.Jacobi(0), cs.GaussSeidel(1), cs.SemiImplicit(1)], ids=lambda m: m.label)
@pytest.mark.parametrize("order", ["abc", "cba"])
def test_a_chain_in_steady_state_stays_there(fmi, kind, name, method, order):
    system = cs.System({each: steady(fmi, kind, name) for each in order})
    system.set("a.u", 5.0)
    system.connect("a.y", "b.u")
    system.connect("b.y", "c.u")
    result = cs.simulate(system, t_end=1.0, step=0.1, method=method)
    for each in "abc":
        np.testing.assert_allclose(result[f"{each}.y"], 5.0, rtol=1e-12)


@KINDS
def test_initial_values_pass_through_laws_and_formulas(fmi, kind):
    system = cs.System(
        {
            "c": steady(fmi, kind),
            "double": cs.Static(lambda t, u: 2.0 * u, inputs=["u"], outputs=["y"]),
            "a": steady(fmi, kind),
        }
    )
    system.set("a.u", 5.0)
    system.law("double.u", lambda y: y - 1.0, of="a.y")
    system.law("c.u", lambda y: 3.0 * y, of="double.y")
    result = cs.simulate(system, t_end=0.5, step=0.1, method=cs.Jacobi(0))
    np.testing.assert_allclose(result["c.y"], 24.0, rtol=1e-12)


@KINDS
@ANIMALS
@pytest.mark.parametrize("gains", [(0.5, -0.5), (0.4, 0.6, -0.9)], ids=["two", "three"])
def test_a_loop_of_initialisations_is_solved(fmi, kind, name, gains):
    """The first has `u = 1 + y / 2` of the last, the others the output before: 2/3 and -2/3, or three unlike ones."""
    names = "abc"[: len(gains)]
    system = cs.System({n: steady(fmi, kind, name, gain=gain) for n, gain in zip(names, gains, strict=True)})
    system.law("a.u", lambda y: 1.0 + 0.5 * y, of=f"{names[-1]}.y")
    for source, target in pairwise(names):
        system.connect(f"{source}.y", f"{target}.u")
    result = cs.simulate(system, t_end=0.5, step=0.1, method=cs.Jacobi(0))
    factors = np.cumprod(2.0 * np.array(gains))
    for n, factor in zip(names, factors, strict=True):
        np.testing.assert_allclose(result[f"{n}.y"], factor / (1.0 - 0.5 * factors[-1]), rtol=1e-11)


@pytest.mark.parametrize("fmi", [2, 3])
def test_outputs_that_come_with_the_end_of_the_initialisation_come_in_time(fmi):
    """Sources end theirs first."""
    system = cs.System({each: steady(fmi, name="steady_late") for each in "cba"})
    system.set("a.u", 5.0)
    system.connect("a.y", "b.u")
    system.connect("b.y", "c.u")
    result = cs.simulate(system, t_end=0.5, step=0.1, method=cs.Jacobi(0))
    for each in "abc":
        np.testing.assert_allclose(result[f"{each}.y"], 5.0, rtol=1e-12)


@pytest.mark.parametrize("fmi", [2, 3])
def test_a_start_that_is_not_consistent_is_told(fmi):
    """In a loop no order is right for those whose outputs come late."""
    system = cs.System({"a": steady(fmi, name="steady_late"), "b": steady(fmi, name="steady_late")})
    system.law("a.u", lambda y: 1.0 + 0.5 * y, of="b.y")
    system.connect("a.y", "b.u")
    words = r"the start is not consistent: 'a' ended its initialisation at t = 0 with 'u' = 1, and it is 1.5 since"
    with pytest.warns(cs.errors.AccuracyWarning, match=words) as caught:
        cs.simulate(system, t_end=0.5, step=0.1, method=cs.Jacobi(0))
    assert len(str(caught[0].message)) < 300


@pytest.mark.parametrize("fmi", [2, 3])
def test_the_same_in_processes_of_their_own(fmi):
    system = cs.System({each: steady(fmi, isolated=True) for each in "cba"})
    system.set("a.u", 5.0)
    system.connect("a.y", "b.u")
    system.connect("b.y", "c.u")
    result = cs.simulate(system, t_end=0.2, step=0.1, method=cs.Jacobi(0))
    np.testing.assert_allclose(result["c.y"], 5.0, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_random_networks_of_initialisations(seed):
    """Every network of steady FMUs, connections and laws, in any order and with loops, starts at its fixed point."""
    rng = np.random.default_rng(seed)
    n, fmi = int(rng.integers(2, 7)), int(rng.integers(2, 4))
    names = [f"m{k}" for k in rng.permutation(n)]
    gains = rng.uniform(-0.6, 0.6, size=n)
    kinds = [["co-simulation", "model-exchange"][int(rng.integers(2))] for _ in range(n)]
    animals = [["steady", "steady_unsaid"][int(rng.integers(2))] for _ in range(n)]
    parts = {x: steady(fmi, kind, a, gain=g / 2) for x, kind, a, g in zip(names, kinds, animals, gains, strict=True)}
    system, W, c = cs.System(parts), np.zeros((n, n)), rng.normal(size=n)
    for i, name in enumerate(names):  # y_i = g_i (W y + c)_i
        sources = [j for j in range(n) if j != i and rng.uniform() < 0.4]
        if not sources:
            system.set(f"{name}.u", c[i])
        elif len(sources) == 1 and rng.uniform() < 0.5:
            W[i, sources[0]], c[i] = 1.0, 0.0
            system.connect(f"{names[sources[0]]}.y", f"{name}.u")
        else:
            W[i, sources] = rng.uniform(-1, 1, size=len(sources))
            weights, constant = W[i, sources].copy(), c[i]
            law = lambda *y, w=weights, k=constant: float(w @ np.array(y) + k)  # noqa: E731
            system.law(f"{name}.u", law, of=[f"{names[j]}.y" for j in sources])
    want = np.linalg.solve(np.eye(n) - gains[:, None] * W, gains * c)
    result = cs.simulate(system, t_end=0.2, step=0.1, method=[cs.Jacobi(0), cs.GaussSeidel(0)][seed % 2])
    found = np.array([result[f"{name}.y"] for name in names])
    np.testing.assert_allclose(found, np.tile(want[:, None], 3), rtol=0, atol=1e-9 * (1.0 + np.abs(want).max()))
