"""Every FMU and SSP of a folder run here and by other tools, and the numbers compared."""

from cosolve.io.crosscheck.check import crosscheck
from cosolve.io.crosscheck.table import CrossCheck, Row

__all__ = ["CrossCheck", "Row", "crosscheck"]
