"""The examples run from the command line and leave their pictures behind."""

import importlib

import pytest

PICTURES = ("motion.png", "multipliers.png", "residuals.png", "energy.png", "motion.gif")


@pytest.mark.slow
@pytest.mark.parametrize(
    "example",
    [
        "universal_joint",
        pytest.param("spatial_four_bar", marks=pytest.mark.slow),
        pytest.param("body_chain", marks=pytest.mark.slow),
    ],
)
def test_quick_run_draws_everything(example, tmp_path, capsys):
    importlib.import_module(f"examples.{example}.run").main(["--quick", "--out", str(tmp_path)])
    assert "pictures in" in capsys.readouterr().out
    for name in PICTURES:
        assert (tmp_path / name).stat().st_size > 5000, name
