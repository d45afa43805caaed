"""Sweeps: many variants of a system, in blocks of machine code where possible, and their results as a Dataset."""

from cosolve.sweeps.dataset import FailedRun, failed_runs
from cosolve.sweeps.picture import plot_map
from cosolve.sweeps.sweep import sweep
