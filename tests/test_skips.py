"""Nothing vanishes from the automatic run: a skip that is not in the list fails it."""

import sys
from pathlib import Path

import pytest
from tests.processes import environment, run
from tests.skips import ALLOWED, is_allowed

ROOT = Path(__file__).resolve().parents[1]
FILES = {
    "test_whole.py": "import pytest\npytest.importorskip('a_package_that_is_missing')\ndef test_a(): pass\n",
    "test_one.py": "import pytest\ndef test_a(): pytest.skip('not today')\ndef test_b(): pass\n",
    "test_expected.py": "import pytest\n@pytest.mark.xfail\ndef test_a(): assert False\ndef test_b(): pass\n",
}


def suite(folder, ci, *files, workers=0):
    for name in files:
        (folder / name).write_text(FILES[name])
    plugins = ["-p", "xdist.plugin", "-p", "tests.skips", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *plugins, "-c", "/dev/null", "-q", "-n", str(workers)]
    env = environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", CI=ci)
    return run([*command, "--rootdir", str(folder), str(folder)], cwd=folder, env=env)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_unknown_skip_fails_the_automatic_run(tmp_path, workers):
    done = suite(tmp_path, "true", *FILES, workers=workers)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "test_whole.py: Skipped: could not import 'a_package_that_is_missing'" in done.stdout
    assert "test_one.py::test_a: Skipped: not today" in done.stdout
    assert "test_expected.py::test_a" not in done.stdout


def test_expected_failures_and_other_runs_are_left_alone(tmp_path):
    done = suite(tmp_path, "true", "test_expected.py")
    assert done.returncode == 0, done.stdout + done.stderr
    done = suite(tmp_path, "", *FILES)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("workers", [0, 2])
def test_what_was_skipped_is_counted_and_named_in_every_run(tmp_path, workers):
    done = suite(tmp_path, "", "test_whole.py", "test_one.py", workers=workers)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert any(line.startswith("=") and " skipped: 2 " in line for line in lines)
    assert "  1 not today: test_one.py::test_a" in lines
    assert any(line.startswith("  1 could not import 'a_package_that_is_missing'") for line in lines)
    (tmp_path / "none").mkdir()
    assert " skipped: " not in suite(tmp_path / "none", "", "test_expected.py", workers=workers).stdout


@pytest.mark.parametrize(("file", "text", "why"), ALLOWED)
def test_the_list_holds_what_is_there(file, text, why):
    """Each entry is a file that says so; another file with the same reason is none of them."""
    assert text in (ROOT / file).read_text(encoding="utf-8")
    assert is_allowed(file, f"Skipped: {text}")
    assert not is_allowed("tests/test_skips.py", f"Skipped: {text}")
