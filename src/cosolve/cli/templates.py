"""The projects that `cosolve new` makes: which files of `projects/` they have, and what is built besides.

All four couple the same quarter car on a kerb, so that one can be compared with the other: as two FMUs, as two Python
functions, as a system file, as an SSP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_FOLDER = Path(__file__).with_name("projects")


@dataclass(frozen=True)
class Template:
    """A project: what it is, its README (with `{name}`), the file that is run, and where its files come from."""

    about: str
    readme: str
    file: str
    files: Mapping[str, str]
    build: Callable[[Path], None] = field(default=lambda folder: None)

    @property
    def commands(self) -> list[str]:
        """What to type in the new folder, in this order."""
        if self.file.endswith(".py"):
            return [f"python {self.file}"]
        return [f"cosolve check {self.file}", f"cosolve run {self.file} --report report.html"]

    def write(self, folder: Path) -> None:
        """All files into a folder that is there and empty."""
        for name, source in self.files.items():
            (folder / name).write_text((_FOLDER / source).read_text(encoding="utf-8"), encoding="utf-8")
        text = (_FOLDER / self.readme).read_text(encoding="utf-8").format(name=folder.resolve().name)
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


_PARTS = {"parts.py": "parts.py.txt"}
TEMPLATES: Mapping[str, Template] = {
    "fmu-pair": Template(
        "Two FMUs in a loop: a quarter car on a kerb.",
        "fmu-pair.md",
        "system.toml",
        {**_PARTS, "system.toml": "fmus.toml"},
        _export_parts,
    ),
    "python-pair": Template(
        "Two Python models in a loop: a quarter car on a kerb.",
        "python-pair.md",
        "run.py",
        {**_PARTS, "run.py": "run.py.txt"},
    ),
    "toml": Template(
        "A system file that couples two Python functions: a quarter car on a kerb.",
        "toml.md",
        "system.toml",
        {**_PARTS, "system.toml": "functions.toml"},
    ),
    "ssp": Template(
        "A system structure (SSP) of two FMUs: a quarter car on a kerb.",
        "ssp.md",
        "car.ssp",
        {**_PARTS, "make_ssp.py": "make_ssp.py.txt"},
        _write_ssp,
    ),
}
