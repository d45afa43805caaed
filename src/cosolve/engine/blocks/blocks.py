"""Blocks of variants: linear subsystems with plain connections, advanced by `kernel.py`.

Every variant has the same subsystems, ports and connections as a template; matrices, initial states and constant inputs
differ. The sums are those of the Python engine in the same order; only propagators (`propagators.py`) and, for
semi-implicit methods, the solution with the interface Jacobian are found by another route, to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.products import IN_ORDER
from cosolve.engine.blocks.block_run import BlockRun, BlockTask, in_threads
from cosolve.engine.blocks.program import OPERATIONS, Integers
from cosolve.engine.blocks.variants import Ensemble, gather, settled
from cosolve.engine.step_functions import step_function_obstacle
from cosolve.interface import Plan, System
from cosolve.method import Method
from cosolve.subsystem import Linear

_LARGEST_INTERFACE = 64
_KEEP = {"end": 0, "trajectory": 0, "max": 1, "min": 2, "peak": 3}


def why_not_blocks(system: System, method: Method, step: object, reduce: object) -> str | None:
    """Why variants of this system are not advanced in blocks, in one sentence; None when they are."""
    if callable(reduce):
        return "what is kept is a function of a whole result"
    if isinstance(step, bool) or not isinstance(step, (int, float, np.integer, np.floating)):
        return "the macro steps are not all of one length"
    declaration = method.declaration
    if declaration is None:
        return f"{method.name} is not written in operations"
    if method.signal != "lagrange":
        return f"{method.label} does not run in blocks, whose signals are drawn through past values"
    found = step_function_obstacle(declaration, OPERATIONS)
    if found is not None:
        return f"{method.name} does not run in blocks: {found}, which has no meaning there"
    if declaration.corrector is not None and declaration.jacobian != "auto":
        return "differenced Jacobians do not run in blocks"
    for name, subsystem in system.subsystems.items():
        if type(subsystem) is not Linear:
            return f"'{name}' ({type(subsystem).__name__}) is not a Linear subsystem"
    plan = system.plan()
    if plan.changes.listed:
        return "parameters change during the run"
    if plan.driven:
        return f"'{plan.driven[0].target}' is driven by a function of time or a table"
    if plan.blocks:
        return f"{plan.blocks[0].label} is no plain connection"
    if plan.n_z > _LARGEST_INTERFACE:
        return f"it has {plan.n_z} coupling variables, and blocks are for at most {_LARGEST_INTERFACE}"
    for name, subsystem in system.subsystems.items():
        assert isinstance(subsystem, Linear)
        columns = len(subsystem.x0) + subsystem.B.shape[1] * (method.degree + 1)
        if columns > IN_ORDER:
            return f"'{name}' has {columns} columns to add up (at most {IN_ORDER} are added in a fixed order)"
    single = gather([system])
    if settled(plan, single.parts, single.offsets) is None:
        return "direct feed-through runs in a loop, which is closed at the start of each run"
    return None


@dataclass
class BlockResult:
    """What came of a block run.

    `values[v, quantity]` or `values[v, quantity, row]`; `failed[v]`: the number of the step that failed, -1 where none;
    `alone[v]`: variants that the Python engine must run; `growth[v]`: how many times larger coupling variables have
    become than they were at the start, or than their nominal values; `seconds` by what they went into.
    """

    values: Vector
    failed: Integers
    alone: Any
    growth: Vector
    times: Vector
    seconds: dict[str, float] = field(default_factory=dict)

    def message(self, v: int) -> str:
        """Why a variant failed."""
        t = self.times[self.failed[v]]
        return (
            f"an output is no longer finite after the macro step from t = {t:.9g}; a smaller step or a more stable "
            "method may help"
        )


def advance_blocks(
    plan: Plan,
    ensemble: Ensemble,
    wanted: BlockTask,
    workers: int = 1,
    propagate: Callable[[Ensemble, float, int], list[Matrix]] | None = None,
) -> BlockResult:
    """Run all variants of an ensemble; `propagate` gives the propagators (by default those of `propagators.py`)."""
    from cosolve.engine.blocks import kernel

    began = perf_counter()
    run = BlockRun(plan, ensemble, wanted, workers, propagate)
    instructions, terms, starts = run.code.arrays(8 * kernel.BLOCK)
    blocks = -(-ensemble.count // kernel.BLOCK)
    coefficients = np.empty((blocks, len(run.table.rows), kernel.BLOCK))
    for k, row in enumerate(run.table.rows):
        coefficients[:, k] = in_blocks(row, blocks, kernel.BLOCK) if isinstance(row, np.ndarray) else row
    live = np.zeros((blocks, run.code.registers.n_live, kernel.BLOCK))
    for k, row in enumerate(run.start):
        live[:, k] = in_blocks(row, blocks, kernel.BLOCK)
    keep = _KEEP[wanted.reduce]
    first = run.first if keep != kernel.PEAK else [np.abs(row) for row in run.first]
    out = np.empty((blocks, run.rows, len(first), kernel.BLOCK))
    for q, row in enumerate(first):
        out[:, 0, q] = in_blocks(row, blocks, kernel.BLOCK)
    failed = np.full((blocks, kernel.BLOCK), -1, dtype=np.int64)
    failed.reshape(-1)[: ensemble.count][run.alone] = 0  # nothing to look for there
    laid_out = perf_counter()
    registers = run.code.registers

    def advance(part: tuple[int, int]) -> None:
        kernel.run(
            *(np.array(part), coefficients, live, instructions, terms, starts, run.schedule, run.steps, keep),
            *(registers.first_observed, run.watched, registers.size, out, failed),
        )

    with np.errstate(all="ignore"):
        in_threads(advance, blocks, workers)
    advanced = perf_counter()
    # (block, row, quantity, place) to (variant, quantity, row)
    values = np.moveaxis(out, (0, 3, 2, 1), (0, 1, 2, 3)).reshape(blocks * kernel.BLOCK, len(first), run.rows)
    values = values[: ensemble.count]
    found = failed.reshape(-1)[: ensemble.count].copy()
    found = np.where(found < 0, -1, run.macro[found])
    found[run.alone] = -1
    growth = _growth(plan, run, live)[: ensemble.count]
    _blank(values, found, run.recorded, wanted.reduce)
    if wanted.reduce != "trajectory":
        values = values[:, :, 0]
    seconds = {
        "propagators": run.propagator_seconds,
        "preparing": laid_out - began - run.propagator_seconds,
        "loop": advanced - laid_out,
        "collecting": perf_counter() - advanced,
    }
    return BlockResult(values, found, run.alone, growth, run.points, seconds)


def _growth(plan: Plan, run: BlockRun, live: Vector) -> Vector:
    """How many times larger the coupling variables of each variant are at the end."""
    places = run.watched[:, plan.n_y :].ravel()
    largest = np.abs(live[:, places]).max(axis=1, initial=0.0).ravel()
    begun = np.full(run.ensemble.count, plan.z_nominal.max(initial=0.0))
    for row in run.start_z:
        begun = np.maximum(begun, np.abs(row))
    rest = len(largest) - len(begun)
    begun = np.concatenate([begun, np.full(rest, begun[-1])])
    growth: Vector = np.divide(largest, begun, out=np.zeros_like(largest), where=begun > 0.0)
    return growth


def in_blocks(row: Vector, blocks: int, width: int) -> Matrix:
    """One number per variant, in blocks; the last block is filled up with its last variant."""
    rest = blocks * width - len(row)
    return (np.concatenate([row, np.full(rest, row[-1])]) if rest else row).reshape(blocks, width)


def _blank(values: Matrix, failed: Integers, recorded: Integers, reduce: str) -> None:
    """NaN for what failed; of trajectories, what was before stays."""
    for v in np.flatnonzero(failed >= 0):
        if reduce == "trajectory":
            values[v][:, recorded >= failed[v] + 1] = np.nan
        else:
            values[v] = np.nan
