"""The models of the two shared-memory protocols, checked by SPIN: as they are, and with one rule broken at a time.

A broken model must be found out, otherwise the check could not fail. Needs `spin` and a C compiler (Debian: `apt-get
install spin gcc`). The protocols in words: docs/architecture/process.md.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fmu.build import compiler
from tests.processes import run as run_process

from campaigns.page import Outcome

HERE = Path(__file__).parent
#: model -> the rules that can be broken, one by one
BROKEN = {
    "exchange": ("COUNTER_FIRST", "FLAG_LATE", "NO_EXCHANGE", "NO_CONSUME", "NO_EOF"),
    "channel": ("NO_NAP", "COUNTER_FIRST", "UNORDERED", "NO_EOF"),
}
MISSING = "the models need SPIN, which is not installed (Debian: apt-get install spin)"


@dataclass(frozen=True)
class Checked:
    """What SPIN says about a model."""

    states: int
    complaint: str  # empty when there is none

    @property
    def holds(self) -> bool:
        """True when nothing was found."""
        return not self.complaint


def available() -> bool:
    """True where SPIN is installed."""
    return shutil.which("spin") is not None


def check(model: str, defines: Sequence[str] = (), liveness: bool = False, optimised: bool = True) -> Checked:
    """Search all states for a violated assertion or a deadlock, or for a fair run that does not come to its end."""
    with tempfile.TemporaryDirectory() as folder:
        flags = [f"-D{name}" for name in defines]
        run_process(["spin", *flags, "-a", str(HERE / f"{model}.pml")], cwd=folder, check=True)
        mode = ["-DNFAIR=4"] if liveness else ["-DSAFETY", "-DNOCLAIM"]
        build = [
            *compiler(),
            "-O2" if optimised else "-O0",
            "-w",
            "-DMEMLIM=4096",
            "-DVECTORSZ=2048",
            *mode,
            "-o",
            "pan",
            "pan.c",
        ]
        run_process(build, cwd=folder, check=True)
        said = run_process(["./pan", "-m1000000", *(["-a", "-f"] if liveness else [])], cwd=folder).stdout
    states = re.search(r"(\d+) states, stored", said)
    errors = re.search(r"errors: (\d+)", said)
    assert states, said
    assert errors, said
    assert "max search depth too small" not in said, said
    found = re.search(r"pan:\d+: (.*?)\(at depth", said)
    return Checked(int(states[1]), "" if errors[1] == "0" else (found[1].strip() if found else "an error"))


def broken(model: str, rule: str) -> Checked:
    """The model with one rule broken: what is found, in the safety check or in the other."""
    found = check(model, [rule])
    return check(model, [rule], liveness=True) if found.holds else found


def run(quick: bool = False) -> Outcome:
    """All models; the quick run takes fewer steps of each."""
    outcome = Outcome(["model", "rule broken", "checked", "states", "found"])
    if not available():
        outcome.notes.append(MISSING)
        outcome.good = False
        return outcome
    for model, rules in BROKEN.items():
        sizes = ("STEPS=2", "ROUNDS=1") if quick else ()
        for liveness in (False, True):
            found = check(model, sizes, liveness)
            what = "ends in every fair run" if liveness else "assertions, deadlock"
            outcome.rows.append([model, "none", what, found.states, found.complaint or "nothing"])
            outcome.good = outcome.good and found.holds
        for rule in rules:
            found = broken(model, rule)
            outcome.rows.append([model, rule, "the same", found.states, found.complaint or "NOTHING"])
            outcome.good = outcome.good and not found.holds
    return outcome
