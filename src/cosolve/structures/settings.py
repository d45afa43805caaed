"""What a second-order subsystem refuses before it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import as_list, choice, initial_state, is_positive, whole
from cosolve.errors import SetupError
from cosolve.structures.integrators import StructureIntegrator
from cosolve.structures.ports import INPUTS, OUTPUTS, DofPort, Prescribed
from cosolve.structures.structure import Structure


def refuse_bad_settings(
    structure: object,
    inputs: Sequence[DofPort],
    outputs: Sequence[DofPort],
    load: str,
    restart: str,
    substeps: object,
    tol: object,
    max_iterations: object,
) -> None:
    """Refuse settings of the wrong kind or range."""
    if not isinstance(structure, Structure):
        raise SetupError(f"SecondOrder: the first argument must be a Structure, not {structure!r}")
    for ports, allowed, kind in ((inputs, INPUTS, "an input"), (outputs, OUTPUTS, "an output")):
        for at in as_list("SecondOrder", f"{kind[3:]}s", ports):
            if not isinstance(at, DofPort):
                raise SetupError(f"SecondOrder: ports are given as DofPort(name, dofs, what), not {at!r}")
            if at.what not in allowed:
                raise SetupError(
                    f"SecondOrder: {kind} is one of {', '.join(allowed)}; '{at.name}' asks for {at.what!r}"
                )
    choice("SecondOrder", "load", load, ("interpolated", "end"))
    choice("SecondOrder", "restart", restart, ("kept", "balanced"))
    for name, value in (("substeps", substeps), ("max_iterations", max_iterations)):
        whole("SecondOrder", name, value)
    if not is_positive(tol):
        raise SetupError(f"SecondOrder: tol must be a positive force, not {tol!r}")


def vector(name: str, value: npt.ArrayLike, n: int) -> Vector:
    """`n` finite numbers."""
    v = initial_state(f"SecondOrder ({name})", value)
    if len(v) != n:
        raise SetupError(f"SecondOrder: {name} holds {len(v)} numbers, expected {n}")
    return v


def past_values(before: Any, n: int) -> tuple[float, Vector, Vector]:
    """`(h, q, v)` one step before the start."""
    if not (isinstance(before, (tuple, list)) and len(before) == 3 and is_positive(before[0])):
        raise SetupError(
            f"SecondOrder: before must be (h, q, v), a step length and the motion that long before the start, "
            f"not {before!r}"
        )
    return float(before[0]), vector("before, q", before[1], n), vector("before, v", before[2], n)


def refuse_unfit_integrator(structure: Structure, rule: StructureIntegrator, fixed: Prescribed, M: Any) -> None:
    """Explicit rules need a lumped mass everywhere and cannot follow a displacement alone."""
    if not rule.explicit:
        return
    if not structure.diagonal_mass():
        raise SetupError(
            f"SecondOrder: {rule.name} need a lumped (diagonal) mass matrix; lump it, or use 'trapezoidal'"
        )
    masses = M.diagonal()[fixed.free]
    if not (masses > 0).all():
        where = structure.labels[int(fixed.free[int(np.argmin(masses))])]
        raise SetupError(
            f"SecondOrder: {rule.name} cannot move {where}, which has no mass; give it mass or use 'trapezoidal'"
        )
    if len(fixed.only_q):
        raise SetupError(
            f"SecondOrder: {rule.name} cannot follow the displacement of {structure.labels[int(fixed.only_q[0])]} "
            "alone; prescribe its velocity too, or use an implicit integrator"
        )
