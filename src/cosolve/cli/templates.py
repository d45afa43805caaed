"""The projects that `cosolve new` makes: their files as texts, and what is built besides.

All four couple the same quarter car on a kerb, so that one can be compared with the other: as two FMUs, as two Python
functions, as a system file, as an SSP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

PARTS = '''"""The two halves of a quarter car. Write your own equations in their place.

An argument with a default becomes a parameter: of the system file, and of the FMU that `cosolve export` makes.
"""

import cosolve as cs


def body(mass=300.0, stiffness=2e4, damping=1500.0):
    """The body on its suspension: takes the motion of the wheel, gives its own and the force on the wheel."""

    def suspension(x, u):
        return stiffness * (x[0] - u[0]) + damping * (x[1] - u[1])

    return cs.Ode(
        lambda t, x, u: [x[1], -suspension(x, u) / mass],  # x' = f(t, x, u)
        lambda t, x, u: [x[0], x[1], suspension(x, u)],  # y = g(t, x, u)
        x0=[0.0, 0.0],
        inputs=[cs.Port("z_wheel", unit="m"), cs.Port("v_wheel", unit="m/s")],
        outputs=[cs.Port("z", unit="m"), cs.Port("v", unit="m/s"), cs.Port("force", unit="N")],
    )


def wheel(mass=40.0, tyre=2e5):
    """The wheel between tyre and suspension, on a road of a given height."""
    return cs.Ode(
        lambda t, x, u: [x[1], (u[0] + tyre * (u[1] - x[0])) / mass],
        lambda t, x, u: x,
        x0=[0.0, 0.0],
        inputs=[cs.Port("force", unit="N"), cs.Port("road", unit="m")],
        outputs=[cs.Port("z", unit="m"), cs.Port("v", unit="m/s")],
    )
'''

RUN = '''"""Couple the two halves, say before the run whether it is stable, run, draw and write a report."""

import cosolve as cs
from parts import body, wheel

car = cs.System({"body": body(), "wheel": wheel()})
car.connect("wheel.z", "body.z_wheel")
car.connect("wheel.v", "body.v_wheel")
car.connect("body.force", "wheel.force")
car.set("wheel.road", 0.05)  # a kerb of 5 cm

method, step = cs.SemiImplicit(degree=1), 5e-3
print(cs.check(car, method, step))
result = cs.simulate(car, t_end=1.5, method=method, step=step, save="result.h5", error_bar=True)
print(result.stats)
print(result.error_bar.sentence)
result.plot("body.z", "wheel.z", path="result.png")
cs.write_report(result, "report.html")
print("look at result.png and report.html")
'''

_SIMULATION = """
[[connections]]
from = "wheel.z"
to = "body.z_wheel"

[[connections]]
from = "wheel.v"
to = "body.v_wheel"

[[connections]]
from = "body.force"
to = "wheel.force"

[constants]
wheel.road = 0.05                                      # a kerb of 5 cm

[simulation]
t_end = 1.5
method = {name = "semi-implicit", degree = 1}
step = 5e-3

[output]
file = "result.h5"
plot = ["body.z", "wheel.z"]
"""

FUNCTIONS = f"""# Two Python functions, coupled. Every key: docs/system-files.md
[subsystems.body]
factory = "parts:body"                                 # a function in parts.py, beside this file
parameters = {{mass = 300.0, stiffness = 2e4, damping = 1500.0}}

[subsystems.wheel]
factory = "parts:wheel"
parameters = {{mass = 40.0}}
{_SIMULATION}"""

FMUS = f"""# Two FMUs, coupled. Every key: docs/system-files.md
[subsystems.body]
fmu = "body.fmu"                                       # relative to this file
parameters = {{mass = 300.0, stiffness = 2e4, damping = 1500.0}}

[subsystems.wheel]
fmu = "wheel.fmu"
parameters = {{mass = 40.0}}
{_SIMULATION}"""

_FROM_FILE = """# {name}

{about}

    cosolve check {file}                    # is it stable? said before the run
    cosolve run {file} --report report.html # result.h5, a picture, a page to look at
    cosolve compare {file}                  # which method is best for it?
"""
_MADE = """
The FMUs were made from parts.py. After a change there:

    cosolve export parts.py:body body.fmu
    cosolve export parts.py:wheel wheel.fmu
"""
_FMU_MADE = (
    _MADE
    + """
Your own FMUs: put them here, `cosolve inspect NAME.fmu` shows their ports, and write those into system.toml; or let
`cosolve new OTHER --fmu a.fmu --fmu b.fmu` begin it for you.
"""
)
_SSP_MADE = (
    _MADE
    + """    python make_ssp.py

An SSP from another tool runs in the same way: `cosolve run other.ssp`.
"""
)

MAKE_SSP = '''"""Write car.ssp from the two FMUs."""

from pathlib import Path

import cosolve as cs

here = Path(__file__).parent
car = cs.System({name: cs.load_fmu(here / f"{name}.fmu") for name in ("body", "wheel")})
car.connect("wheel.z", "body.z_wheel")
car.connect("wheel.v", "body.v_wheel")
car.connect("body.force", "wheel.force")
car.set("wheel.road", 0.05)  # a kerb of 5 cm
cs.write_ssp(car, here / "car.ssp", method=cs.SemiImplicit(degree=1), step=5e-3, t_end=1.5)
'''

_PYTHON_README = """# {name}

{about}

    python run.py                           # result.h5, result.png, report.html

parts.py has the two models, run.py couples them.
"""


@dataclass(frozen=True)
class Template:
    """A project: what it is, its files (with `{name}`, `{about}` and `{file}` in the README), and how it is run."""

    about: str
    file: str
    files: Mapping[str, str]
    readme: str
    build: Callable[[Path], None] = field(default=lambda folder: None)

    @property
    def commands(self) -> list[str]:
        """What to type in the new folder, in this order."""
        if self.file.endswith(".py"):
            return [f"python {self.file}"]
        return [f"cosolve check {self.file}", f"cosolve run {self.file} --report report.html"]

    def write(self, folder: Path) -> None:
        """All files into a folder that is there and empty."""
        for name, text in self.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        text = self.readme.format(name=folder.resolve().name, about=self.about, file=self.file)
        (folder / "README.md").write_text(text, encoding="utf-8")
        self.build(folder)


def _export_parts(folder: Path) -> None:
    from cosolve.io.fmu_export import export_fmu

    for name in ("body", "wheel"):
        export_fmu(f"{folder / 'parts.py'}:{name}", folder / f"{name}.fmu")


def _write_ssp(folder: Path) -> None:
    import runpy

    _export_parts(folder)
    runpy.run_path(str(folder / "make_ssp.py"))


TEMPLATES: Mapping[str, Template] = {
    "fmu-pair": Template(
        "Two FMUs in a loop: a quarter car on a kerb.",
        "system.toml",
        {"parts.py": PARTS, "system.toml": FMUS},
        _FROM_FILE + _FMU_MADE,
        _export_parts,
    ),
    "python-pair": Template(
        "Two Python models in a loop: a quarter car on a kerb.",
        "run.py",
        {"parts.py": PARTS, "run.py": RUN},
        _PYTHON_README,
    ),
    "toml": Template(
        "A system file that couples two Python functions: a quarter car on a kerb.",
        "system.toml",
        {"parts.py": PARTS, "system.toml": FUNCTIONS},
        _FROM_FILE,
    ),
    "ssp": Template(
        "A system structure (SSP) of two FMUs: a quarter car on a kerb.",
        "car.ssp",
        {"parts.py": PARTS, "make_ssp.py": MAKE_SSP},
        _FROM_FILE + _SSP_MADE,
        _write_ssp,
    ),
}
