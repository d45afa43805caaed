"""Windows, iterations and flags: the numbers of the linear pair, digit by digit where that is promised."""

import socket
import threading

import numpy as np
import pytest
from tests.precice.together import (
    A_Y,
    B_X,
    MEASURES,
    POINTS,
    a_free,
    b_free,
    config,
    constant,
    couple,
    iterations,
    linear,
    pair,
)

from cosolve.errors import SubsystemError
from cosolve.participants.client import Connection
from cosolve.participants.hub import Hub
from cosolve.precice.config import Reader
from cosolve.precice.coupling import Coupling
from cosolve.precice.opt_in.precice import Participant

X_CONST = [0.544325324184, 0.621589570466, 0.646378488152, 0.548273771835]
Y_CONST = [0.345971168816, 0.330740356399, 0.422908836328, 0.641715475604]
COUNTS = [70, 64, 62, 59, 54, 60, 62, 63, 63, 63]
S_CONST = config("serial-implicit", MEASURES + constant(0.5))


def near(values, expected, rel):
    np.testing.assert_allclose(values, expected, rtol=0, atol=rel * np.abs(expected).max())


def flags(steps):
    """What a participant answers after every step, and whether it wanted to save before it."""

    def solver(p):
        mesh = "MA" if steps > 1 else "MB"
        ids = p.set_mesh_vertices(mesh, POINTS)
        if p.requires_initial_data():
            p.write_data(mesh, "Y" if mesh == "MA" else "X", ids, np.zeros(4))
        p.initialize()
        seen = []
        while p.is_coupling_ongoing():
            saving = p.requires_writing_checkpoint()
            p.advance(min(p.get_max_time_step_size(), 0.1 / steps))
            seen.append(
                (
                    int(saving),
                    int(p.requires_reading_checkpoint()),
                    int(p.is_time_window_complete()),
                    p.get_max_time_step_size(),
                    int(p.is_coupling_ongoing()),
                )
            )
        return seen

    return solver


TWO = '<max-time-windows value="2" />'
TWICE = '<max-iterations value="2" />' + constant(0.5)


@pytest.mark.covers("PX-03")
def test_flags_of_a_serial_implicit_scheme_are_those_measured():
    seen, _ = couple(config("serial-implicit", TWICE, end=TWO), {"A": flags(2), "B": flags(1)})
    assert seen["A"] == [
        (1, 0, 0, 0.05, 1), (0, 1, 0, 0.1, 1), (0, 0, 0, 0.05, 1), (0, 0, 1, 0.1, 1),
        (1, 0, 0, 0.05, 1), (0, 1, 0, 0.1, 1), (0, 0, 0, 0.05, 1), (0, 0, 1, 0, 0),
    ]  # fmt: skip
    assert seen["B"] == [(1, 1, 0, 0.1, 1), (0, 0, 1, 0.1, 1), (1, 1, 0, 0.1, 1), (0, 0, 1, 0, 0)]


@pytest.mark.covers("PX-03")
def test_flags_of_a_serial_explicit_scheme_are_those_measured():
    seen, _ = couple(config("serial-explicit", end=TWO), {"A": flags(2), "B": flags(1)})
    assert seen["A"] == [(0, 0, 0, 0.05, 1), (0, 0, 1, 0.1, 1), (0, 0, 0, 0.05, 1), (0, 0, 1, 0, 0)]
    assert seen["B"] == [(0, 0, 1, 0.1, 1), (0, 0, 1, 0, 0)]


@pytest.mark.covers("PX-03")
@pytest.mark.parametrize("scheme", ["serial-explicit", "parallel-explicit", "serial-implicit", "parallel-implicit"])
def test_the_last_window_is_cut_at_the_end_of_the_time(scheme):
    body = TWICE if scheme.endswith("implicit") else ""
    seen, _ = couple(config(scheme, body, end='<max-time value="0.25" />'), {"A": flags(2), "B": flags(1)})
    for trace in seen.values():
        complete = [step for step in trace if step[2]]
        assert [step[3] for step in complete] == pytest.approx([0.1, 0.05, 0.0], rel=1e-12)
        assert [step[4] for step in complete] == [1, 1, 0]


@pytest.mark.covers("PX-04")
def test_serial_explicit_values():
    got, _ = couple(config("serial-explicit"), pair())
    near(got["B"], [-2580.43376941, -3237.26995784, -3237.25519821, -2580.45258031], 1e-10)
    near(got["A"], [-1424.88709703, -1685.48347971, -1685.40045432, -1424.61764116], 1e-10)


@pytest.mark.covers("PX-04")
def test_parallel_explicit_values():
    got, _ = couple(config("parallel-explicit"), pair())
    near(got["B"], [25.2335869007, 31.5726524147, 31.5769570377, 25.1910242908], 1e-10)
    near(got["A"], [-83.0850760108, -98.3519880754, -98.2657871101, -82.8085479596], 1e-10)


@pytest.mark.covers("PX-05")
def test_constant_relaxation_takes_exactly_the_iterations_measured():
    got, coupling = couple(S_CONST, pair())
    assert iterations(coupling, "B") == iterations(coupling, "A") == COUNTS
    near(got["B"], X_CONST, 1e-10)
    near(got["A"], Y_CONST, 1e-10)


@pytest.mark.covers("PX-05")
def test_max_iterations_accepts_what_there_is():
    got, coupling = couple(config("serial-implicit", '<max-iterations value="3" />' + constant(0.5)), pair())
    assert iterations(coupling, "B") == [3] * 10
    near(got["B"], [-6.83662121742, -8.63818262919, -8.61435053676, -6.83519147392], 1e-10)
    near(got["A"], [-3.72967393012, -4.48981885295, -4.39826532431, -3.43695227743], 1e-10)


@pytest.mark.covers("PX-05")
def test_min_iterations_goes_on_after_convergence():
    body = MEASURES.replace("1e-8", "1e-1") + '<min-iterations value="9" />' + constant(0.5)
    _, coupling = couple(config("serial-implicit", body), pair())
    assert min(iterations(coupling, "B")) == 9


@pytest.mark.covers("PX-05")
def test_parallel_constant_relaxation():
    got, coupling = couple(config("parallel-implicit", MEASURES + constant(0.3)), pair())
    assert iterations(coupling, "B") == [100, 100, 99, 99, 96, 97, 98, 100, 100, 100]
    near(got["B"], [0.544325321022, 0.621589566499, 0.646378484185, 0.548273768673], 1e-10)
    near(got["A"], [0.345971175538, 0.33074036435, 0.422908844279, 0.641715482326], 1e-10)


@pytest.mark.covers("PX-06")
def test_without_initial_data_only_the_first_window_differs():
    got, coupling = couple(config("serial-implicit", MEASURES + constant(0.5), init=False), pair())
    assert iterations(coupling, "B") == [73, *COUNTS[1:]]
    near(got["B"], X_CONST, 1e-10)


@pytest.mark.covers("PX-06")
def test_a_parallel_scheme_mixes_with_the_initial_data():
    """After one window of two iterations X[0] is B of the mean of A's initial and first values."""
    one = config("parallel-implicit", TWICE, end='<max-time-windows value="1" />')
    got, _ = couple(one, pair())
    assert got["B"][0] == pytest.approx(1.64312340275, rel=1e-11)
    y0, x0 = a_free(0.0), b_free(0.0)
    y1 = A_Y @ x0 + a_free(0.1)
    d = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    assert got["B"][0] == pytest.approx((0.9 * 0.5**d @ (0.5 * y0 + 0.5 * y1) + b_free(0.1))[0], rel=1e-14)


@pytest.mark.covers("PX-07")
@pytest.mark.parametrize(("degree", "a", "b"), [(0, 1, 1), (1, 3, 1), (2, 3, 4)])
def test_substeps_of_a_pair_without_memory_change_nothing(degree, a, b):
    got, coupling = couple(config("serial-implicit", MEASURES + constant(0.5), degree=degree), pair(a, b))
    assert iterations(coupling, "B") == COUNTS
    near(got["B"], X_CONST, 1e-10)


@pytest.mark.covers("PX-08")
def test_a_strict_measure_that_fails_ends_the_run_with_the_name_of_the_data():
    strict = MEASURES.replace('mesh="MB" limit="1e-8"', 'mesh="MB" limit="1e-8" strict="true"').replace("100", "3")
    with pytest.raises(Exception, match="data 'X' have not converged in 3 iterations"):
        couple(config("serial-implicit", strict + constant(0.5)), pair())


@pytest.mark.covers("PX-18")
def test_one_that_leaves_early_ends_the_others_with_its_name():
    def leaver(p):
        p.set_mesh_vertices("MB", POINTS)
        p.requires_initial_data()
        p.initialize()
        p.finalize()

    with pytest.raises(Exception, match="participant 'B' has finished before the coupling has ended"):
        couple(S_CONST, {**pair(), "B": leaver})


@pytest.mark.covers("PX-18")
def test_one_that_fails_ends_the_others_with_its_name():
    def failing(p):
        p.set_mesh_vertices("MB", POINTS)
        p.requires_initial_data()
        p.initialize()
        raise ValueError("no memory")

    seen = []

    def other(p):
        try:
            return linear("MA", "X", "Y", A_Y, a_free)(p)
        except Exception as error:
            seen.append(str(error))
            raise

    with pytest.raises(ValueError, match="no memory") as failure:
        couple(S_CONST, {"A": other, "B": failing})
    assert isinstance(failure.value.hub, SubsystemError)
    assert "participant 'B' is gone before the coupling has ended" in seen[0]


def test_a_coupling_is_over_when_the_last_participant_has_ended():
    """A and B have ended before C and D, which have a scheme of their own, have begun."""
    one, two = config("serial-explicit", end=TWO), config("serial-explicit")
    for old, new in (("A", "C"), ("B", "D")):
        two = two.replace(f'"{old}"', f'"{new}"').replace(f'"M{old}"', f'"M{new}"')
    close = "</precice-configuration>"
    text = one.replace(close, two[two.index('<mesh name="MC"') : two.index(close)] + close)
    coupling = Coupling(Reader("config.xml", text.encode()).configuration, record=False)
    hub, ends, threads = Hub(coupling), {}, []

    def begin(name, solver):
        near, far = socket.socketpair()
        hub.take(near)

        def work():
            participant = Participant(name, "config.xml", 0, 1, connection=Connection(far), limit=60.0)
            ends[name] = solver(participant)
            participant.finalize()

        threads.append(threading.Thread(target=work, daemon=True))
        threads[-1].start()

    begin("A", linear("MA", "X", "Y", A_Y, a_free))
    begin("B", linear("MB", "Y", "X", B_X, b_free))
    hub.listen(lambda: coupling.ended("A") and coupling.ended("B"))
    assert not coupling.done
    begin("C", linear("MC", "X", "Y", A_Y, a_free))
    begin("D", linear("MD", "Y", "X", B_X, b_free))
    hub.serve()
    assert coupling.done
    for thread in threads:
        thread.join(60.0)
    assert {name: len(value) for name, value in ends.items()} == dict.fromkeys("ABCD", 4)
    whole, _ = couple(config("serial-explicit"), pair())
    assert np.array_equal(ends["C"], whole["A"])
    assert np.array_equal(ends["D"], whole["B"])
