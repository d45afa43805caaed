"""Shapes of bodies: a result keeps them, so that a file that is opened later looks as the run did."""

import json

import h5py
import numpy as np
import pytest

import cosolve as cs
from cosolve.viewer.result_view import ResultView

POINTS = {"body": "rod", "centre": [-0.5, 0.0, 0.0], "points": [[-1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]}


@pytest.fixture(scope="module")
def swing():
    model = cs.multibody.MultibodyModel()
    model.body("rod", mass=1.0, inertia=[1e-3, 0.1, 0.1], position=[0.5, 0, 0])
    model.marker("hinge", "rod", [-0.5, 0, 0])
    model.marker("tip", "rod", [0.5, 0, 0])
    model.joint("hook", "spherical", "hinge", "ground")
    rod = cs.multibody.MultibodySubsystem(model, ports=[("tip", [])])
    return cs.simulate(cs.System({"swing": rod}), t_end=0.2, method=cs.Jacobi(), step=0.1)


def shapes(result):
    return [one["shape"] for one in ResultView(result, "").about()["scene"]["frames"]]


def test_the_shape_of_a_body_is_in_the_file(swing, tmp_path):
    path = swing.save(tmp_path / "run.h5")
    assert shapes(swing) == shapes(cs.load_result(path)) == [POINTS]
    about = ResultView(cs.load_result(path), "").about()
    assert "body_shapes" not in about["meta"]  # no text for people
    assert "'body_shapes'" not in cs.write_report(swing, tmp_path / "report.html").read_text(encoding="utf-8")


def test_files_without_shapes_and_with_wrong_ones_open_as_before(swing, tmp_path):
    path = swing.save(tmp_path / "run.h5")
    for told in (None, 3, {}, {"body": "rod"}, POINTS | {"points": [[1, 2]]}, POINTS | {"centre": "here"}):
        with h5py.File(path, "r+") as file:
            about = json.loads(file["about"][()])
            about["meta"]["body_shapes"] = {"swing.tip": told}
            del file["about"]
            file["about"] = np.bytes_(json.dumps(about))
        assert shapes(cs.load_result(path)) == [None]


def test_results_of_other_subsystems_say_nothing(result):
    assert "body_shapes" not in result.meta
    assert ResultView(result, "").about()["scene"] is None
