"""First steps after the installation: every command of the README and of getting started, then Ctrl-C.

    python -m tools.newcomer .venv/bin         the commands of the environment whose scripts lie there

All happens in a temporary folder, with nothing on the path but that environment. `make release-check` does it in an
empty environment with the wheel, on every Python that is found.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("docs/getting-started.md", "README.md")
LIMIT = 600.0  # seconds for one command
COLUMNS = 50
TERMINALS = hasattr(os, "openpty")
#: Signals with the exit code of a command that they end, and what it says.
ENDS = {signal.SIGINT: (130, "ended by Ctrl-C"), signal.SIGTERM: (143, "ended by SIGTERM")}
#: What is interrupted in a pseudo-terminal: the command, what it shows before, its exit code, and what it says.
INTERRUPTED = (
    ("cosolve run system.toml --t-end 20000 --out long.h5", "steps,", 130, "ended by Ctrl-C"),
    ("cosolve run system.toml --t-end 20000 --out long.h5 --live --no-browser", "steps,", 130, "ended by Ctrl-C"),
    ("cosolve compare system.toml --t-end 20000", "%", 130, "Ctrl-C"),
    ("cosolve view result.h5 --no-browser", "http://", 130, "ended by Ctrl-C"),
    ("cosolve demo", "Jacobi(1)", 130, "Ctrl-C"),
)


class Failed(Exception):
    """A step that did not work; the text is what it said."""


def commands(page: str) -> list[str]:
    """The commands of a page, in their order, without comments."""
    found = re.findall(r"^    (?:\$ )?((?:cosolve|cd) .*)$", page, flags=re.MULTILINE)
    return [re.sub(r"\s+#.*", "", line).strip() for line in found]


def follow(scripts: Path, folder: Path, page: str) -> Iterator[str]:
    """Do all that a page says with the environment of `scripts`, in `folder`; says what was done."""
    env, here = environment(scripts), folder
    for command in commands((ROOT / page).read_text(encoding="utf-8")):
        words = shlex.split(command)
        if words[0] == "cd":
            here = here / words[1]
            continue
        if TERMINALS:
            heard = ENDS if sys.platform == "linux" else ()  # elsewhere it cannot be seen when signals are heard
            ended = [end_at_once(words, here, env, how) for how in heard]
            said, code, _ = on_terminal(words, here, env)
        else:
            ended, (said, code) = [], (call(words, here, env), 0)
        if wrong := complaints(said, code, 0):
            raise Failed(f"{page}: {command}: {', '.join(wrong)}\n{said[-3000:]}")
        yield f"{page}: {command} (ended by a signal: {sum(ended)} of {len(ended)})"
        if words[1:] == ["new", "car"] and page == "README.md":  # what comes next is said from inside it
            call(["cosolve", "new", "package", "--template", "ssp"], here, env)
            here = here / "car"
            shutil.copy(folder / "package" / "car.ssp", here)


def everything(scripts: Path, folder: Path) -> Iterator[str]:
    """All pages, and Ctrl-C in what takes long."""
    for page in PAGES:
        here = folder / Path(page).stem
        here.mkdir(parents=True)
        yield from follow(scripts, here, page)
    if TERMINALS:
        for case in INTERRUPTED:
            interrupt(scripts, folder / "getting-started" / "car", *case)
            yield f"Ctrl-C: {case[0]}"


def environment(scripts: Path) -> dict[str, str]:
    """Nothing but what is installed there: no compiler, no PYTHONPATH."""
    kept = ("HOME", "LANG", "SYSTEMROOT", "TMPDIR", "TEMP", "OPENBLAS_NUM_THREADS")
    env = {name: os.environ[name] for name in kept if name in os.environ}
    return env | {"PATH": str(scripts.resolve()), "MPLBACKEND": "Agg", "COLUMNS": f"{COLUMNS}", "TERM": "xterm"}


def call(words: list[str], folder: Path, env: Mapping[str, str]) -> str:
    """What a command prints; `Failed` where it does not end well."""
    command = [str(Path(env["PATH"]) / words[0]), *words[1:]]
    try:
        done = subprocess.run(
            command, cwd=folder, env=dict(env), capture_output=True, text=True, timeout=LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(words)}: not finished within {LIMIT:g} s") from None
    if done.returncode:
        raise Failed(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout + done.stderr


def end_at_once(words: list[str], folder: Path, env: Mapping[str, str], how: signal.Signals) -> bool:
    """Whether a command is ended by a signal that comes as soon as it is heard; `Failed` if it ends otherwise."""
    with tempfile.TemporaryDirectory() as place:
        copy = shutil.copytree(folder, Path(place, folder.name))
        said, code, _ = on_terminal(words, copy, env, lambda pid, _: hears_sigterm(pid), how)
    expected, sentence = ENDS[how]
    wrong = complaints(said, code, expected, 0)  # it may have been done
    if wrong or (code == expected and said.count(sentence) != 1):
        raise Failed(f"{how.name} in {' '.join(words)}: {', '.join(wrong) or 'no sentence'}\n{said[-3000:]}")
    return code == expected


def interrupt(scripts: Path, folder: Path, line: str, shown: str, code: int, sentence: str) -> None:
    """Press Ctrl-C in a pseudo-terminal once `shown` stands there; `Failed` unless it ends as it should."""
    said, ended, sent = on_terminal(shlex.split(line), folder, environment(scripts), lambda _, said: shown in said)
    flat = " ".join(said.split())  # lines are broken where the terminal ends
    wrong = complaints(said, ended, code)
    wrong += [] if sent else [f"'{shown}' was not shown"]
    wrong += [] if sentence in flat else [f"'{sentence}' was not said"]
    if wrong:
        raise Failed(f"Ctrl-C in {line}: {', '.join(wrong)}\n{said[-3000:]}")


def complaints(said: str, code: int | None, *expected: int) -> list[str]:
    """What is wrong with how a command has ended on a terminal."""
    return [
        *([] if code is not None else [f"not finished within {LIMIT:g} s"]),
        *([] if code is None or code in expected else [f"exit code {code} instead of {expected[0]}"]),
        *(["a traceback"] if "Traceback" in said else []),
        *(["the cursor stays hidden"] if said.rfind("\x1b[?25l") > said.rfind("\x1b[?25h") else []),
    ]


def on_terminal(
    words: list[str],
    folder: Path,
    env: Mapping[str, str],
    when: Callable[[int, str], bool] = lambda _, __: False,
    how: signal.Signals = signal.SIGINT,
) -> tuple[str, int | None, bool]:
    """What a command says in a pseudo-terminal, its exit code (None: none in time), and whether the signal was sent.

    That is as soon as `when(its process, what it has said)` is true.
    """
    import pty

    keeper, terminal = pty.openpty()
    process = subprocess.Popen(
        [str(Path(env["PATH"]) / words[0]), *words[1:]],
        cwd=folder,
        env=dict(env),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        preexec_fn=own_terminal,
    )
    os.close(terminal)
    said, sent, end, new = "", False, monotonic() + LIMIT, b" "
    while new and monotonic() < end:
        if select.select([keeper], [], [], 0.05)[0]:
            try:
                new = os.read(keeper, 65536)
            except OSError:  # Linux says the end like this
                break
            said += new.decode(errors="replace")
        if not sent and when(process.pid, said):
            sent = True
            if how == signal.SIGINT:
                os.write(keeper, b"\x03")
            else:
                with suppress(ProcessLookupError):
                    process.send_signal(how)
    ended = monotonic() < end
    if not ended:
        process.kill()
    process.wait()
    os.close(keeper)
    return said, process.returncode if ended else None, sent


def hears_sigterm(pid: int) -> bool:
    """Whether a process has a handler for SIGTERM, or ignores it; true of one that has ended."""
    with suppress(OSError):
        for text in Path(f"/proc/{pid}/status").read_text().splitlines():
            if text.startswith(("SigCgt:", "SigIgn:")) and int(text.split()[1], 16) >> (signal.SIGTERM - 1) & 1:
                return True
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0] == "Z"
    return True


def own_terminal() -> None:
    """The child leads a session of its own, with the pseudo-terminal as its terminal: Ctrl-C there is a signal."""
    import fcntl
    import termios

    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def main(arguments: list[str]) -> int:
    """Follow the pages; 1 where something failed."""
    if len(arguments) != 1:
        print(__doc__)
        return 2
    with tempfile.TemporaryDirectory(prefix="cosolve-newcomer-") as folder:
        try:
            for line in everything(Path(arguments[0]), Path(folder).resolve()):
                print(line, flush=True)
        except Failed as error:
            print(error)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
