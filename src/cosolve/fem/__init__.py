"""Small field solvers used as subsystems: the lubrication film of a journal bearing. Theory: docs/theory.md."""

from cosolve.fem.journal_bearing import JournalBearing
from cosolve.fem.reynolds import Film, PolarFilm, Reynolds

__all__ = ["Film", "JournalBearing", "PolarFilm", "Reynolds"]
