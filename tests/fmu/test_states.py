"""Rollback and saved states: the same bits after any detour, in this process and in another one."""

import copy
import gc
import inspect
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

U = np.array([[1.0], [0.5]])


def signal(n: int, H: float = 1e-3) -> Polynomial:
    return Polynomial(n * H, H, np.array([[1.0 + n], [0.5 * n]]))


def run(part: cs.fmi.CoSimulationFmu, first: int, last: int) -> np.ndarray:
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
    with pytest.raises(cs.errors.SubsystemError, match="another FMU object"):
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
    with pytest.raises(cs.errors.SubsystemError, match="not a saved state"):
        part.deserialise(b"abc")
    with pytest.raises(cs.errors.SubsystemError, match="not mine"):
        part.deserialise(b"x" * 100)


COMMON = {"parameters": {"m": 3.0}, "start": {"x": 0.3}, "name": "part", "inputs": ["f"], "outputs": ["v", "x"]}
OPTIONS = {
    "co-simulation": {
        "substeps": 2,
        "interpolate": False,
        "sampled": False,
        "noise": 1e-6,
        "derivatives": "step",
        "retry": True,
    },
    "model-exchange": {"integrator": "ode4", "rtol": 1e-5, "atol": 1e-7, "internal_step": 5e-4, "max_events": 7},
}


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize("kind", OPTIONS)
def test_copies_are_new_instances_with_the_same_options(kind, fmi, tmp_path):
    rest = {"tolerance": 1e-7, "log": tmp_path / "log.txt", "log_level": "warning", "read_back": False, "trial": None}
    options = {**COMMON, **OPTIONS[kind], **rest}
    part = cs.load_fmu(fmu("mass_both", fmi), kind=kind, **options)
    assert {*options, "file"} == set(inspect.signature(type(part)).parameters)  # each of them is given here

    def march(it):
        it.start(0.0)
        return np.array([it.advance(n * 1e-3, (n + 1) * 1e-3, Polynomial(n * 1e-3, 1e-3, U)) for n in range(5)])

    for other in (copy.deepcopy(part), pickle.loads(pickle.dumps(part))):
        assert other._options == options
        assert other._instance is not part._instance
        assert other.name == "part"
        assert [port.name for port in other.outputs] == ["v", "x"]
        assert np.array_equal(march(other), march(part))


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
    first, *others = (cs.simulate(system, t_end=0.03, method=method, step=1e-3, workers=w) for w in (1, 1, 2))
    for other in others:
        for name in first.names:
            assert np.array_equal(other[name], first[name]), name


@pytest.mark.parametrize("fmi", [2, 3])
def test_restart_from_a_file(fmi, tmp_path):
    """Half a run, saved; the other half in a new system of new FMUs: the bits of the whole run."""
    method, H = cs.SemiImplicit(1), 2.0**-10  # times are exact: an FMU of FMI 3.0 sees them
    whole = cs.simulate(fmu_split("F/F", fmi), t_end=40 * H, method=method, step=H)
    half = tmp_path / "half.state"
    cs.simulate(fmu_split("F/F", fmi), t_end=20 * H, method=method, step=H, save_state=half)
    rest = cs.simulate(fmu_split("F/F", fmi), t_end=40 * H, method=method, step=H, resume=half)
    for name in whole.names:
        assert np.array_equal(rest[name][-20:], whole[name][-20:]), name
