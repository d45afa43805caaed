"""Planar four-bar linkage cut in its coupler, stabilised index-2 method (Lu (2015), 3.3.3.5).

    python examples/four_bar/run.py [--out DIR] [--fine]

Runs the three settings of the source, (k, omega) = (0, 1), (0, 0.7), (1, 0.7), and Method 1 for comparison, at H = 2e-3
and 1e-3 s over 0.5 s, prints errors and orders, and draws (`DIR` is `out/four_bar` unless given):

- `motion.png`: angles and the three multipliers of the fixed joint against the monolithic solution; the constraint on
  position, velocity and acceleration level; the energy, to which the driving moment adds;
- `convergence.png`: the same quantities against the macro step;
- `mechanism.gif`, `mechanism.png`: the linkage in motion.

Checked in tests/method/constraint/test_planar_tables.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cosolve as cs
from examples.four_bar.model import CASE
from examples.planar.pictures import arguments_of, report

VARIANTS = (
    ("M3, k = 0", cs.StabilisedIndex2(), 0),
    ("M3 omega = 0.7, k = 0", cs.StabilisedIndex2(0.7), 0),
    ("M3 omega = 0.7, k = 1", cs.StabilisedIndex2(0.7), 1),
    ("M1 index 1, k = 1", cs.Baumgarte(2e-3, 1e-6), 1),
)


def main(arguments: list[str] | None = None) -> None:
    """Print the table and draw everything."""
    chosen = arguments_of(__doc__, "four_bar").parse_args(arguments)
    report(CASE, VARIANTS, chosen.out, fine=chosen.fine, traced=(1,))


if __name__ == "__main__":
    main()
