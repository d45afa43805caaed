"""Kratos as a subsystem, in this process: variables on a model part go in, others come out.

The user brings an `AnalysisStage` as Kratos' own scripts make one. A subsystem step is one turn of its solution loop,
without output. A state is what the nodes hold in all steps of their buffers, where they are, and the clock. Whether
that is everything shows when a run repeats its first step.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.errors import SetupError, SubsystemError
from cosolve.fields.adapters.program import field_ports
from cosolve.fields.adapters.sides import SHAPES, outer_sides
from cosolve.fields.field_subsystem import FieldSnapshot, FieldSubsystem
from cosolve.signal.polynomial import InputSignal

_MISSING = (
    "Kratos(...) needs KratosMultiphysics, which is not installed; pip install 'cosolve[kratos]', or the applications "
    "that the model needs"
)


class Kratos(FieldSubsystem):
    """A solver of Kratos Multiphysics, in this process.

    Parameters
    ----------
    stage : AnalysisStage
        A stage that is not initialised yet.
    part : str
        Full name of the model part that is coupled.
    takes : mapping of str to str
        Input ports and their nodal variables, as in `{"force": "POINT_LOAD"}` or `{"displacement":
        "MESH_DISPLACEMENT"}`.
    gives : mapping of str to str
        Output ports and their nodal variables, as in `{"displacement": "DISPLACEMENT"}` or `{"force": "-REACTION"}`; a
        minus reverses the sign.
    nominal : mapping of str to float or None, default None
        Nominal value of each port, for tolerances.
    threads : int, default 1
        Threads of Kratos. With more than one set OMP_WAIT_POLICY=passive before it is imported.

    Raises
    ------
    SetupError
        If Kratos is not installed or cannot set up the model.

    Notes
    -----
    Values are node by node. The macro step must be a whole number of the solver's own steps. Saved states hold the
    nodal values, positions and the clock, not the memory of elements and materials; the check of rollback in the first
    macro step finds that out and refuses the run.

    Examples
    --------
    >>> import cosolve as cs
    >>> def flap(stage):
    ...     return cs.fields.Kratos(stage, "Structure.interface", takes={"force": "POINT_LOAD"},
    ...                      gives={"displacement": "DISPLACEMENT"})
    """

    variable_step = False

    def __init__(
        self,
        stage: Any,
        part: str,
        *,
        takes: Mapping[str, str],
        gives: Mapping[str, str],
        nominal: Mapping[str, float] | None = None,
        threads: int = 1,
    ) -> None:
        try:
            self._kratos: Any = importlib.import_module("KratosMultiphysics")
        except ImportError:
            raise SetupError(_MISSING) from None
        if not callable(getattr(stage, "SolveSolutionStep", None) or getattr(stage, "_GetSolver", None)):
            raise SetupError(f"Kratos: stage must be an AnalysisStage, not an object of type {type(stage).__name__}")
        self._kratos.ParallelUtilities.SetNumThreads(threads)
        self._stage = stage
        self._values = self._kratos.VariableUtils()
        try:
            stage.Initialize()
            self._part = stage.model.GetModelPart(part)
        except Exception as error:
            raise SetupError(f"Kratos cannot set up the model part '{part}': {_first_line(error)}") from None
        self._root = self._part.GetRootModelPart()
        self._dim = int(self._root.ProcessInfo[self._kratos.DOMAIN_SIZE])
        self._takes = {port: self._variable(name) for port, name in takes.items()}
        self._gives = {port: self._variable(name) for port, name in gives.items()}
        labels = [node.Id for node in self._part.Nodes]
        if not labels:
            raise SetupError(f"Kratos: the model part '{part}' has no nodes")
        points = np.array([[node.X0, node.Y0, node.Z0][: self._dim] for node in self._part.Nodes])
        mesh = outer_sides(self._elements(), labels, points, part)
        size = self._dim * len(labels)
        self.inputs, self.outputs = field_ports(
            "Kratos", dict.fromkeys(takes, size), dict.fromkeys(gives, size), nominal
        )
        self.meshes = dict.fromkeys([*takes, *gives], mesh)
        self._saved = self._saved_variables()
        self._watch_convergence()
        self._first = self.save()

    # -- the contract -------------------------------------------------------------------------------------------------

    def start(self, t0: float) -> Any:
        self.restore(self._first)
        self._offset = float(self._stage.time) - t0  # of Kratos' clock
        return self._outputs()

    def advance(self, t0: float, t1: float, u: InputSignal) -> Any:
        stage, solver = self._stage, self._stage._GetSolver()
        end = t1 + self._offset
        while stage.time < end * (1 - 1e-12) - 1e-12 * (t1 - t0):
            stage.time = stage._AdvanceTime()
            if stage.time > end + 1e-9 * (t1 - t0):
                raise SubsystemError(
                    f"the solver of Kratos goes to {stage.time - self._offset:.9g} s where the macro step ends at "
                    f"{t1:.9g} s; make the macro step a whole number of its time steps"
                )
            stage.InitializeSolutionStep()
            solver.Predict()
            self._put(u(stage.time - self._offset))
            solver.SolveSolutionStep()
            if self._converged is False:
                raise SubsystemError("the solver of Kratos did not converge; give it more iterations or a shorter step")
            stage.FinalizeSolutionStep()
        return self._outputs()

    def save(self) -> Any:
        nodes, steps = self._root.Nodes, range(self._root.GetBufferSize())
        history = [self._read(nodes, variable, step) for variable in self._saved for step in steps]
        places = np.array(self._values.GetCurrentPositionsVector(nodes, 3))
        return float(self._stage.time), [self._clock(step) for step in steps], history, places

    def restore(self, state: Any) -> None:
        time, clocks, history, places = state
        nodes, steps = self._root.Nodes, range(self._root.GetBufferSize())
        for k, (variable, step) in enumerate((v, s) for v in self._saved for s in steps):
            self._write(nodes, variable, step, history[k])
        self._values.SetCurrentPositionsVector(nodes, self._vector(places))
        for step, clock in zip(steps, clocks, strict=True):
            self._set_clock(step, clock)
        self._stage.time = time

    def snapshot(self) -> FieldSnapshot:
        """All nodes where they are now, with the vector and scalar variables that have a history."""
        labels = {node.Id: k for k, node in enumerate(self._root.Nodes)}
        cells: dict[str, list[list[int]]] = {}
        for nodes in self._elements():
            shape = SHAPES.get((len(nodes), self._dim))
            if shape is not None:
                cells.setdefault(shape.kind, []).append([labels[n] for n in nodes[: shape.points]])
        places = np.array(self._values.GetCurrentPositionsVector(self._root.Nodes, 3)).reshape(-1, 3)
        data = {}
        for variable in self._saved:
            values = self._read(self._root.Nodes, variable, 0)
            data[variable.Name()] = values.reshape(len(labels), -1) if self._is_vector(variable) else values
        return FieldSnapshot(places[:, : self._dim], {k: np.array(c) for k, c in cells.items()}, data)

    # -- variables ----------------------------------------------------------------------------------------------------

    def _variable(self, name: str) -> tuple[float, Any]:
        """Sign and variable."""
        sign, plain = (-1.0, name[1:]) if name.startswith("-") else (1.0, name)
        if not self._kratos.KratosGlobals.HasVariable(plain):
            raise SetupError(f"Kratos has no variable '{plain}'; import the application that defines it")
        variable = self._kratos.KratosGlobals.GetVariable(plain)
        if not self._part.HasNodalSolutionStepVariable(variable):
            raise SetupError(f"the nodes of '{self._part.FullName()}' do not hold {plain}; the solver does not add it")
        return sign, variable

    def _is_vector(self, variable: Any) -> bool:
        kind: str = self._kratos.KratosGlobals.GetVariableType(variable.Name())
        return kind == "Array"

    def _saved_variables(self) -> list[Any]:
        """Every variable with a history that is a number or a vector of three."""
        names = sorted(self._root.GetHistoricalVariablesNames())
        kinds = {name: self._kratos.KratosGlobals.GetVariableType(name) for name in names}
        return [self._kratos.KratosGlobals.GetVariable(name) for name in names if kinds[name] in ("Array", "Double")]

    def _read(self, nodes: Any, variable: Any, step: int) -> npt.NDArray[np.float64]:
        if self._is_vector(variable):
            return np.array(self._values.GetSolutionStepValuesVector(nodes, variable, step, 3))
        return np.array(self._values.GetSolutionStepValuesVector(nodes, variable, step))

    def _write(self, nodes: Any, variable: Any, step: int, values: npt.NDArray[np.float64]) -> None:
        self._values.SetSolutionStepValuesVector(nodes, variable, self._vector(values), step)

    def _vector(self, values: npt.NDArray[np.float64]) -> Any:
        return self._kratos.Vector(np.ascontiguousarray(values))

    def _put(self, values: npt.NDArray[np.float64]) -> None:
        n = self._dim * self._part.NumberOfNodes()
        for k, (sign, variable) in enumerate(self._takes.values()):
            spatial = np.zeros((n // self._dim, 3))
            spatial[:, : self._dim] = sign * values[k * n : (k + 1) * n].reshape(-1, self._dim)
            self._write(self._part.Nodes, variable, 0, spatial.ravel())

    def _outputs(self) -> npt.NDArray[np.float64]:
        found = [
            sign * self._read(self._part.Nodes, variable, 0).reshape(-1, 3)[:, : self._dim].ravel()
            for sign, variable in self._gives.values()
        ]
        return np.concatenate(found)

    def _watch_convergence(self) -> None:
        """Note what the solver says of itself; of an ALE fluid the inner one: mesh solvers say 0.0 for success."""
        outer = self._stage._GetSolver()
        solver = getattr(outer, "fluid_solver", outer)
        solve = solver.SolveSolutionStep
        self._converged: bool | None = None

        def noted() -> Any:
            self._converged = solve()
            return self._converged

        solver.SolveSolutionStep = noted

    # -- clock and mesh -----------------------------------------------------------------------------------------------

    def _info(self, step: int) -> Any:
        info = self._root.ProcessInfo
        for _ in range(step):
            info = info.GetPreviousSolutionStepInfo()
        return info

    def _clock(self, step: int) -> tuple[float, float, int]:
        info, k = self._info(step), self._kratos
        return float(info[k.TIME]), float(info[k.DELTA_TIME]), int(info[k.STEP])

    def _set_clock(self, step: int, clock: tuple[float, float, int]) -> None:
        info, k = self._info(step), self._kratos
        info[k.TIME], info[k.DELTA_TIME], info[k.STEP] = clock

    def _elements(self) -> list[list[int]]:
        return [[node.Id for node in element.GetNodes()] for element in self._root.Elements]


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
