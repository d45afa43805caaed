"""Sampled parts: inputs taken every period, outputs held in between, under any method and step."""

import numpy as np
import pytest
import scipy.linalg

import cosolve as cs

A, B, C = np.array([[0.0, 1.0], [-4.0, -0.3]]), np.array([[0.0], [1.0]]), np.array([[1.0, 0.0]])
GAIN, PERIOD = -3.0, 0.1
METHODS = [cs.Jacobi(0), cs.Jacobi(2), cs.GaussSeidel(1), cs.SemiImplicit(1), cs.Implicit(2), cs.Implicit(0)]
BY_NAME = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.label)
STEPS = pytest.mark.parametrize(
    "step",
    [PERIOD, PERIOD / 4, 0.07, 0.31, cs.Adaptive(rtol=1e-2)],
    ids=["period", "quarter", "odd", "long", "adaptive"],
)


def filtered():
    """A controller with a state: `w' = -5 w + 5 u`, `q = GAIN w + 0.5 u`."""
    return cs.Linear([[-5]], [[5]], [[GAIN]], D=[[0.5]], x0=[0], inputs=["x"], outputs=["q"])


def loop(part, period=PERIOD):
    plant = cs.Linear(A, B, C, x0=[1, 0], inputs=["q"], outputs=["x"])
    system = cs.System({"plant": plant, "control": cs.Sampled(part, period)})
    system.connect("plant.x", "control.x")
    system.connect("control.q", "plant.q")
    return system


def expected(t, period=PERIOD):
    """The sampled loop by matrix exponentials: exact, since the plant's input is constant between samples."""
    x, w, rows, k, last = np.array([1.0, 0.0]), 0.0, [], 0, 0.0
    e, q = np.exp(-5.0 * period), None
    for now in t:
        while k * period <= now + 1e-9:
            x, last = _held(x, q, k * period - last), k * period
            u = x[0]
            q, w = GAIN * w + 0.5 * u, e * w + (1.0 - e) * u
            k += 1
        rows.append(_held(x, q, now - last)[0])
    return np.array(rows)


def _held(x, q, h):
    F = scipy.linalg.expm(h * np.block([[A, B], [np.zeros((1, 3))]]))
    return x if q is None else (F @ [*x, q])[:2]


@STEPS
@BY_NAME
def test_with_steps_that_end_at_samples_the_loop_is_exact(method, step):
    """Whatever the macro step is, the period is the period."""
    result = cs.simulate(loop(filtered()), t_end=2.0, method=method, step=step, stop_at_events=True)
    np.testing.assert_allclose(result["plant.x"], expected(result.t), rtol=0, atol=2e-9)


@BY_NAME
def test_a_period_is_no_step(method):
    """Twice the period is another loop, so the agreement above says something."""
    other = expected(np.linspace(0, 2, 21), 2 * PERIOD)
    assert np.abs(other - expected(np.linspace(0, 2, 21))).max() > 0.02
    result = cs.simulate(loop(filtered(), 2 * PERIOD), t_end=2.0, method=method, step=0.05, stop_at_events=True)
    np.testing.assert_allclose(result["plant.x"], expected(result.t, 2 * PERIOD), rtol=0, atol=2e-9)


@pytest.mark.filterwarnings("ignore:the others see each sample")
@pytest.mark.parametrize("method", [cs.Jacobi(0), cs.GaussSeidel(0)], ids=lambda method: method.label)
def test_without_it_the_others_hear_of_a_sample_one_macro_step_later(method):
    """First order in the macro step: the delay is what is left."""
    errors = []
    for n in (4, 8, 16):
        result = cs.simulate(loop(filtered()), t_end=2.0, method=method, step=PERIOD / n)
        np.testing.assert_array_equal(np.flatnonzero(np.diff(result["control.q"])) % n, 0)  # one jump a period
        errors.append(np.abs(result["plant.x"] - expected(result.t)).max())
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (np.abs(slopes - 1.0) < 0.15).all()


@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.GaussSeidel(1), cs.SemiImplicit(0), cs.Implicit(1)], ids=repr)
def test_it_is_told_that_the_others_see_samples_late(method):
    """A gain that the exact loop damps: macro steps of the period were 12 times the largest value off, in silence."""
    with pytest.warns(
        cs.errors.AccuracyWarning, match="see each sample of 'control' one macro step after it; take stop_at_"
    ):
        result = cs.simulate(loop(filtered()), t_end=2.0, method=method, step=PERIOD)
    assert np.abs(result["plant.x"] - expected(result.t)).max() > 0.05
    assert "late-samples" in {note.kind for note in result.notes}


@pytest.mark.parametrize(
    ("method", "options"),
    [
        (cs.Jacobi(1), {"stop_at_events": True}),
        (cs.GaussSeidel(0, order=["control"]), {}),
    ],
    ids=repr,
)
def test_nothing_is_said_where_no_sample_is_late(method, options):
    result = cs.simulate(loop(filtered()), t_end=2.0, method=method, step=PERIOD / 2, **options)
    np.testing.assert_allclose(result["plant.x"], expected(result.t), rtol=0, atol=2e-9)
    assert not result.notes


def test_outputs_are_held_between_samples():
    result = cs.simulate(loop(filtered()), t_end=1.0, method=cs.Jacobi(0), step=PERIOD / 5, stop_at_events=True)
    q = result["control.q"]
    assert (q[:-1].reshape(-1, 5) == q[:-1].reshape(-1, 5)[:, :1]).all()
    assert len(set(q)) == 11


@pytest.mark.filterwarnings("ignore:the others see each sample")
@BY_NAME
@pytest.mark.parametrize("step", [0.15, 0.04])
def test_samples_inside_a_macro_step_are_told(method, step):
    with pytest.warns(
        cs.errors.AccuracyWarning, match=r"a sample at t = \S+ lies inside the macro step from t = "
    ) as caught:
        cs.simulate(loop(filtered()), t_end=1.2, method=method, step=step)
    assert sum("lies inside" in str(one.message) for one in caught) == 1
    assert all(len(str(one.message)) < 300 for one in caught)


def test_driven_inputs_are_taken_where_the_sample_is():
    """Also with a kink inside the macro step, and where one step holds several samples."""
    system = cs.System({"c": cs.Sampled(cs.Static(lambda t, u: u, inputs=["u"], outputs=["y"]), 0.1)})
    system.set("c.u", cs.Table([0.0, 0.25, 0.5, 1.0], [0.0, 1.0, -1.0, 3.0]))
    result = cs.simulate(system, t_end=1.0, method=cs.Jacobi(1), step=0.05, stop_at_events=True)
    k = np.floor(result.t / 0.1 + 1e-9)
    want = np.interp(0.1 * k, [0.0, 0.25, 0.5, 1.0], [0.0, 1.0, -1.0, 3.0])
    np.testing.assert_allclose(result["c.y"], want, atol=1e-12)


def test_a_part_without_direct_feedthrough_shows_what_it_came_to():
    """A sample later: the usual model of a controller that needs its period to compute."""
    part = cs.Linear([[0]], [[1]], [[1]], x0=[0], inputs=["u"], outputs=["y"])
    system = cs.System({"c": cs.Sampled(part, 0.5)})
    system.set("c.u", 2.0)
    result = cs.simulate(system, t_end=2.0, method=cs.Jacobi(0), step=0.25, stop_at_events=True)
    np.testing.assert_allclose(result["c.y"], [0, 0, 1, 1, 2, 2, 3, 3, 4], atol=1e-14)


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize("step", [0.1, 0.025, cs.Adaptive(rtol=1e-2)], ids=["same", "quarter", "adaptive"])
def test_an_fmu_of_one_step_length_is_free_of_the_macro_step(fmi, step):
    """Alone it would refuse each step but its own."""
    from tests.fmu.zoo.members import animal

    control = cs.load_fmu(animal("samples", fmi), parameters={"gain": -1.0}, start={"x": 0.0})
    plant = cs.Linear(A, B, C, x0=[1, 0], inputs=["f"], outputs=["x"])
    system = cs.System({"plant": plant, "control": cs.Sampled(control, 0.1)})
    system.connect("plant.x", "control.u")
    system.connect("control.y", "plant.f")
    result = cs.simulate(system, t_end=2.0, method=cs.Jacobi(1), step=step, stop_at_events=True)
    x, force, want = np.array([1.0, 0.0]), 0.0, {}
    for k in range(20):
        want[round(0.1 * k, 9)] = x[0]
        following = -2.0 * x[0]
        x, force = _held(x, force, 0.1), following
    at = np.isin(result.t.round(9), list(want))
    assert at.sum() == 20
    np.testing.assert_allclose(result["plant.x"][at], list(want.values()), rtol=0, atol=1e-8)


def test_a_saved_run_goes_on_with_the_same_bits(tmp_path):
    """In this process and through a file, also in the middle of a period."""
    whole = cs.simulate(loop(filtered()), t_end=1.0, method=cs.SemiImplicit(1), step=0.025, stop_at_events=True)
    half = tmp_path / "half.state"
    first = cs.Stepper(loop(filtered()), method=cs.SemiImplicit(1), step=0.025, t_end=1.0, stop_at_events=True)
    first.run_until(0.45)
    first.save().write(half)
    second = cs.simulate(
        loop(filtered()), t_end=1.0, method=cs.SemiImplicit(1), step=0.025, stop_at_events=True, resume=half
    )
    np.testing.assert_array_equal(second["plant.x"][-20:], whole["plant.x"][-20:])


@pytest.mark.parametrize("bad", [0.0, -1.0, "fast", None])
def test_a_period_is_a_positive_number(bad):
    with pytest.raises(cs.errors.SetupError, match="Sampled: period must be a positive number"):
        cs.Sampled(filtered(), bad)


def test_the_part_is_a_subsystem():
    with pytest.raises(cs.errors.SetupError, match="Sampled: part must be a subsystem"):
        cs.Sampled(lambda u: u, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_random_sampled_loops(seed):
    """Plants, controllers, periods, methods and steps drawn by lot, against matrix exponentials."""
    rng = np.random.default_rng(seed)
    n, m, period = int(rng.integers(1, 4)), int(rng.integers(1, 3)), float(rng.uniform(0.02, 0.3))
    Ap = rng.normal(size=(n, n)) - 1.5 * np.eye(n)
    Bp, Cp, x = rng.normal(size=(n, 1)), rng.normal(size=(1, n)), rng.normal(size=n)
    Ac, Bc, Cc = rng.normal(size=(m, m)) - 2.0 * np.eye(m), rng.normal(size=(m, 1)), 0.5 * rng.normal(size=(1, m))
    D, w = 0.5 * float(rng.normal()) * float(rng.integers(0, 2)), rng.normal(size=m)
    extra = {"D": [[D]]} if D else {}
    plant = cs.Linear(Ap, Bp, Cp, x0=x, inputs=["q"], outputs=["x"])
    control = cs.Linear(Ac, Bc, Cc, x0=w, inputs=["x"], outputs=["q"], **extra)
    system = cs.System({"plant": plant, "control": cs.Sampled(control, period)})
    system.connect("plant.x", "control.x")
    system.connect("control.q", "plant.q")
    method = METHODS[int(rng.integers(len(METHODS)))]
    step = [float(rng.uniform(0.01, 0.5)), cs.Adaptive(rtol=1e-2)][int(rng.integers(2))]
    result = cs.simulate(system, t_end=1.0, method=method, step=step, stop_at_events=True)
    Fc = scipy.linalg.expm(period * np.block([[Ac, Bc], [np.zeros((1, m + 1))]]))
    grid = {}
    for k in range(int(1.0 / period) + 1):
        u = float(Cp[0] @ x)
        q = float(Cc[0] @ w) + D * u
        grid[k] = x.copy(), q
        w = (Fc @ [*w, u])[:m]
        x = (scipy.linalg.expm(period * np.block([[Ap, Bp], [np.zeros((1, n + 1))]])) @ [*x, q])[:n]
    for t, found in zip(result.t, result["plant.x"], strict=True):
        k = min(int(t / period + 1e-9), len(grid) - 1)
        x, q = grid[k]
        F = scipy.linalg.expm((t - k * period) * np.block([[Ap, Bp], [np.zeros((1, n + 1))]]))
        assert found == pytest.approx(
            float(Cp[0] @ (F @ [*x, q])[:n]), abs=1e-7 * (1.0 + np.abs(result["plant.x"]).max())
        )
