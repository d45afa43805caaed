"""What a correction leaves of the residual is in the error bar: a law with a Jacobian that is wrong leaves much."""

import numpy as np
import pytest

import cosolve as cs


def build(factor):
    def mass(x):
        A = [[0, 1], [-5, -0.5]]
        return cs.Linear(A, [[0], [1.0]], np.eye(2), x0=[x, 0.0], inputs=["f"], outputs=["x", "v"])

    system = cs.System({"a": mass(1.0), "b": mass(-0.5)})
    system.law(
        {"a.f": 1, "b.f": -1},
        lambda xa, va, xb, vb: 20.0 * (xb - xa) + (vb - va),
        of=["a.x", "a.v", "b.x", "b.v"],
        jacobian=lambda *values: factor * np.array([[-20.0, -1.0, 20.0, 1.0]]),
    )
    return system


@pytest.mark.filterwarnings("ignore::cosolve.errors.StabilityWarning")
@pytest.mark.parametrize("repeat", [True, False])
@pytest.mark.parametrize("factor", [0.5, 1.0, 1.3, 2.0])
def test_bars_cover_what_corrections_leave(factor, repeat):
    H, t_end = 0.05, 2.0
    exact = cs.simulate(build(1.0), t_end=t_end, method=cs.Implicit(2, tol=1e-12), step=H / 16)
    result = cs.simulate(build(factor), t_end=t_end, method=cs.SemiImplicit(1, repeat=repeat), step=H, error_bar=True)
    left = np.nanmax(result.residual)
    assert left > 0.05 if factor != 1.0 else left < 1e-9
    for name in ("a.x", "a.v", "b.x", "b.v"):
        error, bar = np.abs(result[name] - exact[name][::16]), result.error_bar.bar[name]
        assert (error <= bar + 1e-12).all()
        assert bar.max() < 4.0 * error.max()
