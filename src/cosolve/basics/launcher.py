"""What `mpiexec` tells the processes that it starts, in their environment; MPI itself is not needed for that."""

from __future__ import annotations

import os

#: What launchers tell a process about itself: how many there are, which one it is.
SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")
_RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK")


def is_launched() -> bool:
    """True in a process that `mpiexec` (or `srun` with PMI) has started; costs nothing elsewhere.

    >>> is_launched()
    False
    """
    return any(name in os.environ for name in (*SIZES, *_RANKS))


def told_rank() -> int:
    """Which rank this process is, as far as the launcher says so without MPI; 0 elsewhere.

    >>> told_rank()
    0
    """
    told = [os.environ[name] for name in _RANKS if name in os.environ]
    return next((int(text) for text in told if text.isdecimal()), 0)


def told_size() -> int:
    """How many processes the launcher says there are, 1 where it says nothing.

    >>> told_size()
    1
    """
    told = [os.environ[name] for name in SIZES if name in os.environ]
    return max((int(text) for text in told if text.isdecimal()), default=1)
