"""The files of the flap in a converging channel (Mok 2001) for Kratos: meshes, materials, parameters.

Half of a symmetric channel: inlet on the left, a wall below that rises behind the flap, a slip wall on top. The flap is
a strip of 5 mm x 0.25 m that stands on the wall. The two meshes do not match on it.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

LEFT, RIGHT, TIP = 0.4965, 0.5015, 0.25  # the flap
LENGTH, TOP = 1.25, 0.5
STEP = 0.1  # s
#: Velocity of the inflow: a parabola that swells within 10 s.
INFLOW = "2*0.06067*(1-cos(pi*t/10))*y*(1-y)"


def write_case(folder: Path, *, fineness: int = 1) -> None:
    """Write everything; `fineness` 1 gives about 6300 triangles and 200 quadrilaterals, 0 a quarter of the fluid."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fluid.mdpa").write_text(fluid_mesh(*((14, 16, 14, 12) if fineness == 0 else (28, 32, 28, 24))))
    (folder / "flap.mdpa").write_text(flap_mesh(2, 100))
    for name, content in {
        "FluidMaterials": _material(
            "FluidModelPart.Parts_Fluid", "Newtonian2DLaw", DENSITY=956.0, DYNAMIC_VISCOSITY=0.145
        ),
        "FlapMaterials": _material(
            "Structure.Parts_Flap", "LinearElasticPlaneStress2DLaw",
            DENSITY=1500.0, YOUNG_MODULUS=2.3e6, POISSON_RATIO=0.45, THICKNESS=1.0,
        ),
        "Fluid": fluid_parameters(folder),
        "Flap": flap_parameters(folder),
    }.items():  # fmt: skip
        (folder / f"{name}.json").write_text(json.dumps(content, indent=2))


def wall(x: np.ndarray) -> np.ndarray:
    """Height of the lower wall: flat, a slope, a parabola that ends at 0.3 m."""
    x = np.asarray(x, dtype=float)
    slope, a = 0.625, 0.625**2 / 0.2
    turn = np.clip(x - 0.9, 0.0, slope / (2 * a))
    return np.where(x < 0.9, slope * np.clip(x - 0.502, 0.0, None), 0.24875 + slope * turn - a * turn**2)


def fluid_mesh(left: int, right: int, below: int, above: int) -> str:
    """Triangles: columns left of the flap and right of it, rows below its tip and above."""
    fine = 1.25 * np.linspace(0, 1, left + 1) ** 1.6  # dense at the flap
    xs_left = LEFT - LEFT * fine[::-1] / fine[-1]
    across = 2
    xs_over = np.linspace(LEFT, RIGHT, across + 1)
    xs_right = RIGHT + (LENGTH - RIGHT) * np.linspace(0, 1, right + 1) ** 1.6
    xs = np.concatenate([xs_left, xs_over[1:-1], xs_right])
    n_below, flap = below, range(left, left + across + 1)
    up = np.concatenate([np.linspace(0, 1, below + 1) ** 0.8, 1 + np.linspace(0, 1, above + 1)[1:] ** 1.3])
    number: dict[tuple[int, int], int] = {}
    points = []
    for i, x in enumerate(xs):
        low = float(wall(x))
        middle = low + (TOP - low) * TIP / TOP
        for j, s in enumerate(up):
            if i in flap[1:-1] and j < n_below:
                continue  # inside the flap
            y = low + (middle - low) * s if s <= 1 else middle + (TOP - middle) * (s - 1)
            number[i, j] = len(points) + 1
            points.append((float(x), float(y)))
    triangles = []
    for i in range(len(xs) - 1):
        for j in range(len(up) - 1):
            if i in flap[:-1] and j < n_below:
                continue
            a, b, c, d = number[i, j], number[i + 1, j], number[i + 1, j + 1], number[i, j + 1]
            triangles += [(a, b, c), (a, c, d)] if (i + j) % 2 else [(a, b, d), (b, c, d)]
    last, top, (first, *_, after) = len(xs) - 1, len(up) - 1, flap
    sides = {
        "inlet": [number[0, j] for j in range(top, -1, -1)],
        "outlet": [number[last, j] for j in range(top + 1)],
        "top": [number[i, top] for i in range(last, -1, -1)],
        "bottom": [number[i, 0] for i in range(first + 1)],
        "behind": [number[i, 0] for i in range(after, last + 1)],
        "interface": [number[first, j] for j in range(n_below)]
        + [number[i, n_below] for i in flap]
        + [number[after, j] for j in range(n_below - 1, -1, -1)],
    }
    conditions = {name: list(pairwise(nodes)) for name, nodes in sides.items()}
    conditions["wall"] = conditions.pop("bottom") + conditions.pop("behind")
    sides["wall"] = sides.pop("bottom") + sides.pop("behind")
    return _mdpa(points, "Element2D3N", triangles, "LineCondition2D2N", conditions, sides, "Parts_Fluid")


def flap_mesh(across: int, high: int) -> str:
    """Quadrilaterals, with a condition for loads on every wet node."""
    xs, ys = np.linspace(LEFT, RIGHT, across + 1), np.linspace(0, TIP, high + 1)
    number = {(i, j): 1 + i * (high + 1) + j for i in range(across + 1) for j in range(high + 1)}
    points = [(float(x), float(y)) for x in xs for y in ys]
    around = ((0, 0), (1, 0), (1, 1), (0, 1))
    quads = [tuple(number[i + a, j + b] for a, b in around) for i in range(across) for j in range(high)]
    wet = [number[0, j] for j in range(high + 1)] + [number[i, high] for i in range(1, across)]
    wet += [number[across, j] for j in range(high, -1, -1)]
    sides = {"bottom": [number[i, 0] for i in range(across + 1)], "interface": wet}
    conditions: dict[str, list[tuple[int, ...]]] = {"bottom": [], "interface": [(n,) for n in wet]}
    element = "TotalLagrangianElement2D4N"
    return _mdpa(points, element, quads, "PointLoadCondition2D1N", conditions, sides, "Parts_Flap")


def _mdpa(points: Any, element: str, cells: Any, condition: str, conditions: Any, sides: Any, whole: str) -> str:
    """The text of a mesh file: the whole as one part, and one part for each side."""
    out = ["Begin Properties 0", "End Properties", "Begin Nodes"]
    out += [f"{k} {x:.12f} {y:.12f} 0.0" for k, (x, y) in enumerate(points, 1)]
    out += ["End Nodes", f"Begin Elements {element}"]
    out += [f"{k} 0 {' '.join(map(str, nodes))}" for k, nodes in enumerate(cells, 1)]
    out += ["End Elements", f"Begin Conditions {condition}"]
    rows = [(name, nodes) for name, found in conditions.items() for nodes in found]
    out += [f"{k} 0 {' '.join(map(str, nodes))}" for k, (_, nodes) in enumerate(rows, 1)]
    out += ["End Conditions"]
    out += _part(whole, range(1, len(points) + 1), range(1, len(cells) + 1), ())
    for name, nodes in sides.items():
        out += _part(name, dict.fromkeys(nodes), (), [k for k, (of, _) in enumerate(rows, 1) if of == name])
    return "\n".join(out) + "\n"


def _part(name: str, nodes: Any, elements: Any, conditions: Any) -> list[str]:
    out = [f"Begin SubModelPart {name}"]
    for what, labels in (("Nodes", nodes), ("Elements", elements), ("Conditions", conditions)):
        out += [f"Begin SubModelPart{what}", *map(str, labels), f"End SubModelPart{what}"]
    return [*out, "End SubModelPart"]


def fluid_parameters(folder: Path) -> dict[str, Any]:
    """Parameters of the fluid: a moving mesh, and the monolithic solver on it."""

    def fixed(part: str) -> dict[str, Any]:
        return _process("fix_vector_variable_process", "KratosMultiphysics", part, variable_name="MESH_DISPLACEMENT")

    sides = ("inlet", "outlet", "top", "wall", "interface")
    fluid = "KratosMultiphysics.FluidDynamicsApplication"
    kinds = [f"{kind}_{what}" for kind in ("relative", "absolute") for what in ("velocity", "pressure")]
    tolerances = {f"{kind}_tolerance": 1e-7 for kind in kinds}
    iterative = {"solver_type": "amgcl", "tolerance": 1e-9, "max_iteration": 500, "krylov_type": "gmres"}
    return {
        "problem_data": {
            "problem_name": "fluid", "parallel_type": "OpenMP", "echo_level": 0, "start_time": 0.0, "end_time": 25.0,
        },
        "solver_settings": {
            "solver_type": "ale_fluid",
            "ale_boundary_parts": ["interface"],
            "mesh_motion_solver_settings": {
                "solver_type": "structural_similarity", "linear_solver_settings": iterative,
            },
            "fluid_solver_settings": {
                "solver_type": "Monolithic",
                "domain_size": 2,
                "model_part_name": "FluidModelPart",
                "model_import_settings": {"input_type": "mdpa", "input_filename": str(folder / "fluid")},
                "material_import_settings": {"materials_filename": str(folder / "FluidMaterials.json")},
                "echo_level": 0,
                "compute_reactions": True,
                "formulation": {"element_type": "qsvms", "use_orthogonal_subscales": False, "dynamic_tau": 1.0},
                "maximum_iterations": 20,
                **tolerances,
                "linear_solver_settings": {**iterative, "scaling": True},
                "volume_model_part_name": "FluidModelPart.Parts_Fluid",
                "skin_parts": [f"FluidModelPart.{side}" for side in sides],
                "no_skin_parts": [],
                "time_stepping": {"automatic_time_step": False, "time_step": STEP},
            },
        },
        "processes": {
            "boundary_conditions_process_list": [
                _process(
                    "assign_vector_by_direction_process", "KratosMultiphysics", "FluidModelPart.inlet",
                    variable_name="VELOCITY", modulus=INFLOW, constrained=True, direction=[1.0, 0.0, 0.0],
                    interval=[0.0, 10.0],
                ),
                _process(
                    "assign_vector_by_direction_process", "KratosMultiphysics", "FluidModelPart.inlet",
                    variable_name="VELOCITY", modulus="4*0.06067*y*(1-y)", constrained=True, direction=[1.0, 0.0, 0.0],
                    interval=[10.0, "End"],
                ),
                _process(
                    "apply_outlet_process", fluid, "FluidModelPart.outlet", variable_name="PRESSURE", constrained=True,
                    value=0.0, hydrostatic_outlet=False, h_top=0.0,
                ),
                _process("apply_noslip_process", fluid, "FluidModelPart.wall"),
                _process("apply_noslip_process", fluid, "FluidModelPart.interface"),
                _process("apply_slip_process", fluid, "FluidModelPart.top"),
            ],
            "mesh_process_list": [fixed(f"FluidModelPart.{side}") for side in sides],
        },
    }  # fmt: skip


def flap_parameters(folder: Path) -> dict[str, Any]:
    """Parameters of the flap: large displacements, Newmark."""
    return {
        "problem_data": {
            "problem_name": "flap", "parallel_type": "OpenMP", "echo_level": 0, "start_time": 0.0, "end_time": 25.0,
        },
        "solver_settings": {
            "solver_type": "dynamic",
            "echo_level": 0,
            "analysis_type": "non_linear",
            "time_integration_method": "implicit",
            "scheme_type": "newmark",
            "model_part_name": "Structure",
            "domain_size": 2,
            "model_import_settings": {"input_type": "mdpa", "input_filename": str(folder / "flap")},
            "material_import_settings": {"materials_filename": str(folder / "FlapMaterials.json")},
            "time_stepping": {"time_step": STEP},
            "convergence_criterion": "residual_criterion",
            "residual_relative_tolerance": 1e-10,
            "residual_absolute_tolerance": 1e-10,
            "max_iteration": 25,
            "linear_solver_settings": {"solver_type": "LinearSolversApplication.sparse_lu"},
            "rotation_dofs": False,
        },
        "processes": {
            "constraints_process_list": [
                _process(
                    "assign_vector_variable_process", "KratosMultiphysics", "Structure.bottom",
                    variable_name="DISPLACEMENT", constrained=[True] * 3, value=[0.0] * 3, interval=[0.0, "End"],
                )
            ],
        },
    }  # fmt: skip


def _process(module: str, of: str, part: str, **more: Any) -> dict[str, Any]:
    return {"python_module": module, "kratos_module": of, "Parameters": {"model_part_name": part, **more}}


def _material(part: str, law: str, **variables: float) -> dict[str, Any]:
    material = {"constitutive_law": {"name": law}, "Variables": variables, "Tables": {}}
    return {"properties": [{"model_part_name": part, "properties_id": 1, "Material": material}]}
