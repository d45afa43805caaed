"""FMUs driven by tables and functions of time: the momentum of a free mass is the integral of its force."""

from dataclasses import replace

import numpy as np
import pytest
from tests.fmu.build import build, fmu
from tests.fmu.catalogue import MODELS

import cosolve as cs

TIMES, VALUES = [0.0, 0.033, 0.05, 0.1], [0.0, 1.0, 0.2, 0.0]
IMPULSE = float(np.trapezoid(VALUES, TIMES))
FREE = {"m": 1.0, "c": 0.0, "d": 0.0}


def fixed(name, fmi):
    model = MODELS[name]
    flags = {k: v for k, v in model.flags.items() if k != "canHandleVariableCommunicationStepSize"}
    return build(name, replace(model, flags=flags), fmi)


def final(part, drive, step, **options):
    system = cs.System({"m": part})
    system.set("m.f", drive)
    run = cs.simulate(system, t_end=0.1, method=cs.Jacobi(1), step=step, **options)
    return run["m.v"][-1]


@pytest.mark.parametrize("name", ["mass_force", "mass_held", "mass_me"])
@pytest.mark.parametrize("fmi", [2, 3])
def test_the_impulse_of_a_table_with_kinks_inside_steps(name, fmi):
    part = cs.load_fmu(fmu(name, fmi), parameters=FREE)
    assert part.variable_step
    assert final(part, cs.Table(TIMES, VALUES), 0.01) == pytest.approx(IMPULSE, rel=1e-7)


@pytest.mark.parametrize("name", ["mass_force", "mass_held"])
@pytest.mark.parametrize("fmi", [2, 3])
def test_an_fmu_with_fixed_steps_gets_the_right_mean(name, fmi):
    part = cs.load_fmu(fixed(name, fmi), parameters=FREE)
    assert not part.variable_step
    assert final(part, cs.Table(TIMES, VALUES), 0.01) == pytest.approx(IMPULSE, rel=1e-7)
    system = cs.System({"m": part})
    system.set("m.f", cs.Table(TIMES, VALUES))
    assert "driven-inside" in cs.check(system, cs.Jacobi(1)).codes()


@pytest.mark.parametrize("name", ["mass_force", "mass_held", "mass_me"])
def test_a_smooth_force(name):
    found = final(cs.load_fmu(fmu(name, 2), parameters=FREE), lambda t: np.sin(30 * t), 0.01)
    assert found == pytest.approx((1 - np.cos(3.0)) / 30, rel=1e-6)


def test_an_isolated_fmu_with_held_inputs_gets_the_same():
    here = final(cs.load_fmu(fixed("mass_held", 2), parameters=FREE), cs.Table(TIMES, VALUES), 0.02)
    there = final(cs.load_fmu(fixed("mass_held", 2), parameters=FREE, isolated=True), cs.Table(TIMES, VALUES), 0.02)
    assert there == here


@pytest.mark.parametrize("name", ["mass_force", "mass_me"])
def test_a_tunable_parameter_changes_at_a_macro_point_in_every_run(name):
    """A constant force moves 1 kg until t = 0.05 and 2 kg after it; each run begins with 1 kg again."""
    part = cs.load_fmu(fmu(name, 2), parameters=FREE)
    system = cs.System({"m": part})
    system.set("m.f", 1.0)
    system.at(0.05, {"m.m": 2.0})
    for _ in range(2):
        run = cs.simulate(system, t_end=0.1, method=cs.Jacobi(0), step=0.01)
        assert run["m.v"][5] == pytest.approx(0.05, rel=1e-9)
        assert run["m.v"][-1] == pytest.approx(0.075, rel=1e-9)
    with pytest.raises(cs.errors.SetupError, match="'m' has no variable 'mm'; did you mean 'm'"):
        system.at(0.05, {"m.mm": 2.0})
