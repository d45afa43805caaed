"""Stability before the run: the macro step as a linear map, its spectral radius, and the step where it passes 1.

The map acts on all subsystem states and the stored coupling variables. It is found by crossing *one* macro step with
the method's own code from unit states, so what is analysed is what will run; for linear systems it is exact up to
rounding (docs/theory.md, "Stability"). Nonlinear systems are differenced at a given state.
Systems with subsystems that hide their state are tried out instead (`black_box.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from cosolve.analysis.black_box import estimate_stability, estimated_limit, hides_state, trials_of
from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import is_number, positive
from cosolve.basics.wording import shortened
from cosolve.errors import CosolveError, SetupError, SimulationError
from cosolve.interface import Plan, System
from cosolve.interface.system import refuse_no_system
from cosolve.method import Method
from cosolve.method.named import MethodLike, as_method
from cosolve.run.ownership import trial_crew
from cosolve.run.step_map import NEUTRAL, MacroMap, StepFunction, linearise
from cosolve.stepsize import refuse_bad_step


def macro_map(
    system: System,
    method: MethodLike,
    step: float,
    *,
    state: Mapping[str, npt.ArrayLike] | None = None,
    t: float = 0.0,
) -> MacroMap:
    """The macro step of `method` of length `step` as a linear map, at `state` (subsystem name -> state vector).

    >>> import cosolve as cs
    >>> tank = lambda: cs.Linear([[-1]], [[1]], [[1]], x0=[1], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(), "two": tank()})
    >>> system.connect("one.h", "two.q")
    >>> system.connect("two.h", "one.q")
    >>> cs.macro_map(system, cs.Jacobi(degree=0), 0.1).matrix.shape
    (4, 4)
    """
    return _map(system, as_method(method), step, state, t)


def _map(
    system: System,
    method: Method,
    H: float,
    state: Mapping[str, npt.ArrayLike] | None,
    t: float = 0.0,
    sample: MacroMap | None = None,
) -> MacroMap:
    """`macro_map`; where a `sample` for another step is given, it says which entries may differ from zero."""
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
        return linearise(_step(plan, method, H, t, state), sample)
    except SimulationError as error:
        raise SetupError(f"the macro step cannot be linearised: {error}") from error


def growth_of_model(system: System, method: Method, H: float, here: MacroMap, parts: int = 100) -> float:
    """What the growing mode of `here` is multiplied by where `parts` short steps cross the same time.

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


def spectral_radius(
    system: System,
    method: MethodLike,
    step: float,
    *,
    state: Mapping[str, npt.ArrayLike] | None = None,
    t: float = 0.0,
) -> float:
    """Spectral radius of the macro step: below 1 the coupled run decays, above 1 it grows.

    Where a subsystem does not show its state (most co-simulation FMUs), it is estimated from the first macro steps
    after `t`, see `estimate_stability`.

    >>> import cosolve as cs
    >>> tank = lambda: cs.Linear([[-1]], [[0.5]], [[1]], x0=[1], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(), "two": tank()})
    >>> system.connect("one.h", "two.q")
    >>> system.connect("two.h", "one.q")
    >>> round(cs.spectral_radius(system, cs.Jacobi(degree=0), 0.1), 4)      # exact: exp(-0.05) = 0.9512
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
    return macro_map(system, method, step, state=state, t=t).radius


def critical_step(
    system: System,
    method: MethodLike,
    *,
    step_range: tuple[float, float] | None = None,
    state: Mapping[str, npt.ArrayLike] | None = None,
) -> float:
    """The smallest macro step at which the spectral radius passes 1; `inf` if none does, 0 if all do.

    Steps are scanned on a grid of 2 % spacing from far below the fastest to beyond the slowest time scale of the
    coupled system (or over `step_range`), and the first crossing is located to 1e-8. Instability windows narrower
    than the grid may be missed. Where a subsystem does not show its state, steps are tried out instead, a factor of 2
    apart, and the limit is located to 1 %; that takes some thousand macro steps.

    >>> import cosolve as cs
    >>> tank = lambda: cs.Linear([[-1]], [[-3]], [[1]], x0=[1], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(), "two": tank()})
    >>> system.connect("one.h", "two.q")
    >>> system.connect("two.h", "one.q")
    >>> cs.critical_step(system, cs.Jacobi(degree=0))                    # the coupled system itself is unstable
    0.0
    """
    method = as_method(method)
    if state is None and hides_state(system.plan()):
        return estimated_limit(trials_of(system, method), step_range)
    slow_and_fast = _time_scales(system, method, state, longest=np.inf if step_range is None else step_range[1])
    if slow_and_fast is None:  # nothing moves: an algebraic loop at most, whatever the step
        return 0.0 if macro_map(system, method, 1.0, state=state).unstable else np.inf
    slow, fast = slow_and_fast
    sample = macro_map(system, method, 0.1 / fast, state=state)

    def unstable(H: float) -> bool:
        return _map(system, method, H, state, sample=sample).grows(sample.neutral)

    if step_range is None:
        coarse = np.geomspace(1e-6 / fast, 1e-2 / fast, 40, endpoint=False)
        grid = np.concatenate([coarse, _two_percent(1e-2 / fast, 20.0 / slow)])
    else:
        low, high = step_range
        refuse_bad_step(low, "step_range")
        refuse_bad_step(high, "step_range")
        grid = _two_percent(low, high)
    if unstable(float(grid[0])):
        return 0.0
    for below, above in pairwise(grid):
        if unstable(float(above)):
            return _bisect(unstable, float(below), float(above))
    return np.inf


def stability_map(
    build: Callable[[float, float], System],
    first: Sequence[float] | Vector,
    second: Sequence[float] | Vector,
    method: MethodLike,
    step: float,
) -> Matrix:
    """Spectral radii over two parameters: entry `[i, j]` belongs to `build(first[i], second[j])`.

    >>> import cosolve as cs
    >>> def build(a, b):
    ...     tank = lambda k: cs.Linear([[-1]], [[k]], [[1]], x0=[1], inputs=["q"], outputs=["h"])
    ...     system = cs.System({"one": tank(a), "two": tank(b)})
    ...     system.connect("one.h", "two.q")
    ...     system.connect("two.h", "one.q")
    ...     return system
    >>> (cs.stability_map(build, [0.5, 5.0], [0.5, 5.0], cs.Jacobi(degree=0), 0.1) < 1).tolist()
    [[True, False], [False, False]]
    """
    method = as_method(method)
    return np.array([[spectral_radius(build(float(a), float(b)), method, step) for b in second] for a in first])


# -- inside ------------------------------------------------------------------------------------------------


def _step(plan: Plan, method: Method, H: float, t: float, state: Mapping[str, npt.ArrayLike] | None) -> StepFunction:
    """The macro step at the start of a run, or with these states of some subsystems."""
    crew = trial_crew(plan)
    y, z = crew.start(t)
    if state is not None:
        unknown = [name for name in state if name not in plan.names]
        if unknown:
            raise SetupError(f"state: there is no subsystem '{unknown[0]}'; there are {list(plan.names)}")
        for name, subsystem in zip(plan.names, plan.subsystems, strict=True):
            if name in state:
                subsystem.set_state(np.asarray(state[name], dtype=np.float64))
        z = crew.settle(t, y, z)[1]
    return StepFunction(crew, method, H, t, z)


def _time_scales(
    system: System, method: Method, state: Mapping[str, npt.ArrayLike] | None, longest: float
) -> tuple[float, float] | None:
    """Smallest and largest angular frequency or rate of the coupled system, from maps at tiny steps.

    For `H -> 0` the eigenvalues of motions go to 1, those of stored values and of dead-beat modes stay elsewhere. The
    step is raised until the first motion leaves the neighbourhood of 1, which shows the fastest rate, and on until
    none is left there, which shows the slowest. Beyond the `longest` step of interest only a rate that is still unknown
    is looked for: a step of a second costs a model with internal steps of a microsecond a million of them.
    """
    slow, fast, count = np.inf, 0.0, -1
    for H in 10.0 ** np.arange(-12.0, 7.0):
        if H > longest and fast:
            break
        try:
            distance = np.sort(np.abs(macro_map(system, method, float(H), state=state).eigenvalues - 1.0))
        except SetupError:
            continue
        near = distance[distance < 0.05]
        moving = near[near > NEUTRAL] / H
        if len(moving):
            slow = min(slow, float(moving[0]))
            fast = float(moving[-1]) if len(near) >= count else fast
        elif fast and not len(near):
            break
        count = max(count, len(near))
    return (max(slow, 1e-6 * fast), fast) if fast else None


def _two_percent(low: float, high: float) -> Vector:
    return np.geomspace(low, high, max(2, int(np.log(high / low) / np.log(1.02)) + 1))


def _bisect(unstable: Callable[[float], bool], below: float, above: float) -> float:
    while above - below > 1e-8 * above:
        middle = 0.5 * (below + above)
        if unstable(middle):
            above = middle
        else:
            below = middle
    return above
