"""The loops of the lattice-Boltzmann flow that numba compiles.

D2Q9 with two relaxation times. Arrays are `f[direction, x, y]` with a rim of one node around the lattice, and hold the
populations after collision. A step fills the rim, writes what walls send back into the nodes behind them (a slot of a
node inside the body belongs to one link only, so no other storage is needed), then pulls, collides and writes to a
second array. Nodes inside the body are set to rest afterwards: what happens there has no effect, but must stay finite.

Rows are independent of each other and the force is summed link by link in a fixed order, so the bits are the same
whichever thread computes which rows. There is no fast-math here: sums stay in the order they are written in.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

compiled = njit(cache=True, error_model="numpy", nogil=True)

#: Components of the nine velocities, what turns each round, and their weights.
CX = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1])
CY = np.array([0, 0, 1, 0, -1, 1, 1, -1, -1])
OPPOSITE = np.array([0, 3, 4, 1, 2, 7, 8, 5, 6])
WEIGHTS = np.array([4.0 / 9.0] + [1.0 / 9.0] * 4 + [1.0 / 36.0] * 4)
#: What bounds the lattice: the other side of it, a plane without friction (sideways), or the flow (along it).
PERIODIC, SLIP, OPEN = 0, 1, 2


@njit(error_model="numpy", forceinline=True)
def collided(
    f0: float,
    f1: float,
    f2: float,
    f3: float,
    f4: float,
    f5: float,
    f6: float,
    f7: float,
    f8: float,
    sponge: float,
    ax: float,
    ay: float,
    even: float,
    odd: float,
) -> tuple[float, float, float, float, float, float, float, float, float]:
    # Populations after collision. Pairs of opposite directions relax with `even` in their mean and with `odd` in their
    # half difference (Ginzburg et al. (2008)); the acceleration (ax, ay) acts by the terms of Guo et al. (2002). The
    # sponge moves the density of the equilibrium towards one.
    d57, d68 = f5 - f7, f6 - f8
    rho = f0 + ((f1 + f3) + (f2 + f4)) + ((f5 + f7) + (f6 + f8))
    by_rho = 1.0 / rho
    ux = ((f1 - f3) + (d57 - d68)) * by_rho + 0.5 * ax
    uy = ((f2 - f4) + (d57 + d68)) * by_rho + 0.5 * ay
    rest = rho + sponge * (1.0 - rho)
    r9, r36 = rest * (1.0 / 9.0), rest * (1.0 / 36.0)
    square = 1.0 - 1.5 * (ux * ux + uy * uy)
    e9, e36 = (1.0 - 0.5 * even) * rho * (1.0 / 9.0), (1.0 - 0.5 * even) * rho * (1.0 / 36.0)
    o9, o36 = (3.0 - 1.5 * odd) * rho * (1.0 / 9.0), (3.0 - 1.5 * odd) * rho * (1.0 / 36.0)
    work = -3.0 * (ux * ax + uy * ay)
    g0 = f0 - even * (f0 - 4.0 * r9 * square) + 4.0 * e9 * work
    p = even * (0.5 * (f1 + f3) - r9 * (square + 4.5 * ux * ux)) - e9 * (work + 9.0 * ux * ax)
    m = odd * (0.5 * (f1 - f3) - 3.0 * r9 * ux) - o9 * ax
    g1, g3 = f1 - p - m, f3 - p + m
    p = even * (0.5 * (f2 + f4) - r9 * (square + 4.5 * uy * uy)) - e9 * (work + 9.0 * uy * ay)
    m = odd * (0.5 * (f2 - f4) - 3.0 * r9 * uy) - o9 * ay
    g2, g4 = f2 - p - m, f4 - p + m
    c, a = ux + uy, ax + ay
    p = even * (0.5 * (f5 + f7) - r36 * (square + 4.5 * c * c)) - e36 * (work + 9.0 * c * a)
    m = odd * (0.5 * d57 - 3.0 * r36 * c) - o36 * a
    g5, g7 = f5 - p - m, f7 - p + m
    c, a = uy - ux, ay - ax
    p = even * (0.5 * (f6 + f8) - r36 * (square + 4.5 * c * c)) - e36 * (work + 9.0 * c * a)
    m = odd * (0.5 * d68 - 3.0 * r36 * c) - o36 * a
    g6, g8 = f6 - p - m, f8 - p + m
    return g0, g1, g2, g3, g4, g5, g6, g7, g8


@compiled
def pulled_and_collided(f: Any, g: Any, first: int, last: int, columns: Any, ax: float, ay: float) -> None:
    """The columns `first` to `last - 1` of `g` from the rimmed `f`; each has its sponge and its two rates."""
    ny = f.shape[2] - 2
    for x in range(first, last):
        s, even, odd = columns[0, x], columns[1, x], columns[2, x]
        for y in range(1, ny + 1):
            r = collided(
                f[0, x, y],
                f[1, x - 1, y],
                f[2, x, y - 1],
                f[3, x + 1, y],
                f[4, x, y + 1],
                f[5, x - 1, y - 1],
                f[6, x + 1, y - 1],
                f[7, x + 1, y + 1],
                f[8, x - 1, y + 1],
                s,
                ax,
                ay,
                even,
                odd,
            )
            g[0, x, y] = r[0]
            g[1, x, y] = r[1]
            g[2, x, y] = r[2]
            g[3, x, y] = r[3]
            g[4, x, y] = r[4]
            g[5, x, y] = r[5]
            g[6, x, y] = r[6]
            g[7, x, y] = r[7]
            g[8, x, y] = r[8]


@compiled
def rim_filled(f: Any, along: int, sides: int, ux: float, uy: float) -> None:
    """What enters the lattice in the next step.

    Along the flow: what a plane that moves with the flow sends back at the inlet (given populations would be unstable
    where the odd ones relax slowly) and a copy of the last column at the outlet, or periodic. Sideways: see `sides`.
    """
    nx, ny = f.shape[1] - 2, f.shape[2] - 2
    for i in (1, 5, 8):
        j = OPPOSITE[i]
        moving = 6.0 * WEIGHTS[i] * (ux + CY[i] * uy)
        for y in range(1, ny + 1):
            if along == PERIODIC:
                f[i, 0, y] = f[i, nx, y]
            else:
                f[i, 0, y - CY[i]] = f[j, 1, y] + moving
    for i in (3, 6, 7):
        source = 1 if along == PERIODIC else nx
        for y in range(1, ny + 1):
            f[i, nx + 1, y] = f[i, source, y]
    for i, mirrored in ((2, 4), (5, 8), (6, 7)):  # up and down; the inlet has filled the corners at its end
        first = 1 if along == OPEN else 0
        if sides == PERIODIC:
            for x in range(first, nx + 2):
                f[i, x, 0] = f[i, x, ny]
                f[mirrored, x, ny + 1] = f[mirrored, x, 1]
        else:
            for x in range(first, nx + 2):
                f[i, x, 0] = f[mirrored, x, 1]
                f[mirrored, x, ny + 1] = f[i, x, ny]


@compiled
def sent_back(f: Any, links: Any, shares: np.ndarray, walls: Any, force: np.ndarray) -> None:
    """What a wall sends back along its links (Bouzidi et al. (2001), linear), and the force on it.

    A link is (direction towards the wall, x, y) of a node of the fluid; `shares` is where the wall cuts it, `walls` is
    how fast the wall moves there. The force is the momentum that goes into the wall and does not come back.
    """
    fx, fy = 0.0, 0.0
    for k in range(len(shares)):
        i, x, y, q = links[k, 0], links[k, 1], links[k, 2], shares[k]
        j = OPPOSITE[i]
        moving = 6.0 * WEIGHTS[i] * (CX[i] * walls[k, 0] + CY[i] * walls[k, 1])
        going = f[i, x, y]
        if q < 0.5:
            back = 2.0 * q * going + (1.0 - 2.0 * q) * f[i, x - CX[i], y - CY[i]] - moving
        else:
            back = (going + (2.0 * q - 1.0) * f[j, x, y] - moving) / (2.0 * q)
        f[j, x + CX[i], y + CY[i]] = back
        fx += CX[i] * (going + back)
        fy += CY[i] * (going + back)
    force[0], force[1] = fx, fy


@compiled
def set_to_rest(f: Any, inside: Any) -> None:
    """Nodes inside the body."""
    for k in range(len(inside)):
        for i in range(9):
            f[i, inside[k, 0], inside[k, 1]] = WEIGHTS[i]


@compiled
def lattice_steps(
    f: Any,
    g: Any,
    along: int,
    sides: int,
    ux: float,
    velocities: np.ndarray,
    accelerations: Any,
    columns: Any,
    links: Any,
    shares: np.ndarray,
    walls: Any,
    inside: Any,
    force: np.ndarray,
) -> None:
    """As many steps as there are `velocities` (of the flow across the inlet when each begins), `f` and `g` in turn.

    `force` is that on the body in the last step.
    """
    nx = f.shape[1] - 2
    for k in range(len(velocities)):
        rim_filled(f, along, sides, ux, velocities[k])
        sent_back(f, links, shares, walls, force)
        pulled_and_collided(f, g, 1, nx + 1, columns, accelerations[k, 0], accelerations[k, 1])
        set_to_rest(g, inside)
        f, g = g, f


@compiled
def moments(f: Any, density: Any, ux: Any, uy: Any) -> None:
    """Density and velocity at the nodes of the lattice."""
    for x in range(density.shape[0]):
        for y in range(density.shape[1]):
            rho, jx, jy = 0.0, 0.0, 0.0
            for i in range(9):
                rho += f[i, x + 1, y + 1]
                jx += CX[i] * f[i, x + 1, y + 1]
                jy += CY[i] * f[i, x + 1, y + 1]
            density[x, y] = rho
            ux[x, y] = jx / rho
            uy[x, y] = jy / rho
