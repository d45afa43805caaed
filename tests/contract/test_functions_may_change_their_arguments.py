"""What a user's function writes into the arrays that it is given changes no result."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cosolve as cs

Function = Callable[..., Any]


def pure(function: Function) -> Function:
    return function


def overwriting(function: Function) -> Function:
    """The same function, which overwrites its arguments before it returns."""

    def wrapped(*given: Any) -> Any:
        found = np.array(function(*given), dtype=float)
        for argument in given:
            if isinstance(argument, np.ndarray):
                argument[...] = 7e7
        return found

    return wrapped


PORTS: Any = {"inputs": ["u"], "outputs": ["y"]}


def _rhs(t: float, x: Any, u: Any) -> Any:
    return [x[1], -(x[0] ** 2) + 0.1 * u[0]]


def _ode(wrap: Function, **options: Any) -> cs.Subsystem:
    return cs.Ode(wrap(_rhs), wrap(lambda t, x, u: [x[0]]), x0=[1.0, 0.0], **PORTS, **options)


def _hybrid(wrap: Function, **options: Any) -> cs.Subsystem:
    return cs.HybridOde(
        wrap(_rhs),
        wrap(lambda t, x, u: [x[0] + 0.1 * u[0]]),
        x0=[1.0, 0.0],
        indicators=wrap(lambda t, x, u: [x[1] + 0.5, x[0] - 0.6]),
        jump=wrap(lambda t, x, u, changed: [x[0], 0.5 * x[1] + 0.1 * changed[0]]),
        **PORTS,
        **options,
    )


def _static(wrap: Function, **options: Any) -> cs.Subsystem:
    return cs.Static(wrap(lambda t, u: [0.3 + 0.1 * np.sin(u[0])]), **PORTS, **options)


def _coupled(part: cs.Subsystem) -> cs.System:
    other = cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[0.3], inputs=["u"], outputs=["w"])
    system = cs.System({"one": part, "two": other})
    system.connect("one.y", "two.u")
    system.connect("two.w", "one.u")
    return system


def _vectors(wrap: Function) -> cs.System:
    """Two parts with ports of two entries, a law between them and equations."""
    ports: Any = {"inputs": [cs.Port("u", 2)], "outputs": [cs.Port("y", 2)]}
    matrices = -np.eye(2), np.eye(2), np.eye(2)
    system = cs.System({name: cs.Linear(*matrices, x0=[x, 0.2], **ports) for name, x in (("one", 1.0), ("two", 0.5))})
    system.law("one.u", wrap(lambda y, w: 0.4 * w - 0.1 * y), of=["one.y", "two.y"])
    system.equations({"lam": ["two.u[0]", "two.u[1]"]}, wrap(lambda lam, y: lam + 0.1 * lam**3 - y[1]), of="one.y")
    return system


@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.SemiImplicit(1)], ids=["Jacobi", "SemiImplicit"])
@pytest.mark.parametrize(
    ("part", "options"),
    [
        (_static, {}),
        *((part, options) for part in (_ode, _hybrid)
          for options in ({}, {"integrator": "ode4", "internal_step": 0.02}, {"integrator": "Radau"})),
        (_ode, {"integrator": "rodas4"}),
    ],
)  # fmt: skip
def test_a_subsystem(part: Function, options: dict[str, Any], method: cs.Method) -> None:
    results = [
        cs.simulate(_coupled(part(wrap, **options)), t_end=1.0, step=0.1, method=method, compiled=False)
        for wrap in (pure, overwriting)
    ]
    for name in ("one.y", "two.w"):
        assert np.array_equal(results[0][name], results[1][name])


@pytest.mark.parametrize("variant", ["A", "B", "C"])
def test_static_parts_around_one_dynamic_part(variant: Any) -> None:
    method = cs.DynamicStatic(variant=variant)
    results = []
    for wrap in (pure, overwriting):
        system = cs.System({"one": _ode(wrap), "two": cs.Static(wrap(lambda t, u: [np.sin(u[0])]), **PORTS)})
        system.connect("one.y", "two.u")
        system.connect("two.y", "one.u")
        results.append(cs.simulate(system, t_end=0.5, method=method, compiled=False))
    assert np.array_equal(results[0].t, results[1].t)
    assert np.array_equal(results[0]["one.y"], results[1]["one.y"])


@pytest.mark.parametrize("method", [cs.SemiImplicit(1), cs.Implicit(1)], ids=["SemiImplicit", "Implicit"])
def test_a_law_and_equations(method: cs.Method) -> None:
    results = [
        cs.simulate(_vectors(wrap), t_end=1.0, step=0.1, method=method, compiled=False) for wrap in (pure, overwriting)
    ]
    for name in ("one.y", "two.y"):
        assert np.array_equal(results[0][name], results[1][name])
