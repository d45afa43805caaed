"""Runs that are stepped: the macro-step loop, its step sequences, and saved states in memory and in files."""

from cosolve.interface.channels import Selection, channels
from cosolve.run.core import Core
from cosolve.run.pace import Pace, make_pace
from cosolve.run.recording import about_run, make_recorder
from cosolve.run.stepper import Stepper, checked_plan
from cosolve.state.snapshot import Snapshot
from cosolve.stepsize.sequence import Windows, make_windows
