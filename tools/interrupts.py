"""Ctrl-C and SIGTERM at random moments in every command, in a pseudo-terminal.

    python -m tools.interrupts .venv/bin                 20 moments for each command and signal
    python -m tools.interrupts .venv/bin -n 40 run       40 of them, in commands whose name has "run" in it
    python -m tools.interrupts .venv/bin --seed 7        the same moments again

Moments reach from 50 ms after the start (imports) to a second after the command would have ended or is well under way.
A command must then end within 20 s with exit code 130 (SIGTERM: 143), one sentence, no traceback, the cursor shown, a
result file that can be read where it says so, and no process left behind. One that was done before the signal came
ends with its own exit code; of one that was still starting Python nothing is asked. All happens in a temporary folder,
with nothing on the path but that environment.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from time import monotonic, sleep

from tools.newcomer import ENDS, ROOT, Failed, call, environment, hears_sigterm, own_terminal

from cosolve.result.store import load

LIMIT = 20.0  # seconds from the signal to the end of the command


@dataclass(frozen=True)
class Case:
    """A command in one of the projects, and how many seconds after its start the last signal is sent."""

    name: str
    folder: str
    line: str
    last: float
    #: whether it goes on until it is interrupted
    endless: bool = False
    #: the package without which it cannot begin
    needs: str = "cosolve"


CASES = (
    Case("run, FMUs", "car", "run system.toml --t-end 20000 -o long.h5", 5.0, True),
    Case("run, FMUs in processes", "car", "run isolated.toml --t-end 20000 -o long.h5", 6.0, True),
    Case("run, Python", "toml", "run system.toml --t-end 20000 -o long.h5", 5.0, True),
    Case("run, short, report", "car", "run system.toml --report report.html", 6.0),
    Case("run --rtol", "car", "run system.toml --rtol 1e-3 -o chosen.h5", 8.0),
    Case("run --error-bar", "car", "run system.toml --error-bar -o bar.h5", 6.0),
    Case("run, FMU in C", "car", "run plain.fmu --t-end 20000 --step 1e-2 -o plain.h5", 4.0, True),
    Case(
        "run, FMU in C, --isolated", "car", "run plain.fmu --t-end 20000 --step 1e-2 -o plain.h5 --isolated", 4.0, True
    ),
    Case("run, one FMU", "car", "run body.fmu --t-end 20000 --step 1e-2 -o one.h5", 4.0, True),
    Case("live run, FMUs", "car", "run system.toml --t-end 20000 -o long.h5 --live --no-browser", 6.0, True),
    Case(
        "live run, FMUs in processes",
        "car",
        "run isolated.toml --t-end 20000 -o long.h5 --live --no-browser",
        6.0,
        True,
    ),
    Case("live run, Python", "toml", "run system.toml --t-end 20000 -o long.h5 --live --no-browser", 6.0, True),
    Case("run, SSP", "ssp", "run car.ssp --t-end 20000 -o long.h5", 5.0, True),
    Case("check", "car", "check system.toml --step 0.1", 6.0),
    Case("compare", "car", "compare system.toml --t-end 20", 8.0),
    Case("compare, FMUs in processes", "car", "compare isolated.toml --t-end 20", 8.0),
    Case("view", "car", "view result.h5 --no-browser", 4.0, True),
    Case("view of a system", "car", "view system.toml --no-browser", 4.0, True),
    Case("report", "car", "report result.h5", 3.0),
    Case("export", "toml", "export system.toml out.fmu", 4.0),
    Case("demo", ".", "demo", 8.0),
    Case("demo NAME", ".", "demo two_mass", 6.0),
    Case("new", ".", "new made{n}", 4.0),
    Case("inspect --try", "car", "inspect --try body.fmu", 6.0),
    Case("resume", "car", "resume kept.h5 --t-end 20000", 5.0, True),
    Case("serve", "toml", "serve parts.py:body", 3.0, True, "zmq"),
    Case("docs", ".", "docs getting-started", 1.0),
    Case("doctor", ".", "doctor", 2.0),
    Case("--help", ".", "--help", 0.6),
)


def prepare(scripts: Path, folder: Path) -> None:
    """The projects that the commands run in."""
    env = environment(scripts)
    call(["cosolve", "new", "car"], folder, env)
    call(["cosolve", "new", "toml", "--template", "toml"], folder, env)
    call(["cosolve", "new", "ssp", "--template", "ssp"], folder, env)
    call(["cosolve", "run", "system.toml"], folder / "car", env)
    call(["cosolve", "run", "system.toml", "--state-every", "100", "-o", "kept.h5"], folder / "car", env)
    shutil.copy(import_module("tests.fmu.build").fmu("mass_force", 2), folder / "car" / "plain.fmu")
    text = (folder / "car" / "system.toml").read_text()
    (folder / "car" / "isolated.toml").write_text(text.replace('.fmu"\n', '.fmu"\nisolated = true\n'))


@dataclass(frozen=True)
class Outcome:
    """What became of a command that got a signal."""

    delay: float
    how: signal.Signals
    code: int
    said: str
    took: float  # seconds from the signal to the end
    left: tuple[str, ...]  # processes
    begun: bool  # whether cosolve had been imported when the signal was sent: before that Python hears it

    def wrong(self, case: Case, folder: Path) -> list[str]:
        """What is not as it should be, with a command that ran in `folder`."""
        if not self.begun:
            return []
        code, sentence = ENDS[self.how]
        found = []
        if self.took >= LIMIT:
            found.append(f"not ended after {LIMIT:g} s")
        elif self.code == code:
            if self.said.count(sentence) != 1:
                found.append(f"'{sentence}' said {self.said.count(sentence)} times")
        elif self.code < 0:
            found.append(f"killed by {signal.Signals(-self.code).name}")
        elif case.endless or self.code not in (0, 4):
            found.append(f"exit code {self.code}")
        if "Traceback" in self.said or "Exception ignored" in self.said:
            found.append("traceback")
        if self.said.rfind("\x1b[?25l") > self.said.rfind("\x1b[?25h"):
            found.append("cursor hidden")
        if kept := re.search(r"so far is in\s+(\S+\.h5)", self.said):
            found += unreadable(folder / kept[1])
        if self.left:
            found.append(f"left behind: {', '.join(self.left)}")
        return found


def unreadable(file: Path) -> list[str]:
    """What is wrong with a result file."""
    try:
        result = load(file)
        ends = [len(result.t), *(len(result[name]) for name in result.names)]
    except Exception as error:
        return [f"{file.name} cannot be read: {error}"]
    return [] if len(set(ends)) == 1 and ends[0] else [f"{file.name} has lengths {ends}"]


def sent(scripts: Path, folder: Path, words: list[str], delay: float, how: signal.Signals) -> Outcome:
    """Start a command in a pseudo-terminal and send the signal after `delay` seconds."""
    import pty

    env = environment(scripts)
    keeper, terminal = pty.openpty()
    process = subprocess.Popen(
        [str(Path(env["PATH"]) / "cosolve"), *words],
        cwd=folder,
        env=env,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        preexec_fn=own_terminal,
    )
    os.close(terminal)
    said, given, began, at, ended, begun = b"", False, monotonic(), 0.0, False, False
    inside: set[int] = set()
    while True:
        now = monotonic()
        if not given and now - began >= delay:
            inside, begun = set(processes_of(process.pid)), hears_sigterm(process.pid)
            if how == signal.SIGINT:
                os.write(keeper, b"\x03")
            else:
                with suppress(ProcessLookupError):
                    process.send_signal(how)
            given, at = True, monotonic()
        if given and now - at > LIMIT:
            break
        wait = max(0.0, delay - (now - began)) if not given else 0.2
        if select.select([keeper], [], [], min(wait, 0.2))[0]:
            try:
                new = os.read(keeper, 65536)
            except OSError:  # Linux says the end like this
                ended = True
                break
            said += new
        elif process.poll() is not None:
            ended = True
            break
    if ended:
        process.wait(LIMIT)
    took = monotonic() - (at if given else began) if ended else LIMIT
    left = remaining(process.pid, inside) if ended else ()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    os.close(keeper)
    return Outcome(delay, how, process.returncode, said.decode(errors="replace"), took, left, begun)


def processes_of(leader: int) -> list[int]:
    """Running processes of the session that this one leads."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            rest = entry.read_text().rsplit(")")[-1].split()
            if int(rest[3]) == leader and rest[0] != "Z" and int(entry.parent.name) != leader:
                found.append(int(entry.parent.name))
    return found


def remaining(leader: int, inside: set[int], patience: float = 5.0) -> tuple[str, ...]:
    """Commands of processes of that session, and of those seen before, that are there for longer than `patience`."""
    end = monotonic() + patience
    while there := sorted({*processes_of(leader), *filter(_runs, inside - {leader})}):
        if monotonic() > end:
            break
        sleep(0.05)
    return tuple(Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")[:120] for pid in there if _runs(pid))


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0] != "Z"
    except OSError:
        return False


def tried(scripts: Path, folder: Path, case: Case, number: int, chance: random.Random, log: Path) -> Counter[str]:
    """A command with both signals, `number` times each; what was wrong goes to the log in full."""
    total: Counter[str] = Counter()
    moments = [(how, 0.05 * (case.last / 0.05) ** chance.random()) for how in ENDS for _ in range(number)]
    for n, (how, delay) in enumerate(moments):
        words = shlex.split(case.line.replace("{n}", str(n)))
        outcome = sent(scripts, folder / case.folder, words, delay, how)
        wrong = outcome.wrong(case, folder / case.folder)
        what = "ended by the signal" if outcome.code == ENDS[how][0] else "was done before"
        total[what if outcome.begun else "had not begun"] += not wrong
        total["wrong"] += bool(wrong)
        total["slowest"] = max(total["slowest"], round(1000 * outcome.took))
        if wrong:
            with log.open("a") as file:
                about = f"{case.name}: {how.name} after {delay:.3f} s: {'; '.join(wrong)} (code {outcome.code})"
                file.write(f"{about}\n{outcome.said}\n{'-' * 80}\n")
            print(f"    {how.name} after {delay:.3f} s: {'; '.join(wrong)}", flush=True)
    return total


def line(name: str, total: Mapping[str, int]) -> str:
    """A row of the table."""
    return (
        f"{name:<28} {total['ended by the signal']:4} ended by the signal, {total['was done before']:3} done before, "
        f"{total['had not begun']:3} not begun, {total['wrong']:3} wrong, slowest {total['slowest'] / 1000:.1f} s"
    )


def main(arguments: list[str] | None = None) -> int:
    """The command; 1 where something was wrong."""
    parser = argparse.ArgumentParser(description="Ctrl-C and SIGTERM at random moments in every command.")
    parser.add_argument("scripts", type=Path, help="the folder with the commands of an environment")
    parser.add_argument("names", nargs="*", help="only commands with one of these in their name")
    parser.add_argument("-n", type=int, default=20, metavar="N", help="moments for each command and signal")
    parser.add_argument("--seed", type=int, help="of the moments (default: a fresh one)")
    parser.add_argument("--log", type=Path, default=Path("interrupts.log"), help="what was wrong, in full")
    given = parser.parse_intermixed_args(arguments)
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    print(f"moments with seed {seed}")
    failures, env = 0, environment(given.scripts)
    with tempfile.TemporaryDirectory(prefix="cosolve-interrupts-") as folder:
        try:
            prepare(given.scripts, Path(folder))
        except Failed as error:
            print(error)
            return 1
        for case in CASES:
            if given.names and not any(name in case.name for name in given.names):
                continue
            there = call(["python", "-c", f"import importlib.util as u; print(u.find_spec('{case.needs}'))"], ROOT, env)
            if there.startswith("None"):
                print(f"{case.name}: not tried, since {case.needs} is not installed")
                continue
            total = tried(given.scripts, Path(folder), case, given.n, random.Random(f"{seed} {case.name}"), given.log)
            print(line(case.name, total), flush=True)
            failures += total["wrong"]
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
