"""The tables of docs/validation/stiff.md: orders, factors, cost, random networks.

OPENBLAS_NUM_THREADS=1 python -m tests.stiff.study            all of them, some minutes
OPENBLAS_NUM_THREADS=1 python -m tests.stiff.study order cost
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from datetime import date
from itertools import count

import numpy as np
from tests.stiff.models import driven, heat, ladder, network, tanks, two_bars, two_capacities

import cosolve as cs
from cosolve.analysis.modes import wrong_modes

METHODS = {
    "degree 0": cs.SemiImplicit(0),
    "degree 1": cs.SemiImplicit(1),
    "degree 2": cs.SemiImplicit(2),
    "BDF2": cs.SemiImplicit(1, signal="bdf"),
    "BDF3": cs.SemiImplicit(2, signal="bdf"),
    "collocation": cs.SemiImplicit(1, signal="collocation"),
    "Radau": cs.SemiImplicit(1, signal="radau"),
}
CASES = {
    "heat pair, conductance 1e6": lambda: two_bars("conductance"),
    "heat pair, temperature against flux": lambda: two_bars("face"),
    "RC ladder": ladder,
    "RC network": lambda: network(3),
    "two tanks, linear": lambda: two_capacities(1e4),
}


def iterated(method: cs.SemiImplicit) -> cs.Implicit:
    """The same signals with corrections to tolerance."""
    return cs.Implicit(method.degree, signal=method.signal)


def table(head: list[str], rows: list[list[str]]) -> None:
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def order() -> None:
    """Errors of the pair with a source: states at G = 1, the flux at t = 1 at G = 1e4."""
    steps = (0.05, 0.025, 0.0125)
    rows = []
    for name, method in METHODS.items():
        soft = [driven(1.0).errors(method, H)[0] for H in steps]
        stiff = [driven(1e4).errors(method, H)[1] for H in steps]
        rows.append(
            [
                *(name, *(f"{e:.1e}" for e in soft), f"{np.log2(soft[-2] / soft[-1]):.2f}"),
                *(*(f"{e:.1e}" for e in stiff), f"{np.log2(stiff[-2] / stiff[-1]):.2f}"),
            ]
        )
    head = ["method", *(f"states, G = 1, H = {H:g}" for H in steps), "order"]
    table([*head, *(f"flux, G = 1e4, H = {H:g}" for H in steps), "order"], rows)


def factors() -> None:
    """The largest factor per step that lasts and belongs to no motion, H = 0.02."""
    rows = []
    for name, make in CASES.items():
        case, found = make(), []
        for method in METHODS.values():
            here = cs.macro_map(case.system, method, 0.02)
            wrong = [mode for mode in wrong_modes(case.system, method, 0.02, here) if mode.spoils]
            found.append(_factor(wrong[0].factor) if wrong else "-")
        fast = np.exp(np.linalg.eigvals(case.A).real * 0.02).min()
        rows.append([name, f"{fast:.1e}", *found])
    table(["system", "least exp(lambda H)", *METHODS], rows)


def _factor(value: complex) -> str:
    return f"{value.real:.3f}" if abs(value.imag) < 1e-6 else f"{value.real:.2f}{value.imag:+.2f}i"


def cost(goals: tuple[float, ...] = (1e-3, 1e-5)) -> None:
    """Subsystem steps (Jacobians included, which are exact) until the states are right from t = 0.1 on."""
    rows = []
    for name, make in CASES.items():
        case = make()
        for goal in goals:
            found = [_cost(case, method, goal) for label, method in METHODS.items() if label not in ("degree 2",)]
            rows.append([name, f"{goal:g}", *found, _richardson(case, goal)])
    table(["system", "error", *(m for m in METHODS if m != "degree 2"), "Implicit(0), Richardson"], rows)


def _runs(case, method):
    """Runs with 10, 20, 40 ... steps: their steps, errors, cost and states."""
    for k in count():
        n = 10 * 2**k
        if n > 10240:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = case.run(method, 1.0 / n)
            except cs.CosolveError:
                continue
        yield n, case.of(result, 0.1)[0], _spent(result), result


def _spent(result) -> int:
    """Subsystem steps by length: a step of collocation is as long as any other, and its Jacobian takes both points."""
    return sum(result.stats.calls.values()) + sum(result.stats.jacobians.values())


def _cost(case, method, goal) -> str:
    for _, error, spent, _ in _runs(case, method):
        if error < goal:
            return str(spent)
    return "never"


def _richardson(case, goal) -> str:
    """Two whole runs of degree 0, extrapolated at the macro points of the longer step."""
    before = None
    for _, _, spent, result in _runs(case, cs.Implicit(0)):
        if before is not None:
            rows = range(len(case.states)) if case.rows is None else case.rows
            exact, late = case.exact(before[1].t), before[1].t > 0.0999
            fine = [2 * result[s][::2] - before[1][s] for s in case.states]
            error = max(np.abs(y - exact[:, k])[late].max() for y, k in zip(fine, rows, strict=True))
            if error < goal:
                return str(spent + before[0])
        before = spent, result
    return "never"


def networks(most: int = 200) -> None:
    """Random networks, H = 0.02, t from 0.1 to 1: errors, and what `check` would say of them."""
    rows = []
    for kind, make in (("RC", network), ("heat", heat), ("tanks", tanks)):
        for name, method in METHODS.items():
            errors, silent, said = [], 0, 0
            used = iterated(method) if kind == "tanks" else method
            for seed in range(most):
                case = make(2000 + seed)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        error = case.error(used, after=0.1)
                    except cs.CosolveError:
                        error = np.inf
                    here = cs.macro_map(case.system, method, 0.02)
                    bad = here.unstable or any(m.spoils for m in wrong_modes(case.system, method, 0.02, here))
                errors.append(error)
                said += bad
                silent += not bad and np.isfinite(error) and error > 0.1
            e = np.array(errors)
            values = [f"{np.median(e):.1e}", f"{np.quantile(e, 0.99):.1e}", f"{e.max():.1e}"]
            rows.append([kind, name, *values, str(int((e > 0.1).sum())), str(said), str(silent)])
            print(rows[-1], file=sys.stderr, flush=True)
    table(["kind", "method", "median", "99 %", "worst", "over 10 %", "warned of", "over 10 % and not warned of"], rows)


TABLES = {"order": order, "factors": factors, "cost": cost, "networks": networks}

if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of growth: some of the methods compared explode
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    print(f"Made by `python -m tests.stiff.study` on {date.today():%d %B %Y} at commit {commit}.\n")
    for chosen in sys.argv[1:] or TABLES:
        print(f"{(TABLES[chosen].__doc__ or '').splitlines()[0]}\n")
        TABLES[chosen]()
