"""How many iterations a step takes by corrector: FSI3 from rest (`--steps 20`), at 1e-4 of the displacement.

    python examples/turek_hron/iterations.py [--steps 20] [--tol 1e-4] [--from-cycle] [--solids]

The flow is as heavy as the flag, so that plain iterations diverge; what the correctors learn of the interface in past
steps saves more than half of the work. `--solids` repeats it with every solver of the flag that is installed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cosolve as cs
from examples.turek_hron import limit_cycle
from examples.turek_hron.model import CASES, Case, method, solid, system
from examples.turek_hron.solids import SOLIDS, end_of_flag

CORRECTORS = {
    "IQN-ILS, 8 steps reused": lambda: cs.IqnIls(reuse=8, filter_tol=1e-3),
    "IQN-ILS, no reuse": lambda: cs.IqnIls(reuse=0, filter_tol=1e-3),
    "IQN-IMVJ": lambda: cs.IqnImvj(),
    "Anderson": lambda: cs.Anderson(),
    "Aitken": lambda: cs.Aitken(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--from-cycle", action="store_true")
    parser.add_argument("--fineness", type=float, default=1.0)
    parser.add_argument("--solids", action="store_true")
    options = parser.parse_args()
    case = CASES["FSI3"]
    for name in SOLIDS if options.solids else ["ngsolve"]:
        try:
            flag = solid(case, options.fineness) if name == "ngsolve" else SOLIDS[name](case)
        except cs.errors.SetupError as error:
            print(f"{name}: {error}")
            continue
        joined = system(case, options.fineness, flag)
        t_start, startup = 0.0, None
        if options.from_cycle:
            t_start = case.t_end
            startup = limit_cycle.set_start(joined.subsystems["fluid"], flag, t0=t_start)
        count(case, joined, flag, name, t_start, startup, options.steps, options.tol)


def count(
    case: Case,
    joined: cs.System,
    flag: cs.fields.FieldSubsystem,
    name: str,
    t_start: float,
    startup: cs.Startup | None,
    steps: int,
    tol: float,
) -> None:
    """One line per corrector."""
    print(f"{'flag by ' + name:<26}{'iterations':>12}{'most':>6}{'uy in mm':>14}{'in the solvers':>16}")
    t_end = t_start + steps * case.step
    for label, corrector in CORRECTORS.items():
        how = method(case, corrector(), tol)
        run = cs.simulate(joined, t_start=t_start, t_end=t_end, method=how, step=case.step, startup=startup)
        counts, lift = run.iterations + 1, 1e3 * end_of_flag(run, flag)[-1, 1]
        seconds = sum(run.stats.seconds.values())
        print(f"{label:<26}{counts.mean():>12.2f}{counts.max():>6}{lift:>14.6g}{seconds:>14.1f} s", flush=True)


if __name__ == "__main__":
    main()
