"""The flap in a converging channel: a fluid and a solid of Kratos, coupled here.

Kratos has to be installed (`pip install "cosolve[kratos]"`). `OwnAccelerator` puts an accelerator of Kratos'
CoSimulationApplication in the place of ours, so that both see the same pair, first guesses and tolerance.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import cosolve as cs
from examples.kratos_flap.case import STEP, write_case

LARGE = 1e-2  # m, a displacement that tolerances are measured against; larger ones count as they are


def kratos() -> Any:
    """Kratos with what the flap needs, quiet, and with threads that do not spin while they wait."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    found = importlib.import_module("KratosMultiphysics")
    found.Logger.GetDefaultOutput().SetSeverity(found.Logger.Severity.WARNING)
    for application in ("MeshMoving", "LinearSolvers", "ConstitutiveLaws"):
        importlib.import_module(f"KratosMultiphysics.{application}Application")
    return found


def flap_system(folder: Path, *, fineness: int = 1) -> cs.System:
    """Fluid and flap with their meshes joined: displacements by interpolation, forces by its transpose."""
    KM = kratos()
    write_case(folder, fineness=fineness)
    fluids = importlib.import_module("KratosMultiphysics.FluidDynamicsApplication.fluid_dynamics_analysis")
    solids = importlib.import_module("KratosMultiphysics.StructuralMechanicsApplication.structural_mechanics_analysis")

    def stage(kind: Any, name: str) -> Any:
        return kind(KM.Model(), KM.Parameters((folder / name).read_text()))

    fluid = cs.fields.Kratos(
        stage(fluids.FluidDynamicsAnalysis, "Fluid.json"),
        "FluidModelPart.interface",
        takes={"displacement": "MESH_DISPLACEMENT"},
        gives={"force": "-REACTION"},
        nominal={"displacement": LARGE},
    )
    flap = cs.fields.Kratos(
        stage(solids.StructuralMechanicsAnalysis, "Flap.json"),
        "Structure.interface",
        takes={"force": "POINT_LOAD"},
        gives={"displacement": "DISPLACEMENT"},
        nominal={"displacement": LARGE},
    )
    system = cs.System({"fluid": fluid, "flap": flap})
    between = cs.mapping.barycentric(flap.meshes["displacement"], fluid.meshes["displacement"])
    system.map("flap.displacement", "fluid.displacement", between)
    system.map("fluid.force", "flap.force", between, "conservative")
    return system


def run(system: cs.System, corrector: cs.Corrector, steps: int, *, tol: float = 1e-5, most: int = 30) -> cs.Result:
    """Strong coupling, the fluid first; displacements predicted by a straight line."""
    method = cs.Implicit(
        degree=1, tol=tol, corrector=corrector, sweep="gauss-seidel", order=["fluid", "flap"], max_iterations=most
    )
    return cs.simulate(system, t_end=steps * STEP, method=method, step=STEP)


def iterations(result: cs.Result) -> float:
    """Evaluations of both solvers per macro step, the first one included."""
    return float(np.mean(result.iterations + 1))


class OwnAccelerator(cs.Corrector):
    """An accelerator of Kratos: its residual has the other sign."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings

    def start_run(self, labels: Sequence[str]) -> None:
        KM = kratos()
        folder = "KratosMultiphysics.CoSimulationApplication.convergence_accelerators."
        module = importlib.import_module(folder + self.settings["type"])
        self._accelerator = module.Create(KM.Parameters(json.dumps(self.settings)))
        self._accelerator.Initialize()

    def start_step(self) -> None:
        self._accelerator.InitializeSolutionStep()

    def correct(self, z: np.ndarray, r: np.ndarray, problem: Any) -> np.ndarray:
        self._accelerator.InitializeNonLinearIteration()
        change = np.asarray(self._accelerator.UpdateSolution(-r, z.copy()))
        self._accelerator.FinalizeNonLinearIteration()
        return z + change

    def accept(self, z: np.ndarray, r: np.ndarray) -> None:
        self._accelerator.FinalizeSolutionStep()
