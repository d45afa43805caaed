"""A run whose method and step follow from a tolerance: the search, the run, and the doubts that remain."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import numpy as np

from cosolve.accuracy.auto import Choice, Trial, sentences
from cosolve.accuracy.auto.choose import USUAL, Chooser, tolerance
from cosolve.accuracy.auto.compared import Compared
from cosolve.accuracy.auto.pilot_comparison import EXPLAINED, LEAST, MOST, RUNS
from cosolve.accuracy.auto.pilots import subsystem_steps
from cosolve.accuracy.auto.trial import LIMITED, SAFETY
from cosolve.accuracy.error_bar import estimated
from cosolve.errors import AccuracyWarning, SetupError, SimulationError, warn
from cosolve.interface import System
from cosolve.options import RunOptions
from cosolve.result import ErrorBar, Result
from cosolve.result.notes import Note
from cosolve.run.diagnoses import FixedWarning, ToleranceCheck
from cosolve.run.simulate import keep_error_bar, run_given
from cosolve.stepsize import Adaptive


def run_chosen(system: System, options: RunOptions) -> Result:
    """`simulate` where something is left to choose."""
    rtol = tolerance(options.method, options.step, options.rtol) or USUAL
    for name, why in (
        ("resume", "a saved state continues with the method and step that it was saved with"),
        ("pace", "a run in real time cannot be preceded by pilots"),
    ):
        if getattr(options, name) is not None:
            raise SetupError(f"{name} goes with a given method and step ({why}); cs.choose finds them beforehand")
    shared = ("t_start", "t_end", "startup", "workers", "compiled", "stop_at_events")
    given = {name: getattr(options, name) for name in shared}
    chooser = Chooser(system, options.method, options.step, rtol, options.costs, **given)
    return _Chosen(system, chooser, options).result()


class _Chosen:
    """The run that follows a choice, made again where it is in doubt."""

    def __init__(self, system: System, chooser: Chooser, options: RunOptions) -> None:
        self._system, self._chooser, self._options = system, chooser, options
        self._checks = 0  # subsystem steps that measured runs

    def result(self) -> Result:
        """Run until the tolerance is met, or the error cannot be estimated; another method if the chosen one fails."""
        chooser, most = self._chooser, self._options.max_steps
        if chooser.choice.pilot is None or chooser.step is not None or not isinstance(chooser.choice.step, Adaptive):
            return self._run(chooser.choice, FixedWarning(chooser.choice.doubt), most)
        while True:
            try:
                return self._agreed(chooser.choice)
            except SimulationError as error:
                if most is not None and error.result is not None and error.result.stats.steps >= most:
                    raise  # the limit that was given; no method is to blame
                failure = error  # the newest, whose rows are in the file
                chooser.search.give_up(chooser.choice, str(error))
            try:
                chooser.choice = chooser.search.choice()
            except SimulationError as nothing:
                failure.add_note(str(nothing))
                raise failure from None

    def _agreed(self, choice: Choice) -> Result:
        """The run, compared with its pilot; where it moves that too far, more of them until two agree."""
        pilot, tolerance = choice.pilot, self._chooser.rtol
        assert pilot is not None
        compared = Compared(pilot.t, pilot.y, pilot.size)
        compared.allowed = EXPLAINED * pilot.error + tolerance if pilot.known else -inf
        shrunk = 1.0
        for n in range(RUNS):
            assert isinstance(choice.step, Adaptive)
            compared.last = n == RUNS - 1
            result = self._run(choice, compared, self._options.max_steps or _enough(pilot, choice.step))
            error = nan if result.stats.note("tolerance") else self._measured(choice, result)
            missed = error > tolerance
            result.choice = replace(choice, checks=self._checks)
            if not (result.stats.note("tolerance") or missed) or compared.last:
                return self._missed(result, error) if missed else result
            trial = Trial(choice.method, choice.step, result.stats.steps, subsystem_steps=subsystem_steps(result))
            moved = error if missed else compared.moved
            if missed:
                shrunk = SAFETY * error / tolerance
            else:
                shrunk = LEAST if n == 0 else min(MOST, max(LEAST, SAFETY * moved / (shrunk - 1.0) / tolerance))
            choice = self._chooser.search.repeated(choice, trial, shrunk, moved, missed=missed)
            allowed = EXPLAINED * error + tolerance if missed else tolerance
            compared = Compared(pilot.t, compared.values, np.maximum(compared.size, compared.reached), allowed)
        raise AssertionError("the last run is returned, whatever it is like")

    def _measured(self, choice: Choice, result: Result) -> float:
        """The coupling error of the run itself: by its bar where it has one, or by its shadow.

        The latter where its pilot says little about it: not the tolerance but the longest step limited that, or the run
        took fewer steps than the pilot's error calls for.
        """
        bar, pilot = result.error_bar, choice.pilot
        if bar is not None:
            return bar.worst / (3.0 if bar.sure else 2.0)
        if pilot is None:
            return nan
        expected = pilot.expected(result.stats.steps)
        limited = pilot.level < LIMITED
        if not (limited or expected > self._chooser.rtol):
            return nan
        if self._options.every != 1 or self._options.record is not None or len(result.t) != result.stats.steps + 1:
            return nan if limited else expected
        measured = self._chooser.runner.measured(choice.method, choice.step, result)
        self._checks += sum(measured.shadow.values())
        return measured.error

    def _missed(self, result: Result, error: float) -> Result:
        """The last run there is, which has missed the tolerance by what it knows itself."""
        text = sentences.over(error, self._chooser.rtol)
        result.stats.add(Note("tolerance", text))
        warn(text, AccuracyWarning)
        return result

    def _run(self, choice: Choice, tolerance_check: ToleranceCheck, max_steps: int | None) -> Result:
        wanted, given = self._options.error_bar, self._options
        options = replace(given, method=choice.method, step=choice.step, max_steps=max_steps, error_bar=False)
        result = run_given(
            self._system, options, choice=choice.sentence, tolerance_check=tolerance_check, bar_later=wanted
        )
        result.choice, doubt = choice, result.stats.note("tolerance")
        if doubt and isinstance(tolerance_check, Compared) and not tolerance_check.last:
            return result
        if doubt:
            warn(doubt, AccuracyWarning)
        if wanted:  # a shadow alone is not believed any more where there is doubt
            unknown = ErrorBar(result.t, reason=doubt) if doubt else None
            bar = unknown or estimated(self._system, result, sure=wanted == "sure", proven=True)
            keep_error_bar(result, bar, self._options.save)
        return result


def _enough(pilot: Trial, step: Adaptive) -> int:
    """Steps that a run surely does not need; where it takes them nevertheless, something is wrong."""
    assert isinstance(pilot.step, Adaptive)
    return int(1000 + 30 * pilot.steps * (pilot.step.rtol / step.rtol) ** (1.0 / (pilot.method.degree + 1)))
