"""The result of a sweep: one array with named dimensions, and what went wrong where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.wording import did_you_mean
from cosolve.errors import SetupError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Failure:
    """A run that failed: the values it belongs to (parameters, method, step) and why."""

    at: Mapping[str, Any]
    message: str

    def __str__(self) -> str:
        where = ", ".join(f"{name} = {value}" for name, value in self.at.items())
        return f"{where}: {self.message}"


@dataclass
class SweepResult:
    """Numbers over parameters, methods, steps, quantities and perhaps time.

    `dims` names the dimensions of `values`; `coords[dim]` holds the labels along each. Variants that were given row by
    row have the one dimension "variant", and `columns` holds their parameters. Runs that failed are NaN and listed in
    `errors`; `notes` lists those that a subsystem ended before `t_end`, or that grew. `how` says how the runs were made
    and why so, `seconds` what took how long.

    >>> result = SweepResult(("c", "quantity"), {"c": np.array([1.0, 2.0]), "quantity": ["x", "v"]},
    ...                      np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> result.sel(c=2.0, quantity="v").values
    array(4.)
    >>> result.to_dataframe()
         c    x    v
    0  1.0  1.0  2.0
    1  2.0  3.0  4.0
    """

    dims: tuple[str, ...]
    coords: dict[str, Any]
    values: npt.NDArray[np.float64]
    columns: dict[str, Any] = field(default_factory=dict)
    errors: list[Failure] = field(default_factory=list)
    how: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    times: dict[float, Any] = field(default_factory=dict)  # macro points by step, for trajectories of several steps
    notes: list[Failure] = field(default_factory=list)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return self.values.shape

    @property
    def failed(self) -> npt.NDArray[np.bool_]:
        """True where a run failed, over all dimensions but quantities and time."""
        lead = [d for d in self.dims if d not in ("quantity", "t", "point")]
        out = np.zeros([len(self.coords[d]) for d in lead], dtype=bool)
        if self.errors:
            out[self._places_of_errors(lead)] = True
        return out

    def _places_of_errors(self, dims: list[str]) -> tuple[list[int], ...]:
        """Where the failures are, dimension by dimension."""
        return tuple(_places(d, self.coords[d], [failure.at[d] for failure in self.errors]) for d in dims)

    def sel(self, **labels: Any) -> SweepResult:
        """The part with these labels: a single one drops its dimension, a list keeps it."""
        values, dims, coords, columns = self.values, list(self.dims), dict(self.coords), dict(self.columns)
        errors, notes = list(self.errors), list(self.notes)
        for name, wanted in labels.items():
            many = isinstance(wanted, (list, np.ndarray))
            if name in columns and name not in dims:  # a parameter of variants given row by row
                found = [_matches(columns[name], w) for w in _listed(wanted)]
                chosen = np.flatnonzero(np.logical_or.reduce(found)).tolist()
                if not chosen:
                    raise SetupError(f"sel: no variant has {name} = {wanted!r}")
                dim, many = "variant", True
            else:
                if name not in dims:
                    raise SetupError(
                        f"sel: there is no dimension '{name}'; {did_you_mean(name, [*dims, *columns], quote=False)}"
                    )
                dim, chosen = name, _places(name, coords[name], _listed(wanted))
            axis = dims.index(dim)
            errors, notes = (_those(found, dim, coords[dim], set(chosen)) for found in (errors, notes))
            if many:
                values = values.take(chosen, axis=axis)
                coords[dim] = _taken(coords[dim], chosen)
            else:
                values = np.asarray(values.take(chosen[0], axis=axis))
                dims.remove(dim)
                del coords[dim]
            if dim == "variant":
                columns = {n: c[chosen] for n, c in columns.items()}
        rest = self.how, self.seconds, self.times, notes
        return SweepResult(tuple(dims), coords, np.asarray(values), columns, errors, *rest)

    def __getitem__(self, quantity: str) -> npt.NDArray[np.float64]:
        return self.sel(quantity=quantity).values

    def to_dataframe(self) -> pd.DataFrame:
        """One row per run (and macro point, for trajectories), one column per quantity; `error` where runs failed."""
        import pandas as pd

        lead = [d for d in self.dims if d != "quantity"]
        axes = [self.dims.index(d) for d in lead] + ([self.dims.index("quantity")] if "quantity" in self.dims else [])
        values = self.values.transpose(axes)
        names = [str(n) for n in self.coords.get("quantity", ["value"])]
        table = values.reshape(-1, len(names))
        places = np.indices(values.shape[: len(lead)]).reshape(len(lead), len(table))
        index = dict(zip(lead, places, strict=True))
        data: dict[str, Any] = {}
        for dim in lead:
            data[dim] = _taken(self.coords[dim], index[dim])
            if dim == "variant":
                data |= {n: column[index[dim]] for n, column in self.columns.items()}
        if "point" in lead and "step" in lead:
            times = np.full((len(self.coords["step"]), len(self.coords["point"])), np.nan)
            for k, step in enumerate(self.coords["step"]):
                times[k, : len(self.times[step])] = self.times[step]
            data["t"] = times[index["step"], index["point"]]
        data |= {name: table[:, k] for k, name in enumerate(names)}
        if self.errors:
            held = [d for d in lead if d in self.errors[0].at]
            messages = np.full([len(self.coords[d]) for d in held], "", dtype=object)
            messages[self._places_of_errors(held)] = [failure.message for failure in self.errors]
            data["error"] = np.broadcast_to(messages[tuple(index[d] for d in held)], len(table)).tolist()
        return pd.DataFrame(data)

    def plot_map(
        self,
        x: str,
        y: str,
        value: str | None = None,
        *,
        limit: float | None = None,
        log: bool = False,
        path: str | Path | None = None,
        **labels: Any,
    ) -> Figure:
        """A picture over two dimensions: colours for the quantity `value`, a line at `limit`, crosses for failed runs.

        `labels` choose along the other dimensions (`method="Jacobi(1)"`); `log` colours magnitudes by their logarithm.
        """
        from cosolve.sweeps.picture import draw_map

        chosen = self.sel(**labels) if labels else self
        return draw_map(chosen, x, y, value, limit=limit, log=log, path=path)

    def __float__(self) -> float:
        return float(self.values)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{d}: {n}" for d, n in zip(self.dims, self.values.shape, strict=True))
        first = f"; {len(self.errors)} runs failed, first {self.errors[0]}" if self.errors else ""
        return f"<SweepResult ({sizes}){first}>"


def _listed(wanted: Any) -> list[Any]:
    return list(wanted) if isinstance(wanted, (list, np.ndarray)) else [wanted]


def _taken(labels: Any, places: Any) -> Any:
    return labels[places] if isinstance(labels, np.ndarray) else [labels[k] for k in places]


def _matches(labels: Any, wanted: Any) -> npt.NDArray[np.bool_]:
    """Which labels are the wanted one; numbers up to the ninth digit."""
    if isinstance(labels, np.ndarray) and labels.dtype != object and isinstance(wanted, (int, float, np.number)):
        return np.isclose(labels, wanted, rtol=1e-9, atol=0.0, equal_nan=True)
    return np.array([bool(label is wanted or label == wanted) for label in labels])


def _those(found: list[Failure], dim: str, labels: Any, chosen: set[int]) -> list[Failure]:
    """The failures or notes that belong to chosen places along a dimension."""
    if not found or dim not in found[0].at:
        return found
    places = _places(dim, labels, [f.at[dim] for f in found])
    return [f for f, place in zip(found, places, strict=True) if place in chosen]


def _places(dim: str, labels: Any, wanted: list[Any]) -> list[int]:
    """Where each of these labels is found first; many are looked up in a dict as long as they are the very labels."""
    known: dict[Any, int] = {}
    if len(wanted) > 1:
        for k, label in enumerate(labels):
            if _hashable(label):
                known.setdefault(label, k)
    return [known[w] if _hashable(w) and w in known else _position(dim, labels, w) for w in wanted]


def _hashable(label: Any) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True


def _position(dim: str, labels: Any, wanted: Any) -> int:
    """Where a label is found."""
    found = np.flatnonzero(_matches(labels, wanted))
    if len(found):
        return int(found[0])
    texts = [str(label) for label in labels]  # no number is a misspelt other one
    hint = did_you_mean(wanted, texts, quote=False, cutoff=0.6 if isinstance(wanted, str) else 1.0)
    raise SetupError(f"sel: {dim} has no {wanted!r}; {hint}")
