"""What cannot be compiled runs in the Python engine, and says why on request; failures keep their words."""

from types import SimpleNamespace

import numba
import numpy as np
import pytest
from examples.two_mass.model import force_displacement, lu, split

import cosolve as cs
from cosolve.engine.native import chunks, effort


def linear_pair() -> cs.System:
    return split("D/D", lu())


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (cs.Jacobi(1, outputs="exchanged"), "Jacobi is not compiled: its macro step uses the operation 'reevaluated'"),
        (cs.SemiImplicit(1, refresh="run"), "kept for a run"),
        (cs.Implicit(1, corrector=cs.Aitken()), "Newton per step or iteration is compiled"),
        (cs.Implicit(1, corrector=cs.Relaxation(), sweep="gauss-seidel"), "Newton per step or iteration is compiled"),
        (cs.LeaderFollower(1, leader="one"), "LeaderFollower is not compiled"),
    ],
)
def test_methods_that_are_not_compiled(method, words) -> None:
    assert words in cs.analysis.why_not_compiled(linear_pair(), method)


def test_systems_that_are_not_compiled(monkeypatch) -> None:
    monkeypatch.setattr(effort, "LOADING", 1e-3)
    monkeypatch.setattr(effort, "COMPILING", 0.0)
    plain = cs.Ode(lambda t, x, u: -x + float(str(u[0])), lambda t, x, u: x, x0=[1.0], inputs=["u"], outputs=["y"])
    tank = cs.Linear([[-1]], [[1]], [[1]], x0=[1], inputs=["u"], outputs=["y"])
    system = cs.System({"a": plain, "b": tank})
    system.connect("a.y", "b.u")
    system.connect("b.y", "a.u")
    why = str(cs.analysis.why_not_compiled(system, cs.Jacobi(1), 0.1))
    assert why.startswith("'a' cannot be advanced from compiled code: its rhs stays in Python: it uses str (")
    assert "(test_fallback.py, line " in why
    static = cs.System({"a": cs.Static(lambda t, u: 0.5 * u + 1, inputs=["u"], outputs=["y"])})
    static.connect("a.y", "a.u")
    assert "'a' (Static) has no compiled step" in cs.analysis.why_not_compiled(static, cs.Jacobi(1), 0.1)
    assert cs.analysis.why_not_compiled(linear_pair(), cs.Jacobi(1), cs.Adaptive()) is None
    assert cs.analysis.why_not_compiled(linear_pair(), cs.Jacobi(1), 1e-3) is None
    with pytest.raises(
        cs.errors.SetupError, match="compiled=True: 'a' cannot be advanced from compiled code: its rhs stays"
    ):
        cs.simulate(system, method=cs.Jacobi(1), step=0.1, t_end=1.0, compiled=True)
    result = cs.simulate(system, method=cs.Jacobi(1), step=1e-4, t_end=0.3)  # 3000 steps: long enough to want it
    assert result.finished
    assert result.stats.compiled_steps == 0


def test_a_right_hand_side_that_numba_cannot_compile() -> None:
    """Jitted, but not compilable: refused in words when asked for, run by the Python engine otherwise not at all."""

    @numba.njit
    def hopeless(t, x, u):
        return {"x": x}["y"].nothing

    @numba.njit
    def same(t, x, u):
        return x

    def build() -> cs.System:
        ode = cs.Ode(hopeless, same, x0=[1.0], inputs=["u"], outputs=["y"], integrator="ode1", internal_step=0.1)
        system = cs.System({"a": ode})
        system.connect("a.y", "a.u")
        return system

    assert "numba cannot compile it" in cs.analysis.why_not_compiled(build(), cs.Jacobi(0), 0.1)


def test_a_law_that_numba_cannot_compile(monkeypatch) -> None:
    """Asked for, the run is refused with the first line of the reason; else the Python engine takes all steps."""

    def fails(block, partials, y):
        raise TypeError("no implementation of function f\nfound for signature: ...")

    def run(compiled):
        parts = {name: cs.Linear([[-1]], [[1]], [[1]], x0=[1.0], inputs=["q"], outputs=["h"]) for name in "ab"}
        system = cs.System(parts)
        system.connect("a.h", "b.q")
        system.law("a.q", numba.njit(lambda h: 1.0 - 0.5 * h), of=["b.h"])
        return cs.simulate(system, method=cs.Jacobi(1), step=1e-2, t_end=1.0, compiled=compiled)

    readable = run(False)
    monkeypatch.setattr(chunks, "law_code", fails)
    monkeypatch.setattr(effort, "LOADING", 1e-3)
    monkeypatch.setattr(effort, "COMPILING", 0.0)
    monkeypatch.setattr(effort, "RUNNING", 1e-3)
    with pytest.raises(
        cs.errors.SetupError, match=r"compiled=True: numba cannot compile a law: no implementation of function f$"
    ):
        run(True)
    result = run(None)
    assert result.stats.compiled_steps == 0
    assert result["a.h"].tobytes() == readable["a.h"].tobytes()


def test_short_runs_do_not_load_the_compiler() -> None:
    result = cs.simulate(linear_pair(), method=cs.Jacobi(1), step=1e-3, t_end=0.1)
    assert result.stats.compiled_steps == 0


def test_long_runs_are_compiled_by_themselves(monkeypatch) -> None:
    monkeypatch.setattr(effort, "LOADING", 1e-3)
    monkeypatch.setattr(effort, "COMPILING", 0.0)
    monkeypatch.setattr(effort, "RUNNING", 1e-3)
    long = cs.simulate(linear_pair(), method=cs.Jacobi(1), step=1e-3, t_end=2.0)
    assert long.stats.compiled_steps == 1999
    assert "steps compiled" in str(long.stats)
    never = cs.simulate(linear_pair(), method=cs.Jacobi(1), step=1e-3, t_end=2.0, compiled=False)
    assert never.stats.compiled_steps == 0
    np.testing.assert_array_equal(long["one.x"], never["one.x"])


@pytest.mark.filterwarnings("ignore:values grow without bound:cosolve.errors.StabilityWarning")
def test_a_run_that_blows_up_says_the_same_and_keeps_the_same() -> None:
    """Unstable force/displacement coupling: the failing step is taken by the Python engine, in its words."""
    ended = []
    for compiled in (False, True):
        with np.errstate(all="ignore"), pytest.raises(cs.errors.NonFiniteError) as failure:
            cs.simulate(force_displacement(), method=cs.Jacobi(0), step=1e-3, t_end=50.0, compiled=compiled)
        ended.append((str(failure.value), failure.value.result))
    assert ended[0][0] == ended[1][0]
    np.testing.assert_array_equal(ended[0][1].column("y"), ended[1][1].column("y"))


def test_an_iteration_that_does_not_converge_says_the_same() -> None:
    @numba.njit
    def steep(x, v):
        return 5.0 * x**2 + 1.0

    def build() -> cs.System:
        mass = cs.Linear([[0, 1], [0, 0]], [[0], [1]], np.eye(2), x0=[0.1, 0], inputs=["f"], outputs=["x", "v"])
        system = cs.System({"a": mass})
        system.law("a.f", steep, of=["a.x", "a.v"])
        return system

    words = []
    for compiled in (False, True):
        with np.errstate(all="ignore"), pytest.raises(cs.errors.SimulationError) as failure:
            cs.simulate(build(), method=cs.Implicit(0, max_iterations=4), step=0.2, t_end=100.0, compiled=compiled)
        words.append(str(failure.value))
        assert len(failure.value.result.t) > 3
    assert words[0] == words[1]


def test_constants_may_change_between_runs() -> None:
    def tank() -> cs.Subsystem:
        return cs.Linear([[-1]], [[1, 1]], [[1]], x0=[1], inputs=["u", "q"], outputs=["y"])

    system = cs.System({"a": tank(), "b": tank()})
    system.connect("a.y", "b.u")
    system.connect("b.y", "a.u")
    for q in (0.0, -0.5):
        system.set("a.q", q)
        system.set("b.q", q)
        runs = [
            cs.simulate(system, method=cs.Jacobi(1), step=1e-2, t_end=1.0, compiled=compiled)
            for compiled in (False, True)
        ]
        np.testing.assert_array_equal(runs[0]["a.y"], runs[1]["a.y"])


@numba.njit
def falls(t, x, u):
    slope = np.empty(1)
    slope[0] = -1.0 + 0.0 * u[0]
    return slope


@numba.njit
def falls_into_a_hole(t, x, u):
    slope = np.empty(1)
    slope[0] = -1.0 if x[0] > 0.5 else 1.0 / (x[0] - x[0])
    return slope


@numba.njit
def level(t, x, u):
    return x


@numba.njit
def hole(a, b):
    return 1.0 if a > 0.5 else 1.0 / (a - b)


@pytest.mark.parametrize(
    ("where", "solver", "method"),
    [
        ("rhs", "ode4", cs.Jacobi(1)),
        pytest.param("rhs", "dopri5", cs.SemiImplicit(1), marks=pytest.mark.slow),  # compile for some seconds each
        pytest.param("rhs", "rodas4", cs.Jacobi(1), marks=pytest.mark.slow),
        ("law", "ode4", cs.Jacobi(1)),
        ("law", "ode4", cs.SemiImplicit(1)),
    ],
)
def test_what_raises_in_machine_code_is_raised(where, solver, method, capfd) -> None:
    """Machine code knows no exceptions: the step goes back to the Python engine, which raises the error again."""
    rhs, law = (falls_into_a_hole, None) if where == "rhs" else (falls, hole)
    h = 0.01 if solver == "ode4" else None
    ode = [
        cs.Ode(rhs, level, x0=[1.0], inputs=["f"], outputs=["x"], integrator=solver, internal_step=h) for _ in range(2)
    ]
    system = cs.System({"a": ode[0], "b": ode[1]})
    if law is None:
        system.connect("a.x", "b.f")
        system.connect("b.x", "a.f")
    else:
        system.law({"a.f": 1, "b.f": -1}, law, of=["a.x", "b.x"])
    raised = []
    for compiled in (False, True):
        with pytest.raises(cs.errors.SimulationError, match="division by zero") as caught:
            cs.simulate(system, method=method, step=0.01, t_end=1.0, compiled=compiled)
        raised.append(caught.value)
    assert str(raised[0]) == str(raised[1])
    np.testing.assert_array_equal(raised[0].result.t, raised[1].result.t)
    assert 0.45 < raised[1].result.t[-1] < 0.55
    assert raised[1].result.stats.compiled_steps > 20
    assert "ignored" not in capfd.readouterr().err  # how numba reports ignored exceptions


def test_a_right_hand_side_is_compiled_once_for_both_engines():
    """Compiling takes longer than most runs: the loop that the Python engine calls is the one in compiled runs."""
    import numba

    from cosolve.integrator import kernels

    @numba.njit
    def rhs(t, x, u):
        return u - x

    @numba.njit
    def output(t, x, u):
        return x

    lags = {name: cs.Ode(rhs, output, x0=[1.0], inputs=["u"], outputs=["y"], integrator="ode1", internal_step=0.1)
            for name in ("one", "two")}  # fmt: skip
    system = cs.System(lags)
    system.connect("one.y", "two.u")
    system.connect("two.y", "one.u")
    runs = [
        cs.simulate(system, t_end=1.0, step=0.1, method=cs.Jacobi(), compiled=compiled) for compiled in (True, False)
    ]
    assert runs[0]["one.y"].tobytes() == runs[1]["one.y"].tobytes()
    made = [kind for kind in kernels.compiled().fixed.signatures if kind[0] == numba.typeof(rhs)]
    assert len(made) == 1


@pytest.mark.parametrize(
    ("status", "words"), [(0, "'two' returned a NaN or an infinity while"), (3, "'two' failed with status 3 while")]
)
def test_a_compiled_subsystem_step_that_cannot_explain_itself_is_told_by_its_status(status, words) -> None:
    core = SimpleNamespace(plan=SimpleNamespace(names=("one", "two")))
    run = SimpleNamespace(
        wiring=SimpleNamespace(failure=np.array([1, status])), core=core, natives=2 * [SimpleNamespace(explain=None)]
    )
    error = chunks.Chunks.failed(run, 0.25)
    assert isinstance(error, cs.errors.NonFiniteError)
    assert str(error) == f"{words} advancing at t = 0.25"
    assert (error.subsystem, error.time) == ("two", 0.25)
