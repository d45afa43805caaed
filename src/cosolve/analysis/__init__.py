"""Before and after a run: structure, stability, advice, convergence."""

from cosolve.analysis.advice import Advice, check
from cosolve.analysis.black_box import estimate_stability
from cosolve.analysis.convergence import Convergence, convergence, local_values, nrmse, slope, wrmse
from cosolve.analysis.linearisation import compare_linearisation
from cosolve.analysis.order import OrderEstimate, observed_order, order_estimate
from cosolve.analysis.stability import critical_step, macro_map, spectral_radius, stability_map
from cosolve.analysis.structure import CouplingStructure, coupling_structure
from cosolve.run.step_map import MacroMap

__all__ = [
    "Advice",
    "Convergence",
    "CouplingStructure",
    "MacroMap",
    "OrderEstimate",
    "check",
    "compare_linearisation",
    "convergence",
    "coupling_structure",
    "critical_step",
    "estimate_stability",
    "local_values",
    "macro_map",
    "nrmse",
    "observed_order",
    "order_estimate",
    "slope",
    "spectral_radius",
    "stability_map",
    "wrmse",
]
