"""Two hinged rods, the tip of one sliding along the other: elastic or rigid (Lu (2015), 2.3.3 and 3.3).

    python examples/slider_crank/run.py [--joint rigid|elastic|sprung|bushings] [--out DIR] [--fine]

Runs one of four models (rigid; elastic; rigid with a spring; the same on stiff bushings as in the source) at H = 2e-3
and 1e-3 s over 1 s, prints errors and orders, and draws (`DIR` is `out/slider_crank` unless given):

- `motion.png`: angles and joint force against the monolithic solution; the constraint on position, velocity and
  acceleration level; the energy. With constant signals (k = 0) the foreign angle is frozen at its end value over the
  macro step: all three methods are of first order only and dissipate, alike. Degree 1 removes both.
- `convergence.png`: the same quantities against the macro step;
- `mechanism.gif`, `mechanism.png`: the mechanism in motion.

Checked in tests/method/constraint/test_slider_crank.py and test_planar_tables.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cosolve as cs
from examples.planar.pictures import arguments_of, report
from examples.slider_crank.model import ELASTIC_JOINT, RIGID_JOINT, SPRUNG_JOINT
from examples.slider_crank.penalty import ON_BUSHINGS

RIGID = (
    ("M1 index 2, k = 0", cs.Baumgarte(2e-3, 0.0), 0),
    ("M2 a = 1, b = 0, k = 0", cs.WeightedMultipliers(1.0, 0.0), 0),
    ("M3, k = 0", cs.StabilisedIndex2(), 0),
    ("M1 index 1, k = 1", cs.Baumgarte(2e-3, 1e-6), 1),
)
SPRUNG = (
    ("M3, k = 0", cs.StabilisedIndex2(), 0),
    ("M3 omega = 0.9, k = 1", cs.StabilisedIndex2(0.9), 1),
    ("the same, copies unrelaxed", cs.StabilisedIndex2(0.9, relaxed="multipliers"), 1),
)
ELASTIC = tuple((f"semi-implicit, k = {k}", None, k) for k in (0, 1, 2))
JOINTS = {
    "rigid": (RIGID_JOINT, RIGID),
    "elastic": (ELASTIC_JOINT, ELASTIC),
    "sprung": (SPRUNG_JOINT, SPRUNG),
    "bushings": (ON_BUSHINGS, SPRUNG[:1]),
}


def main(arguments: list[str] | None = None) -> None:
    """Print the table and draw everything."""
    parser = arguments_of(__doc__, "slider_crank")
    parser.add_argument("--joint", choices=JOINTS, default="rigid", help="which of the four models")
    chosen = parser.parse_args(arguments)
    case, variants = JOINTS[chosen.joint]
    report(case, variants, chosen.out, fine=chosen.fine)


if __name__ == "__main__":
    main()
