"""How subsystems are joined: the user's description of a coupled system, compiled into a `Plan`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import doubles
from cosolve.basics.checks import as_list, is_number
from cosolve.basics.wording import counted, did_you_mean, shortened
from cosolve.errors import SetupError
from cosolve.interface.addresses import Addresses, Drives
from cosolve.interface.changes import Change, Changes
from cosolve.interface.constraint import Levels
from cosolve.interface.driven_inputs import Beyond, Drive, Kind, Table, as_drive, read_csv
from cosolve.interface.plan import Plan
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.signatures import refuse_wrong_arguments
from cosolve.subsystem.units import conversion

_CONSTANT = "a constant"


class FieldMapping(Protocol):
    """What `System.map` needs of a mapping: the arguments `function` and `jacobian` of a law."""

    def as_law(self, kind: Any = ...) -> Any:
        """The mapping as a law between two vector ports."""


@dataclass(frozen=True)
class Join:
    """One connection, law or set of equations as the user gave it."""

    kind: str  # "connect", "law", "equations", "constraint"
    variables: tuple[tuple[str, int | None, Mapping[str, float]], ...]  # (name, size, inputs with factors)
    of: tuple[str, ...]
    function: Callable[..., Any] | None = None
    jacobian: Callable[..., Any] | None = None
    initial: Mapping[str, Any] | None = None
    levels: Levels | None = None
    offsets: Mapping[str, float] = field(default_factory=dict)  # of inputs, where a connection converts units
    solve_start: bool = True

    @property
    def label(self) -> str:
        driven = ", ".join(port for _, _, inputs in self.variables for port in inputs)
        return f"the {self.kind} for {driven}"


def refuse_no_system(who: str, given: object) -> None:
    """Raise for what is no system.

    >>> refuse_no_system("check", 3)
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: check takes a cosolve.System, not an object of type int
    """
    if not isinstance(given, System):
        raise SetupError(f"{who} takes a cosolve.System, not an object of type {type(given).__name__}")


class System(Addresses):
    """Named subsystems and how they are coupled.

    Ports have addresses of the form "subsystem.port". `print(system)` lists all couplings; a notebook draws them.

    Parameters
    ----------
    subsystems : mapping of str to Subsystem
        The subsystems by name. Names hold no dots.

    Raises
    ------
    SetupError
        If a name or a subsystem is refused.

    Notes
    -----
    | method | what it does |
    |---|---|
    | `connect` | feeds an output to inputs |
    | `law` | computes inputs from outputs |
    | `equations` | solves residual equations for unknowns that drive inputs |
    | `constraint` | holds a condition on positions by multipliers |
    | `map` | feeds a field to an input on another mesh |
    | `set`, `set_from_csv` | holds an input at a value, or drives it by a function of time or a table |
    | `at` | changes constant inputs and parameters at a time |

    Examples
    --------
    >>> import cosolve as cs
    >>> mass = lambda: cs.Linear([[0, 1], [-1, 0]], [[0], [1]], [[1, 0]], x0=[1, 0], inputs=["f"], outputs=["x"])
    >>> system = cs.System({"one": mass(), "two": mass()})
    >>> system.law({"one.f": 1, "two.f": -1}, lambda x1, x2: 5 * (x2 - x1), of=["one.x", "two.x"], name="spring")
    >>> print(system)
    System with 2 subsystems
      one (Linear): f -> x
      two (Linear): f -> x
      spring = law(one.x, two.x) -> one.f, -two.f
    """

    def __init__(self, subsystems: Mapping[str, Subsystem]) -> None:
        super().__init__(subsystems)
        self._joins: list[Join] = []
        self._constants: dict[str, npt.NDArray[np.float64]] = {}
        self._drives_of: dict[str, Drive] = {}  # inputs that a function of time or a table drives
        self._steps_of: dict[str, dict[float, npt.NDArray[np.float64]]] = {}  # constants that change, by time
        self._changes = Changes()
        self._plan: Plan | None = None

    # -- joining ---------------------------------------------------------------------------------------

    def connect(self, source: str, *targets: str) -> None:
        """Feed an output to one or several inputs.

        Parameters
        ----------
        source : str
            Address of the output.
        *targets : str
            Addresses of the inputs. Values are converted if both ports have a unit.

        Raises
        ------
        SetupError
            If a port does not exist, sizes or units do not fit, or an input is fed already.

        Examples
        --------
        >>> import cosolve as cs
        >>> a = cs.Static(lambda t, u: t, inputs=[], outputs=[cs.Port("y", unit="mm")])
        >>> b = cs.Static(lambda t, u: 2 * u, inputs=[cs.Port("u", unit="m")], outputs=["y"])
        >>> system = cs.System({"a": a, "b": b})
        >>> system.connect("a.y", "b.u")
        >>> print(system)
        System with 2 subsystems
          a (Static): - -> y
          b (Static): u -> y
          a.y -> b.u (mm to m)
        """
        out = self.port(source, "output", "connect")
        if not targets:
            raise SetupError(f"connect: '{source}' is connected to nothing; name at least one input")
        for target in targets:
            port = self.port(target, "input", "connect")
            if port.length != out.length:
                raise SetupError(
                    f"connect: '{source}' carries {out.length} numbers but '{target}' takes {port.length}; "
                    "make the sizes equal or use a law that converts"
                )
        changes = {target: self.unit_change(source, target) for target in targets}
        self._feed(targets, f"the connection from {source}")
        factors = {target: factor for target, (factor, _) in changes.items()}
        offsets = {target: offset for target, (_, offset) in changes.items() if offset}
        self._joins.append(Join("connect", ((source, out.size, factors),), (source,), offsets=offsets))
        self._plan = None

    def unit_change(self, source: str, target: str) -> tuple[float, float]:
        """Return the conversion from the unit of an output to that of an input.

        Parameters
        ----------
        source : str
            Address of the output.
        target : str
            Address of the input.

        Returns
        -------
        tuple of (float, float)
            Factor and offset; (1, 0) if a port has no unit.

        Raises
        ------
        SetupError
            If a unit is unknown or the units measure different quantities.

        Examples
        --------
        >>> import cosolve as cs
        >>> sensor = cs.Static(lambda t, u: t, inputs=[], outputs=[cs.Port("T", unit="degC")])
        >>> heater = cs.Static(lambda t, u: u, inputs=[cs.Port("T", unit="K")], outputs=["q"])
        >>> cs.System({"sensor": sensor, "heater": heater}).unit_change("sensor.T", "heater.T")
        (1.0, 273.15)
        """
        out, port = self.port(source, "output", "connect"), self.port(target, "input", "connect")
        if not port.unit or not out.unit or (port.unit == out.unit and port.definition == out.definition):
            return 1.0, 0.0
        what = f"connect: '{source}' is in {out.unit} but '{target}' in {port.unit}"
        for end in (out, port):
            if end.known_unit is None:
                raise SetupError(
                    f"{what}, and the unit '{end.unit}' is not known here; give the port a definition, "
                    "Port(..., definition=cs.Unit(...)), or use a law that converts"
                )
        change = conversion(*(unit for unit in (out.known_unit, port.known_unit) if unit is not None))
        if change is None:
            raise SetupError(f"{what}, which measure different things; correct the units or use a law that converts")
        return change

    def law(
        self,
        inputs: Drives,
        function: Callable[..., Any],
        *,
        of: Sequence[str] | str,
        jacobian: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> None:
        """Compute inputs from outputs by an explicit function.

        Parameters
        ----------
        inputs : str, sequence of str or mapping
            Inputs that the function computes, one value each. A mapping `{input: factor}` has *one* value that drives
            all its inputs, each times its factor: a force and its reaction, `{"one.f": 1, "two.f": -1}`, are one
            coupling variable.
        function : callable
            `function(*outputs)` returns one value per input, in that order. Scalar ports are plain floats, a single
            input takes a plain value. Functions jitted by numba and C functions of doubles (`ctypes`, or numba's
            `cfunc`) run in the compiled loop.
        of : str or sequence of str
            Addresses of the outputs that are its arguments.
        jacobian : callable or None, default None
            `jacobian(*outputs)` returns the derivatives of the values by all arguments, as a matrix: flat, or sparse
            for fields. None takes difference quotients.
        name : str or None, default None
            Name of the coupling variable in the result; only with a mapping. None is its first input.

        Raises
        ------
        SetupError
            If a port does not exist, an argument does not fit, or an input is fed already.

        Examples
        --------
        >>> import cosolve as cs
        >>> mass = lambda: cs.Linear([[0, 1], [-1, 0]], [[0], [1]], [[1, 0]], x0=[1, 0], inputs=["f"], outputs=["x"])
        >>> system = cs.System({"one": mass(), "two": mass()})
        >>> system.law({"one.f": 1, "two.f": -1}, lambda x1, x2: 5 * (x2 - x1), of=["one.x", "two.x"])
        """
        function = getattr(function, "ctypes", function)  # of a cfunc: the machine code, not the Python function
        of = as_list("law", "of", of)
        for source in of:
            self.port(source, "output", "law")
        self._callable(function, "law")
        if name is not None and (not isinstance(name, str) or not name or "." in name):
            raise SetupError(f"law: name must be a name without a dot, not {name!r}")
        drives = self._drives(inputs, "law")
        if isinstance(inputs, Mapping):
            first = next(iter(drives))
            size = self._same_size(drives, "law")
            variables: tuple[tuple[str, int | None, Mapping[str, float]], ...] = ((name or first, size, drives),)
        else:
            if name is not None:
                raise SetupError("law: name belongs to a law with one value; give the inputs as {input: factor}")
            variables = tuple((p, self.port(p, "input", "law").size, {p: 1.0}) for p in drives)
        refuse_wrong_arguments(function, of, "law: the function")
        if jacobian is not None:
            refuse_wrong_arguments(jacobian, of, "law: the Jacobian")
        self._feed(drives, "a law")
        self._joins.append(Join("law", variables, tuple(of), function, jacobian))
        self._plan = None

    def map(self, source: str, target: str, mapping: FieldMapping, kind: str = "consistent") -> None:
        """Feed a field to an input on another mesh.

        Parameters
        ----------
        source : str
            Address of the output, a vector with one value per node and component.
        target : str
            Address of the input.
        mapping : FieldMapping
            The mapping between the meshes.
        kind : {"consistent", "conservative"}, default "consistent"
            "consistent" keeps constant fields (displacements), "conservative" keeps sums (loads) and uses the
            transposed mapping.

        Examples
        --------
        >>> import cosolve as cs
        >>> line = cs.mapping.Mesh.line
        >>> mapping = cs.mapping.barycentric(line([0.0, 1.0, 2.0]), line([0.0, 0.5, 1.5, 2.0]))
        >>> wing = cs.Static(lambda t, f: -f, inputs=[("f", 3)], outputs=[("u", 3)])
        >>> air = cs.Static(lambda t, u: 1 + 0.1 * u, inputs=[("u", 4)], outputs=[("f", 4)])
        >>> system = cs.System({"wing": wing, "air": air})
        >>> system.map("wing.u", "air.u", mapping)
        >>> system.map("air.f", "wing.f", mapping, "conservative")
        """
        self.law(target, of=source, **mapping.as_law(kind))

    def equations(
        self,
        unknowns: Mapping[str, Drives],
        residual: Callable[..., Any],
        *,
        of: Sequence[str] | str,
        initial: Mapping[str, Any] | None = None,
        solve_start: bool = True,
    ) -> None:
        """Determine unknowns that drive inputs by residual equations.

        Parameters
        ----------
        unknowns : mapping
            Name of each unknown and the inputs it drives: an address, a list, or `{input: factor}`.
        residual : callable
            `residual(*unknowns, *outputs)` returns as many numbers as there are unknowns, zero at the solution.
        of : str or sequence of str
            Addresses of the outputs that are its last arguments.
        initial : mapping or None, default None
            First guesses by name; 0 where none is given.
        solve_start : bool, default True
            Solve for the unknowns at the start of the run. Those that the outputs then do not determine keep `initial`.
            It evaluates all outputs with direct feedthrough twice per unknown and iteration; False skips it.

        Raises
        ------
        SetupError
            If a port does not exist, an argument does not fit, or an input is fed already.

        Examples
        --------
        >>> import cosolve as cs
        >>> mass = lambda: cs.Linear([[0, 1], [0, 0]], [[0], [1]], [[1, 0], [0, 1]], x0=[0, 1],
        ...                          inputs=["f"], outputs=["x", "v"])
        >>> system = cs.System({"one": mass(), "two": mass()})
        >>> system.equations({"lam": {"one.f": 1, "two.f": -1}}, lambda lam, v1, v2: v2 - v1, of=["one.v", "two.v"])
        """
        variables, of = self._unknowns("equations", unknowns, residual, of, initial)
        self._joins.append(Join("equations", variables, of, residual, None, initial, solve_start=bool(solve_start)))
        self._plan = None

    def constraint(
        self,
        multipliers: Mapping[str, Drives],
        levels: Callable[..., Any],
        *,
        of: Sequence[str] | str,
        correction: Mapping[str, Drives] | None = None,
        jacobian: Callable[..., Any] | None = None,
        initial: Mapping[str, Any] | None = None,
    ) -> None:
        """Hold a condition on positions by multipliers (a rigid joint).

        Parameters
        ----------
        multipliers : mapping
            Name of each multiplier and the inputs it drives: an address, a list, or `{input: factor}`.
        levels : callable
            `levels(*outputs)` returns the condition and its time derivatives, `(g, g')` or `(g, g', g'')`, each with as
            many numbers as there are multipliers.
        of : str or sequence of str
            Addresses of the outputs that are its arguments.
        correction : mapping or None, default None
            Unknowns, one per multiplier, that drive inputs of the *position* equations, `x' = v + mu`.
            `StabilisedIndex2` needs them; other treatments hold them at zero.
        jacobian : callable or None, default None
            `jacobian(*outputs)` returns the derivatives, shape (levels, multipliers, values of the outputs). None takes
            difference quotients.
        initial : mapping or None, default None
            Initial multipliers by name. Without them they start where `g'' = 0` holds.

        Raises
        ------
        SetupError
            If a port does not exist, an argument does not fit, or an input is fed already.

        Notes
        -----
        The method chooses how the levels determine the multipliers, as in `SemiImplicit(constraints=Baumgarte())`.

        Examples
        --------
        >>> import cosolve as cs
        >>> mass = lambda c: cs.Linear([[0, 1], [-c, -1]], [[0, 1], [1, 0]], [[1, 0], [0, 1], [-c, -1]],
        ...                            [[0, 0], [0, 0], [1, 0]],
        ...                            x0=[1, 0], inputs=["f", "shift"], outputs=["x", "v", "a"])
        >>> system = cs.System({"one": mass(1.0), "two": mass(9.0)})
        >>> system.constraint({"lam": {"one.f": 1, "two.f": -1}}, correction={"mu": {"one.shift": 1, "two.shift": -1}},
        ...                   levels=lambda x1, v1, a1, x2, v2, a2: (x2 - x1, v2 - v1, a2 - a1),
        ...                   of=["one.x", "one.v", "one.a", "two.x", "two.v", "two.a"])
        >>> run = cs.simulate(system, t_end=1, step=0.01, method=cs.SemiImplicit(0, constraints=cs.StabilisedIndex2()))
        >>> bool(abs(run["one.x"] - run["two.x"]).max() < 1e-12)
        True
        """
        unknowns = {**multipliers, **(correction or {})} if isinstance(multipliers, Mapping) else {}
        variables, of = self._unknowns("constraint", unknowns, levels, of, initial, added=len(correction or {}))
        count, more = (
            sum(1 if size is None else size for name, size, _ in variables if name in group)
            for group in (multipliers, correction or {})
        )
        if correction is not None and more != count:
            raise SetupError(f"constraint: {count} multipliers need {count} corrections, not {more}")
        name = ", ".join(multipliers)
        join = Join("constraint", variables, of, levels, None, initial, Levels(levels, jacobian, count, more, name))
        self._joins.append(join)
        self._plan = None

    def _unknowns(
        self,
        where: str,
        unknowns: Mapping[str, Drives],
        function: Callable[..., Any],
        of: Sequence[str] | str,
        initial: Mapping[str, Any] | None,
        added: int = 0,
    ) -> tuple[tuple[tuple[str, int | None, Mapping[str, float]], ...], tuple[str, ...]]:
        """Check unknowns and what determines them, and note that they feed their inputs."""
        of = as_list(where, "of", of)
        for source in of:
            self.port(source, "output", where)
        self._callable(function, where)
        if not isinstance(unknowns, Mapping) or len(unknowns) <= added:
            raise SetupError(f"{where}: no unknowns given as {{name: inputs}}; nothing could satisfy the residual")
        variables = []
        for unknown, inputs in unknowns.items():
            if not isinstance(unknown, str) or "." in unknown:
                raise SetupError(f"{where}: '{unknown}' is not a name for an unknown; use a name without a dot")
            drives = self._drives(inputs, where)
            variables.append((unknown, self._same_size(drives, where), drives))
        if initial is not None and not isinstance(initial, Mapping):
            raise SetupError(f"{where}: initial values are given as {{name: value}}, not as {shortened(initial)}")
        for key, given in (initial or {}).items():
            if key not in unknowns:
                raise SetupError(
                    f"{where}: initial value for '{key}', which is not among the unknowns {list(unknowns)}"
                )
            length = self._length(unknowns[key], where)
            if not np.isfinite(doubles(given, length)).all():
                raise SetupError(f"{where}: initial value of '{key}' must be {length} finite numbers, not {given!r}")
        names = list(of) if where == "constraint" else [*unknowns, *of]
        refuse_wrong_arguments(function, names, f"{where}: the function")
        self._feed([t for _, _, drives in variables for t in drives], f"the unknowns {', '.join(unknowns)}")
        return tuple(variables), tuple(of)

    def set(self, target: str, value: npt.ArrayLike | Callable[[float], Any] | Drive) -> None:
        """Hold an input at a constant value, or drive it by a function of time or a table.

        Parameters
        ----------
        target : str
            Address of the input, or of an element as in "a.u[2]".
        value : array_like, callable or Table
            A number or one per entry, `value(t)`, or a table. A later call replaces it.

        Raises
        ------
        SetupError
            If the input does not exist, is coupled already, or takes another number of values.

        Notes
        -----
        Driven inputs are known at every time, so subsystems get them without extrapolation, whatever the method and its
        degree. At a jump a step starts with the value after it and ends with the value before it.

        Examples
        --------
        >>> import cosolve as cs
        >>> tank = cs.Ode(lambda t, x, u: u, lambda t, x, u: x, x0=[0.0], inputs=["q"], outputs=["h"])
        >>> system = cs.System({"tank": tank})
        >>> system.set("tank.q", cs.Table([0.0, 0.35, 1.0], [0.0, 1.0, 0.0]))
        >>> run = cs.simulate(system, t_end=1.0, method=cs.Jacobi(), step=0.1)
        >>> round(float(run["tank.h"][-1]), 12)
        0.5
        >>> system.set("tank.q", 2.0)
        """
        port = self.port(target, "input", "set")
        drive = as_drive(value, target, port.length)
        if drive is not None:
            if callable(value) and not isinstance(value, Drive):
                refuse_wrong_arguments(value, ["t"], f"set: the function for '{target}'")
            self._release(target)
            self._feed([target], _CONSTANT)
            self._drives_of[target] = drive
            self._plan = None
            return
        constant = self._constant(target, value, "set")
        self._release(target)
        self._feed([target], _CONSTANT)
        self._constants[target] = constant
        self._plan = None

    def _constant(self, target: str, value: Any, where: str) -> npt.NDArray[np.float64]:
        """A value for all numbers of an input."""
        port = self.port(target, "input", where)
        constant = doubles(value, port.length)
        if not np.isfinite(constant).all():
            many = "one finite number" if port.length == 1 else f"{port.length} finite numbers"
            raise SetupError(f"{where}: '{target}' takes {many}, not {value!r}")
        return constant

    def _release(self, target: str) -> None:
        """Forget the constants that a new one replaces; of a vector with one new element the others stay."""
        new = self._entries(target)
        if target in self._drives_of:
            del self._drives_of[target]
            for entry in new:
                del self._fed[entry]
        for other in [o for o in self._constants if not set(self._entries(o)).isdisjoint(new)]:
            held, values = self._entries(other), self._constants.pop(other)
            for k, entry in enumerate(held):
                del self._fed[entry]
                if entry not in new:
                    self._feed([f"{other}[{k}]"], _CONSTANT)
                    self._constants[f"{other}[{k}]"] = values[k : k + 1]

    def at(self, t: float, values: Mapping[str, Any]) -> None:
        """Change constant inputs and parameters at a time.

        Parameters
        ----------
        t : float
            Time in seconds from which the new values hold.
        values : mapping
            New values by address, as in `{"a.k": 3.0}`: inputs that `set` holds at a number, or parameters of
            subsystems with `set_parameters`, such as tunable ones of FMUs.

        Raises
        ------
        SetupError
            If an address names neither.

        Notes
        -----
        An input jumps exactly at `t`. A parameter changes at a macro point: a fixed macro step must have one at `t`;
        step-size control ends a step there. Every run starts with the values from before the first change.

        Examples
        --------
        >>> import cosolve as cs
        >>> tank = cs.Ode(lambda t, x, u: u, lambda t, x, u: x, x0=[0.0], inputs=["q"], outputs=["h"])
        >>> system = cs.System({"tank": tank})
        >>> system.set("tank.q", 1.0)
        >>> system.at(0.25, {"tank.q": 3.0})
        >>> float(cs.simulate(system, t_end=1.0, method=cs.Jacobi(), step=0.1)["tank.h"][-1].round(12))
        2.5
        """
        if not is_number(t):
            raise SetupError(f"at: the time must be a finite number, not {t!r}")
        if not isinstance(values, Mapping) or not values:
            raise SetupError(f"at: give a dict of addresses and new values such as {{'a.k': 3.0}}, not {values!r}")
        steps, parameters = {}, dict[str, dict[str, Any]]()
        for address, value in values.items():
            if address in self._constants:
                steps[address] = self._constant(address, value, "at")
                continue
            name, key = self._parameter(address)
            parameters.setdefault(name, {})[key] = value
        for address, constant in steps.items():
            self._steps_of.setdefault(address, {})[float(t)] = constant
        for name, changed in parameters.items():
            self._changes.add(Change(float(t), name, changed))
        self._plan = None

    def _parameter(self, address: str) -> tuple[str, str]:
        """Subsystem and name of a parameter that can change during a run."""
        name, dot, key = str(address).partition(".")
        if not dot or name not in self.subsystems:
            known = did_you_mean(name, self.subsystems)
            raise SetupError(f"at: {address!r} is not an address of a parameter or a constant input; {known}")
        subsystem = self.subsystems[name]
        if key in self.inputs[name]:
            raise SetupError(f"at: '{address}' is an input that nothing holds at a number; give system.set first")
        if not callable(getattr(subsystem, "set_parameters", None)):
            raise SetupError(
                f"at: '{address}' is no input, and '{name}' ({type(subsystem).__name__}) has no parameters that change "
                "during a run; define set_parameters(values) there, or let an input stand for it"
            )
        variables = subsystem.known_variables
        if variables is not None:
            if key not in variables:
                raise SetupError(
                    f"at: '{name}' has no variable '{key}'; {did_you_mean(key, variables, intro='it has')}"
                )
            if variables[key].variability != "tunable":
                raise SetupError(
                    f"at: '{address}' is {variables[key].variability}: it cannot change while the FMU runs, only "
                    "tunable parameters can"
                )
        return name, key

    def _drivers(self) -> dict[str, Drive]:
        """What drives inputs: functions and tables, and constants that change."""
        found = dict(self._drives_of)
        for target, steps in self._steps_of.items():
            if target in self._constants:
                times = sorted(steps)
                rows = [self._constants[target], *(steps[t] for t in times)]
                found[target] = Table([times[0] - 1.0, *times], rows, kind="step")
        return found

    def set_from_csv(
        self,
        path: str | Path,
        columns: Mapping[str, str] | None = None,
        *,
        time: str | None = None,
        kind: Kind = "linear",
        beyond: Beyond = "hold",
    ) -> None:
        r"""Drive inputs by columns of a CSV file with a line of names.

        Parameters
        ----------
        path : str or Path
            The file. Columns are separated by commas, semicolons or tabs.
        columns : mapping of str to str or None, default None
            Address of each input and its column. None: every column drives the input of its name, as in "a.u".
        time : str or None, default None
            Column with the times in seconds. None: the first one.
        kind : {"linear", "step", "cubic"}, default "linear"
            Interpolation, see `Table`.
        beyond : {"hold", "error"}, default "hold"
            Values outside the times, see `Table`.

        Examples
        --------
        >>> import cosolve as cs, tempfile
        >>> tank = cs.Ode(lambda t, x, u: u, lambda t, x, u: x, x0=[0.0], inputs=["q"], outputs=["h"])
        >>> system = cs.System({"tank": tank})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "flow.csv")
        ...     _ = file.write_text("t,tank.q\n0,1\n2,3\n")
        ...     system.set_from_csv(file)
        >>> print(system)
        System with 1 subsystem
          tank (Ode): q -> h
          table of 2 points -> tank.q
        """
        if columns is None:
            names, _ = read_csv(path)
            columns = {name: name for name in names if name != (names[0] if time is None else time)}
        for target, column in columns.items():
            self.set(target, Table.read(path, column, time=time, kind=kind, beyond=beyond))

    def copy(self) -> System:
        """Return a system with the same subsystems and couplings.

        The subsystems are shared; couplings added to the copy do not change this system.

        Returns
        -------
        System
            The copy.

        Examples
        --------
        >>> import cosolve as cs
        >>> system = cs.System({"a": cs.Static(lambda t, u: u, inputs=["u"], outputs=["y"])})
        >>> system.copy().set("a.u", 1.0)
        >>> system.unconnected_inputs()
        ['a.u']
        """
        twin = System(self.subsystems)
        twin._fed, twin._joins, twin._constants = dict(self._fed), list(self._joins), dict(self._constants)
        twin._drives_of = dict(self._drives_of)
        twin._steps_of = {target: dict(steps) for target, steps in self._steps_of.items()}
        for change in self._changes.listed:
            twin._changes.add(change)
        return twin

    # -- compiling -------------------------------------------------------------------------------------

    def plan(self) -> Plan:
        """Return the compiled system.

        Returns
        -------
        Plan
            What runs are made from.

        Raises
        ------
        SetupError
            If an input is not fed.
        """
        if self._plan is None:
            from cosolve.interface.compiling import compile_plan

            self._plan = compile_plan(self, self._joins, self._constants, self._drivers(), self._changes)
        return self._plan

    def _length(self, inputs: Drives, where: str) -> int:
        """How many numbers an unknown holds that drives these inputs."""
        return self.port(next(iter(self._drives(inputs, where))), "input", where).length

    @staticmethod
    def _callable(function: object, where: str) -> None:
        if not callable(function):
            raise SetupError(f"{where}: the function is a {type(function).__name__}, which cannot be called")

    def __repr__(self) -> str:
        from cosolve.interface.representation import headline

        return f"<{headline(self)}>"

    def __rich__(self) -> Any:
        """For rich: `rich.print(system)`."""
        from cosolve.interface.representation import as_rich

        return as_rich(self)

    def _repr_html_(self) -> str:
        """For notebooks: the coupling diagram."""
        from cosolve.interface.representation import as_html

        return as_html(self)

    def __str__(self) -> str:
        lines = [f"System with {counted(len(self.subsystems), 'subsystem')}"]
        for name, subsystem in self.subsystems.items():
            into, out = ", ".join(self.inputs[name].names) or "-", ", ".join(self.outputs[name].names) or "-"
            lines.append(f"  {name} ({type(subsystem).__name__}): {into} -> {out}")
        for join in self._joins:
            driven = [self._driven(join, t, f) for _, _, d in join.variables for t, f in d.items()]
            what = join.of[0] if join.kind == "connect" else f"{join.kind}({', '.join(join.of)})"
            unknowns = join.kind in ("equations", "constraint")
            named = [v for v, _, d in join.variables if unknowns or (join.kind == "law" and v not in d)]
            lines.append(f"  {', '.join(named) + ' = ' if named else ''}{what} -> {', '.join(driven)}")
        lines += [f"  {value.tolist()} -> {target}" for target, value in self._constants.items()]
        lines += [f"  {drive.label} -> {target}" for target, drive in self._drives_of.items()]
        changes = [
            (t, target, value.tolist()) for target, steps in self._steps_of.items() for t, value in steps.items()
        ]
        changes += [(c.t, f"{c.subsystem}.{key}", v) for c in self._changes.listed for key, v in c.values.items()]
        lines += [f"  at t = {t:g}: {value} -> {target}" for t, target, value in sorted(changes, key=lambda c: c[:2])]
        return "\n".join(lines)

    def _driven(self, join: Join, target: str, factor: float) -> str:
        """An input as the target of a join, with the factor or the units that are changed on the way."""
        if join.kind != "connect":
            return ("" if factor == 1 else "-" if factor == -1 else f"{factor:g} ") + target
        if factor == 1 and target not in join.offsets:
            return target
        units = (self.port(join.of[0], "output", "").unit, self.port(target, "input", "").unit)
        return f"{target} ({' to '.join(units)})"
