"""Result files tell other programs what their columns are."""

import h5py
import numpy as np
import pandas as pd
import pytest

import cosolve as cs
from cosolve.result import labels


def _mass(x):
    return cs.Ode(
        lambda t, s, u: [s[1], u[0] - s[0]],
        lambda t, s, u: s,
        x0=[x, 0.0],
        inputs=[cs.Port("f", unit="N")],
        outputs=[cs.Port("x", unit="m"), cs.Port("v", unit="m/s")],
    )


@pytest.fixture(params=["streamed", "saved"])
def file(request, tmp_path):
    """A run with scalar and vector ports, a named law, a plain connection and a held input."""
    clock = cs.Static(lambda t, u: [t, 2 * t, u[0]], inputs=["u"], outputs=[("w", 2), "e"])
    system = cs.System({"one": _mass(0.0), "two": _mass(1.0), "clock": clock})
    system.law({"one.f": 1, "two.f": -1}, lambda a, b: 3 * (b - a), of=["one.x", "two.x"], name="spring")
    system.set("clock.u", 7.0)
    path = tmp_path / "run.h5"
    stream = {"save": path} if request.param == "streamed" else {}
    result = cs.simulate(system, t_end=1.0, method=cs.SemiImplicit(degree=1), step=0.1, **stream)
    if not stream:
        result.save(path)
    return path


def test_plain_h5py(file):
    result = cs.load_result(file)
    with h5py.File(file) as h5:
        names = list(h5["y_names"].asstr())
        assert names == ["one.x", "one.v", "two.x", "two.v", "clock.w[0]", "clock.w[1]", "clock.e"]
        assert list(h5["y_units"].asstr()) == ["m", "m/s", "m", "m/s", "", "", ""]
        assert list(h5["z_names"].asstr()) == ["spring"]
        assert list(h5["subsystems"].asstr()) == ["one", "two", "clock"]
        assert h5.attrs["cosolve"].decode() == cs.__version__ == result.meta["cosolve"]
        np.testing.assert_array_equal(h5["y"][:, names.index("two.v")], result["two.v"])
        assert h5["y"].dims[0][0] == h5["t"]
        assert h5["y"].dims[1][0] == h5["y_names"]


def test_pandas(file):
    with h5py.File(file) as h5:
        frame = pd.DataFrame(h5["y"][:], index=h5["t"][:], columns=h5["y_names"].asstr()[:])
    whole = cs.load_result(file).to_dataframe()
    pd.testing.assert_frame_equal(frame, whole[list(frame)], check_names=False)


def test_xarray(file):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    with xarray.open_dataset(file, engine="h5netcdf", phony_dims="sort") as found:
        column = found["y"].sel(y_names="two.x")
        np.testing.assert_array_equal(column, cs.load_result(file)["two.x"])
        np.testing.assert_array_equal(column["t"], cs.load_result(file).t)


def test_connected_outputs_and_chosen_quantities_have_names(tmp_path):
    """A coupling variable without a name of its own is named after the input that it is."""
    gain = cs.Static(lambda t, u: 2 * u, inputs=["u"], outputs=["y"])
    system = cs.System({"one": _mass(0.0), "gain": gain})
    system.connect("gain.y", "one.f")
    system.law("gain.u", lambda v: -v, of="one.v")
    options = {"t_end": 0.2, "method": cs.Jacobi(), "step": 0.1}
    cs.simulate(system, save=tmp_path / "a.h5", record=["gain.u", "one.f", "one.v"], **options)
    with h5py.File(tmp_path / "a.h5") as h5:
        assert list(h5["y_names"].asstr()) == ["one.v"]
        assert list(h5["z_names"].asstr()) == ["one.f", "gain.u"]


def test_very_wide_columns_go_without_names(tmp_path, monkeypatch):
    monkeypatch.setattr(labels, "MAX_NAMES", 3)
    field = cs.Static(lambda t, u: np.arange(4.0), inputs=[], outputs=[("w", 4)])
    cs.simulate(cs.System({"a": field}), t_end=0.2, method=cs.Jacobi(), step=0.1, save=tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as h5:
        assert "y_names" not in h5
    assert cs.load_result(tmp_path / "a.h5")["a.w"].shape == (3, 4)
