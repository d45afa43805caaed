"""From a file to a subsystem: an FMU as what it is made for, in this process or in one of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cosolve.basics.registry import lookup
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
    log_level: Literal["debug", "warning", "discard", "error", "fatal"] = "debug",
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
    """Load an FMU as a subsystem, for co-simulation or model exchange (FMI 1.0, 2.0 and 3.0).

    Parameters
    ----------
    file : str or Path
        The FMU.
    kind : {"co-simulation", "model-exchange"} or None, default None
        What to run it as. None: co-simulation if the FMU offers it.
    isolated : bool, default False
        Run it in a process of its own, so that a crash there ends the run with a message.
    timeout : float or None, default None
        Longest time of a call in seconds; only with `isolated`.
    parameters : mapping of str to value or None, default None
        Parameters by name, set before the run.
    start : mapping of str to value or None, default None
        Start values of inputs and states by name.
    inputs : sequence of str or None, default None
        Variables that become input ports. None: all inputs.
    outputs : sequence of str or None, default None
        Variables that become output ports; any variable may. None: all outputs.
    name : str or None, default None
        Name for messages. None: that of the FMU.
    log : str, Path or None, default None
        File for the messages of the FMU.
    log_level : {"debug", "warning", "discard", "error", "fatal"}, default "debug"
        Lowest status of a message that is written to `log`.
    tolerance : float or None, default None
        Relative tolerance that is passed to the FMU. None passes none.
    read_back : bool, default True
        Refuse an FMU that did not accept a parameter, by reading parameters after initialisation.
    trial : str, Path or None, default None
        File written by `cosolve inspect --try`. Capabilities that it found wrong are not used.
    substeps : int, default 1
        Number of communication steps per macro step.
    interpolate : bool, default True
        Pass input derivatives or intermediate values if the FMU supports that. False holds inputs.
    sampled : bool or None, default None
        True: the FMU is a sampled controller, whose inputs count at the start of a step. None: it is one if it has no
        continuous states and fixed steps.
    noise : float, default 0.0
        Relative accuracy of the outputs, if the FMU integrates with a tolerance of its own.
    derivatives : {"instant", "step"} or None, default None
        What the directional derivatives of the FMU are: those of the equations at one time, or those over its last
        step. None: as the FMU declares it, else "instant".
    retry : bool, default False
        Save the state before every step, so that a discarded step can be repeated in smaller pieces also under methods
        without rollback.
    integrator : str, default "auto"
        "auto" (Dormand-Prince, changes to Radau if the problem is stiff), "dopri5", "ode1" to "ode5" with fixed steps,
        or SciPy's "RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA".
    rtol : float, default 1e-8
        Relative tolerance of the integrator.
    atol : float, default 1e-10
        Absolute tolerance of the integrator in the units of the states.
    internal_step : float or None, default None
        Step of the integrators with fixed steps in seconds.
    max_events : int, default 1000
        Largest number of state events in one macro step; more end the run (chattering).

    Returns
    -------
    CoSimulationFmu, ModelExchangeFmu or Isolated
        The subsystem. Ports have the names of the FMU's variables.

    Raises
    ------
    SetupError
        If the file is no FMU that can be run, or an option belongs to the other kind.

    Notes
    -----
    Options from `substeps` to `retry` are for co-simulation, those from `integrator` on for model exchange. A held
    input is held at its value in the middle of the (sub)step. A step that the FMU discards is repeated in smaller
    pieces if the FMU can go back.

    References
    ----------
    .. [1] Modelica Association, Functional Mock-up Interface for Model Exchange and Co-Simulation, versions 2.0 and
       3.0.

    Examples
    --------
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
        isolate = lookup("subsystems", "isolated")
        build = partial(load_fmu, file, kind=kind, **options)
        return isolate(build, timeout=timeout, name=name or "")  # type: ignore[no-any-return]
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
