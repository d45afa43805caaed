"""Co-simulation FMUs (FMI 2.0 and 3.0) as subsystems.

What an FMU can do decides what it offers here: rollback where it can save its state, Jacobians where it gives
derivatives and shows its states, serialised states where it can write them. Methods that need more refuse it by name.

How the input signal reaches the FMU over a macro step:

- FMI 2.0 with `canInterpolateInputs`: value and derivatives at the start of the step, so it sees the same polynomial
  as every other subsystem;
- FMI 3.0 with intermediate updates: it asks for values while it steps and gets those of the polynomial;
- otherwise an input is held. It is held at its value in the *middle* of the (sub)step, which is right to second order
  where the value at the start would be right to first; `substeps=n` cuts the step into n pieces. Booleans and whole
  numbers are taken at the start of a piece.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping, Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.errors import SetupError
from cosolve.subsystem.base import InputSignal, Subsystem
from cosolve.subsystem.fmu.archive import unpack
from cosolve.subsystem.fmu.crossing import Crossing
from cosolve.subsystem.fmu.description import CO_SIMULATION, MODEL_EXCHANGE, read_description
from cosolve.subsystem.fmu.instance import Instance
from cosolve.subsystem.fmu.options import (
    chosen_ports,
    feedthrough_pattern,
    found_variable,
    given_values,
    remedy,
    structural_sizes,
)
from cosolve.subsystem.fmu.partials import Derivatives, Partials, held_jacobian, magnus_jacobian
from cosolve.subsystem.fmu.state import SavedState
from cosolve.subsystem.linear import Linear
from cosolve.subsystem.port import Matrix, Port, Vector, is_number

if TYPE_CHECKING:
    from cosolve.subsystem.native import Native

_STEP_DERIVATIVES = "org.cosolve.step-derivatives"


class Fmu(Subsystem):
    """An FMU as a subsystem.

    `parameters` and `start` set variables by name before the run (`start` is for start values of states and inputs);
    `inputs` and `outputs` choose ports (all inputs and outputs unless given; any variable may be an output); dots in
    names become underscores in port names. `log` names a file for what the FMU says. `tolerance` is handed to it;
    `noise` is the relative accuracy of its outputs where it integrates with a tolerance of its own. `substeps` cuts
    each macro step (see the module's text); `interpolate=False` holds inputs even if the FMU could interpolate. `kind`
    is "co-simulation" or "model exchange" for FMUs that offer both. `isolated=True` runs it in a process of its own, so
    that a crash there ends the run with a sentence, as does a call that takes longer than `timeout` seconds.
    `derivatives="step"` says that the FMU's directional derivatives
    are those of its last step and not of the instant.

    `functions` holds the raw addresses of its C functions and `component` the handle that they take.

    >>> import cosolve as cs
    >>> cs.Fmu("missing.fmu")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: there is no file 'missing.fmu'; give the path of an FMU
    """

    _options: dict[str, Any]

    def __new__(
        cls,
        file: str | Path,
        *,
        kind: str | None = None,
        isolated: bool = False,
        timeout: float | None = None,
        **options: Any,
    ) -> Any:
        if kind not in (None, CO_SIMULATION, MODEL_EXCHANGE):
            raise SetupError(f"Fmu: kind is '{CO_SIMULATION}' or '{MODEL_EXCHANGE}', not {kind!r}")
        offered = read_description(unpack(file)).kinds
        wanted = kind or (CO_SIMULATION if CO_SIMULATION in offered else MODEL_EXCHANGE)
        if wanted not in offered:
            names = ", ".join(offered) or "nothing"
            raise SetupError(f"'{file}' is not made for {wanted}, only for {names}")
        if isolated:
            from cosolve.subsystem.process import Isolated

            inside = partial(cls, file, kind=kind, **options)
            return Isolated(inside, timeout=timeout, name=str(options.get("name") or ""))
        if timeout is not None:
            raise SetupError(
                "Fmu: timeout belongs to isolated=True; only a process of its own can be ended when it hangs"
            )
        if wanted == MODEL_EXCHANGE:
            from cosolve.subsystem.fmu.model_exchange import ModelExchange

            _refuse_unknown(ModelExchange, options, file, wanted)
            return ModelExchange(file, **options)
        _refuse_unknown(cls, options, file, wanted)
        made = super().__new__(cls)
        made._options = {**options, "kind": wanted}
        return made

    def __init__(
        self,
        file: str | Path,
        *,
        parameters: Mapping[str, Any] | None = None,
        start: Mapping[str, Any] | None = None,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        name: str | None = None,
        log: str | Path | None = None,
        tolerance: float | None = None,
        noise: float = 0.0,
        substeps: int = 1,
        interpolate: bool = True,
        derivatives: str | None = None,
        kind: str | None = None,
        isolated: bool = False,
        timeout: float | None = None,
    ) -> None:
        if isinstance(substeps, bool) or not isinstance(substeps, (int, np.integer)) or substeps < 1:
            raise SetupError(f"Fmu: substeps must be a whole number of at least 1, not {substeps!r}")
        if tolerance is not None and not (is_number(tolerance) and tolerance > 0):
            raise SetupError(f"Fmu: tolerance must be a positive number, not {tolerance!r}")
        if not (is_number(noise) and noise >= 0):
            raise SetupError(f"Fmu: noise must be a number from 0, not {noise!r}")
        if derivatives not in (None, "instant", "step"):
            raise SetupError(f"Fmu: derivatives is 'instant' or 'step', not {derivatives!r}")
        self.file, self.noise, self.tolerance = Path(file), noise, tolerance
        folder = unpack(file)
        read = read_description(folder)
        self.description = description = read_description(folder, structural_sizes(read, parameters, file))
        self._given = given_values(description, parameters, start, file)
        self.name = name or description.name
        listed_inputs, self.inputs = chosen_ports(description, inputs, "input", file)
        listed_outputs, self.outputs = chosen_ports(description, outputs, "output", file)
        me = weakref.ref(self)

        def on_update(_: int, t: float, wants: bool, *rest: Any) -> None:
            here = me()
            if rest[-2]:  # no early return wanted
                ctypes.c_bool.from_address(rest[-2]).value = False
            if wants and here is not None:
                here._crossing.write_at(t)

        flags = description.kinds[CO_SIMULATION]
        self.listens = listens = interpolate and flags.has("providesIntermediateUpdate")
        self._instance = Instance(
            *(file, folder, description, CO_SIMULATION),
            name=self.name,
            log=log,
            on_update=on_update if listens else None,
            between=[v for v in listed_inputs if v.is_float and v.can_set_between] if listens else (),
        )
        self._crossing = Crossing(self._instance, listed_inputs, int(substeps), interpolate)
        self._outputs = self._instance.values(listed_outputs)
        self._pattern = feedthrough_pattern(description, listed_inputs, listed_outputs)
        self._time, self._started = 0.0, False
        self._u: Vector | None = None
        self._declare(flags, listed_inputs, listed_outputs, derivatives)

    def remedy(self, capability: str) -> str:
        return remedy(capability)

    def _declare(self, flags: Any, inputs: list[Any], outputs: list[Any], derivatives: str | None) -> None:
        """Give this object the methods of the capabilities that the FMU has, and no others."""
        if flags.has("canGetAndSetFMUState"):
            self.save, self.restore = self._save, self._restore
            if flags.has("canSerializeFMUState"):
                self.serialise, self.deserialise = self._serialise, self._deserialise
        if inputs and outputs and (self._pattern is None or self._pattern.any()):
            self.output = self._output
            if self._pattern is not None:
                pattern = self._pattern
                self.feedthrough = lambda: pattern
        if flags.number("maxOutputDerivativeOrder") > 0:
            self.output_derivatives = self._output_derivatives
        self._step_partials = derivatives == "step" or (
            derivatives is None and _STEP_DERIVATIVES in self.description.annotations
        )
        shows = flags.has("providesDirectionalDerivatives") or flags.has("providesAdjointDerivatives")
        self._derivatives = Derivatives(self._instance, inputs, outputs) if shows else None
        stateful = bool(self.description.states) and len(self.description.states) == len(self.description.derivatives)
        repeatable = flags.has("canGetAndSetFMUState")
        if shows and repeatable and (stateful or (self._step_partials and self._crossing.holds)):
            self.jacobian = self._jacobian
        if stateful and all(v.is_float and v.initial == "exact" for v in self.description.states):
            self._states = self._instance.values(self.description.states)
            self.get_state, self.set_state = self._get_state, self._set_state
        unknowns = (*self.description.derivatives, *self.description.outputs)
        #: True when the description says that all derivatives stay the same within a run
        self._frozen = all(
            u.dependencies is not None and u.kinds is not None and set(u.kinds) <= {"constant", "fixed", "tunable"}
            for u in unknowns
        )
        self._linear: tuple[Partials, Linear] | None = None
        self._at_end: Partials | None = None
        self._watch = False  # read the partials at the end of steps, to see whether they change

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies (also those for other processes) are new instances with the same options, before their start."""
        return partial(type(self), self.file, **self._options), ()

    @property
    def functions(self) -> dict[str, int]:
        """Raw addresses of the C functions, by their names (`fmi2DoStep` ...), for compiled loops."""
        return self._instance.binary.addresses

    @property
    def component(self) -> int:
        """The C handle of the instance."""
        return self._instance.pointer

    @property
    def steps(self) -> int:
        """How often `doStep` has been called so far."""
        return self._crossing.count

    def native(self, H: float, degree: int) -> Native | str:
        from cosolve.subsystem.fmu.native import fmu_native

        return fmu_native(self, H, degree)

    def close(self) -> None:
        """Free the FMU now instead of when nothing refers to it any more."""
        self._instance.close()

    # -- the contract ----------------------------------------------------------------------------------------

    def _initialise(self, t0: float, given: Mapping[str, Any]) -> None:
        self._instance.initialise(t0, self.tolerance, given)
        self._crossing.reset()
        self._time, self._u, self._at_end, self._started = t0, None, None, True

    def start(self, t0: float) -> Any:
        self._initialise(t0, self._given)
        self._linear = None
        return None if self._pattern is not None and self._pattern.any() else self._outputs.read(self.component)

    def advance(self, t0: float, t1: float, u: InputSignal) -> Vector:
        if not self._instance.stepping:
            self._crossing.write(u.coefficients[0])
            self._instance.leave_initialisation()
        self._crossing.cross(t0, u, 0.0, 1.0)
        self._time = t1
        if self._pattern is not None and self._pattern.any():
            self._crossing.write(u.end)  # outputs react to the inputs at the end, not to those during the step
        if self._watch and not self._frozen and self._derivatives is not None:
            self._at_end = self._derivatives.read()
        return self._outputs.read(self.component)

    def _output(self, t: float, u: Vector) -> Vector:
        unknown = np.isnan(u)
        if unknown.any():
            last = self._u if self._u is not None else self._crossing.inputs.read(self.component)
            u = np.where(unknown, last, u)
        self._crossing.write(u)
        self._u = u
        y = self._outputs.read(self.component)
        if unknown.any() and self._pattern is not None:
            y[(self._pattern & unknown).any(axis=1)] = np.nan
        return y

    # -- states ----------------------------------------------------------------------------------------------

    def _save(self) -> SavedState:
        self._instance.leave_initialisation()
        return self._instance.states.save(self._time)

    def _restore(self, state: SavedState) -> None:
        self._instance.states.restore(state)
        self._time = state.time

    def _get_state(self) -> Vector:
        """The continuous states, for the stability analysis before a run."""
        if not self._started:
            self.start(self._time)
        return self._states.read(self.component)

    def _set_state(self, x: Vector) -> None:
        """Initialise anew from these start values; whatever else the FMU remembers is lost."""
        begin = 0
        given = dict(self._given)
        for variable in self.description.states:
            value = np.asarray(x, dtype=np.float64)[begin : begin + variable.length]
            given[variable.name] = value if variable.shape else value[0]
            begin += variable.length
        self._initialise(self._time, given)
        self._instance.leave_initialisation()

    def _serialise(self) -> bytes:
        self._instance.leave_initialisation()
        return self._instance.states.to_bytes(self._time)

    def _deserialise(self, data: bytes) -> None:
        self._restore(self._instance.states.from_bytes(data))

    # -- variables -------------------------------------------------------------------------------------------

    def get(self, name: str) -> Any:
        """The value of any variable now, by its name in the FMU."""
        return self._instance.get(found_variable(self.description, name, self.file))

    def set_parameters(self, values: Mapping[str, Any]) -> None:
        """Set tunable parameters between steps; before the run any parameter.

        They stay for later runs of this object.
        """
        given = given_values(self.description, values, None, self.file)
        if self._instance.stepping:
            for key in given:
                if self.description.variables[key].variability != "tunable":
                    raise SetupError(
                        f"'{key}' of '{self.file}' is {self.description.variables[key].variability}: it cannot be "
                        "changed while the FMU runs, only before (parameters=...)"
                    )
            for key, value in given.items():
                self._instance.set(self.description.variables[key], value)
            self._linear = self._at_end = None
        self._given |= given

    def _output_derivatives(self, order: int = 1) -> Vector:
        """Time derivatives of the real outputs at the end of the last step."""
        floats = [v for v in self._outputs.variables if v.is_float]
        references = np.array([v.reference for v in floats], dtype=np.uint32)
        orders = np.full(len(floats), order, dtype=np.int32)
        values = np.empty(sum(v.length for v in floats))
        head = (references.ctypes.data, len(floats), orders.ctypes.data, values.ctypes.data)
        if self.description.fmi == 2:
            self._instance.call("GetRealOutputDerivatives", *head)
        else:
            self._instance.call("GetOutputDerivatives", *head, len(values))
        return values

    # -- Jacobian over the macro step ------------------------------------------------------------------------

    def _jacobian(self, t0: float, t1: float, u: InputSignal, weight: Vector) -> Matrix:
        """See partials.py; called at the state at `t0`, which the caller restores."""
        crossing, derivatives = self._crossing, self._derivatives
        assert derivatives is not None
        self._instance.leave_initialisation()
        if self._step_partials:
            crossing.cross(t0, u, 0.0, 1.0)
            return derivatives.read().D * _power_sum(weight, 0.5)
        if self._linear is not None and self._frozen:
            return self._frozen_jacobian(*self._linear, t0, t1, u, weight)
        crossing.write(crossing.at(u, 0.0))
        at_start = derivatives.read()
        if not self._frozen and self._at_end is None:  # the first time: look whether they change
            state = self._save()
            crossing.cross(t0, u, 0.0, 1.0)
            self._at_end = derivatives.read()
            self._restore(state)
        self._watch = True
        if self._frozen or self._at_end is None or at_start.equal(self._at_end):
            if self._linear is None or not self._linear[0].equal(at_start):
                zero = np.zeros(derivatives.n)
                ports = [[Port(f"p{k}") for k in range(m)] for m in (derivatives.p, derivatives.q)]
                parts = at_start.A, at_start.B, at_start.C, at_start.D
                self._linear = at_start, Linear(*parts, x0=zero, inputs=ports[0], outputs=ports[1])
            return self._frozen_jacobian(*self._linear, t0, t1, u, weight)
        return self._walked_jacobian(t0, u, weight, at_start, self._at_end)

    def _frozen_jacobian(
        self, at: Partials, linear: Linear, t0: float, t1: float, u: InputSignal, weight: Vector
    ) -> Matrix:
        if not self._crossing.holds:
            return linear.jacobian(t0, t1, u, weight)
        n = self._crossing.substeps
        weights = np.array([_power_sum(weight, (k + 0.5) / n) for k in range(n)])
        return held_jacobian(at, u.H, weights) + at.D * _power_sum(weight, 1.0)

    def _walked_jacobian(
        self, t0: float, u: InputSignal, weight: Vector, at_start: Partials, at_end: Partials
    ) -> Matrix:
        crossing, derivatives = self._crossing, self._derivatives
        assert derivatives is not None
        state = self._save()
        last: list[Partials] = []

        def walk(fractions: list[float]) -> list[Partials]:
            if not crossing.variable:  # it cannot stop inside the step: straight lines between its ends
                last[:] = [at_end]
                return [at_start.towards(at_end, s) for s in fractions]
            self._restore(state)
            found, here = [], 0.0
            for s in fractions:
                crossing.cross(t0, u, here, s)
                here = s
                if s == 1.0 or not crossing.holds:
                    crossing.write(crossing.at(u, s))
                found.append(derivatives.read())
            last[:] = found[-1:]
            return found

        def shape(s: float) -> float:
            if crossing.holds:
                n = crossing.substeps
                s = (min(int(s * n), n - 1) + 0.5) / n
            return _power_sum(weight, s)

        moved = magnus_jacobian(walk, shape, u.H, crossing.substeps, 1e-9)
        return moved + last[0].D * _power_sum(weight, 1.0)


def _refuse_unknown(kind: type, options: Mapping[str, Any], file: str | Path, wanted: str) -> None:
    """Options that this kind of FMU does not have, in one sentence."""
    known = [name for name in signature(kind.__init__).parameters if name not in ("self", "file")]  # type: ignore[misc]
    for name in options:
        if name not in known:
            raise SetupError(
                f"Fmu: '{file}' is run as {wanted}, which has no option {name!r}; it has {', '.join(known)}"
            )


def _power_sum(weight: Vector, s: float) -> float:
    return float(sum(w * s**j for j, w in enumerate(weight)))
