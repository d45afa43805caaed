"""Jacobian-free Newton-Krylov (Sicklinger (2014), Algorithms 2.4, 2.5): GMRES, with `J v` by a difference quotient.

Every Krylov vector costs one more subsystem step of the step by all subsystems, and no Jacobian is ever formed. It pays
where the eigenvalues of the interface Jacobian cluster, as they do for `r = z - f(z)` with a few strong modes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import is_number, positive, whole
from cosolve.corrector.base import Corrector, InterfaceProblem
from cosolve.errors import SetupError

#: A vector whose part outside the span of the Krylov vectors is smaller than this belongs to it.
_IN_SPAN = 1e-8


class NewtonKrylov(Corrector):
    """Jacobian-free Newton-Krylov method: GMRES with difference quotients for the products `J v`.

    Parameters
    ----------
    rtol : float, default 1e-3
        Relative residual at which the linear iteration ends, between 0 and 1.
    vectors : int, default 50
        Largest number of Krylov vectors per correction. Each costs one subsystem step of all subsystems.
    increment : float, default 1e-8
        Increment of the difference quotients, relative to `1 + rms(z)`.

    Attributes
    ----------
    krylov_vectors : list of int
        Number of vectors of each correction of the run.

    Notes
    -----
    No Jacobian is formed. It pays if the eigenvalues of the interface Jacobian cluster, as they do for `r = z - f(z)`
    with a few strong modes.

    References
    ----------
    .. [1] D. A. Knoll, D. E. Keyes, Jacobian-free Newton-Krylov methods, Journal of Computational Physics 193(2), 2004.
    .. [2] S. A. Sicklinger, Stabilized co-simulation of coupled problems including fields and signals, dissertation,
       Technical University of Munich, 2014, Algorithms 2.4 and 2.5.

    Examples
    --------
    >>> import numpy as np
    >>> class Toy:                                      # r(z) = (z0^2 - 4, z1 - z0)
    ...     def residual(self, z):
    ...         return np.array([z[0] ** 2 - 4.0, z[1] - z[0]])
    >>> solver, z = NewtonKrylov(), np.array([1.0, 1.0])
    >>> for _ in range(6):
    ...     z = solver.correct(z, Toy().residual(z), Toy())
    >>> z.round(9)
    array([2., 2.])
    >>> solver.krylov_vectors
    [2, 2, 2, 2, 2, 2]
    """

    def __init__(self, rtol: float = 1e-3, vectors: int = 50, increment: float = 1e-8) -> None:
        if not (is_number(rtol) and 0 < rtol < 1):
            raise SetupError(f"NewtonKrylov: rtol must be a number between 0 and 1, not {rtol!r}")
        self.rtol, self.vectors = float(rtol), whole("NewtonKrylov", "vectors", vectors)
        self.increment = positive("NewtonKrylov", "increment", increment)
        self.krylov_vectors: list[int] = []

    def __repr__(self) -> str:
        return f"NewtonKrylov(rtol={self.rtol:g}, vectors={self.vectors})"

    def start_run(self, labels: Sequence[str]) -> None:
        self.krylov_vectors = []

    def correct(self, z: Vector, r: Vector, problem: InterfaceProblem) -> Vector:
        from scipy.sparse.linalg import LinearOperator, gmres

        product = _Differenced(z, r, problem, self.increment)
        J: Any = LinearOperator((len(z), len(z)), matvec=product, dtype=np.float64)
        dz: Any = gmres(J, -r, rtol=self.rtol, atol=0.0, restart=min(self.vectors, len(z)), maxiter=1)[0]
        self.krylov_vectors.append(product.used)
        better: Vector = z + dz
        return better


class _Differenced:
    """`J v` from one more residual; for a vector in the span of the earlier ones from theirs, by linearity.

    GMRES ends by checking the solution it has put together from its Krylov vectors: that product costs no subsystem
    step.
    """

    def __init__(self, z: Vector, r: Vector, problem: InterfaceProblem, increment: float) -> None:
        self.z, self.r, self.problem = z, r, problem
        self.reach = increment * (np.sqrt(len(z)) + float(np.linalg.norm(z)))
        self._vectors: list[Vector] = []  # orthonormal
        self._products: list[Vector] = []

    @property
    def used(self) -> int:
        return len(self._vectors)

    def __call__(self, v: Vector) -> Vector:
        along = [float(q @ v) for q in self._vectors]
        size, outside = float(np.linalg.norm(v)), v.copy()
        for c, q in zip(along, self._vectors, strict=True):
            outside -= c * q
        if float(np.linalg.norm(outside)) <= _IN_SPAN * size:
            product = np.zeros_like(v)
            for c, p in zip(along, self._products, strict=True):
                product += c * p
            return product
        h = self.reach / size
        product = np.asarray((self.problem.residual(self.z + h * v) - self.r) / h)
        self._vectors.append(v / size)
        self._products.append(product / size)
        return product
