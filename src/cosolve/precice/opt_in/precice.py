"""The interface of solvers adapted to preCICE 3, as a skin of cosolve's participant client.

Written from public documentation. As a module of its own (`import precice` with this folder on the path) it imports
nothing of cosolve: it loads the one file of the client that lies beside it, and says so once.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

_COMMAND = "cosolve precice run"

if __name__ == "precice" and not TYPE_CHECKING:
    import importlib.util

    def _load() -> Any:
        here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        file = os.path.join(here, "participants", "client.py")
        spec = importlib.util.spec_from_file_location("_cosolve_client", file)
        module = importlib.util.module_from_spec(spec)
        sys.modules["_cosolve_client"] = module
        spec.loader.exec_module(module)
        return module

    client = _load()
    sys.stderr.write(f"cosolve: this solver is coupled by cosolve (module precice from {os.path.dirname(__file__)})\n")
else:
    from cosolve.participants import client

__version__ = "3.4.1"
Error = client.ParticipantError


def get_version_information() -> bytes:
    """Begins with the version of the interface, which callers test."""
    return b"3.4.1;cosolve participant client"


class Participant:
    """A participant, as solvers adapted to preCICE 3 know it.

    The hub is found by the variable COSOLVE_HUB, which `cosolve precice run` sets for what it starts, or by the note
    that it leaves beside the configuration file.
    """

    def __init__(
        self,
        participant_name: str,
        configuration_file_name: str,
        solver_process_index: int,
        solver_process_size: int,
        communicator: Any = None,
        *,
        connection: Any = None,
        limit: float | None = None,
    ) -> None:
        address = "" if connection is not None else _hub_of(str(configuration_file_name))
        self._inner = client.Participant(
            participant_name,
            address,
            rank=int(solver_process_index),
            size=int(solver_process_size),
            connection=connection,
            limit=limit,
        )
        self._initial_asked = False
        self._sections: list = []  # type: ignore[type-arg]

    # -- steering

    def initialize(self) -> None:
        """Connect and exchange meshes and initial data."""
        if self._inner.needs_initial_data and not self._initial_asked:
            raise Error(f"{self._inner.name}: initial data are due; ask requires_initial_data before initialize")
        self._inner.start()

    def advance(self, computed_timestep_length: float) -> None:
        """The solver has computed a step."""
        self._inner.advance(float(computed_timestep_length))

    def finalize(self) -> None:
        """Say goodbye."""
        self._inner.finish()

    # -- status

    def get_mesh_dimensions(self, mesh_name: str) -> int:
        """2 or 3."""
        return int(self._inner.mesh(mesh_name).dimensions)

    def get_data_dimensions(self, mesh_name: str, data_name: str) -> int:
        """1 for scalars, the dimension of the mesh for vectors."""
        return int(self._inner.data(mesh_name, data_name).components)

    def is_coupling_ongoing(self) -> bool:
        """False at the end."""
        return bool(self._inner.ongoing)

    def is_time_window_complete(self) -> bool:
        """True when the last step has ended a window."""
        return bool(self._inner.window_complete)

    def get_max_time_step_size(self) -> float:
        """What is left of the window."""
        return float(self._inner.step_limit)

    def requires_initial_data(self) -> bool:
        """True when data are to be written before `initialize`."""
        self._initial_asked = True
        return bool(self._inner.needs_initial_data)

    def requires_writing_checkpoint(self) -> bool:
        """True when the state is to be saved."""
        return bool(self._inner.must_save)

    def requires_reading_checkpoint(self) -> bool:
        """True when the saved state is to be restored."""
        return bool(self._inner.must_restore)

    def requires_mesh_connectivity_for(self, mesh_name: str) -> bool:
        """True when cells of the mesh are of use."""
        return bool(self._inner.needs_cells(mesh_name))

    def requires_gradient_data_for(self, mesh_name: str, data_name: str) -> bool:
        """True when gradients of the data are of use."""
        return bool(self._inner.needs_gradient(mesh_name, data_name))

    # -- meshes

    def reset_mesh(self, mesh_name: str) -> None:
        """Refused."""
        raise Error(f"{self._inner.name}: mesh {mesh_name!r} cannot be set anew in a run; that is not offered yet")

    def set_mesh_vertex(self, mesh_name: str, position: Any) -> int:
        """Add one point; its number."""
        return int(self._inner.set_points(mesh_name, np.asarray(position, dtype=float).reshape(1, -1))[0])

    def set_mesh_vertices(self, mesh_name: str, positions: Any) -> Any:
        """Add points; their numbers."""
        return self._inner.set_points(mesh_name, positions)

    def get_mesh_vertex_size(self, mesh_name: str) -> int:
        """How many points the mesh has."""
        return len(self._inner.mesh(mesh_name).points)

    def set_mesh_edge(self, mesh_name: str, first_vertex_id: int, second_vertex_id: int) -> None:
        """Join two points."""
        self._inner.set_cells(mesh_name, "line", [first_vertex_id, second_vertex_id])

    def set_mesh_edges(self, mesh_name: str, vertices: Any) -> None:
        """Join pairs of points."""
        self._inner.set_cells(mesh_name, "line", vertices)

    def set_mesh_triangle(
        self, mesh_name: str, first_vertex_id: int, second_vertex_id: int, third_vertex_id: int
    ) -> None:
        """Join three points."""
        self._inner.set_cells(mesh_name, "triangle", [first_vertex_id, second_vertex_id, third_vertex_id])

    def set_mesh_triangles(self, mesh_name: str, vertices: Any) -> None:
        """Join triples of points."""
        self._inner.set_cells(mesh_name, "triangle", vertices)

    def set_mesh_quad(
        self, mesh_name: str, first_vertex_id: int, second_vertex_id: int, third_vertex_id: int, fourth_vertex_id: int
    ) -> None:
        """Join four points."""
        corners = [first_vertex_id, second_vertex_id, third_vertex_id, fourth_vertex_id]
        self._inner.set_cells(mesh_name, "quadrilateral", corners)

    def set_mesh_quads(self, mesh_name: str, vertices: Any) -> None:
        """Join fours of points."""
        self._inner.set_cells(mesh_name, "quadrilateral", vertices)

    def set_mesh_tetrahedron(
        self, mesh_name: str, first_vertex_id: int, second_vertex_id: int, third_vertex_id: int, fourth_vertex_id: int
    ) -> None:
        """Join four points in space."""
        corners = [first_vertex_id, second_vertex_id, third_vertex_id, fourth_vertex_id]
        self._inner.set_cells(mesh_name, "tetrahedron", corners)

    def set_mesh_tetrahedra(self, mesh_name: str, vertices: Any) -> None:
        """Join fours of points in space."""
        self._inner.set_cells(mesh_name, "tetrahedron", vertices)

    def set_mesh_access_region(self, mesh_name: str, bounding_box: Any) -> None:
        """The box in which a received mesh is touched."""
        self._inner.set_region(mesh_name, bounding_box)

    def get_mesh_vertex_ids_and_coordinates(self, mesh_name: str) -> tuple[Any, Any]:
        """Numbers and coordinates of the points in the box."""
        ids, points = self._inner.points_of(mesh_name)
        return ids, points

    # -- data

    def write_data(self, mesh_name: str, data_name: str, vertex_ids: Any, values: Any) -> None:
        """Write values at points."""
        self._inner.write(mesh_name, data_name, values, vertex_ids)

    def read_data(self, mesh_name: str, data_name: str, vertex_ids: Any, relative_read_time: float) -> Any:
        """Values at points: (N,) for scalars, (N, D) for vectors."""
        values = self._inner.read(mesh_name, data_name, float(relative_read_time), vertex_ids)
        return values[:, 0] if values.shape[1] == 1 else values

    def write_gradient_data(self, mesh_name: str, data_name: str, vertex_ids: Any, gradients: Any) -> None:
        """Write gradients at points."""
        self._inner.write_gradient(mesh_name, data_name, gradients, vertex_ids)

    def map_and_read_data(self, mesh_name: str, data_name: str, coordinates: Any, relative_read_time: float) -> Any:
        """Values at any points of the access region."""
        values = self._inner.read_at(mesh_name, data_name, coordinates, float(relative_read_time))
        return values[:, 0] if self._inner.data(mesh_name, data_name).components == 1 else values

    def write_and_map_data(self, mesh_name: str, data_name: str, coordinates: Any, values: Any) -> None:
        """Add values at any points of the access region."""
        self._inner.write_at(mesh_name, data_name, coordinates, values)

    # -- timing

    def start_profiling_section(self, event_name: str) -> None:
        """Taken note of, not used."""
        self._sections.append((str(event_name), time.monotonic()))

    def stop_last_profiling_section(self) -> None:
        """The section that was begun last ends."""
        if not self._sections:
            raise Error(f"{self._inner.name}: no section was started")
        self._sections.pop()


def _hub_of(config: str, patience: float = 60.0) -> str:
    """Where the hub is: from the environment, or from the note beside the configuration file, which may come late."""
    if os.environ.get("COSOLVE_HUB"):
        return os.environ["COSOLVE_HUB"]
    note = os.path.abspath(config) + ".hub"
    end = time.monotonic() + float(os.environ.get("COSOLVE_PATIENCE", patience))
    while True:
        try:
            with open(note, encoding="utf-8") as file:
                address = file.read()
            if address:
                return address
        except OSError:
            pass
        if time.monotonic() > end:
            raise Error(f"no hub for {config}: start one with '{_COMMAND} {config}'")
        time.sleep(0.05)
