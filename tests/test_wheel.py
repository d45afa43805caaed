"""The package as a stranger gets it: a wheel, without the source tree."""

import os
import sys
import zipfile
from pathlib import Path

import pytest
from tests import processes

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_examples_run_from_a_wheel(tmp_path):
    pytest.importorskip("hatchling")
    done = processes.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")],
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path / "site")
    (tmp_path / "empty").mkdir()

    def cosolve(*arguments: str) -> str:
        """The command of the unpacked wheel; the editable install of the source tree comes after it."""
        done = processes.run(
            [sys.executable, "-m", "cosolve.cli", *arguments],
            cwd=tmp_path / "empty",
            env={**os.environ, "PYTHONPATH": str(tmp_path / "site"), "OPENBLAS_NUM_THREADS": "1"},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    listed = cosolve("demo", "--list").splitlines()
    assert len(listed) == len(list((ROOT / "examples").glob("*/run.py")))
    assert "solution U1" in cosolve("demo", "algebraic_loop", "-o", "pictures")
    assert (tmp_path / "empty/pictures/loop.png").exists()
    found = processes.run(
        [sys.executable, "-c", "import cosolve.gallery as g; print(*g.examples().values(), sep='\\n')"],
        cwd=tmp_path / "empty",
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        check=True,
    ).stdout.splitlines()
    assert all(Path(path).is_relative_to(tmp_path / "site") for path in found)


def test_the_version_is_the_same_everywhere():
    import tomllib

    import cosolve

    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == cosolve.__version__
