"""Kratos in this process: what is saved is everything, and what goes wrong becomes a sentence."""

import importlib.util
import sys

import numpy as np
import pytest
from examples.kratos_flap.case import STEP

import cosolve as cs

real = pytest.mark.skipif(importlib.util.find_spec("KratosMultiphysics") is None, reason="no Kratos here")


@pytest.mark.covers("FS-20")
def test_a_missing_kratos_is_named_with_what_would_help(monkeypatch):
    monkeypatch.setitem(sys.modules, "KratosMultiphysics", None)
    with pytest.raises(cs.errors.SetupError, match=r"KratosMultiphysics, which is not installed; pip install"):
        cs.fields.Kratos(None, "Structure", takes={}, gives={})


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Fluid and flap, the fluid on a quarter of the mesh."""
    from examples.kratos_flap.model import flap_system

    return flap_system(tmp_path_factory.mktemp("flap"), fineness=0).subsystems


@real
@pytest.mark.covers("FS-08", "FS-16")
@pytest.mark.parametrize(("name", "size"), [("flap", 1e-3), ("fluid", 1e-5)])
def test_a_repeated_step_has_the_same_bits(pair, name, size):
    solver = pair[name]
    n = len(solver.start(0.0))
    push = np.tile([size, 0.0], n // 2)
    for k in range(2):
        state = solver.save()
        once = solver.advance(k * STEP, (k + 1) * STEP, lambda t: push)
        solver.restore(state)
        other = solver.advance(k * STEP, (k + 1) * STEP, lambda t: -2 * push)
        solver.restore(state)
        assert np.array_equal(solver.advance(k * STEP, (k + 1) * STEP, lambda t: push), once)
        assert not np.array_equal(other, once)
    again = solver.start(0.0)
    assert not again.any()


@real
@pytest.mark.covers("FS-16")
def test_meshes_of_the_ports_are_the_wet_sides(pair):
    for name, points in (("flap", 203), ("fluid", 31)):
        mesh = pair[name].meshes["force"]
        assert (mesh.n_points, mesh.n_cells) == (points, points - 1)
        assert mesh.sizes.sum() == pytest.approx(0.505)
    still = pair["flap"].snapshot()
    assert still.n_cells == 200


@real
@pytest.mark.covers("FS-20")
def test_wrong_steps_and_names_are_refused(pair):
    flap = pair["flap"]
    n = len(flap.start(0.0))
    with pytest.raises(cs.errors.SubsystemError, match="make the macro step a whole number of its time steps"):
        flap.advance(0.0, 0.25, lambda t: np.zeros(n))
    flap.start(0.0)
    with pytest.raises(cs.errors.SetupError, match="stage must be an AnalysisStage, not an object of type str"):
        cs.fields.Kratos("Structure.json", "Structure", takes={}, gives={})


@real
@pytest.mark.slow
@pytest.mark.covers("FS-16")
def test_the_flap_needs_few_iterations(tmp_path):
    from examples.kratos_flap.model import OwnAccelerator, flap_system, iterations, run

    system = flap_system(tmp_path)
    ours = run(system, cs.IqnIls(), 75)
    assert iterations(ours) <= 4.5
    nine = {"type": "iqnils", "timestep_horizon": 9, "iteration_horizon": 50}
    for settings in ({"type": "mvqn", "horizon": 50}, nine):
        theirs = run(system, OwnAccelerator(**settings), 75)
        assert iterations(ours) <= iterations(theirs)
