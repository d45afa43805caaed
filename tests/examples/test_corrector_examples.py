"""The examples that compare correctors run from the command line and leave their pictures behind."""

import pytest
from examples.added_mass_string import run as added_mass_string
from examples.algebraic_loop import run as algebraic_loop
from examples.newton_toy import run as newton_toy


@pytest.mark.parametrize(
    ("example", "options", "pictures", "printed"),
    [
        (newton_toy, [], ["paths.png", "residuals.png"], "T2.2  modified Newton: 17 rows"),
        (algebraic_loop, [], ["loop.png"], "0.3983194523366732"),
        pytest.param(
            *(added_mass_string, ["--quick"], ["iterations.png", "motion.png", "residuals.png"], "rho_f = 10"),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["newton_toy", "algebraic_loop", "added_mass_string"],
)
def test_an_example_prints_its_table_and_draws(example, options, pictures, printed, tmp_path, capsys):
    example.main(["--out", str(tmp_path), *options])
    assert sorted(path.name for path in tmp_path.iterdir()) == pictures
    assert printed in capsys.readouterr().out
