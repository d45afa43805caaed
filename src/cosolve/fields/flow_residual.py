"""The equations of an incompressible flow on quadratic triangles, integrated in machine code: what is left of them.

A chord iteration evaluates residuals many times for every matrix, and a symbolic form takes five times as long. Shape
functions are those of nodal values, quadratic for velocity and geometry, linear for pressure.
"""

from __future__ import annotations

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.fields.quadratic_triangle import Index
from cosolve.jit import compiled


@compiled
def flow_residual(
    points: Matrix,
    triangles: Index,
    velocity: Matrix,
    mesh_velocity: Matrix,
    acceleration: Matrix,
    pressure: Vector,
    density: float,
    viscosity: float,
    quadratic: Matrix,
    by_first: Matrix,
    by_second: Matrix,
    linear: Matrix,
    weights: Vector,
    momentum: Matrix,
    continuity: Vector,
) -> None:
    """Write the residuals of momentum (2, n) and continuity into the last two arguments; fields are (2, n) as well."""
    momentum[:] = 0.0
    continuity[:] = 0.0
    x, u, c, a = np.empty((2, 6)), np.empty((2, 6)), np.empty((2, 6)), np.empty((2, 6))
    r, q, g, h = np.empty((2, 6)), np.empty(3), np.empty(6), np.empty(6)
    for e in range(len(triangles)):
        nodes = triangles[e]
        for k in range(6):
            n = nodes[k]
            x[0, k], x[1, k] = points[n, 0], points[n, 1]
            for i in range(2):
                u[i, k] = velocity[i, n]
                c[i, k] = velocity[i, n] - mesh_velocity[i, n]
                a[i, k] = acceleration[i, n]
                r[i, k] = 0.0
        q[:] = 0.0
        for m in range(len(weights)):
            xa = xb = ya = yb = 0.0
            for k in range(6):
                xa += by_first[m, k] * x[0, k]
                xb += by_second[m, k] * x[0, k]
                ya += by_first[m, k] * x[1, k]
                yb += by_second[m, k] * x[1, k]
            det = xa * yb - xb * ya
            part = weights[m] * det
            uxx = uxy = uyx = uyy = cx = cy = ax = ay = 0.0
            for k in range(6):
                g[k] = (yb * by_first[m, k] - ya * by_second[m, k]) / det
                h[k] = (xa * by_second[m, k] - xb * by_first[m, k]) / det
                uxx += u[0, k] * g[k]
                uxy += u[0, k] * h[k]
                uyx += u[1, k] * g[k]
                uyy += u[1, k] * h[k]
                cx += c[0, k] * quadratic[m, k]
                cy += c[1, k] * quadratic[m, k]
                ax += a[0, k] * quadratic[m, k]
                ay += a[1, k] * quadratic[m, k]
            p = 0.0
            for k in range(3):
                p += linear[m, k] * pressure[nodes[k]]
                q[k] -= part * linear[m, k] * (uxx + uyy)
            fx = part * density * (ax + uxx * cx + uxy * cy)
            fy = part * density * (ay + uyx * cx + uyy * cy)
            sxx = part * (2.0 * viscosity * uxx - p)
            syy = part * (2.0 * viscosity * uyy - p)
            sxy = part * viscosity * (uxy + uyx)
            for k in range(6):
                r[0, k] += fx * quadratic[m, k] + sxx * g[k] + sxy * h[k]
                r[1, k] += fy * quadratic[m, k] + sxy * g[k] + syy * h[k]
        for k in range(6):
            momentum[0, nodes[k]] += r[0, k]
            momentum[1, nodes[k]] += r[1, k]
        for k in range(3):
            continuity[nodes[k]] += q[k]
