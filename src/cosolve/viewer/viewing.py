"""Looking at results and systems in the browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cosolve.errors import SetupError
from cosolve.interface import System
from cosolve.method.named import MethodLike
from cosolve.result import Result, load_result
from cosolve.viewer.exhibit import Exhibit
from cosolve.viewer.exhibition import Exhibition
from cosolve.viewer.hosting import Host, serve


def view(
    *shown: Result | System | str | Path,
    method: MethodLike | None = None,
    step: float | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    open_browser: bool = True,
    told: Callable[[str], None] | None = print,
) -> Host:
    """Show results (or result files) side by side in the browser, or one system before it runs.

    `method` and `step` are those to be judged for a system. The page is served from a thread of this process to this
    computer only, as long as that runs or until `close()`; `address` is where. A run is shown while it goes on by
    `cs.Live`.

    >>> import cosolve as cs
    >>> clock = cs.System({"clock": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])})
    >>> result = cs.simulate(clock, t_end=1.0, method=cs.Jacobi(), step=0.1)
    >>> page = cs.view(result, open_browser=False, told=None)
    >>> page.address[:17]
    'http://127.0.0.1:'
    >>> page.close()
    """
    return serve(exhibition_of(shown, method, step), host=host, port=port, open_browser=open_browser, told=told)


def exhibition_of(
    shown: tuple[Result | System | str | Path, ...], method: MethodLike | None, step: float | None
) -> Exhibition:
    """Results, or one system, as one page shows them."""
    systems = [one for one in shown if isinstance(one, System)]
    if not systems:
        return Exhibition(exhibits(shown))
    if len(shown) > 1:
        raise SetupError("view shows one system at a time, or any number of results")
    from cosolve.viewer.before import described

    return Exhibition(system=described(systems[0], method, step), title="system")


def exhibits(shown: tuple[Result | System | str | Path, ...]) -> list[Exhibit]:
    """Results and result files, ready to be looked at."""
    if not shown:
        raise SetupError("view: nothing to show; give a result, a result file (.h5) or a System")
    found = []
    for k, one in enumerate(shown):
        if isinstance(one, Result):
            found.append(Exhibit(one, f"{k + 1}: {one.meta.get('method', 'run')}"))
        elif isinstance(one, (str, Path)):
            found.append(Exhibit(load_result(one), Path(one).name))
        else:
            raise SetupError(f"view shows a Result, a result file or a System, not a {type(one).__name__}")
    return found
