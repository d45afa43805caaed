"""Subsystems in Python under the compiled loop, called back by it: the bits and the words of the Python engine."""

import ctypes
import traceback
import weakref
from functools import partial

import numba
import numpy as np
import pytest
from tests.engine.native.callback_models import Field, Finite, Mass, Noisy, Replaying, spring

import cosolve as cs
from cosolve.engine.native import chunks
from cosolve.jit import call_advance
from cosolve.subsystem import native_callback
from cosolve.subsystem.native_callback import callback_native

METHODS = [
    *(cs.Jacobi(0), cs.Jacobi(2), cs.GaussSeidel(1), cs.SemiImplicit(0), cs.SemiImplicit(2)),
    *(cs.Implicit(1), cs.Implicit(2, corrector=cs.Newton("iteration"))),
]
RUN = {"step": 1e-2, "t_end": 0.3}


def coupled(one, two):
    system = cs.System({"one": one, "two": two})
    system.law({"one.f": 1, "two.f": -1}, spring, of=["one.x", "one.v", "two.x", "two.v"], name="spring")
    return system


def linear():
    return cs.Linear([[0, 1], [-40, -1]], [[0], [1]], np.eye(2), x0=[0.3, 0], inputs=["f"], outputs=["x", "v"])


def same(found, expected):
    for name in ("t", "y", "z", "H", "iterations", "residual", "rejected", "calls", "norms_end", "norms"):
        np.testing.assert_array_equal(found.column(name), expected.column(name), err_msg=name)
    assert (found.stats.calls, found.stats.jacobians) == (expected.stats.calls, expected.stats.jacobians)
    assert found.stats.compiled_steps >= expected.stats.steps - 4  # all but the start


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.label)
def test_same_bits(method):
    """Beside machine code and beside its like; a replay is a replay there too."""
    for one, two in ((linear, Mass), (Mass, Replaying)):
        expected = cs.simulate(coupled(one(), two(x=0.5)), **RUN, method=method, compiled=False)
        same(cs.simulate(coupled(one(), two(x=0.5)), **RUN, method=method, compiled=True), expected)


def test_same_bits_with_step_control():
    run = {"method": cs.SemiImplicit(1), "step": cs.Adaptive(rtol=1e-4, first_step=1e-2), "t_end": 2.0}
    expected = cs.simulate(coupled(Mass(), Mass(x=-0.2)), **run, compiled=False)
    found = cs.simulate(coupled(Mass(), Mass(x=-0.2)), **run, compiled=True)
    assert expected.stats.rejected > 0
    same(found, expected)


def test_same_bits_in_a_process_of_its_own():
    """Machine code waits and hands over, Python computes, on both sides."""
    apart = cs.remote.Isolated(partial(Mass, x=-0.2), timeout=60.0)
    for method in (cs.Jacobi(1), cs.SemiImplicit(1)):
        expected = cs.simulate(coupled(Mass(), Mass(x=-0.2)), **RUN, method=method, compiled=False)
        same(cs.simulate(coupled(Mass(), apart), **RUN, method=method, compiled=True), expected)
        same_again = cs.simulate(coupled(Mass(), apart), **RUN, method=method, compiled=False)
        np.testing.assert_array_equal(same_again.column("y"), expected.column("y"))


class Forward(cs.Subsystem):
    """Cannot go back."""

    inputs, outputs = ("f",), ("x", "v")
    native = cs.Subsystem.by_callback

    def start(self, t0):
        return [0.0, 0.0]

    def advance(self, t0, t1, u):
        return [0.1 * t1, 0.1 + 0.0 * u(t1)[0]]


def test_steps_of_changing_length_are_compiled_only_where_they_can_be_undone():
    system = coupled(linear(), Forward())
    assert cs.analysis.why_not_compiled(system, cs.Jacobi(1), 1e-2) is None
    why = "'two' has no rollback: steps of changing length are compiled only where they can be undone"
    assert cs.analysis.why_not_compiled(system, cs.Jacobi(1), cs.Adaptive()) == why
    with pytest.raises(cs.errors.SetupError, match=why):
        cs.simulate(system, t_end=1.0, method=cs.Jacobi(1), step=cs.Adaptive(), compiled=True)


@pytest.mark.parametrize("returns", ["list", "tuple", "array", "dict", "whole numbers"])
def test_outputs_of_every_shape(returns):
    """And a signal that the subsystem keeps stays what it was."""
    results = []
    for compiled in (False, True):
        field = Field(returns)
        system = cs.System({"field": field, "one": linear()})
        system.connect("one.x", "field.u[1]")
        system.connect("field.y[0]", "one.f")
        system.set("field.u[0]", 0.5)
        results.append(cs.simulate(system, **RUN, method=cs.Jacobi(1), compiled=compiled))
        assert len({u.coefficients.tobytes() for u in field.kept}) > 20
    same(results[1], results[0])


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def fails(two, kind=cs.errors.SubsystemError, method=None, compiled=True):
    with pytest.raises(kind) as caught:
        cs.simulate(coupled(linear(), two), **RUN, method=method or cs.Jacobi(1), compiled=compiled)
    return caught.value


@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.SemiImplicit(1)], ids=lambda m: m.label)
@pytest.mark.parametrize("deed", ["raise", "none", "text", "too many", "complain"])
def test_failures_keep_their_words(deed, method):
    """In steps that stay advanced and in steps that are undone: the same sentence, the same rows."""
    expected, found = (fails(Mass(deed=deed), method=method, compiled=c) for c in (False, True))
    assert str(found) == str(expected)
    assert (found.time, found.subsystem, type(found)) == (expected.time, expected.subsystem, type(expected))
    np.testing.assert_array_equal(found.result.column("y"), expected.result.column("y"))
    assert found.result.stats.compiled_steps > 10
    if deed == "raise":
        assert "in stumble\n" in "".join(traceback.format_exception(found))  # the line of the subsystem is shown


def test_a_failure_in_another_process_shows_its_line():
    error = fails(cs.remote.Isolated(partial(Mass, deed="raise"), timeout=60.0))
    assert str(error) == "'two' failed while advancing at t = 0.15: no ground here (LookupError)"
    assert "in stumble\n" in "".join(traceback.format_exception(error))


def test_a_nan_ends_the_run():
    error = fails(Mass(deed="nan"), cs.errors.NonFiniteError)
    assert (error.subsystem, error.time) == ("two", pytest.approx(0.15))
    assert np.isfinite(error.result.column("y")).all()


@pytest.mark.parametrize("deed", [KeyboardInterrupt, SystemExit])
def test_ctrl_c_comes_through(deed):
    """At once, with the rows up to the chunk that was under way."""
    error = fails(Mass(deed=deed), deed)
    assert 1 <= len(error.result.t) <= 16
    assert error.result.error.startswith(f"the run was ended by {deed.__name__}")


def test_ctrl_c_that_python_never_heard_of_comes_through():
    """It may strike before the first line of the callback: what is left of the call is 0, and the exception is gone."""
    mass = Mass()
    mass.start(0.0)
    native = callback_native(mass, degree=1)
    deaf = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, *[ctypes.c_double] * 3)(lambda *_: 0)
    native.keep[0].words[native_callback._CALL] = ctypes.cast(deaf, ctypes.c_void_p).value
    native.enter()
    room = np.zeros(4)
    advance = numba.njit(lambda at, data, room: call_advance(at, data, 0, 0.0, 0.1, 0.1, 1, room, room))
    assert advance(native.advance, native.data, room.ctypes.data) != 0
    with pytest.raises(KeyboardInterrupt):
        native.leave()


def test_a_way_back_that_fails_is_not_passed_over():
    error = fails(Mass(deed="no way back"), method=cs.SemiImplicit(1))
    assert "going back to a saved state failed: the bridge is out (OSError)" in str(error)


def ends(how, method, two):
    """With the last row where the Python engine has it."""
    expected = cs.simulate(coupled(linear(), Finite(how)), **RUN, method=method, compiled=False)
    found = cs.simulate(coupled(linear(), two), **RUN, method=method, compiled=True)
    assert found.ended == expected.ended
    assert "'two' asked for it" in found.ended
    assert found.stats.compiled_steps > 10
    for name in ("t", "y", "z"):
        np.testing.assert_array_equal(found.column(name), expected.column(name), err_msg=name)


@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.GaussSeidel(1), cs.SemiImplicit(1)], ids=lambda m: m.label)
@pytest.mark.parametrize("how", ["whole step", "inside", "no step"])
def test_who_asks_for_the_end_gets_it(how, method):
    ends(how, method, Finite(how))


def test_the_end_may_come_in_any_row_of_a_chunk():
    """Also in its last one, after which the loop is entered once more."""
    assert 55 < chunks._FIRST < 70
    for last in range(55, 70):
        system = coupled(linear(), Finite("whole step", end=1e-2 * (last - 0.5)))
        found = cs.simulate(system, method=cs.Jacobi(1), step=1e-2, t_end=1.0, compiled=True)
        assert len(found.t) == last + 1
        assert "'two' asked for it" in found.ended


def test_who_asks_for_the_end_in_another_process_gets_it():
    ends("whole step", cs.Jacobi(1), cs.remote.Isolated(partial(Finite, "whole step"), timeout=60.0))


def test_a_subsystem_goes_with_its_last_run():
    """Nothing holds it in a circle that only the garbage collector would find."""
    mass = Mass()
    mass.start(0.0)
    native = callback_native(mass, degree=1)
    gone = weakref.ref(mass)
    native.enter()
    native.leave()
    del native, mass
    assert gone() is None


def test_noise_belongs_to_the_readable_engine():
    assert "its outputs are noisy" in cs.analysis.why_not_compiled(coupled(linear(), Noisy()), cs.SemiImplicit(1), 1e-2)
