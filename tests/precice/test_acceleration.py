"""Aitken and quasi-Newton inside configured schemes: counts near those measured, the same fixed point."""

import numpy as np
import pytest
from tests.precice.together import MEASURES, POINTS, config, couple, iterations, pair

from cosolve.corrector import Aitken, IqnIls, IqnImvj
from cosolve.precice.acceleration import Accelerator
from cosolve.precice.config import Acceleration

X = [0.544325327375, 0.62158957447, 0.646378492156, 0.548273775027]
Y = [0.345971170579, 0.330740358483, 0.422908838412, 0.641715477367]
ONE = '<data name="X" mesh="MB" />'
BOTH = ONE + '<data name="Y" mesh="MA" />'


def quasi(kind, data=ONE, more=""):
    return MEASURES + f"<acceleration:{kind}>{data}{more}</acceleration:{kind}>"


def near(values, expected, rel=1e-7):
    np.testing.assert_allclose(values, expected, rtol=0, atol=rel * np.abs(expected).max())


@pytest.mark.covers("PX-09")
def test_aitken_takes_the_iterations_measured():
    got, coupling = couple(config("serial-implicit", quasi("aitken")), pair())
    near(got["B"], X)
    assert abs(sum(iterations(coupling, "B")) - 136) <= 3


FILTER = '<initial-relaxation value="0.1" /><filter type="QR2" limit="1e-3" />'
CASES = {
    "IQN-ILS": ("serial-implicit", quasi("IQN-ILS"), 47),
    "IQN-ILS, five windows": (
        "serial-implicit",
        quasi("IQN-ILS", ONE, FILTER + '<time-windows-reused value="5" />'),
        46,
    ),
    "IQN-ILS, no reuse": ("serial-implicit", quasi("IQN-ILS", ONE, FILTER + '<time-windows-reused value="0" />'), 71),
    "IQN-IMVJ": ("serial-implicit", quasi("IQN-IMVJ"), 63),
    "parallel": ("parallel-implicit", quasi("IQN-ILS", BOTH), 31),
}


@pytest.mark.covers("PX-10")
@pytest.mark.parametrize("case", CASES)
def test_quasi_newton_needs_at_most_15_percent_more(case):
    scheme, body, measured = CASES[case]
    got, coupling = couple(config(scheme, body), pair())
    near(got["B"], X)
    near(got["A"], Y)
    assert sum(iterations(coupling, "B")) <= 1.15 * measured


@pytest.mark.covers("PX-10")
@pytest.mark.parametrize("kind", ["IQN-ILS", "IQN-IMVJ"])
def test_data_that_are_not_listed_follow(kind):
    """Only X builds the fit; Y is exchanged too and must come to the same fixed point."""
    got, coupling = couple(config("parallel-implicit", quasi(kind, ONE)), pair(2, 3))
    near(got["B"], X)
    near(got["A"], Y)
    assert max(iterations(coupling, "B")) < 60


@pytest.mark.covers("PX-10")
@pytest.mark.parametrize("kind", ["IQN-ILS", "IQN-IMVJ"])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_zero_state_and_a_residual_that_never_changes(kind, value):
    """Participants that write a constant: nothing to learn, nothing to divide by."""

    def constant(mesh, reads, writes):
        def solver(p):
            ids = p.set_mesh_vertices(mesh, POINTS)
            p.requires_initial_data()
            p.initialize()
            while p.is_coupling_ongoing():
                p.requires_writing_checkpoint()
                p.read_data(mesh, reads, ids, 0.1)
                p.write_data(mesh, writes, ids, np.full(4, value))
                p.advance(0.1)
                p.requires_reading_checkpoint()
            return p.read_data(mesh, reads, ids, 0.0)

        return solver

    body = quasi(kind, BOTH).replace("100", "20")
    got, _ = couple(config("parallel-implicit", body), {"A": constant("MA", "X", "Y"), "B": constant("MB", "Y", "X")})
    assert got["A"].tolist() == [value] * 4


@pytest.mark.covers("PX-10")
@pytest.mark.parametrize("corrector", [IqnIls, IqnImvj])
def test_followers_change_nothing_for_those_who_lead(corrector):
    """The rows that build the fit get the same bits with and without followers, and followers reach their own zero."""
    rng = np.random.default_rng(3)
    G = np.eye(3) + 0.4 * rng.normal(size=(3, 3))
    S = rng.normal(size=(2, 3))
    b, d = rng.normal(size=3), rng.normal(size=2)
    plain, wide = corrector(), corrector()
    plain.start_run(["a", "b", "c"])
    wide.start_run(["a", "b", "c"], 2)
    for step in range(3):
        plain.start_step()
        wide.start_step()
        z, s = np.full(3, float(step)), np.zeros(2)
        for _ in range(6):
            r = G @ z - b - step
            whole = np.concatenate([z, s])
            residual = np.concatenate([r, s - (S @ z + d)])
            z = plain.correct(z, r, None)
            moved = wide.correct(whole, residual, None)
            assert moved[:3].tolist() == z.tolist()
            s = moved[3:]
        plain.accept(z, G @ z - b - step)
        wide.accept(np.concatenate([z, s]), np.concatenate([G @ z - b - step, s - (S @ z + d)]))
        np.testing.assert_allclose(s, S @ z + d, atol=1e-6)


def test_aitken_begins_with_the_smaller_factor_and_its_sign():
    aitken = Aitken(initial=0.5, carry="smaller")
    aitken.start_run(["z"])
    for last, first in ((0.2, 0.2), (3.0, 0.5), (-0.3, -0.3), (-2.0, -0.5)):
        aitken._factor = np.array([last])
        aitken.start_step()
        assert aitken.factor[0] == first


@pytest.mark.covers("PX-10")
@pytest.mark.parametrize(
    ("rule", "expected"),
    [("ignore", [3.0, -1.0]), ("clamp", [2.0, 0.0]), ("discard", [1.0, 0.5]), ("scale", [5 / 3, 0.0])],
)
def test_corrections_beyond_the_bounds_of_data(rule, expected):
    """From (1, 0.5) to (3, -1) within 0 and 2: half of the first, a third of the second component is allowed."""
    tag = Acceleration("IQN-ILS", 0.1, violation=rule)
    accelerator = Accelerator(tag, [("M", "T")], {("M", "T"): (0.0, 2.0)})
    new = {("M", "T"): [(1.0, np.array([1.0, 0.5]))]}
    found = accelerator._bounded({("M", "T"): [(1.0, np.array([3.0, -1.0]))]}, new)
    np.testing.assert_allclose(found["M", "T"][0][1], expected, atol=1e-15)
