"""An elastic solid in plane strain by dolfinx (FEniCSx), which mostly lives in another Python than this one.

Steps, ports and states are those of every solid here; mass matrix and solutions come from `dolfinx_worker.py`, called
in a process of the Python that has dolfinx. That process remembers nothing of the run: when it is gone, the next
subsystem step starts another one, and every state stays good.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import positive
from cosolve.errors import SetupError, SubsystemError
from cosolve.fields.adapters.other_python import OtherPython, find_python
from cosolve.fields.elastic_solid import ElasticSolid
from cosolve.fields.quadratic_triangle import jacobians

_REMEDY = (
    "install FEniCSx (Debian and Ubuntu: apt install python3-dolfinx, for the Python of the system), or name a Python "
    "that has it by python='/path/to/python'"
)
_WORKER = Path(__file__).with_name("dolfinx_worker.py")


class DolfinxSolid(ElasticSolid):
    """An elastic solid by dolfinx (FEniCSx) in a process of its own.

    Parameters
    ----------
    mesh : skfem.MeshTri
        Mesh of triangles with named boundaries.
    clamped : str
        Boundaries that do not move, as in "left|right".
    surface : str
        Boundary that is coupled.
    young : float
        Young's modulus in Pa.
    poisson : float
        Poisson's ratio.
    density : float
        Density in kg/m^3.
    gravity : sequence of float, default (0.0, 0.0)
        Load on the volume in m/s^2.
    probes : mapping of str to point or None, default None
        Points whose displacement is an output of its own: `{"tip": (0.6, 0.2)}` gives `tip_x` and `tip_y`.
    tol : float, default 1e-10
        Relative accuracy of the Newton iteration of a step.
    most : int, default 20
        Largest number of its iterations.
    python : str, Path or None, default None
        A Python that has dolfinx. None: this one, that of the system, or the first on PATH.
    timeout : float or None, default None
        Longest time of a step in seconds.

    Raises
    ------
    SetupError
        If no Python with dolfinx is found.

    Notes
    -----
    It can replace `ElasticSolid`. The first use compiles forms, which takes some seconds and a C compiler.

    Examples
    --------
    >>> import cosolve as cs
    >>> def flag(mesh):
    ...     return cs.fields.DolfinxSolid(mesh, clamped="back", surface="flag", young=5.6e6, poisson=0.4, density=1e3)
    """

    def __init__(
        self,
        mesh: Any,
        *,
        clamped: str,
        surface: str,
        young: float,
        poisson: float,
        density: float,
        gravity: Sequence[float] = (0.0, 0.0),
        probes: Mapping[str, Sequence[float]] | None = None,
        tol: float = 1e-10,
        most: int = 20,
        python: str | os.PathLike[str] | None = None,
        timeout: float | None = None,
    ) -> None:
        self._timeout = None if timeout is None else positive(type(self).__name__, "timeout", timeout)
        self._named, self._python = python, ""
        self._worker: OtherPython | None = None
        super().__init__(
            mesh,
            clamped=clamped,
            surface=surface,
            young=young,
            poisson=poisson,
            density=density,
            gravity=gravity,
            probes=probes,
            tol=tol,
            most=most,
        )

    def close(self) -> None:
        """End the process; the next step starts another one. It also ends with this object."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def _assemble(self, fem: Any, density: float) -> None:
        self._density = density
        self._python = find_python("dolfinx", _REMEDY, self._named)
        try:
            mass = self._begin()
        except SubsystemError as error:
            raise SetupError(f"{self._who}: {error}") from None
        shape = 2 * self._n, 2 * self._n
        self._mass = csr_array((mass["values"], (mass["rows"], mass["columns"])), shape=shape)
        self._at_rest = jacobians(self._points, self._triangles)

    def _begin(self) -> dict[str, Any]:
        """Start the process and let it build the solid; its mass."""
        lam, mu = self._lame
        held = np.flatnonzero(~self._free[::2])
        self._worker = OtherPython(self._python, _WORKER, self._timeout)
        try:
            return self._worker.call(
                "set_up",
                points=self._points,
                triangles=self._triangles,
                held=held,
                lam=lam,
                mu=mu,
                density=self._density,
            )
        except SubsystemError:
            self.close()
            raise

    def _solve(self, guess: Vector, load: Vector, inertia: float, t: float) -> Vector:
        if self._worker is None or self._worker.closed:
            self._begin()
        assert self._worker is not None
        try:
            given = {"guess": guess, "load": load, "inertia": inertia, "tol": self.tol, "most": self.most}
            found: Vector = self._worker.call("solve", **given)["d"]
        except SubsystemError as error:
            raise SubsystemError(f"{error} (from t = {t:.6g})") from None
        if (jacobians(self._points + self._nodal(found), self._triangles) / self._at_rest).min() <= 0.0:
            raise SubsystemError("a triangle of the solid is turned inside out; the loads are too large")
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Copies start a process of their own."""
        return {**self.__dict__, "_worker": None}
