"""What an FMU is handed in each substep, against the polynomial itself: an instance that only listens."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.polynomial import Polynomial

from cosolve.fmu.communication_step import CommunicationStep
from cosolve.fmu.description import Variable

H, T0 = 0.4, 3.0


class Listener:
    """An FMI 2.0 instance that keeps what it is told; `takes` are its capability flags."""

    event_mode, pointer, fmi, file = False, 0, 2, "listener.fmu"

    def __init__(self, *takes):
        self.flags = SimpleNamespace(has=lambda name: name in takes)
        self.log = SimpleNamespace(time=0.0, remark="")
        self.steps = []  # time, length, values, derivatives by (reference, order)
        self._values, self._slopes = np.zeros(0), {}
        self.binary = SimpleNamespace(function=lambda name: self._do_step)

    def values(self, variables):
        length = sum(v.length for v in variables)
        return SimpleNamespace(length=length, write=lambda pointer, values: setattr(self, "_values", values.copy()))

    def call(self, name, references, count, orders, slopes):
        assert name == "SetRealInputDerivatives"
        refs = np.ctypeslib.as_array(ctypes.cast(references, ctypes.POINTER(ctypes.c_uint32)), (count,))
        ranks = np.ctypeslib.as_array(ctypes.cast(orders, ctypes.POINTER(ctypes.c_int32)), (count,))
        numbers = np.ctypeslib.as_array(ctypes.cast(slopes, ctypes.POINTER(ctypes.c_double)), (count,))
        for reference, order, slope in zip(refs.tolist(), ranks.tolist(), numbers.tolist(), strict=True):
            self._slopes[reference, order] = slope

    def _do_step(self, pointer, t, h, no_return):
        self.steps.append((t, h, self._values, dict(self._slopes)))
        return 0


def signal(degree, width=2):
    coefficients = np.random.default_rng(degree).normal(size=(degree + 1, width))
    return SimpleNamespace(t0=T0, H=H, coefficients=coefficients, degree=degree)


def inputs():
    return [Variable(name, reference, "Float64", causality="input") for name, reference in (("a", 7), ("b", 4))]


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("substeps", [1, 3])
def test_derivatives_are_those_of_the_signal_at_the_start_of_each_substep(degree, substeps):
    listener = Listener("canInterpolateInputs", "canHandleVariableCommunicationStepSize")
    step, u = CommunicationStep(listener, inputs(), substeps, interpolate=True), signal(degree)
    assert not step.holds
    assert step.cross(T0, u, 0.0, 1.0) == 1.0
    assert len(listener.steps) == step.count == substeps
    for k, (t, h, values, slopes) in enumerate(listener.steps):
        assert (t, h) == (pytest.approx(T0 + k * H / substeps), pytest.approx(H / substeps))
        for j, reference in enumerate((7, 4)):
            in_time = Polynomial(u.coefficients[:, j])(Polynomial([-T0 / H, 1 / H]))  # s = (t - t0) / H
            assert values[j] == pytest.approx(in_time(t), rel=1e-9)
            for order in range(1, degree + 1):
                assert slopes[reference, order] == pytest.approx(in_time.deriv(order)(t), rel=1e-7)


def test_derivatives_of_an_order_that_a_later_signal_lacks_are_taken_back():
    """FMUs remember what they were told: after a cubic signal a line has second and third derivatives of zero."""
    listener = Listener("canInterpolateInputs", "canHandleVariableCommunicationStepSize")
    step = CommunicationStep(listener, inputs(), 2, interpolate=True)
    step.cross(T0, signal(3), 0.0, 1.0)
    line = signal(1)
    step.cross(T0 + H, line, 0.0, 1.0)
    for _, _, _, slopes in listener.steps[2:]:
        assert [slopes[7, order] for order in (1, 2, 3)] == [pytest.approx(line.coefficients[1, 0] / H), 0.0, 0.0]
    step.cross(T0 + 2 * H, signal(0), 0.0, 1.0)
    assert not any(listener.steps[-1][3].values())


@pytest.mark.parametrize("degree", [0, 1, 3])
def test_an_fmu_that_holds_its_inputs_gets_them_from_the_middle_of_each_substep(degree):
    listener = Listener("canHandleVariableCommunicationStepSize")
    step, u = CommunicationStep(listener, inputs(), 4, interpolate=True), signal(degree)
    assert step.holds
    step.cross(T0, u, 0.0, 1.0)
    for k, (_, _, values, slopes) in enumerate(listener.steps):
        middle = (k + 0.5) / 4
        assert values == pytest.approx([Polynomial(u.coefficients[:, j])(middle) for j in range(2)], rel=1e-12)
        assert not slopes


def test_a_part_of_a_macro_step_ends_inside_a_substep_and_goes_on_there():
    listener = Listener("canHandleVariableCommunicationStepSize")
    step, u = CommunicationStep(listener, inputs(), 2, interpolate=True), signal(2)
    assert step.cross(T0, u, 0.0, 0.7) == 0.7
    assert step.cross(T0, u, 0.7, 1.0) == 1.0
    assert [t for t, *_ in listener.steps] == pytest.approx([T0, T0 + 0.5 * H, T0 + 0.7 * H])
    assert [h for _, h, *_ in listener.steps] == pytest.approx([0.5 * H, 0.2 * H, 0.3 * H])
