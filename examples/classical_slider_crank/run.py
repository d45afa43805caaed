"""Slider-crank cut between crank and connecting rod, stabilised index-2 method (Lu (2015), 3.3.3.4).

    python examples/classical_slider_crank/run.py [--out DIR] [--fine]

Runs the three settings of the source, (k, omega) = (0, 1), (0, 0.9), (1, 0.9), and Method 1 for comparison, at H = 2e-3
and 1e-3 s over 1 s, prints errors and orders, and draws (`DIR` is `out/classical_slider_crank` unless given):

- `motion.png`: angles, slider and joint force against the monolithic solution; the constraint on position, velocity
  and acceleration level; the energy (with the potential of the constant force), which should stay constant;
- `convergence.png`: the same quantities against the macro step;
- `mechanism.gif`, `mechanism.png`: the mechanism in motion.

Relaxation lets a degree above 0 run, and costs the exact constraint: 8e-9 m instead of rounding.
Checked in tests/method/constraint/test_planar_tables.py, against docs/validation/lu.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cosolve as cs
from examples.classical_slider_crank.model import CASE
from examples.planar.pictures import arguments_of, report

VARIANTS = (
    ("M3, k = 0", cs.StabilisedIndex2(), 0),
    ("M3 omega = 0.9, k = 0", cs.StabilisedIndex2(0.9), 0),
    ("M3 omega = 0.9, k = 1", cs.StabilisedIndex2(0.9), 1),
    ("M1 index 1, k = 1", cs.Baumgarte(2e-3, 1e-6), 1),
)


def main(arguments: list[str] | None = None) -> None:
    """Print the table and draw everything."""
    chosen = arguments_of(__doc__, "classical_slider_crank").parse_args(arguments)
    report(CASE, VARIANTS, chosen.out, fine=chosen.fine)


if __name__ == "__main__":
    main()
