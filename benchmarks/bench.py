"""The benchmark: cosolve and its peers on the same problems, interleaved, answers compared; writes RESULTS.md.

    make bench                               everything (half an hour on two quiet cores)
    make bench-quick                         small sizes, three repeats (some minutes)
    python benchmarks/bench.py --only pair   one row (pair, restart, processes, precision, scale, start)
    python benchmarks/bench.py --no-install  with the peers that are there already

Peers are installed from PyPI into environments of their own under benchmarks/.env. What does not install, does not
start or cannot do something is named in the table with the reason.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from harness import Bench, machine  # noqa: E402
from problems import fmus  # noqa: E402
from rows import pair, precision, processes, restart, scale, start  # noqa: E402

from report import Section, write  # noqa: E402

ROWS: dict[str, Callable[[Bench], list[Section]]] = {
    "pair": pair.run,
    "restart": restart.run,
    "processes": processes.run,
    "precision": precision.run,
    "scale": scale.run,
    "start": start.run,
}


def main(arguments: Sequence[str] | None = None) -> list[Section]:
    """Run the rows that are wanted and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, three repeats")
    parser.add_argument("--only", action="append", choices=ROWS, help="this row (may be given several times)")
    parser.add_argument("--repeats", type=int, help="interleaved repeats (7, or 3 in a quick run)")
    parser.add_argument("--no-install", action="store_true", help="leave out peers that are not installed yet")
    parser.add_argument(
        "--output", type=Path, help="where to write (a whole, full run: RESULTS.md; others: .work/RESULTS.md)"
    )
    options = parser.parse_args(arguments)
    partial = options.quick or options.only
    target = options.output or (HERE / ".work" / "RESULTS.md" if partial else HERE / "RESULTS.md")
    target.parent.mkdir(parents=True, exist_ok=True)
    facts = machine()
    install = not options.no_install
    bench = Bench(quick=options.quick, install=install, repeats=options.repeats, folder=target.parent)
    sections: list[Section] = []
    began = perf_counter()
    try:
        for name in options.only or ROWS:
            print(f"{name} ...", flush=True)
            found = ROWS[name](bench)
            for verdict in (v for section in found for v in section.verdicts):
                print(
                    f"  {verdict.id:6} {verdict.what}: {verdict.reached} [{verdict.target}] {verdict.mark}", flush=True
                )
            sections += found
    finally:
        bench.close()
    facts["repeats"] = f"{bench.repeats}, {(perf_counter() - began) / 60:.0f} minutes in all"
    facts["C compiler"] = fmus.build().compiler
    kind = "a quick run: small sizes, few repeats" if options.quick else "a full run"
    write(target, sections, facts, bench.versions, f"This is {kind}.")
    print(f"written: {target}")
    return sections


if __name__ == "__main__":
    main()
