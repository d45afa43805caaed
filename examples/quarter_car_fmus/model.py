"""A quarter car of two FMUs that are made on the spot, and its exact motion.

The car stands still and meets a kerb of 5 cm. Chassis and wheel are FMUs that know nothing of each other; they are
coupled in a loop: motion of the wheel -> suspension in the chassis -> force on the wheel. The same equations as one
linear system, propagated by the matrix exponential, are the reference. Parameters: `parts.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.linalg import expm

import cosolve as cs
from examples.quarter_car_fmus.parts import chassis, wheel

PARTS = Path(__file__).with_name("parts.py")
KERB = 0.05

SYSTEM_FILE = """# The quarter car for the command line:  cosolve run car.toml --report car.html
[subsystems.chassis]
fmu = "chassis.fmu"

[subsystems.wheel]
fmu = "wheel.fmu"
parameters = {mass = 35.0}

[[connections]]
from = "wheel.z"
to = "chassis.z_wheel"

[[connections]]
from = "wheel.v"
to = "chassis.v_wheel"

[[connections]]
from = "chassis.force"
to = "wheel.force"

[constants]
wheel.road = 0.05

[simulation]
t_end = 1.5
method = {name = "semi-implicit", degree = 1}
step = 5e-3
"""


def make_fmus(folder: Path, version: str = "2.0") -> list[Path]:
    """Export both halves into a folder, with a system file that couples them."""
    (folder / "car.toml").write_text(SYSTEM_FILE)
    return [
        cs.fmi.export_fmu(f"{PARTS}:{name}", folder / f"{name}.fmu", version=version) for name in ("chassis", "wheel")
    ]


def coupled(one: cs.Subsystem, two: cs.Subsystem) -> cs.System:
    """The loop; the parts are FMUs, or what the FMUs were made of."""
    car = cs.System({"chassis": one, "wheel": two})
    car.connect("wheel.z", "chassis.z_wheel")
    car.connect("wheel.v", "chassis.v_wheel")
    car.connect("chassis.force", "wheel.force")
    car.set("wheel.road", KERB)
    return car


def from_fmus(folder: Path) -> cs.System:
    """The car of the two FMUs in a folder."""
    return coupled(cs.load_fmu(folder / "chassis.fmu"), cs.load_fmu(folder / "wheel.fmu"))


def exact(t: np.ndarray) -> dict[str, np.ndarray]:
    """Motion of chassis and wheel, and the force between them, from one linear system; `t` in equal steps."""
    one, two = chassis(), wheel()
    # states: chassis z, v; wheel z, v; and a constant 1 for the road
    force = np.array([*one.C[1], *one.D[1], 0.0])
    A = np.zeros((5, 5))
    A[0:2, 0:2], A[0:2, 2:4] = one.A, one.B
    A[2:4, 2:4], A[2:4, 4] = two.A, two.B[:, 1] * KERB
    A[2:4] += np.outer(two.B[:, 0], force)
    x = np.zeros((len(t), 5))
    x[0, 4] = 1.0
    step = expm(A * (t[1] - t[0]))
    for n in range(len(t) - 1):
        x[n + 1] = step @ x[n]
    return {"chassis.z": x[:, 0], "wheel.z": x[:, 2], "chassis.force": x @ force}
