"""Animals that cannot be run as they are: the run ends with a sentence that names the FMU, and keeps what it has."""

import numpy as np
import pytest
from tests.fmu.zoo.members import ANIMALS, animal
from tests.fmu.zoo.pairs import B, expected, pair, part, y

import cosolve as cs
from cosolve.fmu import proof
from cosolve.fmu.findings import facts

METHODS = [cs.Jacobi(0), cs.GaussSeidel(1), cs.SemiImplicit(1), cs.Implicit(1)]
EXPLICIT = METHODS[:2]
VERSIONS = pytest.mark.parametrize("fmi", [2, 3])
DISCARDED = "discarded its step from t = 0.5 to 0.55 and came to t = "
STOPS = {
    "discards": (f"{DISCARDED}0.5125; the FMU says: the tank is empty", METHODS),
    "changes_mind": (f"{DISCARDED}0.5; the FMU says: from now on at most 0.02", EXPLICIT),
    "pending": ("returned 'pending' from doStep at t = 0.5; it wants to run asynchronously", METHODS),
}
OVER = [(n, fmi, words, m) for n, (words, methods) in STOPS.items() for fmi in ANIMALS[n].versions for m in methods]


@pytest.mark.parametrize(("name", "fmi", "words", "method"), OVER, ids=lambda v: getattr(v, "label", str(v)[:12]))
def test_a_run_that_stops(name, fmi, words, method):
    """At t = 0.5, in the first run and in the second; until then the numbers of its twin."""
    a = part(name, fmi)
    system = pair(a, fmi)
    for compiled in (False, None):
        with pytest.raises(cs.errors.SubsystemError) as caught:
            cs.simulate(system, t_end=1.0, method=method, step=0.05, compiled=compiled)
        assert f"the FMU '{name}.fmu' {words}" in str(caught.value)
        assert caught.value.subsystem == "a"
        until_half(caught.value.result, a, fmi, method)


@VERSIONS
@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.label)
def test_an_fmu_that_asks_for_the_end(method, fmi):
    """The run ends where it asks, with words that name it."""
    a = part("ends", fmi)
    system = pair(a, fmi)
    for _ in range(2):
        result, words = ended(system, method)
        assert "ends.fmu" in words
        assert "the ship has arrived" in words
        until_half(result, a, fmi, method)


def ended(system, method):
    """The result of a run that ends early, and what is said about it."""
    try:
        result = cs.simulate(system, t_end=1.0, method=method, step=0.05)
    except cs.errors.SubsystemError as error:
        return error.result, str(error)
    return result, str(getattr(result, "ended", ""))


def until_half(result, a, fmi, method):
    """The numbers of the twin up to t = 0.5."""
    other = part("black", fmi)
    want = y(cs.simulate(pair(other, fmi), t_end=0.5, method=method, step=0.05, compiled=False), other)
    assert result.t[-1] == pytest.approx(0.5)
    for one, two in zip(y(result, a), want, strict=True):
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-14)  # times to 0.5 and to 1 differ by roundings


@VERSIONS
def test_a_smaller_step_is_taken_by_the_one_that_changed_its_mind(fmi):
    a = part("changes_mind", fmi)
    system = pair(a, fmi)
    for _ in range(2):
        found = y(cs.simulate(system, t_end=1.0, method=cs.Jacobi(0), step=0.02), a)
        for one, two in zip(found, expected("changes_mind", fmi, step=0.02), strict=True):
            np.testing.assert_array_equal(one, two)


@VERSIONS
def test_steps_of_one_size_only(fmi):
    system = pair(part("own_step", fmi), fmi)
    with pytest.raises(cs.errors.SubsystemError, match=r"'own_step.fmu' returned 'error' .* says: my step is 0.02"):
        cs.simulate(system, t_end=1.0, method=cs.Jacobi(0), step=0.05)
    assert "my step is 0.02" in str(cs.check(system, cs.Implicit(1), 0.05))
    with pytest.raises(cs.errors.SubsystemError, match=r"'own_step.fmu' takes steps of one size only"):
        cs.simulate(system, t_end=1.0, method=cs.Jacobi(1), step=cs.Adaptive(rtol=1e-3, first_step=0.02))


@VERSIONS
@pytest.mark.parametrize("kind", ["co-simulation", "model exchange"])
@pytest.mark.parametrize(
    ("name", "words"),
    [("ignores_parameter", r"'gain' = -0.25: .* says 1.0;"), ("clamps_parameter", r"'rate' = 3.0: .* says 2.5;")],
)
def test_a_parameter_that_the_fmu_did_not_take(name, words, kind, fmi):
    """Refused, in a check too; taken as it is where the user says so."""
    said = rf"the FMU '{name}.fmu' did not take the parameter {words}"
    system = pair(part(name, fmi, kind=kind), fmi)
    assert "did not take the parameter" in str(cs.check(system, cs.Jacobi(0), 0.05))
    for _ in range(2):
        with pytest.raises(cs.errors.SubsystemError, match=said):
            cs.simulate(system, t_end=1.0, method=cs.Jacobi(0), step=0.05)
    a = part(name, fmi, kind=kind, read_back=False)
    found = y(cs.simulate(pair(a, fmi), t_end=1.0, method=cs.Jacobi(0), step=0.05), a)
    for one, two in zip(found, expected(name, fmi), strict=True):
        np.testing.assert_allclose(one, two, rtol=0, atol=0 if kind == "co-simulation" else 1e-6)


@pytest.mark.sample(2)
@VERSIONS
@pytest.mark.parametrize("name", ["state_kept", "state_half"])
def test_a_state_that_does_not_come_back(name, fmi):
    """Methods that repeat steps would compute nonsense with it; one that does not needs no rollback."""
    system = pair(part(name, fmi), fmi)
    assert "'a' does not come back to its saved state" in str(cs.check(system, cs.SemiImplicit(1), 0.05))
    for method in METHODS[2:]:
        for compiled in (False, None, True):
            with pytest.raises(cs.errors.SubsystemError, match=rf"'{name}.fmu' does not come back to a saved state"):
                cs.simulate(system, t_end=1.0, method=method, step=0.05, compiled=compiled)


@pytest.fixture
def _unknown(monkeypatch):
    """As if no FMU had been tried in this process."""
    monkeypatch.setattr(proof, "_proven", set())
    monkeypatch.setattr(proof, "_distrusted", set())


@VERSIONS
@pytest.mark.usefixtures("_unknown")
@pytest.mark.parametrize("name", ["wrong_sign", "transposed"])
def test_derivatives_that_are_wrong(name, fmi):
    """`check` finds them; a run says so and takes differences instead."""
    assert "'a' says d y / d u =" in str(cs.check(pair(part(name, fmi), fmi), cs.Implicit(1), 0.05))
    for method in (cs.SemiImplicit(1), cs.Implicit(1)):
        proof._proven.clear()
        proof._distrusted.clear()
        system, other = pair(part(name, fmi), fmi), part("black", fmi)
        want = cs.simulate(pair(other, fmi), t_end=1.0, method=method, step=0.05, compiled=False)
        with pytest.warns(
            cs.errors.FmuWarning, match=rf"derivatives that the FMU '{name}.fmu' gives are wrong: 'y' by 'u'"
        ):
            first = cs.simulate(system, t_end=1.0, method=method, step=0.05, compiled=False)
        second = cs.simulate(system, t_end=1.0, method=method, step=0.05, compiled=False)
        np.testing.assert_array_equal(first["a.y"], second["a.y"])
        np.testing.assert_allclose(first["a.y"], want["a.y"], rtol=0, atol=1e-9)


@VERSIONS
def test_random_numbers(fmi):
    """No two runs are alike, and a step cannot be repeated."""
    system = pair(part("random", fmi), fmi)
    assert "'a' does not come back to its saved state" in str(cs.check(system, cs.Implicit(1), 0.05))
    for method in METHODS[2:]:
        with pytest.raises(cs.errors.SubsystemError, match=r"'random.fmu' does not come back to a saved state"):
            cs.simulate(system, t_end=1.0, method=method, step=0.05)


# -- one process ---------------------------------------------------------------------------------------------------


def two_of(name, fmi, **options):
    a = part(name, fmi, **options)
    return a, pair(a, fmi, cs.load_fmu(animal(name, fmi), parameters=B, **options))


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["once", "shared"])
def test_two_instances_that_must_not_meet(name):
    """Each in a process of its own; in one process the FMU that says so is refused."""
    a, system = two_of(name, 2, isolated=True)
    for _ in range(2):
        found = y(cs.simulate(system, t_end=1.0, method=cs.Jacobi(0), step=0.05), a)
        for one, two in zip(found, expected("black", 2), strict=True):
            np.testing.assert_array_equal(one, two)
    if name == "once":
        with pytest.raises(cs.errors.SetupError, match=r"once.fmu' allows one instance per process .*isolated=True"):
            two_of(name, 2)


def test_one_instance_in_the_life_of_a_library():
    """A second run needs a second instance: it gets one, since the library is loaded anew for it."""
    a = part("once_ever", 2)
    system = pair(a, 2)
    for _ in range(2):
        found = y(cs.simulate(system, t_end=1.0, method=cs.Jacobi(0), step=0.05), a)
        for one, two in zip(found, expected("once_ever", 2), strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["once_ever", "free_aborts"])
def test_a_process_that_one_run_uses_up(name):
    """The next run gets a new one."""
    a = part(name, 2, isolated=True)
    system = pair(a, 2)
    for _ in range(2):
        found = y(cs.simulate(system, t_end=1.0, method=cs.Jacobi(0), step=0.05), a)
        for one, two in zip(found, expected(name, 2) if name == "once_ever" else expected("black", 2), strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize("name", ["crashes_saving", "crashes_restoring"])
@pytest.mark.parametrize("use", ["run", "adaptive", "check", "stepper"])
def test_a_crash_in_saving_or_restoring_is_a_sentence(name, fmi, use, monkeypatch):
    """Also without a process of its own: it happens in a copy of this one."""
    monkeypatch.setattr(facts, "_known", {})
    system = pair(part(name, fmi), fmi)
    words = r"crashes \(SIGSEGV\) when its state is saved and restored"
    uses = {
        "check": lambda: cs.check(system, cs.SemiImplicit(1), 0.05),
        "stepper": lambda: cs.Stepper(system, method=cs.Jacobi(0), step=0.05).save(),
        "run": lambda: cs.simulate(system, t_end=0.2, method=cs.SemiImplicit(1), step=0.05),
        "adaptive": lambda: cs.simulate(system, t_end=0.2, method=cs.Jacobi(1), step=cs.Adaptive(rtol=1e-3)),
    }
    with pytest.raises(cs.CosolveError, match=words) as caught:
        uses[use]()
    assert len(str(caught.value)) < 300 + 60 * (use == "check")
    with pytest.warns(cs.errors.FmuWarning, match="saves its state: in a run this crashes"):  # later ones know
        again = cs.load_fmu(animal(name, fmi))
    assert "rollback" not in cs.capabilities(again)
