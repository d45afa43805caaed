"""What came of a forced failure, judged against the same run without it.

`sentence`   ended with one sentence, and the rows up to the failed step are those of the undisturbed run
`refused`    a sentence before anything ran
`right`      went on, with the right numbers
`warned`     went on with other numbers, and said so
`as given`   a huge but finite number is what the subsystem says; the run goes on with finite numbers
`asked`      ended where the subsystem asked for it, and said so
`passed on`  Ctrl-C and `SystemExit` go through to the caller, with the rows so far

and the bad ones: `SILENT` (wrong numbers, or wrong rows before the failure, silently), `BARE` (an exception that
is not ours), `POOR` (no sentence), `HANG`, `CRASH`, `ORPHAN` (a process or a file of shared memory left behind).
"""

from __future__ import annotations

import gc
import traceback
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from tests.process.isolated.leftovers import leftovers, stay
from tests.processes import children, until

import cosolve as cs
from campaigns.faults.cases import Case, options
from campaigns.faults.deeds import HARMLESS, Deed
from campaigns.faults.kinds import T_END, build

GOOD = ("sentence", "refused", "right", "warned", "as given", "asked", "passed on")
BAD = ("SILENT", "BARE", "POOR", "HANG", "CRASH", "ORPHAN")
#: could not be tried, because this kind does not run under this method or in this engine
NOT_TRIED = "not tried"
_CLOSE = 1e-5  # of the largest value: other roundings or iterates within the tolerance are no other answer


def judged(case: Case, pid: int) -> tuple[str, str]:
    """The class of the outcome, and the sentence or what is wrong."""
    if "isolated" not in case.kind:
        return _judged(case)
    before = leftovers()
    verdict = _judged(case)
    gc.collect()
    if verdict[0] in GOOD and not until(lambda: not children(pid), 20.0):
        return "ORPHAN", f"process {children(pid)} stays after: {verdict[1]}"
    if verdict[0] in GOOD and stay(before):
        return "ORPHAN", f"a file of shared memory stays after: {verdict[1]}"
    return verdict


def _judged(case: Case) -> tuple[str, str]:
    reference = _undisturbed(case.kind, case.place, case.method, case.compiled)
    if isinstance(reference, str):
        return NOT_TRIED, reference
    deed = Deed(case.deed, case.at, case.once)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            result = _run(build(case.kind, case.place, deed), case)
        except cs.CosolveError as error:
            return _stopped(error, reference, case.deed == "huge")
        except (KeyboardInterrupt, SystemExit) as error:
            whole = case.deed.startswith("raises ") and _begins(getattr(error, "result", None), reference)
            return ("passed on", repr(error)) if whole else ("SILENT", f"{error!r} without the rows so far")
        except BaseException as error:
            at = traceback.extract_tb(error.__traceback__)[-1]
            return "BARE", f"{type(error).__name__} at {Path(at.filename).name}:{at.lineno}: {_text(error):.200}"
    if deed.calls < case.at and "isolated" not in case.kind and not case.kind.startswith(("fmu", "jitted")):
        return NOT_TRIED, "so many calls do not come"
    words = "; ".join(str(w.message) for w in said if issubclass(w.category, UserWarning))
    words += str(result.stats).partition("NOTE: ")[2].partition("\n")[0]
    off = _difference(result, reference)
    if result.ended:
        fits = "asked" if case.deed == "asks for the end" and _begins(result, reference, ended=True) else "SILENT"
        return fits, result.ended
    if off <= _CLOSE:
        return "right", words
    if case.deed == "huge" and np.isfinite(_rows(result)["good.x"]).all():
        return "as given", "a finite number, and the run shows what follows from it"
    if words and case.deed not in HARMLESS:
        return "warned", words
    return "SILENT", f"finished, {off:.2g} off"


def _run(system: cs.System, case: Case) -> cs.Result:
    return cs.simulate(system, t_end=T_END, compiled=case.compiled, max_steps=2000, **options(case.method))


@cache
def _undisturbed(kind: str, place: str, method: str, compiled: bool) -> Any:
    """Rows of the run in which nothing happens, or why there is none."""
    case = Case(kind, place, "nothing", method, compiled)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _rows(_run(build(kind, place, Deed()), case))
    except cs.CosolveError as error:
        return str(error)


def _rows(result: cs.Result) -> dict[str, Any]:
    return {"t": np.array(result.t), **{name: np.array(result[name]) for name in result.names}}


def _stopped(error: cs.CosolveError, reference: dict[str, Any], given: bool) -> tuple[str, str]:
    text = _text(error)
    if "\n" in text.strip() or not 15 < len(text) < 1200:
        return "POOR", text
    result = getattr(error, "result", None)
    if result is None:
        early = isinstance(error, cs.errors.SetupError) or (
            isinstance(error, cs.errors.SimulationError) and not error.time
        )
        return ("refused", text) if early else ("POOR", f"no result with: {text}")
    return ("sentence", text) if given or _begins(result, reference) else ("SILENT", f"wrong rows before: {text}")


def _begins(result: cs.Result | None, reference: dict[str, Any], ended: bool = False) -> bool:
    """True when the rows are the first rows of the undisturbed run (up to rounding and iterates).

    A run that `ended` where a subsystem asked for it may have a last row inside a macro step.
    """
    if result is None:
        return False
    rows = _rows(result)
    if ended and len(rows["t"]) and np.min(np.abs(reference["t"] - rows["t"][-1])) > 1e-9:
        rows = {name: values[:-1] for name, values in rows.items()}
    n = len(rows["t"])
    if n > len(reference["t"]):
        return False
    return all(_off(values, reference[name][:n], reference[name]) <= _CLOSE for name, values in rows.items())


def _difference(result: cs.Result, reference: dict[str, Any]) -> float:
    rows = _rows(result)
    if len(rows["t"]) != len(reference["t"]):
        return float(np.inf)
    return max(_off(rows[name], values, values) for name, values in reference.items())


def _off(a: Any, b: Any, size: Any) -> float:
    if a.shape != b.shape:
        return float(np.inf)
    if not a.size:
        return 0.0
    off = float(np.max(np.abs(a - b)) / max(1e-12, float(np.max(np.abs(size)))))
    return off if np.isfinite(off) else float(np.inf)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as second:
        return f"<{type(second).__name__} in str()>"
