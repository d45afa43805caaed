"""Structures `M q'' + D q' + p(q) = f(t) + B u` that advance over a macro step with one implicit (or explicit) step.

`structure.py` holds matrices and internal forces, `integrators.py` the time integration rules, `ports.py` where inputs
act and outputs are measured, `balance.py` the discrete equation of motion of one step and its derivative, `settings.py`
what is refused, `subsystem.py` the subsystem itself; `truss.py` and `beam.py` make structures. Theory: Sicklinger
(2014), 3.1 and 4.5.
"""

from cosolve.stubs import names_in_stub

__getattr__, __dir__, __all__ = names_in_stub(__name__, __file__)
