"""Parts of many models, as functions to call from a right-hand side.

Contact, friction, hydraulics, current loops, plane finite elements.

They are formulas, not subsystems: numbers in, numbers out, compiled where a compiled right-hand side should call them.
"""

from cosolve.elements.contact import hunt_crossley, smooth_positive, smooth_step
from cosolve.elements.friction import LuGre, bristle_rate, stribeck
from cosolve.elements.hydraulics import (
    Liquid,
    line_acceleration,
    liquid_density,
    liquid_pressure,
    orifice_flow,
    sound_speed,
)
from cosolve.elements.loops import loop_resistance, mutual_inductance, mutual_inductance_slope, self_inductance
from cosolve.elements.plane import block_mesh, foam_forces, lumped_masses, shape_slopes

__all__ = [
    "Liquid",
    "LuGre",
    "block_mesh",
    "bristle_rate",
    "foam_forces",
    "hunt_crossley",
    "line_acceleration",
    "liquid_density",
    "liquid_pressure",
    "loop_resistance",
    "lumped_masses",
    "mutual_inductance",
    "mutual_inductance_slope",
    "orifice_flow",
    "self_inductance",
    "shape_slopes",
    "smooth_positive",
    "smooth_step",
    "sound_speed",
    "stribeck",
]
