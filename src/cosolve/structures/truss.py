"""Bars of linear two-node elements along one axis: with logarithmic (Hencky) strain, or linear.

Hencky: with the current length `l = L_e + u_2 - u_1` an element stores `A E L_e ln(l/L_e)^2 / 2`, so

    p_e = A E L_e ln(l/L_e) / l [-1, 1],    K_e = A E L_e (1 - ln(l/L_e)) / l^2 [[1, -1], [-1, 1]]

(Sicklinger (2014), Eqs. 4.88-4.92, with the sign of Eq. 4.90 mended). Masses are lumped at the nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from cosolve.basics.checks import not_negative, positive, whole
from cosolve.errors import SubsystemError

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Bar:
    """A bar of equal two-node elements along one axis.

    The degrees of freedom are the displacements of the nodes that are not clamped; the last one belongs to the far end.
    Units: N and m, or any consistent set.

    Parameters
    ----------
    elements : int
        Number of elements.
    length : float
        Length of the bar.
    E : float
        Young's modulus.
    rho : float
        Density.
    area : float, default 1.0
        Cross-section.
    clamped : bool, default True
        Clamp node 0.

    Notes
    -----
    With the initial element length `L_e` and the current one `l` an element stores `A E L_e ln(l / L_e)^2 / 2` (Hencky
    strain). Masses are lumped at the nodes.

    References
    ----------
    .. [1] S. A. Sicklinger, Stabilized co-simulation of coupled problems including fields and signals, dissertation,
       Technical University of Munich, 2014, Eqs. 4.88 to 4.92.

    Examples
    --------
    >>> bar = Bar(elements=2, length=1.0, E=10.0, rho=3.0)
    >>> bar.mass()
    array([1.5 , 0.75])
    >>> bar.internal_force([0.1, 0.2]).round(6)              # the same stretch in both elements
    array([0.      , 1.519346])
    >>> bar.stiffness()
    array([[ 40., -20.],
           [-20.,  20.]])
    """

    elements: int
    length: float
    E: float
    rho: float
    area: float = 1.0
    clamped: bool = True

    def __post_init__(self) -> None:
        whole("Bar", "elements", self.elements)
        for name in ("length", "E", "area"):
            positive("Bar", name, getattr(self, name))
        not_negative("Bar", "rho", self.rho)

    @property
    def n(self) -> int:
        """Number of degrees of freedom."""
        return self.elements + (0 if self.clamped else 1)

    @property
    def element_length(self) -> float:
        """Length of an element at rest."""
        return self.length / self.elements

    def mass(self) -> Array:
        """Compute the lumped nodal masses, `rho A L_e / 2` from each element at the node.

        Returns
        -------
        ndarray
            One per degree of freedom.
        """
        share = 0.5 * self.rho * self.area * self.element_length
        masses = np.full(self.elements + 1, 2.0 * share)
        masses[[0, -1]] = share
        return masses[1:] if self.clamped else masses

    def internal_force(self, u: npt.ArrayLike) -> Array:
        """Compute the internal force with Hencky strain.

        Parameters
        ----------
        u : array_like
            Displacements.

        Returns
        -------
        ndarray
            One force per degree of freedom.
        """
        L, now = self.element_length, self._lengths(u)
        return self._nodal(self.area * self.E * L * np.log(now / L) / now)

    def tangent(self, u: npt.ArrayLike) -> Any:
        """Compute the derivative of the internal force.

        Parameters
        ----------
        u : array_like
            Displacements.

        Returns
        -------
        ndarray or csr_array
            Dense up to 100 degrees of freedom, sparse beyond.
        """
        L, now = self.element_length, self._lengths(u)
        return self._assemble(self.area * self.E * L * (1.0 - np.log(now / L)) / now**2)

    def stiffness(self) -> Any:
        """Compute the constant stiffness matrix of small displacements.

        Returns
        -------
        ndarray or csr_array
            Dense up to 100 degrees of freedom, sparse beyond.
        """
        return self._assemble(np.full(self.elements, self.area * self.E / self.element_length))

    def energy(self, u: npt.ArrayLike) -> float:
        """Compute the stored energy with Hencky strain.

        Parameters
        ----------
        u : array_like
            Displacements.

        Returns
        -------
        float
            The energy.

        Examples
        --------
        >>> Bar(1, 1.0, 8.0, 1.0).energy([0.0])
        0.0
        """
        L = self.element_length
        strain = np.log(self._lengths(u) / L)
        return float(0.5 * self.area * self.E * L * (strain**2).sum())

    def _lengths(self, u: npt.ArrayLike) -> Array:
        nodes = np.asarray(u, dtype=np.float64)
        if nodes.shape != (self.n,):
            raise SubsystemError(f"Bar: displacements of shape {nodes.shape}, expected ({self.n},)")
        now: Array = self.element_length + np.diff(np.concatenate([[0.0], nodes]) if self.clamped else nodes)
        if not (now > 0).all():
            k = int(np.argmin(now > 0))
            raise SubsystemError(
                f"Bar: element {k} has the length {now[k]:.3g} (it is {self.element_length:.3g} at rest): it is turned "
                "inside out or not finite; take a smaller step, or a coupling iteration that does not diverge"
            )
        return now

    def _nodal(self, N: Array) -> Array:
        """Nodal forces of the element forces `N`: minus at the first node, plus at the second."""
        p = np.zeros(self.elements + 1)
        p[1:] += N
        p[:-1] -= N
        return p[1:] if self.clamped else p

    def _assemble(self, k: Array) -> Any:
        """The tridiagonal matrix of springs `k` between neighbours."""
        diagonal = np.zeros(self.elements + 1)
        diagonal[1:] += k
        diagonal[:-1] += k
        first = 1 if self.clamped else 0
        diagonal, off = diagonal[first:], -k[first:]
        if self.n > _DENSE_UP_TO:
            rows = np.arange(self.n)
            i = np.concatenate([rows, rows[1:], rows[:-1]])
            j = np.concatenate([rows, rows[:-1], rows[1:]])
            return csr_array((np.concatenate([diagonal, off, off]), (i, j)), shape=(self.n, self.n))
        return np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1)


_DENSE_UP_TO = 100
