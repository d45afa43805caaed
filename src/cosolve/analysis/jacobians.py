"""Are the derivatives right? Every Jacobian that a system provides against central differences over a macro step.

Checked are `jacobian` of subsystems (over the step, for the input shapes that a method of the given degree uses),
`output_jacobian` (at an instant), and the Jacobians given for laws and constraints. Each difference is taken with two
increments: what they disagree by is the uncertainty of the difference, not an error of the Jacobian.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import is_whole, positive
from cosolve.basics.differences import TWO_SIDED
from cosolve.basics.scale import sizes_at
from cosolve.basics.wording import failed_while
from cosolve.engine.python.subsystem_caller import SubsystemCaller
from cosolve.errors import CosolveError, SetupError, SimulationError
from cosolve.interface import Block, Plan, System
from cosolve.interface.constraint import LEVELS, Combination
from cosolve.method import Method, Window
from cosolve.method.named import MethodLike, as_method
from cosolve.signal import Polynomial, lagrange_weights
from cosolve.state.ownership import trial_caller
from cosolve.stepsize import refuse_bad_step
from cosolve.subsystem.base import has_capability
from cosolve.subsystem.port import Ports

#: The second increment is so many times larger.
_LARGER = 3.0
#: Entries named of one matrix; columns differenced of one matrix, evenly spread over a field.
_NAMED, _COLUMNS = 5, 64


@dataclass(frozen=True)
class JacobianFinding:
    """A derivative that is wrong, from `check_jacobians`.

    Parameters
    ----------
    where : str
        Which derivative.
    entry : tuple of (int, int) or None
        Its worst entry; None if there is no matrix.
    given : float
        Value that was provided.
    differenced : float
        Value from difference quotients.
    text : str
        A sentence.
    """

    where: str
    entry: tuple[int, int] | None
    given: float
    differenced: float
    text: str

    def __str__(self) -> str:
        return self.text


def check_jacobians(
    system: System, step: float, *, method: MethodLike | None = None, rtol: float = 1e-4, after: int = 0
) -> list[JacobianFinding]:
    """Compare the derivatives that subsystems and laws provide with difference quotients.

    Parameters
    ----------
    system : System
        The coupled system. Subsystems need rollback.
    step : float
        Macro step in seconds.
    method : Method, str, dict or None, default None
        Method whose degree gives the shapes of the inputs; needed with `after`. None takes held and rising inputs.
    rtol : float, default 1e-4
        Relative difference that is accepted.
    after : int, default 0
        Number of macro steps of `method` to take before the check. At the start some terms may still be zero.

    Returns
    -------
    list of JacobianFinding
        The wrong derivatives; empty if all agree. Subsystems that provide none are not looked at.

    Examples
    --------
    >>> import cosolve as cs
    >>> class Tank(cs.Linear):
    ...     def jacobian(self, t0, t1, u, weight):
    ...         return 2 * super().jacobian(t0, t1, u, weight)
    >>> tank = Tank([[0.0]], [[1.0]], [[1.0]], x0=[0.0], inputs=["inflow"], outputs=["level"])
    >>> system = cs.System({"tank": tank})
    >>> system.set("tank.inflow", 1.0)
    >>> for finding in cs.analysis.check_jacobians(system, step=0.1):
    ...     print(finding)
    'tank' says d level / d inflow = 0.2 but differences give 0.1 (jacobian, entry [0, 0], held input, H = 0.1); all of
    it is 2 times the right value
    """
    refuse_bad_step(step, "the macro step")
    method = None if method is None else as_method(method)
    positive("check_jacobians", "rtol", rtol)
    if not is_whole(after, 0):
        raise SetupError(f"check_jacobians: after must be a number of macro steps, 0 or more, not {after!r}")
    if after and method is None:
        raise SetupError("check_jacobians: after needs the method that makes these steps; give method=...")
    plan = system.plan()
    caller = trial_caller(plan)
    t, y, z = _arrive(system, caller, method, step, int(after))
    found: list[JacobianFinding] = []
    for i, subsystem in enumerate(plan.subsystems):
        if not plan.input_ports[i].length or not plan.output_ports[i].length:
            continue
        if has_capability(subsystem, "jacobian"):
            for shape in _shapes(method):
                wrong = _over_the_step(caller, i, Window(t, t + step, step), z, shape, rtol)
                found += wrong
                if wrong:  # one shape is enough to see it
                    break
        if has_capability(subsystem, "output jacobian") and has_capability(subsystem, "output"):
            found += _at_an_instant(plan, i, t, z, rtol)
    for block, level in _given_blocks(plan, y):
        found += _of_a_law(plan, block, level, y, z, rtol)
    return found


def _arrive(
    system: System, caller: SubsystemCaller, method: Method | None, H: float, after: int
) -> tuple[float, Vector, Vector]:
    """Time, outputs and coupling variables where the check is made; all subsystems stand there."""
    if not after or method is None:
        return 0.0, *caller.start(0.0)
    from cosolve.run.simulate import simulate

    plan = caller.plan
    result = simulate(system, t_end=after * H, method=method, step=H)
    y, z = np.empty(plan.n_y), np.empty(plan.n_z)
    for name, ports, part in zip(plan.names, plan.output_ports, plan.y_slices, strict=True):
        for port in ports:
            y[part][ports.slice(port.name)] = result[f"{name}.{port.name}"][-1]
    for name, (entries, _) in plan.z_ports.items():
        z[entries] = result[name][-1]
    return float(result.t[-1]), y, z


@dataclass(frozen=True)
class _Shape:
    """How an input perturbation looks over the step."""

    name: str
    weight: Vector


def _shapes(method: Method | None) -> list[_Shape]:
    held = _Shape("held input", np.ones(1))
    names = {1: "input that rises over the step"}
    degrees = range(1, method.degree + 1) if method is not None else range(1, 2)
    rising = [
        _Shape(
            names.get(d, f"input of degree {d}"), lagrange_weights((1.0, *(-float(k) for k in range(d))))[:, 0].copy()
        )
        for d in degrees
    ]
    if method is None:
        return [held, *rising]
    return rising or [held]


def _over_the_step(
    caller: SubsystemCaller, i: int, window: Window, z: Vector, shape: _Shape, rtol: float
) -> list[JacobianFinding]:
    plan, subsystem = caller.plan, caller.plan.subsystems[i]
    name = plan.names[i]
    if not has_capability(subsystem, "rollback"):
        return [_no_matrix(name, f"'{name}' gives a jacobian but no save and restore, so it cannot be checked")]
    u, state = plan.inputs(z, i), subsystem.save()
    weight = shape.weight
    held = np.zeros((len(weight), plan.n_z))
    held[0] = z

    def advance(inputs: Vector) -> Vector:
        subsystem.restore(state)
        coefficients = np.outer(weight, inputs - u)
        coefficients[0] += u
        signal = Polynomial(window.t0, window.H, coefficients)
        ask = partial(subsystem.advance, window.t0, window.t1, signal)
        return np.array(caller.guarded(i, window.t0, "advancing", ask))

    try:
        given = caller.jacobian(i, window, held, weight)
        compared = _compare(given, advance, u, _nominal(plan.input_ports[i]), subsystem.noise)
    except SimulationError as error:
        return [_no_matrix(name, str(error))]
    finally:
        subsystem.restore(state)
    rows, columns = plan.output_ports[i].labels(), plan.input_ports[i].labels()
    where = f"jacobian, {{entry}}, {shape.name}, H = {window.H:g}"
    return _findings(name, f"'{name}'", where, rows, columns, compared, rtol, window.H)


def _at_an_instant(plan: Plan, i: int, t: float, z: Vector, rtol: float) -> list[JacobianFinding]:
    subsystem, name, ports = plan.subsystems[i], plan.names[i], plan.output_ports[i]
    u = plan.inputs(z, i)
    try:
        given = subsystem.output_jacobian(t, u.copy())
        compared = _compare(
            given, lambda v: np.array(ports.pack(subsystem.output(t, v))), u, _nominal(plan.input_ports[i]), 0.0
        )
    except Exception as error:
        return [_no_matrix(name, failed_while(name, "giving its output_jacobian", t, error))]
    rows, columns = ports.labels(), plan.input_ports[i].labels()
    return _findings(name, f"'{name}'", f"output_jacobian, {{entry}}, t = {t:g}", rows, columns, compared, rtol)


def _given_blocks(plan: Plan, y: Vector) -> Iterator[tuple[Block, str]]:
    """Laws with a Jacobian; constraints with one, level by level."""
    for block in plan.blocks:
        if block.jacobian is not None and not block.implicit:
            yield block, ""
    for k, block in enumerate(plan.blocks):
        if block.levels is not None and block.levels.jacobian is not None:
            for level, alone in zip(LEVELS, np.eye(3)[: len(block.constraint_levels(y))], strict=False):
                position, velocity, acceleration = (float(weight) for weight in alone)
                combined = plan.combined(Combination(position, velocity, acceleration))
                yield combined.blocks[k], f"{level} level, "


def _of_a_law(plan: Plan, block: Block, level: str, y: Vector, z: Vector, rtol: float) -> list[JacobianFinding]:
    z_rows, y_read = z[block.rows], y[block.y_index]
    try:
        _, given = block.partials(z_rows, y_read)
        compared = _compare(given, lambda v: block.call(z_rows, v), y_read, sizes_at(y_read, block.y_size), 0.0)
    except CosolveError as error:
        return [_no_matrix(block.label, str(error))]
    rows = [plan.z_labels[m] for m in block.rows]
    columns = [plan.y_label(int(k)) for k in block.y_index]
    return _findings(block.label, block.label, f"its jacobian, {level}{{entry}}", rows, columns, compared, rtol)


# -- matrices ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Compared:
    """A given matrix and its differences in the columns `columns`; `unsure` is what the differences may be off by."""

    given: Matrix
    differenced: Matrix
    unsure: Matrix
    columns: list[int]


def _compare(given: Any, function: Callable[[Vector], Vector], x: Vector, nominal: Vector, noise: float) -> _Compared:
    columns = sorted({int(j) for j in np.linspace(0, len(x) - 1, min(len(x), _COLUMNS))})
    here = function(x)
    if hasattr(given, "tocsc"):
        matrix = given.tocsc()[:, columns].toarray()
    else:
        matrix = np.asarray(given, dtype=np.float64)
        if matrix.shape != (len(here), len(x)) or not np.isfinite(matrix).all():
            raise SimulationError(
                f"a derivative of shape {matrix.shape} was given; expected finite numbers of shape "
                f"({len(here)}, {len(x)})"
            )
        matrix = matrix[:, columns]
    relative = max(TWO_SIDED, noise ** (1 / 3))
    differenced, unsure = np.empty_like(matrix), np.empty_like(matrix)
    for k, j in enumerate(columns):
        d = relative * max(float(nominal[j]), abs(float(x[j])))
        before, behind = (_slope(function, x, here, j, shift) for shift in (-d, d))
        far = 0.5 * sum(_slope(function, x, here, j, shift) for shift in (-_LARGER * d, _LARGER * d))
        near = differenced[:, k] = 0.5 * (before + behind)
        rounding = 16.0 * np.finfo(np.float64).eps * np.abs(here) / d
        # at a kink any slope between the two sides is as good as any other
        unsure[:, k] = 2.0 * np.abs(near - far) + 0.6 * np.abs(behind - before) + rounding
    return _Compared(matrix, differenced, unsure, columns)


def _slope(function: Callable[[Vector], Vector], x: Vector, here: Vector, j: int, shift: float) -> Vector:
    """The one-sided difference by entry `j`."""
    moved = x.copy()
    moved[j] += shift
    slope: Vector = (function(moved) - here) / (moved[j] - x[j])
    return slope


def _findings(
    where: str,
    subject: str,
    place: str,
    rows: list[str],
    columns: list[str],
    found: _Compared,
    rtol: float,
    H: float | None = None,
) -> list[JacobianFinding]:
    """The entries that are off, worst first, with what they have in common."""
    J, D = found.given, found.differenced
    allowed = rtol * np.maximum(np.abs(J), np.abs(D)) + found.unsure
    off = np.abs(J - D) / np.where(allowed > 0.0, allowed, 1.0)
    wrong = [(int(r), int(k)) for r, k in np.argwhere(np.abs(J - D) > allowed)]
    wrong.sort(key=lambda at: (-off[at], at))
    common = _pattern(J, D, found, rtol, H)
    more = f" (and {len(wrong) - _NAMED} more entries)" if len(wrong) > _NAMED else ""
    texts = []
    for n, (r, k) in enumerate(wrong[:_NAMED]):
        column = found.columns[k]
        text = (
            f"{subject} says d {rows[r]} / d {columns[column]} = {J[r, k]:.6g} but differences give {D[r, k]:.6g} "
            f"({place.format(entry=f'entry [{r}, {column}]')}){common if n == 0 else ''}{more if n == 0 else ''}"
        )
        texts.append(JacobianFinding(where, (r, column), float(J[r, k]), float(D[r, k]), text))
    return texts


def _pattern(J: Matrix, D: Matrix, found: _Compared, rtol: float, H: float | None) -> str:
    """What a wrong matrix has to do with the right one."""

    def alike(M: Matrix, factor: float = 1.0) -> bool:
        allowed = rtol * np.abs(factor * D) + abs(factor) * found.unsure
        return bool((np.abs(M - factor * D) <= allowed).all())

    if J.shape[0] == J.shape[1] == len(found.columns) > 1 and alike(J.T):
        return "; the matrix is transposed: rows are outputs, columns are inputs"
    if not D.any() or not J.any():
        return ""
    factor = float(np.sum(J * D) / np.sum(D * D))
    if not alike(J, factor):
        return ""
    if H is not None and abs(factor * H - 1.0) <= 10 * rtol:
        return "; all of it lacks a factor H, the length of the step"
    if H is not None and abs(factor / H - 1.0) <= 10 * rtol:
        return "; all of it has a factor H, the length of the step, too many"
    if abs(factor + 1.0) <= 10 * rtol:
        return "; all of it has the wrong sign"
    return f"; all of it is {factor:.4g} times the right value"


def _nominal(ports: Ports) -> Vector:
    return np.array([port.nominal for port in ports for _ in range(port.length)])


def _no_matrix(where: str, text: str) -> JacobianFinding:
    return JacobianFinding(where, None, float("nan"), float("nan"), text)
