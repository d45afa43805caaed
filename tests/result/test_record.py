"""Recording only what is asked for."""

import numpy as np
import pytest
from examples.two_mass.model import force_displacement

import cosolve as cs
from cosolve.run import engines

RUN = {"t_end": 0.01, "step": 1e-4, "method": cs.Jacobi(1)}


@pytest.mark.parametrize("saved", [False, True])
def test_the_chosen_quantities_have_the_same_bits(tmp_path, saved) -> None:
    whole = cs.simulate(force_displacement(), **RUN)
    names = [whole.names[-1], whole.names[0]]
    save = tmp_path / "part.h5" if saved else None
    part = cs.simulate(force_displacement(), **RUN, record=names, save=save)
    if saved:
        part = cs.load_result(save)
    assert part.names == names
    for name in names:
        np.testing.assert_array_equal(part[name], whole[name])
    assert part.column("y").shape[1] + part.column("z").shape[1] < whole.column("y").shape[1]
    np.testing.assert_array_equal(part.H, whole.H)


def test_fields_that_are_not_recorded_take_no_room() -> None:
    n = 20_000
    full = cs.Static(lambda t, u: [np.full(n, t), t], inputs=[], outputs=[("wide", n), "t"])
    field = cs.System({"a": full})
    result = cs.simulate(field, t_end=1.0, step=0.01, method=cs.Jacobi(0), record=["a.t"])
    assert result.column("y").nbytes < 10_000
    np.testing.assert_allclose(result["a.t"], result.t)


def test_nothing_but_the_steps() -> None:
    result = cs.simulate(force_displacement(), **RUN, record=[])
    assert result.names == []
    assert len(result.t) == 101


def test_unknown_names_are_refused_before_the_run() -> None:
    with pytest.raises(cs.errors.SetupError, match=r"record: there is no 'one.y'; did you mean"):
        cs.simulate(force_displacement(), **RUN, record=["one.y"])


def test_a_result_reads_the_columns_that_were_recorded():
    """Outputs, coupling variables by the input they feed, in its unit, and what the steps took."""
    ramp = cs.Static(lambda t, u: [t, -t], inputs=[], outputs=[("y", 2)])
    loop = cs.Static(lambda t, u: 0.5 * u + t, inputs=["u"], outputs=["y"])
    system = cs.System({"ramp": ramp, "loop": loop, "last": cs.Static(lambda t, u: u, inputs=["u"], outputs=["y"])})
    system.law("last.u", lambda y: 3.0 * y[1] + 1.0, of="ramp.y")
    system.connect("loop.y", "loop.u")
    run = cs.simulate(system, t_end=0.3, method=cs.Implicit(degree=0, tol=1e-9, corrector=cs.Relaxation(0.9)), step=0.1)
    assert run["ramp.y"] == pytest.approx(np.column_stack([run.t, -run.t]))
    assert run["last.u"] == pytest.approx(1.0 - 3.0 * run.t)
    assert run["loop.u"] == pytest.approx(2.0 * run.t, abs=1e-7)
    assert len(run) == len(run.t) == 4
    assert run.H == pytest.approx([0.1, 0.1, 0.1])
    assert (run.residual >= 0.0).all()
    assert run.residual.max() > 0.0
    assert (run.residual == run.column("residual")[1:]).all()
    assert [len(norms) for norms in run.residual_norms] == (run.iterations + 1).tolist()
    assert "last.u" in run
    for missing in ("last.v", "last.v[0]", "last.u[0]"):  # nor is there an element of a single number
        assert missing not in run
    assert (run["ramp.y[1]"] == -run.t).all()


@pytest.mark.parametrize("step", [0.1, cs.Adaptive(rtol=1e-3, first_step=0.05)], ids=["equal", "adaptive"])
def test_rows_that_are_handed_over_one_by_one_are_those_that_are_packed(monkeypatch, step):
    """As rows with wide fields are; the numbers of iterations differ from step to step."""
    columns = ("t", "y", "z", "H", "iterations", "residual", "error", "rejected", "calls", "norms_end", "norms")

    def run():
        gain = cs.Static(lambda t, u: 0.9 * np.sin(u * (1 + t)) + 1.0, inputs=["u"], outputs=["y"])
        tank = cs.Ode(lambda t, x, u: u - x, lambda t, x, u: x, x0=[0.3], inputs=["q"], outputs=["h"])
        system = cs.System({"gain": gain, "tank": tank})
        system.connect("gain.y", "tank.q")
        system.connect("tank.h", "gain.u")
        return cs.simulate(system, t_end=2.0, step=step, method=cs.Implicit(1, tol=1e-8), compiled=False)

    packed = run()
    monkeypatch.setattr(engines, "_WIDE", 0)
    single = run()
    assert len(set(packed.iterations)) > 1
    for name in columns:
        np.testing.assert_array_equal(single.column(name), packed.column(name), err_msg=name)
    assert single.stats.unconverged == packed.stats.unconverged
