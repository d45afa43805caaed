"""`cosolve demo`: the built-in demo, or one of the examples."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from cosolve.cli.completing import examples
from cosolve.cli.screen import INDENT, NARROW, JsonOption, console, print_json, say
from cosolve.errors import SetupError

app = typer.Typer(add_completion=False)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def demo(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            help="Example to run; what follows it goes to the example (try --help there).", autocompletion=examples
        ),
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List the examples.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for what is written.", show_default="cosolve-demo")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Run the built-in demo, or one of the examples."""
    from cosolve.gallery import about, run_example
    from cosolve.gallery import examples as known

    if json and name is not None:
        raise SetupError("demo --json: examples print what they like; --json is for `cosolve demo` and its --list")
    if json and show_list:
        print_json("demo", {"examples": {example: about(path) for example, path in known().items()}}, ok=True)
    elif show_list:
        for example, path in known().items():
            say(f"{example:<28} {about(path)}", 29 if console().width >= NARROW else 4)
    elif name is None:
        from cosolve.demo import WIDTH, run_demo

        tell = (lambda _: None) if json else partial(say, indent=INDENT)
        done = run_demo(out or Path("cosolve-demo"), tell, wide=console().width >= WIDTH)
        if json:
            path, found = done
            print_json("demo", {"report": path, "verdicts": {each.title: each.conclusion for each in found}}, ok=True)
    else:
        code = run_example(name, [*ctx.args, *([] if out is None else ["--out", str(out)])])
        if code:
            raise typer.Exit(code)
