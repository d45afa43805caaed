"""Waveforms between samples: the spline with averaged knots, and an oscillator in two halves with substeps."""

import numpy as np
import pytest
from tests.precice.together import couple, iterations

from cosolve.participants.client import Waveform, spline_weights

K, K12 = 4 * np.pi**2, 16 * np.pi**2


def independent(times, values, degree, t):
    """The same spline by scipy's collocation, on the unit interval."""
    from scipy.interpolate import make_interp_spline

    T = np.asarray(times)
    inner = [T[j : j + degree].mean() for j in range(1, len(T) - degree)]
    knots = np.concatenate([[T[0]] * (degree + 1), inner, [T[-1]] * (degree + 1)])
    return float(make_interp_spline(T, values, k=degree, t=knots)(t))


@pytest.mark.covers("PX-07")
@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("t", [0.1, 0.35, 0.55, 0.93])
def test_spline_equals_an_independent_solution(degree, t):
    times = [0.0, 0.2, 0.5, 0.6, 1.0]
    values = np.sin(3 * np.array(times))
    got = Waveform(times, values[:, None], degree).at(t)[0]
    assert got == pytest.approx(independent(times, values, degree, t), abs=1e-13)


@pytest.mark.covers("PX-07")
def test_stored_times_are_met_exactly_and_degree_zero_takes_the_next_sample():
    times, values = [0.3, 0.4, 0.7], np.array([[1.1], [2.2], [3.3]])
    for degree in range(4):
        assert [Waveform(times, values, degree).at(t)[0] for t in times] == [1.1, 2.2, 3.3]
    assert Waveform(times, values, 0).at(0.35)[0] == 2.2
    assert Waveform(times, values, 0).at(0.41)[0] == 3.3
    assert spline_weights(times, 3, 0.5).sum() == pytest.approx(1.0, abs=1e-14)  # constants stay


def oscillator(degree=3):
    return f"""<precice-configuration>
  <data:scalar name="F1" waveform-degree="{degree}" /><data:scalar name="F2" waveform-degree="{degree}" />
  <mesh name="M1" dimensions="2"><use-data name="F1" /><use-data name="F2" /></mesh>
  <mesh name="M2" dimensions="2"><use-data name="F1" /><use-data name="F2" /></mesh>
  <participant name="Left">
    <provide-mesh name="M1" /><write-data name="F1" mesh="M1" /><read-data name="F2" mesh="M1" />
    <receive-mesh name="M2" from="Right" />
    <mapping:nearest-neighbor direction="read" from="M2" to="M1" constraint="consistent" />
    <mapping:nearest-neighbor direction="write" from="M1" to="M2" constraint="consistent" />
  </participant>
  <participant name="Right">
    <provide-mesh name="M2" /><write-data name="F2" mesh="M2" /><read-data name="F1" mesh="M2" />
  </participant>
  <m2n:sockets acceptor="Left" connector="Right" />
  <coupling-scheme:serial-implicit>
    <participants first="Left" second="Right" /><max-time value="1" /><time-window-size value="0.01" />
    <exchange data="F1" mesh="M2" from="Left" to="Right" initialize="true" substeps="true" />
    <exchange data="F2" mesh="M2" from="Right" to="Left" initialize="true" substeps="true" />
    <max-iterations value="200" />
    <relative-convergence-measure data="F1" mesh="M2" limit="1e-10" />
    <relative-convergence-measure data="F2" mesh="M2" limit="1e-10" />
  </coupling-scheme:serial-implicit>
</precice-configuration>"""


def newmark(u, v, a, force, dt, k):
    beta, gamma = 0.25, 0.5
    f = force(dt)
    free = u + dt * v + dt * dt * (0.5 - beta) * a
    a_new = (f - k * free) / (1.0 + beta * dt * dt * k)
    return free + beta * dt * dt * a_new, v + dt * ((1 - gamma) * a + gamma * a_new), a_new


def generalised_alpha(u, v, a, force, dt, k):
    alpha_f, alpha_m = 0.4, 0.2
    gamma = 0.5 - alpha_m + alpha_f
    beta = 0.25 * (gamma + 0.5)  # the value with which the count was measured (not its square)
    f = force((1 - alpha_f) * dt)
    mass = (1 - alpha_m) / (beta * dt * dt)
    stiff = k * (1 - alpha_f) + mass
    rhs = f - alpha_f * k * u + mass * u + (1 - alpha_m) / (beta * dt) * v + ((1 - alpha_m) / (2 * beta) - 1) * a
    u_new = rhs / stiff
    a_new = (u_new - u - dt * v) / (beta * dt * dt) - (1 - 2 * beta) / (2 * beta) * a
    return u_new, v + dt * ((1 - gamma) * a + gamma * a_new), a_new


def runge_kutta(u, v, a, force, dt, k):
    def rate(x, f):
        return np.array([x[1], f - k * x[0]])

    f0, fm, f1 = force(0.0), force(0.5 * dt), force(dt)
    x = np.array([u, v])
    s1 = rate(x, f0)
    s2 = rate(x + 0.5 * dt * s1, fm)
    s3 = rate(x + 0.5 * dt * s2, fm)
    s4 = rate(x + dt * s3, f1)
    x = x + dt / 6 * (s1 + 2 * s2 + 2 * s3 + s4)
    return float(x[0]), float(x[1]), a


def half(mesh, reads, writes, u0, other, integrator):
    k = K + K12

    def solver(p):
        ids = p.set_mesh_vertices(mesh, [[0.0, 0.0]])
        if p.requires_initial_data():
            p.write_data(mesh, writes, ids, [K12 * u0])
        p.initialize()
        u, v, a, t = u0, 0.0, K12 * other - k * u0, 0.0
        saved = (u, v, a, t)
        error, worst = 0.0, 0.0
        while p.is_coupling_ongoing():
            if p.requires_writing_checkpoint():
                saved = (u, v, a, t)
                worst = error
            dt = min(0.0025, p.get_max_time_step_size())
            u, v, a = integrator(u, v, a, lambda s: p.read_data(mesh, reads, ids, s)[0], dt, k)
            t += dt
            p.write_data(mesh, writes, ids, [K12 * u])
            p.advance(dt)
            error = max(error, abs(u - exact(t)[0 if u0 else 1]))
            if p.requires_reading_checkpoint():
                u, v, a, t = saved
                error = worst
        return error

    return solver


def exact(t):
    w1, w2 = np.sqrt(K), np.sqrt(K + 2 * K12)
    return 0.5 * (np.cos(w1 * t) + np.cos(w2 * t)), 0.5 * (np.cos(w1 * t) - np.cos(w2 * t))


@pytest.mark.covers("PX-07")
@pytest.mark.parametrize(
    ("integrator", "count", "error"),
    [
        pytest.param(newmark, 386, 1.62966618034e-3, id="newmark"),
        pytest.param(runge_kutta, 367, 1.168255e-7, id="runge-kutta", marks=pytest.mark.slow),
        pytest.param(generalised_alpha, 372, 9.0917260e-4, id="generalised-alpha", marks=pytest.mark.slow),
    ],
)
def test_oscillator_in_two_halves_with_substeps(integrator, count, error):
    solvers = {
        "Left": half("M1", "F2", "F1", 1.0, 0.0, integrator),
        "Right": half("M2", "F1", "F2", 0.0, 1.0, integrator),
    }
    got, coupling = couple(oscillator(), solvers)
    assert sum(iterations(coupling, "Right")) == count
    assert got["Left"] == pytest.approx(error, rel=1e-6)


@pytest.mark.covers("PX-07")
def test_the_number_of_substeps_may_change_between_iterations():
    """What converges is the same, whatever the samples were on the way."""
    from tests.precice.together import A_Y, B_X, POINTS, a_free, b_free, config, linear

    def varying(p):
        ids = p.set_mesh_vertices("MA", POINTS)
        p.requires_initial_data()
        p.write_data("MA", "Y", ids, a_free(0.0))
        p.initialize()
        t = saved = 0.0
        tries = 0
        while p.is_coupling_ongoing():
            if p.requires_writing_checkpoint():
                saved = t
            parts = 1 + tries % 4
            longest = p.get_max_time_step_size()
            for k in range(parts):
                dt = longest / parts if k < parts - 1 else p.get_max_time_step_size()
                value = A_Y @ p.read_data("MA", "X", ids, dt) + a_free(t + dt)
                p.write_data("MA", "Y", ids, value)
                p.advance(dt)
                t += dt
            tries += 1
            if p.requires_reading_checkpoint():
                t = saved
        return value

    quasi = """<max-iterations value="60" />
      <relative-convergence-measure data="X" mesh="MB" limit="1e-10" />
      <acceleration:IQN-ILS><data name="X" mesh="MB" /><data name="Y" mesh="MA" /></acceleration:IQN-ILS>"""
    got, _ = couple(config("parallel-implicit", quasi), {"A": varying, "B": linear("MB", "Y", "X", B_X, b_free, 2)})
    np.testing.assert_allclose(got["B"], [0.544325327375, 0.62158957447, 0.646378492156, 0.548273775027], atol=1e-8)
