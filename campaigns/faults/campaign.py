"""Runs all cases and counts what came of them."""

from __future__ import annotations

import sys
from collections import Counter

from campaigns.faults.cases import Case, every
from campaigns.faults.judge import BAD, GOOD, NOT_TRIED, judged
from campaigns.page import Outcome
from campaigns.watched import Verdict, verdicts

LIMIT = 120.0  # seconds for one case on a busy machine; the longest takes ten on an idle one, all of it compiling


def sample(cases: list[Case], every_so_many: int = 150) -> list[Case]:
    """Some of each kind, always the same ones."""
    quick = [case for case in cases if case.kind in ("python", "join", "static", "ode", "structure", "free running")]
    return quick[::every_so_many]


def run(quick: bool = False) -> Outcome:
    """The campaign."""
    cases = sample(every()) if quick else every()
    found: list[tuple[Case, Verdict]] = []
    for case, verdict in verdicts(judged, cases, LIMIT):
        found.append((case, verdict))
        if verdict[0] in BAD:
            print(f"{verdict[0]}: {case}: {verdict[1]}", flush=True)
        if sys.stderr.isatty():
            print(f"\r{len(found)} of {len(cases)}", end="", file=sys.stderr)
    return summed_up(found)


def summed_up(found: list[tuple[Case, Verdict]]) -> Outcome:
    """Counts by kind, and the findings in words."""
    counts: dict[str, Counter[str]] = {}
    bad: list[str] = []
    for case, (outcome, text) in found:
        if outcome in BAD:
            bad.append(f"**{outcome}**: {case}: {text}")
        counts.setdefault(case.kind, Counter())[outcome] += 1
    columns = [*GOOD, *BAD]
    rows: list[list[object]] = []
    for kind, of in [*counts.items(), ("all", sum(counts.values(), Counter()))]:
        rows.append([kind, of.total() - of[NOT_TRIED], *(of[column] or "" for column in columns)])
    tried = int(str(rows[-1][1]))
    engines = Counter(case.compiled for case, (outcome, _) in found if outcome != NOT_TRIED)
    notes = [
        f"{tried} forced failures, {engines[True]} of them in the compiled engine, under "
        f"{len({case.method for case, v in found if v[0] != NOT_TRIED})} methods and correctors; "
        f"{len(found) - tried} combinations are refused by the package itself before anything happens.",
        *bad[:40],
    ]
    return Outcome(["kind", "tried", *columns], rows, notes, not bad)
