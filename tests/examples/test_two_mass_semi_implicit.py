"""The pictures of Figs. 12-14 in small."""

import numpy as np
import pytest
from examples.two_mass_semi_implicit import run


@pytest.mark.slow
def test_small_pictures(tmp_path):
    """Orders and regions that the pictures show, on tiny grids."""
    run.draw_x1(tmp_path / "x1.png", steps=(1e-2, 5e-3), t_end=0.1)
    steps = np.array([2e-3, 1e-3])
    errors = run.draw_convergence(tmp_path / "convergence.png", steps, t_end=0.1)
    for (_, k), found in errors.items():
        assert abs(np.log2(found[0] / found[1]) - (k + 1)) < 0.15
    maps = run.draw_stability(tmp_path / "stability.png", np.array([1e3, 1e5]), np.array([1.0, 1e2]))
    assert (maps["F/F", 0] < 1).all()
    assert (maps["F/F", 1] < 1).all()
    assert (maps["F/F", 2] > 1).tolist() == [[False, False], [True, False]]  # c = 1e5, d = 1 only
    assert (maps["D/D", 0] > 1).tolist() == [[True, False], [True, True]]
    assert {p.name for p in tmp_path.iterdir()} == {"x1.png", "convergence.png", "stability.png"}
