"""The pages of the API reference: every public name in one area, from the list of public names.

`docs/conf.py` has them written before the site is built; they are not kept in the repository. Which area a name at the
top belongs to follows from the package that it lives in (`src/cosolve/__init__.pyi`), so that a new name appears by
itself, and a new package must be given its area here. Each namespace (`cs.fmi`, ...) has a page of its own.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1] / "src" / "cosolve"

#: File, title, sentence and packages of each area, in the order of the site. A longer path comes before a shorter one.
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
        "Models that take part: FMUs, equations, matrices, formulas, and your own.",
        ("subsystem", "signal", "jax", "fmu", "run.nested"),
    ),
    ("methods", "Coupling methods", "How a macro step is taken.", ("method",)),
    ("correctors", "Correctors", "How interface equations are solved.", ("corrector",)),
    (
        "runs",
        "Runs and steps",
        "Check, simulate, step by hand, pause and go on, choose method and step, control the step.",
        ("run", "accuracy", "analysis", "state", "stepsize", "io", "engine"),
    ),
    (
        "results",
        "Results and reports",
        "What comes of a run: values, files, pages; sweeps.",
        ("result", "report", "viewer", "sweeps", "errors"),
    ),
)

#: Title and sentence of each namespace and further package, in the order of the site.
NAMESPACES: dict[str, tuple[str, str]] = {
    "cosolve.fmi": ("FMUs and SSP", "Models from other tools, in and out."),
    "cosolve_crosscheck": ("Cross-check", "FMUs and SSPs here and in other tools."),
    "cosolve.analysis": ("Analysis", "Stability, convergence and structure, before and after a run."),
    "cosolve.multibody": ("Multibody models", "Bodies, joints, and joints between solvers."),
    "cosolve.structures": ("Structures", "Second-order structures and their integrators."),
    "cosolve.fields": ("Fields", "Flows and solids on meshes, adapters to field solvers, files of fields."),
    "cosolve.mapping": ("Mapping", "Meshes, and values carried from mesh to mesh."),
    "cosolve.remote": ("Processes and machines", "Subsystems that run elsewhere."),
    "cosolve.plot": ("Pictures", "Fields, mappings, motion, maps of sweeps."),
    "cosolve.errors": ("Errors and warnings", "What cosolve raises on purpose."),
}


def public_names(package: Path = _PACKAGE) -> dict[str, str]:
    """The module of each public name; names in namespaces are written as after `cs.`.

    >>> names = public_names()
    >>> names["simulate"], names["fmi.export_fmu"], names["mapping.mortar"]
    ('run.simulate', 'io.fmu_export', 'mapping.l2_projection')
    """
    found = dict[str, str]()
    for name, module in _imported(package / "__init__.pyi").items():
        if module:
            found[name] = module
            continue
        files = (package / name / "__init__.pyi", package / name / "__init__.py", package / f"{name}.pyi")
        file = next((each for each in files if each.exists()), package / f"{name}.py")
        inside = f"{name}." if file.stem == "__init__" and file.suffix == ".pyi" else ""
        if file.suffix == ".py" and file.stem != "__init__":  # defines its names itself
            defined = [node.name for node in ast.parse(file.read_text("utf-8")).body if isinstance(node, ast.ClassDef)]
            found |= {f"{name}.{each}": name for each in defined}
        else:
            found |= {f"{name}.{each}": f"{inside}{where}" for each, where in _imported(file).items()}
    return found


def _imported(file: Path) -> dict[str, str]:
    found = dict[str, str]()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            module = (node.module or "").removeprefix("cosolve.")
            found |= {alias.asname or alias.name: module for alias in node.names}
    return found


def area_of(module: str) -> str:
    """The file of the area that a module belongs to: that of the longest of its beginnings.

    >>> area_of("subsystem.units"), area_of("run.nested"), area_of("run.simulate")
    ('subsystems', 'subsystems', 'runs')
    """
    areas = {begin: file for file, _, _, packages in AREAS for begin in packages}
    fitting = [begin for begin in areas if module == begin or module.startswith(f"{begin}.")]
    if not fitting:
        raise ValueError(f"the package '{module}' has no area in tools/reference.py")
    return areas[max(fitting, key=len)]


def write_pages(folder: Path) -> None:
    """One page for each area and each namespace, and the page that lists them."""
    folder.mkdir(exist_ok=True)
    import cosolve

    top = {name: module for name, module in public_names().items() if hasattr(cosolve, name)}
    index = [
        "# API reference",
        "",
        "Every public name: `import cosolve as cs`.",
        "",
        "| area | names |",
        "|---|---|",
    ]
    pages = [
        (file, title, sentence, "cosolve", sorted(name for name, module in top.items() if area_of(module) == file))
        for file, title, sentence, _ in AREAS
    ]
    for module, (title, sentence) in NAMESPACES.items():
        title = f"{title}: {module.replace('cosolve.', 'cs.')}"
        names = sorted(import_module(module).__all__)
        pages.append((module.removeprefix("cosolve."), title, sentence, module, names))
    for file, title, sentence, module, names in pages:
        index.append(f"| [{title}]({file}.md): {sentence} | {', '.join(f'`{name}`' for name in names)} |")
        lines = [f"# {title}", "", sentence, "", "```{eval-rst}", f".. currentmodule:: {module}", ""]
        lines += [".. autosummary::", "", *(f"   {name}" for name in names), ""]
        for name in names:
            lines += _entry(module, name)
        _write(folder / f"{file}.md", "\n".join([*lines, "```", ""]))
    _write(folder / "index.md", "\n".join([*index, ""]))


def _entry(module: str, name: str) -> list[str]:
    value = getattr(import_module(module), name)
    if isinstance(value, type):
        members = [] if issubclass(value, (Exception,)) else ["   :members:"]
        return [f".. autoclass:: {name}", *members, ""]
    return [f".. {'autofunction' if callable(value) else 'autodata'}:: {name}", ""]


def _write(path: Path, text: str) -> None:
    """Only where something has changed, so that the site is built anew only there."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
