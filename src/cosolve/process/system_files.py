"""System files whose subsystems lie on the ranks of `mpiexec`: placed by hand, or by measured cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from cosolve.errors import SetupError
from cosolve.io.assembly import Builder
from cosolve.io.system_file import Description, load_system
from cosolve.process.ranks import Ranks, joined, leave_early, on_ranks
from cosolve.process.subsystem_costs import subsystem_costs
from cosolve.stepsize import Adaptive
from cosolve.subsystem import Subsystem

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
