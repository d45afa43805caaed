"""`make release-check`: what it takes from the README, which interpreters it finds, and what it builds."""

import sys
import tarfile
import zipfile

import pytest

from tools import release


def test_blocks_of_the_readme_are_what_is_run():
    page = "A number:\n```python\nx = 1\n```\nPrinted:\n```text\n1\n```\n```python\nprint(x)\n```\n"
    assert release.python_blocks(page) == "x = 1\n\nprint(x)\n"
    assert "cs.simulate(" in release.python_blocks((release.ROOT / "README.md").read_text())


def test_interpreters(tmp_path):
    """This one is found; what does not run is not; what is asked for must run."""
    assert [python.minor for python in release.interpreters([sys.executable])] == [sys.version_info[1]]
    assert sys.version_info[1] in {python.minor for python in release.interpreters([])}
    broken = tmp_path / "python3.99"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(release.Failed, match="is no Python that runs"):
        release.interpreters([str(broken)])


def test_packages_of_extras_and_classifiers():
    assert {"pytest", "jax", "pythonfmu", "ruff"} <= set(release.extras())
    assert not {"numpy", "numba", "h5py"} & set(release.extras())
    assert release.unnamed([release.Python("", "3.11.7"), release.Python("", "3.99.0")]) == ["3.99"]


def test_a_step_that_fails_says_what_it_said(tmp_path):
    with pytest.raises(release.Failed, match=r"ended with 3:\nbefore it$"):
        release.call(sys.executable, "-c", "print('before it'); raise SystemExit(3)", cwd=tmp_path)


def test_wheel_and_sdist_are_whole(tmp_path):
    """Nothing compiled, no tests in the wheel, the examples with it; the sdist has what a wheel is made from."""
    pytest.importorskip("hatchling")
    wheel, sdist = release.build(tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "cosolve/_gallery/examples/two_mass/system.toml" in names
    assert "cosolve/py.typed" in names
    assert not any(name.startswith(("tests", "benchmarks", "conftest")) for name in names)
    assert not any(name.endswith((".nbi", ".nbc", ".pyc", ".so")) for name in names)
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "conftest.py", "tests/limits.py", "Makefile"} <= held
