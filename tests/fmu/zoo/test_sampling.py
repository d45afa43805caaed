"""Inputs of what is sampled: the value at the start of a step, whole where the type is whole; and what is no input."""

import numpy as np
import pytest
from tests.fmu.zoo.members import animal

import cosolve as cs

VERSIONS = pytest.mark.parametrize("fmi", [2, 3])
METHODS = [cs.Jacobi(0), cs.Jacobi(1), cs.Jacobi(2), cs.GaussSeidel(1), cs.SemiImplicit(1), cs.Implicit(1)]
BY_NAME = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.label)


def controlled(name, fmi, **options):
    """A controller `y = 2 gain u` that samples, and a plant that feeds it."""
    control = cs.load_fmu(animal(name, fmi), parameters={"gain": -1.0}, start={"x": 0.0}, **options)
    plant = cs.Linear([[0, 1], [-4, -0.3]], [[0], [1]], [[1, 0]], x0=[1, 0], inputs=["f"], outputs=["x"])
    system = cs.System({"plant": plant, "control": control})
    system.connect("plant.x", "control.u")
    system.connect("control.y", "plant.f")
    return system


@VERSIONS
@pytest.mark.parametrize("method", [cs.Jacobi(0), cs.GaussSeidel(0, order=("control", "plant"))], ids=["J", "GS"])
def test_a_sampled_loop_is_that_of_a_simple_master(fmi, method):
    """Set inputs, make the step, read outputs; the plant holds what it gets."""
    import scipy.linalg

    result = cs.simulate(controlled("samples", fmi), t_end=2.0, step=0.1, method=method)
    F = scipy.linalg.expm(0.1 * np.array([[0, 1, 0], [-4, -0.3, 1], [0, 0, 0.0]]))
    x, force, want = np.array([1.0, 0.0]), 0.0, [1.0]
    for _ in range(20):
        following = -2.0 * x[0]
        x = (F @ [*x, force if method.name == "Jacobi" else following])[:2]
        force = following
        want.append(x[0])
    np.testing.assert_allclose(result["plant.x"], want, rtol=0, atol=1e-13)


@VERSIONS
@BY_NAME
def test_the_sample_is_the_value_at_the_start_of_the_step(fmi, method):
    """Whatever the degree of the signals, and however the step was repeated."""
    result = cs.simulate(controlled("samples", fmi), t_end=2.0, step=0.1, method=method)
    np.testing.assert_allclose(result["control.y"][1:], -2.0 * result["plant.x"][:-1], rtol=1e-12)


@pytest.mark.slow
def test_compiled_and_readable_samples_have_the_same_bits():
    for fmi in (2, 3):
        for method in (cs.Jacobi(1), cs.SemiImplicit(1), cs.Implicit(2)):
            runs = [
                cs.simulate(controlled("samples", fmi), t_end=20.0, step=0.1, method=method, compiled=compiled)
                for compiled in (True, False)
            ]
            assert runs[0].stats.compiled_steps > 100
            np.testing.assert_array_equal(runs[0]["control.y"], runs[1]["control.y"])


@VERSIONS
def test_sampled_says_what_the_description_does_not(fmi):
    """Told that it is none, the FMU gets the middle of the step; told that it is one, another gets the start."""
    system = cs.System({"c": cs.load_fmu(animal("samples", fmi), sampled=False)})
    system.set("c.u", lambda t: t)
    run = {"t_end": 0.3, "step": 0.1, "method": cs.Jacobi(1)}
    np.testing.assert_allclose(cs.simulate(system, **run)["c.y"][1:], [0.1, 0.3, 0.5], atol=1e-12)
    system = cs.System({"c": cs.load_fmu(animal("plain", fmi), sampled=True, parameters={"rate": 1e3})})
    system.set("c.u", lambda t: t)
    np.testing.assert_allclose(cs.simulate(system, **run)["c.y"][1:], [0.0, 0.2, 0.4], atol=1e-12)


@VERSIONS
def test_a_step_that_is_not_that_of_the_controller_is_told(fmi):
    with pytest.warns(
        cs.errors.FmuWarning, match=r"is a sampled controller with samples every 0.1, and its macro step is 0.05"
    ):
        cs.simulate(controlled("samples", fmi), t_end=0.2, step=0.05, method=cs.Jacobi(0))


@VERSIONS
@BY_NAME
def test_a_discrete_input_has_values_of_macro_points_only(fmi, method):
    """A counter that counts in steps: nothing between 1 and 2 is ever seen."""
    control = cs.load_fmu(animal("discrete", fmi), start={"x": 0.0})
    count = cs.Static(lambda t, u: np.floor(2.0 * t + 1e-9), inputs=["nothing"], outputs=["n"])
    system = cs.System({"count": count, "control": control})
    system.set("count.nothing", 0.0)
    system.connect("count.n", "control.u")
    result = cs.simulate(system, t_end=3.0, step=0.2, method=method)
    got = result["control.y"][1:] / 2.0
    np.testing.assert_array_equal(got, result["count.n"][:-1])
    assert set(got) == {0.0, 1.0, 2.0, 3.0, 4.0, 5.0}


# -- whole numbers -------------------------------------------------------------------------------------------------


def counting(name, value, fmi):
    source = cs.Static(lambda t, u: value(t), inputs=["nothing"], outputs=["n"])
    system = cs.System({"source": source, "c": cs.load_fmu(animal(name, fmi), start={"x": 0.0})})
    system.set("source.nothing", 0.0)
    system.connect("source.n", "c.u")
    return system


@VERSIONS
@BY_NAME
@pytest.mark.parametrize(("name", "words"), [("counts", "takes whole numbers"), ("switches", "takes 0 or 1")])
def test_other_numbers_are_refused_where_whole_ones_are_due(fmi, method, name, words):
    system = counting(name, lambda t: 0.0 if t < 0.25 else 0.7, fmi)
    with pytest.raises(cs.errors.SimulationError, match=rf"'u' {words} and was given 0.7, which is none") as caught:
        cs.simulate(system, t_end=1.0, step=0.1, method=method)
    assert len(str(caught.value)) < 300
    assert caught.value.result["c.y"].max() == 0.0  # no step went on with 1


@VERSIONS
@BY_NAME
@pytest.mark.parametrize("name", ["counts", "switches"])
def test_whole_numbers_pass_through_every_method(fmi, method, name):
    """Also as unknowns of corrections, which try values in between."""
    most = 1.0 if name == "switches" else 9.0
    result = cs.simulate(counting(name, lambda t: min(np.floor(t / 0.3 + 1e-9), most), fmi),
                         t_end=1.0, step=0.1, method=method)  # fmt: skip
    np.testing.assert_array_equal(result["c.y"][1:] / 2.0, result["source.n"][:-1])


@VERSIONS
def test_a_constant_that_is_not_whole_is_refused_at_the_start(fmi):
    system = cs.System({"c": cs.load_fmu(animal("counts", fmi))})
    system.set("c.u", 2.7)
    with pytest.raises(cs.errors.SimulationError, match=r"was given 2\.7"):
        cs.simulate(system, t_end=1.0, step=0.1, method=cs.Jacobi(0))


@pytest.mark.parametrize("kind", ["co-simulation", "model-exchange"])
def test_numbers_that_no_double_is_are_not_changed(kind):
    """2**53 + 1 as an output is refused, and read exactly by name."""
    fmu = cs.load_fmu(animal("wide", 3), inputs=["u"], outputs=["y"], kind=kind)
    system = cs.System({"c": fmu})
    system.set("c.u", 0.0)
    cs.simulate(system, t_end=0.1, step=0.1, method=cs.Jacobi(0))
    assert fmu.get("n") == 2**53 + 1
    system = cs.System({"c": cs.load_fmu(animal("wide", 3), inputs=["u"], kind=kind)})
    system.set("c.u", 0.0)
    with pytest.raises(cs.errors.SimulationError, match=r"'n' is 9007199254740993, and whole numbers beyond 2\*\*53"):
        cs.simulate(system, t_end=0.1, step=0.1, method=cs.Jacobi(0))


def test_whole_numbers_that_a_double_may_stand_for_twice_are_not_set():
    """2**53 is also what 2**53 + 1 becomes."""
    system = cs.System({"c": cs.load_fmu(animal("wide", 3), outputs=["y"], inputs=["u", "k"])})
    system.set("c.u", 0.0)
    system.set("c.k", 2**53 + 1)
    with pytest.raises(cs.CosolveError, match="takes whole numbers from -9007199254740991 to 9007199254740991"):
        cs.simulate(system, t_end=0.1, step=0.1, method=cs.Jacobi(0))


# -- what is no port, and what is told ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [None, "co-simulation"])
def test_a_clock_is_refused_by_name(kind):
    with pytest.raises(cs.errors.SetupError, match=r"clocked.fmu': its clock 'tick' would never tick"):
        cs.load_fmu(animal("clocked", 3), kind=kind)
    seen = cs.fmi.inspect_fmu(animal("clocked", 3))
    assert not any(verdict.possible for verdict in seen.methods)
    assert "clock 'tick'" in seen.methods[0].reason


def test_what_is_not_a_number_is_not_listed_as_a_port():
    seen = cs.fmi.inspect_fmu(animal("types_arrays", 3))
    assert not {"blob", "blob_out", "tick", "tock", "message"} & {row["name"] for row in (*seen.inputs, *seen.outputs)}
    said = " ".join(seen.remarks)
    assert "'blob', 'blob_out' (Binary)" in said
    assert "'message' (String)" in said


@VERSIONS
@pytest.mark.parametrize("kind", ["co-simulation", "model-exchange"])
def test_the_end_of_a_run_is_told_where_it_is_known(fmi, kind):
    system = cs.System({"c": cs.load_fmu(animal("stop_time", fmi), kind=kind)})
    system.set("c.u", 0.0)
    for t_end in (0.5, 0.7):
        told = cs.simulate(system, t_end=t_end, step=0.1, method=cs.Jacobi(0))["c.y"]
        assert (told >= t_end).all()  # and by a few roundings later: the last step may end there
        assert (told <= t_end + 8.0 * np.spacing(t_end)).all()
    stepper = cs.Stepper(system, method=cs.Jacobi(0), step=0.1)
    stepper.step()
    assert stepper["c.y"] == -1.0  # unknown
