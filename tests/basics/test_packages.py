"""What is not in the base is asked for by one sentence with its remedy, before anything has run."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import cosolve as cs
from cosolve.basics.packages import optional

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def decay(rate=1.0, **choices):
    return cs.Ode(lambda t, x, u: [-rate * x[0]], lambda t, x, u: x, x0=[1.0], inputs=[], outputs=["x"], **choices)


def _table(tmp_path):
    return cs.simulate(cs.System({"a": decay()}), t_end=1.0, method=cs.Jacobi(), step=0.5).to_dataframe()


def _steps(tmp_path):
    return cs.simulate(cs.System({"a": decay()}), t_end=1.0, method=cs.Jacobi(), step=0.5).steps_dataframe()


def _sweep(tmp_path):
    def never(rate):
        raise AssertionError("a variant was built before the package was found missing")

    return cs.sweep(never, {"rate": [1.0]}, methods=cs.Jacobi(), steps=0.5, t_end=1.0)


def _mesh(tmp_path):
    (tmp_path / "flap.msh").write_text("$MeshFormat")
    return cs.mapping.read_mesh(tmp_path / "flap.msh")


def _map_of_a_sweep(tmp_path):
    (tmp_path / "found.nc").write_bytes(b"CDF")
    return cs.view(tmp_path / "found.nc", open_browser=False, told=None)


@pytest.mark.parametrize(
    ("package", "extra", "what", "call"),
    [
        ("pandas", "data", "a table of a result", _table),
        ("pandas", "data", "a table of macro steps", _steps),
        ("xarray", "data", "the result of a sweep", _sweep),
        ("meshio", "mesh", r"read_mesh: a file \.msh", _mesh),
        ("xarray", "netcdf", "a netCDF file", _map_of_a_sweep),
        ("sksundae", "sundials", "the integrator 'cvode'", lambda _: decay(integrator="cvode")),
    ],
)
def test_a_missing_package_is_named_with_its_extra(package, extra, what, call, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    sentence = rf"^{what} needs {package}, which is not installed; run: pip install 'cosolve\[{extra}\]'$"
    with pytest.raises(cs.errors.SetupError, match=sentence):
        call(tmp_path)
    assert any(line.startswith(package.replace("sksundae", "scikit-sundae")) for line in _extra(extra))


def _extra(name):
    return PROJECT["optional-dependencies"][name]


def test_a_package_that_is_broken_says_how(tmp_path, monkeypatch):
    (tmp_path / "broken_package.py").write_text("import no_such_library")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(cs.errors.SetupError, match=r"cannot be imported \(No module named 'no_such_library'\)"):
        optional("broken_package", "data", "a test")


def test_the_base_has_what_the_first_page_does():
    """`new`, `export`, `run --live` and `view` come without an extra, and no extra promises them."""
    base = {line.partition(">")[0] for line in PROJECT["dependencies"]}
    assert base >= {"pythonfmu", "pythonfmu3", "starlette", "uvicorn", "websockets", "matplotlib"}
    assert not {"export", "view"} & set(PROJECT["optional-dependencies"])


def test_packages_of_extras_are_not_imported_by_a_run_with_a_report(tmp_path):
    """A run with its report, in a process where the packages of the extras cannot be imported."""
    code = f"""
import sys
for name in ("pandas", "xarray", "meshio", "sksundae", "fmpy", "h5netcdf", "dask", "jax", "anywidget", "msgpack"):
    sys.modules[name] = None
import cosolve as cs
a = cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["x"])
b = cs.Linear([[-2.0]], [[1.0]], [[1.0]], x0=[0.0], inputs=["u"], outputs=["x"])
system = cs.System({{"a": a, "b": b}})
system.connect("a.x", "b.u")
system.connect("b.x", "a.u")
assert cs.check(system, cs.SemiImplicit(1), 0.1).ok
result = cs.simulate(system, t_end=1.0, method=cs.SemiImplicit(1), step=0.1, save={str(tmp_path / "result.h5")!r})
cs.write_report(result, {str(tmp_path / "report.html")!r})
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, timeout=300)
    assert len(cs.load_result(tmp_path / "result.h5")) == 11
