"""The tables of docs/validation/stiff.md: orders, factors, cost, random networks.

OPENBLAS_NUM_THREADS=1 python -m tests.signal.study            all of them, some minutes
OPENBLAS_NUM_THREADS=1 python -m tests.signal.study order cost
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import warnings
from datetime import date

import numpy as np
from tests.signal.models import driven, heat, ladder, network, tanks, two_bars, two_capacities

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
    "heat pair, conductance 1e6": lambda: two_bars("conductance", n=10),
    "heat pair, temperature against flux": lambda: two_bars("face", n=10),
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
            here = cs.analysis.amplification_matrix(case.system, method, 0.02)
            wrong = [mode for mode in wrong_modes(case.system, method, 0.02, here) if mode.spoils]
            found.append(_factor(wrong[0].factor) if wrong else "-")
        fast = np.exp(np.linalg.eigvals(case.A).real * 0.02).min()
        rows.append([name, f"{fast:.1e}", *found])
    table(["system", "least exp(lambda H)", *METHODS], rows)


def _factor(value: complex) -> str:
    return f"{value.real:.3f}" if abs(value.imag) < 1e-6 else f"{value.real:.2f}{value.imag:+.2f}i"


def cost(goals: tuple[float, ...] = (1e-3, 1e-5)) -> None:
    """Subsystem steps (Jacobians included, which are exact) until the states are right from t = 0.1 on."""
    several = {name: method for name, method in METHODS.items() if name != "degree 2"}
    rows = []
    for name, make in CASES.items():
        case = make()
        columns = [_costs(case, method, goals) for method in several.values()] + [_richardson(case, goals)]
        rows += [[name, f"{goal:g}", *(column[k] for column in columns)] for k, goal in enumerate(goals)]
        print(rows[-len(goals) :], file=sys.stderr, flush=True)
    table(["system", "error", *several, "Implicit(0), Richardson"], rows)


def _runs(case, method):
    """Runs with 10, 20, 40 ... steps: their errors, cost and results."""
    for k in range(9):
        with contextlib.suppress(cs.CosolveError):
            result = case.run(method, 1.0 / (10 * 2**k))
            yield case.of(result, 0.1)[0], _spent(result), result


def _spent(result) -> int:
    """Subsystem steps by length: one of collocation is as long as any other, and its Jacobian takes both points."""
    return sum(result.stats.calls.values()) + sum(result.stats.jacobians.values())


def _costs(case, method, goals) -> list[str]:
    """What each goal takes."""
    found: list[str] = []
    for error, spent, _ in _runs(case, method):
        while len(found) < len(goals) and error < goals[len(found)]:
            found.append(str(spent))
        if len(found) == len(goals):
            return found
    return found + ["> 2560 steps"] * (len(goals) - len(found))


def _richardson(case, goals) -> list[str]:
    """Two whole runs of degree 0, extrapolated at the macro points of the longer step."""
    before, found = None, []
    for _, spent, result in _runs(case, cs.Implicit(0)):
        if before is not None:
            rows = range(len(case.states)) if case.rows is None else case.rows
            exact, late = case.exact(before[1].t), before[1].t > 0.0999
            fine = [2 * result[s][::2] - before[1][s] for s in case.states]
            error = max(np.abs(y - exact[:, k])[late].max() for y, k in zip(fine, rows, strict=True))
            while len(found) < len(goals) and error < goals[len(found)]:
                found.append(str(spent + before[0]))
            if len(found) == len(goals):
                return found
        before = spent, result
    return found + ["> 2560 steps"] * (len(goals) - len(found))


def networks(most: int = 70) -> None:
    """Random networks, H = 0.02, t from 0.1 to 1: errors, and what `check` would say of them."""
    rows = []
    for kind, make in (("RC", network), ("heat", heat), ("tanks", tanks)):
        for name, method in METHODS.items():
            errors, silent, said = [], 0, 0
            used = iterated(method) if kind == "tanks" else method
            for seed in range(most):
                case = make(2000 + seed)
                error = np.inf
                with contextlib.suppress(cs.CosolveError):
                    error = case.error(used, after=0.1)
                here = cs.analysis.amplification_matrix(case.system, method, 0.02)
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
    print(f"Made by `python -m tests.signal.study` on {date.today():%d %B %Y} at commit {commit}.\n")
    for chosen in sys.argv[1:] or TABLES:
        print(f"{(TABLES[chosen].__doc__ or '').splitlines()[0]}\n")
        TABLES[chosen]()
