"""The pages of the API reference: every public name in one area, from the list of public names.

`docs/conf.py` has them written before the site is built; they are not kept in the repository. Which area a name belongs
to follows from the room that it lives in (`src/cosolve/__init__.pyi`), so that a new name appears by itself, and a new
room must be given its area here.
"""

from __future__ import annotations

import ast
from pathlib import Path

_STUB = Path(__file__).resolve().parents[1] / "src" / "cosolve" / "__init__.pyi"

#: File, title, sentence and rooms of each area, in the order of the site. A longer room comes before a shorter one.
AREAS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    (
        "systems",
        "Systems",
        "What is coupled, and how: subsystems, ports, connections, laws, equations.",
        ("interface",),
    ),
    (
        "subsystems",
        "Subsystems",
        "Models that take part: equations, matrices, formulas, structures, and your own.",
        ("subsystem", "structures", "elements", "signal"),
    ),
    (
        "fmus",
        "FMUs and SSP",
        "Models from other tools, in and out.",
        ("fmu", "io.fmu_export", "io.ssp", "io.crosscheck"),
    ),
    ("methods", "Coupling methods", "How a macro step is taken.", ("method",)),
    ("correctors", "Correctors", "How interface equations are solved.", ("corrector",)),
    (
        "runs",
        "Runs and steps",
        "Simulate, step by hand, pause and go on, choose method and step, control the step.",
        ("run", "stepsize", "auto", "io", "engine"),
    ),
    (
        "results",
        "Results and reports",
        "What comes of a run: values, files, pictures, pages.",
        ("result", "report", "viewer"),
    ),
    ("analysis", "Analysis", "Stability, convergence, advice before the run.", ("analysis",)),
    ("sweeps", "Sweeps", "Many runs at once.", ("sweeps",)),
    ("multibody", "Multibody models", "Bodies, joints, and joints between solvers.", ("multibody",)),
    (
        "fields",
        "Fields and meshes",
        "Flows and solids on meshes, and values carried from mesh to mesh.",
        ("fields", "mapping"),
    ),
    ("jax", "JAX", "Subsystems with automatic derivatives.", ("jax",)),
    ("processes", "Processes and machines", "Subsystems that run elsewhere.", ("process", "participants", "precice")),
    ("errors", "Errors and warnings", "What cosolve raises on purpose.", ("errors",)),
)

#: Packages with names of their own, shown whole at the end of an area: `import cosolve.mapping as cm`.
PACKAGES = {"subsystems": "cosolve.elements", "fields": "cosolve.mapping"}


def public_names() -> dict[str, str]:
    """The room of each public name.

    >>> public_names()["simulate"], public_names()["Jacobi"]
    ('run.simulate', 'method')
    """
    found = {}
    for node in ast.parse(_STUB.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found[alias.asname or alias.name] = node.module or alias.name
    return found


def area_of(room: str) -> str:
    """The file of the area that a room belongs to: that of the longest of its beginnings.

    >>> area_of("io.ssp"), area_of("io"), area_of("run.simulate")
    ('fmus', 'runs', 'runs')
    """
    areas = {begin: file for file, _, _, rooms in AREAS for begin in rooms}
    fitting = [begin for begin in areas if room == begin or room.startswith(f"{begin}.")]
    if not fitting:
        raise ValueError(f"the room '{room}' has no area in tools/reference.py")
    return areas[max(fitting, key=len)]


def write_pages(folder: Path) -> None:
    """One page for each area, and the page that lists them."""
    folder.mkdir(exist_ok=True)
    names = {file: sorted(n for n, room in public_names().items() if area_of(room) == file) for file, *_ in AREAS}
    index = [
        "# API reference",
        "",
        "Every public name, by area: `import cosolve as cs`.",
        "",
        "| area | names |",
        "|---|---|",
    ]
    for file, title, sentence, _ in AREAS:
        index.append(f"| [{title}]({file}.md): {sentence} | {', '.join(f'`{name}`' for name in names[file])} |")
        lines = [f"# {title}", "", sentence, "", "```{eval-rst}", ".. currentmodule:: cosolve", ""]
        lines += [".. autosummary::", "", *(f"   {name}" for name in names[file]), ""]
        for name in names[file]:
            lines += _entry(name)
        if file in PACKAGES:
            lines += _package(PACKAGES[file], names[file])
        _write(folder / f"{file}.md", "\n".join([*lines, "```", ""]))
    _write(folder / "index.md", "\n".join([*index, ""]))


def _entry(name: str) -> list[str]:
    import cosolve

    value = getattr(cosolve, name)
    if isinstance(value, type):
        members = [] if issubclass(value, (Exception,)) else ["   :members:"]
        return [f".. autoclass:: {name}", *members, ""]
    if callable(value):
        return [f".. autofunction:: {name}", ""]
    if hasattr(value, "__path__"):
        return []  # shown whole, see PACKAGES
    return [f".. autodata:: {name}", ""]


def _package(name: str, shown: list[str]) -> list[str]:
    """All of a package but what the area has shown already."""
    from importlib import import_module

    package = import_module(name)
    rest = [each for each in package.__all__ if each not in shown]
    lines = [f".. rubric:: {name}", "", f".. automodule:: {name}", "", f".. currentmodule:: {name}", ""]
    for each in rest:
        kind = "autoclass" if isinstance(getattr(package, each), type) else "autofunction"
        lines += [f".. {kind}:: {each}", "" if kind == "autofunction" else "   :members:", ""]
    return lines


def _write(path: Path, text: str) -> None:
    """Only where something has changed, so that the site is built anew only there."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
