"""Method and step for a system, from the coupling error that is wanted (`cs.choose`)."""

from __future__ import annotations

from collections.abc import Mapping

from cosolve.accuracy.auto import Choice, Search, Trial, sentences
from cosolve.accuracy.auto.candidates import Candidates, candidates, only
from cosolve.accuracy.auto.pilots import Pilots
from cosolve.basics.checks import is_number, is_positive, whole
from cosolve.basics.wording import did_you_mean
from cosolve.errors import SetupError, SimulationError
from cosolve.interface import Plan, System
from cosolve.method import GaussSeidel, Method
from cosolve.method.named import MethodLike, as_method, is_open
from cosolve.run.startup import Startup
from cosolve.run.stepper import checked_plan
from cosolve.stepsize import Adaptive, refuse_bad_span
from cosolve.subsystem.base import has_capability
from cosolve.subsystem.signatures import keywords_only

SMALLEST, LARGEST, USUAL = 1e-9, 0.1, 1e-4  # of rtol


@keywords_only("cs.choose(system, t_end=1.0, rtol=1e-4)")
def choose(
    system: System,
    *,
    t_end: float,
    rtol: float = USUAL,
    method: MethodLike | None = None,
    step: float | Adaptive | None = None,
    t_start: float = 0.0,
    startup: Startup | None = None,
    workers: int = 1,
    compiled: bool | None = None,
    stop_at_events: bool = False,
    costs: Mapping[str, float] | None = None,
) -> Choice:
    """Choose the cheapest coupling method and macro step for a wanted coupling error.

    Parameters
    ----------
    system : System
        The coupled system. Its subsystems start anew for every pilot run.
    t_end : float
        End of the run in seconds.
    rtol : float, default 1e-4
        Wanted coupling error, as a fraction of each output's largest value, from 1e-9 to 0.1.
    method : Method, str, dict or None, default None
        A method to keep; None chooses it.
    step : float, Adaptive or None, default None
        A macro step to keep; None chooses it.
    t_start : float, default 0.0
        Start of the run in seconds.
    startup : Startup or None, default None
        As for `simulate`.
    workers : int, default 1
        Threads of the run that follows; with several, the sweep is parallel.
    compiled : bool or None, default None
        As for `simulate`.
    stop_at_events : bool, default False
        As for `simulate`.
    costs : mapping of str to float or None, default None
        Cost of a subsystem step compared with the others, 1 where nothing is said. None counts steps; measured times
        then count only for subsystems that take a millisecond or more, by a factor of 4 or more, so that the choice is
        the same each time.

    Returns
    -------
    Choice
        Method, step and the reasons.

    Raises
    ------
    SimulationError
        If no method is left, or no pilot run gave an answer.

    Notes
    -----
    A pilot run with a loose tolerance tells how large the coupling error is in units of the tolerance of the step
    control; the price of the final run follows from the order. Explicit coupling is tried first, semi-implicit coupling
    where that is unstable, impossible or expensive. A pilot that fails is no failure as long as another method is left.

    Examples
    --------
    >>> import cosolve as cs
    >>> tank = lambda h: cs.Linear([[-1]], [[1]], [[1]], x0=[h], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(1.0), "two": tank(0.0)})
    >>> system.connect("one.h", "two.q"); system.connect("two.h", "one.q")
    >>> choice = cs.choose(system, t_end=5.0, rtol=1e-4)
    >>> choice.method.label, len(choice.trials)
    ('GaussSeidel(3)', 1)
    """
    return Chooser(system, method, step, rtol, costs, t_start, t_end, startup, workers, compiled, stop_at_events).choice


def tolerance(method: object, step: object, rtol: float | None) -> float | None:
    """The tolerance from which something follows; None where method and step are given and it is not.

    >>> tolerance("auto", None, None), tolerance("jacobi", 0.1, None), tolerance(None, None, 1e-3)
    (0.0001, None, 0.001)
    """
    if rtol is None:
        if method is None:
            raise SetupError(
                "nothing says how to run it: give a tolerance (rtol = 1e-4), from which method and step follow, or a "
                "method such as 'jacobi' with a step"
            )
        return USUAL if is_open(method) else None
    if not (is_number(rtol) and SMALLEST <= rtol <= LARGEST):
        raise SetupError(f"rtol must be a number from {SMALLEST:g} to {LARGEST:g}, not {rtol!r}")
    if not is_open(method) and step is not None:
        raise SetupError(
            "method and step are given, so rtol has nothing to choose; leave one of them out, or take error_bar=True "
            "to see the coupling error"
        )
    return float(rtol)


class Chooser:
    """A search and what it has found."""

    def __init__(
        self,
        system: System,
        method: MethodLike | None,
        step: float | Adaptive | None,
        rtol: float,
        costs: Mapping[str, float] | None,
        t_start: float,
        t_end: float,
        startup: Startup | None = None,
        workers: int = 1,
        compiled: bool | None = None,
        stop_at_events: bool = False,
    ) -> None:
        rtol = tolerance(method, step, rtol) or USUAL
        refuse_bad_span(t_start, t_end)
        given = None if method is None or is_open(method) else as_method(method)
        if given is not None and given.chooses_step:
            raise SetupError(f"{given.name} chooses its steps itself, and rtol cannot; leave out rtol, or the method")
        if not isinstance(system, System):
            raise SetupError(f"choose takes a cosolve.System, not a {type(system).__name__}")
        plan = system.plan() if given is None else checked_plan("choose", system, given, workers)
        whole("choose", "workers", workers)
        refuse_bad_costs(costs, plan)
        self.plan, self.rtol, self.step = plan, float(rtol), step
        self._span = t_end - t_start
        self._found = candidates(plan, workers) if given is None else only(given)
        self.runner = Pilots(system, t_start, t_end, startup, workers, None if compiled else compiled, stop_at_events)
        rolls_back = all(has_capability(subsystem, "rollback") for subsystem in plan.subsystems)
        self._stops = stop_at_events
        self.search = Search(self.runner, self._found, self.rtol, self._span, rolls_back, costs)
        self.choice = self._chosen()

    def _chosen(self) -> Choice:
        if self.plan.n_z == 0:
            return self._uncoupled()
        if self.step is not None:
            return self._at_step(self.step)
        fixed = fixed_step(self.plan)
        return self.search.choice() if fixed is None else self._at_fixed(*fixed)

    def _uncoupled(self) -> Choice:
        """Nothing is exchanged, so nothing can be wrong with that."""
        first = self._found.explicit or self._found.corrected or self._found.iterated
        assert first is not None, "without coupling variables every method fits"
        step = self._span / 100 if self.step is None else self.step
        return Choice(first, step, f"{first.label}, step {step}: nothing is exchanged, so there is no coupling error")

    def _at_step(self, step: float | Adaptive) -> Choice:
        """The first method that meets the tolerance with the given step."""
        return at_step(self.runner, self._found, step, self.rtol)

    def _at_fixed(self, step: float, names: tuple[str, ...]) -> Choice:
        """A method for subsystems that take steps of one length: one that is proven, or their outputs held."""
        try:
            choice = self._at_step(step)
            if not choice.doubt:
                return choice
        except SimulationError:
            pass
        hold: Method = GaussSeidel(degree=0, order=names)
        if self._found.explicit is None or only(self._found.explicit) == self._found:  # a method that was given
            hold = self._found.explicit or self._found.corrected or self._found.iterated or hold
        remedy = "" if self._stops else "take stop_at_events=True where it has events, or "
        why = (
            f"'{names[0]}' works in steps of {step:g}, so macro steps are as long, and the coupling error cannot be "
            f"measured on others; {remedy}give method and step"
        )
        return Choice(hold, step, f"{hold.label}, step {step:g}: {why}", (), None, doubt=why)


def fixed_step(plan: Plan) -> tuple[float, tuple[str, ...]] | None:
    """The macro step that subsystems with steps of one length ask for, and their names; None where there are none."""
    asked = {
        name: float(subsystem.fixed_step)
        for name, subsystem in zip(plan.names, plan.subsystems, strict=True)
        if subsystem.fixed_step is not None
    }
    if not asked:
        return None
    for name, length in asked.items():
        if not length > 0.0:
            raise SetupError(f"'{name}' takes steps of one length only and does not name it; give step")
    least = min(asked.values())
    for name, length in asked.items():
        if abs(length / least - round(length / least)) > 1e-6:
            raise SetupError(f"'{name}' works in steps of {length:g}, others in steps of {least:g}; give step")
    return least, tuple(asked)


def at_step(runner: Pilots, found: Candidates, step: float | Adaptive, rtol: float) -> Choice:
    """The first method, in the order of their cost per step, that meets the tolerance with the given step."""
    trials: list[Trial] = []
    for method in (found.explicit, found.corrected, found.iterated):
        if method is None:
            continue
        trial = runner.judged(method, step)
        trials.append(trial)
        if trial.known and not trial.blind and trial.excess(rtol) <= 1.0:  # nothing that is not proven
            return _with_step(trial, step, f"its coupling error is about {trial.error:.1e}", trials)
    known = [trial for trial in trials if trial.known]
    if not known:
        raise SimulationError(sentences.none_at(rtol, step, trials))
    best = min(known, key=lambda trial: trial.error)
    why = (
        f"its coupling error is about {best.error:.1e} and that of others larger, so rtol = {rtol:g} is out of reach; "
        "give no step, or a shorter one"
    )
    return _with_step(best, step, why, trials, doubt=f"{best.method.label} with the given step: {why}")


def _with_step(trial: Trial, step: float | Adaptive, why: str, trials: list[Trial], doubt: str = "") -> Choice:
    said = f"{trial.method.label}, with the given step: {why}"
    return Choice(trial.method, step, said, tuple(trials), trial, doubt)


def refuse_bad_costs(costs: Mapping[str, float] | None, plan: Plan) -> None:
    """Raise for costs that are not a positive number per subsystem."""
    if costs is None:
        return
    if not isinstance(costs, Mapping):
        raise SetupError(f"costs is a dict with the cost of a subsystem step by subsystem, not {costs!r}")
    for name, cost in costs.items():
        if name not in plan.names:
            raise SetupError(f"costs: there is no subsystem '{name}'; {did_you_mean(name, plan.names)}")
        if not is_positive(cost):
            raise SetupError(f"costs: a subsystem step of '{name}' costs a positive number, not {cost!r}")
