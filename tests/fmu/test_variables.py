"""Types, arrays, events, parameters and what an FMU says."""

import logging
import sys
import zipfile

import numpy as np
import pytest
from tests.fmu.build import fmu
from tests.fmu.test_bad_input import changed

import cosolve as cs
from cosolve.signal import Polynomial


def held(t0: float, H: float, *values: float) -> Polynomial:
    return Polynomial(t0, H, np.array([values]))


def test_a_text_for_a_number_is_refused_when_the_fmu_is_loaded():
    source = fmu("types", 2)
    with pytest.raises(cs.errors.SetupError, match=r"types.*\.fmu': 'scale' takes numbers, not 'abc'"):
        cs.load_fmu(source, parameters={"scale": "abc"})
    with pytest.raises(cs.errors.SetupError, match=r"'mode' takes numbers, not 'fats'; its values are .*fast"):
        cs.load_fmu(source, start={"mode": "fats"})


# -- types -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmi", [2, 3])
def test_booleans_and_whole_numbers_are_floats_up_to_rounding(fmi):
    """y' = on * gain * rate(mode) * u: each input does its part; other numbers are refused."""
    part = cs.load_fmu(fmu("types", fmi), parameters={"scale": 2.0, "label": "run 7"}, start={"mode": "fast"})
    assert [p.name for p in part.inputs] == ["u", "on", "gain", "mode"]
    assert [p.name for p in part.outputs] == ["y", "count", "above", "state", "half"]  # no port for the string
    part.start(0.0)
    y = part.advance(0.0, 0.1, held(0.0, 0.1, 1.0, 1.0 - 1e-7, 2.0 + 1e-7, 2.0))  # on, gain 2, slow
    assert y.tolist() == pytest.approx([0.4, 0, 0, 2, 0.2], abs=1e-7)
    y = part.advance(0.1, 0.2, held(0.1, 0.1, 1.0, 1.0, 1.0, 3.0))  # fast
    assert y.tolist() == pytest.approx([2.4, 2, 1, 3, 1.2], abs=1e-6)
    y = part.advance(0.2, 0.3, held(0.2, 0.1, 1.0, 1e-7, 1.0, 3.0))  # off
    assert y[0] == pytest.approx(2.4)
    assert part.get("message") == "run 7 at 2.400"
    assert part.get("above") is True
    assert part.get("count") == 2
    assert part.get("label") == "run 7"
    for t, values in zip((0.3, 0.4, 0.5), ((0.9, 1.0, 3.0), (1.0, 1.6, 3.0), (1.0, 1.0, 2.5)), strict=True):
        with pytest.raises(cs.errors.SubsystemError, match=r"takes (0 or 1|whole numbers) and was given"):
            part.advance(t, t + 0.1, held(t, 0.1, 1.0, *values))


@pytest.mark.parametrize("fmi", [2, 3])
def test_items_of_enumerations_by_name(fmi):
    part = cs.load_fmu(fmu("types", fmi), inputs=["u"], start={"mode": "off", "gain": 5})
    part.start(0.0)
    assert part.advance(0.0, 1.0, held(0.0, 1.0, 3.0))[0] == 0.0  # mode is not a port and stays "off"
    with pytest.raises(cs.errors.SetupError, match="off, slow, fast"):
        cs.load_fmu(fmu("types", fmi), start={"mode": "furious"}).start(0.0)


@pytest.mark.parametrize("fmi", [2, 3])
def test_types_in_a_coupled_run(fmi):
    """A Boolean and an integer output of one FMU switch another one."""
    system = cs.System(
        {"a": cs.load_fmu(fmu("types", fmi), inputs=["u"]), "b": cs.load_fmu(fmu("types", fmi), inputs=["u", "on"])}
    )
    system.set("a.u", 1.0)
    system.set("b.u", 1.0)
    system.connect("a.above", "b.on")
    result = cs.simulate(system, t_end=3.0, method=cs.Jacobi(0), step=0.25)
    assert result["a.y"] == pytest.approx(result.t)
    assert result["b.y"] == pytest.approx(np.maximum(0.0, result.t - 1.25))  # switched on one step after y > 1


# -- arrays ------------------------------------------------------------------------------------------------------


def test_arrays_are_vector_ports():
    """FMI 3.0: sizes from a structural parameter, also a changed one."""
    part = cs.load_fmu(fmu("array", 3))
    assert [(p.name, p.size) for p in (*part.inputs, *part.outputs)] == [("u", 3), ("x", 3), ("y", 3)]
    five = cs.load_fmu(fmu("array", 3), parameters={"n": 5, "k": 2.0}, start={"x": [1.0, 2.0, 3.0, 4.0, 5.0]})
    system = cs.System({"five": five})
    system.set("five.u", 0.0)
    result = cs.simulate(system, t_end=1.0, method=cs.Jacobi(0), step=0.1)
    decay = np.exp(-2.0 * result.t)[:, np.newaxis]
    assert result["five.x"] == pytest.approx(decay * np.arange(1.0, 6.0), rel=1e-13)
    assert result["five.y"][-1, 4] == pytest.approx(6.0 * np.exp(-2.0))
    with pytest.raises(cs.errors.SetupError, match="5 finite numbers"):
        cs.load_fmu(fmu("array", 3), parameters={"n": 5}, start={"x": [1.0, 2.0]}).start(0.0)


def test_arrays_in_a_loop():
    """Two vectors that feed each other: the implicit method solves for all entries."""
    a, b = (cs.load_fmu(fmu("array", 3), start={"x": x}) for x in ([1.0, 2.0, 3.0], [0.0, 0.0, 0.0]))
    system = cs.System({"a": a, "b": b})
    system.connect("a.x", "b.u")
    system.connect("b.x", "a.u")
    result = cs.simulate(system, t_end=1.0, method=cs.Implicit(1), step=0.05)
    k = np.array([1.0, 2.0, 3.0])  # sum and difference of a and b decay with k - 1 and k + 1
    exact = 0.5 * np.array([1.0, 2.0, 3.0]) * (np.exp(-(k - 1)) + np.exp(-(k + 1)))
    assert result["a.x"][-1] == pytest.approx(exact, rel=2e-3)


# -- events ------------------------------------------------------------------------------------------------------


def flight(t: np.ndarray, g: float = 9.81, e: float = 0.7) -> np.ndarray:
    """Height of a ball dropped from 1 m: parabola after parabola."""
    x = np.zeros_like(t)
    begin, v, h = 0.0, 0.0, 1.0
    while begin < t[-1]:
        duration = (v + np.sqrt(v * v + 2 * g * h)) / g
        inside = (t >= begin) & (t < begin + duration)
        s = t[inside] - begin
        x[inside] = h + v * s - 0.5 * g * s * s
        begin, v, h = begin + duration, e * (g * duration - v), 0.0
    return x


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize("step", [0.01, 0.35])
def test_bouncing_ball(fmi, step):
    """FMI 2.0 handles its events inside doStep; FMI 3.0 returns early, enters event mode and goes on."""
    system = cs.System({"ball": cs.load_fmu(fmu("ball", fmi))})
    system.set("ball.push", 0.0)
    result = cs.simulate(system, t_end=2.1, method=cs.Jacobi(0), step=step)
    assert np.abs(result["ball.x"] - flight(result.t)).max() < 1e-11
    assert result["ball.bounces"][-1] == 5  # at 0.45, 1.08, 1.53, 1.84 and 2.05 s
    early = 5 if fmi == 3 else 0
    assert system.subsystems["ball"].steps == len(result.t) - 1 + early


def test_events_under_rollback():
    """Repeated steps over an event see it again; the ball's way is the same with a corrector around it."""
    ball = cs.load_fmu(fmu("ball", 3))
    push = cs.Static(lambda t, u: 0.0 * u, inputs=["x"], outputs=["push"])
    system = cs.System({"ball": ball, "none": push})
    system.connect("ball.x", "none.x")
    system.connect("none.push", "ball.push")
    result = cs.simulate(system, t_end=2.0, method=cs.Implicit(0), step=0.05)
    assert np.abs(result["ball.x"] - flight(result.t)).max() < 1e-11
    assert result["ball.bounces"][-1] == 4


# -- parameters, derivatives, logs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("fmi", [2, 3])
def test_tunable_parameters_between_steps(fmi):
    part = cs.load_fmu(fmu("mass_force", fmi), parameters={"c": 4.0, "d": 0.0}, start={"x": 1.0})
    part.start(0.0)
    zero = lambda t: held(t, 0.1, 0.0)  # noqa: E731
    x, v = part.advance(0.0, 0.1, zero(0.0))
    before = part.jacobian(0.1, 0.2, zero(0.1), np.array([1.0]))
    part.set_parameters({"c": 9.0})
    after = part.jacobian(0.1, 0.2, zero(0.1), np.array([1.0]))
    assert after[0, 0] == pytest.approx((1 - np.cos(0.3)) / 9, rel=1e-12)
    assert before[0, 0] == pytest.approx((1 - np.cos(0.2)) / 4, rel=1e-12)
    y = part.advance(0.1, 0.2, zero(0.1))
    assert y[0] == pytest.approx(x * np.cos(0.3) + v / 3 * np.sin(0.3), rel=1e-13)
    with pytest.raises(cs.errors.SetupError, match="fixed: it cannot be changed while the FMU runs"):
        part.set_parameters({"fail_at": 3.0})


@pytest.mark.parametrize("fmi", [2, 3])
def test_output_derivatives(fmi):
    part = cs.load_fmu(fmu("mass_force", fmi), parameters={"c": 4.0, "d": 0.0}, start={"x": 1.0})
    part.start(0.0)
    x, v = part.advance(0.0, 0.3, held(0.0, 0.3, 1.0))
    assert part.output_derivatives() == pytest.approx([v, 1.0 - 4.0 * x], rel=1e-13)
    assert not hasattr(cs.load_fmu(fmu("types", fmi)), "output_derivatives")


@pytest.mark.parametrize("fmi", [2, 3])
def test_the_fmu_writes_its_own_log(fmi, tmp_path, caplog, monkeypatch):
    """Warnings go to the file and to Python's log, with their numbers; the run goes on. FMPy is not needed for it."""
    source = fmu("mass_warning", fmi)
    monkeypatch.setitem(sys.modules, "fmpy", None)
    file = tmp_path / "mass.log"
    part = cs.load_fmu(source, name="left", log=file)
    part.start(0.0)
    with caplog.at_level(logging.WARNING, logger="cosolve.fmu"):
        part.advance(0.0, 0.1, held(0.0, 0.1, 0.0))
    part.advance(0.1, 0.2, held(0.1, 0.1, 0.0))
    lines = file.read_text().splitlines()
    assert len(lines) == 2
    assert "warning" in lines[1]
    assert lines[1].endswith("the table is extrapolated at t = 0.1")
    assert "left at t = 0" in caplog.text
    part.close()


@pytest.mark.parametrize("fmi", [2, 3])
def test_a_closed_fmu_is_freed_although_its_states_are_kept(fmi):
    part = cs.load_fmu(fmu("mass_force", fmi))
    part.start(0.0)
    state = part.save()
    assert state.body.alive
    part.close()
    assert not state.body.alive


def test_units_and_nominals_reach_the_ports():
    part = cs.load_fmu(fmu("mass_spring", 3))
    assert [(p.name, p.unit, p.nominal) for p in part.outputs] == [
        ("F", "N", 1000.0),
        ("x", "m", 1.0),
        ("v", "m/s", 1.0),
    ]


def test_raw_functions_are_reachable():
    """A compiled loop can call the FMU without Python: here doStep through its bare address."""
    import ctypes

    part = cs.load_fmu(fmu("mass_force", 2), parameters={"c": 4.0, "d": 0.0}, start={"x": 1.0})
    part.start(0.0)
    part.save()  # leaves initialisation mode
    step = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_double, ctypes.c_double, ctypes.c_int)
    assert step(part.functions["fmi2DoStep"])(part.component, 0.0, 0.1, 0) == 0
    assert part.get("x") == pytest.approx(np.cos(0.2), rel=1e-13)


# -- names, folders, kinds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmi", [2, 3])
def test_names_with_dots_and_brackets_stay_as_they_are(fmi, tmp_path):
    """Modelica names have dots and brackets; who writes underscores is told the name."""
    dotted = changed(
        fmu("mass_force", fmi),
        tmp_path / "dotted.fmu",
        lambda t: t.replace('name="x"', 'name="body.x[1]"').replace('name="f"', 'name="flange.f"'),
    )
    part = cs.load_fmu(dotted, start={"body.x[1]": 1.0}, outputs=["body.x[1]", "der(v)"])
    assert [p.name for p in (*part.inputs, *part.outputs)] == ["flange.f", "body.x[1]", "der(v)"]
    system = cs.System({"m": part})
    with pytest.raises(cs.errors.SetupError, match=r"has no input 'flange_f'; did you mean 'flange\.f'\?"):
        system.set("m.flange_f", 1.0)
    with pytest.raises(cs.errors.SetupError, match=r"did you mean 'body\.x\[1\]'"):
        system.law("m.flange.f", lambda x: -x, of="m.body_x[1]")
    system.law("m.flange.f", lambda x: -x, of="m.body.x[1]")
    result = cs.simulate(system, t_end=0.01, method=cs.Jacobi(0), step=1e-3)
    assert result["m.body.x[1]"][0] == 1.0
    assert result["m.der(v)"][0] == pytest.approx(-1e4 - 1.0, rel=1e-13)  # reacts at once to the force
    assert part.get("body.x[1]") == result["m.body.x[1]"][-1]


@pytest.mark.parametrize("fmi", [2, 3])
def test_an_unpacked_fmu_is_taken_as_it_is(fmi, tmp_path):
    with zipfile.ZipFile(fmu("mass_force", fmi)) as packed:
        packed.extractall(tmp_path / "mass")
    part = cs.load_fmu(tmp_path / "mass", parameters={"c": 4.0, "d": 0.0}, start={"x": 1.0})
    part.start(0.0)
    assert part.advance(0.0, 0.5, held(0.0, 0.5, 0.0))[0] == pytest.approx(np.cos(1.0), rel=1e-13)


@pytest.mark.parametrize("fmi", [2, 3])
def test_both_kinds_in_one_fmu(fmi):
    """Co-simulation unless asked otherwise."""
    own, ours = cs.load_fmu(fmu("mass_both", fmi)), cs.load_fmu(fmu("mass_both", fmi), kind="model-exchange")
    assert type(own).__name__ == "CoSimulationFmu"
    assert type(ours).__name__ == "ModelExchangeFmu"


@pytest.mark.parametrize("fmi", [2, 3])
def test_an_fmu_that_says_nothing_about_itself(fmi):
    """No states shown, no dependencies: differences and probing instead, and the numbers of the FMU that says all."""
    found = []
    for name in ("mass_force", "mass_unstructured"):
        parts = {key: cs.load_fmu(fmu(name, fmi), start={"x": x}) for key, x in (("a", 1e-3), ("b", -2e-3))}
        system = cs.System(parts)
        system.law({"a.f": 1, "b.f": -1}, lambda x, y: 1e5 * (y - x), of=["a.x", "b.x"])
        found.append(cs.simulate(system, t_end=0.05, method=cs.SemiImplicit(1), step=1e-3)["a.x"])
    assert np.abs(found[0] - found[1]).max() < 1e-9 * np.abs(found[0]).max()
