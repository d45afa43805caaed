"""The Newton iteration of the dolfinx worker without dolfinx: its solver's settings, numbers of points, failures."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cosolve.fields.adapters import dolfinx_worker as worker

OURS = np.array([2, 0, 3, 1])  # the caller's number of each point of dolfinx
FREE = np.repeat([True, False, True, True], 2)  # in the numbers of dolfinx
_rng = np.random.default_rng(5)
K = _rng.normal(size=(8, 8))
K = K @ K.T + 8.0 * np.eye(8)
MASS = np.diag(_rng.uniform(1.0, 2.0, size=8))
LOAD = _rng.normal(size=(4, 2))  # in the numbers of the caller


class Solver:
    """A linear solver with PETSc's defaults: what is not asked to factorise is not exact."""

    reason = 4

    def create(self, comm: Any) -> "Solver":
        self.kind, self.pc = "gmres", SimpleNamespace(kind="ilu")
        self.pc.setType = lambda kind: setattr(self.pc, "kind", kind)
        return self

    def setOperators(self, matrix: Any) -> None:
        self.matrix = matrix.values

    def setType(self, kind: str) -> None:
        self.kind = kind

    def getPC(self) -> Any:
        return self.pc

    def solve(self, right: Any, into: Any) -> None:
        if np.linalg.matrix_rank(self.matrix) < len(self.matrix):
            self.reason = -11
        elif self.pc.kind == "lu":
            into.array[:] = np.linalg.solve(self.matrix, right.array)
        else:
            into.array[:] = right.array / np.diag(self.matrix)
        if self.kind != "preonly":
            into.array *= 1.0 + 1e-5

    def destroy(self) -> None: ...


def prepare(monkeypatch: pytest.MonkeyPatch, stiffness: Any = K, cubic: float = 0.0) -> list[int]:
    """A solid with the forces `K d + cubic d**3 + inertia M d`; counts its tangents."""
    d, inertia, tangents = np.zeros(8), SimpleNamespace(value=np.nan), list[int]()

    def vector(values: Any) -> Any:
        return SimpleNamespace(array=np.array(values), destroy=lambda: None)

    def assemble_vector(form: str) -> Any:
        assert form == "forces"
        return vector(stiffness @ d + cubic * d**3 + inertia.value * MASS @ d)

    def assemble_matrix(form: str, fixed: list[str]) -> Any:
        assert (form, fixed) == ("tangent", ["held"])
        values = stiffness + np.diag(3.0 * cubic * d**2) + inertia.value * MASS
        values[~FREE], values[:, ~FREE] = 0.0, 0.0
        values[~FREE, ~FREE] = 1.0
        tangents.append(1)
        done = {name: lambda: None for name in ("assemble", "destroy")}
        return SimpleNamespace(values=values, comm=None, createVecRight=lambda: vector(np.zeros(8)), **done)

    petsc = SimpleNamespace(assemble_vector=assemble_vector, assemble_matrix=assemble_matrix)
    made = {"petsc": petsc, "free": FREE, "ours": OURS, "inertia": inertia, "forces": "forces", "tangent": "tangent"}
    made |= {"fixed": "held", "d": SimpleNamespace(x=SimpleNamespace(array=d))}
    monkeypatch.setattr(worker, "_made", made)
    monkeypatch.setattr(worker, "import_module", lambda name: SimpleNamespace(KSP=Solver))
    return tangents


def expected(inertia: float) -> np.ndarray:
    """The solution of the linear solid, in the numbers of the caller."""
    matrix, found = (K + inertia * MASS)[np.ix_(FREE, FREE)], np.zeros(8)
    found[FREE] = np.linalg.solve(matrix, LOAD[OURS].ravel()[FREE])
    points = np.empty((4, 2))
    points[OURS] = found.reshape(-1, 2)
    return points.ravel()


@pytest.mark.parametrize("inertia", [0.0, 3.0])
def test_a_linear_solid_takes_one_correction(inertia: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a second look, after which nothing changes: the linear solver is exact."""
    tangents = prepare(monkeypatch)
    found = worker.solve(np.ones(8), LOAD.ravel(), inertia, 1e-10, 2)["d"]
    assert found == pytest.approx(expected(inertia), abs=1e-13)
    assert len(tangents) == 2


def test_a_nonlinear_solid(monkeypatch: pytest.MonkeyPatch) -> None:
    tangents = prepare(monkeypatch, cubic=4.0)
    first = worker.solve(np.zeros(8), LOAD.ravel(), 1.0, 1e-12, 20)["d"]
    needed = len(tangents)
    again = worker.solve(first, LOAD.ravel(), 1.0, 1e-12, 20)["d"]
    assert again == pytest.approx(first, abs=1e-13)
    assert len(tangents) - needed < needed <= 7
    d = first.reshape(-1, 2)[OURS].ravel()
    left = (K + MASS) @ d + 4.0 * d**3 - LOAD[OURS].ravel()
    assert left[FREE] == pytest.approx(0.0, abs=1e-11)
    assert not d[~FREE].any()


def test_what_cannot_be_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(monkeypatch, cubic=4.0)
    with pytest.raises(ArithmeticError, match="did not converge in 1 iterations"):
        worker.solve(np.zeros(8), LOAD.ravel(), 1.0, 1e-12, 1)
    with pytest.raises(ArithmeticError, match="elastic forces are not finite"):
        worker.solve(np.full(8, np.nan), LOAD.ravel(), 1.0, 1e-12, 9)
    prepare(monkeypatch, stiffness=np.zeros((8, 8)))
    with pytest.raises(ArithmeticError, match="has lost its stiffness"):
        worker.solve(np.zeros(8), LOAD.ravel(), 0.0, 1e-12, 9)
