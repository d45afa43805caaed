"""A stiff tie between two bodies that have moved far: its force is a small difference of large terms."""

from __future__ import annotations

import numpy as np
import pytest

import cosolve as cs
from cosolve.engine.python.rounding import terms_of_outputs
from cosolve.engine.python.subsystem_caller import SubsystemCaller

STIFFNESS, DAMPING = 1e10, 4e3  # of the tie: 40 kHz with the lighter body


def tied(place: float = 0.13) -> cs.System:
    """A body of 5 kg falls, one of 0.15 kg hangs on it."""

    def force(u, x):
        return STIFFNESS * (u[0] - x[0]) + DAMPING * (u[1] - x[1])

    heavy = cs.Ode(
        lambda t, x, u: [x[1], u[0] / 5.0 - 9.81],
        lambda t, x, u: x,
        x0=[place, -1.0],
        inputs=["f"],
        outputs=["y", "v"],
        integrator="ode4",
        internal_step=2e-6,
    )
    light = cs.Ode(
        lambda t, x, u: [x[1], force(u, x) / 0.15 - 9.81],
        lambda t, x, u: -force(u, x),
        x0=[place, -1.0],
        inputs=["y", "v"],
        outputs=["f"],
        integrator="ode4",
        internal_step=2e-6,
    )
    system = cs.System({"heavy": heavy, "light": light})
    for source, target in (("heavy.y", "light.y"), ("heavy.v", "light.v"), ("light.f", "heavy.f")):
        system.connect(source, target)
    return system


def test_terms_are_stiffness_times_place() -> None:
    plan = tied().plan()
    caller = SubsystemCaller(plan)
    _, z = caller.start(0.0)
    terms = terms_of_outputs(caller, 0.0, z)
    assert terms[-1] == pytest.approx(STIFFNESS * 0.13 + DAMPING * 1.0, rel=1e-6)
    assert not terms[:-1].any()  # the heavy body's outputs do not react to its force at once


@pytest.mark.parametrize("goes_back", [True, False])
def test_looking_at_outputs_leaves_no_trace_where_a_step_can_be_undone(goes_back: bool) -> None:
    class Counting(cs.Subsystem):
        inputs, outputs = ("u",), ("y",)

        def start(self, t0):
            self.asked = 0
            return 3.0

        def output(self, t, u):
            self.asked += 1
            return 3.0 * u

        def advance(self, t0, t1, u):
            return 3.0 * u.end

    class GoesBack(Counting):
        def save(self):
            return self.asked

        def restore(self, state):
            self.asked = state

    part = GoesBack() if goes_back else Counting()
    system = cs.System({"part": part})
    system.set("part.u", 1.0)
    caller = SubsystemCaller(system.plan())
    _, z = caller.start(0.0)
    before = part.asked
    assert terms_of_outputs(caller, 0.0, z).tolist() == pytest.approx([3.0])
    assert (part.asked == before) is goes_back


def test_an_iteration_ends_where_rounding_begins() -> None:
    """Both fall freely: `k u` is 1e9 N, and its rounding a thousand times what the tolerance asks of a few N."""
    run = cs.simulate(tied(), t_end=1e-3, method=cs.Implicit(1), step=1e-4)
    assert run.stats.unconverged == 0
    rounding = np.finfo(float).eps * STIFFNESS * 0.13
    assert 1e-9 < run.stats.max_residual < 32 * rounding
    assert run["heavy.v"][-1] == pytest.approx(-1.0 - 9.81e-3, rel=2e-3)  # a ramp for a parabola: some N too much


def test_what_is_no_rounding_is_not_accepted() -> None:
    """An iteration that stands still far away from its solution still fails, and says what would work."""
    system = tied()
    with pytest.raises(cs.errors.ConvergenceError, match=r"did not converge .* try a smaller step"):
        cs.simulate(
            system, t_end=1e-3, method=cs.Implicit(1, corrector=cs.Relaxation(1e-9), max_iterations=20), step=1e-4
        )
