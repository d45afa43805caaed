"""Machine code on disk that is damaged or of another user is made anew; where none can be written, it is in memory."""

import ctypes
import importlib
import random
import shutil
import subprocess
import sys

import pytest

from cosolve.jit import assembly, cache, files
from cosolve.jit.sources import PACKAGE

VALUE = """
from cosolve.jit import njit

@njit(cache=True)
def value(x):
    return x + 1.0
"""
ASK = """
import resource, sys
if sys.argv[1:]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), -1))
from cosolve.alpha import value
print(value(1.0), sum(value.stats.cache_hits.values()))
"""


@pytest.fixture
def ask(tmp_path):
    package = tmp_path / "cosolve"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "alpha.py").write_text(VALUE)
    shutil.copytree(PACKAGE / "jit", package / "jit", ignore=shutil.ignore_patterns("__pycache__"))

    def asked(*arguments):
        done = subprocess.run(
            [sys.executable, "-c", ASK, *arguments],
            env={
                "PYTHONPATH": str(tmp_path),
                "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
                "PATH": "",
                "PYTHONDONTWRITEBYTECODE": "1",  # Python itself leaves half a file
            },
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    return asked


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", ["*.nbi", "*.nbc"])
def test_a_damaged_file_is_made_anew(tmp_path, ask, kind):
    assert ask() == ["2.0", "0"]
    assert ask() == ["2.0", "1"]
    (file,) = [path for path in (tmp_path / "cache").rglob(kind) if path.name.startswith("alpha.value")]
    whole, rng = file.read_bytes(), random.Random(3)
    changed = bytearray(whole)
    changed[rng.randrange(40, len(whole))] ^= 16
    for damaged in (whole[: len(whole) // 2], b"", b"no machine code", bytes(changed)):
        file.write_bytes(damaged)
        assert ask()[0] == "2.0"
        assert ask() == ["2.0", "1"]


@pytest.mark.sample(1)
@pytest.mark.skipif(sys.platform == "win32", reason="limits of processes")
@pytest.mark.parametrize("limit", ["0", "100", "3000"])
def test_a_full_disk_is_no_failure(ask, limit):
    assert ask(limit) == ["2.0", "0"]
    assert ask() == ["2.0", "0"]
    assert ask() == ["2.0", "1"]


@pytest.mark.skipif(sys.platform == "win32", reason="rights of files")
@pytest.mark.parametrize("kind", ["*.nbi", "*.nbc"])
def test_a_file_that_others_can_write_is_not_read(tmp_path, kind):
    """Reading it would run it."""
    kept = cache.Checked(str(tmp_path), "alpha", b"stamp")
    kept.save("key", "code")
    assert kept.load("key") == "code"
    (file,) = tmp_path.glob(kind)
    file.chmod(0o666)
    assert kept.load("key") is None
    kept.save("key", "code")
    assert kept.load("key") == "code"


def test_files_of_other_functions_are_those_of_numba(tmp_path, monkeypatch):
    """Programs read them that do not load this package, and functions that were jitted before it was loaded."""
    (tmp_path / "twice_of_mine.py").write_text(
        "from numba import njit\n\n\n@njit(cache=True)\ndef twice(x):\n    return 2 * x\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    twice = importlib.import_module("twice_of_mine").twice
    assert twice(1.5) == 3.0
    kept = twice._cache._cache_file
    (file,) = tmp_path.rglob("*.nbc")
    assert cache._Files(kept._cache_path, "twice_of_mine.twice-5.py311", kept._source_stamp)._load_data(file.name)


HALF = "define double @f(double %x) {\n %y = fmul double %x, 0.5\n ret double %y\n}"
ALL = "define double @f(double %x) {\n ret double %x\n}"


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return tmp_path / "cosolve" / "code"


def f_of_three(code):
    """From the disk, where it is there; not from the memory of this process."""
    engine = assembly.loaded(assembly.kept.__wrapped__(code))
    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(engine.get_function_address("f"))(3.0)


def test_machine_code_of_traced_functions_comes_from_the_disk_where_it_is_whole(shelf):
    """A file is run, so what was cut or changed must not be: LLVM would end the process, or run it."""
    assert f_of_three(HALF) == 1.5
    (file,) = shelf.glob("*.o")
    whole, rng = file.read_bytes(), random.Random(3)
    changed = bytearray(whole)
    changed[rng.randrange(40, len(whole))] ^= 16
    for damaged in (whole[: len(whole) // 2], b"", b"no machine code", bytes(changed)):
        file.write_bytes(damaged)
        assert f_of_three(HALF) == 1.5
        assert file.read_bytes() == whole


@pytest.mark.skipif(sys.platform == "win32", reason="rights of files")
def test_machine_code_that_others_can_write_is_not_run(shelf):
    assert f_of_three(HALF) == 1.5
    (file,) = shelf.glob("*.o")
    file.write_bytes(files.packed(assembly._object(ALL)))
    assert f_of_three(HALF) == 3.0  # files of this user are trusted
    file.chmod(0o666)
    assert f_of_three(HALF) == 1.5
