"""Truss versus truss: two bars with Hencky strain, each clamped at one end and joined at the other.

Truss one takes the force it transmits to truss two and gives the displacement of the joint; truss two takes that
displacement and gives the force. A constant force pulls at the joint from t = 0, and both bars are stretched by it.
Sicklinger (2014), 4.7.1: `R_1 = U_1 - Y_2`, `R_2 = U_2 - Y_1`, backward Euler, h = 0.01 s, 200 steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

import cosolve as cs


@dataclass(frozen=True)
class TrussTruss:
    """Parameters; the defaults are those of Table 4.1, in the arrangement of docs/validation/sicklinger.md."""

    one: cs.structures.Bar = field(default_factory=lambda: cs.structures.Bar(elements=20, length=1.0, E=20.0, rho=0.55))
    two: cs.structures.Bar = field(default_factory=lambda: cs.structures.Bar(elements=10, length=1.0, E=50.0, rho=0.5))
    force: float = 4.25
    h: float = 0.01
    steps: int = 200
    local_tol: float = 1e-12

    @property
    def t_end(self) -> float:
        return self.h * self.steps


SOURCE = TrussTruss()


class OneIteration(cs.structures.SecondOrder):
    """A bar that takes one Newton iteration per evaluation, from constant velocity at first (backward Euler).

    The reaction is an unknown of the local Newton iteration, as in Eqs. 4.103-4.104 of the source: after the iteration
    it has its linearised value. The residual that is left inside does not count in the tolerance.
    """

    def resolve(self, t0: float, t1: float, u: cs.InputSignal, **_: object) -> np.ndarray:
        """Advance by one local iteration from the last displacements of the same step."""
        past, rates = self._past, self.integrator.at(self._past).rule(self._past, u.H)
        q0 = past.q + u.H * past.v
        if self._trial is not None and self._trial.start is past:
            q0 = self._trial.records[-1].end.q.copy()
        prescribed = self.balance.fixed.dofs
        q0[prescribed] = u.end[: len(prescribed)]
        guess = (q0 - rates.q_hat) / rates.c_q
        times, inputs = (t0, t1), (u.coefficients[0], u.end)
        record = self.balance.step(past, self.integrator, u.H, times, inputs, guess=guess, newton_steps=1)
        q1, S = record.end.q, self.structure
        curved = S.internal_force(q1) - S.internal_force(q0) - S.tangent(q0) @ (q1 - q0)
        end = replace(record.end, reaction=record.end.reaction - curved[prescribed])
        self.local_iterations += record.solves
        y = self._settle(past, u, replace(record, end=end))
        self.internal_residual = 0.0
        return y


def force_bar(
    bar: cs.structures.Bar, force: float, tol: float, kind: type = cs.structures.SecondOrder, **options: object
) -> cs.structures.SecondOrder:
    """A bar whose end is pulled: the force `f` that it passes on comes in, the displacement of the joint goes out."""
    load = np.zeros(bar.n)
    load[-1] = force
    return kind(
        cs.structures.Structure(bar.mass(), internal_force=bar.internal_force, tangent=bar.tangent, load=load),
        "backward-euler",
        inputs=[cs.structures.DofPort("f", -1, "force", factor=-1.0, unit="N")],
        outputs=[cs.structures.DofPort("u", -1, "displacement", unit="m")],
        tol=tol,
        **options,  # type: ignore[arg-type]
    )


def displacement_bar(
    bar: cs.structures.Bar, tol: float, kind: type = cs.structures.SecondOrder, **options: object
) -> cs.structures.SecondOrder:
    """A bar whose end is led: the displacement of the joint comes in, the force `M a + p` there goes out."""
    return kind(
        cs.structures.Structure(bar.mass(), internal_force=bar.internal_force, tangent=bar.tangent),
        "backward-euler",
        inputs=[cs.structures.DofPort("u", -1, "displacement", unit="m")],
        outputs=[cs.structures.DofPort("f", -1, "reaction", unit="N")],
        tol=tol,
        **options,  # type: ignore[arg-type]
    )


def bar(
    takes: str,
    elements: int,
    length: float,
    E: float,
    rho: float,
    force: float = 0.0,
    tol: float = 1e-12,
    **options: object,
) -> cs.structures.SecondOrder:
    """A bar for a system file: it `takes` a "force" or a "displacement" at its end."""
    made = cs.structures.Bar(elements=elements, length=length, E=E, rho=rho)
    return force_bar(made, force, tol, **options) if takes == "force" else displacement_bar(made, tol, **options)


def force_truss(p: TrussTruss = SOURCE, **options: object) -> cs.structures.SecondOrder:
    """Truss one, pulled by the constant force."""
    return force_bar(p.one, p.force, p.local_tol, **options)


def displacement_truss(p: TrussTruss = SOURCE, **options: object) -> cs.structures.SecondOrder:
    """Truss two, which follows."""
    return displacement_bar(p.two, p.local_tol, **options)


def system(p: TrussTruss = SOURCE, **options: object) -> cs.System:
    """The coupled system; residuals are measured in N and m, as in the source."""
    joined = cs.System({"one": force_truss(p, **options), "two": displacement_truss(p, **options)})
    joined.equations(
        {"force": "one.f", "displacement": "two.u"},
        lambda force, displacement, u_one, f_two: (force - f_two, displacement - u_one),
        of=["one.u", "two.f"],
    )
    return joined


def connected(p: TrussTruss = SOURCE, **options: object) -> cs.System:
    """The same as two plain connections, for serial sweeps: truss two first, then truss one with its force."""
    joined = cs.System({"one": force_truss(p, **options), "two": displacement_truss(p, **options)})
    joined.connect("two.f", "one.f")
    joined.connect("one.u", "two.u")
    return joined


def monolithic(p: TrussTruss = SOURCE) -> np.ndarray:
    """Displacement of the joint at every time, from one Newton iteration on all nodes (an independent code)."""
    n1, n2 = p.one.n, p.two.n
    n = n1 + n2 - 1  # joint last
    in_one, in_two = np.r_[0 : n1 - 1, n - 1], np.r_[n1 - 1 : n]
    M = np.zeros(n)
    M[in_one] += p.one.mass()
    M[in_two] += p.two.mass()
    u_now = u_old = np.zeros(n)
    found = [0.0]
    for _ in range(p.steps):
        u = u_now.copy()
        for _ in range(30):
            r = M * (u - 2 * u_now + u_old) / p.h**2
            A = np.diag(M) / p.h**2
            for bar, where in ((p.one, in_one), (p.two, in_two)):
                r[where] += bar.internal_force(u[where])
                A[np.ix_(where, where)] += bar.tangent(u[where])
            r[-1] -= p.force
            if np.abs(r).max() < 1e-13:
                break
            step = np.linalg.solve(A, -r)
            u = u + step
            if np.abs(step).max() < 1e-16:
                break
        u_now, u_old = u, u_now
        found.append(float(u[-1]))
    return np.array(found)
