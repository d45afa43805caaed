"""Digests of functions: what changes the numbers changes them, what does not leaves them, in every process."""

import subprocess
import sys
from dataclasses import dataclass
from functools import partial

import numba
import numpy as np
import pytest

from cosolve.basics.digest import digest, may_be_equal

SOURCE = """
G = {glob}
NAMED = ("a", 1)

def helper(x):
    return {helper} * x

def outer(c):
    def build(rate, k={default}, *, m={keyword}):
        return [helper(rate) * k * c * G for _ in range(m)] + {constant}
    return build

build = outer({closure})
"""
AS_IT_IS = {"glob": 1.0, "helper": 2.0, "default": 3.0, "keyword": 4, "constant": [5.0], "closure": 6.0}


def made(**changed):
    namespace = {"__name__": "model"}
    exec(SOURCE.format(**{**AS_IT_IS, **changed}), namespace)
    return namespace["build"]


@pytest.mark.parametrize("what", AS_IT_IS)
def test_whatever_changes_the_numbers_changes_the_digest(what):
    other = {"keyword": 5, "constant": [5.5]}.get(what, 7.0)
    assert digest(made()) == digest(made())
    assert digest(made(**{what: other})) != digest(made())
    wrapped = [partial(made(), 1.0), partial(made(**{what: other}), 1.0)]
    assert digest(wrapped[0]) != digest(wrapped[1])


@dataclass(frozen=True)
class Data:
    mass: float
    table: np.ndarray


def test_data_counts_with_its_values():
    table = np.array([1.0, 2.0])
    assert digest(Data(1.0, table)) == digest(Data(1.0, table.copy()))
    assert digest(Data(1.0, table)) != digest(Data(1.0, table + 1e-15))
    assert digest(Data(1.0, table)) != digest(Data(1.5, table))
    assert digest([1, 2]) != digest([2, 1])
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest(np.zeros(2)) != digest(np.zeros((2, 1)))
    assert digest(np.array(["one", None], dtype=object)) != digest(np.array(["two", None], dtype=object))


def test_a_jitted_function_counts_with_its_python():
    one, two = (numba.njit(lambda x, c=c: c * x) for c in (1.0, 2.0))
    assert digest(one) != digest(two)


def test_a_function_that_names_itself_ends():
    def down(n):
        return down(n - 1) if n else 0

    assert digest(down) == digest(down)


def test_every_process_says_the_same():
    """Whatever the order of sets and the addresses of objects."""
    program = f"""
from cosolve.basics.digest import digest
namespace = {{"__name__": "model"}}
exec({SOURCE.format(**AS_IT_IS)!r}, namespace)
print(digest(namespace["build"], frozenset(["x", "y", "zz"]), object()))
"""
    said = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1


def test_digests_of_two_versions_of_python_cannot_be_compared():
    assert may_be_equal("3.11:aa", "3.12:bb")
    assert may_be_equal("3.11:aa", "3.11:aa")
    assert not may_be_equal("3.11:aa", "3.11:bb")
    assert not may_be_equal("3.11:aa", None)
