"""A single correction that leaves too much is repeated, and a step that has no good values is refused or shortened."""

import numba
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import cosolve as cs


def kelvin_voigt(ball, v_ball, table, v_table):
    gap = table - ball
    return max(2e4 * gap + 4.0 * (v_table - v_ball), 0.0) if gap > 0.0 else 0.0


def hertz(k):
    def law(ball, v_ball, table, v_table):
        return k * max(table - ball, 0.0) ** 1.5

    return law


M, K, C, G, DROP = 0.2, 400.0, 2.0, 9.81, 0.2


def dropped(law):
    """A ball falls on a table on a spring."""

    def part(stiffness, damping, mass, x0):
        A, B = [[0, 1], [-stiffness / mass, -damping / mass]], [[0, 0], [1 / mass, 1]]
        return cs.Linear(A, B, np.eye(2), x0=[x0, 0.0], inputs=["f", "g"], outputs=["x", "v"])

    system = cs.System({"ball": part(0, 0, M, DROP), "table": part(K, C, 1.0, 0.0)})
    system.law({"ball.f": 1, "table.f": -1}, law, of=["ball.x", "ball.v", "table.x", "table.v"], name="N")
    system.set("ball.g", -G)
    system.set("table.g", 0.0)
    return system


def energy(r):
    kinetic = 0.5 * M * r["ball.v"] ** 2 + 0.5 * r["table.v"] ** 2
    return kinetic + M * G * r["ball.x"] + 0.5 * K * r["table.x"] ** 2


def exact(law, t):
    def rhs(t, s):
        f = law(*s)
        return [s[1], f / M - G, s[3], -K * s[2] - C * s[3] - f]

    found = solve_ivp(rhs, (0, t[-1]), [DROP, 0, 0, 0], "DOP853", t_eval=t, rtol=1e-10, atol=1e-12, max_step=1e-3)
    return found.y


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("final_update", [True, False])
def test_step_control_sees_what_the_correction_leaves(degree, final_update):
    """One step covered the whole contact, and the ball left with 24 times its energy: the recorded force was 0."""
    method = cs.SemiImplicit(degree, final_update=final_update)
    result = cs.simulate(dropped(hertz(2e4)), t_end=1.0, method=method, step=cs.Adaptive(rtol=1e-4))
    assert energy(result).max() <= 1.001 * energy(result)[0]
    assert result.stats.rejected > 20
    assert np.abs(result["ball.x"] - exact(hertz(2e4), result.t)[0]).max() < 2e-3


def test_the_residual_counts_in_the_estimate():
    """A step whose coupling variables end where they were predicted, but with values that miss the law by 0.5."""
    control, one = cs.Adaptive(rtol=0.1), np.ones(1)
    assert control.estimate(one, one, one, one, np.zeros(1)) == 0.0
    assert control.estimate(one, one, one, one, np.full(1, -0.5)) == pytest.approx(2.5)
    smooth = control.estimate(one, 1.1 * one, one, one)
    assert control.estimate(one, 1.1 * one, one, one, np.full(1, 1e-3)) == smooth


def test_a_fixed_step_agrees_with_the_iteration():
    """A step is long for the contact: 1.6 J instead of 0.4 J, but no more."""
    runs = [
        cs.simulate(dropped(kelvin_voigt), t_end=1.0, method=method, step=1e-2)
        for method in (cs.SemiImplicit(1), cs.Implicit(1))
    ]
    assert runs[0]["ball.x"] == pytest.approx(runs[1]["ball.x"], abs=1e-6)


def tanks(law):
    """Two tanks with a pump between them."""

    def tank(h):
        return cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[h], inputs=["q"], outputs=["h"])

    system = cs.System({"a": tank(1.0), "b": tank(0.0)})
    system.law({"a.q": 1, "b.q": -1}, law, of=["a.h", "b.h"])
    return system


@pytest.mark.parametrize("law", [lambda a, b: round(100 * (b - a), 1), lambda a, b: int(100 * (b - a))])
def test_a_law_that_rounds(law):
    """Its difference quotients are zero or huge: a level of 0.23 came to -48 (and to -605), and nothing was said."""
    rounded = cs.simulate(tanks(law), t_end=1.0, method=cs.SemiImplicit(1), step=0.1)
    smooth = cs.simulate(tanks(lambda a, b: 100 * (b - a)), t_end=1.0, method=cs.SemiImplicit(1), step=0.1)
    assert np.abs(rounded["a.h"] - smooth["a.h"]).max() < 0.02
    assert np.abs(rounded.residual[1:]).max() < 1.5  # a unit of the rounding


def test_a_law_that_jumps_ends_the_run_in_words():
    """No value of q agrees with the step that it leads to: 1 raises the level above the switch, -1 lowers it."""
    system = tanks(lambda a, b: -1e3 if a - b > 0.02 else 1e3)
    with pytest.raises(
        cs.errors.ConvergenceError, match=r"finds no values that agree in the step from .* may jump"
    ) as failed:
        cs.simulate(system, t_end=1.0, method=cs.SemiImplicit(1), step=0.01)
    assert len(str(failed.value)) < 300


def test_check_says_so_before():
    advice = cs.check(tanks(lambda a, b: -1e3 if a - b > 0.98 else 1e3), cs.SemiImplicit(1), step=0.01)
    assert "no-solution" in advice.codes()
    assert "no-solution" not in cs.check(tanks(lambda a, b: b - a), cs.SemiImplicit(1), step=0.01).codes()


def test_what_repeated_corrections_leave_is_noted():
    """A law in units of 1 % of its size: no better values, and the run says what is missing."""
    result = cs.simulate(
        tanks(lambda a, b: 0.2 * round(100 * (b - a))), t_end=1.0, method=cs.SemiImplicit(0), step=0.05
    )
    assert "repeated corrections have left residuals" in result.stats.note("residual-not-small")
    assert "WARNING" in str(result)


def test_a_failed_iteration_shortens_a_controlled_step():
    """`Implicit` finds nothing over the whole contact; the run ended there."""
    result = cs.simulate(dropped(hertz(2e4)), t_end=1.0, method=cs.Implicit(1), step=cs.Adaptive(rtol=1e-4))
    assert np.abs(result["ball.x"] - exact(hertz(2e4), result.t)[0]).max() < 2e-3


@pytest.mark.parametrize("compiled", [False, True])
def test_both_engines_repeat(compiled):
    """A kink in every few steps: machine code hands such a step over, and the bits are the same."""
    stop = numba.njit(lambda a, b: 400.0 * max(b - a - 0.3, 0.0))

    def system():
        def mass(x):
            return cs.Linear([[0, 1], [-9, 0]], [[0], [1]], np.eye(2), x0=[x, 0], inputs=["f"], outputs=["x", "v"])

        made = cs.System({"one": mass(0.0), "two": mass(1.0)})
        made.law({"one.f": 1, "two.f": -1}, stop, of=["one.x", "two.x"], name="F")
        return made

    for step in (0.05, cs.Adaptive(rtol=1e-3)):
        method = cs.SemiImplicit(1, jacobian="difference")
        run = cs.simulate(system(), t_end=8.0, method=method, step=step, compiled=compiled)
        plain = cs.simulate(system(), t_end=8.0, method=method, step=step, compiled=False)
        assert run["one.x"].tobytes() == plain["one.x"].tobytes()
        assert (run.stats.compiled_steps > 0) is compiled
        assert run.iterations.tolist() == plain.iterations.tolist()
        if not isinstance(step, cs.Adaptive):
            assert run.iterations.max() > 1


A, B = np.array([[0, 1], [-200.0, -1.0]]), np.array([[0], [1.0]])
TS, KP, KD = 1e-3, 9e4, 350.0


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("H", [1e-3, 3e-3, 7e-4])
def test_a_jacobian_does_not_lead_across_an_event_at_the_end_of_a_step(degree, H):
    """A sampled controller: the difference of its output was the jump over the increment, and x(1 ms) 10 % off."""
    control = cs.HybridOde(
        lambda t, x, u: [0.0, 0.0],
        lambda t, x, u: x[0],
        x0=[KP, TS],
        inputs=["x", "v"],
        outputs=["u"],
        indicators=lambda t, x, u: x[1] - t,
        jump=lambda t, x, u, changed: [KP * (1 - u[0]) - KD * u[1], x[1] + TS] if changed[0] < 0 else x,
    )
    plant = cs.Linear(A, B, np.eye(2), x0=[0, 0], inputs=["u"], outputs=["x", "v"])
    system = cs.System({"p": plant, "c": control})
    for source, target in (("p.x", "c.x"), ("p.v", "c.v"), ("c.u", "p.u")):
        system.connect(source, target)
    method = cs.SemiImplicit(degree, repeat=False)
    result = cs.simulate(system, t_end=2.1e-2, method=method, step=H, stop_at_events=True)
    Z = np.zeros((3, 3))
    Z[:2, :2], Z[:2, 2:] = A, B
    at = int(np.argmin(np.abs(result.t - TS)))
    assert result["p.x"][at] == pytest.approx((expm(Z * TS) @ [0, 0, KP])[0], rel=1e-7)
    assert np.nanmax(np.abs(result.residual)) < 1e-6


# -- many cases ------------------------------------------------------------------------------------------------------


def a_contact(seed):
    rng = np.random.default_rng(seed)
    k, power, damping = 10 ** rng.uniform(2.5, 5), rng.choice([1.0, 1.5]), rng.choice([0.0, 1.0])

    def law(ball, v_ball, table, v_table):
        gap = table - ball
        return 0.0 if gap <= 0.0 else k * gap**power * max(1.0 + 0.3 * damping * (v_table - v_ball), 0.0)

    return rng, law


@pytest.mark.slow
def test_random_contacts_with_a_fixed_step():
    """What the run says nothing about is what the iteration finds."""
    silent, refused = [], []
    for seed in range(200):
        rng, law = a_contact(seed)
        H, degree = 10 ** rng.uniform(-3, -1.6), int(rng.integers(0, 3))
        try:
            right = cs.simulate(dropped(law), t_end=0.6, method=cs.Implicit(degree), step=H)
        except cs.CosolveError:
            right = None
        try:
            run = cs.simulate(dropped(law), t_end=0.6, method=cs.SemiImplicit(degree), step=H)
        except cs.errors.ConvergenceError as error:
            if right is not None:
                refused.append((seed, str(error)))
            continue
        size, y = np.abs(run["ball.x"]).max(), exact(law, run.t)[0]
        off, allowed = np.abs(run["ball.x"] - (y if right is None else right["ball.x"])).max() / size, 0.02
        if right is not None:  # of the size of what a step of this length costs anyhow
            allowed = max(allowed, 2.0 * np.abs(right["ball.x"] - y).max() / size)
        if off > allowed and not run.stats.note("residual-not-small"):
            silent.append((seed, off))
    assert (silent, refused) == ([], [])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:values grow:cosolve.errors.StabilityWarning")  # a force from zero does
def test_random_contacts_with_step_control():
    wrong = []
    for seed in range(200):
        rng, law = a_contact(seed)
        method = cs.SemiImplicit(int(rng.integers(1, 4)), final_update=bool(rng.integers(0, 2)))
        run = cs.simulate(dropped(law), t_end=0.6, method=method, step=cs.Adaptive(rtol=1e-4))
        off = np.abs(run["ball.x"] - exact(law, run.t)[0]).max() / DROP
        if off > 0.03 or energy(run).max() > 1.01 * energy(run)[0]:
            wrong.append((seed, off, energy(run).max() / energy(run)[0]))
    assert wrong == []


@pytest.mark.slow
def test_random_laws_that_round():
    """Off by some units of the rounding, or said; a sentence is no false one where the law has a unit of its size."""
    silent, refused = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        gain, unit, bias = 10 ** rng.uniform(-1, 2.5), 10 ** rng.uniform(-3, -1.5), rng.uniform(-0.3, 0.3)
        quantum, how = unit * gain, rng.choice([np.round, np.floor, np.trunc])

        def law(a, b, gain=gain, quantum=quantum, how=how, bias=bias):
            return quantum * float(how(gain * (b - a + bias) / quantum))

        H, degree = 10 ** rng.uniform(-2, -0.7), int(rng.integers(0, 3)) if gain < 5 else 0
        smooth = tanks(lambda a, b, gain=gain, bias=bias: gain * (b - a + bias))
        right = cs.simulate(smooth, t_end=1.0, method=cs.SemiImplicit(degree), step=H)
        try:
            run = cs.simulate(tanks(law), t_end=1.0, method=cs.SemiImplicit(degree), step=H)
        except cs.errors.ConvergenceError as error:
            missed = float(str(error).partition("misses its equation by ")[2].partition(" ")[0])
            if missed > 1.01 * quantum:  # on both sides of the jump the law is nearer than that
                refused.append((seed, str(error)))
            continue
        off = np.abs(run["a.h"] - right["a.h"]).max()
        if off > 3.0 * unit and not run.stats.note("residual-not-small"):
            silent.append((seed, off / unit, unit))
    assert (silent, refused) == ([], [])
