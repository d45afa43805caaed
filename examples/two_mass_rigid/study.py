"""Runs, errors and stability of the rigid two-mass oscillator (docs/validation/lu.md)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import cosolve as cs
from examples.two_mass_rigid.model import RigidTwoMass, equal, explicit, split

T_END = 0.1
_P = RigidTwoMass()


class Errors(NamedTuple):
    """Relative L2 errors of x1, v1 and lam over all macro points; largest residual of position and velocity."""

    x: float
    v: float
    lam: float
    position: float
    velocity: float


def method(treatment: cs.ConstraintTreatment, degree: int) -> cs.SemiImplicit:
    """One correction per macro step."""
    return cs.SemiImplicit(degree=degree, constraints=treatment, final_update=False)


def run(treatment: cs.ConstraintTreatment, degree: int, H: float, *, approximate: bool = False) -> cs.Result:
    """The oscillator with the default data; a run that blows up returns what it has."""
    system = split(_P, approximate=approximate)
    try:
        return cs.simulate(system, t_end=T_END, method=method(treatment, degree), step=H)
    except cs.errors.SimulationError as error:
        return error.result


def errors(result: cs.Result) -> Errors:
    """Errors against the exact solution."""
    states = _P.exact(result.t)

    def relative(found: np.ndarray, exact: np.ndarray) -> float:
        return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))

    return Errors(
        relative(result["one.x"], states[:, 0]),
        relative(result["one.v"], states[:, 1]),
        relative(result["lam"], _P.exact_force(states)),
        float(np.abs(result["two.x"] - result["one.x"]).max()),
        float(np.abs(result["two.v"] - result["one.v"]).max()),
    )


def explicit_method(degree: int) -> cs.Jacobi:
    """The explicit counterpart: multipliers from each macro point on, no step is repeated."""
    return cs.Jacobi(degree, outputs="exchanged")


def run_explicit(mu_B: float, degree: int, H: float) -> cs.Result:
    """The oscillator with the default data, coupled explicitly; a run that blows up returns what it has."""
    try:
        return cs.simulate(explicit(_P, mu_B), t_end=T_END, method=explicit_method(degree), step=H)
    except cs.errors.SimulationError as error:
        return error.result


def explicit_radius(mu_B: float, degree: int, H: float, p: RigidTwoMass) -> float:
    """Spectral radius of the macro step of the explicit method."""
    return cs.analysis.spectral_radius(explicit(p, mu_B), explicit_method(degree), H)


def radius(
    treatment: cs.ConstraintTreatment, degree: int, H: float, p: RigidTwoMass, *, approximate: bool = False
) -> float:
    """Spectral radius of the macro step; give treatments with `allow_unstable=True` to see those that grow."""
    return cs.analysis.spectral_radius(split(p, approximate=approximate), method(treatment, degree), H)


def radii(
    treatment: cs.ConstraintTreatment, degree: int, H: float, c: np.ndarray, d: np.ndarray, *, approximate: bool = False
) -> np.ndarray:
    """Spectral radii over equal stiffnesses (rows) and equal dampings (columns)."""
    return cs.analysis.stability_map(
        lambda stiffness, damping: split(equal(stiffness, damping), approximate=approximate),
        c,
        d,
        method(treatment, degree),
        H,
    )
