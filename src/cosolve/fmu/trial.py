"""A trial of an unknown FMU: which of its claims hold, and which coupling methods that leaves.

    cosolve inspect --try wheel.fmu          print(cs.fmi.try_fmu("wheel.fmu"))

The FMU runs in a process of its own, one claim after the other (`claims.py`). Where it crashes or hangs, that claim
is answered by that, and a new process goes on with the next one. What the trial found is remembered for this process,
and `Trial.write` keeps it: `cs.load_fmu(file, trial="wheel.trial.json")` then does not rely on what did not hold.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosolve.basics.atomic_files import replacing
from cosolve.basics.checks import is_positive, is_whole
from cosolve.basics.processes import kill_group, start
from cosolve.errors import SetupError
from cosolve.fmu.archive import library, unpack
from cosolve.fmu.description import read_description
from cosolve.fmu.findings import BAD, FORMAT, Finding, facts
from cosolve.fmu.inspection import Inspection, Verdict, inspect_fmu
from cosolve.fmu.options import chosen_kind
from cosolve.fmu.tables import Printed

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Finding", "Trial", "try_fmu"]

_COLOURS = {"holds": "green", "fails": "red", "crashes": "red", "hangs": "red"}


@dataclass(frozen=True)
class Trial(Printed):
    """What `try_fmu` found; `print` shows it as tables.

    `trial["claim"]` is the finding about one claim.

    Parameters
    ----------
    file : str
        The FMU.
    name : str
        Name of the model.
    kind : str
        What it was run as.
    step : float
        Communication step of the trial in seconds.
    findings : tuple of Finding
        One per claim.
    methods : tuple of Verdict
        Which coupling methods can use it, given these findings.
    digest : str
        Digest of the FMU, by which findings are recognised.
    """

    file: str
    name: str
    kind: str
    step: float
    findings: tuple[Finding, ...]
    methods: tuple[Verdict, ...]
    digest: str

    def __getitem__(self, claim: str) -> Finding:
        """The finding about one claim, by its name."""
        for finding in self.findings:
            if finding.claim == claim:
                return finding
        raise KeyError(f"{claim!r}; there are {', '.join(f.claim for f in self.findings)}")

    @property
    def good(self) -> bool:
        """True if nothing that the FMU claims was found wrong."""
        return all(finding.verdict in ("holds", "not claimed", "cannot tell") for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, for JSON.

        Returns
        -------
        dict
            The fields by name.
        """
        return {"format": FORMAT, **asdict(self)}

    def write(self, file: str | Path) -> None:
        """Write it to a file, for `load_fmu(trial=...)`.

        Parameters
        ----------
        file : str or Path
            The file.
        """
        with replacing(file) as draft:
            draft.write_text(json.dumps(self.to_dict(), indent=2) + "\n", encoding="utf-8")

    def rendered(self) -> list[RenderableType]:
        return _rendered(self)


def try_fmu(
    file: str | Path,
    *,
    kind: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    step: float | None = None,
    instances: int = 200,
    timeout: float = 60.0,
) -> Trial:
    """Run an FMU in a process of its own and check which of its claimed capabilities work.

    Parameters
    ----------
    file : str or Path
        The FMU.
    kind : {"co-simulation", "model-exchange"} or None, default None
        What to run it as. None: co-simulation if the FMU offers it.
    parameters : mapping of str to value or None, default None
        Parameters by name.
    step : float or None, default None
        Communication step in seconds. None: that of the DefaultExperiment, or a thousandth of its length.
    instances : int, default 200
        Number of instances that are made and freed to look for leaks.
    timeout : float, default 60.0
        Longest time per claim in seconds.

    Returns
    -------
    Trial
        A finding per claim; `write` keeps it for `load_fmu(trial=...)`.

    Examples
    --------
    >>> import cosolve as cs
    >>> cs.fmi.try_fmu("missing.fmu")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: there is no file 'missing.fmu'; give the path of an FMU
    """
    seen = inspect_fmu(file)
    folder = unpack(file)
    read = read_description(folder)
    wanted = chosen_kind(read, kind, file)
    if not is_positive(timeout):
        raise SetupError(f"try_fmu: timeout is a number of seconds above 0, not {timeout!r}")
    if not is_whole(instances, 0):
        raise SetupError(f"try_fmu: instances is a whole number from 0, not {instances!r}")
    if step is not None and not is_positive(step):
        raise SetupError(f"try_fmu: step is a number above 0, not {step!r}")
    library(folder, read.fmi, read.kinds[wanted].identifier, file)
    H = step or default_step(read.experiment)
    order = {
        "file": str(Path(file).resolve()),
        "kind": wanted,
        "parameters": dict(parameters or {}),
        "step": H,
        "t0": read.experiment.get("startTime", 0.0),
        "t1": read.experiment.get("stopTime", 0.0),
        "instances": instances,
    }
    findings = tuple(_asked(order, timeout))
    methods = tuple(_judged(seen if wanted == seen.main_kind else replace(seen, methods=()), findings))
    trial = Trial(str(file), read.name, wanted, H, findings, methods, facts.digest(folder))
    facts.remember(folder, findings)
    return trial


def default_step(experiment: Mapping[str, float]) -> float:
    """The communication step that an FMU suggests: its own, or a thousandth of its default experiment.

    >>> default_step({"startTime": 0.0, "stopTime": 20.0})
    0.02
    """
    given = experiment.get("stepSize", 0.0)
    if given > 0.0:
        return given
    length = experiment.get("stopTime", 1.0) - experiment.get("startTime", 0.0)
    return length / 1000.0 if length > 0.0 else 1e-3


# -- the other process -------------------------------------------------------------------------------------------


def _asked(order: dict[str, Any], timeout: float) -> list[Finding]:
    """The findings about all claims; a process that dies or hangs costs the claim it was at."""
    from cosolve.fmu.claims import CLAIMS

    found: list[Finding] = []
    with tempfile.TemporaryDirectory(prefix="cosolve-trial-") as folder:
        while len(found) < len(CLAIMS):
            answers = Path(folder) / f"{len(found)}.jsonl"
            ending = _process({**order, "first": len(found), "answers": str(answers)}, timeout, Path(folder))
            found += _answers(answers)
            if len(found) < len(CLAIMS):
                verdict, text = ending
                found.append(Finding(CLAIMS[len(found)].name, verdict, text))
            if found[0].verdict != "holds":  # it does not even run: nothing more to be learned
                rest = [Finding(claim.name, "cannot tell", "it does not run") for claim in CLAIMS[len(found) :]]
                return [*found, *rest]
    return found


def _answers(file: Path) -> list[Finding]:
    if not file.exists():
        return []
    lines = file.read_text(encoding="utf-8").splitlines()
    return [Finding(**json.loads(line)) for line in lines if line.endswith("}")]


def _process(order: dict[str, Any], timeout: float, folder: Path) -> tuple[str, str]:
    """Let a process answer from claim `first` on; what to say of the claim that it did not answer."""
    answers, log = Path(order["answers"]), folder / "said.txt"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONFAULTHANDLER"}
    environment["COSOLVE_FINDINGS"] = os.devnull  # what was found before is not to be believed here
    with log.open("wb") as said:
        command = [sys.executable, "-m", "cosolve.fmu.claims", json.dumps({**order, "parent": os.getpid()})]
        process = start(command, said, cwd=folder, env=environment)
        try:
            while True:
                before = _size(answers)
                try:
                    code = process.wait(timeout)
                    break
                except subprocess.TimeoutExpired:
                    if _size(answers) == before:  # no claim was answered in all that time
                        return "hangs", f"no answer within {timeout:g} s"
        finally:
            kill_group(process)
    last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    said_last = f"; its last output: {last[-1][:200]}" if last else ""
    if code < 0:
        return "crashes", f"the process ended with {signal.Signals(-code).name}{said_last}"
    return "crashes", f"the process ended with exit code {code}{said_last}"


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


# -- verdicts ----------------------------------------------------------------------------------------------------


def _judged(seen: Inspection, findings: tuple[Finding, ...]) -> list[Verdict]:
    """What the description promises of each method, less what the trial found."""
    found = {finding.claim: finding for finding in findings}

    def bad(claim: str) -> Finding | None:
        finding = found[claim]
        return finding if finding.verdict in BAD else None

    judged, runs = [], bad("runs")
    needed = {"Adaptive steps": "takes steps of any length", "saved runs": "writes its state"}
    for verdict in seen.methods:
        repeats = "rollback" in verdict.needs
        claim = "saves its state" if repeats else needed.get(verdict.method)
        why = None if claim is None else bad(claim)
        if runs is not None:
            verdict = replace(verdict, possible=False, reason=f"it does not run: {runs.text}")
        elif verdict.possible and why is not None:
            verdict = replace(verdict, possible=False, reason=f"it does not do what it claims: {why.text}")
        elif verdict.possible and repeats and bad("gives derivatives"):
            verdict = replace(verdict, reason="with difference quotients: the derivatives it gives are wrong")
        judged.append(verdict)
    if seen.methods and runs is None:
        apart = bad("runs next to itself") or bad("runs again")
        holds = "a new instance does the same again"
        if found["runs next to itself"].verdict == "not claimed":
            holds += "; one at a time, so copies need isolated=True"
        judged.append(
            Verdict(
                "several runs or copies",
                apart is None,
                holds if apart is None else f"{apart.text}; give isolated=True",
            )
        )
    return judged


def _rendered(trial: Trial) -> list[RenderableType]:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    head = Text.assemble((trial.name, "bold"), f"  tried as {trial.kind} with steps of {trial.step:g} s\n")
    head.append(f"{trial.file}\n", style="dim")
    claims = Table(title="Does it ...", title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("claim", "", "what was seen"):
        claims.add_column(heading, overflow="fold")
    for finding in trial.findings:
        claims.add_row(finding.claim, Text(finding.verdict, style=_COLOURS.get(finding.verdict, "dim")), finding.text)
    methods = Table(title="So it can use", title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("method", "", "why"):
        methods.add_column(heading, overflow="fold")
    for verdict in trial.methods:
        mark = Text("yes" if verdict.possible else "no", style="green" if verdict.possible else "red")
        methods.add_row(verdict.method, mark, verdict.reason)
    return [head, claims, *([methods] if trial.methods else [])]
