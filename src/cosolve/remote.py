"""Subsystems that run elsewhere: in another process, on another machine, on MPI ranks, in programs of their own.

Names are listed in `remote.pyi` and imported when they are first used.
"""

from cosolve.stubs import names_in_stub

__getattr__, __dir__, __all__ = names_in_stub(__name__, __file__)
