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
        ("cosolve run --st", {"--step", "--startup", "--state-every", "--stop-at-events"}),
        ("cosolve run --method gauss", {"gauss-seidel", "gauss-seidel:0", "gauss-seidel:1", "gauss-seidel:2"}),
        ("cosolve demo two_mass_r", {"two_mass_rigid"}),
        ("cosolve new --template s", {"ssp"}),
    ],
)
def test_what_is_offered(words, offered):
    assert set(completed(words)) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell(shell, tmp_path):
    done = CliRunner().invoke(app, ["completion", shell])
    assert done.exit_code == 0
    assert "_COSOLVE_COMPLETE=" in done.stdout
    assert shell != "zsh" or done.stdout.startswith("#compdef cosolve\n")  # else zsh does not find it
    if shutil.which(shell):  # the shell itself reads it without complaint
        script = tmp_path / "script"
        script.write_text(done.stdout)
        assert subprocess.run([shell, "-n", str(script)], capture_output=True, check=False).returncode == 0


def test_a_shell_without_a_script():
    done = CliRunner().invoke(app, ["completion", "tcsh"])
    assert done.exit_code == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in done.stderr


@pytest.fixture
def environment(tmp_path):
    """The command under its name, two files to be completed, and no settings of a user."""
    command = tmp_path / "bin/cosolve"
    command.parent.mkdir()
    command.write_text(_COMMAND)
    command.chmod(0o755)
    (tmp_path / "flow.vtkhdf").touch()
    (tmp_path / "other.h5").touch()
    path = os.pathsep.join([str(command.parent), os.environ["PATH"]])
    return processes.environment(PATH=path, HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path), TERM="dumb", PS1="> ")


def typed(shell, first, keys, expected, *, cwd, env):
    """Start a shell at a terminal, give it a first line, then type; what it shows once that ends as expected."""
    import pty
    import select

    ours, theirs = pty.openpty()
    shown = b""

    def ends(with_what):
        nonlocal shown
        if select.select([ours], [], [], 0.1)[0]:
            shown += os.read(ours, 4096)
        return with_what in shown

    ends_of = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    try:
        with processes.started(shell, **ends_of, cwd=cwd, env=env, start_new_session=False):
            os.write(ours, f"{first}; echo re''ady\n".encode())
            assert processes.until(lambda: ends(b"ready")), shown
            shown = b""
            os.write(ours, keys.encode())
            assert processes.until(lambda: ends(expected.encode())), shown
    finally:
        os.close(ours)
        os.close(theirs)


#: What is typed, and the line that it becomes.
_TYPED = [
    ("cosolve vi\t", "cosolve view "),
    ("cosolve run --meth\t", "cosolve run --method "),
    ("cosolve run --method gauss-seidel:2 --deg\t", "cosolve run --method gauss-seidel:2 --degree "),
    ("cosolve view fl\t", "cosolve view flow.vtkhdf "),
]


@pytest.mark.slow
@pytest.mark.parametrize(("keys", "line"), _TYPED)
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_keys_in_bash(environment, tmp_path, keys, line):
    shell = ["bash", "--norc", "--noprofile", "-i"]
    typed(shell, 'eval "$(cosolve completion bash)"', keys, line, cwd=tmp_path, env=environment)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["sourced", "found"])
@pytest.mark.parametrize(("keys", "line"), _TYPED)
@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh")
def test_keys_in_zsh(environment, tmp_path, keys, line, way):
    """The script by itself, and in a folder of functions, where zsh reads it at the first TAB."""
    first = 'autoload -U compinit; compinit -u -D; eval "$(cosolve completion zsh)"'
    if way == "found":
        first = (
            "mkdir f; cosolve completion zsh > f/_cosolve; fpath=($PWD/f $fpath); autoload -U compinit; compinit -u -D"
        )
    typed(["zsh", "-f", "-i"], first, keys, line, cwd=tmp_path, env=environment)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish")
def test_questions_to_fish(environment, tmp_path):
    """Fish itself says what it would offer."""
    asked = "; ".join(f"echo (complete -C '{keys.rstrip()}' | cut -f 1)" for keys, _ in _TYPED)
    ask = f"cosolve completion fish | source; {asked}"
    done = processes.run(["fish", "--no-config", "-c", ask], cwd=tmp_path, env=environment)
    assert done.stdout.split("\n")[:-1] == ["view", "--method", "--degree", "flow.vtkhdf"], done.stderr


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_in_a_real_shell(environment):
    """The part of a name behind a colon: bash takes it for a word of its own."""
    ask = (
        'eval "$(cosolve completion bash)"; COMP_LINE="cosolve run --method gauss-seidel:"; COMP_POINT=${#COMP_LINE}; '
        '$(complete -p cosolve | sed "s/.*-F \\([^ ]*\\).*/\\1/") cosolve; echo "${COMPREPLY[@]}"'
    )
    done = processes.run(["bash", "-c", ask], env=environment)
    assert done.stdout.split() == ["0", "1", "2"], done.stderr
