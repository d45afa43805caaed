"""Coupling variables as functions of time inside a macro step. Theory: docs/theory.md, "Signals"."""

from cosolve.signal.history import History
from cosolve.signal.polynomial import InputSignal, Polynomial, end_values, lagrange_weights

__all__ = ["History", "InputSignal", "Polynomial", "end_values", "lagrange_weights"]
