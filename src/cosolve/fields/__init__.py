"""Field solvers: flows and solids on meshes that take part in a coupled run, and adapters to the solvers people have.

`field_subsystem.py` is the contract: what a field solver offers beyond a subsystem, meshes under its ports and a
snapshot to look at. `field_file.py` writes snapshots during a run, `field_series.py` reads them, `vtkhdf.py` knows the
format. Every solver is one file of its own beside them, and so is every adapter in `adapters/`.
"""

from cosolve.stubs import names_in_stub

__getattr__, __dir__, __all__ = names_in_stub(__name__, __file__)
