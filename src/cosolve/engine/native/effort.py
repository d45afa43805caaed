"""Whether compiled loops repay loading: what the macro steps that are left would take in Python, by estimate.

Nothing is measured, so that the same run is compiled wherever it runs.
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import TYPE_CHECKING

from cosolve.interface import Plan
from cosolve.subsystem.base import has_capability

if TYPE_CHECKING:
    from cosolve.run import Core

#: Seconds of work in Python that repay loading: nothing loaded yet, loops loaded, functions that numba compiles first.
LOADING, RUNNING, COMPILING = 1.0, 0.2, 6.0

#: Seconds that Python takes for a sweep, for a subsystem step, for one around a function of the user, and for a law.
_SWEEP, _STEP, _FUNCTION, _LAW = 1e-5, 7e-6, 6e-5, 3e-6


def in_python(core: Core) -> float:
    """Seconds of a macro step in the Python engine, roughly.

    A corrected step is a sweep for the prediction, one more, and one per difference quotient.
    """
    plan, declaration = core.plan, core.method.declaration
    each = [_FUNCTION if _is_function(subsystem) else _STEP for subsystem in plan.subsystems]
    sweep = _SWEEP + sum(each) + _LAW * len(plan.blocks)
    if declaration is None or declaration.corrector is None:
        return sweep
    differences = sum(
        seconds * len(plan.reads(i))
        for i, (seconds, subsystem) in enumerate(zip(each, plan.subsystems, strict=True))
        if not has_capability(subsystem, "jacobian")
    )
    return 2 * sweep + differences


def repays(core: Core, steps: float) -> bool:
    """Whether so many steps take longer in Python than loading does."""
    loaded = "cosolve.engine.native.parts" in sys.modules
    worth = (RUNNING if loaded else LOADING) + COMPILING * (_jitted(core.plan) and not loaded)
    return steps * in_python(core) >= worth


def _is_function(subsystem: object) -> bool:
    return any(isinstance(value, FunctionType) for value in vars(subsystem).values())


def _jitted(plan: Plan) -> bool:
    held = [value for subsystem in plan.subsystems for value in vars(subsystem).values()]
    return any(hasattr(value, "nopython_signatures") for value in (*held, *(block.function for block in plan.blocks)))
