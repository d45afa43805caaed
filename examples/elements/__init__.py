"""Parts of many models, for right-hand sides: contact, friction, hydraulics, circuits, magnets, loops, foam, rotors.

They are formulas, not subsystems: numbers in, numbers out, compiled where a compiled right-hand side should call them.
"""

from examples.elements.blade_element import (
    ElementFlow,
    Polar,
    closed_polar,
    element_flow,
    filtered_inflow,
    hub_loss,
    inflow_times,
    momentum_speed,
    polar,
    polar_values,
    stall_delay,
    steady_element,
    tip_loss,
)
from examples.elements.characteristics import WaveLine, characteristics_step
from examples.elements.circuits import (
    capacitor_rate,
    coil_rate,
    diode_current,
    tabulated_inductance,
    transformer_rates,
    warm_resistance,
)
from examples.elements.contact import hunt_crossley, smooth_positive, smooth_step
from examples.elements.friction import LuGre, bristle_rate, stribeck
from examples.elements.hydraulics import (
    Liquid,
    gap_conductance,
    limiting_flow,
    line_acceleration,
    liquid_density,
    liquid_pressure,
    orifice_flow,
    sound_speed,
    valve_rate,
    volume_pressure,
)
from examples.elements.loops import (
    inductance_matrix,
    loop_resistance,
    mutual_inductance,
    mutual_inductance_slope,
    self_inductance,
)
from examples.elements.magnet_table import MagnetTable, linked_current, table_value
from examples.elements.plane import block_mesh, foam_forces, lumped_masses, shape_slopes

__all__ = [
    "ElementFlow",
    "Liquid",
    "LuGre",
    "MagnetTable",
    "Polar",
    "WaveLine",
    "block_mesh",
    "bristle_rate",
    "capacitor_rate",
    "characteristics_step",
    "closed_polar",
    "coil_rate",
    "diode_current",
    "element_flow",
    "filtered_inflow",
    "foam_forces",
    "gap_conductance",
    "hub_loss",
    "hunt_crossley",
    "inductance_matrix",
    "inflow_times",
    "limiting_flow",
    "line_acceleration",
    "linked_current",
    "liquid_density",
    "liquid_pressure",
    "loop_resistance",
    "lumped_masses",
    "momentum_speed",
    "mutual_inductance",
    "mutual_inductance_slope",
    "orifice_flow",
    "polar",
    "polar_values",
    "self_inductance",
    "shape_slopes",
    "smooth_positive",
    "smooth_step",
    "sound_speed",
    "stall_delay",
    "steady_element",
    "stribeck",
    "table_value",
    "tabulated_inductance",
    "tip_loss",
    "transformer_rates",
    "valve_rate",
    "volume_pressure",
    "warm_resistance",
]
