"""Values that change at given times: constant inputs anywhere, parameters at macro points; every run begins anew."""

from __future__ import annotations

import numpy as np
import pytest

import cosolve as cs


class Spring(cs.Subsystem):
    """x' = -k x, exactly, with a parameter k that `start` puts back."""

    inputs, outputs = [], ["x"]

    def __init__(self, k=1.0):
        self.given = self.k = k

    def start(self, t0):
        self.k, self.x = self.given, 1.0
        return self.x

    def advance(self, t0, t1, u):
        self.x *= np.exp(-self.k * (t1 - t0))
        return self.x

    def save(self):
        return self.x, self.k

    def restore(self, state):
        self.x, self.k = state

    def set_parameters(self, values):
        self.k = values["k"]


def spring():
    system = cs.System({"a": Spring()})
    system.at(0.6, {"a.k": 3.0})
    system.at(0.2, {"a.k": 0.0})
    return system


EXACT = np.exp(-0.2 - 3 * 0.4)  # k = 1 until 0.2, 0 until 0.6, 3 until 1


@pytest.mark.parametrize("step", [0.1, cs.Adaptive(rtol=1e-3)])
def test_parameters_change_at_their_times_in_every_run(step):
    system = spring()
    for _ in range(2):
        run = cs.simulate(system, t_end=1.0, method=cs.Jacobi(0), step=step)
        assert run["a.x"][-1] == pytest.approx(EXACT, rel=1e-12)
        assert {0.2, 0.6} <= {round(t, 12) for t in run.t}


def test_a_time_between_macro_points_is_refused():
    with pytest.raises(cs.errors.SetupError, match=r"'a\.k' at t = 0\.2 falls between the macro points 0\.15 and 0\.3"):
        cs.simulate(spring(), t_end=1.2, method=cs.Jacobi(0), step=0.15)


def test_a_resumed_run_and_a_stepper_go_on_with_the_changes(tmp_path):
    options = {"t_end": 1.0, "method": cs.Jacobi(0), "step": 0.1}
    whole = cs.simulate(spring(), **options)
    with cs.Stepper(spring(), **options) as stepper:
        early = stepper.save()
        stepper.run_until(0.4)
        stepper.save_file(tmp_path / "state")
        stepper.restore(early)
        stepper.run_until(1.0)
        assert stepper["a.x"] == whole["a.x"][-1]
    rest = cs.simulate(spring(), resume=tmp_path / "state", **options)
    assert rest["a.x"].tolist() == whole["a.x"][4:].tolist()


def test_constants_jump_wherever_macro_points_are():
    tank = cs.Ode(lambda t, x, u: u, lambda t, x, u: x, x0=[0.0], inputs=["q"], outputs=["h"])
    system = cs.System({"a": tank})
    system.set("a.q", 1.0)
    system.at(0.33, {"a.q": 4.0})
    system.at(0.77, {"a.q": 0.0})
    for _ in range(2):
        run = cs.simulate(system, t_end=1.0, method=cs.Jacobi(1), step=0.1)
        assert run["a.h"][-1] == pytest.approx(0.33 + 4 * 0.44, abs=1e-12)
    assert run["a.q"][[0, 3, 4, 7, 8]].tolist() == [1.0, 1.0, 4.0, 4.0, 0.0]
    assert "at t = 0.33: [4.0] -> a.q" in str(system)


BAD = {
    "no number": (lambda s: s.at("soon", {"a.k": 1.0}), "finite number"),
    "no dict": (lambda s: s.at(1.0, "a.k"), "dict of addresses"),
    "no subsystem": (lambda s: s.at(1.0, {"b.k": 1.0}), "'b.k' is not an address"),
    "no parameters": (
        lambda s: cs.System({"b": cs.Static(lambda t, u: t, inputs=[], outputs=["y"])}).at(1.0, {"b.k": 1.0}),
        "define set_parameters",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_change_is_refused(case):
    call, words = BAD[case]
    with pytest.raises(cs.errors.SetupError, match=words):
        call(spring())


# -- functions with the wrong arguments, when they are given ---------------------------------------------------------


def mass():
    return cs.Linear([[0, 1], [-1, 0]], [[0], [1]], [[1, 0]], x0=[1, 0], inputs=["f"], outputs=["x"])


WRONG = {
    "law": (
        lambda: cs.System({"a": mass(), "b": mass()}).law("a.f", lambda x: x, of=["a.x", "b.x"]),
        r"law: the function takes \(x\), but it is called with 2 arguments: a\.x, b\.x",
    ),
    "law's Jacobian": (
        lambda: cs.System({"a": mass()}).law("a.f", lambda x: x, of="a.x", jacobian=lambda: 1.0),
        r"the Jacobian takes \(\), but it is called with 1 argument: a\.x",
    ),
    "equations": (
        lambda: cs.System({"a": mass()}).equations({"z": "a.f"}, lambda x: x, of="a.x"),
        r"called with 2 arguments: z, a\.x",
    ),
    "rhs": (
        lambda: cs.Ode(lambda t, x: x, lambda t, x, u: x, x0=[0.0], inputs=["u"], outputs=["y"]),
        r"Ode: rhs takes \(t, x\), but it is called with 3 arguments: t, x, u",
    ),
    "static": (lambda: cs.Static(lambda t: t, inputs=[], outputs=["y"]), r"called with 2 arguments: t, u"),
    "simulate": (
        lambda: cs.simulate(cs.System({"a": Spring()}), 1.0, cs.Jacobi(), 0.1),
        r"write cs\.simulate\(system, t_end=1\.0, method=",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_said_at_once(case):
    call, words = WRONG[case]
    with pytest.raises(cs.errors.SetupError, match=words):
        call()
