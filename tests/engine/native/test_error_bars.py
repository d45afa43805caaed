"""The error bar of a compiled run is made by machine code: its shadow, the pieces of its steps, and other grids."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import cosolve as cs
from cosolve.engine.native import laws
from cosolve.engine.native.chunks import Chunks
from cosolve.engine.native.control import ControlledChunks
from cosolve.engine.native.given import GivenChunks
from cosolve.engine.python.subsystem_caller import SubsystemCaller


def _linear() -> cs.System:
    def mass(x: float, stiffness: float) -> cs.Linear:
        return cs.Linear(
            [[0, 1], [-stiffness, -0.5]], [[0], [1]], np.eye(2), x0=[x, 0], inputs=["f"], outputs=["x", "v"]
        )

    system = cs.System({"a": mass(1, 10), "b": mass(-0.5, 25), "c": mass(0, 3)})
    system.connect("b.x", "a.f")
    system.connect("a.x", "b.f")
    system.connect("b.x", "c.f")
    return system


def _with_law() -> cs.System:
    a = cs.Ode(
        lambda t, x, u: [x[1], -10 * np.sin(x[0]) - 0.3 * x[1] + u[0]],
        lambda t, x, u: x,
        x0=[1.0, 0.0],
        inputs=["f"],
        outputs=["x", "v"],
    )
    b = cs.Ode(
        lambda t, x, u: [x[1], -30 * x[0] - 5 * x[0] ** 3 - 0.2 * x[1] + u[0]],
        lambda t, x, u: x,
        x0=[-0.5, 0.0],
        inputs=["f"],
        outputs=["x", "v"],
    )
    system = cs.System({"a": a, "b": b})
    force = lambda x, y: 8 * (y - x) + (y - x) ** 3  # noqa: E731
    system.law({"a.f": 1, "b.f": -1}, force, of=["a.x", "b.x"])
    return system


@pytest.fixture
def python_steps(monkeypatch):
    """How many subsystem steps the Python engine takes, of those that count and of those that prove something."""
    taken: Counter[str] = Counter()
    for name in ("_advance", "advance_again"):
        original = getattr(SubsystemCaller, name)

        def counted(self, *arguments, _original=original, **more):
            taken["steps"] += 1
            return _original(self, *arguments, **more)

        monkeypatch.setattr(SubsystemCaller, name, counted)
    return taken


@pytest.mark.parametrize("build", [_linear, _with_law])
@pytest.mark.parametrize(
    ("method", "step"),
    [
        (cs.Jacobi(0), 5e-3),
        (cs.Jacobi(2), 5e-3),
        (cs.Jacobi(1), cs.Adaptive(rtol=1e-3)),
        (cs.GaussSeidel(1), 5e-3),
        (cs.GaussSeidel(2, order=["b", "a"]), 5e-3),
        (cs.SemiImplicit(1), 5e-3),
        (cs.SemiImplicit(2, predictor=1, jacobian="difference"), 5e-3),
        (cs.SemiImplicit(1, jacobian="difference"), cs.Adaptive(rtol=1e-3)),
        (cs.Implicit(1), 5e-3),
    ],
    ids=str,
)
def test_bars_of_compiled_runs_are_made_by_machine_code(build, method, step, python_steps):
    if build is _linear and isinstance(method, cs.GaussSeidel) and method.order:
        method = cs.GaussSeidel(2, order=["b", "a", "c"])
    runs = {}
    for compiled in (True, False):
        python_steps.clear()
        runs[compiled] = (
            cs.simulate(build(), t_end=2.003, method=method, step=step, error_bar=True, compiled=compiled),
            python_steps["steps"],
        )
    (fast, few), (slow, many) = runs[True], runs[False]
    assert fast.stats.compiled_steps > 0.9 * fast.stats.steps
    # a few at each start, and at ends of steps that do not divide the run
    assert few < 100 < 2 * fast.stats.steps < many
    assert fast.error_bar.bar.keys() == slow.error_bar.bar.keys() != set()
    for name, bar in slow.error_bar.bar.items():
        # the same bar, but for what rounding does to errors that are small beside their outputs
        np.testing.assert_allclose(fast.error_bar.bar[name], bar, rtol=1e-5)


def test_a_shadow_goes_on_in_python_where_machine_code_hands_a_step_back(python_steps, monkeypatch):
    taken = GivenChunks.take
    monkeypatch.setattr(GivenChunks, "take", lambda self, count: taken(self, min(count, 7)) if count % 2 == 0 else None)
    method, step = cs.SemiImplicit(1), 5e-3
    fast, slow = (
        cs.simulate(_with_law(), t_end=2.0, method=method, step=step, error_bar=True, compiled=compiled).error_bar
        for compiled in (True, False)
    )
    for name, bar in slow.bar.items():
        np.testing.assert_allclose(fast.bar[name], bar, rtol=1e-5)


@pytest.mark.parametrize("step", [5e-3, cs.Adaptive(rtol=1e-3)], ids=["equal", "controlled"])
def test_machine_code_of_laws_is_compared_with_python_after_each_stretch(step, monkeypatch):
    """In the run, in its shadow, and on other grids: what a law has captured may have changed meanwhile."""
    compared: list[object] = []
    stretches: set[str] = set()
    monkeypatch.setattr(laws, "law_differs", lambda *given: compared.append(given))
    for made, name in ((Chunks, "_advance"), (GivenChunks, "take"), (ControlledChunks, "take")):
        original = getattr(made, name)

        def take(self, *given, _taken=original, _kind=made.__name__):
            before = len(compared)
            chunk = _taken(self, *given)
            assert chunk is None or len(compared) > before, _kind
            stretches.update([_kind] if chunk is not None else [])
            return chunk

        monkeypatch.setattr(made, name, take)
    cs.simulate(_with_law(), t_end=2.0, method=cs.Jacobi(1), step=step, error_bar=True, compiled=True)
    assert stretches >= {"GivenChunks", "ControlledChunks" if isinstance(step, cs.Adaptive) else "Chunks"}
