"""Looking at results and systems in the browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosolve.errors import SetupError
from cosolve.interface import System
from cosolve.method.named import MethodLike
from cosolve.result import Result, load_result
from cosolve.viewer.exhibit import Exhibit
from cosolve.viewer.exhibition import Exhibition
from cosolve.viewer.hosting import Host, serve
from cosolve.viewer.sweep_map import SweepMap, is_sweep, read_sweep

if TYPE_CHECKING:
    from cosolve.fields import FieldSeries
    from cosolve.viewer.field_exhibit import FieldExhibit

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
    """Show results side by side in the browser, fields in motion, one system before it runs, or maps of one sweep.

    Results, and fields from `cs.read_fields`, may be given as files, and together.
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
    """Results and fields, one system or one sweep, as one page shows them."""
    sweeps = [one for one in shown if is_sweep(one) or _is_netcdf(one)]
    if sweeps:
        if len(shown) > 1:
            raise SetupError("view shows one sweep at a time, or any number of results and fields")
        sweep = SweepMap(sweeps[0], "sweep") if is_sweep(sweeps[0]) else read_sweep(Path(sweeps[0]))
        return Exhibition(sweep=sweep, title=sweep.label)
    systems = [one for one in shown if isinstance(one, System)]
    if not systems:
        return results_and_fields(shown)
    if len(shown) > 1:
        raise SetupError("view shows one system at a time, or any number of results and fields")
    from cosolve.viewer.before import described

    return Exhibition(system=described(systems[0], method, step), title="system")


def results_and_fields(shown: tuple[Shown, ...]) -> Exhibition:
    """Results, series of fields and files of both, ready to be looked at."""
    if not shown:
        raise SetupError("view: nothing to show; give a result, its file (.h5), fields (.vtkhdf), a System or a sweep")
    results: list[Exhibit] = []
    fields: list[FieldExhibit] = []
    for k, one in enumerate(shown):
        if isinstance(one, Result):
            results.append(Exhibit(one, f"{k + 1}: {one.meta.get('method', 'run')}"))
        elif is_fields(one):
            fields.append(field_exhibit(one))
        elif isinstance(one, (str, Path)):
            results.append(Exhibit(load_result(one), Path(one).name))
        else:
            raise SetupError(
                f"view shows a Result, fields from cs.read_fields, files of them, a System or a sweep, not a "
                f"{type(one).__name__}"
            )
    return Exhibition(results, fields=fields, title="  ·  ".join(one.label for one in fields) or "cosolve")


def is_fields(shown: object) -> bool:
    """Whether something is a series of fields, or the name of a file that says so."""
    if isinstance(shown, (str, Path)):
        return Path(shown).suffix.lower() in VTKHDF
    return type(shown).__name__ == "FieldSeries"


def field_exhibit(shown: FieldSeries | str | Path, most_points: int | None = None) -> FieldExhibit:
    """A series of fields, or its file, ready to be looked at; coarser where its mesh has more points than that."""
    from cosolve.fields import FieldSeries
    from cosolve.viewer.field_exhibit import FieldExhibit

    return FieldExhibit(shown if isinstance(shown, FieldSeries) else FieldSeries(Path(shown)), most_points)


def _is_netcdf(shown: object) -> bool:
    return isinstance(shown, (str, Path)) and Path(shown).suffix.lower() in NETCDF
