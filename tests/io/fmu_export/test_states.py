"""Saved states of an exported instance, without a wrapper around it: everything is as it was, inputs and time too."""

import json
import zipfile
from pathlib import Path

import pytest

import cosolve as cs
from cosolve.io.fmu_export.runtime import Exported, state_from_bytes, state_to_bytes

pytest.importorskip("pythonfmu3")

HERE = Path(__file__).parent / "files"


@pytest.fixture(scope="module")
def resources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plate")
    path = cs.fmi.export_fmu(
        f"{HERE}/masses.py:plate", folder / "plate.fmu", version="3.0", step=0.05, parameters={"m": 2.0}
    )
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    return folder / "resources"


def references(resources):
    entries = json.loads((resources / "cosolve.json").read_text(encoding="utf-8"))["variables"]
    return {entry["name"]: entry["reference"] for entry in entries}


@pytest.mark.parametrize("by", ["in memory", "as bytes"])
def test_a_restored_instance_has_its_inputs_its_time_and_its_future_back(resources, by):
    """Both entries of a vector input come back, so that the next step sees the same force as the first time."""
    names = references(resources)
    model = Exported(str(resources))
    model.begin(2.0)
    model.initialise()
    model.set([names["u"]], [0.5, -0.25])
    model.advance(2.0, 0.1)
    state = model.state()
    if by == "as bytes":
        state = state_from_bytes(state_to_bytes(state))

    def go_on():
        model.advance(2.1, 0.1)
        return model.get([0, names["u"], names["x"]])

    first = go_on()
    assert first[:3] == [pytest.approx(2.2), 0.5, -0.25]
    model.set([names["u"]], [7.0, 8.0])
    model.advance(2.2, 0.1)
    model.set_state(state)
    assert model.get([0, names["u"]]) == [pytest.approx(2.1), 0.5, -0.25]
    assert go_on() == first


def test_an_instance_that_never_ran_takes_a_state_over(resources):
    """Start time, end of initialisation and inputs are those of the instance that saved it."""
    names = references(resources)
    one, other = Exported(str(resources)), Exported(str(resources))
    one.begin(2.0)
    one.set([names["u"]], [0.5, -0.25])
    one.initialise()
    one.advance(2.0, 0.1)
    other.set_state(one.state())
    assert other.get([0, names["u"], names["x"]]) == one.get([0, names["u"], names["x"]])
    with pytest.raises(ValueError, match="is fixed once initialisation is over"):
        other.set([names["m"]], [3.0])
    for model in (one, other):
        model.set([names["u"]], [1.0, 2.0])
        model.advance(2.1, 0.1)
    assert other.get([names["x"]]) == one.get([names["x"]])
