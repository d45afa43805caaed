"""Model exchange animals: the bits of the well-behaved twin, and the independent loop up to the solver's tolerance."""

import numpy as np
import pytest
from tests.fmu.zoo.members import ANIMALS
from tests.fmu.zoo.methods import FOUND_RATE, METHODS, TWINS, leads
from tests.fmu.zoo.pairs import expected, pair, part, y
from tests.fmu.zoo.test_said import ended

import cosolve as cs

CASES = [(n, fmi) for n in TWINS if "ModelExchange" in ANIMALS[n].kinds for fmi in ANIMALS[n].versions]
KIND = {"kind": "model exchange", "rtol": 1e-10, "atol": 1e-12}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    (tmp_path / "rate.txt").write_text(f"{FOUND_RATE['working_folder']}\n")
    monkeypatch.chdir(tmp_path)
    expected.cache_clear()


def twice(a, fmi, method):
    how, step = METHODS[method]
    system = pair(a, fmi, leads() if "LeaderFollower" in method else None)
    cs.check(system, how, step)
    first, second = (y(cs.simulate(system, t_end=1.0, method=how, step=step), a) for _ in range(2))
    for one, two in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, two, err_msg="second run")
    return first


@pytest.mark.sample(8)
@pytest.mark.parametrize(("name", "fmi"), CASES)
def test_the_loop(name, fmi):
    """A lag with its input held is advanced by the co-simulation FMU exactly, by our solver to 1e-10."""
    for one, two in zip(twice(part(name, fmi, **KIND), fmi, "Jacobi(0)"), expected(name, fmi), strict=True):
        np.testing.assert_allclose(one, two, rtol=0, atol=2e-9)


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", ["Jacobi(1)", "SemiImplicit(1)", "Implicit(1)"])
@pytest.mark.parametrize(("name", "fmi"), [case for case in CASES if case[0] in ("reset_garbage", "outputs_late")])
def test_the_twin(name, fmi, method):
    want = twice(part("plain", fmi, FOUND_RATE.get(name), **KIND), fmi, method)
    for one, two in zip(twice(part(name, fmi, **KIND), fmi, method), want, strict=True):
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("method", [name for name in METHODS if "adaptive" not in name])
@pytest.mark.parametrize(("name", "fmi"), CASES)
def test_all_twins(name, fmi, method):
    test_the_twin(name, fmi, method)


@pytest.mark.parametrize("fmi", [2, 3])
def test_one_that_ends_the_simulation(fmi):
    system = pair(part("ends", fmi, **KIND), fmi)
    for _ in range(2):
        result, words = ended(system, cs.Jacobi(0))
        assert "'a'" in words
        assert 0.5 - 1e-9 < result.t[-1] < 0.55 + 1e-9
