"""Shell completion comes from the parser itself: commands, options, methods, examples and templates."""

import os
import shutil
import subprocess
import sys

import pytest
from tests import processes
from typer.testing import CliRunner

from cosolve.cli import app

#: Stands for the installed command, whose name the scripts carry.
_COMMAND = f"""#!{sys.executable}
import sys
sys.argv[0] = "cosolve"
from cosolve.cli import main
main()
"""


def completed(words):
    env = {"_COSOLVE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    return CliRunner().invoke(app, [], env=env, prog_name="cosolve").stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("cosolve r", {"run", "resume", "report"}),
        ("cosolve run --st", {"--step", "--state-every", "--stop-at-events"}),
        ("cosolve run --method gauss", {"gauss-seidel", "gauss-seidel:0", "gauss-seidel:1", "gauss-seidel:2"}),
        ("cosolve demo two_mass_r", {"two_mass_rigid"}),
        ("cosolve new --template s", {"ssp"}),
    ],
)
def test_what_is_offered(words, offered):
    assert set(completed(words)) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell(shell, tmp_path):
    done = CliRunner().invoke(app, [], env={"_COSOLVE_COMPLETE": f"source_{shell}"}, prog_name="cosolve")
    assert done.exit_code == 0
    assert f"complete_{shell}" in done.stdout
    if shutil.which(shell):  # the shell itself reads it without complaint
        script = tmp_path / "script"
        script.write_text(done.stdout)
        assert subprocess.run([shell, "-n", str(script)], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_in_a_real_shell(tmp_path):
    command = tmp_path / "cosolve"
    command.write_text(_COMMAND)
    command.chmod(0o755)
    ask = (
        'eval "$(_COSOLVE_COMPLETE=source_bash cosolve)"; COMP_WORDS=(cosolve insp); COMP_CWORD=1; '
        '$(complete -p cosolve | sed "s/.*-F \\([^ ]*\\).*/\\1/") cosolve insp cosolve; echo "${COMPREPLY[@]}"'
    )
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    done = processes.run(["bash", "-c", ask], env={**os.environ, "PATH": path})
    assert done.stdout.split() == ["inspect"], done.stderr
