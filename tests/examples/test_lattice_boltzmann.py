"""The lattice-Boltzmann flow: exact solutions at its walls, and what a coupled run asks of a field solver."""

import numpy as np
import pytest
from examples.cylinder_flow import lattice_kernels as kernels
from examples.cylinder_flow.cross_flow import CrossFlow
from examples.cylinder_flow.lattice_boltzmann import LatticeBoltzmannCylinder, disc_links, equilibrium

import cosolve as cs
from cosolve.signal import Polynomial

WATER = CrossFlow(velocity=0.0625, diameter=1.6e-3, viscosity=1e-6, span=0.12)
STEP = 2e-4


def small(**options: object) -> LatticeBoltzmannCylinder:
    """80 x 48 nodes around a cylinder of 8 nodes."""
    return LatticeBoltzmannCylinder(WATER, STEP, **{"cells": 8, "upstream": 4, "downstream": 6, "width": 6} | options)


def ramp(t0: float, v0: float, v1: float, H: float = 4 * STEP) -> Polynomial:
    return Polynomial(t0, H, np.array([[v0], [v1 - v0]]))


# -- walls: a channel with walls anywhere between the nodes ------------------------------------------------


def channel(n: int, q: float, a: float, wall: float = 0.0, tau: float = 1.0, steps: int = 0) -> tuple[np.ndarray, ...]:
    """Velocities along a channel that is `n - 1 + 2 q` wide, where they are, and the forces on both walls."""
    f = np.empty((9, 5, n + 4))
    f[:] = equilibrium(1.0, 0.0, 0.0)[:, None, None]
    g = f.copy()
    links = np.array([[i, x, y] for y, ways in ((2, (4, 7, 8)), (n + 1, (2, 5, 6))) for i in ways for x in (1, 2, 3)])
    shares, walls = np.full(len(links), q), np.zeros((len(links), 2))
    upper = links[:, 2] == n + 1
    walls[upper, 0] = wall
    inside = np.array([[x, y] for x in (1, 2, 3) for y in (1, n + 2)])
    columns = np.array([np.zeros(5), np.full(5, 1.0 / tau), np.full(5, 1.0 / (0.5 + 3.0 / 16.0 / (tau - 0.5)))])
    force, push = np.zeros(2), np.zeros((2, 2))
    push[:, 0] = a
    for _ in range((steps or 12 * n * n) // 2):
        kernels.lattice_steps(
            f,
            g,
            kernels.PERIODIC,
            kernels.PERIODIC,
            0.0,
            np.zeros(2),
            push,
            columns,
            links,
            shares,
            walls,
            inside,
            force,
        )
    density, ux, uy = (np.empty((3, n + 2)) for _ in range(3))
    kernels.moments(f, density, ux, uy)
    forces = []
    for part in (~upper, upper):
        kernels.sent_back(f, links[part], shares[part], walls[part], force)
        forces.append(force.copy())
    return np.arange(n) + q, ux[1, 1:-1] - 0.5 * a, np.array(forces) / 3.0


def poiseuille(n: int, q: float, steps: int = 0) -> float:
    """Largest error over the largest velocity."""
    a, nu, width = 1e-6, 1.0 / 6.0, n - 1 + 2 * q
    y, u, _ = channel(n, q, a, steps=steps)
    exact = 0.5 * a / nu * y * (width - y)
    return float(np.abs(u - exact).max() / exact.max())


@pytest.mark.covers("FS-11")
def test_poiseuille_flow_is_exact_with_walls_half_way() -> None:
    """What the product 3/16 of the two relaxation times is for; the start has decayed by exp(-40) then."""
    assert poiseuille(8, 0.5, steps=1600) < 1e-11


@pytest.mark.covers("FS-11")
@pytest.mark.parametrize("q", [0.2, 0.8])
def test_poiseuille_flow_converges_with_order_two(q: float) -> None:
    sizes = [6, 12, 24]
    errors = [poiseuille(n, q) for n in sizes]
    assert -cs.analysis.convergence_order([n - 1 + 2 * q for n in sizes], errors) == pytest.approx(2.0, abs=0.1)
    assert errors[-1] < 0.005


@pytest.mark.covers("FS-11")
@pytest.mark.parametrize("q", [0.2, 0.5, 0.8])
def test_couette_flow_and_its_forces_are_exact(q: float) -> None:
    """A moving wall drags the fluid in a straight line; the walls feel `rho nu du/dy`, one the opposite of the other.

    At small velocities: the square of the wall's is missing in what it sends back.
    """
    n, wall, nu = 8, 1e-5, 1.0 / 6.0
    y, u, forces = channel(n, q, 0.0, wall=wall, steps=6000)
    width = n - 1 + 2 * q
    assert u / wall == pytest.approx(y / width, abs=1e-6)
    stress = nu * wall / width
    assert forces[:, 0] == pytest.approx([stress, -stress], rel=1e-5)
    assert abs(forces[:, 0].sum()) < 1e-6 * stress


@pytest.mark.covers("FS-11")
def test_links_end_on_the_circle() -> None:
    links, shares, inside = disc_links((20.3, 11.8), 7.6)
    directions = np.stack([kernels.CX, kernels.CY], axis=1)[links[:, 0]]
    ends = links[:, 1:] - 0.5 + shares[:, None] * directions
    assert np.hypot(ends[:, 0] - 20.3, ends[:, 1] - 11.8) == pytest.approx(7.6, rel=1e-13)
    assert shares.min() > 0.0
    assert shares.max() <= 1.0
    behind = {tuple(node) for node in (links[:, 1:] + directions).tolist()}
    assert behind <= {tuple(node) for node in inside.tolist()}
    slots = {(int(i), *node) for i, node in zip(links[:, 0], (links[:, 1:] + directions).tolist(), strict=True)}
    assert len(slots) == len(links)  # no slot behind the wall belongs to two links


# -- the frame of the cylinder -----------------------------------------------------------------------------


@pytest.mark.covers("FS-11")
def test_accelerated_frame_is_a_change_of_frame() -> None:
    """Where no body is, a fluid in the accelerated frame has minus the velocity of the frame, whatever that does."""
    fluid = small()
    fluid.start(0.0)
    nothing = type(fluid._body)((-1e3, -1e3), 0.5)
    nothing.links, nothing.shares = np.zeros((0, 3), dtype=np.int64), np.zeros(0)
    nothing.inside = np.zeros((0, 2), dtype=np.int64)
    fluid._body = nothing
    fluid.at_start(0.0)
    v = 0.0
    for k in range(30):
        after = 0.02 * np.sin(0.3 * (k + 1))
        fluid.advance(4 * STEP * k, 4 * STEP * (k + 1), ramp(4 * STEP * k, v, after))
        v = after
    shot = fluid.snapshot()
    middle = np.abs(shot.points[:, 0]) < WATER.diameter
    assert shot.point_data["velocity"][middle] == pytest.approx(
        np.tile([WATER.velocity, 0.0], (middle.sum(), 1)), abs=2e-3 * WATER.velocity
    )


@pytest.mark.covers("FS-11")
def test_cylinder_that_is_held_symmetrically_has_no_lift() -> None:
    fluid = small()
    fluid.start(0.0)
    for k in range(20):
        lift, drag = fluid.advance(4 * STEP * k, 4 * STEP * (k + 1), ramp(4 * STEP * k, 0.0, 0.0)) / WATER.unit_force
    assert abs(lift) < 1e-9
    assert drag > 0.5


@pytest.mark.covers("FS-11")
@pytest.mark.parametrize("sides", [kernels.PERIODIC, kernels.SLIP], ids=["periodic", "slip"])
def test_where_a_periodic_lattice_begins_does_not_matter(sides: int) -> None:
    """Any flow, moved along (and across, where that is periodic too), steps to the same flow moved as far."""
    rng = np.random.default_rng(3)
    flow = equilibrium(1.0, 0.05, -0.02)[:, None, None] * (1.0 + 0.01 * rng.standard_normal((9, 7, 6)))

    def steps(flow: np.ndarray) -> np.ndarray:
        f = np.zeros((9, 9, 8))
        f[:, 1:-1, 1:-1] = flow
        nothing = np.zeros((0, 3), dtype=np.int64), np.zeros(0), np.zeros((0, 2)), np.zeros((0, 2), dtype=np.int64)
        columns = np.tile([[0.0], [1.25], [1.4]], 9)
        g, force = f.copy(), np.zeros(2)
        kernels.lattice_steps(
            f, g, kernels.PERIODIC, sides, 0.0, np.zeros(4), np.zeros((4, 2)), columns, *nothing, force
        )
        return f[:, 1:-1, 1:-1].copy()

    after = steps(flow)
    assert after.sum() == pytest.approx(flow.sum(), rel=1e-13)  # nothing comes in or goes out
    for dx, dy in ((1, 0), (3, 0), *([(0, 1), (2, 4)] if sides == kernels.PERIODIC else [])):
        np.testing.assert_allclose(steps(np.roll(flow, (dx, dy), (1, 2))), np.roll(after, (dx, dy), (1, 2)), rtol=1e-13)


@pytest.mark.covers("FS-11")
def test_up_and_down_are_mirror_images() -> None:
    """Lift turns round with the motion, drag stays: nothing in the kernels prefers a side, but for rounding."""
    found = []
    for sign in (1.0, -1.0):
        fluid = small()
        fluid.start(0.0)
        v, sides = 0.0, []
        for k in range(20):
            after = sign * 0.01 * np.sin(0.2 * (k + 1))
            sides.append(fluid.advance(4 * STEP * k, 4 * STEP * (k + 1), ramp(4 * STEP * k, v, after)))
            v = after
        found.append(np.array(sides) / WATER.unit_force)
    assert found[1][:, 0] == pytest.approx(-found[0][:, 0], abs=1e-9)
    assert found[1][:, 1] == pytest.approx(found[0][:, 1], rel=1e-9)
    assert np.abs(found[0][:, 0]).max() > 0.1


# -- rollback, threads, signals ----------------------------------------------------------------------------


@pytest.mark.covers("FS-08")
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_steps_have_the_same_bits_again_elsewhere_and_in_threads(threads: int) -> None:
    fluid, reference = small(threads=threads), small()
    H = 4 * STEP
    for one in (fluid, reference):
        one.start(0.0)
        one.advance(0.0, H, ramp(0.0, 0.0, 0.004))
    here = fluid.save()
    first = fluid.advance(H, 2 * H, ramp(H, 0.004, 0.007))
    fields = fluid.fields()
    fluid.restore(here)
    fluid.advance(H, 2 * H, ramp(H, 0.004, -0.02))
    fluid.restore(here)
    again = fluid.advance(H, 2 * H, ramp(H, 0.004, 0.007))
    assert again.tobytes() == first.tobytes()
    assert fluid.fields().tobytes() == fields.tobytes()
    assert reference.advance(H, 2 * H, ramp(H, 0.004, 0.007)).tobytes() == first.tobytes()
    other = small()  # as in another process: a state is all that it knows
    other.start(0.0)
    other.set_portable_state(here)
    assert other.advance(H, 2 * H, ramp(H, 0.004, 0.007)).tobytes() == first.tobytes()
    assert other.displacement == fluid.displacement


@pytest.mark.covers("FS-08")
def test_signals_are_followed_inside_the_step() -> None:
    """A held value is a ramp from where the velocity was; two short steps along a parabola are one long one."""
    H = 8 * STEP
    held, line, long, short = (small() for _ in range(4))
    for one in (held, line, long, short):
        one.start(0.0)
    end = held.advance(0.0, H, Polynomial(0.0, H, np.array([[0.01]])))
    assert line.advance(0.0, H, ramp(0.0, 0.0, 0.01, H)) == pytest.approx(end, rel=1e-9)
    parabola = np.array([[0.0], [0.004], [0.006]])
    whole = long.advance(0.0, H, Polynomial(0.0, H, parabola))
    assert abs(whole[0] - end[0]) > 0.1 * abs(end[0])  # the way there matters, not only where it ends
    half = np.array([[0.0], [0.002], [0.0015]])
    short.advance(0.0, H / 2, Polynomial(0.0, H / 2, half))
    rest = np.array([[0.0035], [0.005], [0.0015]])
    assert short.advance(H / 2, H, Polynomial(H / 2, H / 2, rest)) == pytest.approx(whole, rel=1e-9)


@pytest.mark.covers("FS-11")
def test_snapshot_shows_the_fields_where_they_are() -> None:
    fluid = small()
    fluid.start(0.0)
    fluid.advance(0.0, 4 * STEP, ramp(0.0, 0.0, 0.01))
    shot = fluid.snapshot()
    assert shot.n_points == 80 * 48
    assert shot.n_cells == 79 * 47
    assert set(shot.point_data) == {"velocity", "pressure", "vorticity"}
    assert fluid.displacement == pytest.approx(0.5 * 0.01 * 4 * STEP)
    assert shot.points[:, 1].mean() == pytest.approx(fluid.displacement, abs=1e-15)
    inside = np.hypot(shot.points[:, 0], shot.points[:, 1] - fluid.displacement) < 0.45 * WATER.diameter
    assert shot.point_data["velocity"][inside] == pytest.approx(np.tile([0.0, 0.01], (inside.sum(), 1)))


def _steps(fluid: LatticeBoltzmannCylinder, n: int) -> None:
    for k in range(n):
        fluid.advance(4 * STEP * k, 4 * STEP * (k + 1), ramp(4 * STEP * k, 0.0, 0.0))


# -- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.covers("FS-20")
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"step": 1e-3}, "lattice Mach number of 0.54.*take a step of"),
        ({"cells": 64, "step": 1e-7}, "relaxation time 0.5005 is too near 1/2"),
        ({"cells": 2}, "cells"),
        ({"sides": "rough"}, "sides"),
        ({"upstream": 1.0}, "upstream must be at least 3.75 diameters"),
        ({"flow": 0.1}, "given as a CrossFlow"),
        ({"step": 0.0}, "step must be a positive number"),
    ],
)
def test_impossible_lattices_are_refused(options: dict, sentence: str) -> None:
    given = {"flow": WATER, "step": STEP, "cells": 8} | options
    with pytest.raises(cs.errors.SetupError, match=sentence):
        LatticeBoltzmannCylinder(given.pop("flow"), given.pop("step"), **given)


@pytest.mark.covers("FS-20")
def test_what_goes_wrong_in_a_step_is_said() -> None:
    fluid = small()
    fluid.start(0.0)
    with pytest.raises(cs.errors.SetupError, match=r"no whole number of steps of 0.0002 s; 0.0008 s would do"):
        fluid.advance(0.0, 7.5e-4, ramp(0.0, 0.0, 0.0, 7.5e-4))
    with pytest.raises(cs.errors.SubsystemError, match="at t = 0, a lattice Mach number"):
        fluid.advance(0.0, 4 * STEP, ramp(0.0, 0.0, 1.0))
    with pytest.raises(cs.errors.SubsystemError, match="velocity of the cylinder is nan"):
        fluid.advance(0.0, 4 * STEP, ramp(0.0, 0.0, np.nan))
    fluid._f[1, 40, 20:30] = np.nan
    with pytest.raises(cs.errors.SubsystemError, match=r"no finite force.*take a smaller step than 0.0002 s"):
        _steps(fluid, 30)
    walled = small(sides="slip")
    walled.start(0.0)
    walled.advance(0.0, 4 * STEP, ramp(0.0, 0.0, 0.0))
    with pytest.raises(cs.errors.SubsystemError, match="slip sides"):
        walled.advance(4 * STEP, 8 * STEP, ramp(4 * STEP, 0.0, 0.01))
