"""FMUs in system files."""

import numpy as np
import pytest
from examples.two_mass.model import SCHMOLL
from tests.fmu.build import fmu
from tests.fmu.oscillator import fmu_force_displacement

import cosolve as cs
from cosolve.io import load_system

TEXT = """
[subsystems.one]
fmu = "mass_force.fmu"
parameters = {{m = {m1}, c = {c1}, d = {d1}}}
start = {{x = {x1}, v = {v1}}}

[subsystems.two]
fmu = '{second}'
parameters = {{m = {m2}, c = {c2}, d = {d2}, ck = {ck}, dk = {dk}}}
start = {{x = {x2}, v = {v2}}}
{more}
[[connections]]
from = "one.x"
to = "two.x1"
[[connections]]
from = "one.v"
to = "two.v1"
[[connections]]
from = "two.F"
to = "one.f"

[simulation]
t_end = 0.02
step = 1e-3
method = {{name = "semi-implicit", degree = 2}}
"""


def write(folder, more: str = "", second: str | None = None):
    (folder / "mass_force.fmu").write_bytes(fmu("mass_force", 2).read_bytes())
    names = {
        name: getattr(SCHMOLL, name)
        for name in ["m1", "c1", "d1", "x1", "v1", "m2", "c2", "d2", "x2", "v2", "ck", "dk"]
    }
    path = folder / "pair.toml"
    path.write_text(TEXT.format(**names, more=more, second=second or fmu("mass_spring", 2)))
    return path


def test_a_pair_of_fmus_runs_as_in_python(tmp_path) -> None:
    """Paths are relative to the file, or absolute."""
    read = load_system(write(tmp_path)).run()
    built = cs.simulate(fmu_force_displacement(2), t_end=0.02, step=1e-3, method=cs.SemiImplicit(2))
    np.testing.assert_array_equal(read["one.x"], built["one.x"])


FORMS = {
    "fmu": "fmu = 'parts/tank.fmu'\nstart = {x = 2.0}",
    "factory": "factory = 'cosolve:load_fmu'\nparameters = {file = 'parts/tank.fmu', start = {x = 2.0}}",
    "own factory": "factory = 'plant:tank'",
    "isolated": "fmu = 'parts/tank.fmu'\nstart = {x = 2.0}\nisolated = true",
}


@pytest.mark.parametrize("form", FORMS)
def test_fmus_are_relative_to_the_file_wherever_it_is_run_from(tmp_path, monkeypatch, form) -> None:
    """In all forms; an FMU of the same name in the current folder is not meant."""
    for folder in ("plant/parts", "elsewhere/parts"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "plant/parts/tank.fmu").write_bytes(fmu("mass_force", 2).read_bytes())
    (tmp_path / "elsewhere/parts/tank.fmu").write_text("not an FMU")
    (tmp_path / "plant/plant.py").write_text(
        "import cosolve as cs\ndef tank():\n    return cs.load_fmu('parts/tank.fmu', start={'x': 2.0})\n"
    )
    (tmp_path / "plant/plant.toml").write_text(
        f"[subsystems.one]\n{FORMS[form]}\n[constants]\none.f = 0.0\n"
        "[simulation]\nt_end = 0.1\nstep = 0.1\nmethod = 'jacobi'\n"
    )
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert load_system("../plant/plant.toml").run()["one.x"][0] == 2.0


@pytest.mark.parametrize(
    ("more", "second", "words"),
    [
        ("", "missing.fmu", "there is no file 'missing.fmu'"),
        ("outputs = ['F', 'q']", None, "q"),
        ("options = {substep = 2}", None, "no parameter 'substep'; did you mean 'substeps'?"),
        ("parameter = {m = 1}", None, "parameter"),
    ],
)
def test_bad_fmu_tables_are_located(tmp_path, more, second, words) -> None:
    path = write(tmp_path, more, second)
    with pytest.raises(cs.errors.SetupError, match=words) as failure:
        load_system(path)
    assert "pair.toml" in str(failure.value)
    assert "subsystems.two" in str(failure.value)
