"""The trusses and the controlled cylinder from their files: the iterations of the Python versions, one by one."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from examples.cylinder_control import model as cylinder
from examples.truss_truss.model import SOURCE, monolithic, system
from examples.truss_truss.run import LABELS, PAIRS, ROWS, run_row

import cosolve as cs
from cosolve.io import load_system

EXAMPLES = Path(__file__).parents[2] / "examples"
TRUSS = EXAMPLES / "truss_truss" / "system.toml"
CYLINDER = EXAMPLES / "cylinder_control" / "system.toml"


@pytest.fixture
def variant(tmp_path):
    """A file of an example with another line, whose model is imported by its full name."""

    def made(path: Path, **lines: str):
        text = path.read_text().replace('"model:', f'"examples.{path.parent.name}.model:')
        for key, value in lines.items():
            row = next(line for line in text.splitlines() if line.startswith(f"{key} = "))
            text = text.replace(row, f"{key} = {value}", 1)
        (tmp_path / "system.toml").write_text(text)
        return load_system(tmp_path / "system.toml")

    return made


def run(described) -> cs.Result:
    return described.run(save=None)


@pytest.mark.covers("IJ-42", "IJ-19")
def test_the_trusses_from_a_file_take_the_published_785_evaluations():
    result = run(load_system(TRUSS))
    assert int((result.iterations + 1).sum()) == 785
    expected = run_row(ROWS[LABELS.index("basic IJCSA")], replace(SOURCE, steps=20), monolithic(SOURCE)[:21]).result
    assert np.array_equal(result.iterations[:20], expected.iterations)
    assert np.array_equal(result["one.u"][:21], expected["one.u"])


@pytest.mark.covers("IJ-42", "IJ-23")
@pytest.mark.parametrize(
    ("text", "corrector"),
    [
        (
            '{name = "secant", pairs = [["force", "displacement"], ["displacement", "force"]], initial = 0.0}',
            cs.Secant(PAIRS, initial=0.0),
        ),
        ('{name = "broyden", initial = "exact"}', cs.Broyden(initial="exact")),
        ('{name = "iqn-ils"}', cs.IqnIls()),
        ('{name = "newton", refresh = "step"}', cs.Newton(refresh="step")),
    ],
    ids=["secant", "broyden", "iqn-ils", "modified"],
)
def test_any_corrector_with_its_options(variant, text, corrector):
    """The first ten steps, iteration by iteration."""
    result = run(variant(TRUSS, corrector=text, t_end="0.1"))
    method = cs.Implicit(degree=0, tol=1e-10, absolute=True, corrector=corrector)
    expected = cs.simulate(system(warm_start=True), t_end=0.1, method=method, step=SOURCE.h)
    assert np.array_equal(result.iterations, expected.iterations)
    assert np.array_equal(result["one.u"], expected["one.u"])


@pytest.mark.covers("IJ-42", "IJ-43")
def test_tolerances_of_single_residuals(variant):
    """Loose ones for force and displacement: fewer iterations, and as in Python."""
    text = "true\natol = {force = 1e-2, displacement = 1e-5}"
    result = run(variant(TRUSS, absolute=text, t_end="0.1"))
    method = cs.Implicit(
        degree=0, tol=1e-10, absolute=True, corrector=cs.Newton(), atol={"force": 1e-2, "displacement": 1e-5}
    )
    expected = cs.simulate(system(warm_start=True), t_end=0.1, method=method, step=SOURCE.h)
    assert np.array_equal(result.iterations, expected.iterations)
    assert result.iterations.sum() < run(variant(TRUSS, t_end="0.1")).iterations.sum()


@pytest.mark.covers("IJ-42", "IJ-34")
def test_the_cylinder_from_a_file_takes_the_iterations_of_python(variant):
    """0.1 s with the control switched on in between."""
    result = run(variant(CYLINDER, on_at="0.05", t_end="0.1"))
    p = cylinder.Cylinder(on_at=0.05)
    expected = cylinder.simulate(p, 0.1)
    assert np.array_equal(result.iterations, expected.iterations)
    for name in ("structure.u", "fluid.f", "signal.psi"):
        assert np.array_equal(result[name], expected[name])
    assert np.abs(result["signal.psi"]).max() > 0.0


@pytest.mark.slow
@pytest.mark.covers("IJ-42", "IJ-34")
def test_the_whole_cylinder_from_its_file():
    """16 s as the file says: 2.05 evaluations a step on average, as the reference code and as Python."""
    result = run(load_system(CYLINDER))
    expected = cylinder.simulate(cylinder.Cylinder(), 16.0)
    assert np.array_equal(result.iterations, expected.iterations)
    assert (result.iterations + 1).mean() == pytest.approx(2.05, abs=0.05)


@pytest.mark.covers("IJ-42", "IJ-34")
def test_known_entries_of_the_interface_jacobian_beside_a_secant(variant):
    """As in the source: derivatives of structure and controller are known, only that of the flow is a secant."""
    p = cylinder.Cylinder(on_at=0.05)
    a = 1.0 / (4.0 * p.m / p.h**2 + 2.0 * p.d / p.h + p.k)
    slope = p.K_P + 0.5 * p.h * p.K_I + p.K_D / p.h
    known = [
        ["structure.u", "fluid.f", -a],
        ["structure.u", "signal.psi", -p.k * a],
        ["signal.psi", "structure.u", slope],
    ]
    text = f'{{name = "secant", pairs = [["fluid.f", "structure.u"]], initial = 0.0, known = {known}}}'.replace(
        "'", '"'
    )
    lines = {"on_at": "0.0", "t_end": "0.05", "tol": "1e-12"}
    exact, found = run(variant(CYLINDER, **lines)), run(variant(CYLINDER, corrector=text, **lines))
    assert np.abs(found["structure.u"] - exact["structure.u"]).max() < 1e-12
    assert found.iterations.mean() < exact.iterations.mean() + 0.05
    without = text.partition(", known")[0] + "}"
    assert run(variant(CYLINDER, corrector=without, **lines)).iterations.mean() > 3.0 * found.iterations.mean()
