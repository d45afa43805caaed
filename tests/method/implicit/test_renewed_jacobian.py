"""An iteration that keeps its Jacobian and fails begins again with one of every iterate, before the run is given up."""

import numba
import numpy as np
import pytest

import cosolve as cs

H = 0.125


@numba.njit
def touching(x, plate):
    """A one-sided spring: its stiffness at the first guess and at the solution may be 0 and 400."""
    return 400.0 * max(plate - x, 0.0)


def contact(law=touching):
    ball = cs.Linear([[0, 1], [-5, 0]], [[0], [1]], np.eye(2), x0=[1.0, 0.0], inputs=["f"], outputs=["x", "v"])
    plate = cs.Linear([[0, 1], [-100, -2]], [[0], [1]], np.eye(2), x0=[0.0, 0.0], inputs=["f"], outputs=["x", "v"])
    system = cs.System({"ball": ball, "plate": plate})
    system.law({"ball.f": 1.0, "plate.f": -1.0}, law, of=["ball.x", "plate.x"], name="F")
    return system


def run(corrector, **options):
    method = cs.Implicit(degree=1, tol=1e-10, corrector=corrector)
    return cs.simulate(contact(), t_end=4.0, method=method, step=H, **options)


@pytest.mark.parametrize("refresh", ["step", "run"])
def test_a_kink_is_passed_and_counted(refresh):
    """Corrections go round in a circle about the kink with either slope, and meet it with that of each iterate."""
    kept, renewed = run(cs.Newton(refresh), compiled=False), run(cs.Newton("iteration"), compiled=False)
    assert kept.stats.renewed > 0
    assert renewed.stats.renewed == 0
    assert np.abs(kept["ball.x"] - renewed["ball.x"]).max() < 1e-8
    assert f"{kept.stats.renewed} steps converged only with a Jacobian renewed" in str(kept.stats)


def test_corrections_do_not_count_first_guesses():
    """A step that began again has two norms that no correction led to; all others have one."""
    result = run(cs.Newton("step"), compiled=False)
    begun = np.array([len(norms) for norms in result.residual_norms]) - result.iterations
    assert sorted(set(begun)) == [1, 2]
    assert np.count_nonzero(begun == 2) == result.stats.renewed


def test_the_compiled_engine_hands_such_steps_over():
    compiled, readable = run(cs.Newton("step"), compiled=True), run(cs.Newton("step"), compiled=False)
    assert compiled.stats.compiled_steps > 0
    assert np.array_equal(compiled["ball.x"], readable["ball.x"])
    assert compiled.stats.renewed == readable.stats.renewed > 0


def test_stepping_by_hand_counts_too():
    with cs.Stepper(contact(), method=cs.Implicit(degree=1), step=H, record=True) as stepper:
        stepper.run_until(4.0)
        stats = stepper.result().stats
    assert stats.renewed == run(cs.Newton("step"), compiled=False).stats.renewed


def test_a_number_of_corrections_that_is_asked_for_is_kept():
    """`accept_unconverged` asks for so many corrections and no more."""
    method = cs.Implicit(degree=1, max_iterations=2, accept_unconverged=True)
    result = cs.simulate(contact(), t_end=4.0, method=method, step=H, compiled=False)
    assert result.stats.renewed == 0
    assert result.iterations.max() == 2
    assert result.stats.unconverged > 0


def test_what_no_jacobian_solves_is_said():
    """`z^2 + z - 1 + 4 t` has no root after t = 5/16."""
    clock = cs.Static(lambda t, u: t, inputs=["u"], outputs=["y"])
    system = cs.System({"clock": clock})
    system.equations({"z": "clock.u"}, lambda z, y: z * z + z - 1.0 + 4.0 * y, of=["clock.y"])
    with pytest.raises(cs.errors.ConvergenceError, match=r"t = 0.3 .* with a Jacobian renewed in each .*LineSearch"):
        cs.simulate(system, t_end=1.0, method=cs.Implicit(degree=0), step=0.1)


class Stubborn(cs.Newton):
    """Moves nothing as long as it keeps its Jacobian, and fails when it is told to make another."""

    def __init__(self):
        super().__init__("step")
        self.begun = 0

    def start_run(self, labels):
        super().start_run(labels)
        self.begun += 1

    def correct(self, z, r, problem):
        if self.begun > 1:
            raise cs.errors.SubsystemError("there is no Jacobian here")
        return z + 0.0


def test_the_first_failure_is_the_one_that_is_told():
    """What the second attempt runs into is its cause, for those who look."""
    with pytest.raises(cs.errors.ConvergenceError, match="after 50 corrections the residual of 'F") as caught:
        run(Stubborn())
    assert "there is no Jacobian here" in str(caught.value.__cause__)
