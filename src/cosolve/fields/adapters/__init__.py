"""Field solvers of other people as subsystems, one file each, written against the contract that everybody can use.

`openfoam.py` and `calculix.py` run a program of the system for every macro step and roll back by its own restart files
(what they read and write is in a file beside each); `kratos.py` holds the solver in this process. `program.py` is what
the first two share: how a program is found, run and ended, and where its files live.
"""

from cosolve.fields.adapters.calculix import CalculiX
from cosolve.fields.adapters.kratos import Kratos
from cosolve.fields.adapters.openfoam import OpenFoam

__all__ = ["CalculiX", "Kratos", "OpenFoam"]
