"""An elastic solid in plane strain by dolfinx (FEniCSx), which mostly lives in another Python than this one.

Steps, ports and states are those of every solid here; mass matrix and solutions come from `dolfinx_worker.py`, called
in a process of the Python that has dolfinx. That process remembers nothing of the run: when it is gone, the next
crossing starts another one, and every state stays good.
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
    """A solid by dolfinx 0.5 in a process of its own: `force` on the boundary `surface` in, its `displacement` out.

    Mesh, arguments and outputs are those of `ElasticSolid`, which it can replace: `mesh` is a `skfem.MeshTri` with
    named boundaries (extra `fem`). `python` is a Python that has dolfinx; without it this Python, that of the system
    and the first on PATH are asked. `timeout` is for one step, in seconds. The first solid of all compiles its forms,
    which takes some seconds and a C compiler; dolfinx keeps them for later.

    ```python
    flag = cs.DolfinxSolid(mesh, clamped="back", surface="flag", young=5.6e6, poisson=0.4, density=1000.0)
    ```
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
        """End the process now; otherwise it goes with this object, and with this process. The next crossing has one."""
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
