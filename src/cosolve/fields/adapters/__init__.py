"""Field solvers of other people as subsystems, written against the public contract.

Each is one file: `openfoam.py` and `calculix.py` run a program of the system for every macro step and roll back by its
own restart files; `kratos.py` holds the solver in this process; `dolfinx_solid.py` calls `dolfinx_worker.py` in another
Python. `program.py` and `other_python.py` are what such adapters share: how a program or a Python is found, run and
ended; `sides.py` finds the surface of finite elements.
"""

from cosolve.fields.adapters.calculix import CalculiX
from cosolve.fields.adapters.dolfinx_solid import DolfinxSolid
from cosolve.fields.adapters.kratos import Kratos
from cosolve.fields.adapters.openfoam import OpenFoam
