"""The verbs in which the macro steps of the methods are written.

A method states its macro step once, as a short text in these verbs:

    def jacobi(m, o):                            # m: the machine that crosses the step, o: the method with its options
        sweep(m, extrapolated(m, o.degree))
        return asked(m)

An engine is what gives the verbs a meaning. The readable engine (`engine/readable/machine.py`) and the blocks of
variants (`engine/blocks/program.py`) are objects with one method per verb, which the functions below call; the native
engine (`engine/native/verbs.py`) compiles the same text with machine code in place of these functions. So vectors and
signals are whatever an engine makes of them (arrays, addresses, notes): a text hands them from verb to verb and looks
at none. From `o` it reads numbers only. It may call other texts, loop over `places(m)`, and `while` a verb says so.

At the beginning of a text all subsystems stand at the start of the step, at its end they have to stand at the end. It
returns the coupling variables there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

Machine: TypeAlias = Any
#: The coupling variables, or one number for each of them.
Values: TypeAlias = Any
#: The coupling variables as polynomials over the step.
Signal: TypeAlias = Any

# -- signals ---------------------------------------------------------------------------------------------------------


def extrapolated(m: Machine, degree: int) -> Signal:
    """The polynomials of this degree through the past macro points (of a lower one where these are too few)."""
    return m.extrapolated(degree)


def predicted(m: Machine, degree: int) -> Values:
    """Where those polynomials end."""
    return m.predicted(degree)


def ending_in(m: Machine, z: Values) -> Signal:
    """The polynomials of the method's degree through the past macro points that end in `z`."""
    return m.ending_in(z)


# -- crossing the step -----------------------------------------------------------------------------------------------


def sweep(m: Machine, signal: Signal) -> None:
    """All subsystems cross the step with these inputs, independently of each other."""
    m.sweep(signal)


def rewind(m: Machine) -> None:
    """All subsystems back to the start of the step, where they have left it."""
    m.rewind()


def places(m: Machine) -> Iterable[int]:
    """The places in the order of a serial sweep."""
    return m.places()  # type: ignore[no-any-return]


def open_signal(m: Machine, signal: Signal) -> Signal:
    """The same signal, such that single variables in it can get another end."""
    return m.open_signal(signal)


def cross(m: Machine, place: int, signal: Signal) -> None:
    """The subsystem at this place of the order crosses the step."""
    m.cross(place, signal)


def end_known(m: Machine, place: int, signal: Signal) -> None:
    """Variables that the outputs of this place make known end in their values from here on."""
    m.end_known(place, signal)


def used(m: Machine, z: Values) -> Values:
    """Where the signals of a serial sweep that began with `z` ended: what was known before it was read is known."""
    return m.used(z)


def lead(m: Machine, degree: int) -> None:
    """The first subsystem of the order takes a step of its own length, which is the macro step for all."""
    m.lead(degree)


# -- coupling variables and their equations --------------------------------------------------------------------------


def asked(m: Machine) -> Values:
    """The coupling variables that the outputs ask for; unknowns of equations keep their values."""
    return m.asked()


def settled(m: Machine, z: Values) -> Values:
    """Outputs evaluated once more with the exchanged values `z`, and the coupling variables they ask for then."""
    return m.settled(z)


def residual(m: Machine, z: Values) -> Values:
    """What the interface equations leave over when the last crossing ended in `z`."""
    return m.residual(z)


def solved(m: Machine, r: Values) -> Values:
    """`dz` with `G dz = r`, where `G` is the interface Jacobian at the last crossing."""
    return m.solved(r)


def minus(m: Machine, a: Values, b: Values) -> Values:
    """`a - b`."""
    return m.minus(a, b)


# -- iterations ------------------------------------------------------------------------------------------------------


def another_problem(m: Machine) -> bool:
    """True once; with weighted multipliers once per level of the constraints, which are then solved one by one."""
    return m.another_problem()  # type: ignore[no-any-return]


def met(m: Machine, z: Values, r: Values, tol: float, max_iterations: int, accept_unconverged: bool) -> bool:
    """True when the residual meets the tolerance. An iteration that will not get there ends the run in words."""
    return m.met(z, r, tol, max_iterations, accept_unconverged)  # type: ignore[no-any-return]


def corrected(m: Machine, z: Values, r: Values) -> Values:
    """Better values by the corrector of the method."""
    return m.corrected(z, r)


def tried(m: Machine, z: Values) -> bool:
    """True when the last crossing ended in exactly these values (a line search may have been there)."""
    return m.tried(z)  # type: ignore[no-any-return]


def left_too_much(m: Machine, z: Values, r: Values) -> bool:
    """True when the residual `r` is more than the correction to `z` should have left, so that another one is due."""
    return m.left_too_much(z, r)  # type: ignore[no-any-return]


def repeated(m: Machine, z: Values, r: Values) -> Values:
    """Better values after a correction that has left too much."""
    return m.repeated(z, r)


def accept(m: Machine, z: Values) -> None:
    """`z` is the method's answer to the problem at hand."""
    m.accept(z)


def agreed(m: Machine) -> Values:
    """The accepted values; their mean where several problems were solved, relaxed where the constraints want it."""
    return m.agreed()


# -- books -----------------------------------------------------------------------------------------------------------


def remember(m: Machine, z: Values) -> None:
    """Take note of the largest magnitudes so far: increments and tolerances are relative to them."""
    m.remember(z)


def note_residual(m: Machine, r: Values) -> None:
    """Take note of what is left over in this step."""
    m.note_residual(r)
