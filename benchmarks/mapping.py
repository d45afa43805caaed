"""Build and apply times of the field mappings between two triangulated surfaces of 10 000 and 20 000 points.

Both meshes lie on a quarter of a cylinder and do not match. Target (PF-6): a radial basis operator built in at most 1.5
times what preCICE takes (253 to 298 ms there), and applied at least five times faster (8 to 24 ms there, with
transport). Loops are compiled before the clock starts. Wall time is the median of some runs; CPU time, which a busy
machine disturbs less, the least. `MB` is the size of the operator. Run with

    python benchmarks/mapping.py                              10 000 -> 20 000 points
    python benchmarks/mapping.py --scale 4                    four times as many
    python benchmarks/mapping.py --scale 50 --only barycentric "partition of unity" --repeats 1
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter, process_time

import numpy as np

from cosolve.mapping import (
    FieldMapping,
    Mesh,
    barycentric,
    dual_mortar,
    mortar,
    nearest_neighbour,
    partition_of_unity,
    radial_basis,
)

REPEATS = 5
Build = Callable[[Mesh, Mesh], FieldMapping]
METHODS: dict[str, Build] = {
    "nearest neighbour": nearest_neighbour,
    "barycentric": barycentric,
    "radial basis": radial_basis,
    "partition of unity": partition_of_unity,
    "dual mortar": dual_mortar,
    "mortar": mortar,
}


def quarter_cylinder(around: int, along: int, shift: float, name: str) -> Mesh:
    """Triangles on a quarter of a cylinder; `shift` moves the inner points along the surface."""
    s, z = (a.ravel() for a in np.meshgrid(np.linspace(0, 1, around), np.linspace(0, 1, along), indexing="ij"))
    angle = np.pi / 2 * (s + shift * np.sin(np.pi * s) * np.cos(3 * z))
    points = np.column_stack([np.cos(angle), np.sin(angle), z + shift * np.sin(np.pi * z) * np.sin(2 * s)])
    corner = (np.arange(around - 1)[:, np.newaxis] * along + np.arange(along - 1)).ravel()
    lower = np.column_stack([corner, corner + along, corner + along + 1])
    upper = np.column_stack([corner, corner + along + 1, corner + 1])
    return Mesh(points, triangles=np.concatenate([lower, upper]), name=name)


def seconds(function: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Median wall time of a call, and least CPU time."""
    wall, cpu = [], []
    for _ in range(repeats):
        start = perf_counter(), process_time()
        function()
        wall.append(perf_counter() - start[0])
        cpu.append(process_time() - start[1])
    return median(wall), min(cpu)


def built_and_used(build: Build, source: Mesh, target: Mesh, field: np.ndarray) -> None:
    """A mortar operator is factorised at its first use."""
    build(source, target).consistent(field)


def megabytes(mapping: FieldMapping) -> float:
    """What the arrays of the operator take."""
    matrix = mapping.matrix
    return (matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1, help="that many times the points")
    parser.add_argument("--only", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--repeats", type=int, default=REPEATS)
    options = parser.parse_args()
    small = [quarter_cylinder(16, 16, 0.05, "source"), quarter_cylinder(8, 8, -0.05, "target")]
    factor = np.sqrt(options.scale)
    source = quarter_cylinder(round(100 * factor), round(100 * factor), 0.05, "source")
    target = quarter_cylinder(round(160 * factor), round(125 * factor), -0.05, "target")
    field = np.sin(3 * source.points[:, 0]) + source.points[:, 2]
    exact = np.sin(3 * target.points[:, 0]) + target.points[:, 2]
    load = np.random.default_rng(1).random(target.n_points)
    print(f"{source.n_points} -> {target.n_points} points, {source.n_cells} -> {target.n_cells} triangles")
    print(
        f"{'method':20}{'build ms':>10}{'CPU ms':>9}{'u ms':>8}{'f ms':>8}{'entries':>11}{'MB':>7}{'error':>10}"
        f"{'|row sum - 1|':>15}"
    )
    for name in options.only:
        build = METHODS[name]
        build(*small)
        mapping = build(source, target)
        wall, cpu = seconds(partial(built_and_used, build, source, target, field), options.repeats)
        to = seconds(partial(mapping.consistent, field), 10 * options.repeats)[1]
        back = seconds(partial(mapping.conservative, load), 10 * options.repeats)[1]
        error = abs(mapping.consistent(field) - exact).max()
        sums = max(abs(s - 1) for s in mapping.report().row_sums)
        print(
            f"{name:20}{1e3 * wall:10.1f}{1e3 * cpu:9.1f}{1e3 * to:8.3f}{1e3 * back:8.3f}{mapping.matrix.nnz:11d}"
            f"{megabytes(mapping):7.1f}{error:10.1e}{sums:15.1e}"
        )
    print(f"largest resident memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")


if __name__ == "__main__":
    main()
