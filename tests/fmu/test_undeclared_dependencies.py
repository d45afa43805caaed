"""An output that reacts at once to an input, in an FMU that does not say so: as most tools write them.

It gives the force of a spring between two masses and holds its inputs over a step, at their middle. Read with these the
force is half a step old, which costs an order; read with the inputs at the end of the step it is not.
"""

from dataclasses import replace

import numpy as np
import pytest
from tests.fmu.build import build, fmu
from tests.fmu.catalogue import MODELS, without

import cosolve as cs

HELD = without("canInterpolateInputs", "providesIntermediateUpdate")


def run(fmi, declared, step, compiled):
    model = MODELS["mass_spring"]
    model = replace(model, flags=HELD, defines={**model.defines, "LISTENS": 0})
    if not declared:
        model = replace(model, outputs=dict.fromkeys(model.outputs), derivatives={})
    wheel = cs.load_fmu(build("mass_spring", model, fmi), parameters={"ck": 4.0, "dk": 0.3, "c": 9.0}, start={"x": 0.0})
    body = cs.load_fmu(fmu("mass_held", fmi), parameters={"c": 1.0, "d": 0.1}, start={"x": 1.0})
    car = cs.System({"body": body, "wheel": wheel})
    car.connect("body.x", "wheel.x1")
    car.connect("body.v", "wheel.v1")
    car.connect("wheel.F", "body.f")
    return cs.simulate(car, t_end=1.0, method=cs.Jacobi(1), step=step, compiled=compiled)["body.x"]


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize("compiled", [False, True])
def test_the_numbers_are_those_of_one_that_says_so(fmi, compiled):
    said, unsaid = (run(fmi, declared, 0.02, compiled) for declared in (True, False))
    np.testing.assert_array_equal(unsaid, said)


def test_the_order_is_two():
    fine = run(2, False, 1 / 1600, None)[-1]
    errors = [abs(run(2, False, step, None)[-1] - fine) for step in (0.04, 0.02, 0.01)]
    assert np.log2(errors[0] / errors[2]) / 2 > 1.8
