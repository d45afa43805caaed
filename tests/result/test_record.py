"""Recording only what is asked for."""

import numpy as np
import pytest
from examples.two_mass.model import force_displacement

import cosolve as cs

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
    with pytest.raises(cs.SetupError, match=r"record: there is no 'one.y'; did you mean"):
        cs.simulate(force_displacement(), **RUN, record=["one.y"])
