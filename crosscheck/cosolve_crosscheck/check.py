"""`crosscheck`: every FMU and SSP of a folder run by cosolve and by others, each run in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

from cosolve.basics.checks import is_positive, is_whole
from cosolve.errors import SetupError
from cosolve_crosscheck.cases import CO_SIMULATION, Case, find_cases
from cosolve_crosscheck.table import CrossCheck, Row
from cosolve_crosscheck.tools import outside_libcosim, outside_omsimulator
from cosolve_crosscheck.verdict import difference, judged, repeated
from cosolve_crosscheck.worker import Outcome, run

NOT_INSTALLED = "not installed"


def crosscheck(
    folder: str | Path,
    *,
    timeout: float = 60.0,
    jobs: int | None = None,
    max_steps: int = 500,
    progress: Callable[[float], None] | None = None,
) -> CrossCheck:
    """Run all FMUs and SSPs of a folder here and with FMPy, and compare the results.

    FMUs are programs: only check those you would run.

    Parameters
    ----------
    folder : str or Path
        Folder with FMUs and SSPs, also in subfolders.
    timeout : float, default 60.0
        Longest time of a run in seconds; each has a process of its own.
    jobs : int or None, default None
        Number of runs at the same time. None: one per processor, at most four.
    max_steps : int, default 500
        Largest number of communication steps; the end of the run is cut, the step is kept.
    progress : callable or None, default None
        `progress(fraction)` is called after every case.

    Returns
    -------
    CrossCheck
        A row per case: "equal" (largest difference at most 1e-12 of max(1, largest value)), "close" (1e-6), "differs",
        "both refuse", "only FMPy", "only cosolve", "crash" or "timeout".

    Notes
    -----
    Each FMU runs in each of its kinds by its DefaultExperiment with inputs at their start values. libcosim joins in if
    `libcosimpy` is installed. Model exchange is integrated by each tool's own solver at a relative tolerance of 1e-9;
    "close" is what can be expected there.

    Examples
    --------
    >>> from cosolve_crosscheck import crosscheck
    >>> crosscheck("no such folder")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: there is no folder 'no such folder'; give one with FMUs or SSPs in it
    """
    folder = Path(folder)
    if not folder.exists():
        raise SetupError(f"there is no folder '{folder}'; give one with FMUs or SSPs in it")
    if not is_positive(timeout):
        raise SetupError(f"crosscheck: timeout is a positive number of seconds, not {timeout!r}")
    for name, value in (("max_steps", max_steps), ("jobs", 1 if jobs is None else jobs)):
        if not is_whole(value, 1):
            raise SetupError(f"crosscheck: {name} is a whole number of at least 1, not {value!r}")
    cases = find_cases(folder.resolve(), max_steps)
    if not cases:
        raise SetupError(f"there is no .fmu or .ssp file in '{folder}' or below it")
    if find_spec("fmpy") is None:
        raise SetupError("crosscheck compares with FMPy, which is not installed: pip install cosolve[validate]")
    rows: dict[int, Row] = {}
    with ThreadPoolExecutor(jobs or min(4, os.cpu_count() or 1)) as pool:
        waiting = {pool.submit(_row, case, timeout): k for k, case in enumerate(cases)}
        try:
            for done in as_completed(waiting):
                rows[waiting[done]] = done.result()
                if progress is not None:
                    progress(len(rows) / len(cases))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return CrossCheck(str(folder), tuple(rows[k] for k in sorted(rows)), _versions())


def _row(case: Case, timeout: float) -> Row:
    job = case.job()
    ours = run("cosolve", job, timeout)
    verdict, reason, found = judged(ours, run("FMPy", job, timeout), case.step, case.t_end)
    if found is not None and verdict in ("close", "differs") and case.kind == CO_SIMULATION and case.fmi == "2.0":
        reason += _rounding(ours, case, timeout)
    return Row(
        file=case.name,
        kind=case.kind or "unknown",
        fmi=case.fmi,
        t0=case.t0,
        t_end=case.t_end,
        step=case.step,
        verdict=verdict,
        difference=None if found is None else found.size,
        reason=_local(reason, case),
        repeat=_local(repeated(ours), case),
        libcosim=_third("libcosim", ours, case, timeout),
        omsimulator=_third("OMSimulator", ours, case, timeout),
        copies=case.copies,
    )


def _rounding(ours: Outcome, case: Case, timeout: float) -> str:
    """Whether the last bit of the communication points makes the difference."""
    times = [float(t) for t in ours.traces[0]["t"]]
    theirs = run("FMPy at these points", {**case.job(), "times": times}, timeout)
    found = difference(ours.traces[0], theirs.traces[0], case.step) if theirs.ran else ""
    if isinstance(found, str) or found.word != "equal":
        return ""
    return "; FMPy gives the same numbers at the very points of cosolve: the last bit of the times makes the difference"


def _local(text: str, case: Case) -> str:
    """Without the part of the path that differs between machines."""
    return text.replace(str(case.file), case.name).replace(str(case.file).removesuffix(case.name), "")


def _third(tool: str, ours: Outcome, case: Case, timeout: float) -> str:
    """One word on how another tool's numbers compare."""
    job = case.job()
    outside = _outside(tool, job)
    if outside:
        return outside
    theirs = run(tool, job, timeout)
    if not theirs.ran:
        return _local(theirs.crash or theirs.error, case)
    if not ours.ran:
        return "runs"
    found = difference(ours.traces[0], theirs.traces[0], case.step)
    if isinstance(found, str):
        return found
    return f"{found.word} ({found.size:.1e})" + ("" if found.word == "equal" else f", {found.name} {found.where}")


def _outside(tool: str, job: dict[str, Any]) -> str:
    """Why a tool is not asked; empty where it is."""
    if tool == "libcosim":
        return NOT_INSTALLED if find_spec("libcosimpy") is None else outside_libcosim(job)
    return NOT_INSTALLED if which("OMSimulator") is None else outside_omsimulator(job)


def _versions() -> dict[str, str]:
    found = {}
    for package in ("cosolve", "fmpy", "libcosimpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = NOT_INSTALLED
    found["OMSimulator"] = which("OMSimulator") or NOT_INSTALLED
    return found
