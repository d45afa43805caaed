"""Pictures: fields, mappings, motion, maps of sweeps, widgets in notebooks.

Names are listed in `plot.pyi` and imported when they are first used.
"""

from cosolve.stubs import names_in_stub

__getattr__, __dir__, __all__ = names_in_stub(__name__, __file__)
