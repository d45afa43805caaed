"""A solver that iterates gives outputs of the size of its tolerance while it rests; that is no forgotten state."""

import numpy as np
import pytest
from examples.truss_truss.model import TrussTruss, connected
from examples.truss_truss.model import system as trusses

import cosolve as cs
from cosolve.analysis.advice import Advice, _check_rollback
from cosolve.engine.python.self_check import Proof


class Beam(cs.Subsystem):
    """Three springs in a row by Newton's method, which begins where it ended; `lost` is what restore forgets."""

    inputs, outputs = ["u"], ["f"]

    def __init__(self, k=10.0, tol=1e-10, scale=1.0, lost="", said=True):
        self.k, self.tol, self.scale, self.lost = k, tol, scale, lost
        if said:
            self.noise, self.outputs = 10 * tol, [cs.Port("f", nominal=k * scale)]

    def start(self, t0):
        self.x, self.guess, self.creep, self.count = np.zeros(3), np.zeros(3), 0.0, 0
        return 0.0

    def advance(self, t0, t1, u):
        k, s, end = self.k, self.scale, u(t1)[0]
        x = self.guess + 1e-13 * s * (self.guess == 0)
        for _ in range(30):
            r = k * np.array([3 * x[0] - x[1], 3 * x[1] - x[0] - x[2] + 0.5 * x[1] ** 3 / s**2, 2 * x[2] - x[1] - end])
            if np.abs(r).max() < self.tol * k * s:
                break
            J = k * np.array([[3, -1, 0], [-1, 3 + 1.5 * x[1] ** 2 / s**2, -1], [0, -1, 2.0]])
            x = x - np.linalg.solve(J, r)
        self.guess, self.x = x.copy(), x
        self.creep += 0.2 * (t1 - t0) * (x[2] - self.creep)
        self.count += 1
        force = k * (x[2] - self.creep - end)
        return force + 1e-12 * k * s * 1.2**self.count if self.lost == "count" else force

    def save(self):
        return self.x.copy(), self.creep

    def restore(self, state):
        self.x = state[0].copy()
        if self.lost != "creep":
            self.creep = state[1]


def pushed(beam, t_push=0.2, scale=1.0):
    """A mass that rests on the beam and is pushed from `t_push` on."""
    mass = cs.Ode(
        lambda t, x, u: [x[1], u[0] + scale * (t > t_push)],
        lambda t, x, u: x[0],
        x0=[0.0, 0.0],
        inputs=["f"],
        outputs=["u"],
        atol=1e-10 * scale,
    )
    system = cs.System({"mass": mass, "beam": beam})
    system.connect("mass.u", "beam.u")
    system.connect("beam.f", "mass.f")
    return system


METHODS = [cs.SemiImplicit(1), cs.Implicit(1), cs.Implicit(1, corrector=cs.IqnIls())]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: f"{m.label} {type(getattr(m, 'corrector', None)).__name__}")
def test_a_solver_at_rest_is_no_forgetful_one(method):
    """It was refused: 1e-12 and 3e-15 are other outputs, relatively."""
    result = cs.simulate(pushed(Beam()), t_end=1.0, method=method, step=0.05)
    fine = cs.simulate(pushed(Beam()), t_end=1.0, method=cs.Implicit(2), step=0.005)
    assert result["mass.u"][-1] == pytest.approx(fine["mass.u"][-1], rel=0.02)


@pytest.mark.parametrize("method", [*METHODS, "adaptive"])
def test_a_state_forgotten_at_rest_is_found_as_soon_as_it_matters(method):
    adaptive = method == "adaptive"
    method, step = (cs.Jacobi(1), cs.Adaptive(first_step=0.05)) if adaptive else (method, 0.05)
    with pytest.raises(cs.errors.SubsystemError, match="'beam' does not come back to its saved state"):
        cs.simulate(pushed(Beam(lost="creep")), t_end=1.0, method=method, step=step)


def test_a_state_that_changes_by_itself_is_found_in_a_later_step():
    """A counter is not larger for larger inputs, so that it passes for a rest until its effect has grown."""
    with pytest.raises(cs.errors.SubsystemError, match=r"'beam' does not come back .* step from t = 0\.\d"):
        cs.simulate(pushed(Beam(lost="count"), t_push=9.0), t_end=2.0, method=cs.SemiImplicit(1), step=0.025)


def test_a_solver_that_does_not_say_how_exact_it_is_hears_what_would_help():
    loose = Beam(k=1e4, tol=1e-10, scale=1e3, said=False)
    with pytest.raises(cs.errors.SubsystemError, match="noise and nominal values of its ports") as refused:
        cs.simulate(pushed(loose, scale=1e3), t_end=1.0, method=cs.SemiImplicit(1), step=1e-3)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("lost", ["", "creep"])
def test_check_compares_outputs_in_the_same_way(lost):
    """It asked for equal bits."""
    advice = Advice()
    _check_rollback(advice, pushed(Beam(lost=lost)), 0.05)
    assert advice.codes() == ({"inexact-rollback"} if lost else set())


def test_a_proof_that_is_put_off_is_due_less_and_less_often():
    proof, due = Proof(), []
    for step in range(40):
        if proof.due():
            due.append(step)
            proof.note(known=step > 20)
    assert due == [0, 2, 5, 10, 19, 36]


def variant(seed):
    """Numbers of a solver that iterates, and when it is pushed."""
    rng = np.random.default_rng(seed)
    k, tol, scale = 10 ** rng.uniform(-2, 4), 10 ** rng.uniform(-13, -9), 10 ** rng.uniform(-3, 3)
    steps = int(rng.integers(0, 8))
    return {"k": k, "tol": tol, "scale": scale}, {"t_push": (steps - 0.5) * 0.05 / max(k, 1.0) ** 0.5}


@pytest.mark.slow
def test_random_solvers_at_rest():
    """No sound one is refused, and every forgetful one is found where its outputs are 1e-6 off."""
    refused, passed = [], []
    for seed in range(200):
        beam, push = variant(seed)
        step = 0.05 / max(beam["k"], 1.0) ** 0.5
        method = (cs.SemiImplicit(1), cs.Implicit(1, tol=1e-5), cs.Implicit(1, tol=1e-5, corrector=cs.IqnIls()))[
            seed % 3
        ]
        push |= {"scale": beam["scale"]}
        for lost in ("", "creep"):
            try:
                cs.simulate(pushed(Beam(**beam, lost=lost), **push), t_end=12 * step, method=method, step=step)
            except cs.CosolveError as error:
                if not lost or "saved state" not in str(error):
                    refused.append((seed, lost, str(error)))
            else:
                if lost:
                    passed.append(seed)
    assert refused == []
    assert passed == []


@pytest.mark.slow
@pytest.mark.parametrize("build", [trusses, connected])
def test_warm_started_trusses(build):
    """Each solve begins at the last trial: the same within the tolerance, which is all there is at rest."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        one = cs.structures.Bar(
            elements=int(rng.integers(3, 25)), length=1.0, E=10 ** rng.uniform(0.5, 3), rho=rng.uniform(0.2, 2)
        )
        two = cs.structures.Bar(
            elements=int(rng.integers(3, 25)), length=1.0, E=10 ** rng.uniform(0.5, 3), rho=rng.uniform(0.2, 2)
        )
        p = TrussTruss(one=one, two=two, force=0.02 * one.E * rng.uniform(-1, 1), steps=10)
        for method in (cs.Implicit(0), cs.SemiImplicit(1)):
            cs.simulate(build(p, warm_start=True), t_end=p.t_end, method=method, step=p.h)
