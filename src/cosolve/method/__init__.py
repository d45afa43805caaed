"""The macro step itself: one file per family of coupling methods. Theory: docs/theory.md."""

from cosolve.engine.readable.crew import Crew, Window
from cosolve.method.base import Method, Outcome
from cosolve.method.constraint import Baumgarte, ConstraintTreatment, StabilisedIndex2, WeightedMultipliers
from cosolve.method.dynamic_static import DynamicStatic
from cosolve.method.explicit import GaussSeidel, Jacobi, MasterSlave
from cosolve.method.implicit import Implicit
from cosolve.method.semi_implicit import SemiImplicit

__all__ = [
    "Baumgarte",
    "ConstraintTreatment",
    "Crew",
    "DynamicStatic",
    "GaussSeidel",
    "Implicit",
    "Jacobi",
    "MasterSlave",
    "Method",
    "Outcome",
    "SemiImplicit",
    "StabilisedIndex2",
    "WeightedMultipliers",
    "Window",
]
