"""Where inputs act on a structure and where its outputs are measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import is_number
from cosolve.errors import SetupError
from cosolve.subsystem.port import Port, Ports

What = Literal["force", "displacement", "velocity", "acceleration", "reaction"]
INPUTS = ("force", "displacement", "velocity", "acceleration")
OUTPUTS = ("displacement", "velocity", "acceleration", "reaction")

Index = npt.NDArray[np.intp]

_LEVELS = {"displacement": "q", "velocity": "v", "acceleration": "a"}


@dataclass(frozen=True)
class DofPort:
    """A port of a `SecondOrder` at chosen degrees of freedom.

    Parameters
    ----------
    name : str
        Name of the port.
    dofs : int, sequence of int or matrix
        An index (a scalar port), a list of indices (a vector port), or a matrix with one row per degree of freedom and
        one column per value: forces are `factor * dofs @ u`, outputs `factor * dofs.T @ q`.
    what : {"force", "displacement", "velocity", "acceleration", "reaction"}, default "displacement"
        As an input: a force or a prescribed motion. As an output: a motion, or the reaction, the force that makes the
        structure follow a prescribed motion.
    factor : float, default 1.0
        Factor on the values, as of a unit; not 0.
    unit : str, default ""
        Unit of the port.
    nominal : float, default 1.0
        Nominal value of the port.

    Examples
    --------
    >>> DofPort("tip", 3, "displacement").port.length, DofPort("skin", [0, 2, 4], "force").port.length
    (1, 3)
    """

    name: str
    dofs: Any
    what: What = "displacement"
    factor: float = 1.0
    unit: str = ""
    nominal: float = 1.0

    def __post_init__(self) -> None:
        if not is_number(self.factor) or self.factor == 0:
            raise SetupError(f"DofPort('{self.name}'): the factor must be a number other than 0, not {self.factor!r}")

    @property
    def is_matrix(self) -> bool:
        """True when `dofs` is a matrix."""
        return sparse.issparse(self.dofs) or np.ndim(self.dofs) == 2

    @property
    def port(self) -> Port:
        """The port as the coupling sees it."""
        if self.is_matrix:
            columns = getattr(self.dofs, "shape", np.shape(self.dofs))[1]
            return Port(self.name, int(columns), self.unit, self.nominal)
        size = None if np.ndim(self.dofs) == 0 else len(self.dofs)
        return Port(self.name, size, self.unit, self.nominal)

    def index(self, n: int) -> Index:
        """Return the degrees of freedom.

        Parameters
        ----------
        n : int
            Number of degrees of freedom of the structure.

        Returns
        -------
        ndarray of int
            The indices.

        Raises
        ------
        SetupError
            If the structure does not have one of them.
        """
        if self.is_matrix:
            raise SetupError(f"DofPort('{self.name}'): a {self.what} needs indices of degrees of freedom, not a matrix")
        dofs = np.atleast_1d(np.asarray(self.dofs))
        if dofs.dtype.kind not in "iu" or dofs.ndim != 1:
            raise SetupError(f"DofPort('{self.name}'): dofs must be an index or a list of indices, not {self.dofs!r}")
        outside = dofs[(dofs < -n) | (dofs >= n)]
        if len(outside):
            raise SetupError(
                f"DofPort('{self.name}'): there is no degree of freedom {outside[0]}; the structure has 0 to {n - 1}"
            )
        dofs = np.where(dofs < 0, dofs + n, dofs).astype(np.intp)
        if len(set(dofs.tolist())) < len(dofs):
            raise SetupError(f"DofPort('{self.name}'): a degree of freedom is listed twice in {self.dofs!r}")
        return dofs

    def matrix(self, n: int, as_sparse: bool) -> Any:
        """Return the matrix from values of the port to degrees of freedom.

        Parameters
        ----------
        n : int
            Number of degrees of freedom of the structure.
        as_sparse : bool
            Return a sparse matrix.

        Returns
        -------
        ndarray or csr_array
            One column per value, times the factor.
        """
        if self.is_matrix:
            S = sparse.csr_array(self.dofs, dtype=np.float64) * self.factor
            if S.shape[0] != n:
                raise SetupError(f"DofPort('{self.name}'): the matrix has {S.shape[0]} rows, the structure {n} dofs")
        else:
            dofs = self.index(n)
            ones = np.full(len(dofs), float(self.factor))
            S = sparse.csr_array((ones, (dofs, np.arange(len(dofs)))), shape=(n, len(dofs)))
        return S if as_sparse else S.toarray()


@dataclass(frozen=True)
class Prescribed:
    """Which degrees of freedom follow inputs, and how; each `*_u` holds the positions of the values in the input."""

    dofs: Index  # all of them, in ascending order
    free: Index
    q: Index
    q_u: Index
    q_factor: Vector
    v: Index
    v_u: Index
    v_factor: Vector
    a: Index
    a_u: Index
    a_factor: Vector
    only_q: Index  # acceleration follows from the displacement
    only_v: Index  # ... from the velocity
    massless: Index  # displacement and velocity given: acceleration-free


def prescribed(inputs: Sequence[DofPort], n: int) -> Prescribed:
    """Sort out the prescribed motion of `inputs`; refuses what does not determine it.

    >>> found = prescribed([DofPort("x", 0, "displacement"), DofPort("v", 0, "velocity"), DofPort("f", 2, "force")], 3)
    >>> found.dofs, found.free, found.massless
    (array([0]), array([1, 2]), array([0]))
    """
    slices = Ports([at.port for at in inputs])
    parts: dict[str, tuple[list[int], list[int], list[float]]] = {w: ([], [], []) for w in INPUTS[1:]}
    for at in inputs:
        if at.what == "force":
            continue
        dofs, positions, factors = parts[at.what]
        for k, dof in enumerate(at.index(n)):
            if int(dof) in dofs:
                raise SetupError(f"DofPort('{at.name}'): the {at.what} of degree of freedom {dof} is prescribed twice")
            dofs.append(int(dof))
            positions.append(slices.slice(at.name).start + k)
            factors.append(float(at.factor))
    q, v, a = (set(parts[w][0]) for w in INPUTS[1:])
    for dof in sorted(a):
        if (dof in q) != (dof in v):
            raise SetupError(
                f"degree of freedom {dof}: prescribe its displacement and velocity together with the acceleration, or "
                "the acceleration alone"
            )
    every = sorted(q | v | a)

    def index(values: Any) -> Index:
        return np.array(sorted(values), dtype=np.intp)

    def part(what: str) -> tuple[Index, Index, Vector]:
        dofs, positions, factors = parts[what]
        return np.array(dofs, dtype=np.intp), np.array(positions, dtype=np.intp), np.array(factors, dtype=np.float64)

    return Prescribed(
        index(every),
        index(set(range(n)) - set(every)),
        *part("displacement"),
        *part("velocity"),
        *part("acceleration"),
        only_q=index(q - v - a),
        only_v=index(v - q - a),
        massless=index((q & v) - a),
    )


def force_matrix(inputs: Sequence[DofPort], n: int, as_sparse: bool) -> Any:
    """`B`: one column per input value, zero for prescribed motion."""
    blocks = [at.matrix(n, as_sparse) * (1.0 if at.what == "force" else 0.0) for at in inputs]
    if not blocks:
        return np.zeros((n, 0))
    return sparse.csr_array(sparse.hstack(blocks)) if as_sparse else np.hstack(blocks)


def measured(at: DofPort, n: int, as_sparse: bool, fixed: Index, labels: Sequence[str]) -> tuple[str, Any]:
    """The part of the state that an output reads, and the matrix that picks it."""
    if at.what != "reaction":
        return _LEVELS[at.what], at.matrix(n, as_sparse).T
    dofs = at.index(n)
    free = np.setdiff1d(dofs, fixed)
    if len(free):
        raise SetupError(
            f"SecondOrder: '{at.name}' asks for the reaction at {labels[int(free[0])]}, whose motion is not "
            "prescribed; reactions exist only where an input prescribes the motion"
        )
    C = np.zeros((len(dofs), len(fixed)))
    C[np.arange(len(dofs)), np.searchsorted(fixed, dofs)] = at.factor
    return "reaction", C


def free_outputs(outputs: Sequence[DofPort], n: int, free: Index) -> Index:
    """The free degrees of freedom whose motion is measured."""
    found = [at.index(n) for at in outputs if at.what != "reaction" and not at.is_matrix]
    return np.intersect1d(np.concatenate(found), free) if found else np.zeros(0, dtype=np.intp)
