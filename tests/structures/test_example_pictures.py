"""The examples of this folder end in a table and in pictures that are not empty."""

from dataclasses import replace
from pathlib import Path

from examples.three_mass_chain import run as chain
from examples.truss_truss import run as truss
from examples.truss_truss.model import SOURCE, monolithic
from examples.two_springs import run as springs
from examples.two_springs.model import KINDS, radius


def drawn(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 10_000


def test_truss_table_and_pictures(tmp_path: Path) -> None:
    p = replace(SOURCE, steps=6)
    reference = monolithic(p)
    found = [truss.run_row(row, p, reference) for row in truss.ROWS if row.label.startswith("basic")]
    lines = truss.table(found).splitlines()
    assert lines[2].split()[:6] == ["basic", "IJCSA", "785", "785", "24", "2526"]
    assert [len(norms) for norms in found[0].result.residual_norms] == [4] * 6
    assert found[0].result.residual_norms[0][-1] < truss.TOL
    truss.draw_motion(tmp_path / "motion.png", found[0], reference)
    truss.draw_iterations(tmp_path / "iterations.png", found)
    assert drawn(tmp_path / "motion.png")
    assert drawn(tmp_path / "iterations.png")


def test_three_mass_chain_pictures(tmp_path: Path) -> None:
    steps = [0.02, 0.01]
    found = {label: chain.errors(case, steps) for label, case in chain.CASES.items()}
    assert found["3.4  GA / BDF2, force held"][-1, 0] > 3 * found["3.6  GA / BDF2, force interpolated"][-1, 0]
    chain.draw_orders(tmp_path / "orders.png", steps, found)
    chain.draw_levels(tmp_path / "levels.png", h=0.05)
    assert drawn(tmp_path / "orders.png")
    assert drawn(tmp_path / "levels.png")


def test_two_springs_map(tmp_path: Path) -> None:
    springs.draw(tmp_path / "jacobi.png", KINDS, radius, 40)
    assert drawn(tmp_path / "jacobi.png")
