"""The macro step itself: one file per family of coupling methods. Theory: docs/theory.md."""

from cosolve.method.base import Declaration, Method, Proposal
from cosolve.method.constraint import Baumgarte, ConstraintTreatment, StabilisedIndex2, WeightedMultipliers
from cosolve.method.dynamic_static import DynamicStatic
from cosolve.method.explicit import GaussSeidel, Jacobi, LeaderFollower
from cosolve.method.implicit import Implicit
from cosolve.method.semi_implicit import SemiImplicit
from cosolve.method.step import Outcome, Window
