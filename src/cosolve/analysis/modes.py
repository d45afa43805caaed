"""What a macro step does to the motions of the coupled system: its factors per step beside `exp(lambda H)`.

A stable macro step may still be wrong. A stiff first-order coupling dies out at once, `exp(lambda H) = 0`, where
signals of degree 1 have a factor near -1: the run rings, and is called stable. So the eigenvalues of the amplification
matrix are compared with those of the coupled system over the same time (docs/theory.md, "Stiff couplings").

The reference is the map of the states over many short steps of degree 0, at two lengths and extrapolated. It needs no
more than the amplification matrix does. Motions that the short steps do not resolve either have died out by their end.

Where the step is not linear, the map is that of corrections repeated until they converge. A run repeats what leaves too
much; linearised far from equilibrium, a single correction has factors of its own, which no run shows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from cosolve.accuracy.amplification import AmplificationMatrix
from cosolve.analysis.stability import amplification_matrix
from cosolve.errors import CosolveError
from cosolve.interface import Plan, System
from cosolve.method import Implicit, Jacobi, Method, SemiImplicit

#: Factors from this size on last; a run has forgotten smaller ones after some steps. Signals of backward differences
#: over four points have factors up to 0.505 beside those of the motions.
LASTING = 0.52

#: Errors of a motion within a radian, or a time constant, relative to its amplitude: from the first on it is not
#: resolved, from the second on it is another motion.
UNRESOLVED, WRONG = 0.15, 0.5

#: Share of a fast motion that is left after a macro step, from which on it is taken for a slower one.
_FELT = 0.05

#: Short steps per macro step; the extrapolation is believed where the two are no further apart than this.
_SHORT, _APART = 32, 0.2

Complex = npt.NDArray[np.complex128]


@dataclass(frozen=True)
class Mode:
    """A factor per macro step that is not what it should be.

    `factor` is that of the macro step, `exact` that of the motion it stands for, None where there is none. `variable`
    is the coupling variable that takes the largest part, `error` what the motion is off by within a radian or a time
    constant, relative to its amplitude.
    """

    factor: complex
    exact: complex | None
    variable: str
    error: float = 1.0

    @property
    def text(self) -> str:
        """What is wrong, in a sentence without its end.

        >>> Mode(-0.993, None, "q").text
        "'q' rings: the factor -0.993 per step belongs to no motion that the step resolves, and lasts 656 steps"
        """
        if self.exact is not None:
            return (
                f"a motion seen in '{self.variable}' has the factor {_shown(self.factor)} per step instead of "
                f"{_shown(self.exact)}: the step does not resolve it"
            )
        kind = "rings" if self.rings else "lags"
        steps = np.log(0.01) / np.log(min(abs(self.factor), 1.0 - 1e-12))
        return (
            f"'{self.variable}' {kind}: the factor {_shown(self.factor)} per step belongs to no motion that the step "
            f"resolves, and lasts {steps:.3g} steps"
        )

    @property
    def spoils(self) -> bool:
        """Whether a run is not to be trusted where this motion takes part."""
        return self.error > WRONG

    @property
    def rings(self) -> bool:
        """Whether it turns by more than 60 degrees per step."""
        return bool(abs(np.angle(self.factor)) > np.pi / 3)


def wrong_modes(system: System, method: Method, H: float, here: AmplificationMatrix) -> list[Mode]:
    """The factors of the amplification matrix that last and are none of the coupled system, and those that miss theirs.

    >>> import cosolve as cs
    >>> def tank(C):
    ...     return cs.Linear([[0]], [[1 / C]], [[1]], x0=[1 - C], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(1.0), "two": tank(0.5)})
    >>> system.law({"one.q": -1, "two.q": 1}, lambda a, b: 1e4 * (a - b), of=["one.h", "two.h"], name="q")
    >>> for method in (cs.SemiImplicit(1), cs.SemiImplicit(1, signal="bdf")):
    ...     print(wrong_modes(system, method, 0.02, cs.analysis.amplification_matrix(system, method, 0.02)))
    [Mode(factor=(-0.993...), exact=None, variable='q', error=1.0)]
    []
    """
    here = _repeated(system, method, H, here)
    values, vectors = np.linalg.eig(here.matrix)
    mu = values.astype(np.complex128)
    exact = coupled_factors(system, H)
    if exact is None:  # nothing to compare with: what turns by more than 120 degrees per step is not resolved anyway
        found = [k for k in range(len(mu)) if abs(mu[k]) > LASTING and abs(np.angle(mu[k])) > 2 * np.pi / 3]
        return _named(system, here, vectors, [(mu[k], None, k) for k in found])
    rows, columns = linear_sum_assignment(np.abs(exact[:, np.newaxis] - mu[np.newaxis, :]))
    bad: list[tuple[complex, complex | None, int]] = [
        (mu[k], exact[n], int(k))
        for n, k in zip(rows, columns, strict=True)
        if max(abs(mu[k]), abs(exact[n])) > LASTING and _error(mu[k], exact[n]) > UNRESOLVED
    ]
    extra = sorted(set(range(len(mu))) - set(columns.tolist()))
    bad += [(mu[k], None, k) for k in extra if abs(mu[k]) > LASTING]
    bad = [(factor, None if wanted is not None and abs(wanted) < 0.05 else wanted, k) for factor, wanted, k in bad]
    return _named(system, here, vectors, bad)


def _repeated(system: System, method: Method, H: float, here: AmplificationMatrix) -> AmplificationMatrix:
    """The map with corrections that are repeated until they converge, where that is another one and can be found."""
    if here.linear or not isinstance(method, SemiImplicit) or not method.repeat:
        return here
    shared = ("degree", "signal", "predictor", "jacobian", "increment", "constraints")
    iterated = Implicit(**{name: getattr(method, name) for name in shared})
    try:
        found = amplification_matrix(system, iterated, H)
    except CosolveError:
        return here
    return found if np.isfinite(found.matrix).all() else here


def fastest_turns(system: System, H: float) -> tuple[float, str]:
    """Turns per macro step of the fastest motion that outlasts it, and the coupling variable that shows it most.

    Beyond half a turn its values at macro points are those of a slower motion too, and others cannot tell which.
    Motions that turn by more than half in a short step are not looked for.

    >>> import cosolve as cs
    >>> def mass(w, x):
    ...     return cs.Linear([[0, 1], [-w * w, 0]], [[0], [1]], [[1, 0]], x0=[x, 0], inputs=["f"], outputs=["x"])
    >>> system = cs.System({"slow": mass(1.0, 0.1), "fast": mass(100.0, 1.0)})
    >>> system.law({"slow.f": 1, "fast.f": -1}, lambda a, b: b - a, of=["slow.x", "fast.x"], name="F")
    >>> turns, name = fastest_turns(system, 0.1)
    >>> round(turns, 2), name
    (1.59, 'F')
    """
    plan = system.plan()
    method = _held(plan)
    if method is None:
        return 0.0, ""
    try:
        here = amplification_matrix(system, method, H / _SHORT)
    except CosolveError:
        return 0.0, ""
    if not np.isfinite(here.matrix).all():
        return 0.0, ""
    values, vectors = np.linalg.eig(here.matrix)
    shown = np.abs(vectors[here.n_states : here.n_states + plan.n_z]) / plan.z_nominal[:, np.newaxis]
    seen = shown.max(axis=0, initial=0.0) > 1e-6 * shown.max(initial=0.0)
    turns = np.where(seen & (np.abs(values) ** _SHORT > _FELT), np.abs(np.angle(values)), 0.0)
    k = int(np.argmax(turns)) if len(turns) else 0
    if not turns.any() or not len(shown):
        return 0.0, ""
    return float(turns[k]) * _SHORT / (2.0 * np.pi), plan.z_labels[int(np.argmax(shown[:, k]))]


def _held(plan: Plan) -> Method | None:
    """The method of degree 0 whose short steps show the coupled system; None where there is none."""
    for method in (SemiImplicit(0), Jacobi(0)):
        if not method.complaints(plan):
            return method
    return None


def coupled_factors(system: System, H: float) -> Complex | None:
    """`exp(lambda H)` of the coupled system, linearised where it starts; None where short steps do not tell."""
    plan = system.plan()
    method = _held(plan)
    if method is None:
        return None
    try:
        maps = [amplification_matrix(system, method, H / count) for count in (_SHORT, 2 * _SHORT)]
    except CosolveError:
        return None
    n = len(maps[0].matrix) if method.explicit else maps[0].n_states  # held at its end, nothing of the past enters
    coarse, fine = (
        np.linalg.matrix_power(each.matrix[:n, :n], count)
        for each, count in zip(maps, (_SHORT, 2 * _SHORT), strict=True)
    )
    if not (np.isfinite(coarse).all() and np.isfinite(fine).all()):
        return None
    ours, theirs = np.linalg.eigvals(2.0 * fine - coarse), np.linalg.eigvals(fine)
    rows, columns = linear_sum_assignment(np.abs(ours[:, np.newaxis] - theirs[np.newaxis, :]))
    apart = np.abs(ours[rows] - theirs[columns]) / np.maximum(1.0, np.abs(ours[rows]))
    return ours.astype(np.complex128) if apart.max(initial=0.0) < _APART else None


def _error(factor: complex, exact: complex) -> float:
    """The largest difference of the powers within a radian or a time constant, relative to the larger motion."""
    if abs(exact) < 1e-12:
        return abs(factor)
    rate = abs(np.log(exact))
    steps = np.arange(1, max(2, min(1000, int(np.ceil(1.0 / max(rate, 1e-3))) + 1)))
    return float(np.abs(factor**steps - exact**steps).max() / max(1.0, abs(exact) ** steps[-1]))


def _named(
    system: System, here: AmplificationMatrix, vectors: Complex, bad: list[tuple[complex, complex | None, int]]
) -> list[Mode]:
    """One mode for each pair of conjugates, what spoils a run first, with the coupling variable that shows it most."""
    plan, found = system.plan(), []
    for factor, exact, k in sorted(bad, key=lambda one: -abs(one[0])):
        if factor.imag < -1e-12:
            continue
        shown = np.abs(vectors[here.n_states : here.n_states + plan.n_z, k]) / plan.z_nominal
        error = 1.0 if exact is None else _error(factor, exact)
        found.append(Mode(complex(factor), exact, plan.z_labels[int(np.argmax(shown))], error))
    return sorted(found, key=lambda mode: -mode.spoils)


def _shown(value: complex) -> str:
    if abs(value.imag) < 1e-3 * abs(value):
        return f"{value.real:.3g}"
    return f"{value.real:.2g}{value.imag:+.2g}i"
