"""Compiled entries to a multibody model in a table (`equations/table.py`): one machine code for both engines.

They are called by address, so the loop over macro steps is compiled once and the subsystem step is not compiled again
for it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from cosolve.jit import (
    ADVANCE_CALL,
    address_of,
    c_address,
    c_call,
    compiled,
    entry,
    field_size,
    index_field,
    matrix_at,
    matrix_field,
    raising_address,
    types,
    vector_at,
    vector_field,
)
from cosolve.multibody.equations.dynamics import slope_by
from cosolve.multibody.equations.kinematics import BODY_WIDTH, POINT_WIDTH
from cosolve.multibody.equations.observe import SEEN as PORT
from cosolve.multibody.equations.observe import report
from cosolve.multibody.equations.radau import advance_radau
from cosolve.multibody.equations.stepping import adaptive, equal_steps, fixed
from cosolve.multibody.equations.table import (
    ACCELERATIONS,
    BODIES,
    COUNTS,
    DERIVE,
    DRIVEN,
    END,
    ENTRIES,
    EXTRA,
    GGL,
    LEVEL,
    MARKER_BODY,
    OBSERVE,
    OPTIONS,
    POINTS,
    RATES,
    SEEN,
    SETTLE,
    STATE,
    STEP,
    TAIL,
    A,
    C,
    model_at,
)

#: `f(table, t0, t1, u_t0, u_H, n, coefficients) -> status` integrates; `f(table, u, y) -> 0` observes.
INTEGRATION = types.int64(types.int64, *[types.float64] * 4, types.int64, types.int64)
OBSERVATION = types.int64(*[types.int64] * 3)
_integrate, _observe = c_call(INTEGRATION), c_call(OBSERVATION)


@compiled
def radau(w: int, t0: float, t1: float, u_t0: float, u_H: float, n: int, coefficients: int) -> int:
    """Radau IIA in equal steps."""
    state, o, project = vector_field(w, STATE), vector_field(w, OPTIONS), index_field(w, ENTRIES)[SETTLE]
    coef, at = matrix_at(coefficients, n, field_size(w, END)), len(state) - TAIL
    count = equal_steps(t1 - t0, o[STEP])
    x, t, margin, status = advance_radau(
        model_at(w), w, project, o[GGL] != 0.0, int(o[LEVEL]), t0, count, (t1 - t0) / count, state[:at], u_t0, u_H,
        coef, matrix_field(w, DRIVEN, 19), matrix_field(w, EXTRA, 12), matrix_field(w, A, field_size(w, C)),
        vector_field(w, C), state[at + 2],
    )  # fmt: skip
    for k in range(at):
        state[k] = x[k]
    state[at], state[at + 2] = t, margin
    return status


@entry
def outputs(w: int, u: int, y: int) -> int:
    """What the observed markers do in the state of the table for the inputs `u`; the multipliers stay in the table."""
    state, seen = vector_field(w, STATE), index_field(w, SEEN)
    slope_by(index_field(w, ENTRIES)[DERIVE], w, address_of(state), u, address_of(vector_field(w, RATES)))
    report(
        index_field(w, COUNTS), index_field(w, MARKER_BODY), state, matrix_field(w, DRIVEN, 19),
        matrix_field(w, BODIES, BODY_WIDTH), matrix_field(w, POINTS, POINT_WIDTH), matrix_field(w, ACCELERATIONS, 6),
        seen, vector_at(y, PORT * len(seen)),
    )  # fmt: skip
    return 0


@entry
def _advance(w: int, mode: int, t0: float, t1: float, H: float, n: int, coefficients: int, y: int) -> Any:
    """A subsystem step as compiled loops want it: integrate or repeat, then observe with the inputs at the end."""
    entries, end = index_field(w, ENTRIES), vector_field(w, END)
    status = _integrate(entries[mode], w, t0, t1, t0, H, n, coefficients)
    if status != 0:
        return status
    coef = matrix_at(coefficients, n, len(end))
    for k in range(len(end)):
        end[k] = coef[0, k]
        for j in range(1, n):
            end[k] += coef[j, k]
    return _observe(entries[OBSERVE], w, address_of(end), y)


@cache
def advance_address() -> int:
    """Where the subsystem step is."""
    return raising_address(_advance, ADVANCE_CALL)


@cache
def parts_of_step(integrator: str) -> tuple[int, int, int]:
    """The first three `ENTRIES`."""
    runs = {"dopri5": (adaptive, fixed), "rk4": (fixed, fixed), "radau": (radau, radau)}[integrator]
    first, second = (c_address(run, INTEGRATION) for run in runs)
    return first, second, c_address(outputs, OBSERVATION)
