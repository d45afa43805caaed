"""Parts that many models are made of, as functions to call from a right-hand side: contacts, friction, current loops.

They are formulas, not subsystems: numbers in, numbers out, compiled where a compiled right-hand side should call them.
"""

from cosolve.elements.contact import hunt_crossley, smooth_positive, smooth_step
from cosolve.elements.friction import LuGre
from cosolve.elements.loops import loop_resistance, mutual_inductance, mutual_inductance_slope, self_inductance

__all__ = [
    "LuGre",
    "hunt_crossley",
    "loop_resistance",
    "mutual_inductance",
    "mutual_inductance_slope",
    "self_inductance",
    "smooth_positive",
    "smooth_step",
]
