"""Every animal that can be run at all gives the numbers of the independent loop: after `check`, and in a second run."""

import numpy as np
import pytest
from tests.fmu.zoo.members import ANIMALS
from tests.fmu.zoo.pairs import expected, pair, part, y

import cosolve as cs

#: those whose misbehaviour no run can work around; test_said.py has what is said about them
NEVER = (
    *("discards", "ends", "changes_mind", "pending", "ignores_parameter", "clamps_parameter", "random", "free_aborts"),
    *("types", "types_arrays", "once_ever", "crashes_saving", "crashes_restoring"),
    *(
        "clocked",
        "counts",
        "switches",
        "wide",
        "stop_time",
        "steady",
        "steady_unsaid",
        "steady_late",
    ),  # test_sampling.py, test_start.py
    *("late_input", "late_output", "denies", "deaf", "deaf_between"),  # test_steps.py
)
#: rollback that does not bring back the state: fine without rollback
NO_ROLLBACK = ("state_kept", "state_half", "poor", "outputs_late_poor", "engages", "fades", "rounds", "lags")
RUN = [name for name in ANIMALS if name not in NEVER]
CASES = [(name, fmi) for name in RUN for fmi in ANIMALS[name].versions]
STEP = {"own_step": 0.02, "samples": 0.1}
EXPLICIT = {"jacobi": cs.Jacobi(0), "gauss-seidel": cs.GaussSeidel(0)}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    """One animal reads a file from the folder that it is run in."""
    (tmp_path / "rate.txt").write_text("4.0\n")
    monkeypatch.chdir(tmp_path)
    expected.cache_clear()


@pytest.mark.sample(24)
@pytest.mark.parametrize("sweep", EXPLICIT)
@pytest.mark.parametrize(("name", "fmi"), CASES)
def test_explicit_sweeps(name, fmi, sweep):
    """Inputs held at the last exchange: the same calls as in the loop, so the same bits."""
    step, method = STEP.get(name, 0.05), EXPLICIT[sweep]
    a = part(name, fmi)
    system = pair(a, fmi)
    cs.check(system, method, step)
    want = expected(name, fmi, sweep, step)
    for number in (1, 2):
        found = y(cs.simulate(system, t_end=1.0, method=method, step=step, compiled=False), a)
        for one, two in zip(found, want, strict=True):
            np.testing.assert_array_equal(one, two, err_msg=f"run {number}")


@pytest.mark.sample(12)
@pytest.mark.filterwarnings("ignore:the derivatives that the FMU")  # of two animals are wrong; see test_said.py
@pytest.mark.parametrize(("name", "fmi"), [(n, f) for n, f in CASES if n not in NO_ROLLBACK])
def test_implicit_steps(name, fmi):
    """Values at the end of the step held over it: the loop iterates to a fixed point, we by Newton's method."""
    step, method = STEP.get(name, 0.05), cs.Implicit(0, tol=1e-13)
    a = part(name, fmi)
    system = pair(a, fmi)
    want = expected(name, fmi, "implicit", step)
    for number in (1, 2):
        found = y(cs.simulate(system, t_end=1.0, method=method, step=step, compiled=False), a)
        for one, two in zip(found, want, strict=True):
            np.testing.assert_allclose(one[1:], two[1:], rtol=0, atol=1e-12, err_msg=f"run {number}")
