"""Pictures: fields, mappings, motion, maps of sweeps, widgets in notebooks."""

from .fields.pictures import draw_field as draw_field, write_field_gif as write_field_gif
from .report.animation import draw_strobe as draw_strobe, write_gif as write_gif
from .report.mapping_pictures import draw_mapping as draw_mapping
from .sweeps import plot_map as plot_map
from .viewer import widget as widget
