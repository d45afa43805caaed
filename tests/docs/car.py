"""The two FMUs of `cosolve new car`, for the pages that go on with them."""

import shutil
import tempfile
from functools import cache
from pathlib import Path

from cosolve.cli.templates import TEMPLATES


@cache
def _made() -> tempfile.TemporaryDirectory:
    folder = tempfile.TemporaryDirectory()
    TEMPLATES["fmu-pair"].write(Path(folder.name))
    return folder


def place(folder: Path) -> None:
    """Put `body.fmu` and `wheel.fmu` there."""
    for name in ("body.fmu", "wheel.fmu"):
        shutil.copy(Path(_made().name) / name, folder / name)
