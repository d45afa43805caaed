"""How subsystems are joined: connections, laws, equations, and the flat plan they compile into."""

from cosolve.interface.plan import Block, Plan
from cosolve.interface.system import System
