"""The interface Jacobian, assembled from subsystem slopes, is the residual's derivative (Sicklinger (2014), 4.2)."""

from collections.abc import Callable

import numpy as np
import pytest
from examples.algebraic_loop.model import system as algebraic_loop
from examples.bspk6.model import H as BSPK6_H
from examples.bspk6.model import system as bspk6
from examples.multi_code.model import SETTING_2
from examples.multi_code.model import system as multi_code
from examples.truss_truss.model import SOURCE
from examples.truss_truss.model import system as truss_truss

import cosolve as cs
from cosolve.corrector import InterfaceProblem


class Probe(cs.Newton):
    """Newton that differences the residual around each iterate and keeps both matrices."""

    def __init__(self, increments: np.ndarray) -> None:
        super().__init__("iteration")
        self.increments = increments
        self.pairs: list[tuple[np.ndarray, np.ndarray]] = []

    def __deepcopy__(self, memo: object) -> "Probe":
        return self

    def correct(self, z: np.ndarray, r: np.ndarray, problem: InterfaceProblem) -> np.ndarray:
        columns = []
        for m, increment in enumerate(self.increments):
            shift = np.zeros(len(z))
            shift[m] = increment
            difference = problem.residual(z + shift) - problem.residual(z - shift)
            columns.append(difference / (2.0 * increment))
        problem.residual(z)
        self.pairs.append((problem.jacobian(), np.array(columns).T))
        problem.residual(z)
        return super().correct(z, r, problem)


CASES = {
    "truss versus truss": (lambda: truss_truss(SOURCE), SOURCE.h, 3, [3e-3, 1e-6]),
    "multi-code": (lambda: multi_code(SETTING_2), SETTING_2.h, 3, [1e-1] * 4 + [1e-4]),
    "BspK6": (bspk6, BSPK6_H, 3, [1e-3] * 6),
    "algebraic loop": (lambda: algebraic_loop((1.0, 1.0)), 1.0, 1, [1e-4] * 2),
}


@pytest.mark.covers("IJ-01")
@pytest.mark.parametrize("case", CASES)
def test_against_central_differences(case: str) -> None:
    """1e-7 of every single entry; where the matrix has a zero, the residual does not react at all."""
    build: Callable[[], cs.System]
    build, h, steps, increments = CASES[case]
    probe = Probe(np.array(increments))
    method = cs.Implicit(degree=0, tol=1e-10, corrector=probe)
    cs.simulate(build(), t_end=steps * h, method=method, step=h)
    assert len(probe.pairs) >= steps
    for J, differenced in probe.pairs:
        assert differenced == pytest.approx(J, rel=1e-7, abs=0.0)
