"""What is added up in equations is the size that their residuals are measured by: it follows values that grow."""

from typing import Any

import numpy as np
import pytest

import cosolve as cs
from cosolve.engine.measure import Measure


def growing() -> cs.System:
    """Two parts that grow by 16 % in a step of 0.05, and equations whose terms are a thousand times their values."""

    def part(x: float) -> cs.Linear:
        return cs.Linear([[3.0]], [[0.3]], [[1.0]], x0=[x], inputs=["u"], outputs=["y"])

    system = cs.System({"a": part(1.0), "b": part(2.0)})
    system.equations({"f": {"a.u": 1.0, "b.u": -1.0}}, lambda f, a, b: 1e3 * (f - 0.5 * (b - a)), of=["a.y", "b.y"])
    return system


def test_terms_are_summed_again_whenever_values_have_doubled() -> None:
    measure = Measure(growing().plan(), cs.SemiImplicit(1).declaration)
    z, told = np.zeros(1), []
    for size in (1.0, 1.9, 2.1, 1.0, 4.0, 4.3, 8.5, 8.7):
        told.append(measure.outgrows_terms(z, np.array([0.0, -size])))
    # against 1, 1, 1, 2.1, 2.1, 2.1, 4.3, 4.3
    assert told == [True, False, True, False, False, True, False, True]
    assert measure.outgrows_terms(np.array([-20.0]), np.zeros(2))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", [cs.SemiImplicit(1), cs.Implicit(1)], ids=["SemiImplicit", "Implicit"])
def test_slow_growth_costs_no_iterations_and_ends_no_run(method: cs.Method) -> None:
    """By 20 powers of ten: the residual left by rounding is judged by terms of today, not by those of the start."""
    run: dict[str, Any] = {"t_end": 15.0, "step": 0.05, "method": method, "compiled": False}
    result = cs.simulate(growing(), **run)
    assert result.stats.steps == 300
    assert result.stats.iterations <= 300
    assert result["a.y"][-1] > 1e19
    total = result["a.y"] + result["b.y"]  # on which the forces do nothing
    assert total == pytest.approx(3.0 * np.exp(3.0 * result.t), rel=1e-9)
