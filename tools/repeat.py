"""Run tests many times under load, in random order if wanted, to find those that fail now and then.

    make repeat TESTS=tests/a/test_b.py::test_c              200 times, on one core that two busy processes share
    python -m tools.repeat -n 50 --busy 4 TEST...            50 times, beside four
    python -m tools.repeat -n 20 --shuffle TEST...           each run in another order; the seed is printed
    python -m tools.repeat -n 20 --shuffle --seed 7 TEST...  in the orders of that seed

`TEST` is what pytest takes, options too (`-m slow`). A Python process makes `--each` runs one after the other, so that
its start does not dominate; `--each 1` starts each run anew. The output of every process with a failure is printed.
The exit code is 1 when there was one. As a plug-in of pytest (`-p tools.repeat`) this file does the repeating.
"""

from __future__ import annotations

import argparse
import copy
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
#: Ends by itself when the process that started it is gone.
_BUSY = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): sum(range(100000))"


# -- inside pytest -----------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """How often, and the seed of the orders."""
    parser.addoption("--repetitions", type=int, default=1, help="run each test so many times")
    parser.addoption("--order-seed", type=int, help="in random orders, drawn with this seed")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """All tests once, then all again. A copy is another item: pytest tears down the fixtures of the one before."""
    seed = config.getoption("--order-seed")
    draw = None if seed is None else random.Random(seed)
    once, items[:] = list(items), []
    for _ in range(config.getoption("--repetitions")):
        if draw is not None:
            draw.shuffle(once)
        for item in map(copy.copy, once):
            item._initrequest()  # type: ignore[attr-defined]
            item._report_sections = []
            items.append(item)


# -- the command -------------------------------------------------------------------------------------------------------


@contextmanager
def loaded(busy: int, core: int | None) -> Iterator[list[int]]:
    """Keep this process and what it starts on one core (Linux), beside `busy` other processes, whose ids are given."""
    before: set[int] | None = None
    if core is not None and hasattr(os, "sched_setaffinity"):
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {core})
    command = [sys.executable, "-c", _BUSY, str(os.getpid())]
    others = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(busy)]
    try:
        yield [other.pid for other in others]
    finally:
        for other in others:
            other.kill()
            other.wait()
        if before is not None:
            os.sched_setaffinity(0, before)


def counts(output: str) -> Counter[str]:
    """How many tests came out how, by the last line of pytest.

    >>> counts("1 failed, 19 passed, 2 errors in 3.21s")
    Counter({'passed': 19, 'error': 2, 'failed': 1})
    """
    last = (output.strip().splitlines() or [""])[-1]
    found = re.findall(r"(\d+) (passed|failed|error|skipped|xfailed)s?\b", last)
    return Counter({how: int(number) for number, how in found})


def repeat(words: list[str], number: int, each: int, seed: int | None) -> Counter[str]:
    """Run pytest until every test has run `number` times, and print what failed; how many came out how."""
    total: Counter[str] = Counter()
    for k, first in enumerate(range(0, number, each)):
        command = [sys.executable, "-m", "pytest", "-p", "tools.repeat", "-p", "no:cacheprovider", "-q", "--no-header"]
        command += ["--repetitions", str(min(each, number - first))]
        command += [] if seed is None else ["--order-seed", str(seed + k)]
        run = subprocess.run(
            [*command, *words], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, check=False,
        )  # fmt: skip
        found = counts(run.stdout)
        failed = bool(run.returncode or not found)
        if failed and not (found["failed"] or found["error"]):
            found["died"] += 1  # the process itself: a crash, a wrong name of a test
        if failed:
            print(run.stdout, flush=True)
        total += found
        so_far = ", ".join(f"{total[how]} {how}" for how in sorted(total))
        print(f"{min(first + each, number)} of {number} times: {so_far}", flush=True)
        if found["died"]:
            break
    return total


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description="Run tests many times under load.")
    parser.add_argument("-n", type=int, default=200, metavar="N", help="times that each test is run (default 200)")
    parser.add_argument("--each", type=int, default=20, metavar="N", help="of them in one process (default 20)")
    parser.add_argument("--busy", type=int, default=2, metavar="N", help="busy processes beside it (default 2)")
    parser.add_argument("--core", type=int, default=0, help="where all of them run (default 0; -1: anywhere)")
    parser.add_argument("--shuffle", action="store_true", help="in random order")
    parser.add_argument("--seed", type=int, help="of the orders (default: a fresh one)")
    given, words = parser.parse_known_args(arguments)
    if not words or given.n < 1 or given.each < 1:
        parser.error("which tests, and how often?")
    seed = None
    if given.shuffle:
        seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
        print(f"orders with seed {seed}")
    with suppress(KeyboardInterrupt), loaded(given.busy, given.core if given.core >= 0 else None):
        total = repeat(words, given.n, given.each, seed)
        return int(bool(total["failed"] or total["error"] or total["died"]))
    return 1


if __name__ == "__main__":
    sys.exit(main())
