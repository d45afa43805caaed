"""The package as a user gets it: a wheel with what it depends on, without the source tree and without extras."""

import os
import sys
import sysconfig
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tests import processes

from tools import newcomer

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """The scripts of an environment with the wheel and the packages that its base needs, linked from this one."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("bare")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    processes.run(build, cwd=ROOT, check=True)
    processes.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    scripts = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    find = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(processes.run([str(scripts / "python"), "-c", find], check=True).stdout.strip())
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(site)
    (own,) = site.glob("cosolve-*.dist-info")
    for name in _needed(metadata.PathDistribution(own)):
        for path in metadata.distribution(name).files or ():
            top, here = path.parts[0], Path(sysconfig.get_path("purelib"))
            if top not in ("..", "__pycache__") and not (site / top).exists():
                (site / top).symlink_to(here / top)
    (scripts / "cosolve").write_text(
        f"#!{scripts / 'python'}\nimport sys\nfrom cosolve.cli import main\nsys.exit(main())\n"
    )
    (scripts / "cosolve").chmod(0o755)
    return scripts


def _needed(distribution):
    """Names of all packages that this one needs without extras, and those that they need."""
    found, left = set(), [distribution]
    while left:
        for line in left.pop().requires or ():
            wanted = Requirement(line)
            if wanted.name not in found and (wanted.marker is None or wanted.marker.evaluate({"extra": ""})):
                found.add(wanted.name)
                left.append(metadata.distribution(wanted.name))
    return found


def _python(scripts, code, folder):
    return processes.run(
        [str(scripts / "python"), "-c", code], cwd=folder, env=newcomer.environment(scripts), check=True
    ).stdout


@pytest.mark.slow
def test_the_environment_is_bare(bare, tmp_path):
    """Packages of the extras are not there, and cosolve comes from the wheel."""
    names = ("pandas", "xarray", "meshio", "sksundae", "jax", "fmpy", "pytest", "hatchling")
    code = f"import importlib.util as u; print([name for name in {names} if u.find_spec(name)])"
    there, file = _python(bare, f"{code}; import cosolve; print(cosolve.__file__)", tmp_path).splitlines()
    assert there == "[]"
    assert Path(file).is_relative_to(bare.parent)


@pytest.mark.slow
@pytest.mark.parametrize(("page", "most"), [("docs/getting-started.md", 7), ("README.md", 16)])
def test_all_that_the_first_pages_say(bare, tmp_path, page, most):
    """Every command, one after the other."""
    assert len(list(newcomer.follow(bare, tmp_path, page))) >= most


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal")
@pytest.mark.parametrize("case", newcomer.INTERRUPTED, ids=lambda case: case[0].split()[1] + case[0][-8:])
def test_ctrl_c(bare, tmp_path, case):
    """In a pseudo-terminal, on the project of the first page, as soon as the command shows something."""
    newcomer.call(["cosolve", "new", "car"], tmp_path, newcomer.environment(bare))
    if "view" in case[0]:
        run = ["cosolve", "run", "system.toml", "--t-end", "0.1"]
        newcomer.call(run, tmp_path / "car", newcomer.environment(bare))
    newcomer.interrupt(bare, tmp_path / "car", *case)


@pytest.mark.slow
def test_examples_run_from_a_wheel(bare, tmp_path):
    env = newcomer.environment(bare)
    listed = newcomer.call(["cosolve", "demo", "--list"], tmp_path, env).splitlines()
    assert len(listed) == len(list((ROOT / "examples").glob("*/run.py")))
    assert "solution U1" in newcomer.call(["cosolve", "demo", "algebraic_loop", "-o", "pictures"], tmp_path, env)
    assert (tmp_path / "pictures/loop.png").exists()
    code = "import cosolve.gallery as g; print(*g.examples().values(), sep='\\n')"
    found = _python(bare, code, tmp_path).splitlines()
    assert all(Path(path).is_relative_to(bare.parent) for path in found)


def test_commands_are_taken_from_the_pages():
    page = (ROOT / "docs/getting-started.md").read_text(encoding="utf-8")
    found = newcomer.commands(page)
    assert found[:3] == ["cosolve new car", "cd car", "cosolve check system.toml"]
    readme = newcomer.commands((ROOT / "README.md").read_text(encoding="utf-8"))
    assert 'cosolve run system.toml --state-every "5 min"' in readme
    assert not any("#" in command for command in readme)


def test_the_version_is_the_same_everywhere():
    import tomllib

    import cosolve

    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == cosolve.__version__
