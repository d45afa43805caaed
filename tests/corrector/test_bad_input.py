"""Bad arguments get a sentence; problems that cannot be solved get an error instead of a wrong answer."""

import numpy as np
import pytest

import cosolve as cs
from cosolve.basics import registry
from cosolve.corrector import (
    Aitken,
    Anderson,
    Broyden,
    IqnIls,
    IqnImvj,
    LineSearch,
    NewtonKrylov,
    Relaxation,
    Secant,
)
from cosolve.io.named import open_method

EVERY = [
    Relaxation(0.5),
    Aitken(),
    Aitken(vector=False),
    cs.Newton(),
    cs.Newton(refresh="step"),
    Secant(),
    Broyden(),
    Broyden(form="direct"),
    Broyden(initial="exact"),
    Anderson(),
    IqnIls(),
    IqnImvj(),
    NewtonKrylov(),
    LineSearch(cs.Newton()),
    LineSearch(IqnIls()),
]


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Relaxation(0.0), "alpha"),
        (lambda: Relaxation("1"), "alpha"),
        (lambda: Aitken(initial=np.nan), "initial"),
        (lambda: Anderson(depth=0), "depth"),
        (lambda: Anderson(mixing=0.0), "mixing"),
        (lambda: Anderson(reuse=-1), "reuse"),
        (lambda: IqnIls(reuse=1.5), "reuse"),
        (lambda: IqnIls(initial=0), "initial"),
        (lambda: IqnIls(filter_tol=1e-15), "filter_tol"),
        (lambda: IqnIls(columns=0), "columns"),
        (lambda: IqnImvj(rank=0), "rank"),
        (lambda: IqnImvj(columns=True), "columns"),
        (lambda: Broyden(initial="identity"), "initial"),
        (lambda: Broyden(form="bad"), "form"),
        (lambda: Broyden(rank=0), "rank"),
        (lambda: NewtonKrylov(rtol=2.0), "rtol"),
        (lambda: NewtonKrylov(vectors=0), "vectors"),
        (lambda: NewtonKrylov(increment=0.0), "increment"),
        (lambda: LineSearch("newton"), "corrector"),
        (lambda: LineSearch(cs.Newton(), halvings=0), "halvings"),
        (lambda: Secant(initial=0.0), "initial"),
        (lambda: Secant(pairs=["ab"]), "pair"),
    ],
)
def test_a_bad_argument_is_refused(make, match):
    with pytest.raises(cs.errors.SetupError, match=match):
        make()


@pytest.mark.parametrize(
    ("pairs", "match"),
    [
        ([("a", "absent")], "absent"),
        ([("a", "field")], "entry by entry"),
        ([("a", "b"), ("a", "a")], "first of two pairs"),
    ],
)
def test_pairs_that_do_not_fit_the_coupling_variables_are_refused(pairs, match):
    with pytest.raises(cs.errors.SetupError, match=match):
        Secant(pairs=pairs).start_run(["a", "b", "field[0]", "field[1]"])


def test_a_dense_broyden_matrix_is_refused_for_fields():
    with pytest.raises(cs.errors.SetupError, match="inverse"):
        Broyden(form="direct").start_run([f"u[{i}]" for i in range(3000)])


@pytest.mark.parametrize("corrector", [cs.Newton(), Broyden(initial="exact"), LineSearch(cs.Newton())], ids=repr)
def test_a_serial_sweep_has_no_jacobian(corrector):
    with pytest.raises(cs.errors.SetupError, match="Jacobian"):
        cs.Implicit(corrector=corrector, sweep="gauss-seidel")


class Echo(cs.Subsystem):
    """`y = function(u)`; no `output`, so that nothing is solved before the first step."""

    inputs, outputs = ("u",), ("y",)

    def __init__(self, function):
        self.function = function

    def start(self, t0):
        return 0.0

    def advance(self, t0, t1, u):
        return self.function(u.end[0])

    def save(self):
        return None

    def restore(self, state):
        pass


def loop(function, back=lambda u: u):
    system = cs.System({"a": Echo(function), "b": Echo(back)})
    system.connect("a.y", "b.u")
    system.connect("b.y", "a.u")
    return system


@pytest.mark.sample(12)
@pytest.mark.parametrize("sweep", ["jacobi", "gauss-seidel"])
@pytest.mark.parametrize("corrector", EVERY, ids=repr)
def test_a_loop_without_solution_is_reported(corrector, sweep):
    """A variable that runs away would make any residual small next to itself: that is no solution."""
    if sweep == "gauss-seidel" and corrector.uses_jacobian:
        return
    for function in (lambda u: u + 1.0, lambda u: abs(u) + 1.0, lambda u: u * u + 1.0):
        with pytest.raises(cs.errors.SimulationError) as caught:
            cs.simulate(
                loop(function),
                t_end=1.0,
                method=cs.Implicit(degree=0, corrector=corrector, sweep=sweep),
                step=1.0,
            )
        assert isinstance(
            caught.value, (cs.errors.ConvergenceError, cs.errors.SingularInterfaceError, cs.errors.SubsystemError)
        )


@pytest.mark.parametrize("sweep", ["jacobi", "gauss-seidel"])
@pytest.mark.parametrize("corrector", EVERY, ids=repr)
def test_a_mild_loop_is_solved_by_all(corrector, sweep):
    if sweep == "gauss-seidel" and corrector.uses_jacobian:
        return
    method = cs.Implicit(degree=0, tol=1e-11, max_iterations=200, corrector=corrector, sweep=sweep)
    result = cs.simulate(loop(lambda u: 1.0 - 0.5 * np.sin(u)), t_end=2.0, method=method, step=1.0)
    u = result["b.y"][-1]
    assert u == pytest.approx(1.0 - 0.5 * np.sin(u), abs=1e-10)


def test_a_nan_from_a_corrector_stops_the_run():
    class Broken(cs.Corrector):
        def correct(self, z, r, problem):
            return np.full_like(z, np.nan)

    with pytest.raises(cs.errors.SimulationError):
        cs.simulate(
            loop(lambda u: 1.0, back=lambda u: 2.0),
            t_end=1.0,
            method=cs.Implicit(degree=0, corrector=Broken()),
            step=1.0,
        )


def test_all_correctors_have_a_name_in_system_files():
    assert set(registry.names("correctors")) == {
        "aitken", "anderson", "broyden", "line-search", "iqn-ils", "iqn-imvj", "newton", "newton-krylov", "relaxation",
        "secant",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("table", "shown"),
    [
        ({"name": "relaxation", "alpha": 0.38}, "Relaxation(alpha=0.38)"),
        ({"name": "aitken", "initial": 0.2, "vector": False}, "Aitken(initial=0.2, vector=False, carry=False)"),
        ({"name": "iqn-ils", "reuse": 3}, "IqnIls(reuse=3, initial=0.1, filter_tol=1e-10)"),
        ({"name": "broyden", "initial": "exact"}, "Broyden(initial='exact', carry=True, form='inverse')"),
        ({"name": "broyden", "initial": 0.5}, "Broyden(initial=0.5, carry=True, form='inverse')"),
        ({"name": "secant", "pairs": [["a", "b"]], "initial": 0.0}, "Secant(pairs=[('a', 'b')], initial=0)"),
        (
            {"name": "line-search", "corrector": {"name": "newton", "refresh": "step"}},
            "LineSearch(Newton(refresh='step'), halvings=20)",
        ),
        ("newton-krylov", "NewtonKrylov(rtol=0.001, vectors=50)"),
    ],
)
def test_a_corrector_is_made_from_its_table(table, shown):
    assert repr(open_method({"name": "implicit", "corrector": table}).corrector) == shown
