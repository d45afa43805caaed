"""A participant of several processes: ranked.py NAME RANK SIZE [FAILURE]; RANK "mpi" asks MPI. Writes NAME-RANK.npy.

Nine points on a line, of which each rank has some; the mesh of B lies apart, so that mappings have something to do. A
diffuses along its line, for which its ranks need each other's values: the readings of all, by MPI, or, where there is
none, only what a point itself reads.
"""

import os
import signal
import sys

import numpy as np


def main():
    import precice

    name, rank, size = sys.argv[1:4]
    failure = sys.argv[4] if len(sys.argv) > 4 else ""
    together = None
    if rank == "mpi":
        from mpi4py import MPI

        together = MPI.COMM_WORLD
        rank, size = together.Get_rank(), together.Get_size()
    rank, size = int(rank), int(size)
    mesh, reads, writes = ("MA", "X", "Y") if name == "A" else ("MB", "Y", "X")
    i = np.arange(9)
    x = i + (0.0 if name == "A" else 0.3)
    own = slice(9 * rank // size, 9 * (rank + 1) // size)
    p = precice.Participant(name, "config.xml", rank, size)
    ids = p.set_mesh_vertices(mesh, np.column_stack([x, 0 * x])[own])
    n = len(ids)

    def value(t, read):
        if together is not None:
            everything = np.concatenate(together.allgather(read))
            read = sum(0.2 * 0.5 ** abs(i[own] - k) * everything[k] for k in range(9))
        if name == "A":
            return -0.6 * read + (1 + 0.1 * i[own] + 0.5 * np.sin(3 * t))
        return 0.9 * read + 0.2 * (i[own] + 1) * np.cos(2 * t)

    if p.requires_initial_data():
        p.write_data(mesh, writes, ids, value(0.0, np.zeros(n)))
    p.initialize()
    t = saved = 0.0
    windows = 0
    while p.is_coupling_ongoing():
        if p.requires_writing_checkpoint():
            saved = t
        if windows == 1 and failure == "killed" and rank == size - 1:
            print("the mesh is tangled", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        if windows == 1 and failure == "leaves" and rank == 0:
            p.finalize()
            sys.exit(0)
        dt = p.get_max_time_step_size()
        t += dt
        v = value(t, p.read_data(mesh, reads, ids, dt))
        p.write_data(mesh, writes, ids, v)
        p.advance(dt)
        if p.requires_reading_checkpoint():
            t = saved
        windows += p.is_time_window_complete()
    np.save(f"{name}-{rank}.npy", v)
    p.finalize()


if __name__ == "__main__":  # the tests of docstrings import every file
    main()
