"""The error bar of a coupled run against its true coupling error, and the runs that must not get one."""

import numpy as np
import pytest
from examples.three_mass_chain.model import exact
from examples.three_mass_chain.model import split as chain
from examples.two_mass.model import SCHMOLL, TwoMass, force_displacement, lu, split

import cosolve as cs
from cosolve.accuracy.shadow import Track, distance

SPLIT = {"one.x": 0, "one.v": 1, "two.x": 2, "two.v": 3}
WHOLE = cs.RisingDegree()


def truth(result, p):
    """The exact outputs of the two masses at the macro points."""
    states = np.array([p.flow(t) @ np.array([p.x1, p.v1, p.x2, p.v2]) for t in result.t])
    found = {name: states[:, k] for name, k in SPLIT.items()}
    return {**found, "two.F": p.force(states)}


def quotients(system, p, result):
    """Estimate over true error, and the true error relative to its output, for every output."""
    found, right = cs.error_bar(system, result), truth(result, p)
    assert found.reason is None
    errors = {name: np.abs(result[name] - right[name]).max() for name in found.bar}
    relative = max(error / np.abs(right[name]).max() for name, error in errors.items())
    return [found.estimate[name].max() / error for name, error in errors.items()], relative


@pytest.mark.covers("TR-01")
@pytest.mark.parametrize(
    ("kind", "method", "startup", "error"),
    [
        ("F/F", cs.Jacobi(2), WHOLE, 2.84e-3),
        ("F/D", cs.GaussSeidel(1), WHOLE, 2.84e-3),
        ("F/F", cs.Jacobi(3), None, 2.1e-5),  # the first macro step is advanced in pieces
        ("F/D", cs.GaussSeidel(3), None, 1.7e-5),
    ],
)
def test_the_shadow_of_an_explicit_run_shows_its_error(kind, method, startup, error):
    system = split(kind)
    result = cs.simulate(system, t_end=0.5, method=method, step=0.5 / 256, startup=startup)
    found, relative = quotients(system, lu(), result)
    assert relative == pytest.approx(error, rel=0.05)
    assert 0.95 < min(found) <= max(found) < 1.05


@pytest.mark.covers("TR-02")
@pytest.mark.parametrize(
    ("system", "p", "t_end", "method", "error"),
    [
        (force_displacement(), SCHMOLL, 0.02, cs.SemiImplicit(1), 7.22e-3),
        (force_displacement(), SCHMOLL, 0.02, cs.SemiImplicit(2), 4.25e-4),
        (split("F/F"), lu(), 0.5, cs.SemiImplicit(3), 4.90e-5),
        (split("F/F"), lu(), 0.5, cs.Implicit(2), 4.90e-5),
    ],
)
def test_the_start_of_implicit_runs_is_seen(system, p, t_end, method, error):
    result = cs.simulate(system, t_end=t_end, method=method, step=t_end / 256, startup=WHOLE)
    found, relative = quotients(system, p, result)
    assert relative == pytest.approx(error, rel=0.02)
    assert 0.97 < min(found) <= max(found) < 1.03


@pytest.mark.covers("TR-08")
@pytest.mark.parametrize("method", [cs.Jacobi(2), cs.GaussSeidel(2), cs.SemiImplicit(2)])
def test_steps_of_any_length(method):
    system = force_displacement()
    result = cs.simulate(system, t_end=0.02, method=method, step=cs.Adaptive(rtol=1e-3))
    assert result.H.max() > 2 * result.H.min()
    found, _ = quotients(system, SCHMOLL, result)
    assert 0.97 < min(found) <= max(found) < 1.03


def past(t):
    """The outputs of F/D before the start."""
    return dict(zip(SPLIT, lu().flow(t) @ np.array([0.0, 100.0, 0.0, -100.0]), strict=True))


@pytest.mark.parametrize(
    ("method", "startup"),
    [
        (cs.Jacobi(3), cs.KnownHistory(past)),
        (cs.GaussSeidel(1), cs.GradedStart(ratio=16)),
        (cs.Jacobi(2, outputs="exchanged"), None),
        (cs.Implicit(1, corrector=cs.IqnIls()), None),
    ],
)
def test_other_starts_outputs_and_correctors(method, startup):
    system = split("F/D")
    result = cs.simulate(system, t_end=0.5, method=method, step=0.5 / 256, startup=startup)
    found, _ = quotients(system, lu(), result)
    assert 0.95 < min(found) <= max(found) < 1.05


@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.GaussSeidel(2), cs.SemiImplicit(1)])
def test_the_bar_covers_the_error_over_time(method):
    system = split("F/D")
    result = cs.simulate(system, t_end=0.5, method=method, step=0.5 / 256)
    found, right = cs.error_bar(system, result), truth(result, lu())
    for name, bar in found.bar.items():
        error = np.abs(result[name] - right[name])
        assert (error <= bar).all()
        assert bar.max() < 2.5 * error.max()
    assert found.worst == max(found.bar[name].max() / np.abs(result[name]).max() for name in found.bar)
    assert str(found).count("coupling error") == len(found.bar) == 4


class Counted(cs.Subsystem):
    """A tank that counts what is asked of it; it could go back."""

    inputs, outputs = ("q",), ("h",)

    def __init__(self, level):
        self.level = self.h = level
        self.subsystem_steps = self.saves = 0

    def start(self, t0):
        self.h = self.level

    def output(self, t, u):
        return self.h

    def advance(self, t0, t1, u):
        self.subsystem_steps += 1
        self.h += (t1 - t0) * (u(0.5 * (t0 + t1))[0] - self.h)
        return self.h

    def save(self):
        self.saves += 1
        return self.h

    def restore(self, state):
        self.saves += 1
        self.h = state


@pytest.mark.covers("TR-07")
@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.GaussSeidel(1)])
def test_the_shadow_of_an_explicit_run_costs_a_step_and_its_two_pieces_and_no_rollback(method):
    tanks = {"one": Counted(1.0), "two": Counted(0.0)}
    system = cs.System(tanks)
    system.connect("one.h", "two.q")
    system.connect("two.h", "one.q")
    result = cs.simulate(system, t_end=1.0, method=method, step=0.02)
    for tank in tanks.values():
        tank.subsystem_steps = tank.saves = 0
    assert shadow_of(system, result).tolist() == [[150, 150], [0, 0]]
    # saves belong to looks at the start
    assert [(tank.subsystem_steps, tank.saves) for tank in tanks.values()] == [(150, 3), (150, 3)]


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_what_a_shadow_costs_is_counted_with_its_start(degree):
    """Also the small first steps of a higher degree, which are advanced again to know their points."""
    tanks = {"one": Counted(1.0), "two": Counted(0.0)}
    system = cs.System(tanks)
    system.connect("one.h", "two.q")
    system.connect("two.h", "one.q")
    result = cs.simulate(system, t_end=1.0, method=cs.Jacobi(degree), step=0.02)
    for tank in tanks.values():
        tank.subsystem_steps = 0
    found = shadow_of(system, result).tolist()
    assert found == [[tank.subsystem_steps for tank in tanks.values()], [0, 0]]
    assert found[0][0] >= 50


def shadow_of(system, result):
    """Steps and Jacobians that the shadow of a run takes, with the steps that it takes once more in two pieces."""
    track = Track(result.t, result.H, result.column("z"), result.column("y"), True)
    return distance(system.plan(), result.method, result.startup, track).spent


@pytest.mark.covers("TR-07")
@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.GaussSeidel(1)])
def test_a_bar_of_resolved_signals_costs_half_a_run_more_than_the_shadow_and_its_pieces(method):
    system = split("F/D")
    result = cs.simulate(system, t_end=0.5, method=method, step=0.5 / 512)
    found = cs.error_bar(system, result)
    assert found.ratio < 0.25
    assert found.cost == {"one": 1792, "two": 1792}
    assert found.reason is None


@pytest.mark.covers("TR-07")
@pytest.mark.parametrize("method", [cs.SemiImplicit(1), cs.SemiImplicit(2), cs.Implicit(1)])
def test_the_shadow_of_an_implicit_run_costs_two_subsystem_steps_per_step_and_keeps_its_jacobian(method):
    system = split("F/D")
    result = cs.simulate(system, t_end=0.5, method=method, step=0.5 / 256)
    assert shadow_of(system, result).tolist() == [
        [1024, 1024],
        [1, 1],
    ]  # a finished run leaves no Jacobian


def test_a_jacobian_that_does_not_fit_any_more_is_taken_anew():
    """A driven mass whose friction grows with the third power: what a step of it answers doubles and halves."""
    mass = cs.Linear([[0]], [[1, 1]], [[1]], x0=[0.0], inputs=["friction", "drive"], outputs=["v"])
    system = cs.System({"mass": mass, "drive": cs.Static(lambda t, u: 20 * np.sin(3 * t), inputs=[], outputs=["f"])})
    system.law({"mass.friction": 1.0}, lambda v: -v - 20 * v**3, of=["mass.v"], name="F")
    system.connect("drive.f", "mass.drive")
    result = cs.simulate(system, t_end=2.0, method=cs.SemiImplicit(1), step=0.02)
    fine = cs.simulate(system, t_end=2.0, method=cs.SemiImplicit(2), step=1e-3)
    error = np.abs(result["mass.v"] - fine["mass.v"][::20]).max()
    (subsystem_steps, _), (jacobians, _) = shadow_of(system, result)
    assert 3 <= jacobians <= 50
    assert subsystem_steps == 400 + jacobians - 1
    found = cs.error_bar(system, result)
    assert found.estimate["mass.v"].max() == pytest.approx(error, rel=0.1)


@pytest.mark.covers("TR-09")
def test_what_subsystems_do_wrong_by_themselves_is_not_in_the_bar():
    h = 1 / 64
    system = chain("TR", "TR", h)
    result = cs.simulate(system, t_end=1.0, method=cs.Implicit(degree=1, tol=1e-13), step=h)
    found = cs.error_bar(system, result)
    x = result["one.displacement"]
    error = max(abs(value - exact(t)[0][1]) for t, value in zip(result.t, x, strict=True))
    assert error > 1e-4
    assert found.unproven["one.displacement"] < 1e-12
    assert "one.displacement" not in found.bar  # a bar of 1e-12 would be taken for the error
    assert "coupling error is below the accuracy of the subsystems, whose own steps move it by" in str(found)


# -- no estimate -----------------------------------------------------------------------------------------------------


def assert_no_number(found, words):
    """A reason and nothing that could be taken for an error."""
    assert words in found.reason
    assert not found.bar
    assert not found.estimate
    assert np.isnan(found.worst)
    assert str(found).startswith("no estimate of the coupling error: ")


@pytest.mark.covers("TR-06")
def test_unstable_runs_get_no_bar():
    system = split("F/F", lu(c=1e6))
    with pytest.warns(cs.errors.StabilityWarning):
        result = cs.simulate(system, t_end=0.05, method=cs.Jacobi(1), step=0.2 / 128)
    found = cs.error_bar(system, result)
    assert_no_number(found, "not resolved")
    assert found.ratio > 0.5
    assert "unproven: about" in found.sentence
    assert found.unproven["one.x"] > 1.0


def test_records_with_gaps_get_no_bar():
    system = split("F/F")
    run = {"t_end": 0.5, "method": cs.Jacobi(1), "step": 0.5 / 256}
    assert_no_number(cs.error_bar(system, cs.simulate(system, every=2, **run)), "every=1")
    assert_no_number(cs.error_bar(system, cs.simulate(system, record=["one.x"], **run)), "without record")
    short = cs.simulate(system, t_end=0.01, method=cs.Jacobi(1), step=0.01 / 3)
    assert_no_number(cs.error_bar(system, short), "at least 4 are needed")


def test_large_errors_get_no_number():
    system = split("F/F")
    result = cs.simulate(system, t_end=0.5, method=cs.Jacobi(0), step=0.5 / 100)
    found, right = cs.error_bar(system, result), truth(result, lu())
    assert "larger than 10 %" in found.reason
    for name in found.reasons:
        assert name not in found.bar
        assert np.abs(result[name] - right[name]).max() > 0.03 * np.abs(right[name]).max()


def test_another_method_or_another_system_is_not_taken_for_that_of_the_run(tmp_path):
    system = split("F/F")
    result = cs.simulate(system, t_end=0.5, method=cs.Jacobi(1), step=0.5 / 256)
    with pytest.raises(cs.errors.SetupError, match="the run was made with Jacobi"):
        cs.error_bar(system, result, method=cs.Jacobi(2))
    assert_no_number(cs.error_bar(split("F/F", TwoMass(x1=1.0)), result), "does not start where")


@pytest.mark.parametrize(
    ("method", "startup"),
    [
        (cs.Jacobi(1), None),
        (cs.Jacobi(2), cs.RisingDegree()),
        (cs.Implicit(1, corrector=cs.IqnIls()), None),
        (cs.SemiImplicit(2, refresh="run"), cs.GradedStart(ratio=16)),
    ],
)
def test_a_result_from_a_file_knows_its_method_and_its_start(tmp_path, method, startup):
    system = split("F/F")
    result = cs.simulate(system, t_end=0.1, method=method, step=0.5 / 256, startup=startup)
    loaded = cs.load_result(result.save(tmp_path / "run.h5"))
    assert loaded.method is None
    known, found = cs.error_bar(system, result), cs.error_bar(system, loaded)
    assert (found.unproven, list(found.bar)) == (known.unproven, list(known.bar))
    assert all(np.array_equal(found.bar[name], known.bar[name]) for name in known.bar)
    assert found.bar or found.unproven


class Own(cs.Jacobi):
    """A method that a file cannot bring back."""


def test_a_file_says_what_to_give_where_it_does_not_know_enough(tmp_path):
    system = split("F/D")
    run = {"t_end": 0.5, "step": 0.5 / 256}
    own = cs.simulate(system, method=Own(1), **run)
    loaded = cs.load_result(own.save(tmp_path / "own.h5"))
    with pytest.raises(
        cs.errors.SetupError, match=r"does not hold its method.*Own.*give it, error_bar\(..., method=...\)"
    ):
        cs.error_bar(system, loaded)
    assert cs.error_bar(system, loaded, method=Own(1)).worst == cs.error_bar(system, own).worst
    known = cs.simulate(system, method=cs.Jacobi(2), startup=cs.KnownHistory(past), **run)
    loaded = cs.load_result(known.save(tmp_path / "known.h5"))
    with pytest.raises(cs.errors.SetupError, match=r"began with KnownHistory.*startup="):
        cs.error_bar(system, loaded)
    again = cs.error_bar(system, loaded, startup=cs.KnownHistory(past))
    assert again.worst == cs.error_bar(system, known).worst


# -- where it is shown -----------------------------------------------------------------------------------------------


def test_a_run_that_was_asked_for_it_shows_its_coupling_error():
    system = split("F/F")
    run = {"t_end": 0.5, "method": cs.Jacobi(2), "step": 0.5 / 256}
    plain, result = cs.simulate(system, **run), cs.simulate(system, error_bar=True, **run)
    assert plain.error_bar is None
    assert "coupling error" not in str(plain)
    assert np.array_equal(plain["one.x"], result["one.x"])
    assert f"coupling error at most about {result.error_bar.worst:.1e}" in str(result)
    assert "coupling error" in result._repr_html_()
    assert not plain.plot("one.x").axes[0].collections
    (band,) = result.plot("one.x").axes[0].collections
    corners, bar = band.get_paths()[0].vertices, result.error_bar.bar["one.x"]
    assert corners[:, 1].max() == (result["one.x"] + bar).max()
    assert corners[:, 1].min() == (result["one.x"] - bar).min()
    assert not result.plot("one.f").axes[0].collections  # an input has none of its own


def test_a_run_without_estimate_shows_the_reason_and_no_number():
    system = split("F/F", lu(c=1e6))
    with pytest.warns(cs.errors.StabilityWarning):
        result = cs.simulate(system, t_end=0.05, method=cs.Jacobi(1), step=0.2 / 128, error_bar=True)
    assert "no estimate of the coupling error: the signals are not resolved" in str(result)
    assert "at most" not in str(result)
    assert not result.plot("one.x").axes[0].collections


def test_the_report_says_it(tmp_path):
    system = split("F/F")
    run = {"t_end": 0.5, "method": cs.Jacobi(2), "step": 0.5 / 256}
    pages = {}
    for asked in (False, True):
        result = cs.simulate(system, error_bar=asked, **run)
        pages[asked] = cs.write_report(result, tmp_path / "run.html").read_text(encoding="utf-8")
    assert "coupling error" not in pages[False]
    assert f"at most {result.error_bar.worst:.1e} of an output" in pages[True]


# -- in files ---------------------------------------------------------------------------------------------------------


def assert_same(one, other):
    """Bit for bit, but for the order of nothing."""
    for key in ("bar", "estimate"):
        first, second = getattr(one, key), getattr(other, key)
        assert list(first) == list(second)
        assert all(np.array_equal(first[name], second[name]) for name in first)
    assert np.array_equal(one.t, other.t)
    assert (one.worst == other.worst) or (np.isnan(one.worst) and np.isnan(other.worst))
    rest = ("reason", "reasons", "notes", "ratio", "cost", "jacobians", "sure", "unproven")
    assert [getattr(one, key) for key in rest] == [getattr(other, key) for key in rest]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("steps", "asked"), [(256, True), (256, "sure"), (100, True), (20, True)])
def test_result_files_hold_the_bars(tmp_path, streamed, steps, asked):
    """All outputs have one, some (of degree 0 with 100 steps), none."""
    path, method = tmp_path / "run.h5", cs.Jacobi(0 if steps == 100 else 1)
    run = {"t_end": 0.5, "method": method, "step": 0.5 / steps, "error_bar": asked}
    result = cs.simulate(split("F/F"), save=path if streamed else None, **run)
    if not streamed:
        result.save(path)
    loaded = cs.load_result(path)
    assert_same(loaded.error_bar, result.error_bar)
    assert loaded.error_bar.sentence in str(loaded)
    again = cs.load_result(loaded.save(tmp_path / "copy.h5"))
    assert_same(again.error_bar, result.error_bar)


def test_a_bar_that_is_found_later_can_be_put_into_the_file(tmp_path):
    system, path = split("F/F"), tmp_path / "run.h5"
    cs.simulate(system, t_end=0.5, method=cs.Jacobi(1), step=0.5 / 256, save=path)
    loaded = cs.load_result(path)
    assert loaded.error_bar is None
    loaded.error_bar = cs.error_bar(system, loaded)
    loaded.save(path)
    assert_same(cs.load_result(path).error_bar, loaded.error_bar)


def test_a_stream_with_gaps_holds_the_sentence(tmp_path):
    path = tmp_path / "run.h5"
    run = {"t_end": 0.5, "method": cs.Jacobi(1), "step": 0.5 / 256, "save": path, "error_bar": True}
    cs.simulate(split("F/F"), every=4, **run)
    assert "every=1" in cs.load_result(path).error_bar.reason
    cs.simulate(split("F/F"), record=["one.x"], **run)
    assert "without record" in cs.load_result(path).error_bar.reason


def test_other_words_than_sure_are_refused():
    with pytest.raises(cs.errors.SetupError, match="error_bar"):
        cs.simulate(split("F/F"), t_end=0.5, method=cs.Jacobi(1), step=0.01, error_bar="very")
