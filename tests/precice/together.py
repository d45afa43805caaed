"""Participants for tests: in threads over socket pairs, so that a coupling costs no process; and the linear pair."""

import socket
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from cosolve.participants.client import Connection
from cosolve.participants.hub import Hub
from cosolve.precice.config import Reader
from cosolve.precice.coupling import Coupling
from cosolve.precice.opt_in.precice import Participant

LIMIT = 60.0  # seconds a participant waits for the hub


def couple(
    config: str, solvers: dict[Any, Callable[[Any], Any]], record: bool = False, **options: Any
) -> tuple[dict[Any, Any], Coupling]:
    """Run every solver in a thread with its participant; what they return, and the coupling.

    The key of a solver is the name of its participant, or (name, rank, size) where that has several processes.
    """
    coupling = Coupling(Reader("config.xml", config.encode()).configuration, record=record, **options)
    hub = Hub(coupling)
    results: dict[Any, Any] = {}
    errors: list[BaseException] = []
    threads = []
    for key, solver in solvers.items():
        near, far = socket.socketpair()
        hub.take(near)

        def work(key: Any = key, solver: Any = solver, far: socket.socket = far) -> None:
            participant = None
            name, rank, size = (key, 0, 1) if isinstance(key, str) else key
            try:
                participant = Participant(name, "config.xml", rank, size, connection=Connection(far), limit=LIMIT)
                results[key] = solver(participant)
                participant.finalize()
            except BaseException as error:
                errors.append(error)
                if participant is not None:
                    participant._inner.abandon()
                else:
                    far.close()

        threads.append(threading.Thread(target=work, daemon=True))
        threads[-1].start()
    failure: BaseException | None = None
    try:
        hub.serve()
    except BaseException as error:
        failure = error
    for thread in threads:
        thread.join(LIMIT)
        assert not thread.is_alive()
    if errors and "hub was ended" not in str(errors[0]):
        first = errors[0]
        if failure is not None:
            first.add_note(f"the hub: {failure}")
            first.hub = failure  # type: ignore[attr-defined]
        raise first
    if failure is not None:
        raise failure
    return results, coupling


K = np.arange(4)
D = abs(K[:, None] - K)
A_Y = -0.6 / (1 + D)
B_X = 0.9 * 0.5**D
POINTS = np.column_stack([K, 0 * K]).astype(float)


def a_free(t: float) -> Any:
    return 1 + 0.1 * K + 0.5 * np.sin(3 * t)


def b_free(t: float) -> Any:
    return 0.2 * (K + 1) * np.cos(2 * t)


def linear(
    mesh: str, reads: str, writes: str, matrix: Any, free: Any, substeps: int = 1, clock: list[float] | None = None
) -> Callable[[Any], Any]:
    """One side of the linear pair of the specification, 8.1: it reads, multiplies, adds and writes.

    `clock` holds the time where it begins, and then where it has ended: all that it has to restore.
    """

    def solver(p: Any) -> Any:
        ids = p.set_mesh_vertices(mesh, POINTS)
        if p.requires_initial_data():
            p.write_data(mesh, writes, ids, free(0.0))
        p.initialize()
        t = saved = clock[0] if clock else 0.0
        value = np.zeros(4)
        while p.is_coupling_ongoing():
            if p.requires_writing_checkpoint():
                saved = t
            longest = p.get_max_time_step_size()
            for k in range(substeps):
                dt = longest / substeps if k < substeps - 1 else p.get_max_time_step_size()
                t_new = t + dt
                value = matrix @ p.read_data(mesh, reads, ids, dt) + free(t_new)
                p.write_data(mesh, writes, ids, value)
                p.advance(dt)
                t = t_new
            if p.requires_reading_checkpoint():
                t = saved
        if clock is not None:
            clock[:] = [t]
        return value

    return solver


def pair(
    substeps_a: int = 1, substeps_b: int = 1, clocks: tuple[Any, Any] = (None, None)
) -> dict[str, Callable[[Any], Any]]:
    return {
        "A": linear("MA", "X", "Y", A_Y, a_free, substeps_a, clocks[0]),
        "B": linear("MB", "Y", "X", B_X, b_free, substeps_b, clocks[1]),
    }


def config(
    scheme: str, body: str = "", *, init: bool = True, degree: int = 1, end: str = "", substeps: str = ""
) -> str:
    """The linear pair under a scheme; `body` holds measures and accelerations."""
    flag = "true" if init else "false"
    end = end or '<max-time-windows value="10" />'
    return f"""<precice-configuration>
  <data:scalar name="X" waveform-degree="{degree}" />
  <data:scalar name="Y" waveform-degree="{degree}" />
  <mesh name="MA" dimensions="2"><use-data name="X" /><use-data name="Y" /></mesh>
  <mesh name="MB" dimensions="2"><use-data name="X" /><use-data name="Y" /></mesh>
  <participant name="A">
    <provide-mesh name="MA" /><receive-mesh name="MB" from="B" />
    <write-data name="Y" mesh="MA" /><read-data name="X" mesh="MA" />
    <mapping:nearest-neighbor direction="read" from="MB" to="MA" constraint="consistent" />
  </participant>
  <participant name="B">
    <provide-mesh name="MB" /><receive-mesh name="MA" from="A" />
    <write-data name="X" mesh="MB" /><read-data name="Y" mesh="MB" />
    <mapping:nearest-neighbor direction="read" from="MA" to="MB" constraint="consistent" />
  </participant>
  <m2n:sockets acceptor="A" connector="B" />
  <coupling-scheme:{scheme}>
    <participants first="A" second="B" />
    {end}
    <time-window-size value="0.1" />
    <exchange data="Y" mesh="MA" from="A" to="B" initialize="{flag}" {substeps} />
    <exchange data="X" mesh="MB" from="B" to="A" initialize="{flag}" {substeps} />
    {body}
  </coupling-scheme:{scheme}>
</precice-configuration>"""


MEASURES = """<max-iterations value="100" />
    <relative-convergence-measure data="X" mesh="MB" limit="1e-8" />
    <relative-convergence-measure data="Y" mesh="MA" limit="1e-8" />"""


def constant(factor: float) -> str:
    return f'<acceleration:constant><relaxation value="{factor}" /></acceleration:constant>'


def iterations(coupling: Coupling, name: str) -> list[int]:
    """How many iterations each window of the implicit scheme of a participant took."""
    return coupling.members[name].recorder.counts
