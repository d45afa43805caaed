"""Machine code on disk is made anew when a source that it was made from changes, and only then."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cosolve import jit
from cosolve.jit import sources
from cosolve.jit.sources import PACKAGE

INNER = """
from cosolve.jit import njit

@njit(cache=True)
def twice(x):
    return 2.0 * x
"""

OUTER = """
from cosolve.alpha.inner import twice
from cosolve.jit import njit

@njit(cache=True)
def value(x):
    return twice(x) + 1.0
"""

OTHER = """
from cosolve.jit import njit

@njit(cache=True)
def value(x):
    return x - 1.0
"""

ASK = """
from cosolve.alpha import outer
from cosolve.beta import other
for function in (outer.value, other.value):
    print(function(1.0), sum(function.stats.cache_hits.values()))
"""


def ask(root: Path) -> list[list[float]]:
    """What both functions give in a new process, and whether their machine code was on disk."""
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        env={"PYTHONPATH": str(root), "NUMBA_CACHE_DIR": str(root / "cache"), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


def test_an_edit_reaches_what_is_made_from_it_and_nothing_else(tmp_path):
    package = tmp_path / "cosolve"
    for folder, files in (("alpha", {"inner": INNER, "outer": OUTER}), ("beta", {"other": OTHER})):
        (package / folder).mkdir(parents=True)
        (package / folder / "__init__.py").write_text("")
        for name, text in files.items():
            (package / folder / f"{name}.py").write_text(text)
    (package / "__init__.py").write_text("")
    shutil.copytree(PACKAGE / "jit", package / "jit", ignore=shutil.ignore_patterns("__pycache__"))
    assert ask(tmp_path) == [[3.0, 0], [0.0, 0]]  # compiled
    assert ask(tmp_path) == [[3.0, 1], [0.0, 1]]  # found on disk
    (package / "alpha" / "inner.py").write_text(INNER.replace("2.0", "5.0"))
    assert ask(tmp_path) == [[6.0, 0], [0.0, 1]]  # one made anew, although its own file is the same; the other kept


ENTRY = """
import sys
from cosolve.jit import entry

@entry
def third(x):
    return x / 3.0

print(third(6.0), sum(third.stats.cache_hits.values()), "numba.np.linalg" in sys.modules)
"""


def test_machine_code_for_numbers_is_loaded_without_what_compiling_takes(tmp_path):
    # a second start is short: numba's lists of all it can compile are half of its modules
    (tmp_path / "third.py").write_text(ENTRY)
    env = {"PYTHONPATH": str(PACKAGE.parent), "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PATH": ""}
    said = [
        subprocess.run(
            [sys.executable, "third.py"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert said == [["2.0", "0", "True"], ["2.0", "1", "False"]]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("from cosolve.jit.sources import stamp", {"jit/sources.py"}),
        ("from cosolve.jit import sources", {"jit/sources.py"}),
        ("from cosolve.jit import njit", {"jit/__init__.py"}),
        (
            "from cosolve.jit import (\n    njit,  # (a remark)\n    sources as s,\n)",
            {"jit/__init__.py", "jit/sources.py"},
        ),
        ("import cosolve.jit.sources as s, cosolve.errors", {"jit/sources.py", "errors.py"}),
        ("def late():\n    from cosolve import errors", {"errors.py"}),
        ("if TYPE_CHECKING:\n    from cosolve import errors\n\n    import cosolve.jit\nx = 1\n", set()),
        ("import numpy\nfrom cosolve_else import errors\n'''\n>>> from cosolve import errors\n'''", set()),
    ],
)
def test_import_lines(tmp_path, line, found):
    path = tmp_path / "module.py"
    path.write_text(line + "\n")
    assert {source.relative_to(PACKAGE).as_posix() for source in sources.imports(path)} == found


def jitted():
    """All functions of the package that numba compiles, by module."""
    import importlib
    import pkgutil

    import cosolve

    for module in pkgutil.walk_packages(cosolve.__path__, "cosolve."):
        path = Path(module.module_finder.path) / f"{module.name.rsplit('.', 1)[-1]}.py"
        if path.is_file() and "cosolve.jit import" in path.read_text() and path.parent != PACKAGE / "jit":
            for value in vars(importlib.import_module(module.name)).values():
                if hasattr(value, "py_func") and value.py_func.__module__ == module.name:
                    yield path, value


def test_whatever_jitted_functions_call_is_among_their_sources():
    # the lines of imports say as much as the functions themselves, wherever names came from
    seen = 0
    for path, function in jitted():
        code, space = function.py_func.__code__, function.py_func.__globals__
        closed = sources.sources(path)
        for name in code.co_names:
            value = space.get(name)
            made = getattr(getattr(value, "py_func", value), "__code__", None)
            if made is not None and Path(made.co_filename).is_relative_to(PACKAGE):
                assert Path(made.co_filename) in closed, f"{function} calls {name}"
                seen += 1
    assert seen > 100


def test_packages_do_not_throw_away_each_others_machine_code():
    def packages(path: str) -> set[str]:
        return {source.relative_to(PACKAGE).parts[0] for source in sources.sources(PACKAGE / path)}

    assert packages("multibody/equations/dynamics.py") == {"jit", "multibody"}
    assert "multibody" not in packages("mapping/kernels/overlap.py")
    assert "fmu" not in packages("multibody/subsystem/kernels.py")


def test_no_source_imports_relatively():
    # `sources` reads absolute imports only
    import re

    for path in PACKAGE.rglob("*.py"):
        assert not re.search(r"^\s*from\s+\.", path.read_text(), re.MULTILINE), path


def test_a_folder_that_cannot_be_written_is_no_error(monkeypatch):
    def refused(*arguments, **options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(jit.decorators.numba, "njit", refused)
    assert jit.njit(cache=True)(np.sin) is np.sin
