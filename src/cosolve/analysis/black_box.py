"""Stability of systems with subsystems that do not show their state, such as most co-simulation FMUs.

Nothing is linearised: the first macro steps of a run are repeated with a small push on the inputs, as
`accuracy/disturbed.py` describes. Where all subsystems can save and restore their state they begin again there,
otherwise they are started anew.
"""

from __future__ import annotations

import numpy as np

from cosolve.accuracy.budget import Budget
from cosolve.accuracy.disturbed import Estimate, Trials, estimate
from cosolve.errors import SetupError
from cosolve.interface import Plan, System
from cosolve.method import Method
from cosolve.method.named import MethodLike, as_method
from cosolve.stepsize import refuse_bad_step
from cosolve.subsystem.base import has_capability

#: Growth per macro step that is seen; the search for a limit goes from here, by factors, to where nothing is expected.
_SEEN = 1e-8
_FIRST, _FACTOR, _SMALLEST, _LARGEST = 1e-2, 4.0, 1e-8, 1e5
_LIMIT_ACCURACY = 0.01


def hides_state(plan: Plan) -> list[str]:
    """Names of the subsystems that do not give their state."""
    return [n for n, s in zip(plan.names, plan.subsystems, strict=True) if not has_capability(s, "state")]


def estimate_stability(system: System, method: MethodLike, step: float, *, t: float = 0.0) -> Estimate:
    """Estimate whether a coupled run is stable, by running it; no subsystem has to show its state.

    Parameters
    ----------
    system : System
        The coupled system.
    method : Method, str or dict
        The coupling method.
    step : float
        Macro step in seconds.
    t : float, default 0.0
        Start of the runs in seconds.

    Returns
    -------
    Estimate
        Verdict ("stable", "unstable" or "cannot tell"), spectral radius and its accuracy, and the number of macro steps
        it took.

    Notes
    -----
    It takes some 300 macro steps, more where that does not decide. Parts of the state that no input moves or no output
    shows, and what happens later in a nonlinear run, are not seen.

    Examples
    --------
    >>> import cosolve as cs
    >>> class Tank(cs.Subsystem):                        # can only be started and run forward
    ...     inputs, outputs = ["q"], ["h"]
    ...     def start(self, t0):
    ...         self.h = 1.0
    ...         return self.h
    ...     def advance(self, t0, t1, u):
    ...         self.h += (t1 - t0) * (u(t0)[0] - self.h)
    ...         return self.h
    >>> system = cs.System({"one": Tank(), "two": Tank()})
    >>> system.law("two.q", lambda h: -3 * h, of="one.h")
    >>> system.connect("two.h", "one.q")
    >>> found = cs.analysis.estimate_stability(system, cs.Jacobi(degree=0), 0.5)
    >>> found.verdict, round(found.radius, 6)           # exact: |0.5 + 0.5 sqrt(3) i| = 1
    ('cannot tell', 1.0)
    >>> print(cs.analysis.estimate_stability(system, cs.Jacobi(degree=0), 0.6))
    unstable: spectral radius about 1.113553 (to 1e-09)
    """
    return estimate(trials_of(system, as_method(method), step, t), step)


def trials_of(system: System, method: Method, H: float = 1.0, t: float = 0.0, budget: Budget | None = None) -> Trials:
    """Trials of a system from its start, once it is clear that there is something to try."""
    refuse_bad_step(H, "the macro step")
    plan = system.plan()
    method.refuse_unfit(plan)
    if method.chooses_step:
        raise SetupError(f"{method.name} has no fixed macro step to analyse; analyse GaussSeidel with its step instead")
    return Trials(plan, method, t, budget=budget)


def grows(trials: Trials, H: float) -> bool:
    """True when disturbances grow under steps of length `H`; raises where nothing can be told."""
    found = estimate(trials, H)
    if not np.isfinite(found.radius):
        raise SetupError(f"the stability at H = {H:g} cannot be estimated: {found.reason}")
    return found.verdict == "unstable" and found.radius > 1.0 + _SEEN


def estimated_limit(trials: Trials, step_range: tuple[float, float] | None) -> float:
    """The smallest step at which disturbances begin to grow, to 1 %; 0 when they always do, `inf` when they never do.

    Steps are tried a factor of 2 apart (without a range: from a stable one on), so narrow windows of instability may
    be missed.
    """
    if step_range is None:
        low = _FIRST
        while grows(trials, low):
            low /= _FACTOR
            if low < _SMALLEST:
                return 0.0
        high = _LARGEST
    else:
        low, high = step_range
        refuse_bad_step(low, "step_range")
        refuse_bad_step(high, "step_range")
        if grows(trials, low):
            return 0.0
    while low < high:
        above = min(2.0 * low, high)
        if grows(trials, above):
            return _narrowed(trials, low, above)
        low = above
    return np.inf


def limit_below(trials: Trials, H: float) -> float:
    """The limit below an unstable step: halved until it is stable, then narrowed to 1 %; 0 where none is found."""
    low = H
    for _ in range(10):
        low, high = 0.5 * low, low
        if not grows(trials, low):
            return _narrowed(trials, low, high)
    return 0.0


def _narrowed(trials: Trials, low: float, high: float) -> float:
    while high > (1.0 + _LIMIT_ACCURACY) * low:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if grows(trials, middle) else (middle, high)
    return high
