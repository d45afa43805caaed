"""What goes from an `Ode` into the memory of its machine code, and back."""

from typing import Any

import numpy as np
import pytest

import cosolve as cs
from cosolve.subsystem import native_ode


@pytest.mark.parametrize("integrator", ["ode4", "dopri5", "rodas4"])
def test_state_and_length_of_the_next_internal_step(integrator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of functions that numba compiles; the machine code itself is not needed for that."""
    for name in ("_fixed", "_adaptive"):
        monkeypatch.setattr(native_ode, name, lambda *given: None)
    monkeypatch.setattr(native_ode, "raising_address", lambda made: 1)
    monkeypatch.setattr(native_ode, "_COMPILED", {})
    options: dict[str, Any] = {"internal_step": 0.01} if integrator == "ode4" else {"rtol": 1e-5, "atol": 1e-7}
    rhs, output = (lambda t, x, u: -x), (lambda t, x, u: x)
    ode = cs.Ode(rhs, output, x0=[1.0, 2.0], inputs=[], outputs=["a", "b"], integrator=integrator, **options)
    ode.start(0.0)
    solver = ode._first_solver
    native = native_ode._jitted(ode, solver)
    assert not isinstance(native, str)
    if integrator != "ode4":
        solver.memory = 0.125
    assert native.enter is not None
    native.enter()
    expected = [1.0, 2.0, 0.0 if integrator == "ode4" else 0.125]
    assert native.state.tolist() == expected
    native.state[:] = [3.0, 4.0, 0.25]
    assert native.leave is not None
    native.leave()
    assert np.array_equal(ode.x, [3.0, 4.0])
    assert solver.memory == (None if integrator == "ode4" else 0.25)
    ode._solver = cs.Ode(rhs, output, x0=[1.0], inputs=[], outputs=["a"], integrator="Radau")._first_solver
    native.enter()  # it has turned stiff meanwhile, and takes its steps in Python
    native.state[2] = 0.5
    native.leave()
    assert solver.memory == (None if integrator == "ode4" else 0.25)
