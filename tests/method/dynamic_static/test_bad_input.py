"""Bad input gets a sentence: what is wrong, where, and what would work."""

import numpy as np
import pytest

import cosolve as cs
from cosolve.method.dynamic_static import DynamicStatic
from cosolve.subsystem.static_residual import StaticResidual


def mass(**options) -> cs.Ode:
    given = {"inputs": ["force"], "outputs": ["x", "v"], "x0": [1.0, 0.0]} | options
    return cs.Ode(lambda t, x, u: [x[1], u[0]], lambda t, x, u: x, **given)


def static(function) -> cs.Static:
    return cs.Static(function, inputs=["x", "v"], outputs=["force"])


def closed(law: cs.Subsystem, dynamic: cs.Subsystem | None = None) -> cs.System:
    system = cs.System({"mass": dynamic or mass(), "law": law})
    system.connect("mass.x", "law.x")
    system.connect("mass.v", "law.v")
    system.connect("law.force", "mass.force")
    return system


@pytest.mark.parametrize("variant", ["A", "B", "C"])
def test_static_solver_that_does_not_converge_is_named_with_call_and_inputs(variant: str) -> None:
    """No solution below x = 0.5: shorter steps are tried, then the run stops with the sentence of the solver."""
    law = StaticResidual(
        lambda t, f, u: f**2 - (u[0] - 0.5), lambda t, f, u: -1.0 - f, x0=[1.0], inputs=["x", "v"], outputs=["force"]
    )
    with pytest.raises(
        cs.errors.SubsystemError,
        match=r"'law' failed in call \d+ at t = \d\.\d+ with x = 0\.\d+, v = -\d\.\d+: solve \d+ of",
    ) as caught:
        cs.simulate(closed(law), t_end=2.0, method=DynamicStatic(variant, rtol=1e-4))
    kept = caught.value.result
    assert kept["mass.x"][-1] == pytest.approx(0.5, abs=0.05)
    assert kept.t[-1] > 0.5


@pytest.mark.parametrize("variant", ["A", "B", "C"])
def test_static_model_of_the_wrong_size(variant: str) -> None:
    calls = []

    def law(t: float, u: np.ndarray) -> list[float]:
        calls.append(t)
        return [0.0] if len(calls) < 40 else [0.0, 1.0]

    with pytest.raises(
        cs.errors.SubsystemError, match=r"'law' failed in call \d+ at t = .* returned 2 numbers, expected 1"
    ):
        cs.simulate(closed(static(law)), t_end=2.0, method=DynamicStatic(variant, rtol=1e-4, max_step=1e-2))


def test_static_model_that_raises_or_returns_nan() -> None:
    def raises(t: float, u: np.ndarray) -> float:
        if u[0] < 0.9:
            raise ZeroDivisionError("gap closed")
        return -1.0

    with pytest.raises(cs.errors.SubsystemError, match=r"with x = 0\.[89]\d*, .*gap closed \(ZeroDivisionError\)"):
        cs.simulate(closed(static(raises)), t_end=2.0, method=DynamicStatic("A"))
    with pytest.raises(cs.errors.NonFiniteError, match="it returned nan for 'force'"):
        cs.simulate(closed(static(lambda t, u: -1.0 if u[0] >= 0.9 else np.nan)), t_end=2.0, method=DynamicStatic("C"))


def test_failing_predictor_is_only_a_reason_for_a_shorter_step() -> None:
    """The film breaks down beyond 1.0005, which only too long a predicted step reaches."""

    def law(t: float, u: np.ndarray) -> float:
        if u[0] > 1.0005:
            raise RuntimeError("contact")
        return -1e4 * (u[0] - 0.9995) - 5.0 * u[1]

    system = closed(static(law), mass(x0=[1.0, 0.02]))
    result = cs.simulate(system, t_end=1.0, method=DynamicStatic("C", rtol=1e-3, first_step=0.1))
    assert result.finished
    assert result.stats.calls["mass"] > result.stats.steps
    assert result["mass.x"][-1] == pytest.approx(0.9995, abs=1e-3)


def test_indefinite_jacobian_is_survived_where_the_model_only_grows() -> None:
    """Negative stiffness: the corrector's matrix passes through singular for one step length, the motion is right."""
    system = closed(static(lambda t, u: 4.0 * u[0]), mass(x0=[1.0, 2.0]))
    result = cs.simulate(system, t_end=2.0, method=DynamicStatic("C", rtol=1e-7, first_step=0.5))
    assert result["mass.x"][-1] == pytest.approx(np.exp(4.0), rel=1e-4)


def test_singular_jacobian_is_refused() -> None:
    from cosolve.subsystem.dae import Dae

    stuck = Dae(
        lambda t, x, u: [x[1], x[0] + u[0]], lambda t, x, u: [x[0], 0.0], E=np.diag([1.0, 0.0]), x0=[1.0, 0.0],
        inputs=["force"], outputs=["x", "v"],
    )  # fmt: skip
    with pytest.raises(cs.errors.StepSizeError, match=r"alpha E - df/dx is singular .*index above 1"):
        cs.simulate(closed(static(lambda t, u: -u[0]), stuck), t_end=1.0, method=DynamicStatic("C"))


def test_two_dynamic_subsystems() -> None:
    system = cs.System({"one": mass(), "two": mass()})
    system.connect("one.x", "two.force")
    system.connect("two.x", "one.force")
    with pytest.raises(cs.errors.CapabilityError, match=r"one dynamic subsystem, but 'one' \(Ode\) and 'two' \(Ode\)"):
        cs.simulate(system, t_end=1.0, method=DynamicStatic())


def test_dynamic_subsystem_without_equations() -> None:
    class Alone(cs.Subsystem):
        inputs, outputs = ["force"], ["x", "v"]

        def start(self, t0):
            return [0.0, 0.0]

        def advance(self, t0, t1, u):
            return [0.0, 0.0]

    with pytest.raises(cs.errors.CapabilityError, match=r"'mass' \(Alone\) is neither; define equations"):
        cs.simulate(closed(static(lambda t, u: 0.0), Alone()), t_end=1.0, method=DynamicStatic())


def test_only_static_subsystems() -> None:
    system = cs.System({"clock": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])})
    with pytest.raises(cs.errors.CapabilityError, match="needs a dynamic subsystem that gives its equations"):
        cs.simulate(system, t_end=1.0, method=DynamicStatic())


def test_static_subsystems_in_a_loop() -> None:
    gain = lambda: cs.Static(lambda t, u: 0.5 * u[0], inputs=["u"], outputs=["y"])  # noqa: E731
    system = cs.System({"mass": mass(), "one": gain(), "two": gain()})
    system.connect("one.y", "two.u", "mass.force")
    system.connect("two.y", "one.u")
    with pytest.raises(cs.errors.CapabilityError, match="are in an algebraic loop of their own"):
        cs.simulate(system, t_end=1.0, method=DynamicStatic())


def test_equations_instead_of_laws() -> None:
    system = cs.System({"mass": mass()})
    system.equations({"f": "mass.force"}, lambda f, x: f + x, of="mass.x")
    with pytest.raises(cs.errors.CapabilityError, match="cannot solve the equations"):
        cs.simulate(system, t_end=1.0, method=DynamicStatic())


def test_outputs_with_feed_through_may_only_be_watched() -> None:
    def dynamic(watched: str) -> cs.System:
        ode = cs.Ode(
            lambda t, x, u: [x[1], u[0]], lambda t, x, u: [x[0], u[0]], x0=[1.0, 0.0],
            inputs=["force"], outputs=["x", "acceleration"],
        )  # fmt: skip
        law = cs.Static(lambda t, u: -u[0], inputs=["x"], outputs=["force"])
        system = cs.System({"mass": ode, "law": law})
        system.connect(f"mass.{watched}", "law.x")
        system.connect("law.force", "mass.force")
        return system

    with pytest.raises(cs.CosolveError, match=r"'mass\.acceleration' reacts at once to an input"):
        cs.simulate(dynamic("acceleration"), t_end=1.0, method=DynamicStatic())
    result = cs.simulate(dynamic("x"), t_end=1.0, method=DynamicStatic("A", rtol=1e-8))
    np.testing.assert_allclose(result["mass.acceleration"], -result["mass.x"], atol=1e-8)
    np.testing.assert_allclose(result["mass.x"], np.cos(result.t), atol=1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"variant": "D"}, "variant must be 'A'"),
        ({"order": 7}, "DynamicStatic: order must be"),
        ({"increment": 0.0}, "increment must lie"),
        ({"past": 3.0}, "past must be a function"),
        ({"pattern": "maybe"}, "pattern is a row of T"),
    ],
)
def test_bad_settings(options: dict, words: str) -> None:
    with pytest.raises(cs.errors.SetupError, match=words):
        DynamicStatic(**options)


def test_atol_of_the_wrong_length() -> None:
    with pytest.raises(cs.errors.SetupError, match="atol has 3 values, but 'mass' has 2 states"):
        cs.simulate(closed(static(lambda t, u: 0.0)), t_end=1.0, method=DynamicStatic(atol=[1e-3, 1e-3, 1e-3]))


def test_names_of_the_variants() -> None:
    assert DynamicStatic("fully_implicit") == DynamicStatic("A")
    assert DynamicStatic("last_corrector").label == "DynamicStatic(B)"
    assert DynamicStatic("predictor").variant == "C"


def test_adaptive_macro_steps_are_refused() -> None:
    with pytest.raises(cs.errors.SetupError):
        cs.simulate(closed(static(lambda t, u: 0.0)), t_end=1.0, method=DynamicStatic(), step=cs.Adaptive())


@pytest.mark.parametrize("variant", ["A", "B", "C"])
@pytest.mark.parametrize("residual", [lambda t, x, u: np.abs(x) - u[0], lambda t, x, u: np.sign(x) + x - 0.5 * u[0]])
def test_a_static_residual_that_stays_is_no_solution(residual, variant: str) -> None:
    """At the bottom of a valley, and at a jump across zero, steps become short and the residual does not."""
    law = StaticResidual(residual, lambda t, x, u: -x, x0=[1.0], inputs=["x", "v"], outputs=["force"])
    with pytest.raises(cs.errors.SubsystemError, match=r"'law' failed .* no step reduces its residual; residual"):
        cs.simulate(closed(law), t_end=5.0, method=DynamicStatic(variant, rtol=1e-3))
