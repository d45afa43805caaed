"""Ensembles: many variants of a system, in blocks of compiled code where possible, and their labelled results."""

from cosolve.ensemble.labelled import Failure, SweepResult
from cosolve.ensemble.run import sweep

__all__ = ["Failure", "SweepResult", "sweep"]
