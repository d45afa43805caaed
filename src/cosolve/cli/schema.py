"""`cosolve schema`: the JSON schema of system files, for editors that complete and check them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def schema(
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write it to a file instead of the screen.")] = None,
) -> None:
    """Print the JSON schema of system files, for editors (`cosolve docs system-files` explains them)."""
    from json import dumps

    from cosolve.basics.atomic_files import replacing
    from cosolve.errors import OutputFileError
    from cosolve.io.editor_schema import editor_schema

    text = dumps(editor_schema(), indent=1)
    if out is None:
        typer.echo(text)
        return
    try:
        with replacing(out) as draft:
            draft.write_text(text + "\n")
    except OSError as error:
        raise OutputFileError(
            f"the schema cannot be written to '{out}': {error.strerror}; choose another file"
        ) from None
    typer.echo(f"wrote {out}")
