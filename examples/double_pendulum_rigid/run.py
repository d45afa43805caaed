"""Double pendulum with a rigid joint, two rods in two solvers (Lu (2015), 3.3.1.2, 3.3.2.2, 3.3.3.2).

    python examples/double_pendulum_rigid/run.py [--hinge ideal|bushing] [--out DIR] [--fine]

Runs the three constraint methods at H = 2e-3 and 1e-3 s over 0.5 s, prints errors and orders, and draws (`DIR` is
`out/double_pendulum_rigid` unless given):

- `motion.png`: angles and joint force against the monolithic solution; the constraint on position, velocity and
  acceleration level; the energy, which the damper of the torsional spring takes out. Method 3 closes position and
  velocity to rounding, Methods 1 and 2 to the order of the step; no method closes the acceleration for degree 0.
- `convergence.png`: the same quantities against the macro step;
- `mechanism.gif`, `mechanism.png`: the pendulum in motion.

`--hinge bushing` hangs rod 1 on the stiff bushing of Lu's 3.3.3.2 (Method 3 only); it sags by 2.4e-7 m.

Checked in tests/method/constraint/test_planar_tables.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cosolve as cs
from examples.double_pendulum_rigid.model import CASE
from examples.double_pendulum_rigid.penalty import ON_BUSHING
from examples.planar.pictures import arguments_of, report

VARIANTS = (
    ("M1 index 1, k = 0", cs.Baumgarte(2e-3, 1e-6), 0),
    ("M1 index 2, k = 0", cs.Baumgarte(2e-3, 0.0), 0),
    ("M1 index 1, k = 1", cs.Baumgarte(2e-3, 1e-6), 1),
    ("M2 a = b = 1, k = 0", cs.WeightedMultipliers(1.0, 1.0), 0),
    ("M3, k = 0", cs.StabilisedIndex2(), 0),
    ("M3 omega = 0.9, k = 1", cs.StabilisedIndex2(0.9), 1),
)


def main(arguments: list[str] | None = None) -> None:
    """Print the table and draw everything."""
    parser = arguments_of(__doc__, "double_pendulum_rigid")
    parser.add_argument("--hinge", choices=("ideal", "bushing"), default="ideal", help="how rod 1 is held")
    chosen = parser.parse_args(arguments)
    case, variants = (CASE, VARIANTS) if chosen.hinge == "ideal" else (ON_BUSHING, VARIANTS[4:5])
    report(case, variants, chosen.out, fine=chosen.fine, traced=(1,))


if __name__ == "__main__":
    main()
