"""System files whose subsystems lie on the ranks that `mpiexec` has started: by hand, or by what a crossing costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from cosolve.errors import SetupError
from cosolve.io.assembly import Builder
from cosolve.io.system_file import Description, load_system
from cosolve.process.ranks import Ranks, joined, leave_early, on_ranks
from cosolve.run.crossing_costs import crossing_costs
from cosolve.stepsize import Adaptive
from cosolve.subsystem import Subsystem

_PART = 1e-3  # of the run: the step of the measurement where the run's own is not known yet


def load_on_ranks(path: str | Path) -> tuple[Description, Ranks]:
    """Read a system file on all ranks; on rank 0 the run and who lies where, while the other ranks serve and leave.

    `[simulation] ranks = {fluid = 0, body = 1}` places by hand. Those that it does not name are placed by what a
    crossing costs them, measured in three explicit macro steps at the start. Without `mpiexec` there is one rank.

        described, ranks = cs.load_on_ranks("car.toml")         # mpiexec -n 4 python script.py
        print(ranks)
        result = described.run()
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
    step = described.step
    if isinstance(step, Adaptive):
        step = step.first_step
    if step is None:
        step = _PART * (described.t_end - described.t_start)
    return crossing_costs(described.system, step=step, t_start=described.t_start)
