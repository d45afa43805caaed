"""Runs that are stepped: the macro-step loop, its step sequences, and saved states in memory and in files."""

from cosolve.stepper.channels import Selection, channels
from cosolve.stepper.core import Core
from cosolve.stepper.growth import Growth, GrowthMonitor
from cosolve.stepper.pace import Pace, make_pace
from cosolve.stepper.recording import about_run, make_recorder
from cosolve.stepper.rows import Rows
from cosolve.stepper.snapshot import Snapshot
from cosolve.stepper.stepper import Stepper, checked_plan
from cosolve.stepper.stillness import Stillness
from cosolve.stepper.windows import Windows, make_windows

__all__ = [
    "Core",
    "Growth",
    "GrowthMonitor",
    "Pace",
    "Rows",
    "Selection",
    "Snapshot",
    "Stepper",
    "Stillness",
    "Windows",
    "about_run",
    "channels",
    "checked_plan",
    "make_pace",
    "make_recorder",
    "make_windows",
]
