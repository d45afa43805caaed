"""Balanced placement: deterministic, never worse than the bound of the rule, and what it cannot place is named."""

from itertools import product

import hypothesis.strategies as st
import pytest
from hypothesis import given

import cosolve as cs
from cosolve.basics.placement import balanced, refuse_bad_placement, told


def load(placement, costs, size):
    return max(sum(c for name, c in costs.items() if placement[name] == rank) for rank in range(size))


@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=6), st.integers(1, 3))
def test_the_largest_load_is_within_a_third_of_the_best(values, size):
    """Graham (1969): 4/3 - 1/(3 m) for the dearest first."""
    costs = {f"s{k}": value for k, value in enumerate(values)}
    found = balanced(costs, costs, size)
    best = min(
        load(dict(zip(costs, ranks, strict=True)), costs, size) for ranks in product(range(size), repeat=len(costs))
    )
    assert load(found, costs, size) <= (4 / 3 - 1 / (3 * size)) * best * (1 + 1e-12)
    assert found == balanced(costs, dict(reversed(costs.items())), size)


def test_fixed_ones_stay_and_the_others_make_room():
    assert balanced("abcd", {"a": 5.0, "b": 1.0, "c": 1.0, "d": 1.0}, 2, fixed={"d": 0}) == {
        "a": 1,
        "b": 0,
        "c": 0,
        "d": 0,
    }


def test_who_was_not_measured_costs_the_mean():
    assert balanced("abc", {"a": 1.0, "b": 3.0}, 2) == {"a": 1, "b": 0, "c": 1}


def test_more_ranks_than_subsystems_is_said():
    assert told({"a": 0, "b": 1}, 3) == "3 ranks: 'a' on rank 0, 'b' on rank 1; nothing to do for rank 2"


@pytest.mark.parametrize(
    ("placement", "words"), [({"x": 0}, "no subsystem 'x'"), ({"a": -1}, "whole number"), ({"a": 2}, "2 ranks")]
)
def test_bad_placements_are_refused(placement, words):
    with pytest.raises(cs.errors.SetupError, match=words):
        refuse_bad_placement(["a", "b"], placement, 2)
