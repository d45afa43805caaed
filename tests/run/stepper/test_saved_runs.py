"""A saved run continues bit for bit: in memory, from a file, and in a new process."""

import sys
from pathlib import Path

import numpy as np
import pytest
from tests import processes
from tests.run.stepper.models import CASES, stepper, trace

import cosolve as cs
from cosolve.subsystem.held import HeldInputs

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("case", CASES)
def test_a_restored_run_repeats_every_bit(case, tmp_path):
    with stepper(case) as running:
        for _ in range(4):
            running.step()
        here, t = running.save(), running.t
        file = running.save_file(tmp_path / "run.state")
        first = trace(running, t + 0.55)
        running.restore(here)
        assert running.t == t
        assert trace(running, t + 0.55) == first
        running.restore(here)  # a snapshot stays usable
        assert trace(running, t + 0.55) == first
    with stepper(case) as fresh:  # from a file, into a system that has seen nothing
        fresh.restore_file(file)
        assert trace(fresh, t + 0.55) == first
    assert len(first) > 1


@pytest.mark.parametrize("case", ["iqnils", "master-slave start", "adaptive"])
def test_a_run_saved_within_its_first_steps_continues_too(case, tmp_path):
    """The start-up (rising degree, small first steps, first column) is part of the state."""
    with stepper(case) as running:
        running.step()
        t = running.t
        file = running.save_file(tmp_path / "run.state")
        first = trace(running, t + 0.5)
    with stepper(case) as fresh:
        fresh.restore_file(file)
        assert trace(fresh, t + 0.5) == first


def test_a_new_process_continues_the_run(tmp_path):
    script = (
        "import sys; from tests.run.stepper.models import stepper, trace\n"
        "running = stepper('iqnimvj'); running.restore_file(sys.argv[1])\n"
        "print('\\n'.join(trace(running, 1.2)))"
    )
    with stepper("iqnimvj") as running:
        running.run_until(0.5)
        file = running.save_file(tmp_path / "run.state")
        here = trace(running, 1.2)
    done = processes.run([sys.executable, "-c", script, str(file)], check=True, cwd=ROOT)
    assert done.stdout.split("\n")[:-1] == here


def test_the_memory_matters(tmp_path):
    """What the corrector has learnt is worth iterations: without it the same states continue with other bits."""
    with stepper("iqnils") as running:
        running.run_until(1.0)
        snapshot = running.save()
        first = trace(running, 2.0)
        running.restore(snapshot)
        with stepper("iqnils") as other:
            forgetful = cs.Snapshot(**{**vars(snapshot), "memory": other.save().memory})
        running.restore(forgetful)
        assert trace(running, 2.0) != first


def test_simulate_continues_from_a_state_with_the_same_bits(tmp_path):
    build, method, step, _ = CASES["semi-implicit"]
    whole = cs.simulate(build(), t_end=2.0, method=method, step=step)
    with cs.Stepper(build(), method=method, step=step, t_end=2.0) as running:
        running.run_until(whole.t[15])
        running.save_file(tmp_path / "run.state")
    rest = cs.simulate(build(), t_end=2.0, method=method, step=step, resume=tmp_path / "run.state")
    assert (rest.t == whole.t[15:]).all()
    for name in whole.names:
        assert (rest[name] == whole[name][15:]).all()


def test_a_run_can_be_continued_beyond_its_end(tmp_path):
    """Same steps up to rounding of times; the coupling history is there, so no new start-up error appears."""
    build, method, step, _ = CASES["semi-implicit"]
    whole = cs.simulate(build(), t_end=2.0, method=method, step=step)
    cs.simulate(build(), t_end=1.0, method=method, step=step, save_state=tmp_path / "run.state")
    rest = cs.simulate(build(), t_end=2.0, method=method, step=step, resume=tmp_path / "run.state")
    assert rest.t[0] == 1.0
    assert rest.t[-1] == 2.0
    assert abs(rest["one.x"] - whole["one.x"][20:]).max() < 1e-12


class NoRollback(cs.Subsystem):
    outputs = ("y",)

    def start(self, t0):
        return 0.0

    def advance(self, t0, t1, u):
        return t1


class Opaque(NoRollback):
    def save(self):
        return object()

    def restore(self, state):
        pass


class Serialising(Opaque):
    def start(self, t0):
        self.count = 0
        return 0.0

    def advance(self, t0, t1, u):
        self.count += 1
        return self.count

    def serialise(self):
        return self.count.to_bytes(4, "little")

    def deserialise(self, data):
        self.count = int.from_bytes(data, "little")


def one(subsystem):
    return cs.Stepper(cs.System({"box": subsystem}), method=cs.Jacobi(), step=0.1)


def test_a_subsystem_without_rollback_is_named():
    with pytest.raises(cs.errors.CapabilityError, match=r"'box' \(NoRollback\) has no save and restore"):
        one(NoRollback()).save()


def test_a_state_that_is_not_plain_is_named(tmp_path):
    running = one(Opaque())
    running.save()  # in memory anything goes
    with pytest.raises(cs.errors.SetupError, match="the state of 'box' cannot be written to a file: it holds a object"):
        running.save_file(tmp_path / "run.state")
    assert not list(tmp_path.iterdir())


def test_a_subsystem_may_serialise_itself(tmp_path):
    running = one(Serialising())
    running.run_until(0.5)
    running.save_file(tmp_path / "run.state")
    fresh = one(Serialising())
    fresh.restore_file(tmp_path / "run.state")
    fresh.step()
    assert fresh["box.y"] == 6.0


def test_a_state_of_something_else_is_refused(tmp_path):
    with stepper("jacobi") as running:
        file = running.save_file(tmp_path / "run.state")
    with pytest.raises(cs.errors.SetupError, match="belongs to a system of 'one', 'two', this one has 't0'"):
        stepper("iqnils").restore_file(file)
    with pytest.raises(cs.errors.SetupError, match=r"saved with method Jacobi\(degree=2.*here: GaussSeidel"):
        stepper("gauss-seidel").restore_file(file)
    with pytest.raises(cs.errors.SetupError, match="there is no saved state"):
        running.restore_file(tmp_path / "other.state")
    (tmp_path / "broken.state").write_bytes(file.read_bytes()[:200])
    with pytest.raises(cs.errors.SetupError, match="is no saved state, or a damaged one"):
        running.restore_file(tmp_path / "broken.state")
    with pytest.raises(cs.errors.OutputFileError, match="cannot be written"):
        running.save_file(tmp_path / "nowhere" / "run.state")


def test_a_file_cannot_name_a_foreign_class(tmp_path):
    """Reading a state must never build anything but the few classes that states are made of."""
    import json
    import zipfile

    with zipfile.ZipFile(tmp_path / "evil.state", "w") as file:
        tree = {"description": {"object": "subprocess:Popen", "state": {"dict": []}}}
        file.writestr("state.json", json.dumps({"format": "cosolve state 1", "tree": tree}))
    with pytest.raises(cs.errors.SetupError, match="damaged"):
        stepper("jacobi").restore_file(tmp_path / "evil.state")


def oscillator(**options):
    rhs = lambda t, x, u: [x[1], u[0] + 0.1 * u[1] - 4.0 * x[0] - 0.3 * x[1] ** 3]  # noqa: E731
    return cs.Ode(rhs, lambda t, x, u: x, x0=[1.0, 0.5], inputs=["f", "g"], outputs=["x", "v"], **options)


#: For each wrapper what is around a subsystem, and the method it runs under.
WRAPPERS = {
    "held inputs": (lambda: HeldInputs(oscillator(), {"g": 0.2}), cs.SemiImplicit(1)),
    "sampled": (lambda: cs.Sampled(oscillator(), period=0.2), cs.Jacobi(1)),
    "integrated inputs": (lambda: cs.IntegratedInputs(oscillator(), {"f": "g"}), cs.Jacobi(1)),
    "secant Jacobian": (lambda: cs.SecantJacobian(oscillator()), cs.SemiImplicit(1)),
    "interpolated outputs": (
        lambda: cs.InterpolatedOutputs(oscillator(integrator="dopri5", rtol=1e-3), degree=2), cs.Jacobi(1)),
    "interpolated outputs, fixed": (
        lambda: cs.InterpolatedOutputs(oscillator(integrator="ode4", internal_step=0.03)), cs.SemiImplicit(1)),
    "held and sampled": (lambda: HeldInputs(cs.Sampled(oscillator(), period=0.2), {"g": 0.2}), cs.Jacobi(1)),
}  # fmt: skip


@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.parametrize("until", [0.1, 0.7])
def test_what_is_around_a_subsystem_is_in_the_file_too(name, until, tmp_path):
    """A run that goes on from a file, in a system made anew, has the bits of one that was not interrupted."""
    make, method = WRAPPERS[name]

    def stepper():
        system = cs.System({"a": make(), "b": oscillator()})
        for one, other in ("ab", "ba"):
            system.connect(f"{one}.x", f"{other}.f")
            system.connect(f"{one}.v", f"{other}.g")
        return cs.Stepper(system, method=method, step=0.1, t_end=1.5)

    def rest(running):
        found = []
        while not running.done:
            running.step()
            found.append([running.t, *(running[f"{part}.{port}"] for part in "ab" for port in "xv")])
        return np.array(found)

    with stepper() as running:
        running.run_until(until)
        running.save_file(tmp_path / "state")
        whole = rest(running)
    with stepper() as again:
        again.restore_file(tmp_path / "state")
        assert again.t == pytest.approx(until)
        found = rest(again)
    assert len(whole) == round((1.5 - until) / 0.1)
    assert found.tobytes() == whole.tobytes()
