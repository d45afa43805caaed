"""OpenFOAM: its files in both formats, and the real program against itself in one process."""

import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from examples.open_foam_cylinder.case import write_case
from examples.open_foam_cylinder.model import Cylinder, cylinder_system, simulate

import cosolve as cs
from cosolve.fields.adapters.openfoam import (
    FoamFile,
    _environment,
    entry,
    read_faces,
    read_points,
    write_patch_values,
)

real = pytest.mark.skipif(shutil.which("pimpleFoam") is None, reason="no OpenFOAM here")
H = 0.05
SMALL = {"around": 8, "outwards": 10}


def test_the_last_entry_wins_and_comments_do_not_count():
    text = "deltaT 1; /* deltaT 2; */\n// deltaT 3;\nmaxDeltaT 5;\nsub { deltaT 4; }\n"
    assert entry(text, "deltaT") == "4"
    assert entry(text, "endTime") is None


def test_lists_are_read_as_text_and_binary(tmp_path):
    rows = np.array([[0.0, 1.5, -2.0], [1e-300, 2.0, 3.25]])
    head = b'FoamFile { version 2.0; format %s; arch "LSB;label=32;scalar=64"; class x; object points; }\n'
    plain = tmp_path / "plain"
    plain.write_bytes(head % b"ascii" + b"2\n(\n(0 1.5 -2)\n(1e-300 2 3.25)\n)\n")
    packed = tmp_path / "packed"
    packed.write_bytes(head % b"binary" + b"2\n(" + rows.tobytes() + b")\n")
    assert np.array_equal(read_points(plain), rows)
    assert np.array_equal(read_points(packed), rows)
    faces = tmp_path / "faces"
    faces.write_bytes(head % b"ascii" + b"2\n(\n3(0 1 2)\n4(3 2 1 0)\n)\n")
    assert [face.tolist() for face in read_faces(faces)] == [[0, 1, 2], [3, 2, 1, 0]]
    offsets, labels = struct.pack("<3i", 0, 3, 7), struct.pack("<7i", 0, 1, 2, 3, 2, 1, 0)
    faces.write_bytes(head % b"binary" + b"3\n(" + offsets + b")\n7\n(" + labels + b")\n")
    assert [face.tolist() for face in read_faces(faces)] == [[0, 1, 2], [3, 2, 1, 0]]


@pytest.mark.parametrize("format", ["ascii", "binary"])
def test_values_at_the_end_of_a_field_win_and_are_cut_off_again(tmp_path, format):
    path = tmp_path / "pointDisplacement"
    head = f"FoamFile {{ version 2.0; format {format}; class pointVectorField; object x; }}\n"
    wall = "wall { type fixedValue; value uniform (1 2 3); }"
    path.write_text(head + f"internalField uniform (0 0 0);\nboundaryField\n{{\n    {wall}\n}}\n")
    values = np.array([[0.1, 1 / 3, -7.0], [2e-17, 0.0, 1.0]])
    before = path.read_bytes()
    length = write_patch_values(path, "wall", values)
    written = path.read_bytes()
    assert written.startswith(before)
    assert length == len(before)
    path.write_bytes(written[: len(head)] + written[length:])  # what was added, alone
    assert np.array_equal(FoamFile(path).patch_field("wall", 3, 2), values)
    path.write_bytes(before)
    assert np.array_equal(FoamFile(path).patch_field("wall", 3, 2), [[1, 2, 3], [1, 2, 3]])
    path.write_bytes((written[: len(head)] + written[length:])[:-30])
    with pytest.raises(cs.errors.SubsystemError, match="is incomplete"):
        FoamFile(path).patch_field("wall", 3, 2)


def one_process(case: Path, work: Path, times: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """Forces on the cylinder when OpenFOAM makes all steps by itself, the motion given as a table."""
    places = np.column_stack([np.zeros_like(heights), heights, np.zeros_like(heights)])
    return one_process_of(case, work, "cylinder", times, places)[:, :2]


def one_process_of(case: Path, work: Path, patch: str, times: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The same for a patch that moves as one in space."""
    shutil.copytree(case, work)
    program = shutil.which("pimpleFoam")
    env = {**_environment(program), **os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(["blockMesh"], cwd=work, env=env, stdout=subprocess.DEVNULL, check=True, timeout=60)
    table = "\n".join(f"({t:.12g} ({x:.17g} {y:.17g} {z:.17g}))" for t, (x, y, z) in zip(times, places, strict=True))
    motion = f"\nboundaryField {{ {patch} {{ type uniformFixedValue; uniformValue table ({table}); }} }}\n"
    forces = f'type forces; libs ("libforces.so"); patches ({patch}); rho rhoInf; rhoInf 1; CofR (0 0 0);'
    control = (
        f"\nendTime {times[-1]:.12g}; writeInterval 100000; timePrecision 12;\n"
        f"functions {{ all {{ {forces} writeControl timeStep; }} }}\n"
    )
    for name, text in (("0/pointDisplacement", motion), ("system/controlDict", control)):
        (work / name).write_text((work / name).read_text() + text)
    subprocess.run([program], cwd=work, env=env, stdout=subprocess.DEVNULL, check=True, timeout=600)
    lines = (work / "postProcessing/all/0/force.dat").read_text().splitlines()
    rows = [re.sub("[()]", " ", line).split()[1:4] for line in lines if not line.startswith("#")]
    return np.array(rows, dtype=float)


def same_digits(one: np.ndarray, other: np.ndarray) -> bool:
    """Equal as 12 printed digits of the larger component of each row, give or take one in the last."""
    scale = np.abs(one).max(axis=1, keepdims=True)
    return bool((np.abs(one - other) <= 1.5e-12 * scale).all())


@real
@pytest.mark.covers("FS-08", "FS-14")
def test_steps_in_processes_of_their_own_are_those_of_one_process(tmp_path):
    """History of the second-order scheme included; a trial between them leaves no trace."""
    write_case(tmp_path / "case", **SMALL)
    flow = cs.fields.OpenFoam(tmp_path / "case", "cylinder", density=1.0, rigid=True, timeout=120.0)
    flow.start(0.0)
    times = H * np.arange(5)
    heights = 0.02 * np.sin(20 * times)
    found = []
    for k in range(4):
        state = flow.save()
        once = flow.advance(times[k], times[k + 1], lambda t, k=k: np.array([0.0, heights[k + 1]]))
        if k == 2:
            flow.restore(state)
            other = flow.advance(times[k], times[k + 1], lambda t: np.array([0.0, 0.1]))
            flow.restore(state)
            again = flow.advance(times[k], times[k + 1], lambda t, k=k: np.array([0.0, heights[k + 1]]))
            assert np.array_equal(again, once)
            assert np.abs(other - once).max() > 0.1
        found.append(once)
    assert same_digits(one_process(tmp_path / "case", tmp_path / "one", times, heights), np.array(found))


@real
@pytest.mark.covers("FS-14")
def test_points_of_the_patch_move_as_told_in_both_formats(tmp_path):
    forces = {}
    for format in ("ascii", "binary"):
        case = tmp_path / format
        write_case(case, **SMALL)
        control = case / "system" / "controlDict"
        control.write_text(control.read_text() + f"writeFormat {format};\n")
        flow = cs.fields.OpenFoam(case, "cylinder", density=1.0, timeout=120.0)
        mesh = flow.meshes["displacement"]
        assert np.allclose(np.linalg.norm(mesh.points, axis=1), 0.5)
        assert (mesh.n_points, mesh.n_cells) == (32, 32)
        flow.start(0.0)
        shift = 0.02 * mesh.points + [0.01, 0.0]  # swells and moves
        forces[format] = flow.advance(0.0, H, lambda t, u=shift: u.ravel())
        moved = flow.snapshot()
        wanted = mesh.points + shift
        nearest = np.abs(moved.points[:, np.newaxis] - wanted).sum(axis=2).min(axis=0)
        assert nearest.max() < 1e-12
        assert moved.cell_data["velocity"].shape == (moved.n_cells, 2)
    # blockMesh writes the points of one with 12 digits
    assert np.allclose(forces["ascii"], forces["binary"], rtol=1e-8, atol=1e-9)


def write_cube(case: Path, cells: int = 3) -> None:
    """A cube of 1 m in a flow in space: 26 blocks around it, each of `cells` to the third; schemes of the cylinder."""
    write_case(case, **SMALL)
    ticks = [(-3.0, -0.5, 0.5, 5.0), (-2.5, -0.5, 0.5, 2.0), (-2.0, -0.5, 0.5, 3.0)]
    vertices = [f"({ticks[0][i]} {ticks[1][j]} {ticks[2][k]})" for i, j, k in np.ndindex(4, 4, 4)]
    unit = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]])
    sides = {(0, 0): (0, 4, 7, 3), (0, 1): (1, 2, 6, 5), (1, 0): (0, 1, 5, 4), (1, 1): (3, 7, 6, 2)}
    sides |= {(2, 0): (0, 3, 2, 1), (2, 1): (4, 5, 6, 7)}
    blocks, patches = [], {"inlet": [], "outlet": [], "sides": [], "cube": []}
    for place in np.ndindex(3, 3, 3):
        corners = [int(np.dot(place + step, (16, 4, 1))) for step in unit]
        if place != (1, 1, 1):
            blocks.append(f"hex ({' '.join(map(str, corners))}) ({cells} {cells} {cells}) simpleGrading (1 1 1)")
        for (axis, end), four in sides.items():
            face = f"({' '.join(str(corners[n]) for n in four)})"
            if place == (1, 1, 1):
                patches["cube"].append(face)
            elif place[axis] == 2 * end:
                patches[("inlet", "outlet")[end] if axis == 0 else "sides"].append(face)
    boundary = "\n".join(
        f"{name} {{ type {'wall' if name == 'cube' else 'patch'}; faces ({' '.join(faces)}); }}"
        for name, faces in patches.items()
    )
    lists = {"vertices": vertices, "blocks": blocks, "edges": []}
    mesh = "scale 1;\n" + "".join(f"{name}\n(\n" + "\n".join(rows) + "\n);\n" for name, rows in lists.items())
    head = "FoamFile {{ version 2.0; format ascii; class {}; object {}; }}\n"
    dictionary = case / "system" / "blockMeshDict"
    dictionary.write_text(head.format("dictionary", "blockMeshDict") + mesh + f"boundary\n(\n{boundary}\n);\n")
    for path in [*(case / "0").iterdir(), case / "constant" / "dynamicMeshDict"]:
        text = path.read_text().replace("cylinder", "cube").replace("across { type empty; }", "")
        path.write_text(text)


@real
@pytest.mark.slow
@pytest.mark.covers("FS-08", "FS-14")
def test_a_body_in_space_is_pushed_and_turned_and_its_steps_are_repeated(tmp_path):
    """Three values per point of the surface, in and out; a trial between two subsystem steps leaves no trace."""
    write_cube(tmp_path / "case")
    flow = cs.fields.OpenFoam(tmp_path / "case", "cube", density=2.0, timeout=120.0)
    mesh = flow.meshes["force"]
    assert (mesh.points.shape, mesh.n_cells) == ((56, 3), 54)
    x, y, z = mesh.points.T
    shift = 0.02 * np.column_stack([1 + 0 * x, z * z, -y * x])  # forwards, with a bulge and a twist
    assert flow.start(0.0).size == 3 * 56
    flow.advance(0.0, H, lambda t: shift.ravel())
    state = flow.save()
    once = flow.advance(H, 2 * H, lambda t: 1.5 * shift.ravel())
    moved = flow.snapshot()
    assert np.abs(moved.points[:, np.newaxis] - (mesh.points + 1.5 * shift)).sum(axis=2).min(axis=0).max() < 1e-12
    assert np.allclose(moved.cell_data["force"].sum(axis=0), once.reshape(-1, 3).sum(axis=0), rtol=1e-12, atol=1e-12)
    flow.restore(state)
    other = flow.advance(H, 2 * H, lambda t: -shift.ravel())
    assert (np.abs(other - once).reshape(-1, 3).max(axis=0) > 1e-2).all(), "each component answers"
    flow.restore(state)
    assert flow.advance(H, 2 * H, lambda t: 1.5 * shift.ravel()).tobytes() == once.tobytes()


@real
@pytest.mark.slow
@pytest.mark.covers("FS-14")
def test_a_body_that_moves_as_one_in_space_is_that_of_one_process(tmp_path):
    write_cube(tmp_path / "case")
    flow = cs.fields.OpenFoam(tmp_path / "case", "cube", density=1.0, rigid=True, timeout=120.0)
    assert flow.start(0.0).size == 3
    times = H * np.arange(5)
    places = 0.02 * np.column_stack([times, np.sin(20 * times), np.cos(15 * times) - 1.0])
    found = []
    for k in range(4):
        state = flow.save()
        flow.advance(times[k], times[k + 1], lambda t: np.array([0.05, 0.0, -0.05]))
        flow.restore(state)
        found.append(flow.advance(times[k], times[k + 1], lambda t, k=k: places[k + 1]))
    assert same_digits(one_process_of(tmp_path / "case", tmp_path / "one", "cube", times, places), np.array(found))


@real
@pytest.mark.slow
@pytest.mark.covers("FS-14")
def test_a_coupled_cylinder_is_that_of_one_process(tmp_path):
    """200 macro steps with iterations; what the flow was told in the subsystem steps that count goes to one process."""
    parameters = Cylinder()
    system = cylinder_system(tmp_path / "case", parameters)
    flow = system.subsystems["flow"]
    told, original = {(0.0, 0.0): 0.0}, flow.advance

    def advance(t0, t1, u):
        force = original(t0, t1, u)
        told[tuple(force)] = float(u(t1)[1])
        return force

    flow.advance = advance
    result = simulate(system, parameters, 200)
    force = result["flow.force"]
    heights = np.array([told[tuple(row)] for row in force])
    alone = one_process(tmp_path / "case", tmp_path / "one", result.t, heights)
    assert np.abs(result["cylinder.y"]).max() > 1e-3
    assert np.mean(result.iterations + 1) <= 4
    assert np.abs(alone - force[1:]).max() <= 1e-11 * np.abs(alone).max()
