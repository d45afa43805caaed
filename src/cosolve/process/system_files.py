"""System files whose subsystems lie on the ranks of `mpiexec`: placed by hand, or by measured cost.

What a subsystem step costs each subsystem is measured in a few explicit macro steps, wherever the subsystem runs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import inf
from pathlib import Path

from cosolve.basics.checks import whole
from cosolve.errors import EndOfSimulation, SetupError, SimulationError
from cosolve.interface import System
from cosolve.io.assembly import Builder
from cosolve.io.system_file import Description, load_system
from cosolve.method import Jacobi
from cosolve.process.ranks import OnRank, Ranks, joined, leave_early, on_ranks
from cosolve.run.stepper import Stepper
from cosolve.stepsize import Adaptive
from cosolve.subsystem import Subsystem


def subsystem_costs(system: System, *, step: float, t_start: float = 0.0, steps: int = 3) -> dict[str, float]:
    """Measure how long a macro step takes each subsystem.

    Parameters
    ----------
    system : System
        The coupled system. Every later run starts anew.
    step : float
        Macro step in seconds.
    t_start : float, default 0.0
        Start of the steps in seconds.
    steps : int, default 3
        Number of Jacobi steps. The shortest counts, so that compiling does not.

    Returns
    -------
    dict of str to float
        Seconds of the wall clock per step. Subsystems that did not finish a step are missing. For one on another rank
        only the time in which it works counts.

    Examples
    --------
    >>> import cosolve as cs
    >>> tank = lambda: cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["x"])
    >>> system = cs.System({"one": tank(), "two": tank()})
    >>> system.connect("one.x", "two.u")
    >>> system.connect("two.x", "one.u")
    >>> costs = cs.remote.subsystem_costs(system, step=0.1)
    >>> sorted(costs), min(costs.values()) > 0.0
    (['one', 'two'], True)
    """
    whole("subsystem_costs", "steps", steps)
    found: dict[str, float] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the accuracy of a run whose result is not used
        with Stepper(system, method=Jacobi(degree=0), step=step, t_start=t_start) as stepper:
            caller = stepper._core.caller
            names = caller.plan.names
            with suppress(SimulationError, EndOfSimulation):
                for _ in range(steps):
                    if stepper.done:
                        break
                    before = caller.seconds.copy()
                    stepper.step()
                    for name, seconds in zip(names, caller.seconds - before, strict=True):
                        found[name] = min(found.get(name, inf), float(seconds))
            for name, subsystem in zip(names, caller.plan.subsystems, strict=True):
                if isinstance(subsystem, OnRank):
                    found[name] = subsystem.fastest_step()
    return {name: found[name] for name in names if 0.0 < found.get(name, 0.0) < inf}


_PART = 1e-3  # of the run: the step of the measurement where the run's own is not known yet


def load_on_ranks(path: str | Path) -> tuple[Description, Ranks]:
    """Read a system file on all ranks of an MPI job.

    On rank 0 it returns; the other ranks serve their subsystems and exit when rank 0 ends.

    Parameters
    ----------
    path : str or Path
        System file. `[simulation] ranks = {fluid = 0, body = 1}` places subsystems by hand.

    Returns
    -------
    tuple of (Description, Ranks)
        The run, and which subsystem is on which rank. Subsystems that the file does not place are distributed by the
        time that three explicit macro steps take them.

    Notes
    -----
    Without `mpiexec` there is one rank.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import cosolve as cs
    >>> text = '''
    ... [subsystems.tank]
    ... kind = "linear"
    ... A = [[-1.0]]
    ... B = []
    ... C = [[1.0]]
    ... x0 = [1.0]
    ... inputs = []
    ... outputs = ["level"]
    ... [simulation]
    ... t_end = 1
    ... method = "jacobi"
    ... step = 0.1
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "tank.toml")
    ...     _ = file.write_text(text)
    ...     described, ranks = cs.remote.load_on_ranks(file)                      # mpiexec -n 4 python script.py
    >>> print(ranks)
    1 rank: 'tank' on rank 0
    """
    described, ranks = read_on_ranks(lambda build: load_system(path, build))
    assert ranks is not None
    return described, ranks


def read_on_ranks(read: Callable[[Builder], Description]) -> tuple[Description, Ranks | None]:
    """The same for whatever `read` makes of a file; no ranks for one whose subsystems `build` does not make."""
    held: list[tuple[Ranks, Mapping[str, int]]] = []

    def build(sources: Mapping[str, Callable[[], Subsystem]], placement: Mapping[str, int]) -> dict[str, Subsystem]:
        if not held:
            held.append((on_ranks(sources, placement=placement), placement))
        return held[0][0].subsystems

    job = joined()
    try:
        described = read(build)
        if not held and job is None:
            return described, None
        if not held:
            raise SetupError(f"'{described.path}' runs in one process, without mpiexec; system files can have ranks")
        ranks, fixed = held[0]
        if ranks.size > 1 and len(fixed) < len(ranks.placement):
            ranks.balance(_measured(described), fixed)
            described = read(build)
    except Exception as error:
        if job is not None and job.rank > 0:
            leave_early(job, error)
        raise
    return described, ranks


def _measured(described: Description) -> dict[str, float]:
    run = described.options
    step = run.step
    if isinstance(step, Adaptive):
        step = step.first_step
    if step is None:
        step = _PART * (run.t_end - run.t_start)
    return subsystem_costs(described.system, step=step, t_start=run.t_start)
