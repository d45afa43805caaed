"""Cylinder with wake oscillator and PID control: fluid, structure, signal in one interface (Sicklinger (2014), 5.2)."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from examples.cylinder_control import run
from examples.cylinder_control.model import (
    WRONG_SIGN,
    Cylinder,
    State,
    Wake,
    amplitude,
    controller,
    frequency,
    method,
    monolithic,
    structure,
    system,
)

import cosolve as cs
from cosolve.signal import Polynomial

P = Cylinder()
SWITCH = 12.0


def held(value: float, h: float, t0: float = 0.0) -> Polynomial:
    return Polynomial(t0, h, np.array([[value]]))


def sampled(pid: cs.Pid, values: np.ndarray, h: float) -> np.ndarray:
    """Outputs for one input value per step."""
    pid.start(0.0)
    return np.array([float(pid.advance(n * h, (n + 1) * h, held(u, h, n * h))[0]) for n, u in enumerate(values)])


@pytest.fixture(scope="module")
def motion() -> np.ndarray:
    """The monolithic code over the time of the reference code: control from 12 s on."""
    return monolithic(P, 16.0)


# -- the controller ----------------------------------------------------------------------------------------


@pytest.mark.covers("IJ-33")
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_step_response_in_closed_form(sign: float) -> None:
    """Error E from the first sample on: psi_n = E (K_P + K_I h (n - 1/2)), and K_D E / h in that sample only."""
    h, E, n = 1e-2, 0.3, np.arange(1, 51)
    pid = cs.Pid(sign * 2.0, sign * 5.0, sign * 0.4, inputs=["u"], outputs=["psi"], u0=0.0)
    exact = E * (2.0 + 5.0 * h * (n - 0.5))
    exact[0] += 0.4 * E / h
    assert sampled(pid, np.full(50, -E), h) == pytest.approx(sign * exact, rel=1e-14)


@pytest.mark.covers("IJ-33")
def test_orders_of_integral_and_derivative() -> None:
    """For e(t) = sin t the trapezoidal integral converges with order two, the backward difference with order one."""
    steps = np.array([0.1, 0.05, 0.025])
    integral, derivative = [], []
    for h in steps:
        u = -np.sin(h * np.arange(1, round(2.0 / h) + 1))
        integral.append(abs(sampled(cs.Pid(0.0, 1.0, inputs=["u"], outputs=["psi"]), u, h)[-1] - (1.0 - np.cos(2.0))))
        derivative.append(abs(sampled(cs.Pid(0.0, 0.0, 1.0, inputs=["u"], outputs=["psi"]), u, h)[-1] - np.cos(2.0)))
    assert cs.analysis.convergence_order(steps, integral) == pytest.approx(2.0, abs=0.01)
    assert cs.analysis.convergence_order(steps, derivative) == pytest.approx(1.0, abs=0.05)


@pytest.mark.covers("IJ-33")
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("weight", [np.array([1.0]), np.array([0.0, 1.0]), np.array([0.25, 0.5, 0.125])])
def test_controller_jacobian(sign: float, weight: np.ndarray) -> None:
    """J3 = -+(K_P + K_I h/2 + K_D/h) by formula and, as the law is affine, by a difference of any size."""
    p = replace(P, sign=sign, on_at=0.0)
    pid = controller(p, p.first())
    pid.start(0.0)
    pid.advance(0.0, p.h, held(2e-4, p.h))
    before = pid.save()
    u = Polynomial(p.h, p.h, 1e-4 * np.arange(1.0, len(weight) + 1)[:, np.newaxis])
    J3 = float(pid.jacobian(p.h, 2 * p.h, u, weight)[0, 0])
    assert J3 == pytest.approx(-sign * (0.02 + 0.02 * 5e-4 / 2 + 0.01 / 5e-4) * weight.sum(), rel=1e-15)
    ends = []
    for eps in (-1.0, 1.0):
        pid.restore(before)
        moved = Polynomial(p.h, p.h, u.coefficients + eps * weight[:, np.newaxis])
        ends.append(float(pid.advance(p.h, 2 * p.h, moved)[0]))
    assert J3 == pytest.approx(0.5 * (ends[1] - ends[0]), rel=1e-13)


def test_controller_is_off_before_its_time_and_gives_no_kick() -> None:
    """Switched on while the error stands still, its first sample has the proportional and half an integral step."""
    pid = cs.Pid(2.0, 3.0, 4.0, inputs=["u"], outputs=["psi"], on_at=0.3)
    found = sampled(pid, np.full(5, -1.0), 0.1)
    assert found == pytest.approx([0.0, 0.0, 0.0, 2.0 + 3.0 * 0.1, 2.0 + 3.0 * 0.2], rel=1e-14)
    pid.start(0.0)
    assert not pid.jacobian(0.0, 0.1, held(1.0, 0.1), np.ones(1)).any()


def test_output_repeats_the_sample_for_other_inputs() -> None:
    """`output` after a step is what the step would have given for that input; one law for both."""
    pid = cs.Pid([1.0, 2.0], 0.5, [0.0, 0.1], inputs=[("u", 2)], outputs=[("psi", 2)], setpoint=[1.0, 0.0])
    pid.start(0.0)
    pid.advance(0.0, 0.1, Polynomial(0.0, 0.1, np.array([[0.3, -0.4]])))
    saved = pid.save()
    pid.advance(0.1, 0.2, Polynomial(0.1, 0.1, np.array([[0.1, 0.2]])))
    other = pid.output(0.2, np.array([0.7, -0.1]))
    pid.restore(saved)
    assert pid.advance(0.1, 0.2, Polynomial(0.1, 0.1, np.array([[0.7, -0.1]]))).tolist() == other.tolist()


def test_state_of_the_controller_travels() -> None:
    """Error (-0.3) and integral (-0.045) are all that the next sample needs: -0.9 - 2 * 0.105 - 3 * 6."""
    one, two = (cs.Pid(1.0, 2.0, 3.0, inputs=["u"], outputs=["psi"]) for _ in range(2))
    sampled(one, np.array([0.5, -0.2, 0.3]), 0.1)
    two.start(0.0)
    two.set_state(one.get_state())
    assert one.get_state() == pytest.approx([-0.3, -0.045])
    following = [float(pid.advance(0.3, 0.4, held(0.9, 0.1))[0]) for pid in (one, two)]
    assert following == pytest.approx([-19.11, -19.11], rel=1e-14)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"K_P": float("nan")}, "K_P must be a finite number"),
        ({"K_P": [1.0, 2.0]}, "K_P must be a finite number, or 1 of them"),
        ({"K_P": 1.0, "setpoint": "high"}, "setpoint must be"),
        ({"K_P": 1.0, "on_at": "soon"}, "on_at must be a time"),
        ({"K_P": 1.0, "outputs": ["a", "b"]}, "1 inputs but 2 outputs"),
    ],
)
def test_bad_controller_settings(options: dict, words: str) -> None:
    with pytest.raises(cs.errors.SetupError, match=words):
        cs.Pid(**{"inputs": ["u"], "outputs": ["psi"], **options})


# -- the coupled cylinder ----------------------------------------------------------------------------------


@pytest.mark.covers("IJ-34")
def test_structure_has_the_printed_derivatives() -> None:
    """a = 1 / (4 m/h^2 + 2 d/h + k) by the lift, k a by the root point."""
    body = structure(P, P.first())
    body.start(0.0)
    a = 1.0 / (4.0 * P.m / P.h**2 + 2.0 * P.d / P.h + P.k)
    J = body.jacobian(0.0, P.h, Polynomial(0.0, P.h, np.zeros((1, 2))), np.ones(1))
    assert J[0] == pytest.approx([a, P.k * a], rel=1e-13)


@pytest.mark.covers("IJ-34")
def test_wake_derivative() -> None:
    """df/du of a strongly moving wake against a central difference."""
    wake = Wake(P, State(5e-4, 0.02, -0.7, 2.5, 60.0, -3e3))
    wake.start(0.0)
    state, u, d = wake.save(), 5.1e-4, 1e-8
    exact = float(wake.jacobian(0.0, P.h, held(u, P.h), np.ones(1))[0, 0])
    ends = []
    for shifted in (u - d, u + d):
        wake.restore(state)
        ends.append(wake.advance(0.0, P.h, held(shifted, P.h)))
    assert exact == pytest.approx((ends[1] - ends[0]) / (2 * d), rel=1e-6)


@pytest.mark.covers("IJ-34")
def test_figures_of_the_monolithic_code(motion: np.ndarray) -> None:
    """The reference code: 7.0157 Hz, 7.14e-4 m = 0.446 D, 4.84e-6 m with control, 147 times less.

    Times of switching and measuring, and q(0), are not printed; they were searched for (docs/validation/sicklinger.md).
    """
    t, u = P.h * np.arange(len(motion)), motion[:, 0]
    free = (t > 2.0) & (t <= SWITCH)
    assert frequency(t[free], u[free]) == pytest.approx(7.0157, abs=5e-5)
    before, after = amplitude(t, u, SWITCH - 1.0, SWITCH), amplitude(t, u, 15.0, 16.0)
    assert before == pytest.approx(7.14e-4, abs=5e-7)
    assert before / P.diameter == pytest.approx(0.446, abs=5e-4)
    assert after == pytest.approx(4.84e-6, abs=5e-9)
    assert before / after == pytest.approx(147.0, abs=0.5)


@pytest.mark.sample(1)
@pytest.mark.covers("IJ-34")
@pytest.mark.parametrize(("begin", "end"), [(0.0, 0.6), (11.8, 12.8)])
def test_coupled_run_follows_the_monolithic_one(motion: np.ndarray, begin: float, end: float) -> None:
    """From rest, and through the switching, to rounding; two to three evaluations a step (reference code: 2.94)."""
    n = round(begin / P.h)
    first = State(*(float(x) for x in motion[n]))
    result = cs.simulate(system(P, first), t_start=begin, t_end=end, method=method(1e-12), step=P.h)
    reference = motion[n : n + len(result.t)]
    assert np.abs(result["structure.u"] - reference[:, 0]).max() < 1e-13
    assert np.abs(result["fluid.f"] - P.lift * reference[:, 3]).max() < 1e-13
    evaluations = result.iterations + 1
    assert 2.0 <= evaluations.mean() <= 3.0
    assert evaluations.max() <= 3


@pytest.mark.slow
@pytest.mark.covers("IJ-34")
def test_evaluations_at_the_tolerance_of_the_source(motion: np.ndarray) -> None:
    """max |r| < 1e-8 in m and N; control from 12 s; reference code: 2.05 evaluations on average, max. 3 (source: 4)."""
    first = State(*(float(x) for x in motion[round(11.5 / P.h)]))
    result = cs.simulate(system(P, first), t_start=11.5, t_end=14.0, method=method(1e-8), step=P.h)
    evaluations = result.iterations + 1
    assert 2.0 <= evaluations.mean() <= 4.0
    assert evaluations.mean() == pytest.approx(2.05, abs=0.1)
    assert evaluations.max() <= 3
    u, t = result["structure.u"], result.t
    assert amplitude(t, u, 11.5, 12.0) / amplitude(t, u, 13.2, 14.0) == pytest.approx(147.0, abs=1.0)


def test_saved_run_goes_on_bit_for_bit(tmp_path: Path) -> None:
    """Controller and wake keep everything that the next step needs in what they save."""
    p = replace(P, on_at=0.005)
    whole = cs.simulate(system(p), t_end=0.02, method=method(), step=p.h)
    cs.simulate(system(p), t_end=0.01, method=method(), step=p.h, save_state=tmp_path / "half.state")
    rest = cs.simulate(system(p), t_end=0.02, method=method(), step=p.h, resume=tmp_path / "half.state")
    assert rest["structure.u"].tobytes() == whole["structure.u"][-len(rest.t) :].tobytes()
    assert rest["signal.psi"].tobytes() == whole["signal.psi"][-len(rest.t) :].tobytes()


@pytest.mark.slow
@pytest.mark.covers("IJ-34")
def test_coupled_run_from_rest_to_rest(motion: np.ndarray) -> None:
    """The whole coupled run gives the figures of the reference code by itself."""
    result = cs.simulate(system(P), t_end=16.0, method=method(1e-8), step=P.h)
    t, u = result.t, result["structure.u"]
    free = (t > 2.0) & (t <= SWITCH)
    assert frequency(t[free], u[free]) == pytest.approx(7.0157, abs=5e-5)
    before, after = amplitude(t, u, SWITCH - 1.0, SWITCH), amplitude(t, u, 15.0, 16.0)
    assert before / P.diameter == pytest.approx(0.446, abs=5e-4)
    assert before / after == pytest.approx(147.0, abs=0.5)
    assert (result.iterations + 1).mean() == pytest.approx(2.05, abs=0.05)
    assert np.abs(u - motion[:, 0]).max() < 1e-4 * before


@pytest.mark.slow
def test_final_lock_in() -> None:
    """The amplitude at 12 s is not the final one: it goes on to 1.623 D at 7.0152 Hz."""
    states = monolithic(replace(P, on_at=None), 300.0)
    t, u = P.h * np.arange(len(states)), states[:, 0]
    late = t > 280.0
    assert frequency(t[late], u[late]) == pytest.approx(7.0152, abs=5e-5)
    assert amplitude(t, u, 280.0, 300.0) / P.diameter == pytest.approx(1.623, abs=1e-3)


@pytest.mark.covers("IJ-34")
def test_poles_for_both_signs() -> None:
    """The reference code: -9.77 +- 43.4i and -0.0196 with e = -u, +9.65 +- 42.6i with e = +u."""
    right, wrong = P.poles(), P.poles(-1.0)
    assert right[0] == pytest.approx(-9.77 + 43.4j, abs=0.05)
    assert right[0].real == pytest.approx(-9.77, abs=5e-3)
    assert right[2] == pytest.approx(-0.0196, abs=5e-5)
    assert wrong[0].real == pytest.approx(9.65, abs=5e-3)
    assert abs(wrong[0].imag) == pytest.approx(42.6, abs=0.05)


@pytest.mark.covers("IJ-34")
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_coupled_map_has_the_poles_of_the_loop(sign: float) -> None:
    """log(eigenvalues) / h of the macro step of cylinder and controller tend to the poles, with order one in h."""
    pole, steps, distance = P.poles(sign)[0], np.array([4e-4, 2e-4, 1e-4]), []
    for h in steps:
        p = replace(P, sign=sign, h=float(h), on_at=0.0)
        loop = cs.System({"structure": structure(p, p.first()), "signal": controller(p, p.first())})
        loop.set("structure.f", 0.0)
        loop.connect("structure.u", "signal.u")
        loop.connect("signal.psi", "structure.psi")
        eigenvalues = cs.analysis.amplification_matrix(loop, method(), float(h)).eigenvalues
        found = np.log(eigenvalues[np.abs(eigenvalues) > 0.5]) / h
        distance.append(np.abs(found - pole).min())
    assert distance[-1] < 0.02 * abs(pole)
    assert cs.analysis.convergence_order(steps, distance) == pytest.approx(1.0, abs=0.05)


@pytest.mark.slow
@pytest.mark.covers("IJ-34")
def test_wrong_sign_blows_up() -> None:
    """With e = +u the cylinder leaves at the rate of the pole: +9.65 per second over 0.8 s, a factor of 2000."""
    p = replace(WRONG_SIGN, on_at=0.0)
    result = cs.simulate(system(p, p.first()._replace(u=1e-5)), t_end=0.8, method=method(), step=p.h)
    u = np.abs(result["structure.u"])
    peaks = np.flatnonzero((u[1:-1] > u[:-2]) & (u[1:-1] > u[2:])) + 1
    rates = np.diff(np.log(u[peaks])) / np.diff(result.t[peaks])
    assert rates[1:].mean() == pytest.approx(9.65, rel=0.02)
    assert u.max() > 1000.0 * u[0]
    right = replace(P, on_at=0.0)
    calm = cs.simulate(system(right, right.first()._replace(u=1e-5)), t_end=0.8, method=method(), step=p.h)
    assert np.abs(calm["structure.u"]).max() <= 1e-5


@pytest.mark.slow
def test_table_and_pictures(tmp_path: Path, motion: np.ndarray) -> None:
    t = P.h * np.arange(len(motion))
    first = State(*(float(x) for x in motion[round(15.0 / P.h)]))
    late = replace(P, on_at=15.2)
    result = run.coupled(late, 15.0, first)
    lines = run.table(t, motion[:, 0], result, P).splitlines()
    assert lines[1].split()[-2:] == ["7.0157", "7.0157"]
    assert lines[5].split() == ["reduction", "147", "147.4"]
    run.draw_motion(tmp_path / "motion.png", result, t, motion[:, 0], motion[:, 0], late)
    run.draw_iterations(tmp_path / "iterations.png", {1e-8: result}, late)
    run.draw_signs(tmp_path / "signs.png", 0.2)
    for name in ("motion", "iterations", "signs"):
        path = tmp_path / f"{name}.png"
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size > 10_000
