"""The large-field benchmark without its sleep: memory that grows with n, not with n squared, and the right answer."""

import tracemalloc
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from tests.choice import quick

PATH = Path(__file__).resolve().parents[2] / "benchmarks" / "large_field.py"


@pytest.fixture(scope="module")
def large_field():
    spec = spec_from_file_location("large_field", PATH)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def peak(large_field, n, sweep):
    """Bytes held at most by a run of one step, and its result."""
    tracemalloc.start()
    try:
        result = large_field.simulate(n, steps=1, sweep=sweep)
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("sweep", "n"),
    quick([("jacobi", 100_000), ("gauss-seidel", 100_000), ("gauss-seidel", 20_000)], ("gauss-seidel", 20_000)),
)
def test_a_field_of_100_000_values_stays_far_below_a_gigabyte(large_field, sweep, n):
    """Places for columns that are not used yet count here, though the system never provides them."""
    large, result = peak(large_field, n, sweep)
    assert large < 1e4 * n
    small, _ = peak(large_field, n // 5, sweep)
    assert large / small < 6.0  # five times the values; n squared would be 25
    u, f = result["string.u"][-1], result["bed.f"][-1]
    assert np.abs(f + (800.0 + 2e4 * u * u) * u).max() < 1e-6  # 1e-8 of 100 N/m
    assert np.abs(u).max() > 1e-3  # it moves


def test_the_number_of_corrections_does_not_grow_with_the_field(large_field):
    counts = [int(large_field.simulate(n, steps=3).stats.iterations) for n in (2_000, 20_000)]
    assert counts[1] <= counts[0] + 3


def test_the_share_of_the_subsystems_is_in_the_statistics(large_field):
    result = large_field.simulate(500, steps=2, seconds=0.002)
    calls = result.stats.calls["string"]
    assert calls == result.stats.calls["bed"]
    assert all(result.stats.seconds[name] >= 0.002 * calls for name in ("string", "bed"))
    assert sum(result.stats.seconds.values()) < result.stats.wall_seconds
