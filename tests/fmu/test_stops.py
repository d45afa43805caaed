"""FMUs that end macro steps at their events, ask for the end of a run, or discard steps."""

import json
from pathlib import Path

import numba
import numpy as np
import pytest
from tests.fmu.build import fmu
from tests.fmu.model_exchange_models import event_fmu
from tests.run.stepper.bounce import coupled, exact
from typer.testing import CliRunner

import cosolve as cs
from cosolve.cli import app

METHODS = [cs.Jacobi(1), cs.GaussSeidel(1), cs.SemiImplicit(1), cs.Implicit(1)]
STEPS = [0.1, 0.05, 0.025]
T_END = 1.6

BALLS = {
    "model exchange 2.0": lambda: cs.load_fmu(fmu("ball_me", 2), outputs=["x", "v"], integrator="dopri5"),
    "model exchange 3.0": lambda: cs.load_fmu(fmu("ball_me", 3), outputs=["x", "v"], integrator="dopri5"),
    "co-simulation 3.0": lambda: cs.load_fmu(fmu("ball", 3), outputs=["x", "v"]),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", BALLS)
@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.Implicit(1)], ids=lambda m: m.label)
def test_a_ball_bounces_where_the_tank_sees_it(kind, method):
    """Against the exact solution: second order with stops, and many times more accurate than without."""
    end = exact(T_END)[1]

    def error(H, stop):
        result = cs.simulate(coupled(BALLS[kind]()), t_end=T_END, method=method, step=H, stop_at_events=stop)
        assert result.stats.events == (3 if stop else 0)
        return max(abs(result["tank.h"][-1] - end[2]), abs(result["ball.v"][-1] - end[1]))

    errors = [error(H, True) for H in STEPS]
    assert np.polyfit(np.log(STEPS), np.log(errors), 1)[0] > 1.5
    assert error(STEPS[-1], False) > 5 * errors[-1]


def test_an_fmu_without_rollback_stops_under_explicit_methods(tmp_path):
    """Early return is all it takes: the ball goes first, the tank only as far as it came."""
    from dataclasses import replace

    from tests.fmu.build import build
    from tests.fmu.catalogue import MODELS

    flags = {k: v for k, v in MODELS["ball"].flags.items() if "FMUState" not in k}
    file = build("ball_no_rollback", replace(MODELS["ball"], flags=flags), 3)
    runs = [
        cs.simulate(
            coupled(cs.load_fmu(f, outputs=["x", "v"])), t_end=T_END, method=cs.Jacobi(1), step=0.1, stop_at_events=True
        )
        for f in (file, fmu("ball", 3))
    ]
    assert runs[0].stats.events == 3
    assert np.array_equal(runs[0].column("y"), runs[1].column("y"))


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.label)
def test_samples_are_macro_points(fmi, method):
    """Time events at 0, 0.1, 0.2, ... under a grid of 0.07; the follower x' = held - x sees each at once."""
    sampled = cs.load_fmu(event_fmu("sampled", fmi), integrator="dopri5")
    follower = cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[0.0], inputs=["u"], outputs=["y"])
    system = cs.System({"sampled": sampled, "follower": follower})
    system.connect("sampled.held", "follower.u")
    system.set("sampled.u", 1.0)
    result = cs.simulate(system, t_end=0.7, method=method, step=0.07, stop_at_events=True)
    for t in np.arange(1, 7) * 0.1:
        assert np.min(np.abs(result.t - t)) < 1e-9
    x, y, held, t = 1.0, 0.0, 0.0, 0.0
    for k in range(7):  # held = 2 (1 - x) over each sample: both equations have closed forms
        held, h = 2.0 * (1.0 - x), 0.1
        x, y = held + (x - held) * np.exp(-h), held + (y - held) * np.exp(-h)
        t = (k + 1) * h
        if k < 6:
            near = int(np.argmin(np.abs(result.t - t)))
            assert result["follower.y"][near] == pytest.approx(y, abs=1e-7)


# -- the end of a run --------------------------------------------------------------------------------------------------


def pair(name, fmi, **options):
    """An FMU of the catalogue and a mass, joined by a spring."""
    system = cs.System(
        {
            "left": cs.load_fmu(fmu(name, fmi), **options),
            "right": cs.load_fmu(fmu("mass_force", fmi), start={"x": 1e-3}),
        }
    )
    system.law({"left.f": 1, "right.f": -1}, lambda x1, x2: 1e3 * (x2 - x1), of=["left.x", "right.x"])
    return system


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize("name", ["mass_ends", "mass_ends_me"])
@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.label)
def test_an_fmu_that_asks_for_the_end_is_no_failure(fmi, name, method):
    """It wants the end at 0.055; without saved states the last macro point before that is the last one."""
    result = cs.simulate(pair(name, fmi), t_end=0.1, method=method, step=1e-2)
    whole = cs.simulate(pair("mass_force", fmi), t_end=0.1, method=method, step=1e-2)
    assert result.finished
    rollback = "rollback" in method.needs
    assert 0.055 <= result.t[-1] < 0.057 if rollback else result.t[-1] == whole.t[5]
    assert "because 'left' asked for it" in result.ended
    assert f"the FMU '{name}.fmu' ends it" in result.ended
    assert name == "mass_ends_me" or "the FMU says: the tank is empty at t = 0.055" in result.ended
    if name == "mass_ends":
        assert np.allclose(result.column("y")[:6], whole.column("y")[:6], rtol=1e-12, atol=0)


def test_it_travels_from_another_process():
    system = pair("mass_ends", 2, isolated=True)
    result = cs.simulate(system, t_end=0.1, method=cs.SemiImplicit(1), step=1e-2)
    assert result.t[-1] == pytest.approx(0.055)
    assert "the tank is empty" in result.ended
    system.subsystems["left"].close()


@pytest.mark.parametrize("fmi", [2, 3])
def test_the_compiled_loop_ends_as_well(fmi):
    """There a step is not taken back: the run ends at the macro point before, as the readable one."""
    ends = []
    for compiled in (True, False):
        system = cs.System({"one": cs.load_fmu(fmu("mass_ends", fmi), interpolate=False, start={"x": 1e-3})})
        system.law("one.f", numba.njit(lambda x, v: -10.0 * x), of=["one.x", "one.v"])
        result = cs.simulate(system, t_end=0.1, method=cs.Jacobi(0), step=1e-3, compiled=compiled)
        ends.append(result.t[-1])
        assert "because 'one' asked for it" in result.ended
        assert "the tank is empty" in result.ended
    assert ends == [pytest.approx(0.055, abs=1.1e-3)] * 2


def test_the_command_line_says_so_and_does_not_fail(tmp_path):
    file = tmp_path / "mass.toml"
    path = json.dumps(str(Path(fmu("mass_ends", 2))))
    file.write_text(
        f'[simulation]\nt_end = 0.1\nstep = 0.01\nmethod = {{ name = "jacobi" }}\n'
        f"[subsystems.mass]\nfmu = {path}\n"
        '[constants]\n"mass.f" = 1.0\n'
    )
    found = CliRunner().invoke(app, ["run", str(file), "-o", str(tmp_path / "r.h5")])
    assert found.exit_code == 0, found.output
    assert "ended early: 6 macro points, t = 0 ... 0.05" in found.output
    assert "because 'mass' asked for it at t = 0.055: the FMU 'mass_ends.fmu' ends it" in found.output
    found = CliRunner().invoke(app, ["run", str(file), "-o", str(tmp_path / "r.h5"), "--stop-at-events"])
    assert found.exit_code == 0, found.output
    assert "ended at t = 0.055 because 'mass' asked for it" in found.output


# -- discarded steps ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.label)
def test_a_discarded_step_passes_in_smaller_pieces(fmi, method):
    """From t = 0.05 on it takes steps of at most 3 ms: 10 ms pass in four pieces, with the numbers of the whole."""
    with_state = "rollback" in method.needs
    system = pair("mass_too_long", fmi, retry=not with_state)
    result = cs.simulate(system, t_end=0.1, method=method, step=1e-2)
    whole = cs.simulate(pair("mass_force", fmi), t_end=0.1, method=method, step=1e-2)
    assert np.allclose(result.column("y"), whole.column("y"), rtol=1e-9, atol=1e-15)
    assert result.stats.retried["left"] >= 5
    assert "discarded steps in smaller pieces" in str(result.stats)
    assert whole.stats.retried == {}


@pytest.mark.parametrize("fmi", [2, 3])
def test_where_none_has_a_state_the_sentence_says_what_would_help(fmi):
    with pytest.raises(
        cs.errors.SubsystemError, match=r"discarded .*smaller macro step may help, or load_fmu\(\.\.\., retry=True\)"
    ):
        cs.simulate(pair("mass_too_long", fmi), t_end=0.1, method=cs.Jacobi(1), step=1e-2)
    with pytest.raises(cs.errors.SubsystemError, match="pieces of 1/64 of it were discarded as well"):
        cs.simulate(pair("mass_discard", fmi), t_end=0.1, method=cs.SemiImplicit(1), step=1e-2)


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.label)
def test_a_step_discarded_at_a_switch_ends_there_for_all(method):
    """FMI 2.0: it does not step across t = 0.055 and says how far it came."""
    result = cs.simulate(pair("mass_stops", 2), t_end=0.1, method=method, step=1e-2, stop_at_events=True)
    assert result.stats.events == 1
    assert np.min(np.abs(result.t - 0.055)) < 1e-10
    assert result.stats.retried == {}
    assert result.t[-1] == 0.1


def test_discrete_inputs_are_written_again_after_going_back():
    """FMI 3.0 with event mode: a restored FMU has the discrete inputs of the saved state, not those written last."""
    ball = cs.load_fmu(fmu("ball", 3), outputs=["x", "v"])
    communication = ball._communication
    ball.start(0.0)
    ball.begin(0.0, np.zeros(1))
    state = ball.save()
    communication._written = np.ones(1)
    ball.restore(state)
    assert communication._written is None
