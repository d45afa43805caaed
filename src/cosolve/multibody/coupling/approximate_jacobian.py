"""Analytic approximate Jacobians of coupling bodies (Lu (2015), App. B, corrected).

A free body that is pushed for one macro step moves, to leading order, as if the push were all: velocities change by
`w_v H / m` times the load, positions by `w_y H^2 / m`, with the weights of the polynomial degree. Springs, dampers and
gyroscopic terms are left out, which costs stability where `c H^2 / m` or `d H / m` is not small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.errors import SetupError
from cosolve.multibody.equations.coupling_loads import End, coupling_loads
from cosolve.multibody.equations.joint_math import parameter_rates
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.port import Ports
from cosolve.subsystem.secant_jacobian import ApproximateJacobian

#: Relative increment of the central differences of the loads by copied motions.
_INCREMENT = 6e-6


def with_approximate_jacobian(name: str, host: Any, subsystem: Subsystem, ends: Sequence[End]) -> Subsystem:
    """The subsystem with a Jacobian from formulas instead of perturbed runs; refuses bodies that are not free."""
    if not (hasattr(host, "inertia") and hasattr(subsystem, "state_of")):
        raise SetupError(
            f"assemble: jacobian='approximate' needs the inertia of the coupling bodies, which a {type(host).__name__} "
            f"('{name}') does not give; use jacobian='auto'"
        )
    bodies = {end.body: host.inertia(end.body) for end in ends}
    bound = [body for body, inertia in bodies.items() if not inertia.free]
    if bound:
        raise SetupError(
            f"assemble: jacobian='approximate' holds for free coupling bodies, but '{bound[0]}' of '{name}' has joints "
            "or a drive of its own; use jacobian='auto', or replace the joints by stiff bushings"
        )
    if any(end.law is not None for end in ends):
        raise SetupError(
            f"assemble: jacobian='approximate' knows linear laws only; '{name}' has a joint with a law of its own on a "
            "displacement side, use jacobian='auto'"
        )
    ports_in, ports_out = Ports(subsystem.inputs), Ports(subsystem.outputs)

    def formula(_x: Vector, u: Vector, by_velocity: float, by_position: float) -> Matrix:
        J = np.zeros((ports_out.length, ports_in.length))
        for end in ends:
            columns = np.concatenate([_range(ports_in, f"{end.name}_{suffix}") for suffix, _ in end.inputs])
            z = subsystem.state_of(end.body)
            by_input = _load_jacobian(end, u[columns], z)
            inertia = bodies[end.body]
            lever = np.linalg.inv(inertia.J)
            linear, turning = by_input[:3] / inertia.mass, lever @ by_input[3:6]
            spin = parameter_rates(z[3:7]).T / 4.0  # q' = P^T omega / 4
            response = {
                "r": by_position * linear + by_velocity * by_input[6:9],
                "q": spin @ (by_position * turning + by_velocity * by_input[9:12]),
                "v": by_velocity * linear,
                "w": by_velocity * turning,
                "a": linear,
                "alpha": turning,
            }
            for other in ends:  # several joints may sit on the same body
                if other.body == end.body:
                    for suffix, rows in response.items():
                        J[np.ix_(_range(ports_out, f"{other.name}_{suffix}"), columns)] += rows
        return J

    return ApproximateJacobian(subsystem, formula)


def _range(ports: Ports, name: str) -> Any:
    part = ports.slice(name)
    return np.arange(part.start, part.stop)


def _load_jacobian(end: End, u: Vector, z: Vector) -> Matrix:
    """Derivatives of the 12 load numbers of an end by its inputs."""
    columns, ahead, behind = [], np.empty(12), np.empty(12)
    for k in range(len(u)):
        h = _INCREMENT * max(1.0, abs(u[k]))
        shifted = u.copy()
        shifted[k] = u[k] + h
        coupling_loads(end.kind, end.constants, shifted, z, ahead)
        shifted[k] = u[k] - h
        coupling_loads(end.kind, end.constants, shifted, z, behind)
        columns.append((ahead - behind) / (2.0 * h))
    return np.array(columns).T
