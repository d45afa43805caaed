"""`cosolve demo NAME`: what an example cannot do is one sentence with an exit code, as in every command."""

import sys
from pathlib import Path

import pytest
from tests import processes

from cosolve import gallery

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals")
EXAMPLE = '''"""An example that needs something."""
import os, signal, sys, time
import cosolve as cs

if __name__ == "__main__":
    if sys.argv[1:] == ["--fail"]:
        raise cs.errors.SimulationError("the run stopped at t = 0.3")
    if sys.argv[1:] == ["--mistake"]:
        [][0]
    if sys.argv[1:] == ["--leave"]:
        sys.exit(7)
    if sys.argv[1:] == ["--interrupt"]:
        os.killpg(os.getpgrp(), signal.SIGINT)  # as a terminal does it
        time.sleep(60)
    if sys.argv[1:] == ["--terminate"]:
        os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(60)
    if sys.argv[1:]:
        raise cs.errors.SetupError("this needs a package: pip install 'cosolve[data]'")
    print("ran", __name__, __file__)
'''


@pytest.mark.parametrize(
    ("arguments", "code", "errors"),
    [
        ([], 0, ""),
        (["--missing"], 2, "cosolve: this needs a package: pip install 'cosolve[data]'\n"),
        (["--fail"], 3, "cosolve: the run stopped at t = 0.3\n"),
        (["--leave"], 7, ""),
        (["--mistake"], 1, None),
        pytest.param(["--interrupt"], 130, "cosolve: ended by Ctrl-C\n", marks=POSIX),
        pytest.param(["--terminate"], 143, "cosolve: ended by SIGTERM\n", marks=POSIX),
    ],
)
def test_how_an_example_ends(arguments, code, errors, tmp_path):
    script = tmp_path / "examples" / "needy" / "run.py"
    script.parent.mkdir(parents=True)
    script.write_text(EXAMPLE)
    done = processes.run([sys.executable, "-m", "cosolve.cli", "demo", "needy", *arguments], cwd=tmp_path)
    assert done.returncode == code, done.stderr
    if errors is None:  # a mistake of the example keeps its traceback, with its own file and line
        assert f'File "{script}"' in done.stderr
        assert "IndexError" in done.stderr
    else:
        assert done.stderr == errors
    assert done.stdout == ("" if arguments else f"ran __main__ {Path(script).resolve()}\n")


def test_an_example_from_elsewhere_finds_the_parts_beside_it(tmp_path, monkeypatch):
    """As those of the package do, whatever folder the command is given in."""
    far = tmp_path / "gallery" / "examples" / "far"
    far.mkdir(parents=True)
    (tmp_path / "here").mkdir()
    for folder in (far.parent, far):
        (folder / "__init__.py").touch()
    (far / "model.py").write_text("CODE = 7\n")
    (far / "run.py").write_text("import sys\nfrom examples.far.model import CODE\nsys.exit(CODE)\n")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(gallery, "examples", lambda: {"far": far / "run.py"})
    assert gallery.run_example("far") == 7
