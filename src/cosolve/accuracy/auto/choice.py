"""The search for method and step: pilots in the order of their price, and the cheapest method that they leave over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Protocol

from cosolve.accuracy.auto import sentences
from cosolve.accuracy.auto.candidates import Candidates
from cosolve.accuracy.auto.pilot_comparison import difference
from cosolve.accuracy.auto.trial import LEAST_RTOL, Trial
from cosolve.errors import SimulationError
from cosolve.method import Method
from cosolve.stepsize import Adaptive

LOOSE = (1e-2, 1e-3, 1e-4, 1e-5)  # tolerances of pilots: the next one where nothing comes of the one before
REFUSED = 0.2  # a coupling error above this says nothing about smaller ones
DIFFERENT = 0.5  # the same of the difference between two runs, of which the second is nine times better
BELIEVED = 3.0  # coupling errors in units of rtol: shadows that say more are usually wrong
SHORT = 400  # steps of an explicit pilot, where another method may do with fewer
LONG = 1600  # steps of that other one; where these do not suffice either, the run is long and not stiff
MOST = 100_000  # steps of any pilot
CHEAP = 10  # subsystem steps of each subsystem and pilot step: below, another pilot does not pay
OVERRULED = 4.0  # measured times speak against the count of subsystem steps from this factor on
SHORTER = 0.6  # times the longest step of a run that was in doubt
SMALL = 0.3  # coupling variables below this part of their nominal values would not be controlled


class Runner(Protocol):
    """Makes the runs of a search, and catches what goes wrong in them."""

    def pilot(self, method: Method, step: float | Adaptive, max_steps: int, *, shadow: bool = True) -> Trial:
        """A run, with its coupling error where that is wanted."""


@dataclass(frozen=True)
class Choice:
    """A method and a macro step for a wanted coupling error, from `choose`; `print` says why.

    Parameters
    ----------
    method : Method
        The chosen method.
    step : float, Adaptive or None
        The chosen macro step or error control.
    sentence : str
        Why it was chosen.
    trials : tuple of Trial
        The pilot runs.
    pilot : Trial or None, default None
        The pilot run on which the choice rests.
    doubt : str, default ""
        Why the tolerance will not be met, if so.
    checks : int, default 0
        Subsystem steps that measured the coupling error of the run that followed.

    Examples
    --------
    >>> import cosolve as cs
    >>> choice = Choice(cs.Jacobi(1), 0.1, "Jacobi(1) with step 0.1")
    >>> choice.method.label, choice.step, choice.spent
    ('Jacobi(1)', 0.1, 0)
    """

    method: Method
    step: float | Adaptive | None
    sentence: str
    trials: tuple[Trial, ...] = field(default=(), repr=False, compare=False)  # they hold times, which are never equal
    pilot: Trial | None = field(default=None, repr=False, compare=False)
    doubt: str = ""
    checks: int = field(default=0, repr=False, compare=False)

    @property
    def spent(self) -> int:
        """Subsystem steps of all pilot runs and checks, Jacobians included."""
        return sum(trial.spent for trial in self.trials) + self.checks

    def __str__(self) -> str:
        return self.sentence


class Search:
    """Looks for the cheapest method that meets `tolerance` over a run of length `span`.

    `rolls_back` says whether steps can be repeated, `costs` what a subsystem step of a subsystem costs where that is
    not 1. Costs that are not given are measured; the count of subsystem steps decides unless they speak clearly against
    it.
    """

    def __init__(
        self,
        runner: Runner,
        found: Candidates,
        tolerance: float,
        span: float,
        rolls_back: bool,
        costs: Mapping[str, float] | None = None,
    ) -> None:
        self._runner, self._found, self._tolerance, self._span = runner, found, tolerance, span
        self._rolls_back, self._costs = rolls_back, costs
        self.trials: list[Trial] = []
        self._given_up: set[str] = set()  # methods for which smaller tolerances are no remedy
        self._begun: dict[str, Trial] = {}  # runs that the next one is compared with
        self._is_long = False  # many steps, and not for the sake of stability

    def choice(self) -> Choice:
        """Pilots, and what follows from them."""
        for rtol in LOOSE:
            arms = self._arms(rtol)
            if arms:
                return self._cheapest(arms)
        complaints = self._found.complaints
        failure = SimulationError(sentences.nothing(self._tolerance, self.trials, complaints))
        failure.add_note(f"tried: {sentences.everything(self.trials, complaints)}")
        raise failure

    def control(self, rtol: float, largest: float = 1.0 / 30, scale: float = 1.0) -> Adaptive:
        """Steps at a tolerance; without rollback the first ones cannot be repeated and must be short enough."""
        first = 1e-3 if self._rolls_back else 3e-4 * sqrt(rtol / LOOSE[0])
        atol = None if scale == 1.0 else rtol * scale
        return Adaptive(rtol=rtol, atol=atol, first_step=first * self._span, max_step=largest * self._span)

    def _arms(self, rtol: float) -> list[Trial]:
        """The methods that a pilot at this tolerance leaves over."""
        explicit, corrected, iterated = self._found.explicit, self._found.corrected, self._found.iterated
        arms: list[Trial] = []
        first = self._tried(explicit, rtol, MOST if corrected is None else SHORT)
        arms += [] if first is None else [first]
        if first is None or (corrected is not None and self._is_dear(first)):
            long = explicit is not None and self._is_over(explicit)
            second = self._tried(corrected, rtol, LONG if long else MOST)
            dear = second.steps > SHORT if second else corrected is not None and self._is_over(corrected)
            damped = self._damped(rtol) if dear else None
            arms += [] if damped is None else [damped]
            if (
                damped is None
                and second is None
                and corrected is not None
                and long
                and self._is_over(corrected)
                and not self._is_long
            ):
                self._is_long = True
                self._given_up -= {repr(explicit), repr(corrected)}
                second = self._tried(explicit, rtol, MOST) or self._tried(corrected, rtol, MOST)
            arms += [] if second is None else [second]
        if not arms and rtol < LOOSE[0]:
            last = self._tried(iterated, rtol, MOST)
            arms += [] if last is None else [last]
        known = [arm for arm in arms if arm.known]
        return known or arms

    def _damped(self, rtol: float) -> Trial | None:
        """The first method for stiff couplings that comes through, where others take many steps."""
        for method in self._found.damped:
            trial = self._tried(method, rtol, LONG)
            if trial is not None:
                return trial
        return None

    def _is_over(self, method: Method) -> bool:
        return any(trial.method == method and trial.over for trial in self.trials)

    def _is_dear(self, arm: Trial) -> bool:
        """True when the final run will cost so much that a pilot of another method pays."""
        if not arm.known:
            return False
        each = sum((self._costs or {}).get(name, 1.0) for name in arm.subsystem_steps)
        return arm.price(self._tolerance, self._costs or {}) > CHEAP * each * min(arm.steps, 100)

    def _tried(self, method: Method | None, rtol: float, max_steps: int) -> Trial | None:
        """A pilot, where it leads anywhere."""
        if method is None or repr(method) in self._given_up:
            return None
        trial = self._begun.pop(repr(method), None)
        if trial is None:
            trial = self._piloted(method, rtol, max_steps)
            if trial.why or trial.blind or trial.error <= min(BELIEVED * rtol, REFUSED):
                return self._noted(trial)
        return self._noted(self._compared_with(trial, max_steps))

    def _noted(self, trial: Trial) -> Trial | None:
        self.trials.append(trial)
        if trial.over or trial.hopeless:
            self._given_up.add(repr(trial.method))
        return None if trial.why else trial

    def _piloted(self, method: Method, rtol: float, max_steps: int) -> Trial:
        trial = self._runner.pilot(method, self.control(rtol), max_steps)
        if trial.why or not 0.0 < trial.largest < SMALL:
            return trial
        self.trials.append(replace(trial, why="its coupling variables are far below their nominal values"))
        return self._runner.pilot(method, self.control(rtol, scale=trial.largest), max_steps)

    def _compared_with(self, pilot: Trial, max_steps: int) -> Trial:
        """A second run in place of a shadow that says too much to be believed: of stiff systems, and at kinks."""
        assert isinstance(pilot.step, Adaptive)
        told = f"{pilot.error:.1e} by its shadow" if pilot.known else "unknown"
        self.trials.append(replace(pilot, why=f"its coupling error is {told}"))
        step = self.tightened(pilot, 0.1 * pilot.step.rtol, 1.0 / 30)
        second = self._runner.pilot(pilot.method, step, 2 * max_steps, shadow=False)
        if second.why:
            return second
        moved = difference(second, pilot)
        if moved <= DIFFERENT:
            return second.after(pilot, moved)
        self._begun[repr(pilot.method)] = second
        return replace(second, why=f"it differs by {sentences.percent(moved)} from the one before")

    def _cheapest(self, arms: list[Trial]) -> Choice:
        best, remark = self._compared(arms)
        assert isinstance(best.step, Adaptive)
        wanted = best.rtol(self._tolerance) if best.known else min(self._tolerance, 0.25 * best.step.rtol)
        step = self.tightened(best, wanted)
        sentence = sentences.chosen(best, step, self._tolerance, remark or self._other(best, arms))
        return Choice(best.method, step, sentence, tuple(self.trials), best)

    def tightened(self, pilot: Trial, rtol: float, longest: float = 1.0 / 40) -> Adaptive:
        """The steps of a run that follows a pilot; also where they are not controlled they are shorter than there."""
        assert isinstance(pilot.step, Adaptive)
        scale = 1.0 if pilot.step.atol is None else pilot.step.atol / pilot.step.rtol
        return self.control(float(f"{rtol:.1e}"), longest, scale)

    def give_up(self, choice: Choice, why: str) -> None:
        """What was chosen does not work after all."""
        self.trials.append(Trial(choice.method, choice.step, why=why))
        self._given_up.add(repr(choice.method))

    def repeated(self, choice: Choice, trial: Trial, factor: float, moved: float, missed: bool = False) -> Choice:
        """The choice once more with a tighter tolerance, after a run that was in doubt or has `missed` it."""
        assert choice.pilot is not None
        assert isinstance(choice.step, Adaptive)
        # shorter also where not rtol but the longest step limits them: two runs on one grid would always agree
        longest = SHORTER * choice.step.max_step / self._span
        step = self.tightened(choice.pilot, max(choice.step.rtol / factor, LEAST_RTOL), longest)
        why = f"its coupling error is {moved:.1e}" if missed else f"it differs by {moved:.1e} from the run before it"
        self.trials.append(replace(trial, why=why))
        sentence = sentences.repeated(choice.sentence, step.rtol, moved, missed)
        return replace(choice, step=step, sentence=sentence, trials=tuple(self.trials))

    def _compared(self, arms: list[Trial]) -> tuple[Trial, str]:
        """The cheapest, and a remark where measured times decided."""
        tolerance = self._tolerance
        best = min(arms, key=lambda arm: arm.price(tolerance, self._costs or {}))
        if self._costs is not None or len(arms) == 1:
            return best, ""
        faster = min(arms, key=lambda arm: arm.time(tolerance))
        if faster is best or best.time(tolerance) <= OVERRULED * faster.time(tolerance):
            return best, ""
        return faster, sentences.faster(faster, best, tolerance)

    def _other(self, best: Trial, arms: list[Trial]) -> str:
        """Why no other method."""
        for arm in arms:
            if arm is not best:
                costs = self._costs or {}
                ratio = arm.price(self._tolerance, costs) / best.price(self._tolerance, costs)
                return f"{arm.method.label} would take about {ratio:.2g} times as many subsystem steps"
        return sentences.others(best, self.trials, self._found)
