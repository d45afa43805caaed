"""`cosolve docs`: the pages come with the package, and what cosolve writes names no path that is not there."""

import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from cosolve.cli import app
from cosolve.cli.docs import home, names
from cosolve.cli.templates import TEMPLATES

ROOT = Path(__file__).parents[2]


def docs(*arguments, code=0):
    done = CliRunner().invoke(app, ["docs", *arguments])
    assert done.exit_code == code, done.output
    return done


def test_the_list_names_every_page_of_the_navigation():
    said = docs().stdout
    for page in ("getting-started", "howto-fmu", "system-files", "coming-from/simulink", "theory"):
        assert re.search(rf"^  {page} +\S", said, re.MULTILINE), page


@pytest.mark.parametrize("name", ["system-files", "docs/system-files.md", "architecture"])
def test_a_page_is_printed_as_it_is(name):
    file = "architecture/index.md" if name == "architecture" else "system-files.md"
    assert docs(name).stdout.rstrip() == (ROOT / "docs" / file).read_text(encoding="utf-8").rstrip()


def test_a_page_that_is_not_there():
    assert "there is no page 'sytem-files'; did you mean 'system-files'?" in docs("sytem-files", code=2).stderr


def _said():
    """Every help text, and every file that `cosolve new` writes without building anything."""
    command = typer.main.get_command(app)
    commands = {"cosolve": command, **command.commands}
    for name, each in commands.items():
        options = [getattr(option, "help", "") or "" for option in each.params]
        yield name, "\n".join([each.help or "", *options])
    for name, template in TEMPLATES.items():
        yield name, "\n".join([*template.files.values(), template.readme])


def test_no_help_text_and_no_generated_file_names_a_path_of_the_source_tree():
    for name, text in _said():
        assert not re.search(r"\bdocs/|\bexamples/|\bsrc/", text), f"{name}: {text}"


def test_every_page_that_they_name_is_there():
    known = names(home())
    named = {page for _, text in _said() for page in re.findall(r"cosolve docs ([\w/-]+)", text)}
    assert named == {"system-files", "command-line"}
    assert named <= set(known)
