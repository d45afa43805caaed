"""`cosolve docs`: the pages of the documentation, which come with the package."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Annotated

import typer

from cosolve.cli.completing import pages
from cosolve.cli.screen import JsonOption, print_json
from cosolve.errors import SetupError


def docs(
    page: Annotated[
        str | None, typer.Argument(help="Page to print; without it all are listed.", autocompletion=pages)
    ] = None,
    json: JsonOption = False,
) -> None:
    """Print a page of the documentation, or list them all; no network is needed."""
    folder = home()
    if json:
        listed = {name: title(folder / f"{name}.md") for name in names(folder)}
        content = {"pages": listed} if page is None else {"page": page, "text": read(folder, page)}
        print_json("docs", content, ok=True)
        return
    if page is None:
        typer.echo(contents(folder))
        return
    text = read(folder, page)
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(text, hyperlinks=False))
    else:
        typer.echo(text)


def home() -> Path:
    """The folder of the pages: beside the package in a wheel, two folders up in the source tree."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_docs", package.parents[1] / "docs"):
        if (folder / "index.md").is_file():
            return folder
    raise SetupError(f"this installation in {package} has no pages; run: pip install --force-reinstall cosolve")


def names(folder: Path) -> list[str]:
    """All pages by the names that `cosolve docs NAME` takes.

    >>> "getting-started" in names(home())
    True
    """
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.md"))


def title(path: Path) -> str:
    """The first heading of a page."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((line.lstrip("# ").strip() for line in lines if line.startswith("# ")), path.stem)


def contents(folder: Path) -> str:
    """The list of pages, in the order of the site."""
    parts = tomllib.loads((folder / "navigation.toml").read_text(encoding="utf-8"))["parts"]
    lines = []
    for part in parts:
        there = [name for name in part["pages"] if (folder / f"{name}.md").is_file()]
        lines += [part["caption"], *(f"  {name:<24} {title(folder / f'{name}.md')}" for name in there), ""]
    return "\n".join([*lines, "cosolve docs NAME prints a page"])


def read(folder: Path, name: str) -> str:
    """The text of a page; `docs/`, `.md` and an `index` of a folder may be written or not."""
    from cosolve.basics.wording import did_you_mean

    known = names(folder)
    asked = name.removeprefix("docs/").removesuffix(".md").strip("/")
    for candidate in (asked, f"{asked}/index"):
        if candidate in known:
            return (folder / f"{candidate}.md").read_text(encoding="utf-8")
    hint = did_you_mean(asked, known, otherwise="cosolve docs lists them", cutoff=0.5)
    raise SetupError(f"there is no page '{name}'; {hint}")
