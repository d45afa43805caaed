"""Looking at results and systems in the browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosolve.errors import SetupError
from cosolve.interface import System
from cosolve.method.named import MethodLike
from cosolve.result import Result, load_result
from cosolve.viewer.host import Host, serve
from cosolve.viewer.result_view import ResultView
from cosolve.viewer.sweep_map import SweepMap, is_sweep, read_sweep
from cosolve.viewer.viewer_session import ViewerSession

if TYPE_CHECKING:
    from cosolve.fields import FieldSeries
    from cosolve.viewer.field_view import FieldView

#: What a page can show: results and series of fields or their files, one System, or one sweep (an xarray.Dataset or its
#: netCDF file).
Shown = Any
NETCDF = (".nc", ".nc4", ".cdf")
VTKHDF = (".vtkhdf", ".hdf")


def view(
    *shown: Shown,
    method: MethodLike | None = None,
    step: float | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    open_browser: bool = True,
    told: Callable[[str], None] | None = print,
) -> Host:
    """Show results, fields, a system or a sweep in the browser.

    Parameters
    ----------
    *shown : Result, FieldSeries, System, xarray.Dataset or path
        Any number of results and fields, also as files; or one system; or one sweep.
    method : Method, str, dict or None, default None
        Method to be judged, for a system.
    step : float or None, default None
        Macro step in seconds to be judged, for a system.
    host : str, default "127.0.0.1"
        Address to serve at.
    port : int, default 0
        Port; 0 takes a free one.
    open_browser : bool, default True
        Open the page.
    told : callable or None, default print
        `told(text)` gets the address of the page.

    Returns
    -------
    Host
        The server; `address` and `close()`. It runs in a thread of this process.

    Examples
    --------
    >>> import cosolve as cs
    >>> clock = cs.System({"clock": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])})
    >>> result = cs.simulate(clock, t_end=1.0, method=cs.Jacobi(), step=0.1)
    >>> page = cs.view(result, open_browser=False, told=None)
    >>> page.address[:17]
    'http://127.0.0.1:'
    >>> page.close()
    """
    return serve(session_of(shown, method, step), host=host, port=port, open_browser=open_browser, told=told)


def session_of(shown: tuple[Shown, ...], method: MethodLike | None, step: float | None) -> ViewerSession:
    """Results and fields, one system or one sweep, as one page shows them."""
    sweeps = [one for one in shown if is_sweep(one) or _is_netcdf(one)]
    if sweeps:
        if len(shown) > 1:
            raise SetupError("view shows one sweep at a time, or any number of results and fields")
        sweep = SweepMap(sweeps[0], "sweep") if is_sweep(sweeps[0]) else read_sweep(Path(sweeps[0]))
        return ViewerSession(sweep=sweep, title=sweep.label)
    systems = [one for one in shown if isinstance(one, System)]
    if not systems:
        return results_and_fields(shown)
    if len(shown) > 1:
        raise SetupError("view shows one system at a time, or any number of results and fields")
    from cosolve.viewer.system_view import described

    return ViewerSession(system=described(systems[0], method, step), title="system")


def results_and_fields(shown: tuple[Shown, ...]) -> ViewerSession:
    """Results, series of fields and files of both, ready to be looked at."""
    if not shown:
        raise SetupError("view: nothing to show; give a result, its file (.h5), fields (.vtkhdf), a System or a sweep")
    results: list[ResultView] = []
    fields: list[FieldView] = []
    for k, one in enumerate(shown):
        if isinstance(one, Result):
            results.append(ResultView(one, f"{k + 1}: {one.meta.get('method', 'run')}"))
        elif is_fields(one):
            fields.append(field_view_of(one))
        elif isinstance(one, (str, Path)):
            results.append(ResultView(load_result(one), Path(one).name))
        else:
            raise SetupError(
                f"view shows a Result, fields from cs.fields.read_fields, files of them, a System or a sweep, not a "
                f"{type(one).__name__}"
            )
    return ViewerSession(results, fields=fields, title="  ·  ".join(one.label for one in fields) or "cosolve")


def is_fields(shown: object) -> bool:
    """Whether something is a series of fields, or the name of a file that says so."""
    if isinstance(shown, (str, Path)):
        return Path(shown).suffix.lower() in VTKHDF
    return type(shown).__name__ == "FieldSeries"


def field_view_of(shown: FieldSeries | str | Path, most_points: int | None = None) -> FieldView:
    """A series of fields, or its file, ready to be looked at; coarser where its mesh has more points than that."""
    from cosolve.fields import FieldSeries
    from cosolve.viewer.field_view import FieldView

    return FieldView(shown if isinstance(shown, FieldSeries) else FieldSeries(Path(shown)), most_points)


def _is_netcdf(shown: object) -> bool:
    return isinstance(shown, (str, Path)) and Path(shown).suffix.lower() in NETCDF
