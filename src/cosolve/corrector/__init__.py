"""Interface equation solvers, one per file. They know vectors and Jacobians, not subsystems."""

from cosolve.corrector.aitken import Aitken
from cosolve.corrector.anderson import Anderson
from cosolve.corrector.base import Corrector, InterfaceProblem
from cosolve.corrector.broyden import Broyden
from cosolve.corrector.iqn_ils import IqnIls
from cosolve.corrector.iqn_imvj import IqnImvj
from cosolve.corrector.line_search import LineSearch
from cosolve.corrector.newton import Newton
from cosolve.corrector.newton_krylov import NewtonKrylov
from cosolve.corrector.relaxation import Relaxation, optimal_factor
from cosolve.corrector.secant import Secant
