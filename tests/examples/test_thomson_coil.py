"""The Thomson coil: its inductances, its flight, its energy, and what coupling it costs.

Reference: both sides in one system of equations, by a Runge-Kutta loop of the example that knows nothing of the engine.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from examples.thomson_coil import run
from examples.thomson_coil.model import (
    Flight,
    Rings,
    ThomsonCoil,
    connected,
    electromagnetics,
    mechanics,
    split,
    undivided,
)
from examples.thomson_coil.run import error
from scipy.integrate import solve_ivp
from tests import processes

import cosolve as cs

COIL = ThomsonCoil()


@cache
def free_flight() -> Flight:
    return undivided(COIL)


@cache
def latched() -> Flight:
    return undivided(COIL, t_end=3e-3, latched=True)


@pytest.mark.covers("AP-27", "SC-41")
def test_inductances_and_resistances() -> None:
    """The ring model, and an inductance matrix that stores energy whatever the currents are."""
    assert COIL.coil_inductance == pytest.approx(3.9165e-6, rel=1e-3)
    assert COIL.coil_resistance == pytest.approx(2.652e-3, rel=1e-3)
    assert np.linalg.eigvalsh(COIL.plate_inductance)[0] == pytest.approx(3.18e-9, rel=1e-2)
    assert [COIL.coupling_factor(z) for z in (0, 5e-3, 12e-3)] == pytest.approx([0.8266, 0.6101, 0.4143], rel=1e-3)
    for z in (0.0, 5e-3, 12e-3):
        M = COIL.mutual(z)[0][0]
        whole = np.block(
            [[np.array([[COIL.coil_inductance]]), M[np.newaxis]], [M[:, np.newaxis], COIL.plate_inductance]]
        )
        assert np.linalg.eigvalsh(whole)[0] > 0


def test_flat_rings_would_explode() -> None:
    """Why the rings are nearly square: the filament formula gives flat ones an indefinite matrix."""
    assert np.linalg.eigvalsh(replace(COIL, rings=(24, 12)).plate_inductance)[0] < 0


def test_the_table_is_as_good_as_the_formula() -> None:
    """Between its points, and its slope is the slope of what it interpolates: otherwise energy would leak."""
    of = Rings(COIL)
    for z in (1.2345e-3, 7.7777e-3):
        for found, exact in zip(of.mutual(z), COIL.mutual(z), strict=True):
            assert found == pytest.approx(exact[0], rel=1e-8)
        near = [of.mutual(z + dz)[0] for dz in (-1e-7, 1e-7)]
        assert (near[1] - near[0]) / 2e-7 == pytest.approx(of.mutual(z)[1], rel=1e-5)


@pytest.mark.covers("AP-28")
def test_free_flight() -> None:
    """Diode, peak current and force, speed and distance after a millisecond, the hottest ring."""
    flight = free_flight()
    t = np.linspace(0, 1e-3, 1001)
    found = flight.signals(t)
    assert flight.diode == pytest.approx(163.54e-6, rel=1e-3)
    assert found["I"].max() == pytest.approx(4804.6, rel=1e-3)
    assert t[found["I"].argmax()] == pytest.approx(107e-6, abs=1e-6)
    assert found["F"].max() == pytest.approx(3363.0, rel=1e-3)
    assert t[found["F"].argmax()] == pytest.approx(102e-6, abs=1e-6)
    assert found["v"][-1] == pytest.approx(2.96262, rel=1e-3)
    assert found["z"][-1] == pytest.approx(2.63112e-3, rel=1e-3)
    assert found["F"][-1] == pytest.approx(-4.7, rel=1e-2)
    assert flight.states(1e-3)[0, Rings(COIL).Tp].max() == pytest.approx(0.39, abs=0.005)


def test_the_reference_against_another_integrator() -> None:
    """Up to 0.1 ms, before the diode: SciPy's DOP853 on the same equations."""
    of = Rings(COIL)

    def rhs(t, x):
        F = of.force(t, x[:-2], x[-2:])
        return np.concatenate([of.slope(t, x[:-2], x[-2:]), [x[-1], F / COIL.mass]])

    found = solve_ivp(rhs, (0, 1e-4), np.concatenate([of.x0, [0, 0]]), "DOP853", rtol=1e-10, atol=1e-10).y[:, -1]
    ours = free_flight().states(1e-4)[0]
    assert ours[[of.I0, of.U, -2, -1]] == pytest.approx(found[[of.I0, of.U, -2, -1]], rel=1e-8)


@pytest.mark.covers("SC-41")
def test_energy_is_kept() -> None:
    """Capacitor and field lose what becomes heat and motion, at every moment and in sum."""
    of, flight = Rings(COIL), free_flight()
    for t in (2e-5, 1e-4, 4e-4, 1e-3):
        x = flight.states(t)[0]
        stored = of.energies(x[:-2], x[-2])
        assert sum(stored.values()) + 0.5 * COIL.mass * x[-1] ** 2 == pytest.approx(90.0, rel=1e-9)
        rate, h = of.slope(t, x[:-2], x[-2:]), 1e-9
        moved = [of.energies(x[:-2] + s * h * rate, x[-2] + s * h * x[-1]) for s in (-1, 1)]
        power = sum(moved[1].values()) - sum(moved[0].values())
        assert power / (2 * h) == pytest.approx(-of.force(t, x[:-2], x[-2:]) * x[-1], rel=1e-6, abs=1e-3)


@pytest.mark.covers("AP-30")
def test_latch_and_end_stop() -> None:
    """The impact, the deepest point, the rebound."""
    t = np.linspace(0, 3e-3, 30001)
    found = latched().signals(t)
    touch = int((found["z"] > COIL.travel).argmax())
    assert t[touch] == pytest.approx(1761e-6, rel=3e-3)
    assert found["v"][touch] == pytest.approx(2.935, rel=3e-3)
    assert found["z"].max() == pytest.approx(4.4939e-3, rel=3e-3)
    assert found["v"].min() == pytest.approx(-1.458, rel=3e-3)
    assert found["z"][-1] == pytest.approx(3.196e-3, rel=3e-3)


def coupled(degree: int, H: float, *, latch: bool = False, h: float = 5e-7, **options) -> cs.Result:
    options.setdefault("startup", cs.RisingDegree())
    t_end = 3e-3 if latch else 1e-3
    return cs.simulate(split(internal_step=h, latched=latch), t_end=t_end, method=cs.Jacobi(degree), step=H, **options)


#: error of Jacobi in free flight with rising degree at the start, over the macro step in us
TABLE = {
    0: {100: 8.2e-2, 50: 3.5e-2, 25: 1.7e-2, 12.5: 8.6e-3, 6.25: 4.3e-3, 2: 1.4e-3, 1: 6.9e-4},
    1: {100: 8.1e-2, 50: 2.0e-2, 25: 5.0e-3, 12.5: 1.3e-3, 6.25: 3.2e-4, 2: 3.3e-5, 1: 8.2e-6},
    2: {100: 2.1e-1, 50: 5.5e-2, 25: 1.0e-2, 12.5: 1.5e-3, 6.25: 2.0e-4, 2: 7.1e-6, 1: 8.9e-7},
    3: {1: 2.4e-6},
    4: {1: 2.3e-6},
}


@pytest.mark.parametrize(("degree", "H"), [(1, 25), (2, 25)])
@pytest.mark.covers("AP-29", "SC-42")
def test_errors_of_explicit_coupling(degree: int, H: float) -> None:
    """The whole table is a slow test."""
    assert error(coupled(degree, H * 1e-6), free_flight()) == pytest.approx(TABLE[degree][H], rel=0.3)


def test_the_choice_of_the_docs() -> None:
    """`GaussSeidel(3)` with H = 5 us: one subsystem step per step and the error that docs/machines.md promises."""
    found = cs.simulate(split(internal_step=5e-7), t_end=1e-3, method=cs.GaussSeidel(3), step=5e-6)
    assert error(found, free_flight()) < 2e-6
    assert found.stats.calls["em"] == 216  # 200 steps, and the start with rising degree


@pytest.mark.slow
@pytest.mark.parametrize("degree", TABLE)
@pytest.mark.covers("AP-29", "SC-42")
def test_all_errors_of_explicit_coupling(degree: int) -> None:
    """Every entry within 30 %; everything is stable, and degrees 3 and 4 end at order 3."""
    for H, expected in TABLE[degree].items():
        found = error(coupled(degree, H * 1e-6, h=1e-7), free_flight())
        assert found == pytest.approx(expected, rel=0.3), H


IMPACT = {
    1: {10: (4.9e-4, 6.7e-4), 5: (1.2e-4, 1.6e-4), 2: (2.0e-5, 2.6e-5), 1: (4.9e-6, 6.6e-6)},
    2: {10: (8.3e-4, 1.9e-3), 5: (1.1e-4, 2.6e-4), 2: (7.4e-6, 1.7e-5), 1: (9.3e-7, 2.2e-6)},
}


@pytest.mark.parametrize(
    ("degree", "H"),
    [(1, 10), *(pytest.param(k, H, marks=pytest.mark.slow) for k in IMPACT for H in IMPACT[k] if (k, H) != (1, 10))],
)
@pytest.mark.covers("AP-31")
def test_the_impact_costs_accuracy_and_not_stability(degree: int, H: float) -> None:
    """It is inside the mechanical side; errors before it and over all, within a factor of 1.5."""
    found = coupled(degree, H * 1e-6, latch=True, h=5e-7 if H > 2 else 1e-7)
    before, over = IMPACT[degree][H]
    assert before / 1.5 < error(found, latched(), until=1.761e-3) < 1.5 * before
    assert over / 1.5 < error(found, latched()) < 1.5 * over


@pytest.mark.slow
def test_stopping_at_the_diode_changes_little() -> None:
    """The event is a kink of the current: a macro step that ends there has no error to win above its order."""
    across, stopped = (error(coupled(1, 25e-6, stop_at_events=flag), free_flight()) for flag in (False, True))
    assert stopped == pytest.approx(across, rel=0.5)


@pytest.mark.slow
def test_the_system_file_runs_anywhere(tmp_path: Path) -> None:
    """Also after machine code was left on disk, which knows its module as `examples.thomson_coil.model`."""
    coupled(1, 1e-4)
    command = [sys.executable, "-m", "cosolve.cli", "run", str(Path(run.__file__).with_name("system.toml"))]
    alone = {**os.environ, "PYTHONPATH": str(Path(cs.__file__).parents[1])}
    processes.run([*command, "--t-end", "2e-5"], cwd=tmp_path, env=alone, check=True)
    assert (tmp_path / "thomson-coil.h5").exists()


def test_a_plate_that_leaves_the_table_is_named() -> None:
    """With time and part, and what there was is kept."""
    system = split(replace(COIL, table=(-1e-3, 1e-3, 1e-5)), internal_step=5e-7)
    with pytest.raises(
        cs.errors.SubsystemError, match=r"'em' .* z = 1 mm, but inductances .* from -1 to 1 mm; widen"
    ) as caught:
        cs.simulate(system, t_end=1e-3, method=cs.Jacobi(1), step=25e-6)
    assert caught.value.subsystem == "em"
    assert caught.value.result["plate.z"][-1] > 0.9e-3


@pytest.mark.parametrize(
    ("changed", "until", "sentence"),
    [
        ({"voltage": 150.0}, 1.5e-3, r"'plate' .* at 1\.5 ms .* no further than [01]\.\d+ mm; a higher voltage"),
        ({"stop": (5e8, 0.0, 1.5)}, 2.8e-3, r"'plate' .* beyond 2 mm only: it was at 4\.\d+ mm and came back"),
    ],
)
def test_a_latch_that_does_not_open_or_does_not_hold_is_named(changed: dict, until: float, sentence: str) -> None:
    """Too little voltage, and a stop without damping: one sentence with time and part, and what there was is kept."""
    p = ThomsonCoil.of(changed)
    plate = mechanics(p, internal_step=1e-6, latched=True, opens_by=until)
    system = connected(electromagnetics(p, internal_step=1e-6), plate)
    with pytest.raises(cs.errors.SubsystemError, match=sentence) as caught:
        cs.simulate(system, t_end=4e-3, method=cs.Jacobi(1), step=20e-6)
    assert caught.value.subsystem == "plate"
    assert caught.value.result.t[-1] == pytest.approx(caught.value.time)
    assert caught.value.time >= until - 21e-6


def test_a_latch_that_opens_in_time_changes_no_bit() -> None:
    """Being watched alters nothing."""
    runs = []
    for by in (None, 2e-3):
        system = cs.System({"plate": mechanics(COIL, internal_step=1e-6, latched=True, opens_by=by)})
        system.set("plate.F", 500.0)
        runs.append(cs.simulate(system, t_end=2.1e-3, method=cs.Jacobi(0), step=1e-4))
    assert runs[0]["plate.z"][-1] > 2e-3
    assert np.array_equal(runs[0]["plate.z"], runs[1]["plate.z"])


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"voltage": -1.0}, "voltage = -1.0 must be above zero"),
        ({"gap": 0.0}, "gap = 0.0 must be above zero"),
        ({"plate": [0.045, 0.005, 3e-3]}, "plate = .* inner radius, outer radius"),
        ({"turns": [0.010, 0.011]}, "turns overlap"),
        ({"table": [0.0, 1e-3, 1e-5]}, "table = .* begin below 0"),
        ({"tension": 3.0}, "no parameter 'tension'; there are copper, "),
    ],
)
def test_bad_parameters_are_named(given: dict, sentence: str) -> None:
    with pytest.raises(cs.errors.SetupError, match=sentence):
        ThomsonCoil.of(given)
