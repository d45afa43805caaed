"""Rooms of the sources, and the tests that should notice mistakes there.

Every source belongs to one room. For a single source, the test files that name most of what it defines are found in
the tests themselves (`nearest`).
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path


@dataclass(frozen=True)
class Room:
    """Sources (below src/cosolve) that belong together, and tests (below tests) that should notice mistakes there."""

    name: str
    sources: tuple[str, ...]
    tests: tuple[str, ...]

    def files(self, root: Path) -> list[str]:
        """The sources, relative to `root`."""
        package = root / "src" / "cosolve"
        found = {path for pattern in self.sources for path in package.glob(pattern) if path.name != "__init__.py"}
        return sorted(path.relative_to(root).as_posix() for path in found)


def nearest(root: Path, file: str, count: int = 3) -> tuple[str, ...]:
    """The test files that name most of what a source defines; a name counts the less the more files have it.

    A test file with the name of the source comes first.
    """
    words = _words(root)
    tree = ast.parse((root / file).read_bytes())
    wanted = {
        inner.name
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        for inner in (node, *(node.body if isinstance(node, ast.ClassDef) else ()))
        if isinstance(inner, (ast.FunctionDef, ast.ClassDef)) and not inner.name.startswith("__")
    }
    wanted.add(file.removeprefix("src/").removesuffix(".py").replace("/", "."))
    common = Counter(word for found in words.values() for word in wanted & found)
    score = {test: sum(1.0 / common[word] for word in wanted & found) for test, found in words.items()}
    score = {test: found + 10.0 * (Path(test).stem == f"test_{Path(file).stem}") for test, found in score.items()}
    best = sorted(score, key=lambda test: (-score[test], test))[:count]
    return tuple(test for test in best if score[test] > 0.0)


@lru_cache(maxsize=1)
def _words(root: Path) -> dict[str, set[str]]:
    """The names in each test file, also those of modules with dots."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((root / "tests").rglob("test_*.py"))}
    found = {path: set(re.findall(r"[A-Za-z_][\w.]*", text)) for path, text in texts.items()}
    return {
        path.relative_to(root).as_posix(): words | {part for word in words for part in word.split(".")}
        for path, words in found.items()
    }


ROOMS = (
    Room("analysis", ("analysis/*.py",), ("analysis/test_advice.py", "analysis/test_loops.py",
         "analysis/test_jacobians.py", "analysis/test_order.py")),
    Room("auto", ("auto/*.py",), ("trust/test_auto.py",)),
    Room("basics", ("basics/*.py", "[!v]*.py", "version.py"), ("basics/test_lu.py", "test_bad_input.py",
         "test_public_names.py", "test_demo.py")),
    Room("cli", ("cli/*.py",), ("test_cli.py", "cli/test_json.py", "cli/test_new.py", "cli/test_doctor.py")),
    Room("corrector", ("corrector/*.py", "corrector/algebra/*.py"), ("corrector/test_least_squares.py",
         "corrector/test_newton_toy.py", "corrector/test_relaxation.py", "corrector/test_line_search.py",
         "corrector/test_aitken.py", "corrector/test_algebraic_loop.py", "corrector/test_every_corrector.py",
         "corrector/test_global_jacobian.py", "corrector/test_tolerances.py")),
    Room("drawing", ("drawing/*.py",), ("drawing", "examples/test_two_mass_plots.py")),
    Room("elements", ("elements/*.py",), ("elements",)),
    Room("blocks", ("engine/blocks/*.py",), ("sweep/test_blocks.py",)),
    Room("native", ("engine/native/*.py",), ("compiled/test_same_bits.py", "compiled/test_step_control.py",
         "compiled/test_fallback.py", "compiled/test_wrong_sizes.py")),
    Room("readable", ("engine/readable/*.py", "engine/*.py", "verbs.py"), ("contract/test_serial_and_startup.py",
         "corrector/test_tolerances.py", "corrector/test_algebraic_loop.py", "semi_implicit/test_one_correction.py",
         "interface/test_algebraic_start.py", "contract/test_driven_inputs.py", "corrector/test_sweeps.py",
         "contract/test_equations_at_the_start.py", "stepper/test_events.py", "implicit/test_renewed_jacobian.py",
         "compiled/test_same_bits.py")),
    Room("fields", ("fields/*.py",), ("fields/test_programs.py", "fields/test_triangles.py",
         "fields/test_field_norm.py", "fields/test_field_file.py", "fields/test_elastic_solid.py")),
    Room("field solvers", ("fields/adapters/*.py",), ("fields/test_programs.py", "fields/test_calculix.py",
         "fields/test_openfoam.py")),
    Room("fmu", ("fmu/*.py",), ("fmu/test_communication.py", "fmu/test_own_steps.py", "fmu/test_two_mass.py",
         "fmu/test_descriptions.py", "fmu/test_variables.py", "fmu/test_inspect.py", "fmu/test_model_exchange.py",
         "fmu/test_model_exchange_events.py")),
    Room("integrator", ("integrator/*.py",), ("integrator", "subsystem/test_runge_kutta.py",
         "subsystem/test_rosenbrock.py", "subsystem/test_one_step.py", "fmu/test_own_steps.py")),
    Room("interface", ("interface/*.py",), ("interface/test_addresses.py", "interface/test_units.py",
         "contract/test_plan_maps.py", "contract/test_driven_inputs.py", "stepper/test_changes.py",
         "drawing/test_representation.py", "interface/test_law_partials.py")),
    Room("io", ("io/*.py",), ("io",)),
    Room("crosscheck", ("io/crosscheck/*.py",), ("crosscheck",)),
    Room("export", ("io/fmu_export/*.py",), ("export",)),
    Room("ssp", ("io/ssp/*.py",), ("ssp",)),
    Room("jax", ("jax/*.py",), ("subsystem/test_jax_ode.py",)),
    Room("jit", ("jit/*.py",), ("jit", "compiled/test_callback.py", "interface/test_law_partials.py",
         "mechanics/test_multibody_ports.py")),
    Room("mapping", ("mapping/*.py",), ("interface/mapping/test_radial.py", "interface/mapping/test_surface.py",
         "interface/mapping/test_line.py", "interface/mapping/test_bad_input.py", "interface/mapping/test_further.py")),
    Room("mapping kernels", ("mapping/kernels/*.py",), ("interface/mapping/test_radial.py",
         "interface/mapping/test_surface.py", "interface/mapping/test_further.py",
         "interface/mapping/test_at_scale.py")),
    Room("method", ("method/*.py",), ("dynamic_static/test_static_kinds.py", "semi_implicit/test_one_correction.py",
         "constraint/test_penalty_hinges.py", "dynamic_static/test_coupling.py",
         "constraint/test_two_mass_stability.py", "interface/test_methods_by_name.py")),
    Room("multibody coupling", ("multibody/coupling/*.py", "multibody/*.py"), ("joints/test_force_laws.py",
         "joints/test_rigid.py", "joints/test_loads.py", "joints/test_flexible.py")),
    Room("multibody equations", ("multibody/equations/*.py",), ("mechanics/test_constraint_rows.py",
         "mechanics/test_multibody_joints.py", "mechanics/test_multibody_sensitivity.py",
         "mechanics/test_multibody_ports.py")),
    Room("multibody", ("multibody/model/*.py", "multibody/subsystem/*.py"), ("mechanics/test_multibody_ports.py",
         "mechanics/test_multibody_bad_input.py", "mechanics/test_multibody_joints.py",
         "mechanics/test_bodies_euler_angles.py")),
    Room("participants", ("participants/*.py",), ("participants", "precice/test_waveforms.py",
         "precice/test_interface.py", "precice/test_windows.py", "precice/test_teams.py",
         "precice/test_other_hosts.py")),
    Room("precice", ("precice/*.py", "precice/opt_in/*.py"), ("precice/test_convergence.py",
         "precice/test_windows.py", "precice/test_many.py", "precice/test_acceleration.py",
         "precice/test_mappings.py", "precice/test_interface.py", "precice/test_config.py",
         "precice/test_records.py", "precice/test_restart.py")),
    Room("process", ("process/*.py",), ("isolated/test_channels.py", "isolated/test_data.py",
         "isolated/test_same_numbers.py", "isolated/test_network.py", "isolated/test_remote.py",
         "isolated/test_failures.py")),
    Room("report", ("report/*.py",), ("report",)),
    Room("result", ("result/*.py",), ("result",)),
    Room("run", ("run/*.py",), ("stepper", "restart/test_resume.py", "trust/test_bars.py", "test_limits.py")),
    Room("signal", ("signal/*.py",), ("contract/test_signals.py", "semi_implicit/test_polynomials.py",
         "explicit/test_startup.py")),
    Room("stepsize", ("stepsize/*.py",), ("stepsize/test_control.py", "stepsize/test_steps_of_a_run.py",
         "contract/test_clocks.py", "stepper/test_stepping.py", "stepper/test_end.py")),
    Room("structures", ("structures/*.py",), ("field/test_integrators.py", "field/test_second_order.py",
         "field/test_truss.py", "field/test_beam.py", "field/test_truss_table.py")),
    Room("subsystem", ("subsystem/*.py",), ("subsystem/test_hybrid_ode.py", "subsystem/test_runge_kutta.py",
         "subsystem/test_secant_jacobian.py", "semi_implicit/test_subsystem_solvers.py", "contract/test_rollback.py",
         "contract/test_replay.py")),
    Room("sweeps", ("sweeps/*.py",), ("sweep/test_sweep.py", "sweep/test_maps.py", "sweep/test_workers.py")),
    Room("viewer", ("viewer/*.py",), ("viewer/test_server.py", "viewer/test_live.py", "viewer/test_before.py",
         "viewer/test_levels.py", "viewer/test_scene.py", "viewer/test_residuals.py")),
)  # fmt: skip
