"""Before and after a run: structure, stability, advice, convergence."""

from cosolve.accuracy.amplification import AmplificationMatrix
from cosolve.analysis.advice import Advice
from cosolve.analysis.black_box import estimate_stability
from cosolve.analysis.convergence import Convergence, convergence, convergence_order, local_reference, nrmse, wrmse
from cosolve.analysis.jacobians import check_jacobians
from cosolve.analysis.linearisation import compare_linearisation
from cosolve.analysis.order import OrderEstimate, order_estimate
from cosolve.analysis.stability import amplification_matrix, critical_step, spectral_radius, stability_map
from cosolve.analysis.structure import CouplingStructure, coupling_structure
from cosolve.corrector import optimal_factor
from cosolve.engine.native import why_not_compiled

__all__ = [
    "Advice",
    "AmplificationMatrix",
    "Convergence",
    "CouplingStructure",
    "OrderEstimate",
    "amplification_matrix",
    "check_jacobians",
    "compare_linearisation",
    "convergence",
    "convergence_order",
    "coupling_structure",
    "critical_step",
    "estimate_stability",
    "local_reference",
    "nrmse",
    "optimal_factor",
    "order_estimate",
    "spectral_radius",
    "stability_map",
    "why_not_compiled",
    "wrmse",
]
