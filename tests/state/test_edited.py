"""A run is resumed with the system that was saved: one that was edited meanwhile is refused, by name."""

import numpy as np
import pytest

import cosolve as cs

RUN = {"t_end": 1.0, "method": cs.SemiImplicit(1), "step": 0.01}


class Own(cs.Subsystem):
    inputs, outputs = ["f"], ["x", "v"]
    rate = 1.0

    def start(self, t0):
        self.s = np.zeros(2)
        return self.s.copy()

    def advance(self, t0, t1, u):
        self.s = self.s + (t1 - t0) * np.array([self.s[1], u(t1)[0] - self.s[0]])
        return self.s.copy()

    def save(self):
        return self.s.copy()

    def restore(self, state):
        self.s = np.array(state)


class Edited(Own):
    def advance(self, t0, t1, u):
        self.s = self.s + (t1 - t0) * np.array([self.s[1], u(t1)[0] - 2.0 * self.s[0]])
        return self.s.copy()


Edited.__qualname__ = Edited.__name__ = "Own"


def build(k=100.0, x0=1.0, c=40.0, law=None, unit="", constant=0.0, factor=1.0, rtol=1e-8, c_b=60.0, own=Own):
    ports = [cs.Port("f", unit=unit), "g"]
    a = cs.Linear(
        [[0, 1.0], [-c, -1.0]], [[0, 0], [1.0, 1.0]], np.eye(2), x0=[x0, 0.0], inputs=ports, outputs=["x", "v"]
    )
    b = cs.Ode(
        lambda t, s, u: [s[1], -c_b * s[0] - s[1] + u[0]],
        lambda t, s, u: s,
        x0=[0.0, 0.0],
        inputs=["f"],
        outputs=["x", "v"],
        rtol=rtol,
    )
    system = cs.System({"a": a, "b": b, "own": own()})
    spring = law or (lambda x, v, y, w: k * (y - x) + 2 * (w - v))
    system.law({"a.f": factor, "b.f": -1}, spring, of=["a.x", "a.v", "b.x", "b.v"])
    system.connect("a.x", "own.f")
    system.set("a.g", constant)
    return system


@pytest.fixture(scope="module")
def whole():
    return cs.simulate(build(), **RUN)


def half(path):
    with pytest.raises(cs.errors.SimulationError, match="max_steps"):
        cs.simulate(build(), **RUN, save=path, state_every=20, max_steps=50)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"k": 300.0}, "the law for a.f, b.f"),
        ({"law": lambda x, v, y, w: 0.0}, "the law for a.f, b.f"),
        ({"c": 400.0}, "'a'"),
        ({"unit": "kN"}, "'a'"),
        ({"c_b": 61.0}, "'b'"),
        ({"rtol": 1e-3}, "'b'"),
        ({"own": Edited}, "'own'"),
        ({"factor": 2.0}, "what joins the subsystems"),
        ({"constant": np.sin}, "what joins the subsystems"),
    ],
    ids=lambda v: next(iter(v)) if isinstance(v, dict) else None,
)
def test_an_edited_system_is_refused_by_name(tmp_path, change, what):
    half(tmp_path / "run.h5")
    with pytest.raises(cs.errors.SetupError) as refused:
        cs.resume(tmp_path / "run.h5", build(**change), max_steps=1000)
    assert f"a system in which {what} was another" in str(refused.value)
    assert len(cs.load_result(tmp_path / "run.h5").t) == 51  # as it was


@pytest.mark.parametrize("change", [{}, {"x0": 5.0}, {"constant": 100.0}], ids=str)
def test_what_a_state_replaces_may_be_another(tmp_path, whole, change):
    """Initial states and held inputs come from the state."""
    half(tmp_path / "run.h5")
    found = cs.resume(tmp_path / "run.h5", build(**change), max_steps=1000)
    np.testing.assert_array_equal(found["a.x"], whole["a.x"])


def test_a_state_in_memory_or_in_a_file_is_held_to_the_same(tmp_path):
    cs.simulate(build(), **RUN, save_state=tmp_path / "run.state")
    with pytest.raises(cs.errors.SetupError, match=r"the law for a\.f, b\.f was another"):
        cs.simulate(build(k=300.0), **{**RUN, "t_end": 2.0}, resume=tmp_path / "run.state")
    with cs.Stepper(build(), method=RUN["method"], step=0.01) as one:
        kept = one.save()
    other = cs.Stepper(build(c=41.0), method=RUN["method"], step=0.01)
    with other, pytest.raises(cs.errors.SetupError, match="'a' was another"):
        other.restore(kept)


def sweep(path, scale, stop_at=None):
    def make(rate, k=scale):
        if rate == stop_at:
            raise KeyboardInterrupt
        return cs.System({"a": cs.Linear([[-rate * k]], [], [[1]], x0=[1.0], inputs=[], outputs=["h"])})

    return cs.sweep(make, {"rate": [1.0, 2.0, 3.0]}, methods=cs.Jacobi(0), steps=0.1, t_end=1.0, save=path, workers=1)


def test_a_sweep_whose_build_has_another_default_is_refused(tmp_path):
    """It is the same code; only what it is called with has changed."""
    first = sweep(tmp_path / "all.sweep", 1.0)
    again = sweep(tmp_path / "all.sweep", 1.0)
    np.testing.assert_array_equal(first["a.h"].values, again["a.h"].values)
    with pytest.raises(cs.errors.SetupError, match="build"):
        sweep(tmp_path / "all.sweep", 2.0)
