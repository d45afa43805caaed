"""Fields measured as a whole (`Implicit(norm="fields")`): what converges when, and in which engine."""

import numpy as np
import pytest

import cosolve as cs


def method(**options: object) -> cs.Implicit:
    return cs.Implicit(degree=0, sweep="gauss-seidel", corrector=cs.Relaxation(1.0), **options)


@pytest.mark.parametrize("scale", [1.0, 1e-9])
def test_a_field_needs_no_nominal_value(scale: float) -> None:
    """The same problem in other units takes the same iterations; measured by entries too."""
    g = scale * np.linspace(1, 2, 3)
    counts = []
    for norm in ("fields", "entries"):
        one = cs.Ode(
            lambda t, x, w: 10 * (0.5 * w + g * t - x),
            lambda t, x, w: x,
            x0=np.zeros(3),
            inputs=[("w", 3)],
            outputs=[("u", 3)],
        )
        other = cs.Static(lambda t, u: 0.9 * u, inputs=[("u", 3)], outputs=[("w", 3)])
        system = cs.System({"one": one, "other": other})
        system.connect("one.u", "other.u")
        system.connect("other.w", "one.w")
        run = cs.simulate(system, t_end=0.5, method=method(tol=1e-6, norm=norm), step=0.1)
        counts.append(run.iterations.sum())
        if norm == "fields":
            assert all(norms[-1] <= 1e-6 and (np.array(norms[:-1]) > 1e-6).all() for norms in run.residual_norms)
            assert counts[0] > 10
    assert counts[0] >= counts[1] > 10  # by entries the magnitudes seen so far are the scale as well


def test_a_field_that_is_zero_has_converged() -> None:
    zero = cs.Static(lambda t, w: 0.5 * w, inputs=[("w", 3)], outputs=[("u", 3)])
    same = cs.Static(lambda t, u: u, inputs=[("u", 3)], outputs=[("w", 3)])
    system = cs.System({"zero": zero, "same": same})
    system.connect("zero.u", "same.u")
    system.connect("same.w", "zero.w")
    run = cs.simulate(system, t_end=1.0, method=method(tol=1e-6, norm="fields"), step=0.5)
    assert run.iterations.sum() == 0
    assert not run["zero.u"].any()


def test_the_norm_of_the_source() -> None:
    """Eq. 2.83 of Sicklinger (2014): the 2-norm of a field's residual over sqrt(n), in its unit, whatever its size."""
    c = np.array([3000.0, -4000.0, 0.0, 50.0])
    one = cs.Static(lambda t, w: 0.5 * w + c * t, inputs=[("w", 4)], outputs=[("u", 4)])
    same = cs.Static(lambda t, u: u, inputs=[("u", 4)], outputs=[("w", 4)])
    system = cs.System({"one": one, "same": same})
    system.connect("one.u", "same.u")
    system.connect("same.w", "one.w")
    tol = 1e-3
    run = cs.simulate(system, t_end=1.0, method=method(tol=tol, norm="fields", absolute=True), step=1.0)
    norms = np.array(run.residual_norms[0])
    assert norms[0] == pytest.approx(np.linalg.norm(c) / 2)  # from 0 at the start to c in the first sweep
    assert norms[1:] == pytest.approx(0.5 * norms[:-1], rel=1e-6)
    assert norms[-1] <= tol < norms[-2]
    error = run["one.u"][-1] - 2 * c
    assert np.linalg.norm(error) / 2 == pytest.approx(norms[-1], rel=1e-4)  # what the sweeps to come would add


def test_what_cannot_work_is_said() -> None:
    with pytest.raises(cs.errors.SetupError, match="norm must be"):
        cs.Implicit(norm="largest")
    one, two = (cs.Linear([[-1]], [[1]], [[1]], x0=[x], inputs=["f"], outputs=["x"]) for x in (0, 1))
    system = cs.System({"one": one, "two": two})
    system.connect("one.x", "two.f")
    system.connect("two.x", "one.f")
    with pytest.raises(cs.errors.SetupError, match="norms of whole fields belong to the Python engine"):
        cs.simulate(system, t_end=1.0, method=cs.Implicit(norm="fields"), step=0.1, compiled=True)
