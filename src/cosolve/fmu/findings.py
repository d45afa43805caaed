"""What a trial of an FMU found (`cosolve inspect --try`), and what a run makes of it.

A claim that did not hold is taken back: the FMU then counts as one that never made it, so methods that need it refuse
the FMU by name, or do without. A warning says so when the FMU object is built.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosolve.errors import FmuWarning, SetupError, warn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cosolve.fmu.description import Kind

FORMAT = "cosolve FMU trial 1"

#: claim -> the flags that it stands for
_FLAGS = {
    "saves its state": ("canGetAndSetFMUState", "canSerializeFMUState"),
    "writes its state": ("canSerializeFMUState",),
    "gives derivatives": ("providesDirectionalDerivatives", "providesAdjointDerivatives"),
    "takes steps of any length": ("canHandleVariableCommunicationStepSize",),
}


@dataclass(frozen=True)
class Finding:
    """One claim, whether it holds ("holds", "fails", "crashes", "hangs", "not claimed", "cannot tell"), and why."""

    claim: str
    verdict: str
    text: str


class Facts:
    """What is known of FMUs by trials of this process."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[Finding, ...]] = {}

    def remember(self, folder: Path, findings: Iterable[Finding]) -> None:
        """Keep the findings about an unpacked FMU."""
        self._known[folder] = tuple(findings)

    def digest(self, folder: Path) -> str:
        """A fingerprint of the FMU's description, which names its library and its GUID."""
        return sha256((folder / "modelDescription.xml").read_bytes()).hexdigest()

    def read(self, file: str | Path, folder: Path) -> tuple[Finding, ...]:
        """The findings in a file that `Trial.write` wrote, which must be about this FMU."""
        try:
            content = json.loads(Path(file).read_text(encoding="utf-8"))
            if content["format"] != FORMAT:
                raise ValueError("another format")
            findings = tuple(Finding(**finding) for finding in content["findings"])
            digest = content["digest"]
        except FileNotFoundError:
            raise SetupError(
                f"FMU: there is no file '{file}'; 'cosolve inspect --try FMU --out FILE' writes it"
            ) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SetupError(
                f"FMU: '{file}' is not the trial of an FMU ({error}); 'cosolve inspect --try FMU --out FILE' writes one"
            ) from None
        if digest != self.digest(folder):
            raise SetupError(f"FMU: '{file}' is the trial of another FMU (or of another version); try this one")
        return findings

    def corrected(self, kind: Kind, folder: Path, shown: str | Path, trial: str | Path | None) -> Kind:
        """The capabilities that hold; those taken back are named in a warning."""
        findings = self._known.get(folder, ()) if trial is None else self.read(trial, folder)
        flags: dict[str, Any] = dict(kind.flags)
        for finding in findings:
            named = [flag for flag in _FLAGS.get(finding.claim, ()) if kind.has(flag)]
            if named and finding.verdict in ("fails", "crashes", "hangs"):
                flags |= dict.fromkeys(named, "false")
                warn(
                    f"'{shown}' is used as if it did not claim that it {finding.claim}: in its trial this "
                    f"{finding.verdict} ({finding.text})",
                    FmuWarning,
                )
        return replace(kind, flags=flags)


facts = Facts()
