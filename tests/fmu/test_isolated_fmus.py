"""FMUs in a process of their own: same numbers, and crashes that end a run with a sentence."""

from functools import partial

import numpy as np
import pytest
from tests.fmu.build import fmu

import cosolve as cs

VERSIONS = pytest.mark.parametrize("fmi", [2, 3])


def _pair(one, two):
    """Two masses on walls, joined by a spring law."""
    system = cs.System({"one": one, "two": two})
    forces = {"one.f": 1.0, "two.f": -1.0}
    system.law(forces, lambda a, b: 1e4 * (b - a), of=["one.x", "two.x"], name="spring")
    return system


def _run(system, t_end=0.1, **options):
    return cs.simulate(system, t_end=t_end, step=1e-3, **{"method": cs.SemiImplicit(degree=2), **options})


@pytest.mark.sample(2)
@VERSIONS
@pytest.mark.parametrize("name", ["mass_force", "mass_me"])
def test_same_numbers_and_capabilities(fmi, name):
    make = partial(cs.load_fmu, fmu(name, fmi), start={"x": 0.01})
    here, there = make(), make(isolated=True)
    assert isinstance(there, cs.remote.Isolated)
    assert cs.capabilities(there) == cs.capabilities(here)
    other = partial(cs.load_fmu, fmu(name, fmi), parameters={"m": 2.0})
    expected, found = (_run(_pair(*pair), 0.02) for pair in ((here, other()), (there, other(isolated=True))))
    for channel in expected.names:
        assert np.array_equal(expected[channel], found[channel]), channel
    assert expected.stats.calls == found.stats.calls
    assert there.get("m") == 1.0


@VERSIONS
def test_an_fmu_of_both_kinds_is_run_as_the_kind_that_is_asked_for(fmi):
    """The same bits as in this process; the two kinds differ, since their integrators do."""
    ends = {}
    for kind in ("co-simulation", "model-exchange"):
        for isolated in (False, True):
            one = cs.load_fmu(fmu("mass_both", fmi), kind=kind, start={"x": 0.01}, isolated=isolated)
            two = cs.load_fmu(fmu("mass_force", fmi))
            ends[kind, isolated] = _run(_pair(one, two), 0.02, method=cs.Jacobi(1))["one.x"]
        assert np.array_equal(ends[kind, False], ends[kind, True])
    assert not np.array_equal(ends["co-simulation", True], ends["model-exchange", True])


@VERSIONS
def test_a_crash_ends_the_run_with_a_sentence_and_its_result(fmi):
    """The FMU writes to a forbidden address in the step that ends after t = 0.05."""
    system = _pair(
        cs.load_fmu(fmu("mass_force", fmi), start={"x": 0.01}), cs.load_fmu(fmu("mass_crash", fmi), isolated=True)
    )
    with pytest.raises(
        cs.errors.SubsystemError, match=r"'two' failed .*its process crashed \(signal 11, SIGSEGV\)"
    ) as caught:
        _run(system, method=cs.Jacobi(degree=1))
    assert caught.value.subsystem == "two"
    assert caught.value.time == pytest.approx(0.05)
    assert caught.value.result.t[-1] == pytest.approx(0.05)
    safe = cs.simulate(system, t_end=0.04, method=cs.Jacobi(degree=1), step=1e-3)  # a new run, a new process
    assert np.abs(safe["two.x"] - caught.value.result["two.x"][:41]).max() < 1e-14  # times differ by roundings


@VERSIONS
def test_a_crash_in_an_implicit_iteration_keeps_the_result(fmi):
    system = _pair(
        cs.load_fmu(fmu("mass_force", fmi), start={"x": 0.01}), cs.load_fmu(fmu("mass_crash", fmi), isolated=True)
    )
    with pytest.raises(cs.errors.SubsystemError, match="SIGSEGV") as caught:
        _run(system, method=cs.Implicit(degree=2))
    assert caught.value.result.t[-1] == pytest.approx(0.05)


@VERSIONS
def test_a_hang_is_ended_by_the_timeout(fmi):
    stuck = cs.remote.Isolated(partial(cs.load_fmu, fmu("mass_hang", fmi)), timeout=1.0)
    system = _pair(cs.load_fmu(fmu("mass_force", fmi), start={"x": 0.01}), stuck)
    with pytest.raises(cs.errors.SubsystemError, match=r"'two' failed .* no answer within 1 s and was ended") as caught:
        _run(system, method=cs.Jacobi(degree=1))
    assert caught.value.time == pytest.approx(0.05)
    assert not stuck._worker.alive


@VERSIONS
def test_errors_of_the_fmu_read_as_if_it_ran_here(fmi):
    texts = []
    for isolated in (False, True):
        bad = cs.load_fmu(fmu("mass_error", fmi), isolated=isolated)
        with pytest.raises(cs.errors.SubsystemError) as caught:
            _run(_pair(cs.load_fmu(fmu("mass_force", fmi), start={"x": 0.01}), bad), method=cs.Jacobi(degree=1))
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    assert "the tank is empty" in texts[0]


def test_setup_errors_name_the_file():
    with pytest.raises(cs.errors.SetupError, match=r"there is no file 'missing.fmu'"):
        cs.load_fmu("missing.fmu", isolated=True).inputs  # noqa: B018
