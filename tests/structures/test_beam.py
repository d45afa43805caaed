"""Beams against closed solutions: modes, static deflections, rotation; and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import cosolve as cs

#: Roots of cos(x) cosh(x) = -1: a clamped and free beam.
CLAMPED_FREE = np.array([1.8751040687, 4.6940911330, 7.8547574382])


def rod(elements: int = 20, **more: float) -> cs.structures.Beam:
    return cs.structures.Beam(np.linspace(0.0, 2.0, elements + 1), mass=3.0, stiffness=100.0, **more)


def test_uniform_beam_has_the_frequencies_of_euler_and_bernoulli() -> None:
    exact = CLAMPED_FREE**2 * np.sqrt(100.0 / 3.0) / (2 * np.pi * 2.0**2)
    assert rod().frequencies(3) == pytest.approx(exact, rel=1e-4)


def test_frequencies_converge_with_the_fourth_power_of_the_element_length() -> None:
    exact = CLAMPED_FREE[1] ** 2 * np.sqrt(100.0 / 3.0) / (2 * np.pi * 2.0**2)
    errors = [rod(n).frequencies(2)[1] / exact - 1 for n in (4, 8)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(4.0, abs=0.3)
    assert min(errors) > 0  # from above: a conforming element is too stiff


def test_a_taper_given_as_a_function_is_integrated_not_sampled() -> None:
    """Cantilever of E I = 100 (1 - x/4) under a tip load: w = P int (L - x)^2 / (E I) dx, analytically."""
    beam = cs.structures.Beam(np.linspace(0.0, 2.0, 41), mass=1.0, stiffness=lambda x: 100 * (1 - x / 4))
    load = np.zeros(beam.n)
    load[-2] = 5.0
    x = np.linspace(0, 2, 200001)
    exact = np.trapezoid(5.0 * (2 - x) ** 2 / (100 * (1 - x / 4)), x)
    assert np.linalg.solve(beam.stiffness_matrix(), load)[-2] == pytest.approx(exact, rel=1e-6)


def test_mass_centre_and_inertia_of_a_wedge() -> None:
    beam = cs.structures.Beam(np.linspace(1.0, 3.0, 5), mass=lambda x: 2 * x, stiffness=1.0)
    assert (beam.total_mass, beam.centre_of_mass, beam.inertia) == pytest.approx((8.0, 52 / 3 / 8, 40.0), rel=1e-12)
    parabola = np.ravel([[(x - 1) ** 2, 2 * (x - 1)] for x in beam.nodes[1:]])
    assert beam.inertia_vector() @ parabola == pytest.approx(512 / 15, rel=1e-12)  # int 2 x^2 (x - 1)^2 dx


def test_tension_stores_the_square_of_the_slope() -> None:
    """A parabola x^2 under the tension 30: int 30 (2 x)^2 dx, whatever the elements."""
    beam = rod(7)
    parabola = np.ravel([[x**2, 2 * x] for x in beam.nodes[1:]])
    assert parabola @ beam.tension_stiffness(30.0) @ parabola == pytest.approx(320.0, rel=1e-12)
    assert parabola @ beam.stiffness_matrix() @ parabola == pytest.approx(100 * 4 * 2.0, rel=1e-12)
    assert parabola @ beam.mass_matrix() @ parabola == pytest.approx(3 * 2**5 / 5, rel=1e-12)


def test_tension_of_the_own_mass_is_that_of_the_part_beyond() -> None:
    beam = cs.structures.Beam(np.linspace(0.5, 2.5, 9), mass=lambda r: 4 * np.exp(-r), stiffness=1.0)
    tension = beam.centrifugal_tension()
    r = 0.5 + 0.25 * 3 + 0.25 * 0.5 * (1 + np.polynomial.legendre.leggauss(6)[0])
    inner = lambda x: -4 * np.exp(-x) * (x + 1)  # noqa: E731
    assert tension[3] == pytest.approx(inner(2.5) - inner(r), rel=1e-11)


def test_a_heavy_string_on_a_rotor_swings_with_the_speed_out_of_the_plane_and_not_in_it() -> None:
    """Without stiffness, from the axis outwards, the straight line is a mode: omega out of plane is the speed (Lamb and
    Southwell), and in the plane the frequency of it is zero."""
    beam = cs.structures.Beam(np.linspace(0.0, 1.0, 31), mass=1.0, stiffness=1e-8)
    w = 10.0
    assert 2 * np.pi * beam.frequencies(1, speed=w)[0] == pytest.approx(w, rel=3e-2)
    assert 2 * np.pi * beam.frequencies(1, speed=w, in_plane=True)[0] < 0.3 * w


def test_rotation_adds_the_square_of_the_speed() -> None:
    beam = rod()
    f0, f1, f2 = (2 * np.pi * beam.frequencies(1, speed=w)[0] for w in (0.0, 1.0, 2.0))
    assert (f2**2 - f0**2) / (f1**2 - f0**2) == pytest.approx(4.0, rel=2e-2)
    plane = 2 * np.pi * beam.frequencies(1, speed=1.0, in_plane=True)[0]
    assert f1**2 - plane**2 == pytest.approx(1.0, rel=1e-7)  # the centrifugal force turns with the deflection


def test_a_beam_as_a_structure_of_the_package() -> None:
    """Its matrices go into a SecondOrder: a step load ends at the static deflection when it is damped."""
    beam = rod(5)
    K, M = beam.stiffness_matrix(), beam.mass_matrix()
    structure = cs.structures.Structure(M, K=K, D=0.2 * K)
    mesh = cs.structures.SecondOrder(
        structure,
        "trapezoidal",
        inputs=[cs.structures.DofPort("f", beam.n - 2, "force")],
        outputs=[cs.structures.DofPort("w", beam.n - 2)],
    )
    system = cs.System({"beam": mesh})
    system.law("beam.f", lambda w: 3.0 + 0.0 * w, of="beam.w")
    run = cs.simulate(system, t_end=20.0, method=cs.Implicit(degree=1), step=0.1)
    assert run["beam.w"][-1] == pytest.approx(3.0 * 8 / 300, rel=1e-6)


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: cs.structures.Beam([0.0], 1.0, 1.0), "at least two"),
        (lambda: cs.structures.Beam([0.0, 2.0, 1.0], 1.0, 1.0), "beyond the one before"),
        (lambda: cs.structures.Beam([0.0, 1.0], -1.0, 1.0), "mass is -1 at position"),
        (lambda: cs.structures.Beam([0.0, 1.0], 1.0, lambda x: 0.5 - x), "stiffness is -0.119"),
        (lambda: cs.structures.Beam([0.0, 1.0], 1.0, [1.0, 2.0]), "one number for each of the 1 elements"),
        (lambda: cs.structures.Beam([0.0, 1.0], "heavy", 1.0), "mass must be a number"),
        (lambda: cs.structures.Beam([0.0, 1.0], 1.0, 1.0).frequencies(3), "3 modes of a beam with 2"),
        (lambda: cs.structures.Beam([0.0, 1.0], 1.0, 1.0).shapes([1.5]), "not on the beam"),
        (lambda: cs.structures.Beam([0.0, 1.0], 1.0, 1.0).stiffness_matrix(other=True), "other_stiffness"),
        (lambda: cs.structures.Beam([5.0, 6.0], 1.0, 1e-3).frequencies(1, speed=float("nan")), "finite number of rad"),
    ],
)  # fmt: skip
def test_nonsense_is_refused_with_a_sentence(made, sentence: str) -> None:
    with pytest.raises(cs.errors.SetupError, match=sentence):
        made()
