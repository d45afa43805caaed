"""The same readers under a coverage-guided fuzzer (Atheris, on libFuzzer): inputs that reach new lines are changed on.

`python -m pip install atheris` brings it where there are wheels; without it the campaign says so and does nothing. Each
target runs in a process of its own, since libFuzzer ends the one that it runs in: at its first finding, which is kept.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from campaigns.page import Outcome

#: how many inputs in the whole campaign
RUNS = {"FMU descriptions": 60_000, "system structures": 40_000, "system files": 40_000, "saved states": 20_000}
LIMIT = 60  # seconds for one input; libFuzzer's own
_WORD = re.compile(rb"[A-Za-z_][\w.-]{2,30}")


def run(quick: bool = False) -> Outcome:
    """The campaign."""
    outcome = Outcome(["target", "inputs", "edges seen at first", "in the end", "findings"])
    if importlib.util.find_spec("atheris") is None:
        outcome.notes.append("Atheris is not installed (`python -m pip install atheris`), so nothing was run")
        return outcome
    for name, runs in RUNS.items():
        with tempfile.TemporaryDirectory() as folder:
            output, finding = fuzzed(name, runs // 100 if quick else runs, Path(folder))
        edges = [int(found) for found in re.findall(r"cov: (\d+)", output)]
        done = re.search(r"Done (\d+) ", output)
        if finding or done is None or not edges:
            outcome.good = False
            outcome.notes.append(f"**{name}**: {finding or output.strip()[-300:]!r}")
        ends = (edges[0], edges[-1]) if edges else ("", "")
        outcome.rows.append([name, done[1] if done else "stopped", *ends, int(bool(finding))])
    return outcome


def fuzzed(name: str, runs: int, folder: Path) -> tuple[str, str]:
    """What libFuzzer printed, and what was found."""
    corpus = folder / "corpus"
    corpus.mkdir()
    seeds = seeds_of(name, folder)
    for k, seed in enumerate(seeds):
        (corpus / str(k)).write_bytes(seed)
    words = sorted({word for seed in seeds if b"\0" not in seed for word in _WORD.findall(seed)})
    (folder / "words").write_text("\n".join(f'"{word.decode()}"' for word in words))
    child = subprocess.run(
        [
            *(sys.executable, "-m", "campaigns.guided", name, str(folder)),
            *(f"-atheris_runs={runs}", "-seed=1", f"-timeout={LIMIT}", "-rss_limit_mb=4000", "-print_final_stats=0"),
            *([f"-dict={folder / 'words'}"] if words else []),
            *(f"-artifact_prefix={folder}/found-", str(corpus)),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    found = folder / "finding"
    text = found.read_text() if found.exists() else ""
    if not text and child.returncode:
        last = child.stderr.decode(errors="replace").strip().splitlines()[-1:]
        text = f"the fuzzer ended with {child.returncode}: {''.join(last)}"
    return child.stderr.decode(errors="replace"), text


def seeds_of(name: str, home: Path) -> list[bytes]:
    """Good inputs to begin with."""
    from campaigns import fuzz

    if name == "FMU descriptions":
        return [text.encode() for text in fuzz.texts()]
    if name == "system structures":
        return [fuzz.STRUCTURE.encode()]
    if name == "system files":
        return [(fuzz.MASSES + fuzz.LAW + fuzz.PARTS + simulation).encode() for simulation in fuzz.CHOICES]
    return [running.save_file(home / "good.state").read_bytes() for running in fuzz.runs_with_states()]


def reader(name: str, home: Path) -> Callable[[bytes], None]:
    """Reads one input."""
    import cosolve as cs
    from campaigns import fuzz

    if name == "FMU descriptions":
        return lambda data: (_put(home / "modelDescription.xml", data), fuzz.look(home))[1]
    if name == "system structures":
        read = fuzz.read_structure(home)
        return lambda data: read(_put(home / "system.ssd", data))
    if name == "system files":
        (home / "spoilt_model.py").write_text(fuzz.MODEL)
        return lambda data: (fuzz.load_system(_put(home / "system.toml", data)), None)[1]
    running: list[cs.Stepper] = fuzz.runs_with_states()
    return lambda data: running[0].restore_file(_put(home / "bad.state", data))


def _put(file: Path, data: bytes) -> Path:
    file.write_bytes(data)
    return file


def main(name: str, folder: Path, arguments: list[str]) -> None:
    """One target; does not come back."""
    import atheris

    packages = ["cosolve.fmu", "cosolve.ssp", "cosolve.io", "cosolve.run", "cosolve.state"]
    with atheris.instrument_imports(include=packages):
        from campaigns import fuzz
    home = folder / "home"
    home.mkdir()
    read = reader(name, home)

    def one(data: bytes) -> None:
        found, text = fuzz.verdict(lambda: read(data))
        if found not in ("read", "refused"):
            (folder / "finding").write_text(f"{found}: {text}; input {data[:2000]!r}")
            raise RuntimeError(text)

    atheris.Setup([sys.argv[0], *arguments], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
