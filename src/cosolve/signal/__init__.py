"""Coupling variables as functions of time inside a macro step. Theory: docs/theory.md, "Signals"."""

from cosolve.signal.bdf import MeanHistory
from cosolve.signal.history import History
from cosolve.signal.polynomial import InputSignal, Polynomial, end_values, lagrange_weights

#: The kinds of signals by name: what each remembers of the past, and how it draws the next step from it.
SIGNALS: dict[str, type[History]] = {
    "lagrange": History,
    "bdf": MeanHistory,
    "collocation": History,
    "radau": History,
}
