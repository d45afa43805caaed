"""The operations of which the macro steps of the methods consist.

A method states its macro step once, as a short function of these operations:

    def jacobi(m, o):                            # m: the executor of the step, o: the method
        sweep(m, extrapolated(m, o.degree))
        return coupling_from_outputs(m)

An engine implements the operations. The Python engine (`engine/python/executor.py`) and the blocks of variants
(`engine/blocks/program.py`) are objects with one method per operation, which the functions below call; the compiled
engine (`engine/native/operations.py`) compiles the same step function with machine code in place of these functions.
Vectors and signals are therefore whatever an engine makes of them (arrays, addresses, symbols): a step function passes
them from operation to operation and reads none of them. From `o` it reads numbers only. It may call other step
functions, loop over `serial_order(m)`, and repeat with `while` as long as an operation returns True.

When a step function begins, all subsystems are at the start of the step; when it returns, they must be at the end. It
returns the coupling variables there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

Executor: TypeAlias = Any
#: The coupling variables, or one number for each of them.
Values: TypeAlias = Any
#: The coupling variables as polynomials over the step.
Signal: TypeAlias = Any

# -- signals ---------------------------------------------------------------------------------------------------------


def extrapolated(m: Executor, degree: int) -> Signal:
    """The polynomials of this degree through the past macro points (of a lower one where these are too few)."""
    return m.extrapolated(degree)


def predicted(m: Executor, degree: int) -> Values:
    """Where those polynomials end."""
    return m.predicted(degree)


def ending_in(m: Executor, z: Values) -> Signal:
    """The polynomials of the method's degree through the past macro points that end in `z`."""
    return m.ending_in(z)


# -- advancing -----------------------------------------------------------------------------------------------


def sweep(m: Executor, signal: Signal) -> None:
    """All subsystems advance over the step with these inputs, independently of each other."""
    m.sweep(signal)


def rollback(m: Executor) -> None:
    """All subsystems back to the start of the step, where they have left it."""
    m.rollback()


def serial_order(m: Executor) -> Iterable[int]:
    """The places in the order of a serial sweep."""
    return m.serial_order()  # type: ignore[no-any-return]


def editable_signal(m: Executor, signal: Signal) -> Signal:
    """The same signal, such that single variables in it can get another end."""
    return m.editable_signal(signal)


def advance(m: Executor, place: int, signal: Signal) -> None:
    """The subsystem at this place of the order advances over the step."""
    m.advance(place, signal)


def set_known_ends(m: Executor, place: int, signal: Signal) -> None:
    """Variables that the outputs of this place make known end in their values from here on."""
    m.set_known_ends(place, signal)


def end_values(m: Executor, z: Values) -> Values:
    """Where the signals of a serial sweep that began with `z` ended: what was known before it was read is known."""
    return m.end_values(z)


def leader_step(m: Executor, degree: int) -> None:
    """The first subsystem of the order takes a step of its own length, which is the macro step for all."""
    m.leader_step(degree)


# -- coupling variables and their equations --------------------------------------------------------------------------


def coupling_from_outputs(m: Executor) -> Values:
    """The coupling variables that the outputs ask for; unknowns of equations keep their values."""
    return m.coupling_from_outputs()


def reevaluated(m: Executor, z: Values) -> Values:
    """Outputs evaluated once more with the exchanged values `z`, and the coupling variables they ask for then."""
    return m.reevaluated(z)


def residual(m: Executor, z: Values) -> Values:
    """What the interface equations leave over when the last subsystem step ended in `z`."""
    return m.residual(z)


def newton_step(m: Executor, r: Values) -> Values:
    """`dz` with `G dz = r`, where `G` is the interface Jacobian at the last subsystem step."""
    return m.newton_step(r)


def minus(m: Executor, a: Values, b: Values) -> Values:
    """`a - b`."""
    return m.minus(a, b)


# -- iterations ------------------------------------------------------------------------------------------------------


def another_problem(m: Executor) -> bool:
    """True once; with weighted multipliers once per level of the constraints, which are then solved one by one."""
    return m.another_problem()  # type: ignore[no-any-return]


def converged(m: Executor, z: Values, r: Values, tol: float, max_iterations: int, accept_unconverged: bool) -> bool:
    """True when the residual meets the tolerance. An iteration that will not get there ends the run in words."""
    return m.converged(z, r, tol, max_iterations, accept_unconverged)  # type: ignore[no-any-return]


def corrected(m: Executor, z: Values, r: Values) -> Values:
    """Better values by the corrector of the method."""
    return m.corrected(z, r)


def already_evaluated(m: Executor, z: Values) -> bool:
    """True when the last subsystem step ended in exactly these values (a line search may have been there)."""
    return m.already_evaluated(z)  # type: ignore[no-any-return]


def residual_too_large(m: Executor, z: Values, r: Values) -> bool:
    """True when the residual `r` is more than the correction to `z` should have left, so that another one is due."""
    return m.residual_too_large(z, r)  # type: ignore[no-any-return]


def corrected_again(m: Executor, z: Values, r: Values) -> Values:
    """Better values after a correction that has left too much."""
    return m.corrected_again(z, r)


def accept(m: Executor, z: Values) -> None:
    """`z` is the method's answer to the problem at hand."""
    m.accept(z)


def accepted(m: Executor) -> Values:
    """The accepted values; their mean where several problems were solved, relaxed where the constraints want it."""
    return m.accepted()


# -- counters --------------------------------------------------------------------------------------------------------


def record_scales(m: Executor, z: Values) -> None:
    """Take note of the largest magnitudes so far: increments and tolerances are relative to them."""
    m.record_scales(z)


def record_residual(m: Executor, r: Values) -> None:
    """Take note of what is left over in this step."""
    m.record_residual(r)
