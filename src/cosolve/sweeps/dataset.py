"""The result of a sweep as an `xarray.Dataset`: a variable per quantity over parameters, coupling, step and time.

What a Dataset gives anyway (selecting by label, tables, plots, netCDF files) is not wrapped; `failed_runs` here and
`plot_map` in `picture.py` are what it does not give. xarray is imported when a sweep is made, not before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.basics.packages import optional
from cosolve.errors import SetupError
from cosolve.stepsize import UniformClock
from cosolve.sweeps.grid import Variants
from cosolve.sweeps.job import Case, Job, Store
from cosolve.version import VERSION

if TYPE_CHECKING:
    import xarray as xr

#: The dimension of coupling methods. Not "method": `Dataset.sel(method=...)` means how to look up inexact labels.
COUPLING = "coupling"
#: Variables that every result has beside its quantities: what went wrong, or is worth a word, run by run ("" mostly).
ERROR, NOTE = "error", "note"


@dataclass(frozen=True)
class FailedRun:
    """A failed run of a sweep, from `failed_runs`.

    Parameters
    ----------
    at : mapping
        Values of the parameters, coupling and step.
    message : str
        Why it failed.
    """

    at: Mapping[str, Any]
    message: str

    def __str__(self) -> str:
        where = ", ".join(f"{name} = {value}" for name, value in self.at.items())
        return f"{where}: {self.message}" if where else self.message


def failed_runs(found: xr.Dataset, variable: str = ERROR) -> list[FailedRun]:
    """List the failed runs of a sweep.

    Parameters
    ----------
    found : xarray.Dataset
        What `sweep` returned, or a part of it.
    variable : {"error", "note"}, default "error"
        "note" lists the runs that report something instead.

    Returns
    -------
    list of FailedRun
        Parameters and message of each run.

    Examples
    --------
    >>> import cosolve as cs
    >>> def decay(rate):
    ...     return cs.System({"a": cs.Linear([[-rate]], [], [[1]], x0=[1], inputs=[], outputs=["x"])})
    >>> found = cs.sweep(decay, {"rate": [1.0, float("nan")]}, methods=cs.Jacobi(), steps=0.5, t_end=1)
    >>> for failure in cs.failed_runs(found):
    ...     print(failure)
    rate = nan: Linear: A holds a NaN or an infinity; every entry must be a finite number
    """
    if variable not in found:
        have = ", ".join(str(name) for name in found.data_vars)
        raise SetupError(f"failed_runs: there is no variable '{variable}', only {have}; give what cs.sweep returned")
    told = found[variable]
    messages = told.values
    at = {str(name): (told.get_axis_num(coord.dims), coord.values) for name, coord in told.coords.items()}
    out = []
    for place in np.argwhere(messages != ""):
        labels = {name: values[tuple(place[list(axes)])] for name, (axes, values) in at.items()}
        plain = {name: label.item() if isinstance(label, np.generic) else label for name, label in labels.items()}
        out.append(FailedRun(plain, str(messages[tuple(place)])))
    return out


def xarray() -> Any:
    """The package; a sweep asks for it before the first run."""
    return optional("xarray", "data", "the result of a sweep")


def make_dataset(
    variants: Variants,
    job: Job,
    couplings: Sequence[str] | None,
    several: bool,
    quantities: Sequence[str] | None,
    units: Mapping[str, str],
    store: Store,
    how: str,
    seconds: Mapping[str, float],
) -> xr.Dataset:
    """Names for what the runs left in `store`; `couplings` and `several` say which dimensions were asked for.

    A quantity that a function of the user calls like a parameter gets an underscore behind its name.
    """
    dims, coords, shape = list(variants.dims), dict(variants.coords), list(variants.shape)
    coords |= {name: ("variant", column) for name, column in variants.columns.items()}
    steps = [s if isinstance(s, float) else repr(s) for s in job.steps]
    attrs: dict[str, Any] = {"cosolve_version": VERSION, "t_start": job.t_start, "t_end": job.t_end}
    attrs["reduce"] = job.reduce if isinstance(job.reduce, str) else getattr(job.reduce, "__name__", "a function")
    if couplings is None:
        attrs[COUPLING] = job.methods[0].label
    else:
        dims.append(COUPLING)
        coords[COUPLING] = list(couplings)
        shape.append(len(couplings))
    if several:
        dims.append("step")
        coords["step"] = steps if all(isinstance(s, float) for s in steps) else [str(s) for s in steps]
        shape.append(len(steps))
    else:
        attrs["step"] = steps[0]
    attrs["how"] = how
    attrs |= {"seconds" if n == "whole" else f"seconds_{n.replace(' ', '_')}": spent for n, spent in seconds.items()}
    values = np.full(store.shape, np.nan) if store.values is None else store.values  # None: no run reached `reduce`
    cell: tuple[int, ...] = values.shape[3:]
    values = values.reshape(*shape, *cell)
    names = quantities or store.labels
    along: tuple[str, ...] = ()
    if job.reduce == "trajectory":
        along = ("point",) if several and len(steps) > 1 else ("t",)
        times = [_recorded_times(job, step) for step in job.steps]
        if along == ("t",):
            coords["t"] = times[0]
        else:  # shorter trajectories end before the last point
            rows = np.full((len(times), cell[1]), np.nan)
            for row, t in zip(rows, times, strict=True):
                row[: len(t)] = t
            coords["t"] = (("step", "point"), rows)
    columns: dict[str, Any] = {}
    if names is None:
        along = ("quantity",) if cell else ()
        columns["value"] = values
    else:
        columns |= {name: values[(..., k, slice(None)) if along else (..., k)] for k, name in enumerate(names)}
    taken = {*coords, *dims, *along, ERROR, NOTE}
    variables: dict[str, Any] = {}
    for name, column in columns.items():
        described = {"units": units[name]} if units.get(name) else {}
        variables[f"{name}_" if name in taken else name] = ((*dims, *along), column, described)
    for name, told in ((ERROR, store.errors), (NOTE, store.notes)):
        variables[name] = (tuple(dims), _texts(told, store.shape).reshape(shape))
    found: xr.Dataset = xarray().Dataset(variables, coords, attrs)
    return found


def _texts(told: Mapping[Case, str], shape: tuple[int, int, int]) -> Any:
    out = np.full(shape, "", dtype=object)
    for case, message in told.items():
        out[case] = message
    return out


def _recorded_times(job: Job, step: Any) -> Any:
    clock = UniformClock(job.t_start, job.t_end, step)
    points = np.arange(0, clock.count + 1, job.every)
    if points[-1] != clock.count:
        points = np.append(points, clock.count)
    return clock.times(0, clock.count)[points]
