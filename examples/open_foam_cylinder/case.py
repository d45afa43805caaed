"""The files of a small OpenFOAM case: flow past a cylinder that moves up and down, in a box of five blocks.

Lengths in diameters, velocities in those of the inflow; one cell across, so that forces are per metre of depth.
"""

from __future__ import annotations

from pathlib import Path

HALF = 6.0  # half height of the channel
OUTLET = 18.0


def write_case(
    folder: Path, *, reynolds: float = 100.0, around: int = 20, outwards: int = 30, step: float = 0.05
) -> None:
    """Write the case; `around` cells on a quarter of the cylinder, `outwards` from it to the sides."""
    files = {
        "system/blockMeshDict": _mesh(around, outwards),
        "system/controlDict": f"""
application     pimpleFoam;
startFrom       startTime;
startTime       0;
stopAt          endTime;
endTime         1;
deltaT          {step};
writeControl    timeStep;
writeInterval   1;
writeFormat     ascii;
writePrecision  12;
""",
        "system/fvSchemes": """
ddtSchemes           { default backward; }
gradSchemes          { default Gauss linear; }
divSchemes
{
    default                                none;
    div(phi,U)                             Gauss linearUpwind grad(U);
    div((nuEff*dev2(T(grad(U)))))          Gauss linear;
}
laplacianSchemes     { default Gauss linear corrected; }
interpolationSchemes { default linear; }
snGradSchemes        { default corrected; }
""",
        "system/fvSolution": """
solvers
{
    "p|pFinal"           { solver PCG; preconditioner DIC; tolerance 1e-9; relTol 0; }
    "pcorr|pcorrFinal"   { solver PCG; preconditioner DIC; tolerance 1e-9; relTol 0; }
    "U|UFinal"           { solver PBiCGStab; preconditioner DILU; tolerance 1e-10; relTol 0; }
    cellDisplacement     { solver PCG; preconditioner DIC; tolerance 1e-10; relTol 0; }
}
PIMPLE { nOuterCorrectors 2; nCorrectors 2; nNonOrthogonalCorrectors 0; correctPhi no; }
""",
        "constant/transportProperties": f"transportModel Newtonian;\nnu {1 / reynolds:.12g};\n",
        "constant/turbulenceProperties": "simulationType laminar;\n",
        "constant/dynamicMeshDict": """
dynamicFvMesh        dynamicMotionSolverFvMesh;
motionSolverLibs     ("libfvMotionSolvers.so");
motionSolver         displacementLaplacian;
diffusivity          inverseDistance (cylinder);
""",
        # the slant of the first velocities breaks the symmetry, so that vortices begin to shed
        "0/U": _field(
            "volVectorField", "[0 1 -1 0 0 0 0]", "(1 0.2 0)",
            inlet="type fixedValue; value uniform (1 0 0);",
            outlet="type inletOutlet; inletValue uniform (0 0 0); value uniform (1 0 0);",
            sides="type slip;",
            cylinder="type movingWallVelocity; value uniform (0 0 0);",
        ),
        "0/p": _field(
            "volScalarField", "[0 2 -2 0 0 0 0]", "0",
            inlet="type zeroGradient;", outlet="type fixedValue; value uniform 0;", sides="type slip;",
            cylinder="type zeroGradient;",
        ),
        "0/pointDisplacement": _field(
            "pointVectorField", "[0 1 0 0 0 0 0]", "(0 0 0)",
            **dict.fromkeys(("inlet", "outlet", "sides", "cylinder"), "type fixedValue; value uniform (0 0 0);"),
        ),
    }  # fmt: skip
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        kind = "dictionary"
        if name.startswith("0/"):
            kind, _, text = text.partition("\n")
        header = f"FoamFile {{ version 2.0; format ascii; class {kind}; object {path.name}; }}\n"
        path.write_text(header + text)


def _field(kind: str, dimensions: str, inside: str, **patches: str) -> str:
    """A field file: class in the first line, then the body; the two sides across the plane are `empty`."""
    patches["across"] = "type empty;"
    boundary = "\n".join(f"    {name} {{ {text} }}" for name, text in patches.items())
    return f"{kind}\ndimensions {dimensions};\ninternalField uniform {inside};\nboundaryField\n{{\n{boundary}\n}}\n"


def _mesh(around: int, outwards: int) -> str:
    """A ring of four blocks between cylinder and square, and a wake behind it."""
    c, r = 0.5 / 2**0.5, 0.5
    # corners of the ring, inner then outer, counter-clockwise from the lower right; then the end of the wake
    plane = [(c, -c), (c, c), (-c, c), (-c, -c), (HALF, -HALF), (HALF, HALF), (-HALF, HALF), (-HALF, -HALF)]
    plane += [(OUTLET, -HALF), (OUTLET, HALF)]
    n = len(plane)
    vertices = [f"({x:.12g} {y:.12g} {z})" for z in (0, 1) for x, y in plane]
    middles = [(r, 0.0), (0.0, r), (-r, 0.0), (0.0, -r)]  # of the arcs
    blocks, arcs, wall = [], [], []
    for k in range(4):
        a, b = k, (k + 1) % 4
        corners = (a, a + 4, b + 4, b)
        blocks.append(_block(corners, n, (outwards, around), 20))
        arcs += [f"arc {a + s} {b + s} ({middles[k][0]} {middles[k][1]} {z})" for s, z in ((0, 0), (n, 1))]
        wall.append(_side(a, b, n))
    blocks.append(_block((4, 8, 9, 5), n, (outwards, around), 2))
    across = [
        f"({' '.join(str(i + s) for i in corners)})"
        for s in (0, n)
        for corners in (*((k, k + 4, (k + 1) % 4 + 4, (k + 1) % 4) for k in range(4)), (4, 8, 9, 5))
    ]
    patches = {
        "cylinder": ("wall", wall),
        "inlet": ("patch", [_side(6, 7, n)]),
        "outlet": ("patch", [_side(8, 9, n)]),
        "sides": ("patch", [_side(5, 6, n), _side(7, 4, n), _side(4, 8, n), _side(9, 5, n)]),
        "across": ("empty", across),
    }
    boundary = "\n".join(f"{name} {{ type {kind}; faces ({' '.join(f)}); }}" for name, (kind, f) in patches.items())
    lists = {"vertices": vertices, "blocks": blocks, "edges": arcs}
    body = "\n".join(f"{name}\n(\n" + "\n".join(rows) + "\n);" for name, rows in lists.items())
    return f"scale 1;\n{body}\nboundary\n(\n{boundary}\n);\nmergePatchPairs ();\n"


def _block(corners: tuple[int, ...], n: int, cells: tuple[int, int], grading: float) -> str:
    eight = " ".join(str(i) for i in (*corners, *(i + n for i in corners)))
    return f"hex ({eight}) ({cells[0]} {cells[1]} 1) simpleGrading ({grading} 1 1)"


def _side(a: int, b: int, n: int) -> str:
    return f"({a} {b} {b + n} {a + n})"
