"""Every FMU and SSP of a folder run here and by other tools, and the numbers compared."""

from cosolve_crosscheck.check import crosscheck

__all__ = ["crosscheck"]
