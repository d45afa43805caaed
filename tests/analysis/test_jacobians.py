"""Provided derivatives against differences: right ones pass, wrong ones are named with their entry."""

from collections.abc import Callable

import numpy as np
import pytest
from examples.cylinder_control.model import Cylinder, method
from examples.cylinder_control.model import system as cylinder
from examples.multi_code.model import sicklinger
from examples.multi_code.model import system as multi_code
from examples.truss_truss.model import system as truss
from scipy import sparse

import cosolve as cs
from cosolve.signal.polynomial import InputSignal

H = 0.02
Spoil = Callable[[np.ndarray, float], np.ndarray]

A = np.array([[0.0, 1.0, 0.0], [-4.0, -0.3, 1.0], [0.5, 0.0, -2.0]])
B = np.array([[0.2, 0.0], [1.0, 0.0], [0.3, 2.0]])
C = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
D = np.array([[0.0, 0.0], [0.4, 0.0]])


class Spoilt(cs.Linear):
    """A linear subsystem whose Jacobian is wrong."""

    def __init__(self, spoil: Spoil = lambda J, H: J) -> None:
        super().__init__(A, B, C, D, x0=[1.0, 0.0, 0.5], inputs=["f", "q"], outputs=["x", "y"])
        self.spoil = spoil

    def jacobian(self, t0: float, t1: float, u: InputSignal, weight: np.ndarray) -> np.ndarray:
        return self.spoil(super().jacobian(t0, t1, u, weight), u.H)


def fed(subsystem: cs.Subsystem) -> cs.System:
    """The subsystem alone, its inputs held."""
    system = cs.System({"plant": subsystem})
    for n, port in enumerate(system.inputs["plant"]):
        system.set(f"plant.{port.name}", 0.3 + 0.5 * n)
    return system


def one_entry(J: np.ndarray, H: float) -> np.ndarray:
    J = J.copy()
    J[1, 0] *= 1.001
    return J


# -- right ones --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [None, cs.Implicit(degree=0), cs.SemiImplicit(degree=1), cs.Implicit(degree=3)])
def test_linear_is_right(method: cs.Method | None) -> None:
    assert cs.analysis.check_jacobians(fed(Spoilt()), H, method=method) == []


@pytest.mark.parametrize("steps", [0, 5])
def test_structures_are_right(steps: int) -> None:
    """Two nonlinear trusses, undeformed and moving."""
    assert cs.analysis.check_jacobians(truss(), 0.005, method=sicklinger(degree=1), after=steps) == []


@pytest.mark.parametrize("steps", [0, 3])
def test_five_codes_are_right(steps: int) -> None:
    assert cs.analysis.check_jacobians(multi_code(), 1e-3, method=sicklinger(), after=steps) == []


@pytest.mark.parametrize("steps", [0, 4])
def test_wake_structure_and_controller_are_right(steps: int) -> None:
    p = Cylinder(on_at=0.0)
    assert cs.analysis.check_jacobians(cylinder(p), p.h, method=method(1e-12), after=steps) == []


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "settings", [{}, {"integrator": "ode4", "internal_step": 0.003}, {"integrator": "radau5", "internal_step": 0.01}]
)
def test_automatic_ones_are_right(settings: dict) -> None:
    jnp = pytest.importorskip("jax.numpy")
    subsystem = cs.JaxOde(
        lambda t, x, u: [x[1], -jnp.sin(x[0]) + u[0] * x[1] + u[1] ** 2], lambda t, x, u: [x[0], x[1] * u[0]],
        x0=[1.0, 0.3], inputs=["f", "q"], outputs=["x", "y"], **settings,
    )  # fmt: skip
    assert cs.analysis.check_jacobians(fed(subsystem), H) == []


def test_static_ones_in_jax_are_right() -> None:
    jnp = pytest.importorskip("jax.numpy")
    law = cs.JaxStatic(lambda t, u: jnp.exp(u[0]) * u[1], inputs=["a", "b"], outputs=["y"])
    assert cs.analysis.check_jacobians(fed(law), H) == []


def test_subsystems_without_derivatives_are_not_called() -> None:
    class Shy(cs.Subsystem):
        inputs, outputs = ("u",), ("y",)

        def start(self, t0: float) -> float:
            return 0.0

        def advance(self, t0: float, t1: float, u: InputSignal) -> float:
            raise AssertionError("was called")

    assert cs.analysis.check_jacobians(fed(Shy()), H) == []


def test_the_system_runs_afterwards_as_if_nothing_had_been() -> None:
    system = fed(Spoilt())
    before = cs.simulate(system, t_end=1.0, method=cs.SemiImplicit(1), step=H)["plant.y"]
    cs.analysis.check_jacobians(system, H, method=cs.SemiImplicit(1), after=3)
    assert cs.simulate(system, t_end=1.0, method=cs.SemiImplicit(1), step=H)["plant.y"].tobytes() == before.tobytes()


# -- wrong ones --------------------------------------------------------------------------------------------


def test_a_single_wrong_entry_is_named() -> None:
    """One part in a thousand, in one of four entries."""
    (finding,) = cs.analysis.check_jacobians(fed(Spoilt(one_entry)), H)
    assert finding.where == "plant"
    assert finding.entry == (1, 0)
    assert finding.given == pytest.approx(1.001 * finding.differenced, rel=1e-6)
    assert finding.text.startswith("'plant' says d y / d f = ")
    assert finding.text.endswith("(jacobian, entry [1, 0], held input, H = 0.02)")
    assert str(finding) == finding.text


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda J, H: -J, "all of it has the wrong sign"),
        (lambda J, H: J.T, "the matrix is transposed: rows are outputs, columns are inputs"),
        (lambda J, H: J / H, "all of it lacks a factor H, the length of the step"),
        (lambda J, H: J * H, "all of it has a factor H, the length of the step, too many"),
        (lambda J, H: 3.0 * J, "all of it is 3 times the right value"),
        (lambda J, H: 0.0 * J, "= 0 but differences give"),
    ],
    ids=["sign", "transposed", "H lacking", "H too many", "factor", "zero"],
)
def test_what_wrong_matrices_have_in_common(spoil: Spoil, words: str) -> None:
    findings = cs.analysis.check_jacobians(fed(Spoilt(spoil)), H)
    assert words in findings[0].text
    assert {f.entry for f in findings} >= {(1, 0)}
    assert all("but differences give" in f.text for f in findings)


def test_a_wrong_sign_of_one_entry_is_not_called_a_wrong_sign_of_all() -> None:
    def turned(J: np.ndarray, H: float) -> np.ndarray:
        return J * np.array([[1.0, 1.0], [1.0, -1.0]])

    (finding,) = cs.analysis.check_jacobians(fed(Spoilt(turned)), H)
    assert finding.entry == (1, 1)
    assert finding.given == pytest.approx(-finding.differenced, rel=1e-6)
    assert "all of it" not in finding.text


def test_a_jacobian_for_held_inputs_only_shows_on_rising_ones() -> None:
    """Ignoring `weight` is right for degree 0 and wrong from degree 1 on."""

    class Held(Spoilt):
        def jacobian(self, t0: float, t1: float, u: InputSignal, weight: np.ndarray) -> np.ndarray:
            return super().jacobian(t0, t1, u, np.ones(1))

    assert cs.analysis.check_jacobians(fed(Held()), H, method=cs.Implicit(degree=0)) == []
    findings = cs.analysis.check_jacobians(fed(Held()), H, method=cs.Implicit(degree=1))
    assert findings
    assert "input that rises over the step" in findings[0].text


def test_an_error_that_shows_only_later() -> None:
    """A term of the derivative that is zero at rest needs a few steps to be seen."""

    class Cubic(cs.Subsystem):
        inputs, outputs = ("u",), ("x",)

        def start(self, t0: float) -> float:
            self.x = 0.0
            return self.x

        def advance(self, t0: float, t1: float, u: InputSignal) -> float:
            self.x += u.H * (1.0 + self.x * u.end[0] ** 2)
            return self.x

        def jacobian(self, t0: float, t1: float, u: InputSignal, weight: np.ndarray) -> np.ndarray:
            return np.array([[0.0]])  # forgets H * 2 x u

        def save(self) -> float:
            return self.x

        def restore(self, state: float) -> None:
            self.x = state

    held = cs.Implicit(degree=0)
    assert cs.analysis.check_jacobians(fed(Cubic()), H, method=held) == []
    (finding,) = cs.analysis.check_jacobians(fed(Cubic()), H, method=held, after=3)
    assert finding.differenced == pytest.approx(H * 2.0 * 3 * H * 0.3, rel=0.02)


@pytest.mark.parametrize(("slope", "count"), [(0.0, 0), (1.0, 0), (0.5, 0), (1.5, 1), (-0.5, 1)])
def test_at_a_kink_every_slope_between_its_sides_is_right(slope: float, count: int) -> None:
    class Kink(cs.Static):
        def jacobian(self, t0: float, t1: float, u: InputSignal, weight: np.ndarray) -> np.ndarray:
            return np.array([[slope * weight.sum()]])

    system = cs.System({"plant": Kink(lambda t, u: max(u[0], 0.0), inputs=["u"], outputs=["y"])})
    system.set("plant.u", 0.0)
    assert len(cs.analysis.check_jacobians(system, H)) == count


def test_long_lists_are_cut() -> None:
    n = 40
    field = cs.Linear(-np.eye(n), np.eye(n), np.eye(n), x0=np.ones(n), inputs=[("u", n)], outputs=[("y", n)])
    exact = field.jacobian
    field.jacobian = lambda t0, t1, u, weight: exact(t0, t1, u, weight) + 0.01
    findings = cs.analysis.check_jacobians(fed(field), H)
    assert len(findings) == 5
    assert f"(and {n * n - 5} more entries)" in findings[0].text
    assert "d y[" in findings[0].text


def test_a_wrong_shape_is_a_sentence() -> None:
    (finding,) = cs.analysis.check_jacobians(fed(Spoilt(lambda J, H: J[:1])), H)
    assert finding.entry is None
    assert "shape (1, 2)" in finding.text


def test_no_rollback_no_check() -> None:
    class Stuck(cs.Static):
        save = None  # type: ignore[assignment]

        def jacobian(self, t0: float, t1: float, u: InputSignal, weight: np.ndarray) -> np.ndarray:
            return np.ones((1, 1))

    (finding,) = cs.analysis.check_jacobians(fed(Stuck(lambda t, u: u, inputs=["u"], outputs=["y"])), H)
    assert "no save and restore" in finding.text


# -- outputs at an instant, laws, constraints --------------------------------------------------------------


def test_output_jacobian() -> None:
    class Gain(cs.Static):
        slopes = ((2.0, 0.0), (1.0, 3.0))

        def output_jacobian(self, t: float, u: np.ndarray) -> np.ndarray:
            return np.array(self.slopes)

    gain = Gain(lambda t, u: [2.0 * u[0], u[0] + 3.0 * u[1]], inputs=["a", "b"], outputs=["x", "y"])
    assert cs.analysis.check_jacobians(fed(gain), H) == []
    gain.slopes = ((2.0, 1.0), (0.0, 3.0))
    findings = cs.analysis.check_jacobians(fed(gain), H)
    assert [f.entry for f in findings] == [(0, 1), (1, 0)]
    assert "output_jacobian, entry [0, 1], t = 0); the matrix is transposed" in findings[0].text


def joined(jacobian: Callable[..., object]) -> cs.System:
    mass = lambda x: cs.Linear([[0, 1], [-1, 0]], [[0], [1]], [[1, 0]], x0=[x, 0], inputs=["f"], outputs=["x"])  # noqa: E731
    system = cs.System({"one": mass(1.0), "two": mass(0.2)})
    system.law({"one.f": 1, "two.f": -1}, lambda x1, x2: 5.0 * (x2 - x1) ** 3, of=["one.x", "two.x"], jacobian=jacobian)
    return system


def test_jacobians_of_laws() -> None:
    def right(x1: float, x2: float) -> np.ndarray:
        return 15.0 * (x2 - x1) ** 2 * np.array([[-1.0, 1.0]])

    assert cs.analysis.check_jacobians(joined(right), H) == []
    assert cs.analysis.check_jacobians(joined(lambda *x: sparse.csr_array(right(*x))), H) == []
    (finding,) = cs.analysis.check_jacobians(joined(lambda *x: right(*x) * [1.0, -1.0]), H)
    assert finding.text == (
        "the law for one.f, two.f says d one.f / d two.x = -9.6 but differences give 9.6 (its jacobian, entry [0, 1])"
    )
    (finding,) = cs.analysis.check_jacobians(joined(lambda *x: np.ones((3, 3))), H)
    assert "expected 1 x 2 finite numbers" in finding.text


def test_automatic_jacobians_of_laws_are_right() -> None:
    pytest.importorskip("jax")
    assert cs.analysis.check_jacobians(joined(cs.jax_derivative(lambda x1, x2: 5.0 * (x2 - x1) ** 3)), H) == []


@pytest.mark.parametrize("kind", ["consistent", "conservative"])
def test_mapped_fields_are_right(kind: str) -> None:
    coarse, fine = np.linspace(0.0, 1.0, 5), np.linspace(0.0, 1.0, 9)
    mapping = cs.mapping.barycentric(cs.mapping.Mesh.line(coarse), cs.mapping.Mesh.line(fine))
    sizes = (5, 9) if kind == "consistent" else (9, 5)
    give = cs.Static(lambda t, u: np.sin(np.arange(sizes[0])), inputs=[], outputs=[("y", sizes[0])])
    take = cs.Static(lambda t, u: u, inputs=[("u", sizes[1])], outputs=[("y", sizes[1])])
    system = cs.System({"give": give, "take": take})
    system.map("give.y", "take.u", mapping, kind)
    assert cs.analysis.check_jacobians(system, H) == []


def test_jacobians_of_constraints_level_by_level() -> None:
    body = lambda: cs.Linear(  # noqa: E731
        [[0, 1], [0, 0]], [[0], [1]], [[1, 0], [0, 1]], x0=[1, 0.5], inputs=["f"], outputs=["x", "v"]
    )

    def build(velocity_row: list[float]) -> cs.System:
        system = cs.System({"one": body(), "two": body()})
        system.constraint(
            {"lam": {"one.f": 1, "two.f": -1}},
            lambda x1, v1, x2, v2: (x2**2 - x1**2, 2 * x2 * v2 - 2 * x1 * v1),
            of=["one.x", "one.v", "two.x", "two.v"],
            jacobian=lambda x1, v1, x2, v2: [[[-2 * x1, 0, 2 * x2, 0]], [velocity_row]],
        )
        return system

    assert cs.analysis.check_jacobians(build([-1.0, -2.0, 1.0, 2.0]), H) == []
    findings = cs.analysis.check_jacobians(build([-1.0, -2.0, 1.0, 1.0]), H)
    assert [f.entry for f in findings] == [(0, 3)]
    assert "velocity level, entry [0, 3]" in findings[0].text


# -- as part of the advice, and bad arguments --------------------------------------------------------------


def test_check_warns_about_wrong_jacobians() -> None:
    advice = cs.check(fed(Spoilt(one_entry)), cs.SemiImplicit(1), H)
    (text,) = [f.text for f in advice.findings if f.code == "wrong-jacobian"]
    assert "entry [1, 0]" in text
    assert advice.ok
    assert "wrong-jacobian" not in cs.check(fed(Spoilt()), cs.SemiImplicit(1), H).codes()
    differenced = cs.SemiImplicit(1, jacobian="difference")
    assert "wrong-jacobian" not in cs.check(fed(Spoilt(one_entry)), differenced, H).codes()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"step": -1.0}, "step must be a positive"),
        ({"step": H, "rtol": 0.0}, "rtol must be a positive number"),
        ({"step": H, "after": -1}, "after must be a number of macro steps"),
        ({"step": H, "after": 2}, "give method="),
    ],
)
def test_bad_arguments(options: dict, words: str) -> None:
    with pytest.raises(cs.errors.SetupError, match=words):
        cs.analysis.check_jacobians(fed(Spoilt()), **options)
