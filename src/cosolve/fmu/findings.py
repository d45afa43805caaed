"""What a trial of an FMU found (`cosolve inspect --try`), and what a run makes of it.

A claim that did not hold is taken back: the FMU then counts as one that never made it, so methods that need it refuse
the FMU by name, or do without. A warning says so when the FMU object is built.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosolve.errors import FmuWarning, SetupError, warn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cosolve.fmu.description import Kind

#: Verdicts that take a claim back.
BAD = ("fails", "crashes", "hangs")

FORMAT = "cosolve FMU trial 1"

_VALUES = 256  # of how many different ones of an FMU it is kept whether it came back

#: claim -> the flags that it stands for
_FLAGS = {
    "saves its state": ("canGetAndSetFMUState", "canSerializeFMUState"),
    "writes its state": ("canSerializeFMUState",),
    "gives derivatives": ("providesDirectionalDerivatives", "providesAdjointDerivatives"),
    "follows its inputs inside a step": ("canInterpolateInputs", "providesIntermediateUpdate"),
    "takes steps of any length": ("canHandleVariableCommunicationStepSize",),
}


@dataclass(frozen=True)
class Finding:
    """What a trial found about one claim of an FMU.

    Parameters
    ----------
    claim : str
        The claim.
    verdict : str
        "holds", "fails", "crashes", "hangs", "not claimed" or "cannot tell".
    text : str
        Why.
    where : str, default ""
        "in a run" if it was not found by a trial.
    """

    claim: str
    verdict: str
    text: str
    where: str = ""  # "in a run", where it was not a trial

    def __post_init__(self) -> None:
        if not all(isinstance(text, str) for text in (self.claim, self.verdict, self.text, self.where)):
            raise TypeError("a finding is made of texts")  # of a damaged file


def _digest(values: Mapping[str, Any]) -> str:
    return sha256(repr(sorted(values.items())).encode()).hexdigest()[:16]


def shelf() -> Path:
    """The folder in which findings outlive the process: COSOLVE_FINDINGS, or one in the cache of the user."""
    given = os.environ.get("COSOLVE_FINDINGS")
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(caches) / "cosolve" / "findings"


class Facts:
    """What is known of FMUs: by trials and runs, of this process and of earlier ones.

    Runs after which an FMU was found to have come back to its saved states are kept by the values that it was given:
    from when to when they went, or None for values that were not looked at.
    """

    def __init__(self) -> None:
        self._known: dict[Path, tuple[Finding, ...]] = {}
        self._back: dict[Path, dict[str, list[float] | None]] = {}
        self._files: dict[Path, str] = {}

    def remember(self, folder: Path, findings: Iterable[Finding]) -> None:
        """Keep the findings about an unpacked FMU, for later processes too, in place of earlier ones."""
        self._known[folder] = tuple(findings)
        self._write(folder)

    def _write(self, folder: Path) -> None:
        bad = any(finding.verdict in BAD for finding in self._known[folder])
        back = {} if bad else self._back.get(folder, {})
        with suppress(OSError):
            kept = shelf() / f"{self.fingerprint(folder)}.json"
            if bad or back:
                kept.parent.mkdir(parents=True, exist_ok=True)
                found = [asdict(finding) for finding in self._known[folder]]
                content = {"format": FORMAT, "findings": found, "came back": back}
                part = kept.with_suffix(f".{os.getpid()}")
                part.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
                part.replace(kept)
            else:
                kept.unlink(missing_ok=True)

    def add(self, folder: Path, finding: Finding) -> None:
        """Keep one more, which replaces what was known of its claim."""
        others = tuple(one for one in self.known(folder) if one.claim != finding.claim)
        self.remember(folder, (*others, finding))

    def known(self, folder: Path) -> tuple[Finding, ...]:
        """What is known of an unpacked FMU."""
        if folder not in self._known:
            self._known[folder] = ()
            with suppress(OSError, ValueError, KeyError, TypeError):
                content = json.loads((shelf() / f"{self.fingerprint(folder)}.json").read_text(encoding="utf-8"))
                if content["format"] == FORMAT:
                    self._known[folder] = tuple(Finding(**finding) for finding in content["findings"])
                    self._back[folder] = dict(content["came back"])
        return self._known[folder]

    def came_back(self, folder: Path, values: Mapping[str, Any], t0: float, t1: float) -> None:
        """A run from `t0` to `t1` with these values found nothing lost."""
        self.known(folder)
        self._back.setdefault(folder, {})[_digest(values)] = [t0, t1]
        self._write(folder)

    def trusts(self, folder: Path, values: Mapping[str, Any], t0: float, t1: float) -> bool:
        """Whether a run from `t0` to `t1` with these values need not look whether the FMU comes back.

        One that has come back with other values is looked at again with the second, fourth, eighth ... of them.
        """
        self.known(folder)
        back, given = self._back.setdefault(folder, {}), _digest(values)
        if given in back:
            span = back[given]
            return span is None or (span[0] <= t0 and t1 <= span[1])
        count = len(back) + 1
        trusted = count > _VALUES or count & (count - 1) > 0
        if trusted and count <= _VALUES:
            back[given] = None
            self._write(folder)
        return trusted

    def fingerprint(self, folder: Path) -> str:
        """Of the FMU's description and libraries."""
        if folder not in self._files:
            whole = sha256((folder / "modelDescription.xml").read_bytes())
            for path in sorted(p for p in (folder / "binaries").rglob("*") if p.is_file()):
                whole.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
            self._files[folder] = whole.hexdigest()
        return self._files[folder]

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
        findings = self.known(folder) if trial is None else self.read(trial, folder)
        flags: dict[str, Any] = dict(kind.flags)
        for finding in findings:
            named = [flag for flag in _FLAGS.get(finding.claim, ()) if kind.has(flag)]
            if named and finding.verdict in BAD:
                flags |= dict.fromkeys(named, "false")
                where = finding.where or "in its trial"
                warn(
                    f"'{shown}' is used as if it did not claim that it {finding.claim}: {where} this "
                    f"{finding.verdict} ({finding.text}); 'cosolve inspect --try' looks again",
                    FmuWarning,
                )
        return replace(kind, flags=flags)


facts = Facts()
