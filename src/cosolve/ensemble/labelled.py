"""The result of a sweep: one array with named dimensions, and what went wrong where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

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
    `errors`. `how` says how the runs were made and why so, `seconds` what took how long.

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

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return self.values.shape

    @property
    def failed(self) -> npt.NDArray[np.bool_]:
        """True where a run failed, over all dimensions but quantities and time."""
        lead = [d for d in self.dims if d not in ("quantity", "t", "point")]
        out = np.zeros([len(self.coords[d]) for d in lead], dtype=bool)
        for failure in self.errors:
            out[tuple(_position(d, self.coords[d], failure.at[d]) for d in lead)] = True
        return out

    def sel(self, **labels: Any) -> SweepResult:
        """The part with these labels: a single one drops its dimension, a list keeps it."""
        values, dims, coords, columns = self.values, list(self.dims), dict(self.coords), dict(self.columns)
        errors = list(self.errors)
        for name, wanted in labels.items():
            many = isinstance(wanted, (list, np.ndarray))
            if name in columns and name not in dims:  # a parameter of variants given row by row
                chosen = [k for k, value in enumerate(columns[name]) if any(_same(value, w) for w in _listed(wanted))]
                if not chosen:
                    raise SetupError(f"sel: no variant has {name} = {wanted!r}")
                dim, many = "variant", True
            else:
                if name not in dims:
                    close = get_close_matches(name, [*dims, *columns], n=1)
                    hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join([*dims, *columns])}"
                    raise SetupError(f"sel: there is no dimension '{name}'; {hint}")
                dim, chosen = name, [_position(name, coords[name], w) for w in _listed(wanted)]
            axis = dims.index(dim)
            kept = [coords[dim][k] for k in chosen]
            errors = [f for f in errors if dim not in f.at or any(_same(f.at[dim], k) for k in kept)]
            if many:
                values = values.take(chosen, axis=axis)
                coords[dim] = coords[dim][chosen] if isinstance(coords[dim], np.ndarray) else kept
            else:
                values = np.asarray(values.take(chosen[0], axis=axis))
                dims.remove(dim)
                del coords[dim]
            if dim == "variant":
                columns = {n: c[chosen] for n, c in columns.items()}
        return SweepResult(tuple(dims), coords, np.asarray(values), columns, errors, self.how, self.seconds, self.times)

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
        index = list(product(*(range(len(self.coords[d])) for d in lead)))
        data: dict[str, Any] = {}
        for k, dim in enumerate(lead):
            data[dim] = [self.coords[dim][row[k]] for row in index]
            if dim == "variant":
                data |= {n: [column[row[k]] for row in index] for n, column in self.columns.items()}
        if "point" in lead and "step" in lead:
            data["t"] = [self._time(row, lead) for row in index]
        data |= {name: table[:, k] for k, name in enumerate(names)}
        if self.errors:
            found = {tuple(_position(d, self.coords[d], f.at[d]) for d in lead if d in f.at): f for f in self.errors}
            held = [k for k, d in enumerate(lead) if d in self.errors[0].at]
            messages = [found.get(tuple(row[k] for k in held)) for row in index]
            data["error"] = ["" if f is None else f.message for f in messages]
        return pd.DataFrame(data)

    def _time(self, row: tuple[int, ...], lead: list[str]) -> float:
        times = self.times[self.coords["step"][row[lead.index("step")]]]
        k = row[lead.index("point")]
        return float(times[k]) if k < len(times) else np.nan

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
        from cosolve.ensemble.picture import draw_map

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


def _same(a: Any, b: Any) -> bool:
    numbers = (int, float, np.number)
    if isinstance(a, numbers) and isinstance(b, numbers):
        return bool(np.isclose(a, b, rtol=1e-9, atol=0.0))
    return bool(a is b or a == b)


def _position(dim: str, labels: Any, wanted: Any) -> int:
    """Where a label is found."""
    for k, label in enumerate(labels):
        if _same(label, wanted):
            return k
    texts = [str(label) for label in labels]
    close = get_close_matches(wanted, texts, n=1) if isinstance(wanted, str) else []
    shown = ", ".join(texts[:8]) + (", ..." if len(texts) > 8 else "")
    hint = f"did you mean {close[0]!r}?" if close else f"there are {shown}"
    raise SetupError(f"sel: {dim} has no {wanted!r}; {hint}")
