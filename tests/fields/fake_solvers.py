"""Small programs that stand in for solvers of other people, and misbehave on demand.

`FAKE` in the environment says how, from the time `FAKE_FROM` on; each writes its process number into `FAKE_PID`.
"""

import sys
from pathlib import Path

_HEAD = f"""#!{sys.executable} -IS
import json, os, pathlib, re, signal, sys, time

def misbehaves(end):
    return os.environ.get("FAKE", "") if end > float(os.environ.get("FAKE_FROM", "0")) else ""

def begin(end):
    mode = misbehaves(end)
    if "FAKE_PID" in os.environ:
        pathlib.Path(os.environ["FAKE_PID"]).write_text(str(os.getpid()))
    if mode == "fail":
        print("reading the mesh")
        print("negative Jacobian in element 17", flush=True)
        sys.exit(3)
    if mode == "hang":
        print("thinking", flush=True)
        time.sleep(600)
    if mode == "killed":
        print("working", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    if mode == "nothing":
        sys.exit(0)
    return mode
"""

#: A solid whose nodes move by 1 mm per newton and step, and remember.
_CCX = """
job = sys.argv[1]
deck = pathlib.Path(job + ".inp").read_text()
length = float(re.search(r"\\*(?:DYNAMIC|STATIC)[^\\n]*\\n([^\\n]*)", deck).group(1).split(",")[1])
static = "*STATIC" in deck
state = json.loads(pathlib.Path(job + ".rin").read_text()) if "*RESTART, READ" in deck else {"t": 0.0, "u": {}}
end = state["t"] + length
mode = begin(end)
for line in re.search(r"\\*CLOAD\\n(.*?)\\n\\*", deck, re.S).group(1).splitlines():
    node, axis, force = line.split(",")
    key = node.strip() + " " + axis.strip()
    state["u"][key] = state["u"].get(key, 0.0) + 1e-3 * float(force)
state["t"] = end
text = f"\\n displacements (vx,vy,vz) for set COSOLVE_ALL and time  {end:.7E}\\n\\n"
for node in (1, 2, 3):
    u = [float("nan") if mode == "nan" else state["u"].get(f"{node} {axis}", 0.0) for axis in (1, 2)]
    text += f"{node:10d} {u[0]:.6E} {u[1]:.6E} 0.000000E+00\\n"
pathlib.Path(job + ".dat").write_text(text[: -40] if mode == "half" else text)
if not static and mode != "no restart":
    pathlib.Path(job + ".rout").write_text(json.dumps(state))
"""

#: A fluid that pushes back with 10 N per metre and remembers how far it was pushed in all.
_FOAM = """
control = pathlib.Path("system/controlDict").read_text()
start = re.findall(r"startTime ([^;]*);", control)[-1]
end = re.findall(r"endTime ([^;]*);", control)[-1]
mode = begin(float(end))
here, there = pathlib.Path(start), pathlib.Path(f"{float(end):.12g}")
motion = (here / "pointDisplacement").read_text()
rows = [tuple(map(float, row.split())) for row in re.findall(r"\\(([^()]*)\\)", motion.rpartition("List<vector>")[2])]
pushed = float((here / "pushed").read_text()) if (here / "pushed").exists() else 0.0
pushed += sum(row[1] for row in rows) / len(rows)
there.mkdir()
(there / "pointDisplacement").write_text(motion.partition("\\n// end")[0] + "\\n// end\\n")
(there / "pushed").write_text(repr(pushed))
force = "nan" if mode == "nan" else f"{-10 * pushed:.17g}"
text = "FoamFile { version 2.0; format ascii; class volVectorField; object force; }\\ninternalField uniform (0 0 0);\\n"
text += "boundaryField\\n{\\n    wall\\n    {\\n        type calculated;\\n"
text += "        value nonuniform List<vector>\\n1\\n(\\n"
text += f"(1 {force} 0)\\n)\\n;" + "\\n    }\\n}\\n"
(there / "cosolve:force").write_text(text[:-25] if mode == "half" else text)
"""


def write_fakes(folder: Path) -> tuple[Path, Path]:
    """Write the programs; where they are."""
    folder.mkdir(exist_ok=True)
    paths = folder / "ccx", folder / "pimpleFoam"
    for path, text in zip(paths, (_CCX, _FOAM), strict=True):
        path.write_text(_HEAD + text)
        path.chmod(0o755)
    return paths


def write_triangle(path: Path, procedure: str = "*DYNAMIC, DIRECT") -> Path:
    """A deck with one triangle, of which two nodes are coupled."""
    path.write_text(
        "** one triangle\n*NODE, NSET=ALL\n1, 0, 0\n2, 1, 0\n3, 0, 1\n*ELEMENT, TYPE=CPE3, ELSET=E\n1, 1, 2, 3\n"
        f"*NSET, NSET=edge, GENERATE\n2, 3, 1\n*STEP\n{procedure}\n0.1, 1.0\n*END STEP\n"
    )
    return path


def write_box(case: Path) -> Path:
    """A case with one cell in a plane, whose upper side is the patch `wall`."""
    points = [(x, y, z) for z in (0, 0.5) for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))]
    faces = [(3, 7, 6, 2), (0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (0, 4, 7, 3)]
    patches = {"wall": ("wall", 1, 0), "across": ("empty", 2, 1), "sides": ("patch", 3, 3)}
    boundary = "".join(
        f"{name} {{ type {kind}; nFaces {n}; startFace {first}; }}\n" for name, (kind, n, first) in patches.items()
    )
    files = {
        "constant/polyMesh/points": "8\n(\n" + "\n".join(f"({x} {y} {z})" for x, y, z in points) + "\n)\n",
        "constant/polyMesh/faces": "6\n(\n" + "\n".join(f"4({' '.join(map(str, f))})" for f in faces) + "\n)\n",
        "constant/polyMesh/owner": "6\n(\n0\n0\n0\n0\n0\n0\n)\n",
        "constant/polyMesh/boundary": f"3\n(\n{boundary})\n",
        "system/controlDict": "application pimpleFoam;\ndeltaT 0.1; // steps\nwriteFormat ascii;\n",
        "0/pointDisplacement": "internalField uniform (0 0 0);\n"
        "boundaryField\n{\n    wall { type fixedValue; value uniform (0 0 0); }\n}\n// end\n",
    }  # fmt: skip
    for name, text in files.items():
        path = case / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"FoamFile {{ version 2.0; format ascii; object {path.name}; }}\n{text}")
    return case
