"""FMI and SSP: FMUs and system structures of other tools, read, tried, checked and written.

Names are listed in `fmi.pyi` and imported when they are first used.
"""

from cosolve.stubs import names_in_stub

__getattr__, __dir__, __all__ = names_in_stub(__name__, __file__)
