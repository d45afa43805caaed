"""Parts of many models, as functions for right-hand sides: contact, friction, hydraulics, circuits, current loops.

They are formulas, not subsystems: numbers in, numbers out, compiled where a compiled right-hand side should call them.
"""

from cosolve.elements.circuits import (
    capacitor_rate,
    coil_rate,
    diode_current,
    tabulated_inductance,
    transformer_rates,
    warm_resistance,
)
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
from cosolve.elements.loops import (
    inductance_matrix,
    loop_resistance,
    mutual_inductance,
    mutual_inductance_slope,
    self_inductance,
)

__all__ = [
    "Liquid",
    "LuGre",
    "bristle_rate",
    "capacitor_rate",
    "coil_rate",
    "diode_current",
    "hunt_crossley",
    "inductance_matrix",
    "line_acceleration",
    "liquid_density",
    "liquid_pressure",
    "loop_resistance",
    "mutual_inductance",
    "mutual_inductance_slope",
    "orifice_flow",
    "self_inductance",
    "smooth_positive",
    "smooth_step",
    "sound_speed",
    "stribeck",
    "tabulated_inductance",
    "transformer_rates",
    "warm_resistance",
]
