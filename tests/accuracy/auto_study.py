"""The study behind docs/validation/auto.md: automatic runs of the zoo and of networks kept aside, and their prices.

    python -m tests.accuracy.auto_study zoo            # or names of cases after it
    python -m tests.accuracy.auto_study networks
    python -m tests.accuracy.auto_study no-rollback
    python -m tests.accuracy.auto_study oracle         # the cheapest fixed step by brute force

Costs are subsystem steps of subsystems and their own Jacobians, of all pilots, shadows and repeated runs together.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence

import numpy as np
from tests.accuracy.zoo import CASES, Case, random_networks
from tests.analysis.hidden import hide

import cosolve as cs

TOLERANCES = (1e-3, 1e-4, 1e-5)
PRICED = ["tanks", "tanks_loop", "schmoll", "bar", "lu_FF", "lu_FD", "lu_DD", "lu_weak", "lu_free", "rc_chain"]
PRICED += ["lu_stiff", "lorenz_short"]
ONE_WAY = ("tanks", "schmoll", "lu_FF", "lu_DD", "rc_chain")
SEEDS = (2026, 2027)  # of networks
_FACTOR = 1.4  # between numbers of steps of the oracle


def cost(result: cs.Result) -> int:
    """Subsystem steps and Jacobians of a run alone."""
    return result.stats.total_calls + sum(result.stats.jacobians.values())


def automatic(case: Case, system: cs.System, rtol: float) -> tuple[float, int, str]:
    """Error over tolerance, all subsystem steps, and what was chosen; a run that says that it is in doubt is marked."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cs.errors.AccuracyWarning)  # of doubt, which is marked
            result = cs.simulate(system, t_end=case.t_end, rtol=rtol)
    except cs.CosolveError as error:
        return np.nan, 0, f"refused: {error}"
    mark = " in doubt" if result.stats.note("tolerance") else ""
    chosen = f"{result.method.label} N {result.stats.steps}, {len(result.choice.trials)} trials{mark}"
    return case.error(result) / rtol, cost(result) + result.choice.spent, chosen


def judge(cases: Iterable[tuple[Case, cs.System]], tolerances: Sequence[float] = TOLERANCES) -> None:
    """A line for each run, and at the end how many met their tolerance."""
    ratios = []
    for case, system in cases:
        for rtol in tolerances:
            ratio, spent, chosen = automatic(case, system, rtol)
            ratios.append(ratio)
            print(f"{case.name:16} {rtol:g} error/tol {ratio:5.2f} subsystem steps {spent:6} {chosen}", flush=True)
    met = sum(ratio <= 1.0 for ratio in ratios)
    print(f"met {met} of {len(ratios)}, largest {np.nanmax(ratios):.2f}, median {np.nanmedian(ratios):.2f}")


def oracle(case: Case) -> dict[float, tuple[float, str]]:
    """The fewest subsystem steps of fixed steps with which each tolerance is met, and the method."""
    best: dict[float, tuple[float, str]] = dict.fromkeys(TOLERANCES, (np.inf, ""))
    kinds = (cs.Jacobi, cs.GaussSeidel, cs.SemiImplicit) if case.explicit else (cs.SemiImplicit,)
    for method in (kind(degree) for degree in (3, 2, 1) for kind in kinds):
        steps, left = 16.0, list(TOLERANCES)
        while left and steps < 5000:
            number, system = round(steps), case.build()
            steps *= _FACTOR
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", cs.errors.StabilityWarning)  # unstable ones are tried too
                    result = cs.simulate(system, t_end=case.t_end, method=method, step=case.t_end / number)
            except cs.CosolveError:
                continue
            if cost(result) > best[left[0]][0] * 1.001:  # the others will not be cheaper
                left.pop(0)
                continue
            error = case.error(result) if np.isfinite(result.column("y")).all() else np.inf
            while left and error <= left[0]:
                best[left[0]] = min(best[left[0]], (float(cost(result)), f"{method.label} N {number}"))
                left.pop(0)
    return best


def prices(names: Sequence[str]) -> dict[float, list[float]]:
    """What automatic runs cost compared with the oracle, by tolerance."""
    ratios: dict[float, list[float]] = {rtol: [] for rtol in TOLERANCES}
    for name in names:
        best = oracle(CASES[name])
        for rtol in TOLERANCES:
            _, spent, chosen = automatic(CASES[name], CASES[name].build(), rtol)
            ratios[rtol].append(spent / best[rtol][0])
            print(
                f"{name:16} {rtol:g} {spent} / {best[rtol][0]:.0f} ({best[rtol][1]}) = {ratios[rtol][-1]:.2f}, {chosen}"
            )
        sys.stdout.flush()
    for rtol, values in ratios.items():
        print(f"{rtol:g}: median {np.median(values):.2f}, largest {max(values):.2f}, of {len(values)}")
    return ratios


def main(words: Sequence[str]) -> None:
    """What the command line asks for."""
    what, names = words[0], list(words[1:])
    warnings.simplefilter("ignore")
    if what == "zoo":
        judge((CASES[name], CASES[name].build()) for name in names or [n for n in CASES if n != "lorenz_long"])
    elif what == "networks":
        found = [case for seed in SEEDS for case in random_networks(seed, 12)]
        judge(((case, case.build()) for case in found), (1e-3, 1e-5))
    elif what == "no-rollback":
        judge(((CASES[name], hide(CASES[name].build(), rollback=False)) for name in names or ONE_WAY), (1e-3, 1e-4))
    elif what == "oracle":
        prices(names or PRICED)
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:] or ["help"])
