"""Small field solvers used as subsystems: the lubrication film of a journal bearing. Theory: docs/theory.md."""

from cosolve.fem.elrod import CavitatedFilm, Elrod, Groove
from cosolve.fem.journal_bearing import JournalBearing
from cosolve.fem.reynolds import Film, PolarFilm, Reynolds

__all__ = ["CavitatedFilm", "Elrod", "Film", "Groove", "JournalBearing", "PolarFilm", "Reynolds"]
