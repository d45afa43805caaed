"""Jacobian-free Newton-Krylov (Sicklinger Algorithms 2.4, 2.5): `J dz = -r` by GMRES, `J v` by a difference quotient.

Every Krylov vector costs one more crossing of the step by all subsystems, and no Jacobian is ever formed. It pays where
the eigenvalues of the interface Jacobian cluster, as they do for `r = z - f(z)` with a few strong modes.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.sparse.linalg import LinearOperator, gmres, lgmres

from cosolve.corrector.base import Corrector, InterfaceProblem
from cosolve.corrector.least_squares import is_count
from cosolve.errors import SetupError
from cosolve.subsystem.port import Vector, is_number


class NewtonKrylov(Corrector):
    """Newton with SciPy's `"gmres"` or `"lgmres"` on a differenced Jacobian.

    `rtol` is the relative residual at which the linear iteration ends, `vectors` the most Krylov vectors per
    correction, `increment` the perturbation relative to `1 + rms(z)`. `krylov_vectors` lists what each correction of
    the run took.

    >>> import numpy as np
    >>> class Toy:                                      # r(z) = (z0^2 - 4, z1 - z0)
    ...     def residual(self, z):
    ...         return np.array([z[0] ** 2 - 4.0, z[1] - z[0]])
    >>> solver, z = NewtonKrylov(), np.array([1.0, 1.0])
    >>> for _ in range(6):
    ...     z = solver.correct(z, Toy().residual(z), Toy())
    >>> z.round(9)
    array([2., 2.])
    """

    def __init__(
        self,
        rtol: float = 1e-3,
        vectors: int = 50,
        increment: float = 1e-8,
        solver: Literal["gmres", "lgmres"] = "gmres",
    ) -> None:
        if not (is_number(rtol) and 0 < rtol < 1):
            raise SetupError(f"NewtonKrylov: rtol must be a number between 0 and 1, not {rtol!r}")
        if not is_count(vectors, 1):
            raise SetupError(f"NewtonKrylov: vectors must be a whole number from 1, not {vectors!r}")
        if not (is_number(increment) and increment > 0):
            raise SetupError(f"NewtonKrylov: increment must be a positive number, not {increment!r}")
        if solver not in ("gmres", "lgmres"):
            raise SetupError(f"NewtonKrylov: solver must be 'gmres' or 'lgmres', not {solver!r}")
        self.rtol, self.vectors, self.increment, self.solver = float(rtol), int(vectors), float(increment), solver
        self.krylov_vectors: list[int] = []

    def __repr__(self) -> str:
        return f"NewtonKrylov(rtol={self.rtol:g}, vectors={self.vectors}, solver={self.solver!r})"

    def start_run(self, labels: Any) -> None:
        self.krylov_vectors = []

    def correct(self, z: Vector, r: Vector, problem: InterfaceProblem) -> Vector:
        n, used = len(z), 0
        reach = self.increment * (np.sqrt(n) + float(np.linalg.norm(z)))

        def times(v: Vector) -> Vector:
            nonlocal used
            used += 1
            h = reach / float(np.linalg.norm(v))
            return (problem.residual(z + h * v) - r) / h

        J: Any = LinearOperator((n, n), matvec=times, dtype=np.float64)
        most = min(self.vectors, n)
        if self.solver == "gmres":
            dz, _ = gmres(J, -r, rtol=self.rtol, atol=0.0, restart=most, maxiter=1)
        else:
            dz, _ = lgmres(J, -r, rtol=self.rtol, atol=0.0, inner_m=most, outer_k=0, maxiter=1)
        self.krylov_vectors.append(used)
        better: Vector = z + np.asarray(dz, dtype=np.float64)
        return better
