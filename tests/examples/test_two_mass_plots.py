"""The pictures of the two-mass example: every figure is drawn, and its data show what the picture is for."""

from pathlib import Path

import numpy as np
import pytest
from examples.two_mass import run
from tests.choice import quick

TINY = run.Settings(
    steps=(1e-4, 5e-5),
    short_steps=(5e-6,),
    tolerances=(1e-1, 1e-3),
    degrees=(1, 2),
    t_end=0.01,
    t_short=0.005,
)


@pytest.mark.parametrize("name", quick(run.FIGURES, "gauss_seidel", "jacobi_trivial_start"))
def test_every_figure_is_drawn(name: str, tmp_path: Path) -> None:
    """A tiny version of each study ends in a picture that is not empty (`jacobi`, `error_control`: below)."""
    path = run.draw(name, tmp_path, TINY)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 10_000


def test_curves_have_the_slopes_of_their_guide_lines(tmp_path: Path) -> None:
    """Global error of Jacobi over the macro step: order p + 1 (0.1 s is enough to see it)."""
    errors = run.jacobi(tmp_path / "jacobi.png", TINY)
    for p, rows in errors.items():
        order = np.log(rows[0, 1] / rows[1, 1]) / np.log(rows[0, 0] / rows[1, 0])
        assert order == pytest.approx(p + 1, abs=0.3)


def test_a_tighter_tolerance_gives_smaller_steps(tmp_path: Path) -> None:
    """What the figure over the tolerance shows for degrees 1 and 2."""
    for rows in run.error_control(tmp_path / "error_control.png", TINY).values():
        assert rows[1, 3] < rows[0, 3]
        assert rows[1, 2] < rows[0, 2]


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    """`--out` says where; every picture is named on the way."""
    monkeypatch.setattr(run, "QUICK", TINY)
    monkeypatch.setattr(run, "FIGURES", {"master_slave": run.master_slave})
    run.main(["--quick", "--jobs", "1", "--out", str(tmp_path / "new" / "folder")])
    assert (tmp_path / "new" / "folder" / "master_slave.png").exists()
    assert "master_slave.png" in capsys.readouterr().out
