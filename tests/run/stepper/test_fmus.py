"""Runs with FMUs: restored in place and continued in a new process, bit for bit."""

import sys
from pathlib import Path

import pytest
from tests import processes
from tests.fmu.build import fmu
from tests.run.stepper.models import trace

import cosolve as cs

ROOT = Path(__file__).parents[3]


def two_mass(fmi: int) -> cs.Stepper:
    """The two-mass oscillator as two FMUs, coupled by a spring law."""
    soft = {"c": 1.0, "d": 0.1}
    one = cs.load_fmu(fmu("mass_force", fmi), parameters=soft, start={"x": 1.0})
    two = cs.load_fmu(fmu("mass_force", fmi), parameters=soft, start={"v": 0.5})
    system = cs.System({"one": one, "two": two})
    system.law({"one.f": 1, "two.f": -1}, lambda a, b: 5.0 * (b - a), of=["one.x", "two.x"], name="spring")
    return cs.Stepper(system, method=cs.Implicit(degree=2, corrector=cs.IqnIls(initial=0.5, reuse=2)), step=0.02)


@pytest.mark.parametrize("fmi", [2, 3])
def test_a_run_of_fmus_continues_bit_for_bit(fmi, tmp_path):
    with two_mass(fmi) as running:
        running.run_until(0.2)
        here, file = running.save(), running.save_file(tmp_path / "run.state")
        first = trace(running, 0.6)
        for _ in range(2):
            running.restore(here)
            assert trace(running, 0.6) == first
    script = (
        "import sys; from tests.run.stepper.test_fmus import two_mass, trace\n"
        f"running = two_mass({fmi}); running.restore_file(sys.argv[1])\n"
        "print('\\n'.join(trace(running, 0.6)))"
    )
    done = processes.run([sys.executable, "-c", script, str(file)], check=True, cwd=ROOT)
    assert done.stdout.split("\n")[:-1] == first


def test_an_fmu_that_cannot_serialise_is_named(tmp_path):
    system = cs.System({"still": cs.load_fmu(fmu("mass_no_rollback", 2))})
    system.set("still.f", 0.0)
    stepper = cs.Stepper(system, method=cs.Jacobi(), step=0.02)
    with pytest.raises(cs.errors.CapabilityError, match=r"'still' \(CoSimulationFmu\) has no save and restore"):
        stepper.save_file(tmp_path / "run.state")
