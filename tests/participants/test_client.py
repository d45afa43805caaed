"""What makes a window cheap: short ways that must give what the long ones give, and looking before sleeping."""

import socket
import types

import numpy as np
import pytest
from tests.precice import together

from cosolve.participants import client as c
from cosolve.precice.opt_in.precice import Participant


class Clock:
    """Time that passes when it is told to."""

    def __init__(self, monkeypatch, each_yield=1e-6):
        self.now, self.each_yield = 0.0, each_yield
        monkeypatch.setattr(c, "time", types.SimpleNamespace(perf_counter=lambda: self.now))
        monkeypatch.setattr(c, "_yield", self.given_way)
        monkeypatch.setattr(c.os, "cpu_count", lambda: 2)

    def given_way(self):
        self.now += self.each_yield

    def wait(self, spin, comes_after):
        """Wait for something that comes so many seconds from now: how often was looked, and whether it slept."""
        due, looks, slept = self.now + comes_after, [], []

        def look():
            looks.append(1)
            return self.now >= due

        def sleep():
            slept.append(1)
            self.now = max(self.now, due)
            return True

        assert spin.wait(look, sleep)
        return len(looks), bool(slept)


def test_a_short_wait_is_watched_and_after_a_long_one_none_looks(monkeypatch):
    clock, spin = Clock(monkeypatch), c.SpinThenBlock()
    assert clock.wait(spin, 2.5e-6) == (4, False)
    looks, slept = clock.wait(spin, 0.5)
    assert slept
    assert looks <= 201  # a fifth of a millisecond, not half a second
    assert clock.wait(spin, 2.5e-6) == (0, True)
    assert clock.wait(spin, 2.5e-6) == (4, False)  # the last one was short again


def test_who_loses_the_core_sleeps_for_a_while_and_for_longer_each_time(monkeypatch):
    clock, spin = Clock(monkeypatch, each_yield=3e-3), c.SpinThenBlock()
    assert clock.wait(spin, 1e-6) == (1, True)
    asleep = []
    for _ in range(3):
        asleep.append(0)
        while clock.wait(spin, 1e-6)[0] == 0:
            asleep[-1] += 1
    assert asleep == [64, 128, 256]


def test_an_exception_while_asleep_leaves_it_asleep(monkeypatch):
    Clock(monkeypatch)
    spin, looks = c.SpinThenBlock(), []
    for _ in range(2):
        with pytest.raises(TimeoutError):
            spin.wait(lambda: looks.append(1), _late)
    assert 0 < len(looks) <= 201


def _late():
    raise TimeoutError


def test_the_other_end_is_not_waited_for_longer_than_patience(monkeypatch):
    """A computer that does not answer at all, where the system itself would wait for minutes; then one that does."""
    asked, (near, far) = [], socket.socketpair()

    def connect(where, timeout=None):
        asked.append((where, timeout))
        if len(asked) == 1:
            raise TimeoutError
        return near

    monkeypatch.setattr(c.socket, "create_connection", connect)
    connection = c.connected("tcp:hub:4711", patience=3.0)
    assert asked == 2 * [(("hub", 4711), 3.0)]
    assert connection.socket is near
    assert near.gettimeout() is None  # from then on it is waited for
    connection.close()
    far.close()


def test_records_arrive_whole_however_they_are_cut():
    """In single bytes, two at once, one and a half: a record in one piece takes the short way."""
    near, far = socket.socketpair()
    with near, far:
        line = c.Connection(near)
        contents = [b"", b"first", bytes(range(256)) * 3]
        wire = b"".join(c._HEAD.pack(c._MAGIC, 7 + k, len(data)) + data for k, data in enumerate(contents))
        for cut in (1, 20, 40, len(wire)):
            found = []
            for at in range(0, len(wire), cut):
                far.sendall(wire[at : at + cut])
                assert line.read()
                while (record := line.complete()) is not None:
                    found.append(record)
            assert found == [(7 + k, data) for k, data in enumerate(contents)]


@pytest.mark.parametrize("values", [[1.0], [np.nan], [1.0, np.inf], [np.inf, -np.inf], [1e308] * 4, [0.0] * 17, []])
def test_numbers_are_finite_or_not_however_many(values):
    assert c.all_finite(np.array(values)) == bool(np.isfinite(values).all())


@pytest.mark.parametrize("end", [1.0, 0.0, -3.0, 1e4])
def test_the_end_of_a_waveform_is_the_sample_that_weights_choose(end):
    """Times that differ by rounding are the same, wherever the window lies."""
    values = np.array([[1.0], [2.0], [4.0]])
    times = [end - 1.0, end - 0.75, end]
    near = 5e-13 * max(1.0, 1e-3 * abs(end))
    for degree in (0, 1, 2):
        wave = c.Waveform(times, values, degree)
        for t in (end, end - 0.01, end - 0.75, end - 1.0):
            assert np.allclose(wave.at(t), c.spline_weights(times, degree, t) @ values, rtol=1e-15)
        for time, value in zip(times, values, strict=True):
            for t in (time - near, time, time + near):
                assert wave.at(t)[0] == value[0]


def test_numbers_of_points_may_be_anything_that_counts_them():
    """All in order (the short way), the same as other types, some of them, in another order, an array changed since."""
    found = {}

    def first(p: Participant):
        ids = p.set_mesh_vertices("MA", together.POINTS)
        p.initialize()
        for give in (ids, ids.tolist(), ids.astype(np.int64), ids[::-1].copy()):
            p.write_data("MA", "Y", give, [1.0, 2.0, 3.0, 4.0])
            buffer = p._inner.data("MA", "Y").buffer[:, 0].tolist()
            found.setdefault("written", []).append(buffer)
        ids[:] = [3, 1, 1, 0]
        found["read"] = p.read_data("MA", "X", ids, 0.0).shape, p.read_data("MA", "X", ids[:2], 0.0).shape
        p.write_data("MA", "Y", ids[:2], [7.0, 8.0])
        found["some"] = p._inner.data("MA", "Y").buffer[:, 0].tolist()
        with pytest.raises(c.ParticipantError, match="has the points 0 to 3, not 4"):
            p.write_data("MA", "Y", np.array([0, 1, 2, 4], dtype=np.int32), [0.0] * 4)
        while p.is_coupling_ongoing():
            p.advance(p.get_max_time_step_size())

    def second(p: Participant):
        p.set_mesh_vertices("MB", together.POINTS)
        p.initialize()
        while p.is_coupling_ongoing():
            p.advance(p.get_max_time_step_size())

    end = '<max-time-windows value="2" />'
    together.couple(together.config("parallel-explicit", init=False, end=end), {"A": first, "B": second})
    assert found["written"] == [[1.0, 2.0, 3.0, 4.0]] * 3 + [[4.0, 3.0, 2.0, 1.0]]
    assert found["read"] == ((4,), (2,))
    assert found["some"] == [4.0, 8.0, 2.0, 7.0]
