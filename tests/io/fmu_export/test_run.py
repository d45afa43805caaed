"""An exported system is accepted by FMPy's validator and gives, run by FMPy, the bits it gives in cosolve."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from tests import processes

import cosolve as cs

pytest.importorskip("pythonfmu")
pytest.importorskip("pythonfmu3")
pytest.importorskip("fmpy")

HERE = Path(__file__).parent / "files"
sys.path.insert(0, str(HERE))  # the model imports its neighbour
import masses  # noqa: E402

sys.path.remove(str(HERE))


def drive(path, **job):
    done = processes.run([sys.executable, str(HERE / "drive.py"), str(path), json.dumps(job)])
    assert "FOUND" in done.stdout, done.stdout + done.stderr
    return json.loads(done.stdout.rpartition("FOUND")[2])


def held(system):
    system.set("one.extra", 0.0)
    system.set("two.extra", 0.0)
    return system


def stepped(system, method, step, steps, see):
    """The same steps in cosolve."""
    with cs.Stepper(system, method=method, step=step) as stepper:
        rows = []
        for h, inputs in steps:
            for name, value in inputs.items():
                stepper.set(name, value)
            for _ in range(round(h / step)):
                stepper.step()
            rows.append([float(stepper[name]).hex() for name in see])
    return rows


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_a_system_gives_the_same_bits_in_fmpy(version, tmp_path):
    path = cs.fmi.export_fmu(
        f"{HERE}/masses.py:pair", tmp_path / "pair.fmu", version=version, parameters={"stiffness": 5.0}
    )
    see = ["one.x", "one.v", "two.x", "two.v"]
    steps = [(0.01 * (1 + k % 3), {"one.extra": 0.1 * k} if k % 4 == 0 else {}) for k in range(20)]
    found = drive(
        path,
        simulate={"stop_time": 1.0, "output_interval": 0.02, "start_values": {"stiffness": 6.0}},
        steps=steps,
        see=see,
        parameters={"stiffness": 7.0},
    )
    assert found["problems"] == []
    # with a communication step of two macro steps, another stiffness, and no forces
    quiet = stepped(held(masses.pair(6.0)[0]), cs.SemiImplicit(degree=2), 0.01, [(0.02, {})] * 50, see)
    for k, name in enumerate(see):
        assert found["columns"][name][1:] == [row[k] for row in quiet]
    # with inputs changed between steps of one, two and three macro steps
    assert found["first"] == [float(v).hex() for v in (1.0, 0.0, 0.0, 0.5)]
    assert found["seen"] == stepped(held(masses.pair(7.0)[0]), cs.SemiImplicit(degree=2), 0.01, steps, see)
    # a state restored in place, and one that travelled as bytes into another instance
    assert found["flags"] == [True, True]
    assert found["again"] == found["seen"][10:]
    assert found["elsewhere"] == found["seen"][10:]


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_a_subsystem_takes_any_step_and_has_vector_ports(version, tmp_path):
    path = cs.fmi.export_fmu(f"{HERE}/masses.py:plate", tmp_path / "plate.fmu", version=version, parameters={"m": 2.0})
    found = drive(path, simulate={"stop_time": 1.0, "output_interval": 0.25, "start_values": {"m": 4.0}})
    assert found["problems"] == []
    sums = np.array([float.fromhex(v) for v in found["columns"]["sum"]])
    assert np.abs(sums - 3.0 * np.exp(-np.linspace(0, 1, 5) / 4.0)).max() < 1e-9  # x' = -x / m
    names = {"2.0": {"x[1]", "x[2]", "sum"}, "3.0": {"x", "sum"}}[version]
    assert names <= set(found["columns"])


def test_a_step_that_is_no_multiple_is_refused_with_a_sentence(tmp_path):
    path = cs.fmi.export_fmu(f"{HERE}/masses.py:pair", tmp_path / "pair.fmu", version="3.0")
    script = f"import fmpy; fmpy.simulate_fmu({str(path)!r}, stop_time=1.0, output_interval=0.015)"
    done = processes.run([sys.executable, "-c", script])
    assert done.returncode
    assert "a step of 0.015 is not a whole multiple of the macro step 0.01 of this system" in done.stdout + done.stderr


def test_a_system_file_with_its_modules_and_adaptive_steps(tmp_path):
    (tmp_path / "masses.py").write_text((HERE / "masses.py").read_text())
    (tmp_path / "springs.py").write_text((HERE / "springs.py").read_text())
    (tmp_path / "pair.toml").write_text(
        """
        [subsystems.one]
        factory = "masses:mass"
        parameters = {x0 = [1.0, 0.0]}
        [subsystems.two]
        factory = "masses:mass"
        parameters = {x0 = [0.0, 0.5]}
        [[laws]]
        inputs = {"one.force" = 1, "two.force" = -1}
        factory = "springs:spring"
        parameters = {stiffness = 5.0}
        of = ["one.x", "two.x"]
        name = "s"
        [constants]
        one.extra = 0.0
        two.extra = 0.0
        [simulation]
        t_end = 1.0
        method = {name = "semi-implicit", degree = 1}
        step = {rtol = 1e-5, first_step = 1e-3}
        """
    )
    path = cs.fmi.export_fmu(tmp_path / "pair.toml", tmp_path / "pair.fmu", inputs=["two.extra"], outputs=["one.x"])
    (tmp_path / "springs.py").unlink()  # the FMU has its own copy
    found = drive(path, simulate={"stop_time": 1.0, "output_interval": 0.125})
    assert found["problems"] == []
    assert set(found["columns"]) == {"time", "one.x"}
    system, method, step = masses.adaptive_pair()
    with cs.Stepper(held(system), method=method, step=step) as stepper:
        here = [(1.0).hex()]
        for k in range(8):
            stepper.run_until(0.125 * (k + 1))
            here.append(stepper["one.x"].hex())
    assert found["columns"]["one.x"] == here


def test_a_system_object_travels_with_the_modules_of_its_functions(tmp_path):
    pytest.importorskip("cloudpickle")
    system, method, step = masses.pair(8.0)
    modules = [HERE / "masses.py", HERE / "springs.py"]
    path = cs.fmi.export_fmu(system, tmp_path / "pair.fmu", method=method, step=step, files=modules)
    found = drive(path, simulate={"stop_time": 0.2, "output_interval": 0.02})
    assert found["problems"] == []
    here = stepped(held(masses.pair(8.0)[0]), method, step, [(0.02, {})] * 10, ["two.x"])
    assert found["columns"]["two.x"][1:] == [row[0] for row in here]


def test_fmus_within_an_fmu(tmp_path):
    """An SSP of ten FMUs becomes one; inside FMPy it gives the bits that it gives in cosolve."""
    from tests.fmu.build import fmu
    from tests.io.ssp.test_fmus import COUNT, ring

    ssp = ring(tmp_path / "ring.ssp", [fmu("mass_link", 3)] * COUNT)
    options = {"method": cs.SemiImplicit(degree=1), "step": 0.01}
    path = cs.fmi.export_fmu(ssp, tmp_path / "ring.fmu", outputs=["m3.x"], **options)
    found = drive(path, simulate={"stop_time": 0.2, "output_interval": 0.01})
    assert found["problems"] == []
    with cs.Stepper(cs.fmi.read_ssp(ssp).system, **options) as stepper:
        here = [stepper["m3.x"].hex()]
        for _ in range(20):
            stepper.step()
            here.append(stepper["m3.x"].hex())
    assert found["columns"]["m3.x"] == here


def test_an_exported_subsystem_couples_like_the_original(tmp_path):
    """Back in cosolve, in a process of its own: rollback works, so implicit methods do."""
    script = f"""
import sys; sys.path.insert(0, {str(HERE)!r})
import cosolve as cs, masses
def build(plate):
    flow, level = lambda t, x, u: u - x, lambda t, x, u: x
    tank = cs.Ode(flow, level, x0=[0.3], inputs=["q"], outputs=["h"], integrator="ode4", internal_step=0.01)
    system = cs.System({{"plate": plate, "tank": tank}})
    system.law("plate.u", lambda h: [h, -h], of="tank.h")
    system.connect("plate.sum", "tank.q")
    return system
fmu = cs.fmi.export_fmu({f"{HERE}/masses.py:plate"!r}, {str(tmp_path / "plate.fmu")!r}, version="3.0")
for method in (cs.Jacobi(degree=0), cs.SemiImplicit(degree=0), cs.Implicit(degree=0)):
    here = cs.simulate(build(masses.plate()), t_end=1.0, method=method, step=0.05)["tank.h"]
    there = cs.simulate(build(cs.load_fmu(fmu)), t_end=1.0, method=method, step=0.05)["tank.h"]
    print(abs(here - there).max() < 1e-11, abs(here - here[0]).max() > 0.1)
"""
    done = processes.run([sys.executable, "-c", script])
    assert done.stdout.split() == ["True"] * 6, done.stderr
