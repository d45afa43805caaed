"""Areas of the sources, and the tests that should notice mistakes there.

Every source belongs to one area. For a single source, the test files that name most of what it defines are found in
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
class Area:
    """Sources (below src/cosolve) that belong together, and tests (below tests) that should notice mistakes there."""

    name: str
    sources: tuple[str, ...]
    tests: tuple[str, ...]

    def files(self, root: Path) -> list[str]:
        """The sources, relative to `root`."""
        package = root / "src" / "cosolve"
        found = {path for pattern in self.sources for path in package.glob(pattern) if path.name != "__init__.py"}
        elsewhere = {name for area in AREAS if area is not self for name in area.sources if "*" not in name}
        found -= {package / name for name in elsewhere}
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


AREAS = (
    Area("analysis", ("analysis/*.py",), ("analysis/test_advice.py", "analysis/test_loops.py",
         "analysis/test_jacobians.py", "analysis/test_order.py")),
    Area("accuracy", ("accuracy/*.py",), ("analysis/test_error_bar.py", "run/stepper/test_growth.py",
         "accuracy/test_bars.py")),
    Area("auto", ("accuracy/auto/*.py",), ("accuracy/test_auto.py",)),
    Area("basics", ("basics/*.py", "[!v]*.py", "version.py"), ("basics/test_lu.py", "test_bad_input.py",
         "test_public_names.py", "test_demo.py")),
    Area("cli", ("cli/*.py",), ("test_cli.py", "cli/test_json.py", "cli/test_new.py", "cli/test_doctor.py")),
    Area("corrector", ("corrector/*.py", "corrector/algebra/*.py"), ("corrector/test_least_squares.py",
         "corrector/test_newton_toy.py", "corrector/test_relaxation.py", "corrector/test_line_search.py",
         "corrector/test_aitken.py", "corrector/test_algebraic_loop.py", "corrector/test_every_corrector.py",
         "corrector/test_global_jacobian.py", "corrector/test_tolerances.py")),
    Area("drawing", ("drawing/*.py",), ("drawing", "examples/test_two_mass_plots.py")),
    Area("blocks", ("engine/blocks/*.py",), ("sweeps/test_blocks.py", "sweeps/test_sweep.py")),
    Area("native", ("engine/native/*.py",), ("engine/native/test_same_bits.py", "engine/native/test_step_control.py",
         "engine/native/test_fallback.py", "engine/native/test_wrong_sizes.py")),
    Area("readable", ("engine/python/*.py", "engine/*.py", "operations.py"), ("contract/test_serial_and_startup.py",
         "corrector/test_tolerances.py", "corrector/test_algebraic_loop.py",
         "method/semi_implicit/test_one_correction.py",
         "interface/test_algebraic_start.py", "contract/test_driven_inputs.py", "corrector/test_sweeps.py",
         "contract/test_equations_at_the_start.py", "run/stepper/test_events.py",
         "method/implicit/test_renewed_jacobian.py",
         "engine/native/test_same_bits.py")),
    Area("fields", ("fields/*.py",), ("fields/test_programs.py", "fields/test_triangles.py",
         "fields/test_field_norm.py", "fields/test_field_file.py", "fields/test_elastic_solid.py")),
    Area("field solvers", ("fields/adapters/*.py",), ("fields/test_programs.py", "fields/test_calculix.py",
         "fields/test_openfoam.py")),
    Area("fmu", ("fmu/*.py",), ("fmu/test_communication.py", "fmu/test_own_steps.py", "fmu/test_two_mass.py",
         "fmu/test_descriptions.py", "fmu/test_variables.py", "fmu/test_inspect.py", "fmu/test_model_exchange.py",
         "fmu/test_model_exchange_events.py")),
    Area("integrator", ("integrator/*.py",), ("integrator", "subsystem/test_runge_kutta.py",
         "subsystem/test_rosenbrock.py", "subsystem/test_one_step.py", "fmu/test_own_steps.py")),
    Area("interface", ("interface/*.py",), ("interface/test_addresses.py", "interface/test_units.py",
         "contract/test_plan_maps.py", "contract/test_driven_inputs.py", "run/stepper/test_changes.py",
         "drawing/test_representation.py", "interface/test_law_partials.py")),
    Area("io", ("io/*.py",), ("io",)),
    Area("export", ("io/fmu_export/*.py",), ("io/fmu_export",)),
    Area("ssp", ("io/ssp/*.py",), ("io/ssp",)),
    Area("jax", ("jax/*.py",), ("subsystem/test_jax_ode.py",)),
    Area("trace", ("trace/*.py", "integrator/machine_code.py", "interface/traced_law.py"), ("trace",)),
    Area("jit", ("jit/*.py",), ("jit", "engine/native/test_callback.py", "interface/test_law_partials.py",
         "multibody/mechanics/test_multibody_ports.py")),
    Area("mapping", ("mapping/*.py",), ("mapping/test_radial.py", "mapping/test_surface.py",
         "mapping/test_line.py", "mapping/test_bad_input.py", "mapping/test_further.py",
         "mapping/test_at_scale.py", "mapping/test_coverage.py")),
    Area("mapping kernels", ("mapping/kernels/*.py",), ("mapping/test_radial.py",
         "mapping/test_line.py", "mapping/test_surface.py", "mapping/test_further.py",
         "mapping/test_at_scale.py")),
    Area("method", ("method/*.py",), ("method/dynamic_static/test_static_kinds.py",
         "method/semi_implicit/test_one_correction.py",
         "method/constraint/test_penalty_hinges.py", "method/dynamic_static/test_coupling.py",
         "method/constraint/test_two_mass_stability.py", "interface/test_methods_by_name.py")),
    Area("multibody coupling", ("multibody/coupling/*.py", "multibody/*.py"), ("multibody/joints/test_force_laws.py",
         "multibody/joints/test_rigid.py", "multibody/joints/test_loads.py", "multibody/joints/test_flexible.py")),
    Area("multibody equations", ("multibody/equations/*.py",), ("multibody/mechanics/test_constraint_rows.py",
         "multibody/mechanics/test_multibody_joints.py", "multibody/mechanics/test_multibody_sensitivity.py",
         "multibody/mechanics/test_multibody_ports.py")),
    Area("multibody", ("multibody/model/*.py",
         "multibody/subsystem/*.py"), ("multibody/mechanics/test_multibody_ports.py",
         "multibody/mechanics/test_multibody_bad_input.py", "multibody/mechanics/test_multibody_joints.py",
         "multibody/mechanics/test_bodies_euler_angles.py")),
    Area("participants", ("participants/*.py",), ("participants", "precice/test_waveforms.py",
         "precice/test_interface.py", "precice/test_windows.py", "precice/test_teams.py",
         "precice/test_other_hosts.py")),
    Area("precice", ("precice/*.py", "precice/opt_in/*.py"), ("precice/test_convergence.py",
         "precice/test_windows.py", "precice/test_many.py", "precice/test_acceleration.py",
         "precice/test_mappings.py", "precice/test_interface.py", "precice/test_config.py",
         "precice/test_records.py", "precice/test_restart.py")),
    Area("process", ("process/*.py",), ("process/isolated/test_channels.py", "process/isolated/test_data.py",
         "process/isolated/test_same_numbers.py", "process/isolated/test_network.py", "process/isolated/test_remote.py",
         "process/isolated/test_failures.py")),
    Area("report", ("report/*.py",), ("report",)),
    Area("result", ("result/*.py",), ("result",)),
    Area("run", ("run/*.py",), ("run/stepper", "state/test_resume.py", "accuracy/test_bars.py", "test_limits.py")),
    Area("state", ("state/*.py",), ("run/stepper/test_codec.py", "run/stepper/test_spoilt_states.py", "state")),
    Area("signal", ("signal/*.py",), ("contract/test_signals.py", "method/semi_implicit/test_polynomials.py",
         "method/explicit/test_startup.py")),
    Area("stepsize", ("stepsize/*.py",), ("stepsize/test_control.py", "stepsize/test_steps_of_a_run.py",
         "contract/test_clocks.py", "run/stepper/test_stepping.py", "run/stepper/test_end.py")),
    Area("structures", ("structures/*.py",), ("structures/test_integrators.py", "structures/test_second_order.py",
         "structures/test_truss.py", "structures/test_beam.py", "structures/test_truss_table.py")),
    Area("subsystem", ("subsystem/*.py",), ("subsystem/test_hybrid_ode.py", "subsystem/test_runge_kutta.py",
         "subsystem/test_secant_jacobian.py", "method/semi_implicit/test_subsystem_solvers.py",
         "contract/test_rollback.py",
         "contract/test_replay.py")),
    Area("sweeps", ("sweeps/*.py",), ("sweeps/test_sweep.py", "sweeps/test_maps.py", "sweeps/test_workers.py")),
    Area("viewer", ("viewer/*.py",), ("viewer/test_server.py", "viewer/test_live.py", "viewer/test_before.py",
         "viewer/test_levels.py", "viewer/test_scene.py", "viewer/test_residuals.py")),
)  # fmt: skip
