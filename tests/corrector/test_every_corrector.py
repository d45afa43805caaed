"""Every corrector on every example: the monolithic solution to the interface tolerance, or an error in bounded time.

The reference is an independent code (a monolithic Newton iteration, an elimination by hand, a formula). Only the two
oscillators with continuous-time subsystems have none on the macro grid; theirs is Newton at a tolerance of rounding.
`SOLVED_NOT` says which correctors cannot do it in 100 corrections per step, in a parallel sweep; both sides are tested,
so a corrector that gets better or worse shows. None may return a wrong answer.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from examples.added_mass_string import model as string
from examples.algebraic_loop import model as loop
from examples.bspk6 import model as bspk6
from examples.multi_code import model as multi_code
from examples.newton_toy import model as toy
from examples.nonlinear_oscillator import model as oscillator
from examples.three_mass_chain import model as chain
from examples.truss_truss import model as truss
from examples.two_mass import model as two_mass
from examples.two_springs import model as springs

import cosolve as cs
from cosolve.corrector import Aitken, Anderson, Broyden, IqnIls, IqnImvj, LineSearch, NewtonKrylov, Relaxation, Secant

CORRECTORS = {
    "relaxation": Relaxation(0.5),
    "aitken": Aitken(),
    "aitken by entry": Aitken(vector=False),
    "newton": cs.Newton(),
    "modified newton": cs.Newton(refresh="step"),
    "secant": Secant(),
    "broyden": Broyden(),
    "broyden direct": Broyden(form="direct"),
    "broyden exact": Broyden(initial="exact"),
    "anderson": Anderson(),
    "iqn-ils": IqnIls(),
    "iqn-imvj": IqnImvj(),
    "newton-krylov": NewtonKrylov(),
    "damped newton": LineSearch(cs.Newton()),
    "damped iqn-ils": LineSearch(IqnIls()),
}
SIMPLE = {"relaxation", "aitken", "aitken by entry", "secant"}  # one number, or one per entry: no directions
SOLVED_NOT = {
    "newton toy": set(),
    "algebraic loop": {"relaxation"},
    "two springs D/D": {"aitken by entry", "secant"},
    "two springs D/N": {"aitken", "aitken by entry", "secant"},
    "two springs N/D": {"aitken by entry"},
    "two springs N/N": {"aitken by entry", "secant"},
    "three masses": {"relaxation", "aitken", "damped iqn-ils"},
    "truss and truss": {*SIMPLE, "damped iqn-ils"},
    "multi code": {*SIMPLE, "broyden", "broyden direct", "damped iqn-ils"},
    "bspk6": SIMPLE,
    "string": {*(SIMPLE - {"relaxation"}), "damped iqn-ils"},
    "two masses": set(),
    "nonlinear oscillator": {"aitken", "damped newton", "damped iqn-ils"},
}
MOST = 100


def run(system, corrector, *, steps, h, tol, degree=0):
    method = cs.Implicit(degree=degree, tol=tol, corrector=corrector, max_iterations=MOST)
    return cs.simulate(system, t_end=steps * h, method=method, step=h)


def newton_toy(corrector):
    """The roots are lines, so the distance is that to the nearest one."""
    result = run(toy.system(), corrector, steps=1, h=1.0, tol=1e-8)
    beside = result["x1"][-1] + result["x2"][-1] - np.pi / 2
    return result, abs((beside + np.pi) % (2 * np.pi) - np.pi), 1e-7


def algebraic_loop(corrector):
    result = run(loop.system((1.0, 1.0)), corrector, steps=1, h=1.0, tol=1e-12)
    return result, max(abs(result["U1"][-1] - loop.U1), abs(result["U2"][-1] - loop.U2)), 1e-11


def two_springs(kind):
    def solve(corrector):
        result = run(springs.system(kind, 2.0, 3.0), corrector, steps=1, h=1.0, tol=1e-12)
        return result, max(abs(result[f"{name}.u"][-1] - springs.LOAD / 5.0) for name in ("one", "two")), 1e-11

    return solve


@cache
def chain_reference():
    return cs.simulate(chain.monolithic("BE", 0.02), t_end=0.2, method=cs.Jacobi(), step=0.02)["chain.vd"]


def three_masses(corrector):
    result = run(chain.split("BE", "BE", 0.02), corrector, steps=10, h=0.02, tol=1e-11, degree=1)
    return result, np.abs(result["one.displacement"] - chain_reference()).max(), 1e-10


def truss_and_truss(corrector):
    p = replace(truss.SOURCE, steps=4)
    result = run(truss.connected(p), corrector, steps=p.steps, h=p.h, tol=1e-10)
    return result, np.abs(result["one.u"] - truss.monolithic(p)).max(), 1e-9


def five_codes(corrector):
    p = replace(multi_code.SETTING_2, steps=4)
    result = run(multi_code.system(p), corrector, steps=p.steps, h=p.h, tol=1e-10)
    return result, np.abs(result["one.u"] - multi_code.monolithic(p)).max(), 1e-9


def switching_cycle(corrector):
    """The loop gain near 1000 leaves about 1e-10 of an output of 0.1 to the tolerance."""
    result = run(bspk6.system(), corrector, steps=20, h=bspk6.H, tol=1e-10)
    return result, np.abs(bspk6.outputs(result) - bspk6.eliminated(result.t)).max(), 1e-9


def added_mass_string(corrector):
    p = string.Model(1.0, pluck=True, steps=5)
    result = run(string.system(p), corrector, steps=p.steps, h=p.h, tol=1e-10, degree=1)
    return result, np.abs(result["string.u"] - p.monolithic()).max(), 1e-9


@cache
def tight(build, name, steps, h):
    return run(build(), cs.Newton(), steps=steps, h=h, tol=1e-13, degree=1)[name]


def two_masses(corrector):
    result = run(lu_masses(), corrector, steps=10, h=0.005, tol=1e-10, degree=1)
    return result, np.abs(result["one.x"] - tight(lu_masses, "one.x", 10, 0.005)).max(), 1e-9


def lu_masses():
    return two_mass.split("F/F")


def nonlinear_oscillator(corrector):
    result = run(oscillator.oscillator(), corrector, steps=4, h=1e-4, tol=1e-10, degree=1)
    return result, np.abs(result["mass.x"] - tight(oscillator.oscillator, "mass.x", 4, 1e-4)).max(), 1e-9


EXAMPLES = {
    "newton toy": newton_toy,
    "algebraic loop": algebraic_loop,
    **{f"two springs {kind}": two_springs(kind) for kind in springs.KINDS},
    "three masses": three_masses,
    "truss and truss": truss_and_truss,
    "multi code": five_codes,
    "bspk6": switching_cycle,
    "string": added_mass_string,
    "two masses": two_masses,
    "nonlinear oscillator": nonlinear_oscillator,
}


@pytest.mark.sample(24)
@pytest.mark.parametrize("name", CORRECTORS)
@pytest.mark.parametrize("example", EXAMPLES)
def test_a_corrector_solves_an_example_or_says_that_it_does_not(example, name):
    if name in SOLVED_NOT[example]:
        with pytest.raises((cs.errors.ConvergenceError, cs.errors.SubsystemError)) as caught:
            EXAMPLES[example](CORRECTORS[name])
        assert caught.value.time is not None  # where it stopped
        assert (caught.value.result.iterations <= MOST).all()
        return
    result, distance, allowed = EXAMPLES[example](CORRECTORS[name])
    assert result.stats.unconverged == 0
    assert (result.iterations <= MOST).all()
    assert distance < allowed
