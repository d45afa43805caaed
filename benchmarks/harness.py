"""What all rows share: environments of the peers, their processes, interleaved repeats, medians and spread."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE / ".env"
LOGS = HERE / ".work" / "logs"
#: Seconds after which a peer that does not answer is given up.
LIMIT = 180.0

#: Peer file -> (environment, packages that it needs). An empty environment is the one that cosolve runs in.
PEERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "c_master": ("", ()),
    "cosolve_pair": ("", ()),
    "cosolve_restart": ("", ()),
    "cosolve_processes": ("", ()),
    "cosolve_ranks": ("", ()),
    "cosolve_participants": ("", ()),
    "cosolve_precision": ("", ()),
    "scipy_restart": ("", ()),
    "fmpy_loop": ("fmpy", ("fmpy",)),
    "libcosim": ("libcosim", ("libcosimpy",)),
    "cofmupy_master": ("cofmupy", ("cofmupy",)),
    "mosaik_pair": ("mosaik", ("mosaik",)),
    "helics_pair": ("helics", ("helics",)),
    "casadi_restart": ("casadi", ("casadi",)),
    "diffrax_restart": ("diffrax", ("diffrax", "jax")),
    "numbalsoda_restart": ("numbalsoda", ("numbalsoda",)),
}


class Unavailable(Exception):
    """A peer that cannot be asked, with the reason in one sentence."""


def environment(name: str, packages: tuple[str, ...], *, install: bool = True) -> Path:
    """The Python of an environment, which is made and filled when first asked for."""
    if not name:
        return Path(sys.executable)
    folder = ENVIRONMENTS / name
    python, done, failed = folder / "bin" / "python", folder / ".installed", folder / ".failed"
    if done.exists():
        return python
    if failed.exists():
        raise Unavailable(failed.read_text())
    if not install:
        raise Unavailable("not installed (run without --no-install)")
    print(f"installing {' '.join(packages)} into benchmarks/.env/{name}", flush=True)
    ENVIRONMENTS.mkdir(exist_ok=True)
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    order = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--prefer-binary"]
    try:
        ran = subprocess.run([*order, *packages], capture_output=True, text=True, timeout=1200)
        lines = [line for line in ran.stderr.splitlines() if line.strip().upper().startswith("ERROR")]
        failure = "" if ran.returncode == 0 else (lines or [f"pip ended with status {ran.returncode}"])[-1].strip()
    except subprocess.TimeoutExpired:
        failure = "pip did not finish within 20 minutes"
    if failure:
        failed.write_text(f"does not install from PyPI: {failure[:200]}")
        raise Unavailable(failed.read_text())
    done.touch()
    return python


class Worker:
    """The process of one peer."""

    def __init__(self, name: str, *, install: bool = True) -> None:
        where, packages = PEERS[name]
        self.name = name
        python = environment(where, packages, install=install)
        LOGS.mkdir(parents=True, exist_ok=True)
        self.log = LOGS / f"{name}.txt"
        root = HERE.parent  # peers in this environment are ours: of this checkout, whatever is installed
        paths = [str(HERE)] if where else [str(HERE), str(root), str(root / "src")]
        with self.log.open("w") as said:
            self._process = subprocess.Popen(
                [str(python), str(HERE / "peers" / f"{name}.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)},
            )
        try:
            about = self.ask(case="about")
        except Unavailable as error:
            self.close()
            raise Unavailable(f"does not start: {error}") from None
        self.versions, self.cases = about["versions"], about["cases"]

    def ask(self, **request: Any) -> dict[str, Any]:
        """One request; failure becomes `Unavailable`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        watch = threading.Timer(LIMIT, self._process.kill)
        watch.start()
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            watch.cancel()
        if not line:
            self._process.wait()
            said = self.log.read_text().strip().splitlines()
            raise Unavailable(f"its process ended with status {self._process.returncode}: {(said or ['no word'])[-1]}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise Unavailable(answer["error"].splitlines()[0])
        return answer

    def close(self) -> None:
        """End the process."""
        with suppress(BrokenPipeError):
            self._process.__exit__(None, None, None)  # closes its pipes, whereupon it ends


@dataclass
class Sample:
    """The repeats of one measurement."""

    label: str
    runs: list[dict[str, Any]] = field(default_factory=list)
    missing: str = ""  # why there are none

    def seconds(self, key: str = "seconds") -> float:
        return statistics.median(run[key] for run in self.runs)

    def spread(self, key: str = "seconds") -> tuple[float, float]:
        values = [run[key] for run in self.runs]
        return min(values), max(values)

    @property
    def answer(self) -> list[float]:
        return list(self.runs[-1]["answer"])


@dataclass(frozen=True)
class Ratio:
    """Median of the ratios of repeats that ran next to each other, and their range."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.3g} ({self.low:.3g} to {self.high:.3g})"


def ratio(over: Sample, under: Sample, key: str = "seconds", other: str = "seconds") -> Ratio | None:
    """`over / under`, repeat by repeat; None where one of them is missing."""
    if not over.runs or not under.runs:
        return None
    values = [a[key] / b[other] for a, b in zip(over.runs, under.runs, strict=False)]
    return Ratio(statistics.median(values), min(values), max(values))


class Bench:
    """A run of the benchmark: workers that stay, sizes, repeats."""

    def __init__(
        self, *, quick: bool = False, install: bool = True, repeats: int | None = None, folder: Path = HERE
    ) -> None:
        self.quick, self.install, self.folder = quick, install, folder  # pictures go to the folder
        self.repeats = repeats or (3 if quick else 7)
        self._workers: dict[str, Worker | Unavailable] = {}

    def size(self, full: int, quick: int) -> int:
        """How much to do."""
        return quick if self.quick else full

    def worker(self, name: str) -> Worker:
        """The process of a peer, started once."""
        if name not in self._workers:
            try:
                self._workers[name] = Worker(name, install=self.install)
            except Unavailable as error:
                self._workers[name] = error
        found = self._workers[name]
        if isinstance(found, Unavailable):
            raise found
        return found

    def interleave(self, jobs: dict[str, tuple[str, dict[str, Any]]], warm: bool = True) -> dict[str, Sample]:
        """Run every job once to warm it up, then all of them in turn, again and again."""
        samples = {label: Sample(label) for label in jobs}
        for turn in range(self.repeats + warm):
            for label, (peer, request) in jobs.items():
                sample = samples[label]
                if sample.missing:
                    continue
                try:
                    run = self.worker(peer).ask(**request)
                except Unavailable as error:
                    sample.missing, sample.runs = str(error), []
                    continue
                if turn or not warm:
                    sample.runs.append(run)
        return samples

    @property
    def versions(self) -> dict[str, str]:
        """Of everything that was asked."""
        found: dict[str, str] = {}
        for worker in self._workers.values():
            if isinstance(worker, Worker):
                found |= worker.versions
        return found

    def close(self) -> None:
        """End all processes."""
        for worker in self._workers.values():
            if isinstance(worker, Worker):
                worker.close()


def machine() -> dict[str, str]:
    """What this ran on, and how busy it was."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    except OSError:
        pass
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return {
        "processor": f"{model}, {os.cpu_count()} cores",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "load when it began": f"{load:.1f}",
        "date": time.strftime("%Y-%m-%d"),
    }
