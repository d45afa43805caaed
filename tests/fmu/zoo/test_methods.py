"""Every method family over the zoo: the bits of the well-behaved twin, in the first run and in the second.

The twin's own numbers are those of the independent loop (test_loop.py), where that loop has the method.
"""

from functools import cache

import numpy as np
import pytest
from tests.fmu.zoo.members import ANIMALS
from tests.fmu.zoo.methods import COMPILED, FOUND_RATE, METHODS, ROLLBACK, TWINS, leads
from tests.fmu.zoo.pairs import pair, part, y

import cosolve as cs

#: these tell one story each: the flag of doStep, reset, first outputs, parameters
SOME = ("goes_back", "forgets_early", "reset_garbage", "outputs_late")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    (tmp_path / "rate.txt").write_text(f"{FOUND_RATE['working_folder']}\n")
    monkeypatch.chdir(tmp_path)


def cases(names, methods, rollback=ROLLBACK):
    """(animal, fmi, method) that are possible."""
    return [
        (name, fmi, method)
        for name in names
        for fmi in ANIMALS[name].versions
        for method in methods
        if not (method in rollback and "canGetAndSetFMUState" not in ANIMALS[name].flags)
    ]


def run_twice(a, fmi, method, **options):
    """`check`, then two runs of the same system; the outputs of the first, after the second was found equal."""
    how, step = METHODS[method]
    system = pair(a, fmi, leads() if "LeaderFollower" in method else None)
    if not isinstance(step, cs.Adaptive):
        cs.check(system, how, step)
    first, second = (y(cs.simulate(system, t_end=1.0, method=how, step=step, **options), a) for _ in range(2))
    for one, two in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, two, err_msg="second run")
    return first


@cache
def twin(name, fmi, method, rate):
    return run_twice(part(name, fmi, rate), fmi, method, compiled=False)


def same_as_twin(name, fmi, method, **options):
    isolated = options.pop("isolated", False)
    found = run_twice(part(name, fmi, isolated=isolated), fmi, method, **options)
    for one, two in zip(found, twin(TWINS[name], fmi, method, FOUND_RATE.get(name)), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.sample(18)
@pytest.mark.parametrize(("name", "fmi", "method"), cases(SOME, METHODS))
def test_readable_engine(name, fmi, method):
    same_as_twin(name, fmi, method, compiled=False)


@pytest.mark.sample(7)
@pytest.mark.parametrize(
    ("name", "fmi", "method"),
    cases(SOME, ("Jacobi(0)", "GaussSeidel(1)", "SemiImplicit(1), differences", "Implicit(1)")),
)
def test_compiled_engine(name, fmi, method):
    same_as_twin(name, fmi, method, compiled=True)


@pytest.mark.parametrize(("name", "method"), [("reset_crashes", "Jacobi(1)"), ("goes_back", "Implicit(1)")])
def test_process_of_its_own(name, method):
    same_as_twin(name, 2, method, isolated=True, compiled=False)


@pytest.mark.sample(1)
@pytest.mark.parametrize("fmi", [2, 3])
def test_substeps_and_kept_states(fmi):
    """An FMU that stands still when it is told that a rollback is possible is never told so."""
    for method in (cs.Jacobi(1), cs.SemiImplicit(1), cs.Implicit(1)):
        parts = (part(name, fmi, substeps=2) for name in ("goes_back", "plain"))
        found, want = (cs.simulate(pair(a, fmi), t_end=1.0, method=method, step=0.05)["a.y"] for a in parts)
        np.testing.assert_array_equal(found, want)
    ends = []
    for name in ("goes_back", "plain"):
        stepper = cs.Stepper(pair(part(name, fmi), fmi), method=cs.SemiImplicit(1), step=0.05, t_end=1.0)
        stepper.run_until(0.2)
        kept = stepper.save()
        stepper.run_until(0.5)
        there = stepper["a.y"]
        stepper.restore(kept)
        stepper.run_until(0.5)
        assert stepper["a.y"] == there
        ends.append(there)
    assert ends[0] == ends[1]


REST = [name for name in TWINS if name not in SOME]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "fmi", "method"), cases(REST, METHODS))
def test_all_in_the_readable_engine(name, fmi, method):
    same_as_twin(name, fmi, method, compiled=False)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "fmi", "method"), cases(TWINS, COMPILED, (*ROLLBACK, "Jacobi(1), adaptive")))
def test_all_in_the_compiled_engine(name, fmi, method):
    same_as_twin(name, fmi, method, compiled=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fmi", "method"),
    cases(
        TWINS,
        ("Jacobi(0)", "Jacobi(2)", "GaussSeidel(1)", "SemiImplicit(1)", "Implicit(1), Broyden", "LeaderFollower(1)"),
    ),
)
def test_all_in_a_process_of_their_own(name, fmi, method):
    same_as_twin(name, fmi, method, isolated=True)
