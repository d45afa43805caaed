"""Sweeps: many variants of a system, in blocks of machine code where possible, and their labelled results."""

from cosolve.sweeps.labelled import Failure, SweepResult
from cosolve.sweeps.sweep import sweep

__all__ = ["Failure", "SweepResult", "sweep"]
