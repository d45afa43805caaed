"""The same system in other units takes the same steps and has the same relative error.

Units are powers of two, so that scaled values can be compared bit by bit: where anything is measured against 1, the
steps differ.
"""

import numba
import numpy as np
import pytest

import cosolve as cs

#: A start from which all coupling variables stay below 1, and one from which all are above 8192 from the start on.
X, LARGE = 1.0 / 256, 2.0**40


def pair(unit, rest=False):
    """Two oscillators with a spring and a damper between them, lengths and forces in the same `unit`."""

    def mass(x):
        A = [[0, 1], [-100.0, -0.5]]
        return cs.Linear(A, [[0], [1.0]], np.eye(2), x0=[unit * x, 0.0], inputs=["f"], outputs=["x", "v"])

    system = cs.System({"a": mass(X), "b": mass(0.0 if rest else -X / 2)})
    system.law({"a.f": 1, "b.f": -1}, spring, of=["a.x", "a.v", "b.x", "b.v"], name="F")
    return system


@numba.njit  # whose derivatives are exact, and have no increments
def spring(xa, va, xb, vb):
    return 4.0 * (xb - xa) + 4.0 * (vb - va)


#: Units and what they are compared with.
UNITS = [(2.0**-530, 1.0), (2.0**-30, 1.0), (2.0**530, LARGE)]
METHODS = {
    "jacobi 1": cs.Jacobi(1),
    "jacobi 2": cs.Jacobi(2),
    "gauss-seidel": cs.GaussSeidel(1),
    "semi 1": cs.SemiImplicit(1),
    "semi difference": cs.SemiImplicit(2, jacobian="difference"),
    "newton": cs.Implicit(1),
    "newton step": cs.Implicit(1, corrector=cs.Newton("step"), jacobian="difference"),
    "aitken": cs.Implicit(1, tol=1e-8, corrector=cs.Aitken()),
    "relaxation": cs.Implicit(1, tol=1e-6, corrector=cs.Relaxation(0.5)),
    "broyden": cs.Implicit(1, corrector=cs.Broyden()),
    "iqn": cs.Implicit(1, corrector=cs.IqnIls()),
    "anderson": cs.Implicit(1, corrector=cs.Anderson()),
}
CONTROLS = {
    "fixed": 0.02,
    "adaptive": cs.Adaptive(rtol=1e-3),
    "newest": cs.Adaptive(rtol=1e-3, weights="newest"),
}


@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("unit", UNITS)
def test_steps_and_bits_do_not_depend_on_the_unit(unit, name, control):
    one, other = (cs.simulate(pair(u), t_end=0.5, method=METHODS[name], step=CONTROLS[control]) for u in unit)
    assert one.t.tobytes() == other.t.tobytes()
    assert one.stats.rejected == other.stats.rejected
    assert np.array_equal(one.iterations, other.iterations)
    for output in ("a.x", "b.v"):
        assert (one[output] / unit[0]).tobytes() == (other[output] / unit[1]).tobytes()


def exact(t, unit, rest):
    from scipy.linalg import expm

    A = np.zeros((4, 4))
    A[0, 1] = A[2, 3] = 1.0
    A[1] = [-104.0, -4.5, 4.0, 4.0]
    A[3] = [4.0, 4.0, -104.0, -4.5]
    start = unit * np.array([X, 0.0, 0.0 if rest else -X / 2, 0.0])
    return np.array([expm(A * s) @ start for s in t])


@pytest.mark.parametrize("unit", [2.0**-530, 1e-9, 1.0, 1e9, 2.0**530])
@pytest.mark.parametrize("method", [cs.Jacobi(2), cs.SemiImplicit(1), cs.Implicit(1)], ids=lambda m: m.label)
def test_a_controlled_run_is_as_exact_in_every_unit(unit, method):
    """In nanometres it took 12 steps and was off by 2.3 times the amplitude; a part may begin at rest."""
    result = cs.simulate(pair(unit, rest=True), t_end=0.5, method=method, step=cs.Adaptive(rtol=1e-4))
    y = exact(result.t, 1.0, rest=True)
    assert np.abs(result["a.x"] / unit - y[:, 0]).max() < 1e-3 * X
    assert np.abs(result["b.x"] / unit - y[:, 2]).max() < 2e-3 * X
    assert result.stats.steps < 2500


@pytest.mark.parametrize("unit", [2.0**-530, 2.0**530])
@pytest.mark.parametrize("vector", [True, False])
def test_squares_of_residuals_stay_within_the_range_of_numbers(unit, vector):
    """From 1e-160 to 1e160; `Aitken` found nothing at both ends."""
    method = cs.Implicit(1, tol=1e-8, corrector=cs.Aitken(vector=vector))
    run, plain = (cs.simulate(pair(u), t_end=0.5, method=method, step=0.01) for u in (unit, 1.0))
    assert run["a.x"] / unit == pytest.approx(plain["a.x"], abs=1e-7 * X)


@pytest.mark.parametrize("corrector", [cs.Newton(), cs.Aitken(), cs.Broyden(), cs.IqnIls()], ids=repr)
@pytest.mark.parametrize("degree", [0, 1])
def test_small_currents_in_a_loop(corrector, degree):
    """1e-12 A: no iteration at all, and 19 times too large."""

    def static(f):
        return cs.Static(f, inputs=["u"], outputs=["y"])

    one = static(lambda t, u: 1e-12 * np.sin(t) + 0.5 * u[0])
    two = static(lambda t, u: -0.8 * u[0] + 2e-12 * np.cos(t))
    system = cs.System({"a": one, "b": two})
    system.connect("a.y", "b.u")
    system.connect("b.y", "a.u")
    result = cs.simulate(system, t_end=6.0, method=cs.Implicit(degree, corrector=corrector), step=0.5)
    y = (np.sin(result.t) + np.cos(result.t)) / 1.4
    assert result["a.y"] * 1e12 == pytest.approx(y, abs=1e-8)


@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.SemiImplicit(1), cs.Implicit(1)], ids=lambda m: m.label)
@pytest.mark.parametrize("control", [0.05, cs.Adaptive(rtol=1e-3)])
def test_complete_rest(method, control):
    """Nothing has a size: no division by zero, no shorter steps, no refusal."""
    result = cs.simulate(pair(0.0), t_end=2.0, method=method, step=control)
    assert not result["a.x"].any()
    assert result.stats.steps <= 100


@pytest.mark.parametrize("unit", [2.0**-100, 1.0])
@pytest.mark.parametrize("name", ["jacobi 1", "semi difference", "newton step"])
@pytest.mark.parametrize("control", ["fixed", "adaptive"])
def test_machine_code_measures_alike(name, unit, control):
    step = CONTROLS[control]
    method = METHODS[name]
    runs = [cs.simulate(pair(unit), t_end=4.0, method=method, step=step, compiled=c) for c in (False, True)]
    assert runs[1].stats.compiled_steps > 0
    assert runs[0].t.tobytes() == runs[1].t.tobytes()
    assert runs[0]["a.x"].tobytes() == runs[1]["a.x"].tobytes()


def test_a_nominal_value_that_is_given_counts():
    """Values far below what matters are not resolved: the user has said so."""
    steps = []
    for nominal in (1.0, 2.0):
        system = cs.System(
            {
                k: cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[x], inputs=[cs.Port("u", nominal=nominal)], outputs=["y"])
                for k, x in (("a", 1e-9), ("b", 0.0))
            }
        )
        system.connect("a.y", "b.u")
        system.connect("b.y", "a.u")
        steps.append(cs.simulate(system, t_end=1.0, method=cs.Jacobi(1), step=cs.Adaptive(rtol=1e-6)).stats.steps)
    assert steps[1] < 15 < 100 < steps[0]


def nonlinear(unit):
    """A contact and a resistor as Python laws, and an equation, between solvers with step control: all in one unit."""

    def mass(x, k):
        def slope(t, s, u):
            return [s[1], -k * s[0] - 3.0 * s[1] - s[0] * (s[0] / unit) ** 2 + u[0]]

        return cs.Ode(slope, lambda t, s, u: s, x0=[unit * x, 0.0], inputs=["f"], outputs=["x", "v"])

    def capacitor(v):
        return cs.Ode(
            lambda t, s, u: [u[0] - 0.3 * s[0]], lambda t, s, u: s, x0=[unit * v], inputs=["i"], outputs=["v"]
        )

    def contact(xa, va, xb, vb):
        depth = (xb - xa) / unit
        return unit * (40.0 * depth * abs(depth) ** 0.5) + 2.0 * (vb - va)

    def diode(i, va, vb):
        return i + unit * 0.2 * (i / unit) ** 3 - 2.0 * (va - vb)

    system = cs.System({"a": mass(0.5, 20.0), "b": mass(-1.5, 5.0), "c": capacitor(3.0), "d": capacitor(0.25)})
    system.law({"a.f": 1, "b.f": -1}, contact, of=["a.x", "a.v", "b.x", "b.v"], name="F")
    system.equations({"i": {"c.i": -1, "d.i": 1}}, diode, of=["c.v", "d.v"])
    return system


@pytest.mark.parametrize("control", ["fixed", "adaptive"])
@pytest.mark.parametrize("method", [cs.SemiImplicit(1), cs.Implicit(1, tol=1e-8)], ids=lambda m: m.label)
@pytest.mark.parametrize("unit", [(2.0**-530, 2.0**-12), (2.0**-30, 2.0**-12), (2.0**530, LARGE)])
def test_python_laws_equations_and_solvers_have_no_scale_of_their_own(unit, method, control):
    """Increments of laws were millionths of 1, equations were measured against 1, tolerances of solvers as well."""
    step = CONTROLS[control]
    one, other = (cs.simulate(nonlinear(u), t_end=0.3, method=method, step=step) for u in unit)
    assert one.t.tobytes() == other.t.tobytes()
    assert np.array_equal(one.iterations, other.iterations)
    for output in ("a.x", "b.v", "c.v", "d.v"):
        assert (one[output] / unit[0]).tobytes() == (other[output] / unit[1]).tobytes()
    assert np.ptp(one["F"]) > 100.0 * unit[0]
    assert np.ptp(one["i"]) > 0.5 * unit[0]


@pytest.mark.parametrize("unit", [2.0**-530, 2.0**-30, 1.0, 2.0**500])
def test_growth_is_told_at_any_scale(unit):
    system = cs.System(
        {
            k: cs.Linear(
                [[0, 1.0], [-100, -0.5]], [[0], [1.0]], np.eye(2), x0=[x, 0.0], inputs=["f"], outputs=["x", "v"]
            )
            for k, x in (("a", unit), ("b", -unit / 2))
        }
    )
    system.law({"a.f": 1, "b.f": -1}, lambda x, v, y, w: 400 * (y - x) + 4 * (w - v), of=["a.x", "a.v", "b.x", "b.v"])
    with pytest.warns(cs.errors.StabilityWarning, match="grow without bound"):
        cs.simulate(system, t_end=2.0, method=cs.Jacobi(1), step=0.05)


@pytest.mark.parametrize(
    "method", [cs.SemiImplicit(1), cs.Implicit(1), cs.Implicit(1, corrector=cs.Broyden())], ids=repr
)
@pytest.mark.parametrize("factor", [2.0**-500, 1e-10, 1.0, 1e6])
def test_a_factor_before_an_equation_changes_nothing(factor, method):
    """With 1e-10 before it, it counted as met: 25 % off."""
    system = cs.System({"a": cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["x"])})
    system.equations({"z": "a.u"}, lambda z, x: factor * (z + 0.5 * x), of="a.x")
    if isinstance(method, cs.Implicit) and not method.corrector.uses_jacobian and factor < 1e-100:
        with pytest.raises(
            cs.errors.ConvergenceError
        ):  # which takes the equation for the distance to the solution, and says so
            cs.simulate(system, t_end=2.0, method=method, step=0.02)
        return
    result = cs.simulate(system, t_end=2.0, method=method, step=0.02)
    assert result["a.x"] == pytest.approx(np.exp(-1.5 * result.t), abs=1e-4)


@pytest.mark.parametrize(
    ("method", "compiled"), [(cs.Jacobi(1), False), (cs.Jacobi(1), True), (cs.SemiImplicit(2), False)]
)
def test_rounding_at_the_start_is_no_size(method, compiled):
    """Equal positions that differ in their last bits: steps as from rest; they fell below 1e-13, the end of the run."""

    def masses(offset):
        one, two = (
            cs.Linear([[0, 1], [-1e2, 0]], [[0], [1]], [[1, 0]], x0=x0, inputs=["f"], outputs=["x"])
            for x0 in ([offset, 1.0], [0.0, 0.0])
        )
        system = cs.System({"one": one, "two": two})
        system.law({"one.f": 1, "two.f": -1}, lambda a, b: 30 * (b - a), of=["one.x", "two.x"])
        return system

    run = {"t_end": 1.0, "method": method, "step": cs.Adaptive(rtol=1e-3), "compiled": compiled}
    rest, rounding = (cs.simulate(masses(offset), **run) for offset in (0.0, 1e-14))
    assert len(rounding.t) < 2 * len(rest.t)
    np.testing.assert_allclose(rounding["one.x"][-1], rest["one.x"][-1], rtol=1e-3)
