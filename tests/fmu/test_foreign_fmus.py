"""Foreign eyes: our test FMUs run by FMPy, and FMUs written in Python with pythonfmu and pythonfmu3.

The latter promise little (no derivatives, no dependencies), so they are what most FMUs look like to the engine.
"""

import gc

import numpy as np
import pytest
from tests.fmu.build import fmu
from tests.fmu.catalogue import MODELS

import cosolve as cs

TANK_2 = """
from pythonfmu import Fmi2Causality, Fmi2Slave, Fmi2Variability, Real

class Tank(Fmi2Slave):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.inflow = 0.0
        self.level = 1.0
        self.rate = 0.5
        self.register_variable(Real("inflow", causality=Fmi2Causality.input, start=0.0))
        self.register_variable(Real("level", causality=Fmi2Causality.output))
        parameter = {"causality": Fmi2Causality.parameter, "variability": Fmi2Variability.tunable}
        self.register_variable(Real("rate", start=0.5, **parameter))

    def do_step(self, t, h):
        self.level += h * (self.inflow - self.rate * self.level)
        return True
"""
_TIME = """self.time = 0.0
        kind = {"causality": Fmi3Causality.independent, "variability": Fmi3Variability.continuous}
        self.register_variable(Float64("time", **kind))
        self.inflow = 0.0"""
TANK_3 = (
    TANK_2.replace("pythonfmu import", "pythonfmu3 import")
    .replace("Fmi2", "Fmi3")
    .replace("Real", "Float64")
    .replace("self.inflow = 0.0", _TIME, 1)
)


@pytest.fixture(scope="module", params=[2, 3])
def tank(request, tmp_path_factory):
    module = pytest.importorskip("pythonfmu" if request.param == 2 else "pythonfmu3")
    folder = tmp_path_factory.mktemp(f"tank{request.param}")
    source = folder / f"tank{request.param}.py"  # both live in this interpreter: modules need names of their own
    source.write_text(TANK_2 if request.param == 2 else TANK_3)
    builder = __import__(f"{module.__name__}.builder", fromlist=["FmuBuilder"]).FmuBuilder
    return builder.build_FMU(source, dest=folder)


def explicit_euler(t_end: float, H: float) -> np.ndarray:
    """Two tanks that feed each other, inflow held at the last exchange, as `Jacobi(0)` runs them."""
    a, b, levels = 1.0, 1.0, [[1.0, 1.0]]
    for _ in range(round(t_end / H)):
        a, b = a + H * (0.5 * b - 0.5 * a), b + H * (a - 2.0 * b)
        levels.append([a, b])
    return np.array(levels)


def test_two_tanks_in_a_loop(tank):
    """The numbers of the same recurrence written down here."""
    system = cs.System({"a": cs.load_fmu(tank), "b": cs.load_fmu(tank, parameters={"rate": 2.0})})
    system.connect("a.level", "b.inflow")
    system.law("a.inflow", lambda level: 0.5 * level, of="b.level")
    result = cs.simulate(system, t_end=1.0, method=cs.Jacobi(0), step=0.1)
    expected = explicit_euler(1.0, 0.1)
    assert np.abs(result["a.level"] - expected[:, 0]).max() < 1e-14
    assert np.abs(result["b.level"] - expected[:, 1]).max() < 1e-14


def test_what_it_does_not_promise_is_not_used(tank):
    part = cs.load_fmu(tank)
    assert "jacobian" not in cs.capabilities(part)
    possible = {v.method: v.possible for v in cs.fmi.inspect_fmu(tank).methods}
    assert possible["Jacobi"]
    assert possible["Implicit"] == ("rollback" in cs.capabilities(part))


@pytest.mark.sample(1)
@pytest.mark.parametrize("fmi", [2, 3])
def test_fmpy_validates_the_test_fmus(fmi):
    """Else the tests here would show little."""
    from fmpy.validation import validate_fmu

    for name, model in MODELS.items():
        if fmi in model.versions:
            assert validate_fmu(str(fmu(name, fmi))) == [], name


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize(
    ("name", "start"), [("mass_force", {"x": 0.3, "m": 2.0}), ("ball", {"x": 2.0}), ("pendulum", {})]
)
def test_the_numbers_of_fmpy(fmi, name, start):
    """One FMU alone, inputs at their start values: FMPy's loop and ours make the same calls and get the same bits."""
    from fmpy import simulate_fmu

    theirs = simulate_fmu(str(fmu(name, fmi)), stop_time=2.0, output_interval=0.125, start_values=start, output=["x"])
    parameters = {key: value for key, value in start.items() if key == "m"}
    part = cs.load_fmu(fmu(name, fmi), parameters=parameters, start={"x": start["x"]} if "x" in start else None)
    system = cs.System({"part": part})
    system.set(f"part.{part.inputs[0].name}", 0.0)
    ours = cs.simulate(system, t_end=2.0, method=cs.Jacobi(0), step=0.125)
    assert np.array_equal(ours.t, theirs["time"])
    assert np.abs(ours["part.x"] - theirs["x"]).max() < 1e-13


def test_event_mode_that_is_declared_and_refused():
    """It runs without, as in FMPy, whose default that is; both give the numbers of an FMU that has no event mode."""
    from fmpy import simulate_fmu

    file = fmu("ball_no_event_mode", 3)
    theirs = simulate_fmu(str(file), stop_time=2.0, output_interval=0.125, output=["x"])
    system = cs.System({"part": cs.load_fmu(file)})
    system.set("part.push", 0.0)
    for _ in range(2):
        ours = cs.simulate(system, t_end=2.0, method=cs.Jacobi(0), step=0.125)
        assert np.abs(ours["part.x"] - theirs["x"]).max() < 1e-13


@pytest.mark.sample(4)
@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize("kind", ["co-simulation", "model exchange"])
@pytest.mark.parametrize("method", [cs.Jacobi(0), cs.SemiImplicit(1)])
def test_what_an_instance_leaves_behind_in_its_library(fmi, kind, method):
    """Globals that one instance spoils are as new for the next, since the library is loaded anew (as FMPy does)."""
    gc.collect()  # what other tests left: while an instance lives, its library stays
    system = cs.System({"part": cs.load_fmu(fmu("mass_once", fmi), kind=kind, start={"x": 1.0})})
    system.set("part.f", 0.5)
    first, *more = (cs.simulate(system, t_end=0.1, method=method, step=0.01)["part.x"] for _ in range(3))
    for again in more:
        assert np.array_equal(first, again)
    assert abs(first[-1] - first[0]) > 0.1  # it moved


def test_instances_of_one_library_live_side_by_side():
    """Two at a time, each run again: a library is loaded anew only when it is not in use."""
    parts = {name: cs.load_fmu(fmu("mass_force", 2), start={"x": x}) for name, x in (("one", 1.0), ("two", 2.0))}
    system = cs.System(parts)
    for name in parts:
        system.set(f"{name}.f", 0.0)
    runs = [cs.simulate(system, t_end=0.1, method=cs.Jacobi(0), step=0.01) for _ in range(3)]
    alone = cs.System({"one": parts["one"]})
    alone.set("one.f", 0.0)
    runs.append(cs.simulate(alone, t_end=0.1, method=cs.Jacobi(0), step=0.01))
    runs.append(cs.simulate(system, t_end=0.1, method=cs.Jacobi(0), step=0.01))
    for run in runs:
        assert np.array_equal(run["one.x"], runs[0]["one.x"])
    assert np.array_equal(runs[-1]["two.x"], 2.0 * runs[0]["one.x"])


def test_an_fmu_is_not_asked_to_call_back_for_nothing():
    """Without inputs that can be set inside a step; the Reference FMU Roberts calls back a million times a second."""
    assert cs.load_fmu(fmu("mass_force", 3)).listens
    assert not cs.load_fmu(fmu("mass_force", 3), inputs=[]).listens
