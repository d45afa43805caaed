"""Rollback and saved states: the same bits after any detour, in this process and in another one."""

import copy
import gc
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from tests import processes
from tests.fmu.build import fmu
from tests.fmu.oscillator import fmu_split

import cosolve as cs
from cosolve.signal import Polynomial

ROOT = Path(__file__).parents[2]


def signal(n: int, H: float = 1e-3) -> Polynomial:
    return Polynomial(n * H, H, np.array([[1.0 + n], [0.5 * n]]))


def run(part: cs.CoSimulationFmu, first: int, last: int) -> np.ndarray:
    return np.array([part.advance(n * 1e-3, (n + 1) * 1e-3, signal(n)) for n in range(first, last)])


@pytest.mark.parametrize("fmi", [2, 3])
def test_repeated_steps_are_bit_exact(fmi):
    """A saved state is restored several times, also after others were saved and dropped."""
    part = cs.load_fmu(fmu("mass_force", fmi), start={"x": 0.3, "v": -1.0})
    part.start(0.0)
    run(part, 0, 5)
    kept = part.save()
    once = run(part, 5, 20)
    for _ in range(3):
        for n in range(5):
            part.restore(kept)
            run(part, 5, 6 + n)
            part.save()
        part.restore(kept)
        assert np.array_equal(run(part, 5, 20), once)
    part.start(0.0)
    part.restore(kept)  # a state outlives a new start of the same object
    assert np.array_equal(run(part, 5, 20), once)


@pytest.mark.parametrize("fmi", [2, 3])
def test_states_are_pooled(fmi):
    """A thousand saves of which one is held at a time take two pieces of memory, and all are freed."""
    part = cs.load_fmu(fmu("mass_force", fmi))
    part.start(0.0)
    state = part.save()
    for n in range(1000):
        run(part, n, n + 1)
        state = part.save()
    body = part._instance.body
    assert len(body.known) <= 2
    del state
    assert len(body.spare) == len(body.known)
    known = body.known
    del part, body
    gc.collect()
    assert not known  # freed with the instance


@pytest.mark.parametrize("fmi", [2, 3])
def test_a_state_belongs_to_its_instance(fmi):
    one, two = (cs.load_fmu(fmu("mass_force", fmi)) for _ in range(2))
    one.start(0.0)
    two.start(0.0)
    with pytest.raises(cs.SubsystemError, match="another FMU object"):
        two.restore(one.save())
    state = one.save()
    assert copy.deepcopy([state])[0] is state
    with pytest.raises(TypeError, match="use serialise"):
        pickle.dumps(state)


SCRIPT = """
import sys
import numpy as np
sys.path.insert(0, {root!r})
from tests.fmu.test_states import run
import cosolve as cs
part = cs.load_fmu({file!r})
part.start(0.0)
part.deserialise(bytes.fromhex(sys.stdin.read()))
print(run(part, 5, 12).tobytes().hex())
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize("fmi", [2, 3])
def test_serialised_state_continues_in_a_new_process(fmi):
    file = fmu("mass_force", fmi)
    part = cs.load_fmu(file, start={"x": 0.3, "v": -1.0}, parameters={"m": 3.0})
    part.start(0.0)
    run(part, 0, 5)
    data = part.serialise()
    here = run(part, 5, 12)
    script = SCRIPT.format(root=str(ROOT), file=str(file))
    done = processes.run([sys.executable, "-c", script], input=data.hex(), check=True)
    assert done.stdout.strip() == here.tobytes().hex()


@pytest.mark.parametrize("fmi", [2, 3])
def test_bytes_that_are_no_state(fmi):
    part = cs.load_fmu(fmu("mass_force", fmi))
    part.start(0.0)
    with pytest.raises(cs.SubsystemError, match="not a saved state"):
        part.deserialise(b"abc")
    with pytest.raises(cs.SubsystemError, match="not mine"):
        part.deserialise(b"x" * 100)


@pytest.mark.parametrize("fmi", [2, 3])
def test_copies_are_new_instances(fmi):
    part = cs.load_fmu(fmu("mass_force", fmi), parameters={"m": 3.0}, start={"x": 0.3})
    part.start(0.0)
    run(part, 0, 3)
    for other in (copy.deepcopy(part), pickle.loads(pickle.dumps(part))):
        assert other.component != part.component
        part.start(0.0)
        other.start(0.0)
        assert np.array_equal(run(other, 0, 5), run(part, 0, 5))


def test_capabilities_follow_the_flags():
    """`mass_no_rollback` promises nothing, so nothing is there; the others have what they say."""
    full = {"rollback", "serialised state", "jacobian"}
    shown = cs.capabilities(cs.load_fmu(fmu("mass_unstructured", 2)))
    assert "state" not in shown  # no states shown
    assert "output" in shown  # nothing said about feed-through
    for fmi in (2, 3):
        assert full <= cs.capabilities(cs.load_fmu(fmu("mass_force", fmi)))
        assert not full & cs.capabilities(cs.load_fmu(fmu("mass_no_rollback", fmi)))
        assert "output" in cs.capabilities(cs.load_fmu(fmu("mass_spring", fmi)))
        assert "output" not in cs.capabilities(cs.load_fmu(fmu("mass_force", fmi)))  # said to have no feed-through
        plain = cs.capabilities(cs.load_fmu(fmu("types", fmi)))
        assert {"rollback", "output"} <= plain
        assert not {"serialised state", "jacobian", "state"} & plain


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize("method", [cs.GaussSeidel(1), cs.SemiImplicit(2), cs.Implicit(1)], ids=lambda m: m.label)
def test_same_bits_again_and_in_threads(fmi, method):
    """The same system object twice, and with two workers: the same bits."""
    system = fmu_split("F/D", fmi)
    results = [cs.simulate(system, t_end=0.03, method=method, step=1e-3, workers=w)["one.x"] for w in (1, 1, 2)]
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


@pytest.mark.parametrize("fmi", [2, 3])
def test_restart_from_a_file(fmi, tmp_path):
    """Half a run, saved; the other half in a new system of new FMUs: the bits of the whole run."""
    method, H = cs.SemiImplicit(1), 2.0**-10  # times are exact: an FMU of FMI 3.0 sees them
    whole = cs.simulate(fmu_split("F/F", fmi), t_end=40 * H, method=method, step=H)
    half = tmp_path / "half.state"
    cs.simulate(fmu_split("F/F", fmi), t_end=20 * H, method=method, step=H, save_state=half)
    rest = cs.simulate(fmu_split("F/F", fmi), t_end=40 * H, method=method, step=H, resume=half)
    assert np.array_equal(rest["one.x"][-20:], whole["one.x"][-20:])
