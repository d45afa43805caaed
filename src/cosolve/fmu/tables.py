"""What is found out about an FMU, as tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


class Printed:
    """A finding that `print` shows as tables. A subclass gives their parts, `rendered`."""

    def rendered(self) -> list[RenderableType]:
        """Return the parts that are printed.

        Returns
        -------
        list of rich renderables
            Texts and tables, from top to bottom.
        """
        raise NotImplementedError

    def __str__(self) -> str:
        from io import StringIO

        from rich.console import Console

        text = StringIO()
        self.show(Console(file=text, width=100))
        return text.getvalue().rstrip()

    def show(self, console: Console) -> None:
        """Print it as tables.

        Parameters
        ----------
        console : rich.console.Console
            Where to print.
        """
        for part in self.rendered():
            console.print(part)
