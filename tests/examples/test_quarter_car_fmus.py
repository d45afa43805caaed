"""Two FMUs made on the spot, coupled in a loop: as good as what they were made of, and unstable where that is."""

import sys

import pytest
from examples.quarter_car_fmus import run
from examples.quarter_car_fmus.model import chassis, coupled, exact, wheel
from tests import processes

import cosolve as cs

pytest.importorskip("pythonfmu")


def test_the_reference_is_the_limit_of_the_coupled_runs():
    """The errors of a method of second order fall by four from step to step, towards the closed form."""
    errors = []
    for H in (4e-3, 2e-3, 1e-3):
        result = cs.simulate(coupled(chassis(), wheel()), t_end=0.5, method=cs.SemiImplicit(degree=1), step=H)
        errors.append(run.error(result))
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.1)
    assert exact(result.t)["chassis.z"][0] == 0.0


@pytest.mark.slow
def test_the_example_prints_its_table_and_draws(tmp_path):
    """In a process of its own, as its FMUs bring Python code; and the file for the command line runs."""
    done = processes.run([sys.executable, run.__file__, "--out", str(tmp_path)])
    assert done.returncode == 0, done.stderr
    assert {"chassis.fmu", "wheel.fmu", "car.toml", "car.png"} == {path.name for path in tmp_path.iterdir()}
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if "e-" in line or "e+" in line}
    short = {label: float(row[0]) for label, row in rows.items()}
    long = {label: float(row[1]) for label, row in rows.items()}
    # as with the subsystems themselves (2.2e-3 and 3.2e-3), although the FMUs hold their inputs over a step
    assert short["SemiImplicit(1)"] < 5e-3
    assert short["Jacobi(1)"] < 8e-3
    assert short["Jacobi(0)"] < 5e-2
    assert long["Jacobi(1)"] > 1.0 > 0.1 > long["SemiImplicit(1)"]
    script = "import sys; from cosolve.io import load_system; print(load_system(sys.argv[1]).run()['chassis.z'][-1])"
    done = processes.run([sys.executable, "-c", script, str(tmp_path / "car.toml")], check=True)
    assert float(done.stdout) == pytest.approx(0.05, abs=0.01)  # on the kerb
