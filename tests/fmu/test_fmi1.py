"""FMUs of FMI 1.0: the numbers of native subsystems and of the same model in FMI 2.0, and what they cannot do."""

import pickle
import zipfile

import numpy as np
import pytest
from examples.two_mass.model import force_displacement, split
from tests.fmu.build import build, fmu
from tests.fmu.catalogue import MODELS, Model, Var
from tests.fmu.oscillator import KINDS, fmu_force_displacement, fmu_split

import cosolve as cs
from cosolve.fmu.archive import unpack
from cosolve.fmu.description import read_description

NAMES = ("one.x", "one.v", "two.x", "two.v")


def distance(one, two, names=NAMES):
    return max(float(np.abs(one[n] - two[n]).max() / np.abs(one[n]).max()) for n in names)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", [cs.Jacobi(0), cs.Jacobi(2), cs.GaussSeidel(1)], ids=lambda m: m.label)
def test_numbers_of_the_native_subsystems(kind, method):
    """The FMUs propagate exactly for polynomial inputs, which they get by derivatives."""
    options = {"t_end": 0.05, "method": method, "step": 1e-3}
    assert distance(cs.simulate(split(kind), **options), cs.simulate(fmu_split(kind, 1), **options)) < 1e-12


def test_direct_feedthrough():
    options = {"t_end": 0.01, "method": cs.Jacobi(1), "step": 1e-4}
    native, ours = cs.simulate(force_displacement(), **options), cs.simulate(fmu_force_displacement(1), **options)
    assert native["two.F"][0] == pytest.approx(1e6, rel=1e-12)
    assert distance(native, ours, ("one.x", "one.v", "two.F", "two.x", "two.v")) < 1e-12


def test_compiled_runs_have_the_same_bits():
    options = {"t_end": 0.05, "method": cs.Jacobi(1), "step": 1e-3}
    read = cs.simulate(fmu_split("F/D", 1), compiled=False, **options)
    fast = cs.simulate(fmu_split("F/D", 1), compiled=True, **options)
    assert fast.stats.compiled_steps == 49  # the start is not
    assert all((read[name] == fast[name]).all() for name in NAMES)


def bouncing(file, **options):
    system = cs.System({"ball": cs.load_fmu(file, **options)})
    system.set("ball.push", 0.5)
    return cs.simulate(system, t_end=2.0, step=0.01, method=cs.Jacobi(0))


@pytest.mark.parametrize("name", ["ball", "ball_me"])
def test_events_booleans_and_whole_numbers_are_those_of_fmi_2(name):
    """Bit by bit; a Boolean is a byte in FMI 1.0 and an int in FMI 2.0."""
    old, new = bouncing(fmu(name, 1)), bouncing(fmu(name, 2))
    assert old["ball.bounces"][-1] == 4
    for port in ("x", "v", "bounces", "rising"):
        assert (old[f"ball.{port}"] == new[f"ball.{port}"]).all(), port


def test_a_model_without_events_can_repeat_steps_where_cosolve_integrates_it():
    """Its state is then ours: only the kind with events or its own solver has none."""
    parameters = {"c": 100.0, "d": 0.5}
    results = []
    for version in (1, 2):
        system = cs.System(
            {
                "mass": cs.load_fmu(fmu("mass_me", version), parameters=parameters, start={"x": 0.1}),
                "spring": cs.Static(lambda t, u: [-50.0 * u[0]], inputs=["x"], outputs=["F"]),
            }
        )
        system.connect("mass.x", "spring.x")
        system.connect("spring.F", "mass.f")
        results.append(cs.simulate(system, t_end=0.5, step=0.01, method=cs.Implicit(1)))
    # derivatives of the FMI 2.0 twin against difference quotients here
    assert np.abs(results[0]["mass.x"] - results[1]["mass.x"]).max() < 1e-9 * 0.1


@pytest.mark.parametrize("method", [cs.SemiImplicit(1), cs.Implicit(1)], ids=lambda m: m.label)
def test_methods_that_repeat_steps_are_refused(method):
    with pytest.raises(cs.errors.CapabilityError, match=r"rollback.*FMI 2\.0 or 3\.0.*use Jacobi or GaussSeidel"):
        cs.simulate(fmu_split("F/D", 1), t_end=0.01, method=method, step=1e-3)


def test_what_inspect_says():
    found = cs.fmi.inspect_fmu(fmu("ball_me", 1))
    assert (found.fmi, found.kinds, found.states) == ("1.0", ("model exchange",), 2)
    ways = {verdict.method: verdict for verdict in found.methods}
    assert ways["Jacobi"].possible
    assert not ways["Implicit"].possible
    assert "FMI 2.0 and later" in ways["Implicit"].reason
    tried = cs.fmi.try_fmu(fmu("mass_force", 1))
    assert "fails" not in {finding.verdict for finding in tried.findings}


def test_in_a_process_of_its_own_and_as_a_copy():
    options = {"t_end": 0.02, "method": cs.Jacobi(1), "step": 1e-3}
    here, there = (cs.simulate(fmu_split("F/D", 1, isolated=flag), **options) for flag in (False, True))
    assert all((here[name] == there[name]).all() for name in NAMES)
    one = cs.load_fmu(fmu("mass_force", 1), parameters={"m": 2.0})
    copied = pickle.loads(pickle.dumps(one))
    copied.start(0.0)
    assert copied.get("m") == 2.0


def test_a_second_run_begins_anew_and_the_stop_time_is_told():
    """The FMU refuses steps beyond the stop time, and `fmiResetSlave` is never called."""
    system = fmu_split("F/D", 1)
    options = {"t_end": 0.02, "method": cs.Jacobi(1), "step": 1e-3}
    first, second = cs.simulate(system, **options), cs.simulate(system, **options)
    assert all((first[name] == second[name]).all() for name in NAMES)


@pytest.mark.parametrize(
    ("name", "words"), [("mass_error", "the tank is empty at t = "), ("mass_fatal", "out of memory")]
)
def test_errors_carry_the_words_of_the_fmu(name, words):
    """The logger takes the arguments of printf; after a fatal error nothing is called."""
    system = cs.System({"mass": cs.load_fmu(fmu(name, 1))})
    system.set("mass.f", 1.0)
    with pytest.raises(cs.errors.SimulationError, match=words) as failure:
        cs.simulate(system, t_end=1.0, step=1e-2, method=cs.Jacobi(0))
    assert failure.value.result.t[-1] > 0.0


def test_a_discarded_step_says_how_far_it_came():
    system = cs.System({"mass": cs.load_fmu(fmu("mass_discard", 1))})
    system.set("mass.f", 1.0)
    with pytest.raises(cs.errors.SimulationError, match=r"discarded its step from t = .* and came to t = "):
        cs.simulate(system, t_end=1.0, step=1e-2, method=cs.Jacobi(0))


TWINS = Model(
    "ball.c",
    (
        *(v for v in MODELS["ball"].variables if v.name not in ("rising", "bounces")),
        Var("depth", 3, "output", negated=True),
        Var("falling", 9, "output", "Boolean", variability="discrete", negated=True),
        Var("minus bounces", 8, "output", "Int32", variability="discrete", negated=True),
        Var("rising", 9, "output", "Boolean", variability="discrete"),
        Var("bounces", 8, "output", "Int32", variability="discrete"),
        Var("pull", 7, "input", start="-0.5", negated=True),
    ),
    flags=MODELS["ball"].flags,
    outputs={},
    derivatives={"der(x)": None, "der(v)": None},
    indicators=("z",),
)


def test_a_negated_alias_has_the_other_sign():
    """-x, not b, -n as outputs, and an input that is the negative of another one."""
    ball = cs.load_fmu(build("twins", TWINS, 1), inputs=["pull"])
    system = cs.System({"ball": ball})
    system.set("ball.pull", -0.5)
    found, plain = cs.simulate(system, t_end=2.0, step=0.01, method=cs.Jacobi(0)), bouncing(fmu("ball", 1))
    assert (found["ball.depth"] == -plain["ball.x"]).all()
    assert (found["ball.falling"] == 1.0 - plain["ball.rising"]).all()
    assert (found["ball.minus bounces"] == -plain["ball.bounces"]).all()
    assert ball.get("minus bounces") == -4
    assert found.stats.compiled_steps == 0


def described(tmp_path, edit):
    """The ball with an edited description."""
    folder = tmp_path / "unpacked"
    with zipfile.ZipFile(fmu("ball", 1)) as archive:
        archive.extractall(folder)
    file = folder / "modelDescription.xml"
    text = file.read_text()
    assert edit(text) != text
    file.write_text(edit(text))
    return folder


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("<Name>push</Name>", "<Name>pusch</Name>", "the output 'x' depends on 'pusch', which is no variable"),
        ("CoSimulation_StandAlone", "Other", "neither CoSimulation_StandAlone nor CoSimulation_Tool"),
        ('modelIdentifier="ball"', 'modelIdentifier="../ball"', "modelIdentifier"),
        ('name="v"', 'name="x"', "two variables called 'x'"),
        ('causality="input"', 'causality="inward"', "causality"),
        ('numberOfContinuousStates="2"', 'numberOfContinuousStates="many"', "numberOfContinuousStates"),
        ('numberOfContinuousStates="2"', 'numberOfContinuousStates="20000000"', "20000000 states"),
        ("<Integer", "<Whole", "has no type"),
    ],
)
def test_faults_in_descriptions(tmp_path, old, new, words):
    direct = "<DirectDependency>"
    folder = described(
        tmp_path, lambda text: text.replace(f"{direct}</", f"{direct}<Name>push</Name></").replace(old, new)
    )
    with pytest.raises(cs.errors.SetupError, match=words):
        cs.load_fmu(folder)


def test_a_library_without_its_functions_is_named(tmp_path):
    """Functions carry the model identifier; a library of another name does not have them."""
    folder = described(tmp_path, lambda text: text.replace('modelIdentifier="ball"', 'modelIdentifier="sphere"'))
    with (
        pytest.raises(cs.errors.SetupError, match="lacks the function sphere_fmiInstantiateSlave"),
        pytest.warns(UserWarning, match=r"has no library sphere\.so"),
    ):
        cs.load_fmu(folder)


def test_what_the_description_says_in_words_of_fmi_2():
    read = read_description(unpack(fmu("ball", 1)))
    assert {v.name: (v.causality, v.variability) for v in read.variables.values()} == {
        "g": ("parameter", "fixed"),
        "e": ("parameter", "fixed"),
        "x": ("output", "continuous"),
        "v": ("output", "continuous"),
        "der(x)": ("local", "continuous"),
        "der(v)": ("local", "continuous"),
        "push": ("input", "continuous"),
        "bounces": ("output", "discrete"),
        "rising": ("output", "discrete"),
        "z": ("local", "continuous"),
    }
    assert (read.variables["x"].start, read.variables["x"].initial, read.variables["x"].unit) == ("1", "exact", "m")
    assert {unknown.name: unknown.dependencies for unknown in read.outputs} == dict.fromkeys(
        ("x", "v", "bounces", "rising"), ()
    )
