"""Spectral radii and stability limits of the oscillator (docs/validation/schweizer-lu.md)."""

import numpy as np
import pytest
from examples.two_mass.model import lu, split
from examples.two_mass_semi_implicit.run import stable_share

import cosolve as cs

H_TABLE = (1e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1)
#: applied-force 3.1, c = 1000, d = 10
RADII = {
    (cs.SemiImplicit, "F/F", 0): (0.996829, 0.984110, 0.968133, 0.935900, 0.836801, 0.690548),
    (cs.SemiImplicit, "F/F", 1): (0.996835, 0.984277, 0.968812, 0.938681, 0.855108, 0.749635),
    (cs.SemiImplicit, "F/F", 2): (0.996835, 0.984276, 0.968802, 0.938621, 0.855096, 1.185518),
    (cs.SemiImplicit, "F/D", 0): (0.996920, 0.986354, 0.976874, 0.969169, 1.013010, 1.478207),
    (cs.SemiImplicit, "D/D", 0): (0.996969, 0.987544, 0.981490, 0.986846, 1.097629, 0.862696),
    (cs.SemiImplicit, "D/D", 1): (0.996835, 0.984239, 0.968512, 0.936342, 0.822060, 0.610670),
    (cs.Jacobi, "F/F", 0): (0.996842, 0.984436, 0.969418, 0.940892, 1.168814, 3.548706),
    (cs.Jacobi, "F/F", 1): (0.996835, 0.984268, 0.968756, 0.938455, 1.401299, 5.556541),
    (cs.Jacobi, "F/F", 2): (0.996835, 0.984274, 0.968767, 0.938075, 2.604537, 7.301303),
}
#: applied-force 3.1, F/F at H = 5e-3: (c, d) -> explicit/semi-implicit per k
MAP = {
    (1e3, 10): ((0.984, 0.984), (0.984, 0.984), (0.984, 0.984)),
    (1e4, 10): ((1.031, 0.983), (0.984, 0.984), (0.984, 0.984)),
    (2e4, 1): ((1.158, 0.995), (1.136, 0.998), (1.017, 1.009)),
    (5e4, 10): ((1.304, 0.975), (1.422, 0.984), (1.518, 1.010)),
    (1e5, 20): ((1.490, 0.951), (1.782, 0.969), (2.033, 1.048)),
    (1e5, 50): ((1.366, 0.906), (1.637, 0.925), (1.876, 0.928)),
    (1e5, 100): ((1.169, 0.837), (1.401, 0.855), (2.605, 0.855)),
    (1e3, 500): ((1.470, 0.990), (2.902, 0.990), (4.221, 0.990)),
}
#: semi-implicit 15.2 at H = 5e-3: semi-implicit | explicit for F/F k=0,1,2, F/D k=0, D/D k=0
COLUMNS = (("F/F", 0), ("F/F", 1), ("F/F", 2), ("F/D", 0), ("D/D", 0))
SECTION_15_2 = {
    (1e3, 1): ((0.9982, 1.0033), (0.9984, 0.9984), (0.9984, 0.9984), (1.0007, 1.0026), (1.0020, 0.9977)),
    (1e3, 10): (
        *((0.984110, 0.984436), (0.984277, 0.984268), (0.984276, 0.984274)),
        *((0.986354, 0.982135), (0.987544, 0.980884)),
    ),
    (1e3, 1e3): ((0.9950, 1.8712), (0.9950, 3.6961), (0.9950, 5.4060), (0.9950, 1.3514), (0.9950, 0.9950)),
    (1e4, 10): ((0.9825, 1.0306), (0.9843, 0.9844), (0.9843, 0.9841), (1.0066, 1.0243), (1.0199, 0.9767)),
    (1e5, 1): ((0.9803, 1.5707), (0.9984, 1.8751), (1.1298, 2.1336), (1.2571, 1.5382), (1.5053, 1.1565)),
    (1e5, 10): ((0.9662, 1.5322), (0.9845, 1.8306), (1.0903, 2.0857), (1.2340, 1.4977), (1.4637, 1.1140)),
    (1e5, 100): ((0.8368, 1.1688), (0.8551, 1.4013), (0.8551, 2.6045), (1.0130, 1.1201), (1.0976, 0.7691)),
    (1e5, 1e3): ((0.5881, 2.0821), (0.5929, 4.0236), (0.5926, 5.8317), (0.5888, 1.4722), (0.5915, 0.5930)),
}


def radius(method, kind, k, H, c=1e3, d=10.0):
    return cs.analysis.spectral_radius(split(kind, lu(c, d)), method(degree=k), H)


@pytest.mark.covers("SL-10")
@pytest.mark.parametrize(("method", "kind", "k"), RADII, ids=lambda v: getattr(v, "__name__", str(v)))
def test_table_of_radii(method, kind, k):
    """The table of 3.1 to 1e-6 (half of the last printed digit included)."""
    found = [radius(method, kind, k, H) for H in H_TABLE]
    assert found == pytest.approx(RADII[method, kind, k], abs=1e-6)


@pytest.mark.covers("SL-10")
def test_radii_of_the_exact_system():
    """The coupled system without coupling error: rho = max|eig exp(AH)|."""
    found = [np.abs(np.linalg.eigvals(lu().flow(H))).max() for H in H_TABLE]
    assert found == pytest.approx([0.996835, 0.984276, 0.968798, 0.938570, 0.853428, 0.728340], abs=1e-6)
    assert found[1] == pytest.approx(0.98427558, abs=5e-9)
    assert found[0] == pytest.approx(0.99683515, abs=5e-9)


@pytest.mark.covers("SL-11")
@pytest.mark.parametrize(("c", "d"), MAP)
def test_map_of_the_force_split(c, d):
    """Fig. 10 / Fig. 14 at eight points, to 1e-3."""
    for k, (explicit, semi) in enumerate(MAP[c, d]):
        assert radius(cs.Jacobi, "F/F", k, 5e-3, c, d) == pytest.approx(explicit, abs=1e-3)
        assert radius(cs.SemiImplicit, "F/F", k, 5e-3, c, d) == pytest.approx(semi, abs=1e-3)


@pytest.mark.covers("LU-09", "LU-10", "SL-11")
@pytest.mark.parametrize(("c", "d"), SECTION_15_2)
def test_radii_of_all_splits(c, d):
    """All 80 radii of 15.2 to their last printed digit."""
    for (kind, k), (semi, explicit) in zip(COLUMNS, SECTION_15_2[c, d], strict=True):
        digit = 5.1e-7 if (c, d) == (1e3, 10) else 5.1e-5
        assert radius(cs.SemiImplicit, kind, k, 5e-3, c, d) == pytest.approx(semi, abs=digit)
        assert radius(cs.Jacobi, kind, k, 5e-3, c, d) == pytest.approx(explicit, abs=digit)


@pytest.mark.covers("LU-09")
@pytest.mark.parametrize(
    ("c", "d", "expected"), [(1e5, 10.0, (1.532, 1.831, 2.086)), (1e3, 1e3, (1.871, 3.696, 5.406))]
)
def test_explicit_reference_scheme(c, d, expected):
    """Explicit F/F at H = 5e-3, to the last printed digit."""
    assert [radius(cs.Jacobi, "F/F", k, 5e-3, c, d) for k in (0, 1, 2)] == pytest.approx(expected, abs=5.1e-4)


@pytest.mark.covers("LU-10", "SL-11")
def test_semi_implicit_region_of_the_force_split():
    """rho < 1 for k = 0, 1 on the whole map 1e2 <= c <= 1e5, 1 <= d <= 1e4; for k = 2 only outside a corner.

    The corner is c > 1e4, d < 5e1 (source); both sides of its border are tested.
    """
    c, d = np.logspace(2, 5, 10), np.logspace(0, 4, 9)
    for k in (0, 1):
        radii = cs.analysis.stability_map(lambda a, b: split("F/F", lu(a, b)), c, d, cs.SemiImplicit(degree=k), 5e-3)
        assert radii.max() < 1.0
    radii = cs.analysis.stability_map(lambda a, b: split("F/F", lu(a, b)), c, d, cs.SemiImplicit(degree=2), 5e-3)
    unstable = radii > 1.0
    assert unstable.any()
    corner = (c[:, np.newaxis] > 1e4 * (1 - 1e-9)) & (d[np.newaxis, :] < 5e1)
    assert not (unstable & ~corner).any()
    assert radius(cs.SemiImplicit, "F/F", 2, 5e-3, 1e5, 10) == pytest.approx(1.0903, abs=5.1e-5)
    assert radius(cs.SemiImplicit, "F/F", 2, 5e-3, 10**4.5, 1) == pytest.approx(1.0257, abs=5.1e-5)
    assert radius(cs.SemiImplicit, "F/F", 2, 5e-3, 1e5, 100) == pytest.approx(0.8551, abs=5.1e-5)
    assert radius(cs.SemiImplicit, "F/F", 2, 5e-3, 5e4, 10) > 1.0 > radius(cs.SemiImplicit, "F/F", 2, 5e-3, 1e5, 50)


@pytest.mark.covers("LU-10")
def test_beyond_the_map_linear_signals_fail():
    """10.4: at c = 10^5.5 the subsystem oscillation is aliased (H sqrt(c/m1) = 2.8), k = 1 reaches rho 1.54."""
    worst = max(radius(cs.SemiImplicit, "F/F", 1, 5e-3, 10**5.5, d) for d in (1.0, 10.0))
    assert worst == pytest.approx(1.54, abs=1e-2)
    assert radius(cs.SemiImplicit, "F/F", 0, 5e-3, 10**5.5, 1.0) < 1.0


@pytest.mark.covers("LU-11")
@pytest.mark.parametrize("kind", ["F/F", "F/D", "D/F", "D/D"])
@pytest.mark.parametrize("method", [cs.SemiImplicit, cs.Jacobi])
@pytest.mark.parametrize("k", [0, 1, 2])
def test_scaling_invariance(kind, method, k):
    """rho depends on cH^2/m and dH/m only: rho(H, c, d) = rho(H/5, 25c, 5d) to 1e-10."""
    a = radius(method, kind, k, 5e-3, 2e3, 20.0)
    b = radius(method, kind, k, 1e-3, 5e4, 100.0)
    assert a == pytest.approx(b, abs=1e-10)


@pytest.mark.covers("LU-11")
def test_eight_digits():
    """F/F, H = 5e-3, c = 2e3, d = 20, to all printed digits."""
    found = [radius(cs.SemiImplicit, "F/F", k, 5e-3, 2e3, 20.0) for k in (0, 1, 2)]
    assert found == pytest.approx([0.96848829, 0.96880521, 0.96879903], abs=5.1e-9)


@pytest.mark.sample(2)
@pytest.mark.covers("SL-08", "SL-10")
@pytest.mark.parametrize(
    ("kind", "limits"),
    [
        ("F/F", (0.03322, 0.03354, 0.03296)),
        ("F/D", (0.03642, 0.03497, 0.03398)),
        ("D/F", (0.0768, 0.0456, 0.0390)),
        ("D/D", (np.inf, 0.0603, 0.0444)),
    ],
)
def test_explicit_critical_steps(kind, limits):
    """First H >= 0.01 with rho > 1, to the last printed digit; rho straddles 1 there."""
    for k, expected in enumerate(limits):
        found = cs.analysis.critical_step(split(kind), cs.Jacobi(degree=k), step_range=(0.01, 0.5))
        if np.isinf(expected):
            assert np.isinf(found)
            continue
        assert found == pytest.approx(expected, abs=6e-6 if kind in ("F/F", "F/D") else 6e-5)
        below, above = (radius(cs.Jacobi, kind, k, found * f) for f in (0.999, 1.001))
        assert below < 1.0 < above


@pytest.mark.sample(2)
@pytest.mark.covers("SL-10", "SL-12")
@pytest.mark.parametrize(
    ("kind", "k", "expected"),
    [
        *(
            ("F/F", 1, 0.0775),
            ("F/F", 2, 0.0643),
            ("F/D", 0, 0.0444),
            pytest.param("F/D", 2, 0.0648, marks=pytest.mark.slow),
        ),
        *(pytest.param("D/F", 2, 0.1199, marks=pytest.mark.slow), ("D/D", 0, 0.0259)),
    ],
)
def test_semi_implicit_critical_steps(kind, k, expected):
    """Semi-implicit limits of 3.1 to the last printed digit (windows: the method is not unconditionally stable)."""
    found = cs.analysis.critical_step(split(kind), cs.SemiImplicit(degree=k), step_range=(0.01, 0.13))
    assert found == pytest.approx(expected, abs=6e-5)
    below, above = (radius(cs.SemiImplicit, kind, k, found * f) for f in (0.999, 1.001))
    assert below < 1.0 < above


@pytest.mark.slow
@pytest.mark.covers("SL-10")
@pytest.mark.parametrize(("kind", "k"), [("F/F", 0), ("F/D", 1), ("D/F", 0), ("D/F", 1), ("D/D", 1), ("D/D", 2)])
def test_semi_implicit_without_limit(kind, k):
    """None up to H = 0.5 on a 2 % grid."""
    assert np.isinf(cs.analysis.critical_step(split(kind), cs.SemiImplicit(degree=k), step_range=(0.01, 0.5)))


@pytest.mark.covers("SL-10")
@pytest.mark.parametrize(
    ("kind", "k", "window", "edge"),
    [
        ("F/F", 1, (0.0775, 0.089), 1e-3),
        ("F/F", 2, (0.064, 0.105), 1e-3),
        ("F/D", 0, (0.0445, 0.109), 1e-3),
        ("D/D", 0, (0.0265, 0.088), 1e-3),
    ],
)
def test_semi_implicit_instability_windows(kind, k, window, edge):
    """The windows of 3.1: unstable inside, stable again beyond the upper edge."""
    low, high = window
    assert radius(cs.SemiImplicit, kind, k, 0.5 * (low + high)) > 1.0
    assert radius(cs.SemiImplicit, kind, k, low - 2 * edge) < 1.0
    assert radius(cs.SemiImplicit, kind, k, high + 2 * edge) < 1.0


@pytest.mark.covers("SL-12")
def test_constant_foreign_displacements_are_less_stable_than_explicit():
    """D/D k = 0 at H = 0.05: rho 1.0976, explicit .769; already at H = 1e-3 it damps less than the exact system."""
    assert radius(cs.SemiImplicit, "D/D", 0, 0.05) == pytest.approx(1.0976, abs=5.1e-5)
    assert radius(cs.Jacobi, "D/D", 0, 0.05) == pytest.approx(0.769, abs=5.1e-4)
    exact = np.abs(np.linalg.eigvals(lu().flow(1e-3))).max()
    assert radius(cs.SemiImplicit, "F/F", 0, 1e-3) < exact < radius(cs.SemiImplicit, "D/D", 0, 1e-3)


@pytest.mark.covers("SL-12")
@pytest.mark.parametrize("kind", ["F/F", "F/D", "D/F", "D/D"])
def test_held_displacements_are_warned_about(kind):
    """`check` warns where, and only where, an implicit method with k = 0 would hold copied states."""

    def warned(method):
        found = [f for f in cs.check(split(kind), method).findings if f.code == "held-displacement"]
        assert all(f.level == "warning" and "degree 1" in f.text for f in found)
        return bool(found)

    assert warned(cs.SemiImplicit(degree=0)) == ("D" in kind)
    assert warned(cs.Implicit(degree=0)) == ("D" in kind)
    assert not warned(cs.SemiImplicit(degree=1))
    assert not warned(cs.Jacobi(degree=0))


@pytest.mark.covers("SL-12")
def test_the_default_degree_is_not_zero():
    """The remedy of 3.1: k >= 1 by default, where D/D has no limit at all."""
    assert cs.SemiImplicit().degree >= 1
    assert radius(cs.SemiImplicit, "D/D", 1, 0.05) < 1.0


@pytest.mark.slow
@pytest.mark.covers("SL-11", "SL-12")
def test_wide_scan():
    """3.1: over c 1e2..1e6, d 0.1..1e4 F/F k = 0 is never unstable; F/D, D/D k = 0 in about 40 % of the grid.

    The share depends on the grid; on our 17 x 21 points it must be near that (+-6 points).
    """
    c, d = np.logspace(2, 6, 17), np.logspace(-1, 4, 21)
    assert stable_share("F/F", cs.SemiImplicit(degree=0), c, d, 5e-3) == 1.0
    for kind in ("F/D", "D/D"):
        assert 1 - stable_share(kind, cs.SemiImplicit(degree=0), c, d, 5e-3) == pytest.approx(0.4, abs=0.06)


def test_states_are_those_of_the_time_that_is_given():
    """At t = 2 the ramp gives u = 2, so that x' = -u^2 x decays at 4 per second, whatever the states.

    It has an input, so that its output is found anew when states are given.
    """
    ramp = cs.Static(lambda t, u: t + 0.0 * u, inputs=["x"], outputs=["y"])
    decay = cs.Ode(lambda t, x, u: -(u**2) * x, lambda t, x, u: x, x0=[1.0], inputs=["u"], outputs=["x"])
    system = cs.System({"ramp": ramp, "decay": decay})
    system.connect("ramp.y", "decay.u")
    system.connect("decay.x", "ramp.x")
    for state in (None, {"decay": [1.0]}, {"decay": [3.0]}):
        radius = cs.analysis.spectral_radius(system, cs.Jacobi(0), 0.1, state=state, t=2.0)
        assert np.log(radius) == pytest.approx(-0.4, rel=1e-6)
