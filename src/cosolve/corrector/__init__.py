"""Interface equation solvers, one per file. They know vectors and Jacobians, not subsystems."""

from cosolve.corrector.base import Corrector, InterfaceProblem
from cosolve.corrector.newton import Newton

__all__ = ["Corrector", "InterfaceProblem", "Newton"]
