"""What goes wrong is said in one sentence: who is at fault, what is wrong, and what would work."""

from __future__ import annotations

import re

import numpy as np
import pytest

import cosolve as cs

RAW = re.compile(
    r"Traceback|broadcast|inhomogeneous|setting an array element|not supported between|unsupported operand|ufunc|"
    r"could not convert|object is not|dtype|NoneType|list index|KeyError|IndexError|scalar arrays|numpy\.|np\.\w+64",
)


def decay(**options):
    options.setdefault("x0", [1.0])
    return cs.Ode(lambda t, x, u: -x + u, lambda t, x, u: x, inputs=["u"], outputs=["y"], **options)


def line(**options):
    given = {"A": [[-1.0]], "B": [[1.0]], "C": [[1.0]], "x0": [1.0], "inputs": ["u"], "outputs": ["y"], **options}
    return cs.Linear(**given)


class Plain(cs.Subsystem):
    """No rollback; `value` is what advance returns."""

    inputs, outputs = ["u"], ["y"]

    def __init__(self, value=1.0, first=1.0):
        self.value, self.first = value, first

    def start(self, t0):
        return self.first

    def advance(self, t0, t1, u):
        return self.value(t1) if callable(self.value) else self.value


def ring(first, second=None):
    system = cs.System({"a": first, "b": second or decay()})
    system.connect("a.y", "b.u")
    system.connect("b.y", "a.u")
    return system


def run(system=None, method=None, step=0.1, t_end=1.0, **options):
    return cs.simulate(system or ring(decay()), t_end=t_end, method=method or cs.Jacobi(), step=step, **options)


def law_system(function, **options):
    system = cs.System({"a": decay(), "b": decay()})
    system.connect("a.y", "b.u")
    system.law("a.u", function, of=["a.y", "b.y"], **options)
    return system


def one_sentence(error):
    text = str(error)
    assert text, "no message"
    assert "\n" not in text
    assert not RAW.search(text), text
    assert not text.rstrip().endswith("."), text
    assert not re.search(r"[a-z)]\. [A-Z]", text), f"more than one sentence: {text}"
    return text


def refused(words, call, kind=cs.errors.SetupError):
    """`call` raises `kind` before anything ran, with all `words` in one sentence."""
    with pytest.raises(cs.CosolveError) as caught:
        call()
    text = one_sentence(caught.value)
    assert isinstance(caught.value, kind), f"{type(caught.value).__name__}: {text}"
    for word in words:
        assert word in text, f"{word!r} is missing in: {text}"


def stopped(words, call, kind=cs.errors.SimulationError, steps=None, time=None, subsystem=None):
    """`call` stops in mid-run with a readable result of `steps` good macro steps."""
    with pytest.raises(cs.CosolveError) as caught:
        call()
    error = caught.value
    text = one_sentence(error)
    assert isinstance(error, kind), f"{type(error).__name__}: {text}"
    for word in words:
        assert word in text, f"{word!r} is missing in: {text}"
    assert error.subsystem == subsystem
    assert error.time is not None
    assert error.result is not None
    assert error.result.error == str(error)
    assert not error.result.finished
    if time is not None:
        assert error.time == pytest.approx(time)
    if steps is not None:
        assert len(error.result) == steps + 1
        assert error.result.t[-1] == pytest.approx(error.time)
        assert np.isfinite(error.result.column("y")).all()
    return error


# -- describing the system ------------------------------------------------------------------------------------

DESCRIPTIONS = {
    "empty system": (["no subsystems", "System"], lambda: run(cs.System({}))),
    "list of subsystems": (["dict", "list"], lambda: cs.System([decay()])),
    "not a subsystem": (["'a'", "function", "Subsystem"], lambda: cs.System({"a": lambda t: t})),
    "class instead of object": (["'a'", "Subsystem"], lambda: cs.System({"a": Plain})),
    "name with a dot": (["name", "dot", "'a.b'"], lambda: cs.System({"a.b": decay()})),
    "description of bodies": (
        ["subsystem 'arm' is a MultibodyModel", "MultibodySubsystem(model, ...)", "assemble"],
        lambda: cs.System({"arm": cs.multibody.MultibodyModel()}),
    ),
    "description of a structure": (
        ["subsystem 'beam' is a Structure", "SecondOrder(structure, ...)"],
        lambda: cs.System({"beam": cs.structures.Structure([1.0], K=[[1.0]])}),
    ),
    "subsystem used twice": (
        ["'a' and 'b'", "same object", "build two"],
        lambda: (lambda s: cs.System({"a": s, "b": s}))(decay()),
    ),
    "duplicate port": (["'a'", "'u'", "twice"], lambda: cs.System({"a": _with_ports(["u", "u"], ["y"])})),
    "port both in and out": (["'a'", "'x'", "rename"], lambda: cs.System({"a": _with_ports(["x"], ["x"])})),
    "ports as a string": (["list of names", "['force']"], lambda: cs.System({"a": _with_ports("force", ["y"])})),
    "ports as a number": (["list of names", "3"], lambda: cs.System({"a": _with_ports(3, ["y"])})),
    "port of size 0": (["'u'", "size", "at least 1", "0"], lambda: cs.System({"a": _with_ports([("u", 0)], ["y"])})),
    "port of size 1.5": (["'u'", "size", "whole", "1.5"], lambda: cs.System({"a": _with_ports([("u", 1.5)], ["y"])})),
    "port of size text": (["'u'", "size", "'three'"], lambda: cs.System({"a": _with_ports([("u", "three")], ["y"])})),
    "port without a name": (["non-empty name", "''"], lambda: cs.System({"a": _with_ports([""], ["y"])})),
    "nominal of 0": (["'f'", "nominal", "positive", "0"], lambda: cs.Port("f", nominal=0)),
    "nominal of text": (["'f'", "nominal", "positive", "'N'"], lambda: cs.Port("f", nominal="N")),
    "unknown output": (["connect", "'a'", "output 'z'", "'y'"], lambda: ring(decay()).connect("a.z", "b.u")),
    "unknown port, close": (
        ["no output 'positon'", "did you mean 'position'?"],
        lambda: cs.System({"a": _with_ports([], ["position", "speed"]), "b": decay()}).connect("a.positon", "b.u"),
    ),
    "unknown subsystem, close": (
        ["'lefft'", "did you mean 'left'?"],
        lambda: cs.System({"left": decay(), "right": decay()}).connect("lefft.y", "right.u"),
    ),
    "no dot in address": (["'ay'", "subsystem.port"], lambda: ring(decay()).connect("ay", "b.u")),
    "address is a number": (["7", "subsystem.port"], lambda: ring(decay()).connect(7, "b.u")),
    "output where an input is needed": (
        ["'b.y' is an output", "input is needed"],
        lambda: ring(decay()).connect("a.y", "b.y"),
    ),
    "input where an output is needed": (
        ["'a.u' is an input", "output is needed"],
        lambda: ring(decay()).connect("a.u", "b.u"),
    ),
    "law of an input": (
        ["'a.u' is an input", "output is needed"],
        lambda: law_system(lambda x, y: x).law("b.u", abs, of="a.u"),
    ),
    "connected to nothing": (["'a.y'", "nothing", "at least one input"], lambda: ring(decay()).connect("a.y")),
    "size mismatch": (
        ["'a.y' carries 3", "'b.u' takes 1", "law that converts"],
        lambda: cs.System({"a": _with_ports([], [("y", 3)]), "b": decay()}).connect("a.y", "b.u"),
    ),
    "unit mismatch": (
        ["'a.y' is in mm", "'b.u' in s", "different things", "law"],
        lambda: cs.System(
            {"a": _with_ports([], [cs.Port("y", unit="mm")]), "b": _with_ports([cs.Port("u", unit="s")], ["y"])}
        ).connect("a.y", "b.u"),
    ),
    "unknown unit": (
        ["'a.y' is in furlong", "'b.u' in m", "not known", "definition", "law"],
        lambda: cs.System(
            {"a": _with_ports([], [cs.Port("y", unit="furlong")]), "b": _with_ports([cs.Port("u", unit="m")], ["y"])}
        ).connect("a.y", "b.u"),
    ),
    "fed twice": (["'b.u' is fed twice", "a.y", "remove one", "one law"], lambda: ring(decay()).connect("a.y", "b.u")),
    "fed twice in one call": (
        ["'b.u' is fed twice"],
        lambda: cs.System({"a": decay(), "b": decay()}).connect("a.y", "b.u", "b.u"),
    ),
    "constant on a fed input": (["'b.u' is fed twice", "constant"], lambda: ring(decay()).set("b.u", 1.0)),
    "fed by nothing": (
        ["'a.u' is not connected", "connect", "system.set('a.u'"],
        lambda: run(cs.System({"a": decay()})),
    ),
    "constant of wrong size": (
        ["'a.u'", "one finite number", "[1, 2]"],
        lambda: cs.System({"a": decay()}).set("a.u", [1, 2]),
    ),
    "constant of text": (
        ["'a.u'", "one finite number", "'high'"],
        lambda: cs.System({"a": decay()}).set("a.u", "high"),
    ),
    "constant NaN": (["'a.u'", "finite", "nan"], lambda: cs.System({"a": decay()}).set("a.u", np.nan)),
    "law not callable": (["law", "float", "called"], lambda: law_system(3.0)),
    "law without inputs": (["law", "no inputs"], lambda: ring(decay()).law([], abs, of="a.y")),
    "law factor 0": (
        ["factor of 'a.u'", "other than 0"],
        lambda: cs.System({"a": decay()}).law({"a.u": 0}, abs, of="a.y"),
    ),
    "law factor text": (
        ["factor of 'a.u'", "'minus'"],
        lambda: cs.System({"a": decay()}).law({"a.u": "minus"}, abs, of="a.y"),
    ),
    "law drives different sizes": (
        ["one value", "different sizes", "a.u", "b.u"],
        lambda: cs.System({"a": decay(), "b": _with_ports([("u", 2)], ["y"])}).law({"a.u": 1, "b.u": 1}, abs, of="a.y"),
    ),
    "name on a list law": (
        ["name", "{input: factor}"],
        lambda: cs.System({"a": decay()}).law(["a.u"], abs, of="a.y", name="F"),
    ),
    "no unknowns": (["no unknowns"], lambda: cs.System({"a": decay()}).equations({}, abs, of="a.y")),
    "initial of no unknown": (
        ["'mu'", "['lam']"],
        lambda: cs.System({"a": decay()}).equations({"lam": "a.u"}, lambda z, y: y, of="a.y", initial={"mu": 1}),
    ),
    "initial of wrong size": (
        ["initial", "'lam'", "1 finite"],
        lambda: cs.System({"a": decay()}).equations({"lam": "a.u"}, lambda z, y: y, of="a.y", initial={"lam": [1, 2]}),
    ),
    "unknown with a dot": (
        ["'a.lam'", "without a dot"],
        lambda: cs.System({"a": decay()}).equations({"a.lam": "a.u"}, abs, of="a.y"),
    ),
    "two variables of one name": (["'F'", "another name"], lambda: _two_named_f().plan()),
    "x0 with NaN": (["Ode", "x0", "NaN"], lambda: decay(x0=[np.nan])),
    "x0 of text": (["Ode", "x0", "numbers", "'rest'"], lambda: decay(x0="rest")),
    "Linear x0 with NaN": (["Linear", "x0", "NaN"], lambda: line(x0=[np.nan])),
    "Linear x0 of wrong size": (["Linear", "A has shape (1, 1)", "expected (2, 2)", "x0"], lambda: line(x0=[1, 2])),
    "A of wrong shape": (["Linear", "A has shape (1, 2)", "(1, 1)"], lambda: line(A=[[1.0, 2.0]])),
    "B of wrong shape": (["Linear", "B has shape (1, 2)", "(1, 1)", "port"], lambda: line(B=[[1.0, 2.0]])),
    "C of wrong shape": (["Linear", "C has shape (2, 1)", "(1, 1)"], lambda: line(C=[[1.0], [2.0]])),
    "D of wrong shape": (["Linear", "D has shape", "(1, 1)"], lambda: line(D=[[1.0, 0.0]])),
    "A with NaN": (["Linear", "A holds a NaN"], lambda: line(A=[[np.nan]])),
    "A of text": (["Linear", "A is not a matrix"], lambda: line(A="identity")),
    "ragged A": (["Linear", "A is not a matrix"], lambda: line(A=[[1.0], [2.0, 3.0]])),
    "unknown integrator": (["'rk4'", "choose one of", "ode4"], lambda: decay(integrator="rk4")),
    "fixed step without internal_step": (["'ode4'", "needs internal_step"], lambda: decay(integrator="ode4")),
    "internal_step negative": (["'ode4'", "positive", "-1"], lambda: decay(integrator="ode4", internal_step=-1)),
    "internal_step text": (["'ode4'", "positive", "'small'"], lambda: decay(integrator="ode4", internal_step="small")),
    "internal_step for an adaptive integrator": (
        ["internal_step belongs", "'Radau'"],
        lambda: decay(integrator="Radau", internal_step=0.1),
    ),
    "rtol 0": (["rtol", "positive", "0"], lambda: decay(rtol=0)),
    "atol text": (["atol", "positive", "'x'"], lambda: decay(atol="x")),
    "rhs not callable": (
        ["rhs", "function", "matrix"],
        lambda: cs.Ode("matrix", abs, x0=[1], inputs=[], outputs=["y"]),
    ),
    "Static not callable": (["Static", "function", "3"], lambda: cs.Static(3, inputs=[], outputs=["y"])),
    "InterpolatedOutputs without own steps": (
        ["InterpolatedOutputs", "Linear", "internal steps", "dopri5"],
        lambda: cs.InterpolatedOutputs(line()),
    ),
}


def _with_ports(inputs, outputs):
    box = Plain()
    box.inputs, box.outputs = inputs, outputs
    return box


def _two_named_f():
    system = cs.System({"a": decay(), "b": decay()})
    system.law({"a.u": 1}, abs, of="a.y", name="F")
    system.law({"b.u": 1}, abs, of="a.y", name="F")
    return system


@pytest.mark.parametrize("case", DESCRIPTIONS)
def test_a_bad_description_is_refused(case):
    refused(*DESCRIPTIONS[case])


def test_a_refused_connection_leaves_no_trace():
    system = cs.System({"a": decay(), "b": decay()})
    for attempt in (
        lambda: system.connect("a.y", "b.u", "b.nothing"),
        lambda: system.connect("a.y", "b.u", "b.u"),
        lambda: system.law(["b.u", "a.nothing"], abs, of="a.y"),
        lambda: system.equations({"p": "b.u", "q": "nowhere.u"}, abs, of="a.y"),
        lambda: system.equations({"p": "b.u"}, abs, of="a.y", initial={"q": 1}),
    ):
        with pytest.raises(cs.errors.SetupError):
            attempt()
    system.connect("a.y", "b.u")
    system.connect("b.y", "a.u")
    assert run(system).finished


# -- asking for a run -----------------------------------------------------------------------------------------

REQUESTS = {
    "H = 0": (["step", "positive", "0"], lambda: run(step=0)),
    "H negative": (["step", "positive", "-0.1"], lambda: run(step=-0.1)),
    "H NaN": (["step", "positive", "finite", "nan"], lambda: run(step=np.nan)),
    "H infinite": (["step", "finite", "inf"], lambda: run(step=np.inf)),
    "H text": (["step", "number", "Adaptive", "'fast'"], lambda: run(step="fast")),
    "H Boolean": (["step", "number", "True"], lambda: run(step=True)),
    "H missing": (["Jacobi", "macro step", "step=1e-3"], lambda: run(step=None)),
    "H tiny": (["1e-20", "macro steps", "t_end"], lambda: run(step=1e-20)),
    "t_end before the start": (["t_end = 1", "t_start = 2", "later"], lambda: run(t_start=2.0)),
    "t_end at the start": (["t_end = 0", "t_start = 0"], lambda: run(t_end=0.0)),
    "t_end NaN": (["t_end", "finite", "nan"], lambda: run(t_end=np.nan)),
    "t_end text": (["t_end", "number", "'long'"], lambda: run(t_end="long")),
    "t_start None": (["t_start", "number", "None"], lambda: run(t_start=None)),
    "workers 0": (["workers", "at least 1", "0"], lambda: run(workers=0)),
    "workers negative": (["workers", "at least 1", "-2"], lambda: run(workers=-2)),
    "workers text": (["workers", "'all'"], lambda: run(workers="all")),
    "every 0": (["every", "at least 1", "0"], lambda: run(every=0)),
    "every 1.5": (["every", "whole", "1.5"], lambda: run(every=1.5)),
    "unknown name of a method": (["no method 'Jakobi'", "did you mean 'jacobi'"], lambda: run(method="Jakobi")),
    "method class": (["method", "Jacobi(degree=1)"], lambda: run(method=cs.Jacobi)),
    "system is a dict": (["System", "dict"], lambda: cs.simulate({}, t_end=1, method=cs.Jacobi(), step=0.1)),
    "degree -1": (["Jacobi", "degree", "-1"], lambda: cs.Jacobi(degree=-1)),
    "degree 1.5": (["SemiImplicit", "degree", "1.5"], lambda: cs.SemiImplicit(degree=1.5)),
    "degree True": (["Implicit", "degree", "True"], lambda: cs.Implicit(degree=True)),
    "degree text": (["GaussSeidel", "degree", "'two'"], lambda: cs.GaussSeidel(degree="two")),
    "predictor -1": (["SemiImplicit", "predictor", "-1"], lambda: cs.SemiImplicit(predictor=-1)),
    "outputs mode": (["'as_used'", "'exchanged'", "'b'"], lambda: cs.Jacobi(outputs="b")),
    "jacobian mode": (["'auto'", "'difference'", "'exact'"], lambda: cs.SemiImplicit(jacobian="exact")),
    "increment 0": (["increment", "positive", "0"], lambda: cs.SemiImplicit(increment=0)),
    "increment text": (["increment", "positive", "'x'"], lambda: cs.Implicit(increment="x")),
    "tol negative": (["tol", "positive", "-1"], lambda: cs.Implicit(tol=-1)),
    "tol text": (["tol", "positive", "'tight'"], lambda: cs.Implicit(tol="tight")),
    "max_iterations 0": (["max_iterations", "at least 1", "0"], lambda: cs.Implicit(max_iterations=0)),
    "max_iterations text": (["max_iterations", "'many'"], lambda: cs.Implicit(max_iterations="many")),
    "corrector by name": (["corrector", "Newton()", "'newton'"], lambda: cs.Implicit(corrector="newton")),
    "refresh": (["refresh", "'iteration'", "'never'"], lambda: cs.Newton(refresh="never")),
    "order of unknown": (["GaussSeidel", "order", "'c'", "'a'"], lambda: run(method=cs.GaussSeidel(order=["c"]))),
    "order twice": (["order", "twice"], lambda: cs.GaussSeidel(order=["a", "a"])),
    "order as text": (["order", "list", "['ab']"], lambda: cs.GaussSeidel(order="ab")),
    "no master": (["LeaderFollower", "leader=''", "'a'"], lambda: run(method=cs.LeaderFollower())),
    "unknown master": (["LeaderFollower", "'pump'", "'a'"], lambda: run(method=cs.LeaderFollower(leader="pump"))),
    "LeaderFollower order of unknown": (
        ["order", "'c'"],
        lambda: run(method=cs.LeaderFollower(leader="a", order=["c"])),
    ),
    "LeaderFollower with Adaptive": (
        ["LeaderFollower", "chooses its steps itself", "no step"],
        lambda: run(method=cs.LeaderFollower(leader="a"), step=cs.Adaptive()),
    ),
    "Adaptive rtol 0": (["rtol", "positive", "0"], lambda: cs.Adaptive(rtol=0)),
    "Adaptive rtol text": (["rtol", "positive", "'x'"], lambda: cs.Adaptive(rtol="x")),
    "Adaptive atol negative": (["atol", "-1"], lambda: cs.Adaptive(atol=-1)),
    "Adaptive min_step > max_step": (["min_step", "max_step", "2", "1"], lambda: cs.Adaptive(min_step=2, max_step=1)),
    "Adaptive min_step NaN": (["min_step", "nan"], lambda: cs.Adaptive(min_step=np.nan)),
    "Adaptive max_step 0": (["max_step", "0"], lambda: cs.Adaptive(max_step=0)),
    "Adaptive max_step text": (["max_step", "'x'"], lambda: cs.Adaptive(max_step="x")),
    "Adaptive first_step 0": (["first_step", "positive"], lambda: cs.Adaptive(first_step=0)),
    "Adaptive controller": (["controller", "'PI'", "'PID'"], lambda: cs.Adaptive(controller="PID")),
    "Adaptive q": (["q_min", "q_max", "1.5"], lambda: cs.Adaptive(q=1.5)),
    "Adaptive q_max": (["q_max", "0.5"], lambda: cs.Adaptive(q_max=0.5)),
    "Adaptive reject": (["reject", "'yes'"], lambda: cs.Adaptive(reject="yes")),
    "reject without rollback": (
        ["reject=True", "'a'", "roll back", "reject=False"],
        lambda: run(ring(Plain()), step=cs.Adaptive(reject=True)),
    ),
}


@pytest.mark.parametrize("case", REQUESTS)
def test_a_bad_request_is_refused(case):
    refused(*REQUESTS[case])


@pytest.mark.parametrize("method", [cs.SemiImplicit(), cs.Implicit()], ids=lambda m: m.name)
def test_a_method_that_needs_rollback_names_who_lacks_it_and_what_would_do(method):
    words = [method.name, "rollback", "'a' (Plain)", "save and restore", "Jacobi or GaussSeidel"]
    refused(words, lambda: run(ring(Plain()), method), cs.errors.CapabilityError)


def test_a_master_without_own_steps_is_refused():
    words = ["LeaderFollower", "'a' (Linear)", "internal steps", "dopri5", "GaussSeidel"]
    refused(words, lambda: run(ring(line()), cs.LeaderFollower(leader="a")), cs.errors.CapabilityError)


@pytest.mark.parametrize("method", [cs.Jacobi(), cs.GaussSeidel(), cs.LeaderFollower(leader="a")], ids=lambda m: m.name)
def test_explicit_methods_refuse_equations(method):
    system = cs.System({"a": decay()})
    system.equations({"lam": "a.u"}, lambda lam, y: y - 1, of="a.y")
    words = [method.name, "explicit", "equations for a.u", "SemiImplicit or Implicit"]
    refused(words, lambda: run(system, method, step=None if method.chooses_step else 0.1), cs.errors.CapabilityError)


# -- in mid-run -----------------------------------------------------------------------------------------------


def turning(value, t_bad=0.45):
    """A subsystem that behaves until `t_bad` and returns `value` from then on."""
    return Plain(lambda t: value if t > t_bad else 1.0)


RETURNS = {
    "None": (None, ["returned None", "['y']"]),
    "two numbers": ([1.0, 2.0], ["returned 2 numbers", "expected 1", "['y']"]),
    "nothing": ([], ["returned 0 numbers", "expected 1"]),
    "text": ("high", ["returned 'high'", "real numbers"]),
    "text of a number": ("1.5", ["returned '1.5'", "real numbers"]),
    "list of text": (["1.5"], ["'1.5'", "real numbers"]),
    "complex": (1 + 2j, ["(1+2j)", "real numbers"]),
    "complex array": (np.array([1 + 2j]), ["1.+2.j", "real numbers"]),
    "an object": (object(), ["object", "real numbers"]),
    "wrong name": ({"x": 1.0}, ["['x']", "exactly the ports ['y']"]),
    "extra name": ({"x": 1.0, "y": 1.0}, ["['x', 'y']", "exactly the ports ['y']"]),
    "wrong size by name": ({"y": [1.0, 2.0]}, ["'y'", "2 numbers", "expected 1"]),
    "None by name": ({"y": None}, ["None", "'y'", "real numbers"]),
}


@pytest.mark.parametrize("method", [cs.Jacobi(), cs.GaussSeidel()], ids=lambda m: m.name)
@pytest.mark.parametrize("case", RETURNS)
def test_a_subsystem_that_returns_the_wrong_thing(case, method):
    value, words = RETURNS[case]
    words = ["'a'", "t = 0.4", *words]
    stopped(words, lambda: run(ring(turning(value)), method), cs.errors.SubsystemError, 4, 0.4, "a")


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_subsystem_that_returns_nan(value, workers):
    words = ["'a' returned", str(value), "output 'y'", "t = 0.4", "smaller step"]
    stopped(words, lambda: run(ring(turning(value)), workers=workers), cs.errors.NonFiniteError, 4, 0.4, "a")


@pytest.mark.parametrize("case", ["None", "text", "complex", "two numbers"])
def test_a_subsystem_that_starts_wrong(case):
    value, _ = RETURNS[case]
    error = stopped(["'a'", "start"], lambda: run(ring(Plain(first=value))), cs.errors.SubsystemError, subsystem="a")
    assert len(error.result) == 0


def test_a_subsystem_without_start_or_advance_says_which_to_define():
    class Empty(cs.Subsystem):
        inputs, outputs = ["u"], ["y"]

    stopped(["'a'", "Empty must define start(t0)"], lambda: run(ring(Empty())), cs.errors.SubsystemError, subsystem="a")
    Empty.start = lambda self, t0: 1.0
    stopped(
        ["'a'", "Empty must define advance(t0, t1, u)"],
        lambda: run(ring(Empty())),
        cs.errors.SubsystemError,
        0,
        0.0,
        "a",
    )


def test_ports_of_different_length_cannot_be_swapped_unnoticed():
    class Swapped(Plain):
        inputs, outputs = ["u"], [("r", 2), "s"]
        wrong = ({"r": 1.0, "s": [2.0, 3.0]}, [1.0, [2.0, 3.0]])

        def start(self, t0):
            return {"r": [0.0, 0.0], "s": 1.0}

    for wrong in Swapped.wrong:
        system = cs.System({"a": Swapped(wrong)})
        system.connect("a.s", "a.u")
        stopped(
            ["'a'", "1 numbers for 'r'", "expected 2"], lambda s=system: run(s), cs.errors.SubsystemError, 0, 0.0, "a"
        )


SOLVERS = ["auto", "dopri5", "ode4", "RK45", "DOP853", "Radau", "BDF", "LSODA", "cvode"]


def faulty(solver, fault, t_bad=0.45):
    def rhs(t, x, u):
        return fault(x) if t > t_bad else -x + u

    fixed = {"internal_step": 0.05} if solver == "ode4" else {}
    return cs.Ode(rhs, lambda t, x, u: 1.0, x0=[1.0], inputs=["u"], outputs=["y"], integrator=solver, **fixed)


def boom(x):
    raise ZeroDivisionError("valve area is 0")


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_right_hand_side_that_raises(solver):
    words = ["'a'", "t = 0.4", "valve area is 0", "ZeroDivisionError"]
    error = stopped(words, lambda: run(ring(faulty(solver, boom))), cs.errors.SubsystemError, subsystem="a")
    assert 0.35 < error.time < 0.45
    assert error.result.t[-1] == error.time
    assert isinstance(error.__cause__, ZeroDivisionError)  # the user's own traceback stays reachable


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_right_hand_side_that_returns_nan_is_noticed_even_where_no_output_shows_it(solver, capfd):
    call = lambda: run(ring(faulty(solver, lambda x: x * np.nan)))  # noqa: E731
    error = stopped(["'a'"], call, cs.errors.NonFiniteError, subsystem="a")
    assert re.search(r"rhs returne?[sd] |state 0 became nan", str(error))
    assert 0.35 < error.time < 0.55


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([1.0, 2.0], ["shape (2,)", "expected (1,)", "one number per state"]),
        ([[1.0]], ["shape (1, 1)", "expected (1,)"]),
        (None, ["None", "real numbers"]),
        (["fast"], ["'fast'", "real numbers"]),
        ([1j], ["1j", "real numbers"]),
    ],
    ids=["length", "matrix", "None", "text", "complex"],
)
def test_a_right_hand_side_of_the_wrong_kind(solver, value, words):
    fixed = {"internal_step": 0.05} if solver == "ode4" else {}
    ode = cs.Ode(
        lambda t, x, u: value, lambda t, x, u: x, x0=[1.0], inputs=["u"], outputs=["y"], integrator=solver, **fixed
    )
    stopped(["'a'", "rhs returned", *words], lambda: run(ring(ode)), cs.errors.SubsystemError, 0, 0.0, "a")


def test_an_output_function_that_returns_nan_or_raises():
    def ode(output):
        return cs.Ode(lambda t, x, u: -x, output, x0=[1.0], inputs=["u"], outputs=["y"])

    late = ode(lambda t, x, u: np.nan if t > 0.45 else x)
    stopped(["'a'", "nan", "output 'y'"], lambda: run(ring(late)), cs.errors.NonFiniteError, 4, 0.4, "a")
    at_once = ode(lambda t, x, u: np.nan)
    stopped(["'a'", "nan", "output 'y'", "t = 0"], lambda: run(ring(at_once)), cs.errors.NonFiniteError, subsystem="a")
    typo = ode(lambda t, x, u: boom(x))
    stopped(["'a'", "valve area is 0", "t = 0"], lambda: run(ring(typo)), cs.errors.SubsystemError, subsystem="a")


def test_a_static_function_that_returns_nan_or_raises():
    def static(fault):
        return cs.Static(lambda t, u: fault() if t > 0.45 else u, inputs=["u"], outputs=["y"])

    stopped(["'a'", "nan", "'y'"], lambda: run(ring(static(lambda: np.nan))), cs.errors.NonFiniteError, 4, 0.4, "a")
    stopped(["'a'", "valve"], lambda: run(ring(static(lambda: boom(0)))), cs.errors.SubsystemError, 4, 0.4, "a")


METHODS = [cs.Jacobi(), cs.GaussSeidel(), cs.SemiImplicit(), cs.Implicit()]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_laws_that_go_wrong(method):
    def law(fault):
        return law_system(lambda a, b: fault() if a < 0.7 else 0.5 * b)

    for fault, kind, words in [
        (lambda: np.nan, cs.errors.NonFiniteError, ["the law for a.u", "nan", "'a.u'", "formula"]),
        (lambda: boom(0), cs.errors.SubsystemError, ["the law for a.u", "valve area is 0", "ZeroDivisionError"]),
        (lambda: [1.0, 2.0], cs.errors.SubsystemError, ["the law for a.u", "returned 2 numbers", "expected 1", "a.u"]),
        (lambda: None, cs.errors.SubsystemError, ["the law for a.u", "returned None", "a.u"]),
        (lambda: "big", cs.errors.SubsystemError, ["the law for a.u", "'big'", "real numbers"]),
    ]:
        error = stopped([*words, "t = "], lambda fault=fault: run(law(fault), method), kind)
        assert len(error.result) > 2
        assert error.result.t[-1] == error.time


def test_laws_of_the_wrong_arity_and_bad_jacobians():
    refused(["law", "takes (a)", "2 arguments: a.y, b.y"], lambda: law_system(lambda a: a))
    for jacobian, words in [
        (lambda a, b: [1.0], ["1 x 2"]),
        (lambda a, b: [np.nan, 1.0], ["nan", "1 x 2"]),
        (lambda a, b: "steep", ["'steep'", "1 x 2"]),
        (lambda a, b: boom(0), ["valve area is 0"]),
    ]:
        system = law_system(lambda a, b: a - b, jacobian=jacobian)
        words = ["the Jacobian of the law for a.u", *words]
        stopped(words, lambda s=system: run(s, cs.SemiImplicit()), cs.errors.SubsystemError, 0, 0.0)


def test_save_and_restore_that_fail_are_named():
    class Forgetful(Plain):
        def save(self):
            raise OSError("disk full")

        def restore(self, state):
            pass

    stopped(
        ["'a'", "save", "disk full"],
        lambda: run(ring(Forgetful()), cs.SemiImplicit()),
        cs.errors.SubsystemError,
        0,
        0.0,
        "a",
    )
    Forgetful.save = lambda self: None
    Forgetful.restore = lambda self, state: boom(0)
    stopped(
        ["'a'", "restore", "valve"],
        lambda: run(ring(Forgetful()), cs.SemiImplicit()),
        cs.errors.SubsystemError,
        0,
        0.0,
        "a",
    )


def test_own_steps_that_go_wrong_are_named():
    class Leader(Plain):
        taken = None

        def step(self, t0, t_max, u):
            return Leader.taken

    for Leader.taken, words in [
        ((0.0, 1.0), ["t = 0", "t1"]),
        ((9.0, 1.0), ["t = 9", "t1"]),
        ((np.nan, 1.0), ["nan", "(t1, outputs)"]),
        (0.5, ["0.5", "(t1, outputs)"]),
        (None, ["None", "(t1, outputs)"]),
        ((0.5, "x"), ["'x'", "real numbers"]),
    ]:
        call = lambda: run(ring(Leader()), cs.LeaderFollower(leader="a"), step=None)  # noqa: E731
        stopped(["'a'", *words], call, cs.errors.SubsystemError, 0, 0.0, "a")


def test_subsystem_jacobians_that_go_wrong_are_named():
    class Steep(Plain):
        wrong = None

        def save(self):
            return None

        def restore(self, state):
            pass

        def jacobian(self, t0, t1, u, weight):
            return Steep.wrong

    for Steep.wrong, words in [
        ([[1.0, 2.0]], ["shape (1, 2)", "(1, 1)"]),
        ([[np.nan]], ["NaN", "(1, 1)"]),
        ("steep", ["Jacobian"]),
    ]:
        stopped(["'a'", *words], lambda: run(ring(Steep()), cs.SemiImplicit()), cs.errors.SubsystemError, 0, 0.0, "a")


# -- the interface --------------------------------------------------------------------------------------------


def masses(residual, count=1):
    def mass():
        return cs.Linear(
            [[0, 1], [0, 0]], [[0] * count, [1] * count], np.eye(2), x0=[0, 0],
            inputs=[f"f{k}" for k in range(count)], outputs=["x", "v"],
        )  # fmt: skip

    system = cs.System({"one": mass(), "two": mass()})
    unknowns = {f"lam{k}": {f"one.f{k}": 1, f"two.f{k}": -1} for k in range(count)}
    system.equations(unknowns, residual, of=["one.v", "two.v"])
    return system


@pytest.mark.parametrize("method", [cs.SemiImplicit(), cs.Implicit()], ids=lambda m: m.name)
def test_a_singular_interface_names_the_variables(method):
    twice = masses(lambda p, q, v1, v2: [v1 - v2 + 1e-3, v1 - v2 + 1e-3], count=2)
    words = ["singular", "'lam0'", "'lam1'", "redundant", "t = 0"]
    stopped(words, lambda: run(twice, method), cs.errors.SingularInterfaceError, 0, 0.0)
    dead = masses(lambda p, v1, v2: 1.0)
    stopped(["singular", "'lam0'", "t = 0"], lambda: run(dead, method), cs.errors.SingularInterfaceError, 0, 0.0)


def test_a_large_singular_interface_names_the_variables_too():
    def residual(*values):
        z, v = np.array(values[:120]), values[120:]
        r = z - 0.1 * v[0]
        r[7] = r[8] = z[7] + z[8] - 1.0
        return r

    system = masses(residual, count=120)
    words = ["singular", "'lam7'", "'lam8'"]
    stopped(words, lambda: run(system, cs.SemiImplicit()), cs.errors.SingularInterfaceError, 0, 0.0)


def test_an_iteration_that_does_not_converge_keeps_the_result_and_names_residual_and_variable():
    """The equation has no solution from t = 0.4 on: a kink would be passed with renewed Jacobians."""
    clock = cs.Static(lambda t, u: t, inputs=[], outputs=["t"])
    gain = cs.Static(lambda t, u: 0.5 * u, inputs=["u"], outputs=["y"])
    system = cs.System({"clock": clock, "gain": gain})
    system.equations(
        {"z": "gain.u"}, lambda z, y, t: 1.0 + y * y if t > 0.35 else z - 0.2 * t, of=["gain.y", "clock.t"]
    )
    method = cs.Implicit(degree=0, max_iterations=7, corrector=cs.Newton(refresh="run"))
    words = ["did not converge", "t = 0.3", "'z'", "residual", "tol 1e-10", "smaller step"]
    stopped(words, lambda: run(system, method), cs.errors.ConvergenceError, 3, 0.3)


def test_an_algebraic_loop_without_solution_is_named():
    square = cs.Static(lambda t, u: 1.0 + u[0] ** 2, inputs=["u"], outputs=["y"])
    system = cs.System({"a": square})
    system.connect("a.y", "a.u")
    stopped(["algebraic loop", "'a.y'", "t = 0"], lambda: run(system), cs.errors.ConvergenceError)


@pytest.mark.filterwarnings("error")
def test_a_jump_stops_the_step_control_with_a_sentence():
    jump = cs.Static(lambda t, u: 0.0 if t < 0.5 else 1.0, inputs=[], outputs=["y"])
    system = cs.System({"jump": jump, "b": decay()})
    system.connect("jump.y", "b.u")
    error = stopped(
        ["step control", "t = 0.5", "jump", "rtol 1e-06", "min_step"],
        lambda: run(system, step=cs.Adaptive(rtol=1e-6, first_step=0.01)),
        cs.errors.StepSizeError,
        time=0.5,
    )
    assert error.result.t[-1] == pytest.approx(0.5)
    result = run(system, step=cs.Adaptive(rtol=1e-6, first_step=0.01, min_step=1e-4))
    assert result["b.y"][-1] == pytest.approx(np.exp(-1.0) + 1 - np.exp(-0.5), abs=2e-4)


def test_values_that_grow_without_bound_stop_with_a_sentence():
    system = cs.System({"a": line(A=[[5.0]]), "b": line(A=[[5.0]])})
    system.law("a.u", lambda y: 1e30 * y, of="b.y")
    system.law("b.u", lambda y: 1e30 * y, of="a.y")
    with np.errstate(all="ignore"):
        stopped(
            ["the law for", "inf", "smaller step", "t = 0.9"], lambda: run(system), cs.errors.NonFiniteError, 9, 0.9
        )
