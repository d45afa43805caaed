"""What it costs a run to be watched: the same run alone, handed to `cs.Live`, and with one and two pages open.

    python benchmarks/watching.py                              three runs, 60 s of the clock each, once (16 minutes)
    python benchmarks/watching.py --only free --repeats 7      one of them, several times
    python benchmarks/watching.py --seconds 6 --repeats 5      short ones, often: on a machine that others use

- paced: 1000 macro steps per second on the clock (`pace=1`), in the Python engine;
- free: as fast as the Python engine goes;
- compiled: as fast as compiled code goes, in chunks of thousands of steps.

A page is played by a process of its own that asks as the page does (`frontend/src/viewer.js`): the state over the web
socket, and four signals in 1000 slots at most every 0.35 s. Of each run it is measured: the processor time of its
thread; how much of it the run spends for those who watch; that of the other threads of its process, as a share of the
clock, which share one interpreter with it and hold it up by so much at most; and the clock. The ways of watching take
turns, and a figure is the least of its repeats: whatever else works on the machine only adds to it. Pages use other
cores; where there are none, they take theirs from the run like any other program.
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic, perf_counter, process_time, sleep, thread_time
from typing import Any
from urllib.parse import urlsplit

import cosolve as cs

EVERY = 0.35  # seconds between two looks of a page at its signals
WAYS = {"alone": -1, "handed over": 0, "one page": 1, "two pages": 2}


def masses() -> cs.System:
    """Two masses and a spring."""

    def mass(x: float) -> cs.Linear:
        return cs.Linear(
            [[0, 1], [-1, -0.1]], [[0], [1]], [[1, 0], [0, 1]], x0=[x, 0], inputs=["f"], outputs=["x", "v"]
        )

    found = cs.System({"one": mass(0.0), "two": mass(1.0)})
    found.law({"one.f": 1, "two.f": -1}, lambda a, b: 9 * (b - a), of=["one.x", "two.x"], name="spring")
    return found


def ring() -> cs.System:
    """Two masses that follow each other, connected without a law of Python: compiled code advances them."""

    def mass(x: float) -> cs.Linear:
        return cs.Linear([[0, 1], [-2, -1]], [[0], [1]], [[1, 0], [0, 1]], x0=[x, 0], inputs=["f"], outputs=["x", "v"])

    found = cs.System({"one": mass(0.0), "two": mass(1.0)})
    found.connect("one.x", "two.f")
    found.connect("two.x", "one.f")
    return found


def runs(seconds: float) -> dict[str, tuple[cs.System, dict[str, Any]]]:
    """The systems, and settings with which they take about so long."""
    return {
        "paced": (masses(), {"t_end": seconds, "step": 1e-3, "pace": 1.0}),
        "free": (masses(), {"t_end": 10 * seconds, "step": 1e-3, "compiled": False}),
        "compiled": (ring(), {"t_end": 1000 * seconds, "step": 1e-3, "compiled": True, "every": 10}),
    }


class Timed(cs.Live):
    """Counts the processor time that the thread of the run spends for those who watch."""

    inside = 0.0
    looks = 0  # at the clock: each of them takes time by itself

    def start(self, run: Any) -> None:
        """As it is, counted from here on."""
        super().start(run)
        self.inside, self.looks = 0.0, 0

    def limit(self, run: Any) -> int:
        """As it is, and how long it took."""
        began = thread_time()
        found = super().limit(run)
        self.inside += thread_time() - began
        self.looks += 1
        return found

    def accepted(self, run: Any, steps: Any) -> None:
        """As it is, and how long it took."""
        began = thread_time()
        super().accepted(run, steps)
        self.inside += thread_time() - began
        self.looks += 1


@dataclass
class Cost:
    """Seconds of a run: of its own thread, of these for the viewer, of the process's other threads, of the clock."""

    own: float
    inside: float
    others: float
    clock: float
    looks: int = 0


def measured(system: cs.System, settings: dict[str, Any], pages: int) -> Cost:
    """One run with so many pages; -1 is one that is not handed to the viewer at all."""
    method = cs.Jacobi(degree=1)
    live = Timed(open_browser=False, told=None).serve() if pages >= 0 else None
    address = "" if live is None else live.address
    watching = [
        subprocess.Popen([sys.executable, __file__, "--page", address], stdout=subprocess.PIPE, text=True)
        for _ in range(max(0, pages))
    ]
    try:
        end = monotonic() + 30.0
        while live is not None and live.watchers < pages and monotonic() < end:
            sleep(0.05)
        own, all_threads, clock = thread_time(), process_time(), perf_counter()
        cs.simulate(system, method=method, observers=[] if live is None else [live], **settings)
        own, all_threads, clock = thread_time() - own, process_time() - all_threads, perf_counter() - clock
    finally:
        if live is not None:
            live.close()
        looks = sum(int(page.communicate(timeout=30.0)[0] or 0) for page in watching)
    inside = 0.0 if live is None else max(0.0, live.inside - live.looks * clock_cost())
    return Cost(own, inside, all_threads - own, clock, looks)


def clock_cost() -> float:
    """Seconds that one look at the clock of a thread takes."""
    best = float("inf")
    for _ in range(5):
        began = thread_time()
        for _ in range(2000):
            thread_time()
        best = min(best, (thread_time() - began) / 2000)
    return best


def page(address: str) -> None:
    """Look at a run as the page in the browser does, until it is over; prints how often."""
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    where, looks, looked, rows = urlsplit(address), 0, 0.0, None
    origin: Any = f"http://{where.netloc}"
    line = http.client.HTTPConnection(where.netloc)
    with (
        suppress(ConnectionClosed, OSError, http.client.HTTPException),
        connect(f"ws://{where.netloc}{where.path}live", origin=origin) as socket,
    ):
        while True:
            state = json.loads(socket.recv())
            if not state.get("span") or state["rows"] == rows or perf_counter() - looked < EVERY:
                continue
            looked, rows = perf_counter(), state["rows"]
            t0, t1 = state["span"]
            line.request("GET", f"{where.path}series?r=0&t0={t0}&t1={t1}&n=1000&ids=0,1,2,3")
            looks += len(line.getresponse().read()) > 0
    print(looks)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=["paced", "free", "compiled"], action="append")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--page", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.page:
        page(given.page)
        return
    print("| run | watched | thread of the run | of it for the viewer | other threads | clock | looks |")
    print("|---|---|---|---|---|---|---|")
    for name, (system, settings) in runs(given.seconds).items():
        if given.only and name not in given.only:
            continue
        measured(system, {**settings, "t_end": settings["t_end"] / 100}, -1)  # loads and compiles
        costs: dict[str, list[Cost]] = {way: [] for way in WAYS}
        for _ in range(given.repeats):
            for way, pages in WAYS.items():
                costs[way].append(measured(system, settings, pages))
        for way, found in costs.items():
            own, clock = min(cost.own for cost in found), min(cost.clock for cost in found)
            inside = 100 * min(cost.inside / cost.own for cost in found)
            others = 100 * min(cost.others / cost.clock for cost in found)
            looks = found[-1].looks
            print(
                f"| {name} | {way} | {own:.2f} s | {inside:.2f} % | {others:.2f} % | {clock:.2f} s | {looks} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
