"""The Thomson coil as a field of finite elements: against elliptic integrals, against the rings, and by its energy."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import pytest
from examples.thomson_coil import field, model, pictures
from examples.thomson_coil.finite_elements import Matrices, Mesh
from examples.thomson_coil.model import ThomsonCoil
from examples.thomson_coil.run import error
from scipy.linalg import eigh, eigvals

import cosolve as cs
from examples import elements as el

COIL = ThomsonCoil()
COARSE = 0.5  # elements of twice the size: 198 unknowns that move


@cache
def matrices(finer: float = 1.0) -> Matrices:
    return Matrices(COIL, Mesh().finer(finer))


@cache
def undivided(finer: float = COARSE) -> field.Flight:
    return field.undivided(COIL, finer=finer, step=5e-6)


def coil_by_elliptic_integrals(across: int = 4, along: int = 7) -> float:
    """Each turn cut into rings that share its current, since filaments in the middle are 1.4 % wrong this close."""
    w, h = (COIL.wire[0] / across, COIL.wire[1] / along)
    radii = np.add.outer(COIL.turns, w * (np.arange(across) + 0.5) - COIL.wire[0] / 2).repeat(along)
    heights = np.tile(h * np.arange(along), across * len(COIL.turns))
    total = el.self_inductance(radii, w, h).sum()
    for i in range(len(radii)):
        others = np.arange(len(radii)) != i
        total += el.mutual_inductance(radii[i], radii[others], heights[i] - heights[others]).sum()
    return float(total / (across * along) ** 2)


@pytest.mark.covers("SC-43")
def test_inductance_of_the_coil() -> None:
    """In the air alone, within 1 %, and the mesh has edges where conductors have them."""
    exact = coil_by_elliptic_integrals()
    assert exact == pytest.approx(3.8622e-6, rel=1e-4)
    assert matrices().coil_inductance == pytest.approx(exact, rel=0.01)
    inner, outer, thickness = COIL.plate
    assert matrices().volumes.sum() == pytest.approx(np.pi * (outer**2 - inner**2) * thickness, rel=1e-12)


def test_edges_that_differ_by_rounding_are_one_line() -> None:
    """A plate as wide as the coil: no elements without width between the two."""
    p = replace(COIL, plate=(0.010 - 1.2e-3, 0.037 + 1.2e-3, 3e-3))
    assert np.diff(Mesh().radii(p)).min() > 0.1e-3
    assert Matrices(p, Mesh().finer(COARSE)).volumes.sum() == pytest.approx(np.pi * (0.0382**2 - 0.0088**2) * 3e-3)


@pytest.mark.covers("SC-43")
def test_currents_of_the_plate_die_as_in_the_rings() -> None:
    """The slowest ways in which they die out, coil open: no driving, no motion, no circuit."""
    rings = np.sort(1 / eigvals(COIL.plate_inductance, np.diag(COIL.plate_resistance)).real)[:3]
    of = matrices()
    nodes = of.plate_nodes
    M = np.zeros((of.n, of.n))
    for where, local in zip(of.nodes, of.local, strict=True):
        M[np.ix_(where, where)] += local
    K = sum(_dense(one) for one in of.bands)
    rest = np.setdiff1d(np.arange(of.n), nodes)
    K = K[np.ix_(nodes, nodes)] - K[np.ix_(nodes, rest)] @ np.linalg.solve(
        K[np.ix_(rest, rest)], K[np.ix_(rest, nodes)]
    )
    found = eigh(K, M[np.ix_(nodes, nodes)], eigvals_only=True)[:3]
    assert found == pytest.approx(rings, rel=0.02)


def _dense(band: np.ndarray) -> np.ndarray:
    n = band.shape[1]
    lower = sum(np.diag(row[: n - i], -i) for i, row in enumerate(band))
    return lower + np.tril(lower, -1).T


def test_the_force_is_the_slope_of_the_energy() -> None:
    """At a given flux, by differences: whatever the mesh, no energy leaks by the motion."""
    of, rng = matrices(COARSE), np.random.default_rng(1)
    psi = 1e-6 * rng.standard_normal(of.n)
    higher, lower = (of.energy(1.3 + s, psi, 100.0) for s in (1e-5, -1e-5))
    assert of.force(1.3, psi) == pytest.approx(-(higher - lower) / (2e-5 * COIL.gap), rel=1e-6)


def test_steps_converge_with_order_three() -> None:
    """Of the integrator, with the plate at rest."""
    machine = field.Machine(COIL, Mesh().finer(COARSE))

    def current(count: int) -> float:
        x = machine.x0
        for _ in range(count):
            x = machine.step(x, 40e-6 / count, lambda c: 0.0)[0]
        return float(x[machine.I])

    exact = current(64)
    wrong = [abs(current(count) / exact - 1) for count in (4, 8)]
    assert np.log2(wrong[0] / wrong[1]) > 2.7


@pytest.mark.covers("AP-32", "SC-43")
def test_coupled_flight() -> None:
    """Largest force and final speed within 5 % of the rings (AP-28), energy kept to 1e-3, on a coarse mesh."""
    free = cs.Linear([[0, 1], [0, 0]], [[0], [1 / COIL.mass]], np.eye(2), x0=[0, 0], inputs=["F"], outputs=["z", "v"])
    em = field.electromagnetics(COIL, internal_step=5e-6, finer=COARSE)
    system = field.connected(em, free)  # free flight as it is: nothing to compile
    found = cs.simulate(system, t_end=1e-3, method=cs.Jacobi(2), step=5e-6)
    assert found["em.F"].max() == pytest.approx(3363.0, rel=0.05)
    assert found["plate.v"][-1] == pytest.approx(2.96262, rel=0.05)
    energies = em.machine.energies(em.x, found["plate.z"][-1])
    moving = 0.5 * COIL.mass * found["plate.v"][-1] ** 2
    assert energies["capacitor"] == 0.0
    assert energies["field"] + energies["heat"] + moving == pytest.approx(90.0, rel=1e-3)
    assert error(found, undivided()) < 1e-3


def test_energy_of_the_undivided_machine() -> None:
    """At every moment: what leaves the capacitor is heat, field or motion."""
    flight = undivided()
    machine = flight.machine
    for x in flight.x[::50]:
        stored = machine.energies(x[:-2], x[-2])
        assert sum(stored.values()) + 0.5 * COIL.mass * x[-1] ** 2 == pytest.approx(90.0, rel=1e-5)


@pytest.mark.slow
@pytest.mark.covers("AP-32", "SC-43")
def test_the_flight_converges_with_the_mesh() -> None:
    """Halving the elements divides the changes by about four; inductance, force and speed stay near the rings."""
    t = np.linspace(0, 1e-3, 2001)
    flights = [undivided(finer) for finer in (0.5, 1.0, 2.0)]
    force, speed = ([one.signals(t)[name].max() for one in flights] for name in ("F", "v"))
    coil = [one.machine.of.coil_inductance for one in flights]
    for values in (force, speed, coil):
        assert 2.5 < (values[1] - values[0]) / (values[2] - values[1]) < 6
    assert force[-1] == pytest.approx(3363.0, rel=0.05)
    assert flights[-1].x[-1, -1] == pytest.approx(2.96262, rel=0.05)
    assert coil[-1] == pytest.approx(coil_by_elliptic_integrals(), rel=0.003)


class ThickWire(ThomsonCoil):
    """Rings with turns cut as well, 4 x 7 filaments each, in place of one in the middle."""

    @cached_property
    def coil_inductance(self) -> float:
        return coil_by_elliptic_integrals()

    def mutual(self, z):
        (radii, heights, _, _), (w, h) = self.ring_places, self.wire
        turns = np.add.outer(self.turns, w * ((np.arange(4) + 0.5) / 4 - 0.5)).ravel()
        value, slope = 0.0, 0.0
        for depth in h * (np.arange(7) + 0.5) / 7:
            away = np.atleast_1d(z)[:, np.newaxis, np.newaxis] + self.gap + depth + heights[:, np.newaxis]
            value += el.mutual_inductance(radii[:, np.newaxis], turns, away).sum(axis=-1) / 28
            slope += el.mutual_inductance_slope(radii[:, np.newaxis], turns, away).sum(axis=-1) / 28
        return value, slope


@pytest.mark.slow
@pytest.mark.covers("SC-43")
def test_field_and_rings_agree_where_both_see_the_section_of_the_wire() -> None:
    """Two discretisations that share nothing, both fine: force, speed and diode to 0.3 %."""
    t = np.linspace(0, 1e-3, 2001)
    rings = model.undivided(ThickWire(rings=(53, 4), table=(-1e-3, 4e-3, 4e-5)), step=2e-7)
    fine = undivided(2.0)
    for name in ("F", "v", "I"):
        assert fine.signals(t)[name].max() == pytest.approx(rings.signals(t)[name].max(), rel=3e-3), name
    assert fine.diode == pytest.approx(rings.diode, rel=3e-3)


def test_a_step_can_be_repeated_to_the_bit() -> None:
    """Over the diode at 161 us as well."""
    em = field.electromagnetics(COIL, internal_step=5e-6, finer=COARSE)
    em.start(0.0)
    motion = lambda t: np.array([3.0 * max(t - 1e-4, 0.0), 3.0])  # noqa: E731
    for k in range(15):
        em.advance(k * 1e-5, (k + 1) * 1e-5, motion)
    saved = em.save()
    assert saved[em.machine.on] == 1.0
    first = [em.advance(150e-6, 180e-6, motion), em.save()]
    assert first[1][em.machine.on] == 0.0
    em.restore(saved)
    assert em.advance(150e-6, 180e-6, motion) == first[0]
    assert np.array_equal(em.save(), first[1])


def test_a_plate_that_is_pulled_onto_the_coil_is_named() -> None:
    """With time and part, and what there was is kept: elements of the gap cannot be folded."""
    system = cs.System({"em": field.electromagnetics(COIL, 5e-6, finer=COARSE), "hand": Hand()})
    system.connect("hand.z", "em.z")
    system.connect("hand.v", "em.v")
    with pytest.raises(
        cs.errors.SubsystemError, match=r"'em' .* z = -0\.9\d+ mm, but the gap of 1 mm .* closed"
    ) as caught:
        cs.simulate(system, t_end=1e-4, method=cs.GaussSeidel(1), step=5e-6)
    assert caught.value.subsystem == "em"
    assert len(caught.value.result.t) > 15


class Hand(cs.Subsystem):
    """Pushes the plate down, faster than anything holds it."""

    inputs, outputs = [], ["z", "v"]

    def start(self, t0: float) -> list[float]:
        return [0.0, -10.0]

    def advance(self, t0: float, t1: float, u) -> list[float]:
        return [-10.0 * t1, -10.0]


def test_without_scikit_fem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skfem", None)
    with pytest.raises(cs.errors.SetupError, match=r"needs scikit-fem.*pip install cosolve\[fem\]"):
        field.electromagnetics()


def test_air_that_ends_too_near_is_refused() -> None:
    with pytest.raises(cs.errors.SetupError, match=r"far = 0\.05 m is too near for conductors of 0\.045 m"):
        field.electromagnetics(mesh=Mesh(far=0.05))


@pytest.mark.parametrize("given", [{"internal_step": 0.0}, {"finer": 0.0}, {"finer": float("nan")}])
def test_bad_arguments(given: dict[str, float]) -> None:
    with pytest.raises(cs.errors.SetupError, match=next(iter(given))):
        field.electromagnetics(**given)


def test_pictures_of_the_field(tmp_path: Path) -> None:
    """Currents of coil and plate flow against each other, the mesh follows the plate, and it can be drawn."""
    flight = undivided()
    (section,) = pictures.sections(flight, [1e-4])
    coil, plate = section.boxes[: len(COIL.turns)], section.boxes[len(COIL.turns) :]
    assert (coil[:, 4] > 0).all()
    total = (plate[:, 2] * plate[:, 3] * plate[:, 4]).sum()
    assert -10 * section.current < total < -5 * section.current  # of ten turns, most is mirrored in the plate
    assert plate[:, 1].min() == pytest.approx(COIL.gap + section.z, rel=1e-12)
    radii, heights, flux = section.flux
    assert flux.shape == (len(heights), len(radii))
    assert (np.diff(heights) > 0).all()
    pictures.draw_sections(flight, tmp_path / "section.png")
    assert (tmp_path / "section.png").stat().st_size > 20_000


def test_the_field_from_a_system_file() -> None:
    """As a new user runs it: the file by itself, with public functions."""
    description = cs.load_system(Path(field.__file__).with_name("field.toml"))
    run = description.options
    result = cs.simulate(description.system, t_end=5e-5, method=run.method, step=run.step)
    assert result["em.F"][-1] == pytest.approx(2000.0, rel=0.1)
    assert result["plate.z"][-1] > 0
