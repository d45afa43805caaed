"""Stability before the run: the macro step as a linear map, its spectral radius, and the step where it passes 1.

The map acts on all subsystem states and the stored coupling variables. It is found by advancing over *one* macro step
with the method's own code from unit states, so what is analysed is what will run; for linear systems it is exact up to
rounding (docs/theory.md, "Stability"). Nonlinear systems are differenced at a given state.
Systems with subsystems that hide their state are tried out instead (`black_box.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from cosolve.accuracy.amplification import NEUTRAL, AmplificationMatrix, StepFunction, linearise
from cosolve.analysis.black_box import estimate_stability, estimated_limit, hides_state, trials_of
from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import is_number, positive
from cosolve.basics.wording import shortened
from cosolve.errors import CosolveError, SetupError, SimulationError
from cosolve.interface import Plan, System
from cosolve.interface.system import refuse_no_system
from cosolve.method import Method
from cosolve.method.named import MethodLike, as_method
from cosolve.state.ownership import trial_caller
from cosolve.stepsize import refuse_bad_step


def amplification_matrix(
    system: System,
    method: MethodLike,
    step: float,
    *,
    state: Mapping[str, npt.ArrayLike] | None = None,
    t: float = 0.0,
) -> AmplificationMatrix:
    """Linearise one macro step.

    Parameters
    ----------
    system : System
        The coupled system. Every subsystem needs `get_state` and `set_state`.
    method : Method, str or dict
        The coupling method.
    step : float
        Macro step in seconds.
    state : mapping of str to array_like or None, default None
        States of subsystems at which it is linearised. None: those at the start.
    t : float, default 0.0
        Time in seconds.

    Returns
    -------
    AmplificationMatrix
        The matrix of the linear map, its eigenvalues and spectral radius.

    Examples
    --------
    >>> import cosolve as cs
    >>> tank = lambda: cs.Linear([[-1]], [[1]], [[1]], x0=[1], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(), "two": tank()})
    >>> system.connect("one.h", "two.q")
    >>> system.connect("two.h", "one.q")
    >>> cs.analysis.amplification_matrix(system, cs.Jacobi(degree=0), 0.1).matrix.shape
    (4, 4)
    """
    return _map(system, as_method(method), step, state, t)


def _map(
    system: System,
    method: Method,
    H: float,
    state: Mapping[str, npt.ArrayLike] | None,
    t: float = 0.0,
    sample: AmplificationMatrix | None = None,
    affine: bool | None = None,
) -> AmplificationMatrix:
    """`amplification_matrix`; a `sample` for another step and `affine` say what is known of it (`linearise`)."""
    refuse_bad_step(H, "the macro step")
    plan = system.plan()
    method.refuse_unfit(plan)
    if method.chooses_step:
        raise SetupError(f"{method.name} has no fixed macro step to analyse; analyse GaussSeidel with its step instead")
    lacking = hides_state(plan)
    if lacking:
        raise SetupError(
            f"the map of a macro step needs the state of every subsystem, which '{lacking[0]}' does not give; "
            "estimate_stability, spectral_radius and critical_step do without"
        )
    try:
        return linearise(_step(plan, method, H, t, state), sample, affine)
    except SimulationError as error:
        raise SetupError(f"the macro step cannot be linearised: {error}") from error


def growth_of_model(system: System, method: Method, H: float, here: AmplificationMatrix, parts: int = 100) -> float:
    """What the growing mode of `here` is multiplied by where `parts` short steps advance over the same time.

    A map at a state that is no equilibrium describes a piece of a motion, and what grows on it may be the motion
    itself: then short steps show the same growth over the same time, whereas they tame what the coupling has made.
    """
    values, vectors = np.linalg.eig(here.matrix)
    others = np.argsort(np.abs(values - 1.0))[here.neutral :]
    mode = vectors[:, others[np.argmax(np.abs(values[others]))]]
    try:
        step = _step(system.plan(), method, H / parts, 0.0, None)
        n, n_z = step.n_states, step.plan.n_z
        plane = np.stack([mode.real, mode.imag], axis=1)[: n + n_z]
        scale = np.maximum(np.abs(step.point[: n + n_z]), 1.0)
        plane = plane / (np.abs(plane) / scale[:, np.newaxis]).max()
        push, moved = max(1e-5, step.noise**0.5), []
        for direction in plane.T:
            away = np.concatenate([direction[:n], np.tile(direction[n:], step.depth + 1)])
            away *= push
            ends = []
            for vector in (step.point + away, step.point - away):
                for k in range(parts):
                    step.t = k * H / parts
                    vector = step(vector)
                ends.append(vector[:n])
            moved.append((ends[0] - ends[1]) / (2.0 * push))
    except (CosolveError, ArithmeticError, ValueError):
        return 0.0
    within = np.linalg.lstsq(plane[:n], np.stack(moved, axis=1), rcond=None)[0]
    return float(np.abs(np.linalg.eigvals(within)).max())


def rates_in_short_steps(system: System, method: Method, H: float) -> tuple[float, list[float]]:
    """A step that resolves all motions of the coupled system; growth per second in it and in a shorter one, or 0.

    That of a model is the same in both; that of a coupling which subsystems answer at once is the same in every step.
    """
    scales = _time_scales(system, method, None, longest=H)
    short = H / 100 if scales is None else min(H / 100, 0.01 / scales[1])
    maps = [(amplification_matrix(system, method, step), step) for step in (short, short / 3.17)]
    return short, [float(np.log(found.radius)) / step if found.unstable else 0.0 for found, step in maps]


def spectral_radius(
    system: System,
    method: MethodLike,
    step: float,
    *,
    state: Mapping[str, npt.ArrayLike] | None = None,
    t: float = 0.0,
) -> float:
    """Compute the spectral radius of a macro step: below 1 disturbances decay, above 1 they grow.

    Parameters
    ----------
    system : System
        The coupled system.
    method : Method, str or dict
        The coupling method.
    step : float
        Macro step in seconds.
    state : mapping of str to array_like or None, default None
        States of subsystems at which the step is linearised. None: those at the start.
    t : float, default 0.0
        Time in seconds.

    Returns
    -------
    float
        The spectral radius. If a subsystem does not show its state, it is estimated, see `estimate_stability`.

    Examples
    --------
    >>> import cosolve as cs
    >>> tank = lambda: cs.Linear([[-1]], [[0.5]], [[1]], x0=[1], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(), "two": tank()})
    >>> system.connect("one.h", "two.q")
    >>> system.connect("two.h", "one.q")
    >>> round(cs.analysis.spectral_radius(system, cs.Jacobi(degree=0), 0.1), 4)      # exact: exp(-0.05) = 0.9512
    0.9524
    """
    method = as_method(method)
    refuse_no_system("spectral_radius", system)
    positive("spectral_radius", "step", step)
    if not is_number(t):
        raise SetupError(f"spectral_radius: t must be a finite number, not {shortened(t)}")
    if state is None and hides_state(system.plan()):
        found = estimate_stability(system, method, step, t=t)
        if not np.isfinite(found.radius):
            raise SetupError(f"the spectral radius cannot be estimated: {found.reason}")
        return found.radius
    return amplification_matrix(system, method, step, state=state, t=t).radius


def critical_step(
    system: System,
    method: MethodLike,
    *,
    step_range: tuple[float, float] | None = None,
    state: Mapping[str, npt.ArrayLike] | None = None,
) -> float:
    """Compute the smallest macro step at which the spectral radius exceeds 1.

    Parameters
    ----------
    system : System
        The coupled system.
    method : Method, str or dict
        The coupling method.
    step_range : tuple of (float, float) or None, default None
        Smallest and largest step in seconds to search. None: from far below the fastest to beyond the slowest time
        scale of the coupled system.
    state : mapping of str to array_like or None, default None
        States of subsystems at which the step is linearised. None: those at the start.

    Returns
    -------
    float
        The step in seconds; inf if no step is unstable, 0 if all are.

    Notes
    -----
    Neighbouring steps of the scan differ by 2 %, and by up to 10 % where that turns the fastest motion by no more than
    0.02 radians. Narrower unstable ranges may be missed. The limit is located to 1e-8.
    If a subsystem does not show its state, steps a factor of 2 apart are tried instead and the limit is located to 1 %,
    which takes some thousand macro steps.

    Examples
    --------
    >>> import cosolve as cs
    >>> tank = lambda: cs.Linear([[-1]], [[-3]], [[1]], x0=[1], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(), "two": tank()})
    >>> system.connect("one.h", "two.q")
    >>> system.connect("two.h", "one.q")
    >>> cs.analysis.critical_step(system, cs.Jacobi(degree=0))  # the coupled system itself is unstable
    0.0
    """
    method = as_method(method)
    if state is None and hides_state(system.plan()):
        return estimated_limit(trials_of(system, method), step_range)
    if step_range is not None:
        for end in step_range:
            refuse_bad_step(end, "step_range")
    scales = _time_scales(system, method, state, longest=np.inf if step_range is None else step_range[1])
    if scales is None:  # nothing moves: an algebraic loop at most, whatever the step
        return 0.0 if amplification_matrix(system, method, 1.0, state=state).unstable else np.inf
    slow, fast, sample = scales
    sample = _map(system, method, 0.1 / fast, state, sample=sample)

    def excess(H: float) -> float:
        return _map(system, method, H, state, sample=sample, affine=sample.linear).excess(sample.neutral)

    if step_range is None:
        grid = np.concatenate([np.geomspace(1e-6 / fast, 1e-2 / fast, 12)[:-1], _steps(1e-2 / fast, 20.0 / slow, fast)])
    else:
        grid = _steps(*step_range, fast)
    if excess(float(grid[0])) > 0.0:
        return 0.0
    for below, above in pairwise(grid):
        if excess(float(above)) > 0.0:
            return _located(excess, float(below), float(above))
    return np.inf


def stability_map(
    build: Callable[[float, float], System],
    first: Sequence[float] | Vector,
    second: Sequence[float] | Vector,
    method: MethodLike,
    step: float,
) -> Matrix:
    """Compute spectral radii over two parameters.

    Parameters
    ----------
    build : callable
        `build(a, b)` returns the system.
    first : sequence of float
        Values of the first parameter.
    second : sequence of float
        Values of the second parameter.
    method : Method, str or dict
        The coupling method.
    step : float
        Macro step in seconds.

    Returns
    -------
    ndarray
        Entry `[i, j]` belongs to `build(first[i], second[j])`.

    Examples
    --------
    >>> import cosolve as cs
    >>> def build(a, b):
    ...     tank = lambda k: cs.Linear([[-1]], [[k]], [[1]], x0=[1], inputs=["q"], outputs=["h"])
    ...     system = cs.System({"one": tank(a), "two": tank(b)})
    ...     system.connect("one.h", "two.q")
    ...     system.connect("two.h", "one.q")
    ...     return system
    >>> (cs.analysis.stability_map(build, [0.5, 5.0], [0.5, 5.0], cs.Jacobi(degree=0), 0.1) < 1).tolist()
    [[True, False], [False, False]]
    """
    method = as_method(method)
    return np.array([[spectral_radius(build(float(a), float(b)), method, step) for b in second] for a in first])


# -- inside ------------------------------------------------------------------------------------------------


def _step(plan: Plan, method: Method, H: float, t: float, state: Mapping[str, npt.ArrayLike] | None) -> StepFunction:
    """The macro step at the start of a run, or with these states of some subsystems."""
    caller = trial_caller(plan)
    y, z = caller.start(t)
    if state is not None:
        unknown = [name for name in state if name not in plan.names]
        if unknown:
            raise SetupError(f"state: there is no subsystem '{unknown[0]}'; there are {list(plan.names)}")
        for name, subsystem in zip(plan.names, plan.subsystems, strict=True):
            if name in state:
                subsystem.set_state(np.asarray(state[name], dtype=np.float64))
        z = caller.settle(t, y, z)[1]
    return StepFunction(caller, method, H, t, z)


def _time_scales(
    system: System, method: Method, state: Mapping[str, npt.ArrayLike] | None, longest: float
) -> tuple[float, float, AmplificationMatrix] | None:
    """Smallest and largest angular frequency or rate of the coupled system, from maps at tiny steps; the last map.

    For `H -> 0` the eigenvalues of motions go to 1, those of stored values and of dead-beat modes stay elsewhere. The
    step is raised until the first motion leaves the neighbourhood of 1, which shows the fastest rate, and on until
    none is left there, which shows the slowest. Beyond the `longest` step of interest only a rate that is still unknown
    is looked for: a step of a second costs a model with internal steps of a microsecond a million of them.
    """
    slow, fast, count, found = np.inf, 0.0, -1, None
    for H in 10.0 ** np.arange(-12.0, 7.0):
        if H > longest and fast:
            break
        try:
            found = _map(system, method, float(H), state, sample=found)
        except SetupError:
            continue
        distance = np.sort(np.abs(found.eigenvalues - 1.0))
        near = distance[distance < 0.05]
        moving = near[near > NEUTRAL] / H
        if len(moving):
            slow = min(slow, float(moving[0]))
            fast = float(moving[-1]) if len(near) >= count else fast
        elif fast and not len(near):
            break
        count = max(count, len(near))
    return (max(slow, 1e-6 * fast), fast, found) if fast and found is not None else None


def _steps(low: float, high: float, fast: float) -> Vector:
    """Macro steps to look at: 2 % apart, more where the fastest motion turns by less than 0.02 radians in between."""
    steps = [low]
    while steps[-1] < high:
        steps.append(steps[-1] * (1.0 + float(np.clip(0.02 / (steps[-1] * fast), 0.02, 0.1))))
    return np.array([*steps[:-1], high])


def _located(excess: Callable[[float], float], below: float, above: float) -> float:
    """Where the excess passes zero between these steps, on its upper side."""
    accuracy = 1e-8 * above
    found = float(brentq(excess, below, above, xtol=0.25 * accuracy))
    return found if excess(found) > 0.0 else min(above, found + accuracy)
