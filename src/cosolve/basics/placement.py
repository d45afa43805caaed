"""Which rank gets which subsystem: those that cost most first, each to the rank that has least to do so far.

The largest load is at most a third above the best possible one (Graham's bound for this rule, where nothing is fixed).
Equal costs and loads are decided by the order of the names and ranks, so the same costs give the same placement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cosolve.basics.checks import is_positive, is_whole
from cosolve.basics.wording import counted, listed, suggest
from cosolve.errors import SetupError


def balanced(
    names: Iterable[str], costs: Mapping[str, float], size: int, fixed: Mapping[str, int] | None = None
) -> dict[str, int]:
    """A rank below `size` for every name; those of `fixed` have theirs, and what has no cost costs the mean.

    >>> balanced(["fluid", "body", "wheel", "road"], {"fluid": 5.0, "body": 3.0, "wheel": 2.0, "road": 1.0}, 2)
    {'fluid': 0, 'body': 1, 'wheel': 1, 'road': 0}
    >>> balanced(["fluid", "body"], {}, 2, fixed={"body": 0})
    {'fluid': 1, 'body': 0}
    """
    placement = dict(fixed or {})
    order = list(names)
    known = [costs[name] for name in order if name in costs]
    mean = sum(known) / len(known) if known else 1.0
    weight = {name: costs.get(name, mean) for name in order}
    loads = [0.0] * size
    for name, rank in placement.items():
        loads[rank] += weight[name]
    for name in sorted((name for name in order if name not in placement), key=lambda name: -weight[name]):
        placement[name] = min(range(size), key=loads.__getitem__)
        loads[placement[name]] += weight[name]
    return {name: placement[name] for name in order}


def refuse_bad_placement(names: Iterable[str], placement: Mapping[str, int], size: int | None = None) -> None:
    """Raise for a placement that names no subsystem, or no rank of `size` (where that is known).

    >>> refuse_bad_placement(["one", "two"], {"one": 0, "two": 2}, 2)
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: 'two' is placed on rank 2, but there are 2 ranks, 0 to 1; start more of them, ...
    """
    known = list(names)
    for name, rank in placement.items():
        if name not in known:
            raise SetupError(f"there is no subsystem '{name}' to place on a rank; {suggest(name, known)}")
        if not is_whole(rank, 0):
            raise SetupError(f"'{name}' is placed on {rank!r}; a rank is a whole number, 0 or more")
        if size is not None and rank >= size:
            raise SetupError(
                f"'{name}' is placed on rank {rank}, but there are {counted(size, 'rank')}, 0 to {size - 1}; start "
                "more of them, mpiexec -n, or place it elsewhere"
            )


def refuse_bad_costs(names: Iterable[str], costs: Mapping[str, float]) -> None:
    """Raise for costs that are not positive numbers, or of no known subsystem."""
    known = list(names)
    for name, cost in costs.items():
        if name not in known:
            raise SetupError(f"there is no subsystem '{name}' that could cost anything; {suggest(name, known)}")
        if not is_positive(cost):
            raise SetupError(f"the cost of '{name}' is {cost!r}; costs are positive numbers")


def told(placement: Mapping[str, int], size: int) -> str:
    """A placement in words.

    >>> told({"fluid": 0, "body": 1, "wheel": 1}, 4)
    "4 ranks: 'fluid' on rank 0, 'body', 'wheel' on rank 1; nothing to do for ranks 2, 3"
    """
    members: dict[int, list[str]] = {rank: [] for rank in range(size)}
    for name, rank in placement.items():
        members[rank].append(name)
    busy = ", ".join(f"{listed(some)} on rank {rank}" for rank, some in members.items() if some)
    idle = [rank for rank, some in members.items() if not some]
    if not idle:
        return f"{counted(size, 'rank')}: {busy}"
    several = "rank" if len(idle) == 1 else "ranks"
    return f"{counted(size, 'rank')}: {busy}; nothing to do for {several} {listed(idle, quote=False)}"
