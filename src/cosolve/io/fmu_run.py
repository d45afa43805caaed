"""One FMU as a run of its own, with what its DefaultExperiment says for start, end, step and tolerance."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cosolve.fmu.archive import unpack
from cosolve.fmu.description import MODEL_EXCHANGE, read_description
from cosolve.fmu.load import load_fmu
from cosolve.fmu.options import chosen_kind, found_variable
from cosolve.interface import System
from cosolve.io.assembly import hold_unconnected
from cosolve.io.system_file import Description
from cosolve.method import Jacobi
from cosolve.options import RunOptions

_STEPS = 500  # where the FMU says nothing
_RTOL, _ATOL_PER_RTOL = 1e-8, 1e-2  # of the solvers for model exchange, see fmu/model_exchange.py


def read_fmu(
    file: str | Path,
    *,
    kind: str | None = None,
    values: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
    tolerance: float | None = None,
    step: float | None = None,
    t_end: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> Description:
    """A run of one FMU; `values` are parameters, start values and inputs by name.

    Start time, end time, step and tolerance come from the FMU's DefaultExperiment unless given; else it runs for one
    second in 500 steps. Inputs are held at their start values. `outputs` may name any variable; an FMU without outputs
    shows its local real variables. `kind` is "co-simulation" (cs) or "model-exchange" (me). `options` are further
    arguments of `load_fmu`.

    >>> read_fmu("missing.fmu")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: there is no file 'missing.fmu'; give the path of an FMU
    """
    read = read_description(unpack(file))
    runs_as = chosen_kind(read, kind, file)
    experiment = read.experiment
    sorted_values: dict[str, dict[str, Any]] = {"input": {}, "parameter": {}, "start": {}}
    for name, value in (values or {}).items():
        causality = found_variable(read, name, file).causality
        place = {"input": "input", "parameter": "parameter", "structuralParameter": "parameter"}.get(causality, "start")
        sorted_values[place][name] = value
    if outputs is None and not read.of("output"):
        outputs = [v.name for v in read.of("local") if v.is_float] or None
    given: dict[str, Any] = {"tolerance": experiment.get("tolerance") if tolerance is None else tolerance}
    if runs_as == MODEL_EXCHANGE and given["tolerance"] is not None:
        rtol = min(_RTOL, given["tolerance"]) if tolerance is None else tolerance
        given |= {"rtol": rtol, "atol": _ATOL_PER_RTOL * rtol}
    subsystem = load_fmu(
        file,
        kind=runs_as,
        parameters=sorted_values["parameter"],
        start={**sorted_values["start"], **sorted_values["input"]},
        outputs=outputs,
        **given,
        **(options or {}),
    )
    system = System({re.sub(r"\W", "_", read.name) or "fmu": subsystem})
    hold_unconnected(system)
    t_start = experiment.get("startTime", 0.0)
    if t_end is None:
        t_end = experiment.get("stopTime", t_start + 1.0)
    if step is None:
        step = experiment.get("stepSize", (t_end - t_start) / _STEPS)
    return Description(Path(file), system, RunOptions(t_end=t_end, method=Jacobi(degree=0), step=step, t_start=t_start))
