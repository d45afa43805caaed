"""Error bars of many runs against their true errors: how often they cover, how sharp they are, where there is none.

    python -m tests.accuracy.study [--sure] [--networks SEED] [--cases NAME ...] [--levels N]
                                   [--keep FILE | --read FILE]

prints the figures of docs/validation/trust.md. A pair is one output of one run.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from tests.accuracy.zoo import CASES, SIXTEEN, Case, random_networks

import cosolve as cs

#: Below this relative error a bar is its floor, and says nothing about sharpness.
_FLOOR = 1e-7


@dataclass(frozen=True)
class Pair:
    """One output of one run: its largest error and its largest bar, both relative; NaN where there is no bar.

    `end` and `time`: whether the bar covers at the last point, and at how many of all points.
    """

    case: str
    method: str
    steps: int
    output: str
    smooth: bool
    error: float
    bar: float
    end: bool
    time: float
    ratio: float
    reason: str

    @property
    def given(self) -> bool:
        """Whether there is a bar at all."""
        return bool(np.isfinite(self.bar))


def pairs(case: Case, method: cs.Method, steps: int, sure: bool = False) -> Iterator[Pair]:
    """One run with its error bar, output by output; none where the run itself failed."""
    system = case.build()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            result = cs.simulate(system, t_end=case.t_end, method=method, step=case.t_end / steps)
        except cs.errors.SimulationError:
            return
        found = cs.error_bar(system, result, sure=True) if sure else cs.error_bar(system, result)
    right = _truth(case, steps)
    for name, exact in right.items():
        size = np.abs(exact).max()
        error = np.abs(np.asarray(result[name]).reshape(exact.shape) - exact).max(axis=1) / size
        bar = found.bar[name] / size if name in found.bar else np.full(len(error), np.nan)
        yield Pair(
            case.name,
            method.label,
            steps,
            name,
            case.smooth,
            float(error.max()),
            float(bar.max()),
            bool(error[-1] <= bar[-1]),
            float(np.mean(error <= bar)),
            found.ratio,
            found.reasons.get(name, found.reason or ""),
        )


@lru_cache(maxsize=8)
def _truth(case: Case, steps: int) -> dict[str, np.ndarray]:
    return case.truth(np.linspace(0.0, case.t_end, steps + 1))


def study(cases: Iterable[Case], levels: int, sure: bool = False) -> list[Pair]:
    """All methods of these cases, from the coarsest steps on."""
    found = []
    for case in cases:
        for steps in case.numbers[: levels if case.explicit else levels - 1]:
            for method in case.methods():
                found += pairs(case, method, steps, sure)
    return found


@dataclass(frozen=True)
class Figures:
    """What a study has found; shares from 0 to 1.

    `sharpness`: bar over error of the pairs above the floor, at 0, 5, 50, 95 %. `confident` are bars where the error is
    above 30 %, `quiet` the share of bars among the `accurate` pairs, those with an error below 3 %.
    """

    pairs: int
    given: int
    largest: float
    end: float
    time: float
    sharpness: tuple[float, ...]
    wrong: int
    confident: int
    accurate: int
    quiet: float

    @classmethod
    def of(cls, found: list[Pair]) -> Figures:
        """The figures of these pairs."""
        given = [one for one in found if one.given]
        seen = [one.bar / one.error for one in given if one.error > _FLOOR]
        wrong, accurate = [one for one in found if not one.error <= 0.3], [one for one in found if one.error < 0.03]
        return cls(
            len(found),
            len(given),
            _mean(one.error <= one.bar for one in given),
            _mean(one.end for one in given),
            _mean(one.time for one in given),
            tuple(float(q) for q in np.percentile(seen, [0, 5, 50, 95])) if seen else (),
            len(wrong),
            sum(one.given for one in wrong),
            len(accurate),
            _mean(one.given for one in accurate),
        )

    def __str__(self) -> str:
        return (
            f"given {self.given} of {self.pairs}; covered {self.largest:.2%} at the maximum, {self.end:.2%} at the "
            f"end, {self.time:.2%} over time; bar/error {' / '.join(f'{q:.2f}' for q in self.sharpness)} (least, 5, "
            f"50, 95 %); error above 30 %: {self.confident} of {self.wrong} with a bar; below 3 %: {self.quiet:.1%} of "
            f"{self.accurate}"
        )


def _mean(values: Iterable[float]) -> float:
    found = [float(value) for value in values]
    return sum(found) / len(found) if found else float("nan")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sure", action="store_true")
    parser.add_argument("--networks", type=int, metavar="SEED")
    parser.add_argument("--count", type=int, default=22, help="how many networks")
    parser.add_argument("--cases", nargs="+", default=list(SIXTEEN))
    parser.add_argument("--levels", type=int, default=5)
    parser.add_argument("--keep", type=Path, metavar="FILE", help="add the pairs to this file, a line each")
    parser.add_argument("--read", type=Path, metavar="FILE", nargs="+", help="the figures of pairs that were kept")
    asked = parser.parse_args()
    cases = [CASES[name] for name in asked.cases]
    if asked.networks is not None:
        cases = random_networks(asked.networks, asked.count)
    found: list[Pair] = []
    for path in asked.read or ():
        found += [Pair(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    for case in [] if asked.read else cases:
        own = study([case], asked.levels, asked.sure)
        print(f"{case.name}: {Figures.of(own)}", flush=True)
        found += own
        if asked.keep is not None:
            with asked.keep.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(asdict(one)) + "\n" for one in own)
    for title, chosen in _groups(found).items():
        if chosen:
            print(f"{title}: {Figures.of(chosen)}")
    for one in found:
        if one.given and one.error > one.bar:
            print(f"missed: {one.case} {one.method} N {one.steps} {one.output}: {one.bar:.2e} for {one.error:.2e}")


def _groups(found: list[Pair]) -> dict[str, list[Pair]]:
    tags = {name: case.tags for name, case in CASES.items()}
    groups = {"all": found, "smooth": [one for one in found if one.smooth]}
    for tag in ("stiff", "joint", "kinks"):
        groups[tag] = [one for one in found if tag in tags.get(one.case, ())]
    for name in ("Jacobi", "GaussSeidel", "SemiImplicit"):
        groups[name] = [one for one in found if one.method.startswith(name)]
    return groups


if __name__ == "__main__":
    main()
