"""Looking at results and systems in the browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cosolve.errors import SetupError
from cosolve.interface import System
from cosolve.method.named import MethodLike
from cosolve.result import Result, load_result
from cosolve.viewer.exhibit import Exhibit
from cosolve.viewer.exhibition import Exhibition
from cosolve.viewer.hosting import Host, serve
from cosolve.viewer.sweep_map import SweepMap, is_sweep, read_sweep

#: What a page can show: results, result files, one System, or one sweep (an xarray.Dataset or its netCDF file).
Shown = Any
NETCDF = (".nc", ".nc4", ".cdf")


def view(
    *shown: Shown,
    method: MethodLike | None = None,
    step: float | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    open_browser: bool = True,
    told: Callable[[str], None] | None = print,
) -> Host:
    """Show results (or result files) side by side in the browser, one system before it runs, or maps of one sweep.

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


def exhibition_of(shown: tuple[Shown, ...], method: MethodLike | None, step: float | None) -> Exhibition:
    """Results, one system or one sweep, as one page shows them."""
    sweeps = [one for one in shown if is_sweep(one) or _is_netcdf(one)]
    if sweeps:
        if len(shown) > 1:
            raise SetupError("view shows one sweep at a time, or any number of results")
        sweep = SweepMap(sweeps[0], "sweep") if is_sweep(sweeps[0]) else read_sweep(Path(sweeps[0]))
        return Exhibition(sweep=sweep, title=sweep.label)
    systems = [one for one in shown if isinstance(one, System)]
    if not systems:
        return Exhibition(exhibits(shown))
    if len(shown) > 1:
        raise SetupError("view shows one system at a time, or any number of results")
    from cosolve.viewer.before import described

    return Exhibition(system=described(systems[0], method, step), title="system")


def exhibits(shown: tuple[Shown, ...]) -> list[Exhibit]:
    """Results and result files, ready to be looked at."""
    if not shown:
        raise SetupError("view: nothing to show; give a result, a result file (.h5), a System or a sweep")
    found = []
    for k, one in enumerate(shown):
        if isinstance(one, Result):
            found.append(Exhibit(one, f"{k + 1}: {one.meta.get('method', 'run')}"))
        elif isinstance(one, (str, Path)):
            found.append(Exhibit(load_result(one), Path(one).name))
        else:
            raise SetupError(f"view shows a Result, a result file, a System or a sweep, not a {type(one).__name__}")
    return found


def _is_netcdf(shown: object) -> bool:
    return isinstance(shown, (str, Path)) and Path(shown).suffix.lower() in NETCDF
