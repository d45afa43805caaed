"""The same participants under cosolve's methods: Newton, explicit, quasi-Newton with a predictor."""

import socket
import sys
import threading
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from tests.precice.test_waveforms import half, newmark, oscillator
from tests.precice.together import A_Y, B_X, LIMIT, MEASURES, config, couple, iterations, pair

import cosolve as cs
from cosolve.errors import CapabilityError, SubsystemError
from cosolve.participants.client import Connection
from cosolve.participants.hub import Hub
from cosolve.precice.config import Reader
from cosolve.precice.opt_in.precice import Participant
from cosolve.precice.subsystems import FirstRecords, joined, subsystems_of
from cosolve.signal.polynomial import Polynomial

FIXED = [0.544325327375, 0.62158957447, 0.646378492156, 0.548273775027]


@contextmanager
def gathered(text, solvers, rollback=True):
    """The system of participants in threads, and what they return at the end."""
    first_records = FirstRecords(Reader("config.xml", text.encode()).configuration)
    hub = Hub(first_records)
    results, threads = {}, []

    def work(name, solver, far):
        participant = Participant(name, "config.xml", 0, 1, connection=Connection(far), limit=LIMIT)
        try:
            results[name] = solver(participant)
            participant.finalize()
        except Exception as error:
            results[name] = error
            participant._inner.abandon()

    for name, solver in solvers.items():
        near, far = socket.socketpair()
        hub.take(near)
        threads.append(threading.Thread(target=work, args=(name, solver, far), daemon=True))
        threads[-1].start()
    hub.listen(lambda: first_records.done)
    subsystems = subsystems_of(first_records, hub, lambda name: "", rollback)
    why = ""
    try:
        yield joined(first_records.coupling, subsystems), subsystems, results
    except BaseException as error:
        why = str(error)
        raise
    finally:
        for subsystem in subsystems.values():
            subsystem.finish(why)
        for thread in threads:
            thread.join(LIMIT)
        hub.close()


TEXT = config("serial-implicit", MEASURES)


class Keeping(cs.Newton):
    """Newton that keeps the last interface Jacobian."""

    G = None

    def correct(self, z, r, problem):
        Keeping.G = np.asarray(problem.jacobian())
        return super().correct(z, r, problem)


@pytest.mark.covers("PX-19")
def test_newton_needs_one_correction_per_window_and_knows_the_spectral_radius():
    with gathered(TEXT, pair()) as (system, _, results):
        method = cs.Implicit(degree=0, tol=1e-10, corrector=Keeping(refresh="step"))
        result = cs.simulate(system, t_end=1.0, step=0.1, method=method)
    np.testing.assert_allclose(result["B.X"][-1], FIXED, rtol=0, atol=1e-9)
    np.testing.assert_allclose(results["B"], FIXED, rtol=0, atol=1e-9)  # the participant itself ended there
    assert result.stats.iterations <= 11  # two iterations per window; the first window has no guess from before
    plain = np.eye(8) - Keeping.G  # the parallel iteration; two of its sweeps are one serial iteration
    assert np.abs(np.linalg.eigvals(plain)).max() ** 2 == pytest.approx(2.4941, rel=0.01)
    assert np.abs(np.linalg.eigvals(A_Y @ B_X)).max() == pytest.approx(2.4941, rel=1e-4)


@pytest.mark.covers("PX-19")
def test_an_explicit_method_never_asks_to_save_and_gives_the_parallel_scheme():
    asked = []

    def asking(solver):
        def run(p):
            inner = p.requires_writing_checkpoint
            p.requires_writing_checkpoint = lambda: asked.append(inner()) or asked[-1]
            return solver(p)

        return run

    with gathered(TEXT, {name: asking(solver) for name, solver in pair().items()}, rollback=False) as (system, _, _):
        with pytest.raises(CapabilityError, match="rollback"):
            cs.simulate(system, t_end=1.0, step=0.1, method="implicit")
        result = cs.simulate(system, t_end=1.0, step=0.1, method=cs.Jacobi(degree=0))
    assert len(asked) == 20
    assert not any(asked)
    got, _ = couple(config("parallel-explicit"), pair())
    assert result["B.X"][-1].tolist() == got["B"].tolist()


@pytest.mark.covers("PX-19")
def test_a_program_cannot_begin_twice_nor_go_back_two_steps():
    with gathered(TEXT, pair()) as (system, subsystems, _):
        stepper = cs.Stepper(system, t_end=1.0, method=cs.Implicit(degree=0, tol=1e-10), step=0.1)
        stepper.step()
        here = subsystems["A"].save()
        stepper.step()
        stepper.step()
        with pytest.raises(
            SubsystemError, match=r"it can go back to the start of its last window, t = 0\.2, but not to"
        ):
            subsystems["A"].restore(here)
        with pytest.raises(SubsystemError, match="cannot begin again; start it anew"):
            subsystems["A"].start(0.0)


@pytest.mark.covers("PX-19")
def test_step_control_repeats_steps_that_fail():
    """Two halves of an oscillator: a rejected step is one more restore inside the participants."""
    halves = {
        "Left": half("M1", "F2", "F1", 1.0, 0.0, newmark),
        "Right": half("M2", "F1", "F2", 0.0, 1.0, newmark),
    }
    with gathered(oscillator(), halves) as (system, subsystems, results):
        control = cs.Adaptive(rtol=1e-3, first_step=0.08, max_step=0.1)
        with pytest.warns(
            cs.errors.AccuracyWarning, match=r"participant '(Left|Right)' writes 32 samples in a macro step"
        ):
            result = cs.simulate(system, t_end=0.5, step=control, method=cs.Implicit(degree=1, tol=1e-8))
    assert result.stats.rejected > 0
    assert len(np.unique(np.diff(result.t).round(9))) > 3
    assert results["Left"] < 0.02  # the participant's own largest error against the exact motion
    assert subsystems["Left"].subsystem_steps > len(result.t)


@pytest.mark.parametrize(("substeps", "told"), [("true", 1), ("false", 0)])
def test_that_only_the_last_sample_counts_is_said_once_where_the_file_carries_all(substeps, told, recwarn):
    text = config("serial-implicit", MEASURES, substeps=f'substeps="{substeps}"')
    recwarn.clear()
    warnings.simplefilter("always")
    with gathered(text, pair(substeps_a=3)) as (system, _, _):
        result = cs.simulate(system, t_end=0.3, step=0.1, method=cs.Implicit(degree=0, tol=1e-10))
    found = [str(one.message) for one in recwarn if one.category is cs.errors.AccuracyWarning]
    assert len(found) == told
    assert all("'A' writes 3 samples in a macro step; a coupling method takes the last one only" in f for f in found)
    with gathered(config("serial-implicit", MEASURES), pair()) as (system, _, _):
        single = cs.simulate(system, t_end=0.3, step=0.1, method=cs.Implicit(degree=0, tol=1e-10))
    assert np.array_equal(result["B.X"], single["B.X"])


@pytest.mark.covers("PX-19")
def test_inside_a_macro_step_the_polynomial_of_the_method_is_read():
    """Of every degree, at any time of the step, also in substeps; not a spline through some of its values."""
    chance, read = np.random.default_rng(7), []

    def reading(p):
        ids = p.set_mesh_vertices("MA", np.column_stack([np.arange(4), np.zeros(4)]))
        if p.requires_initial_data():
            p.write_data("MA", "Y", ids, np.zeros(4))
        p.initialize()
        while p.is_coupling_ongoing():
            p.requires_writing_checkpoint()
            longest = p.get_max_time_step_size()
            for part in (0.3, 0.4, 0.3):
                asked = np.append(chance.uniform(0.0, part, 5), [0.0, part]) * longest
                read.append([(after, p.read_data("MA", "X", ids, after)) for after in asked])
                p.advance(min(part * longest, p.get_max_time_step_size()))

    with gathered(TEXT, {**pair(), "A": reading}, rollback=False) as (_, subsystems, _), warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.errors.AccuracyWarning)
        one, step = subsystems["A"], 0.25
        one.start(0.0)
        signals = [Polynomial(k * step, step, chance.normal(size=(k + 1, 4))) for k in range(13)]
        for u in signals:
            one.advance(u.t0, u.t0 + step, u)
    for k, u in enumerate(signals):
        for part, begins in enumerate((0.0, 0.3, 0.7)):
            for after, values in read[3 * k + part]:
                here = u(u.t0 + begins * step + after)
                assert np.abs(values - here).max() <= 1e-12 * np.abs(u.coefficients).max(), (k, part, after)


# -- an elastic tube, nearly: pressure by the inertia of what flows, area by pressure ---------------------------

N, DT, END = 20, 0.02, 1.0
_LAPLACE = (N + 1) ** 2 * (2 * np.eye(N) - np.eye(N, k=1) - np.eye(N, k=-1))
INERTIA = np.linalg.inv(_LAPLACE)
WEIGHT = 2.5 * DT**2 / np.linalg.eigvalsh(INERTIA).max()
PLACES = np.column_stack([np.linspace(0, 1, N + 2)[1:-1], np.zeros(N)])


def tube(text_scheme, body):
    text = config(text_scheme, body, init=False, end=f'<max-time value="{END}" />')
    return text.replace('<time-window-size value="0.1" />', f'<time-window-size value="{DT}" />')


def walls():
    """The pair: area from pressure, a little stiffer when it is wide; and pressure from the motion of the area."""

    def solid(p):
        ids = p.set_mesh_vertices("MB", PLACES)
        p.initialize()
        while p.is_coupling_ongoing():
            p.requires_writing_checkpoint()
            dt = p.get_max_time_step_size()
            pressure = p.read_data("MB", "Y", ids, dt)
            p.write_data("MB", "X", ids, pressure / (1 + 0.1 * pressure**2))
            p.advance(dt)
            p.requires_reading_checkpoint()

    def fluid(p):
        ids = p.set_mesh_vertices("MA", PLACES)
        p.initialize()
        now, before, t = np.zeros(N), np.zeros(N), 0.0
        rows = []
        while p.is_coupling_ongoing():
            if p.requires_writing_checkpoint():
                saved = now, before, t
            dt = p.get_max_time_step_size()
            area = p.read_data("MA", "X", ids, dt)
            t += dt
            drive = np.sin(np.pi * t) ** 2 * (1 - PLACES[:, 0])
            pressure = drive - WEIGHT * INERTIA @ (area - 2 * now + before) / dt**2
            p.write_data("MA", "Y", ids, pressure)
            before, now = now, area
            p.advance(dt)
            if p.requires_reading_checkpoint():
                now, before, t = saved
            else:
                rows.append(pressure)
        return np.array(rows)

    return {"A": fluid, "B": solid}


def tube_measures(limit):
    return MEASURES.replace("1e-8", limit) + (
        '<acceleration:IQN-ILS><data name="X" mesh="MB" /><filter type="QR2" limit="1e-3" /></acceleration:IQN-ILS>'
    )


@pytest.mark.covers("PX-19")
def test_a_predictor_spares_a_quarter_of_the_solver_runs_at_no_larger_error():
    exact, _ = couple(tube("serial-implicit", tube_measures("1e-12")), walls())
    got, coupling = couple(tube("serial-implicit", tube_measures("1e-5")), walls())
    configured = sum(iterations(coupling, "B"))
    with gathered(tube("serial-implicit", tube_measures("1e-5")), walls()) as (system, subsystems, results):
        method = cs.Implicit(
            degree=0, tol=7e-7, corrector=cs.IqnIls(), sweep="gauss-seidel", order=["A", "B"], predictor=2
        )
        cs.simulate(system, t_end=END, step=DT, method=method)
    runs = subsystems["B"].subsystem_steps
    size = np.abs(exact["A"]).max()
    assert np.abs(results["A"] - exact["A"]).max() / size <= np.abs(got["A"] - exact["A"]).max() / size
    assert runs <= 0.75 * configured


@pytest.mark.slow
@pytest.mark.covers("PX-19")
def test_programs_run_by_the_command_with_a_method(tmp_path):
    from tests import processes
    from tests.precice.test_processes import SOLVER

    (tmp_path / "config.xml").write_text(TEXT)
    (tmp_path / "solver.py").write_text(SOLVER)
    command = [
        sys.executable,
        "-m",
        "cosolve.cli",
        "precice",
        "run",
        "config.xml",
        "--method",
        "implicit:1",
        "-o",
        "r.h5",
    ]
    for name in "AB":
        command += ["-p", f"{name}={sys.executable} solver.py {name} none"]
    told = processes.run(command, cwd=tmp_path, env=processes.environment())
    assert told.returncode == 0, told.stderr
    assert "Implicit(1) finished: t = 1, 10 macro steps" in told.stdout
    result = cs.load_result(tmp_path / "r.h5")
    np.testing.assert_allclose(result["B.X"][-1], FIXED, rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.load(tmp_path / "B.npy"), FIXED, rtol=0, atol=1e-9)


@pytest.mark.covers("PX-19")
def test_data_that_are_read_but_exchanged_by_no_scheme_are_zeros():
    """As in the schemes of the file: a participant that adds them to what it reads ends where it ended without them."""
    text = TEXT.replace('<mesh name="MA"', '<data:scalar name="Z" />\n  <mesh name="MA"', 1)
    text = text.replace('<mesh name="MB" dimensions="2">', '<mesh name="MB" dimensions="2"><use-data name="Z" />')
    text = text.replace(
        '<read-data name="Y" mesh="MB" />', '<read-data name="Y" mesh="MB" /><read-data name="Z" mesh="MB" />'
    )
    read = []

    def adding(solver):
        def run(p):
            inner = p.read_data

            def both(mesh, name, ids, dt):
                read.append(inner(mesh, "Z", ids, dt))
                return inner(mesh, name, ids, dt) + read[-1]

            p.read_data = both
            return solver(p)

        return run

    solvers = pair()
    with gathered(text, {"A": solvers["A"], "B": adding(solvers["B"])}) as (system, _, results):
        cs.simulate(system, t_end=1.0, step=0.1, method=cs.Implicit(degree=0, tol=1e-10, corrector=cs.Newton()))
    np.testing.assert_allclose(results["B"], FIXED, rtol=0, atol=1e-9)
    assert len(read) > 10
    assert not np.any(read)
