"""From a file to a subsystem: an FMU as what it is made for, in this process or in one of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cosolve.errors import SetupError
from cosolve.fmu.archive import unpack
from cosolve.fmu.co_simulation import CoSimulationFmu
from cosolve.fmu.description import CO_SIMULATION, read_description
from cosolve.fmu.model_exchange import ModelExchangeFmu
from cosolve.fmu.options import chosen_kind
from cosolve.fmu.places import found_file

if TYPE_CHECKING:
    from cosolve.process import Isolated


def load_fmu(
    file: str | Path,
    *,
    kind: Literal["co-simulation", "model-exchange"] | str | None = None,
    isolated: bool = False,
    timeout: float | None = None,
    parameters: Mapping[str, Any] | None = None,
    start: Mapping[str, Any] | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    name: str | None = None,
    log: str | Path | None = None,
    tolerance: float | None = None,
    read_back: bool = True,
    trial: str | Path | None = None,
    substeps: int = 1,
    interpolate: bool = True,
    sampled: bool | None = None,
    noise: float = 0.0,
    derivatives: Literal["instant", "step"] | None = None,
    retry: bool = False,
    integrator: str = "auto",
    rtol: float = 1e-8,
    atol: float = 1e-10,
    internal_step: float | None = None,
    max_events: int = 1000,
) -> CoSimulationFmu | ModelExchangeFmu | Isolated:
    """An FMU as a subsystem, for co-simulation or model exchange.

    Every FMU:

    - `parameters`, `start`: values set by name before the run (`start` is for start values of states and inputs).
      Parameters are read back: an FMU that did not take one is refused unless `read_back=False`.
    - `inputs`, `outputs`: variables that become ports, instead of all inputs and outputs; any variable may be an
      output. Ports carry the names that the FMU gives them.
    - `kind`: "co-simulation" or "model-exchange" where an FMU offers both (co-simulation unless given). The first is
      a `CoSimulationFmu`, the second a `ModelExchangeFmu`.
    - `isolated=True` runs it in a process of its own, so that a crash there ends the run with a sentence, as does a
      call that takes longer than `timeout` seconds.
    - `name` for messages; `log`, a file for what the FMU says; `tolerance`, handed to the FMU; `trial`, a file that
      `cosolve inspect --try` wrote: the FMU is then used as if it did not claim what did not hold.

    Co-simulation, where the FMU brings its own solver:

    - `substeps` cuts each macro step for this FMU; `interpolate=False` holds inputs even if it could interpolate them
      (how inputs reach the FMU: the text of `cosolve.fmu.co_simulation`).
    - `sampled=True` says that it is a sampled controller, whose inputs count at the start of a step; by default one
      without continuous states that takes steps of one length only is taken for one.
    - `noise`: relative accuracy of its outputs where it integrates with a tolerance of its own.
    - `derivatives="step"` says that its directional derivatives are those of its last step, not of the instant.
    - A step that the FMU discards is tried again in smaller pieces where it can go back to the start of the step; with
      `retry=True` its state is saved before every step for that, also under methods that never go back.

    Model exchange, where cosolve integrates the FMU's equations and finds its events:

    - `integrator`: "auto" (adaptive Dormand-Prince, turns to Radau where the problem is stiff), "dopri5", "ode1" to
      "ode5" with fixed steps of `internal_step`, or SciPy's "RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA".
    - `rtol`, `atol`: tolerances of adaptive integrators.
    - `max_events`: more state events than these in one macro step end the run (chattering).

    >>> import cosolve as cs
    >>> cs.load_fmu("missing.fmu")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: there is no file 'missing.fmu'; give the path of an FMU
    """
    arguments = dict(locals())
    file = found_file(file)
    wanted = chosen_kind(read_description(unpack(file)), kind, file)
    options = {name: value for name, value in arguments.items() if value is not _DEFAULTS[name]}
    for own in ("file", "kind", "isolated", "timeout"):
        options.pop(own, None)
    if isolated:
        from cosolve.process import Isolated

        return Isolated(partial(load_fmu, file, kind=kind, **options), timeout=timeout, name=name or "")
    if timeout is not None:
        raise SetupError(
            "load_fmu: timeout belongs to isolated=True; only a process of its own can be ended when it hangs"
        )
    made = CoSimulationFmu if wanted == CO_SIMULATION else ModelExchangeFmu
    known = [each for each in signature(made).parameters if each != "file"]
    for option in options:
        if option not in known:
            raise SetupError(
                f"load_fmu: '{file}' is run as {wanted}, which has no option {option!r}; it has {', '.join(known)}"
            )
    return made(file, **options)


#: What tells an argument that was given from one that was not.
_DEFAULTS = {name: parameter.default for name, parameter in signature(load_fmu).parameters.items()}
