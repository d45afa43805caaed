"""A Thomson coil throws a plate off: circuit and eddy currents against latch and end stop, method by method.

    python examples/thomson_coil/run.py [rings | field] [--finer F] [--long] [--out DIR]

`rings` cuts the plate into rings with inductances between them, `field` solves for the magnetic field by finite
elements (needs `pip install cosolve[fem]`; taken where that is installed). What is printed and drawn (`DIR` is
`build/thomson_coil` unless given; less than a minute on one core):

- a table: macro step, subsystem steps of the electromagnetic side, error against the undivided machine and time, for
several
  methods in free flight (`--long`: down to 1 us, some minutes);
- `section.png`: coil and plate in section at four instants, with their currents and the lines of flux;
- `motion.gif`: the same in motion, with latch and end stop;
- `motion.png`: current, force, speed and distance, in free flight and with latch and end stop;
- `errors.png`: the table as lines.

The same machine from a file: cosolve run examples/thomson_coil/system.toml
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: threads would only wait for each other

import numpy as np

import cosolve as cs
from examples.thomson_coil import field, model, pictures

STEPS = (100e-6, 25e-6, 5e-6)
LONG_STEPS = (100e-6, 50e-6, 25e-6, 12.5e-6, 5e-6, 2e-6, 1e-6)
METHODS = (
    *(cs.Jacobi(degree) for degree in range(1, 3)),
    *(cs.GaussSeidel(degree) for degree in range(1, 4)),
    cs.SemiImplicit(2),
)
SIGNALS = {"plate.z": "z", "plate.v": "v", "em.F": "F"}
T_END = 1e-3


def error(result: cs.Result, reference: model.Flight | field.Flight, until: float = np.inf) -> float:
    """Root mean square over signals and macro points, each signal relative to its range."""
    seen = result.t <= until
    exact = reference.signals(result.t[seen])
    shares = [(result[name][seen] - exact[of]) / np.ptp(exact[of]) for name, of in SIGNALS.items()]
    return float(np.sqrt(np.mean(np.square(shares))))


@dataclass(frozen=True)
class Row:
    """One run: `work` is how often the electromagnetic side, which takes the time, has advanced all of it."""

    method: str
    step: float
    calls: int
    work: float
    error: float
    seconds: float

    def __str__(self) -> str:
        numbers = (
            f"{1e6 * self.step:>8.3g} {self.calls:>10} {self.work:>6.1f} {self.error:>10.1e} {self.seconds:>7.1f} s"
        )
        return f"  {self.method:<18}{numbers}"


HEAD = f"  {'':<18}{'H in us':>8} {'subsystem steps':>10} {'work':>6} {'error':>10} {'time':>9}"


def without_coupling(em: cs.Subsystem, step: float = 5e-6) -> dict[str, np.ndarray]:
    """First the electromagnetic side with a plate that is held, then the mechanical side with the force of that run."""
    system = cs.System({"em": em})
    system.set("em.z", 0.0)
    system.set("em.v", 0.0)
    found = cs.simulate(system, t_end=T_END, method=cs.Jacobi(0), step=step)
    t, F = found.t, found["em.F"]
    v = np.concatenate([[0.0], np.cumsum(np.diff(t) * (F[1:] + F[:-1]) / 2)]) / model.ThomsonCoil().mass
    z = np.concatenate([[0.0], np.cumsum(np.diff(t) * (v[1:] + v[:-1]) / 2)])
    return {"t": t, "F": F, "v": v, "z": z, "I": np.full_like(t, np.nan)}


def study(build: Any, reference: model.Flight | field.Flight, long: bool = False) -> Iterator[Row]:
    """Free flight with each method and macro step, and with what `rtol` chooses."""
    system = build()
    cs.simulate(system, t_end=1e-4, method=cs.Jacobi(0), step=1e-4)  # what is compiled is compiled now
    methods, steps = ((cs.Jacobi(0), *METHODS), LONG_STEPS) if long else (METHODS, STEPS)
    for method, H in [*((method, H) for method in methods for H in steps), (None, 0.0)]:
        begin = perf_counter()
        how: dict[str, Any] = {"method": method, "step": H} if method else {"rtol": 1e-4}
        result = cs.simulate(system, t_end=T_END, **how)
        seconds, calls = perf_counter() - begin, result.stats.calls["em"]
        mean = T_END / (len(result.t) - 1)
        name = method.label if method else "rtol = 1e-4"
        yield Row(name, H or mean, calls, calls * mean / T_END, error(result, reference), seconds)
    print(f"  (chosen by rtol: {result.meta['choice'].partition(' for ')[0]})")


def main(arguments: list[str] | None = None) -> None:
    """Print the table, draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", choices=("rings", "field"))
    parser.add_argument("--finer", type=float, default=1.0, help="2 halves the finite elements")
    parser.add_argument("--out", type=Path, default=Path("build/thomson_coil"))
    parser.add_argument(
        "--long", action="store_true", help="macro steps down to 1 us, Jacobi(0), and shorter internal steps"
    )
    options = parser.parse_args(arguments)
    chosen = options.model or ("field" if find_spec("skfem") else "rings")
    options.out.mkdir(parents=True, exist_ok=True)
    finer = {"finer": options.finer} if chosen == "field" else {}
    of: Any = field if chosen == "field" else model
    internal = (1e-6 if options.long else 5e-6) if chosen == "field" else (1e-7 if options.long else 5e-7)

    try:
        reference = of.undivided(**finer)
    except cs.errors.SetupError as missing:
        sys.exit(str(missing))
    print(f"free flight of 1 ms, the electromagnetic side as {chosen}; internal steps of {1e6 * internal:g} us\n")
    print(HEAD)
    rows = []
    for row in study(lambda: of.split(internal_step=internal, **finer), reference, options.long):
        print(row, flush=True)
        rows.append(row)
    pictures.draw_errors(rows, f"Thomson coil in free flight, {chosen}", options.out / "errors.png")

    held = without_coupling(of.electromagnetics(internal_step=internal, **finer))
    exact = reference.signals(np.array([T_END]))
    print(f"\nwithout coupling the plate would leave with {held['v'][-1]:.2f} m/s instead of {exact['v'][0]:.2f} m/s")
    pictures.draw_sections(reference, options.out / "section.png")
    thrown = of.undivided(t_end=3e-3, latched=True, **finer, **({"step": 5e-6} if finer else {}))
    pictures.animate(thrown, options.out / "motion.gif")
    columns = []
    for title, flight, latched, t_end in (
        ("free flight", reference, False, T_END),
        ("with latch and end stop", thrown, True, 3e-3),
    ):
        system = of.split(internal_step=internal, latched=latched, **finer)
        result = cs.simulate(system, t_end=t_end, method=cs.GaussSeidel(3), step=5e-6)
        columns.append((title, flight, result))
    pictures.draw_motion(columns, held, options.out / "motion.png")
    print(f"\npictures in {options.out}: section.png and motion.gif first")


if __name__ == "__main__":
    main()
