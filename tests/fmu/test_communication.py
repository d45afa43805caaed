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
    assert step.advance(T0, u, 0.0, 1.0) == 1.0
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
    step.advance(T0, signal(3), 0.0, 1.0)
    line = signal(1)
    step.advance(T0 + H, line, 0.0, 1.0)
    for _, _, _, slopes in listener.steps[2:]:
        assert [slopes[7, order] for order in (1, 2, 3)] == [pytest.approx(line.coefficients[1, 0] / H), 0.0, 0.0]
    step.advance(T0 + 2 * H, signal(0), 0.0, 1.0)
    assert not any(listener.steps[-1][3].values())


@pytest.mark.parametrize("degree", [0, 1, 3])
def test_an_fmu_that_holds_its_inputs_gets_them_from_the_middle_of_each_substep(degree):
    listener = Listener("canHandleVariableCommunicationStepSize")
    step, u = CommunicationStep(listener, inputs(), 4, interpolate=True), signal(degree)
    assert step.holds
    step.advance(T0, u, 0.0, 1.0)
    for k, (_, _, values, slopes) in enumerate(listener.steps):
        middle = (k + 0.5) / 4
        assert values == pytest.approx([Polynomial(u.coefficients[:, j])(middle) for j in range(2)], rel=1e-12)
        assert not slopes


def test_a_part_of_a_macro_step_ends_inside_a_substep_and_goes_on_there():
    listener = Listener("canHandleVariableCommunicationStepSize")
    step, u = CommunicationStep(listener, inputs(), 2, interpolate=True), signal(2)
    assert step.advance(T0, u, 0.0, 0.7) == 0.7
    assert step.advance(T0, u, 0.7, 1.0) == 1.0
    assert [t for t, *_ in listener.steps] == pytest.approx([T0, T0 + 0.5 * H, T0 + 0.7 * H])
    assert [h for _, h, *_ in listener.steps] == pytest.approx([0.5 * H, 0.2 * H, 0.3 * H])


class EventListener:
    """An FMI 3.0 instance with event mode: keeps the order of what happens to it."""

    event_mode, pointer, fmi, file, stepping = True, 0, 3, "listener.fmu", True

    def __init__(self):
        self.flags = SimpleNamespace(has=lambda name: name == "canHandleVariableCommunicationStepSize")
        self.log = SimpleNamespace(time=0.0, remark="")
        self.heard, self.answers = [], []
        self.binary = SimpleNamespace(function=lambda name: self._do_step)

    def values(self, variables):
        names = "".join(v.name for v in variables)
        write = lambda pointer, values: self.heard.append((names, *np.asarray(values).tolist()))  # noqa: E731
        return SimpleNamespace(length=len(variables), write=write)

    def call(self, name):
        self.heard.append(name)

    def iterate_events(self):
        self.heard.append("events")
        return False

    def _do_step(self, pointer, t, h, no_return, event, ends, early, reached):
        """Each answer: whether there is an event, and after which part of the step it comes."""
        due, part = self.answers.pop(0) if self.answers else (False, 1.0)
        for address, flag in ((event, due), (ends, False), (early, part < 1.0)):
            ctypes.c_bool.from_address(address).value = flag
        ctypes.c_double.from_address(reached).value = t + part * h
        self.heard.append(("step", t, h))
        return 0


def with_switch():
    switch = Variable("b", 4, "Boolean", causality="input", variability="discrete")
    return [Variable("a", 7, "Float64", causality="input"), switch]


def test_discrete_inputs_change_in_event_mode_only_and_only_when_they_change():
    listener = EventListener()
    step = CommunicationStep(listener, with_switch(), 1, interpolate=False)

    def advanced(a, b):
        listener.heard.clear()
        u = SimpleNamespace(t0=T0, H=H, coefficients=np.array([[a, b]]), degree=0)
        assert step.advance(T0, u, 0.0, 1.0) == 1.0
        return listener.heard[:-1]

    entering = ["EnterEventMode", ("ab", 1.0, 0.0), "events", "EnterStepMode"]
    assert advanced(1.0, 0.0) == entering  # at first its content is unknown
    assert advanced(2.0, 0.0) == [("a", 2.0)]
    assert advanced(2.0, 1.0) == ["EnterEventMode", ("ab", 2.0, 1.0), "events", "EnterStepMode"]
    assert advanced(2.0, 1.0) == [("a", 2.0)]
    step.went_back()
    assert advanced(1.0, 0.0) == entering


def test_an_event_inside_a_step_is_handled_there_and_the_step_goes_on():
    listener = EventListener()
    step = CommunicationStep(listener, with_switch(), 1, interpolate=False)
    u = SimpleNamespace(t0=T0, H=H, coefficients=np.array([[1.0, 0.0]]), degree=0)
    listener.answers = [(True, 0.25)]
    assert step.advance(T0, u, 0.0, 1.0) == 1.0
    steps = [heard for heard in listener.heard if heard[0] == "step"]
    assert steps == [("step", T0, H), ("step", pytest.approx(T0 + 0.25 * H), pytest.approx(0.75 * H))]
    first = listener.heard.index(steps[0])
    assert listener.heard[first + 1 : first + 4] == ["EnterEventMode", "events", "EnterStepMode"]


def test_an_event_that_others_shall_see_waits_for_them():
    """With `hold` the subsystem step ends before it; `handle_event` lets it happen with the inputs of that time."""
    listener = EventListener()
    step = CommunicationStep(listener, with_switch(), 1, interpolate=False)
    step.hold = True
    u = SimpleNamespace(t0=T0, H=H, coefficients=np.array([[1.0, 0.0]]), degree=0)
    listener.answers = [(True, 0.25)]
    assert step.advance(T0, u, 0.0, 1.0) == pytest.approx(0.25)
    assert step.pending
    listener.heard.clear()
    step.handle_event(np.array([3.0, 1.0]))
    assert listener.heard == ["EnterEventMode", ("ab", 3.0, 1.0), "events", "EnterStepMode"]
    assert not step.pending
    listener.heard.clear()
    step.handle_event(np.array([4.0, 1.0]))  # nothing is due: they are inputs like any others
    assert listener.heard == [("a", 4.0)]


def test_discrete_inputs_keep_the_value_of_the_macro_point_in_all_substeps():
    """A switch has no value in the middle of a step."""
    listener = Listener("canHandleVariableCommunicationStepSize")
    step = CommunicationStep(listener, with_switch(), 2, interpolate=True)
    step.advance(T0, SimpleNamespace(t0=T0, H=H, coefficients=np.array([[1.0, 0.0], [2.0, 1.0]]), degree=1), 0.0, 1.0)
    assert [values.tolist() for _, _, values, _ in listener.steps] == [[1.5, 0.0], [2.5, 0.0]]
