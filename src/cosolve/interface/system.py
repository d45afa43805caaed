"""How subsystems are joined: the user's description of a coupled system, compiled into a `Plan`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cosolve.errors import SetupError
from cosolve.interface.constraint import Levels
from cosolve.interface.plan import Plan
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.port import Port, Ports, is_number

Drives = Mapping[str, float] | Sequence[str] | str


class FieldMapping(Protocol):
    """What `System.map` needs of a mapping: the arguments `function` and `jacobian` of a law."""

    def as_law(self, kind: Any = ...) -> Any:
        """The mapping as a law between two vector ports."""
        ...


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
    solve_start: bool = True

    @property
    def label(self) -> str:
        driven = ", ".join(port for _, _, inputs in self.variables for port in inputs)
        return f"the {self.kind} for {driven}"


class System:
    """Named subsystems and how they touch.

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
        if not isinstance(subsystems, Mapping):
            raise SetupError(
                f"System takes a dict of names and subsystems such as {{'left': left}}, "
                f"not a {type(subsystems).__name__}"
            )
        self.subsystems = dict(subsystems)
        self.inputs: dict[str, Ports] = {}
        self.outputs: dict[str, Ports] = {}
        for name, subsystem in self.subsystems.items():
            if not isinstance(name, str) or not name or "." in name:
                raise SetupError(f"a subsystem needs a non-empty name without a dot, not {name!r}")
            if not isinstance(subsystem, Subsystem):
                raise SetupError(
                    f"subsystem '{name}' is a {type(subsystem).__name__}; give a cosolve.Subsystem "
                    "(Linear, Ode, Static, or your own subclass)"
                )
            try:
                self.inputs[name], self.outputs[name] = Ports(subsystem.inputs), Ports(subsystem.outputs)
            except SetupError as error:
                raise SetupError(f"subsystem '{name}': {error}") from None
            both = set(self.inputs[name].slices) & set(self.outputs[name].slices)
            if both:
                raise SetupError(
                    f"subsystem '{name}': {sorted(both)} named both as input and as output; rename one of them"
                )
        seen: dict[int, str] = {}
        for name, subsystem in self.subsystems.items():
            other = seen.setdefault(id(subsystem), name)
            if other != name:
                raise SetupError(
                    f"'{other}' and '{name}' are the same object, so they would share one state; build two objects"
                )
        self._joins: list[Join] = []
        self._constants: dict[str, npt.NDArray[np.float64]] = {}
        self._fed: dict[str, str] = {}
        self._plan: Plan | None = None

    # -- joining ---------------------------------------------------------------------------------------

    def connect(self, source: str, *targets: str) -> None:
        """Feed the output `source` to one or several inputs.

        >>> import cosolve as cs
        >>> a = cs.Static(lambda t, u: t, inputs=[], outputs=["y"])
        >>> b = cs.Static(lambda t, u: 2 * u, inputs=["u"], outputs=["y"])
        >>> system = cs.System({"a": a, "b": b})
        >>> system.connect("a.y", "b.u")
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
            if port.unit and out.unit and port.unit != out.unit:
                raise SetupError(
                    f"connect: '{source}' is in {out.unit} but '{target}' in {port.unit}; use a law that converts"
                )
        self._feed(targets, f"the connection from {source}")
        self._joins.append(Join("connect", ((source, out.size, dict.fromkeys(targets, 1.0)),), (source,)))
        self._plan = None

    def law(
        self,
        inputs: Drives,
        function: Callable[..., Any],
        *,
        of: Sequence[str] | str,
        jacobian: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> None:
        """Compute inputs from outputs: `function(*values of the outputs) -> one value per input, in that order`.

        Scalar ports arrive and are returned as plain floats; a single input takes a plain value. With a dict
        `{input: factor}` the law has *one* value that drives all these inputs, each times its factor: a force and
        its reaction are one coupling variable, `{"one.f": 1, "two.f": -1}`. `name` gives that variable a name in the
        result. `jacobian(*values)` may return the derivative of the value(s) by all arguments, as a matrix (flat, or
        scipy-sparse for fields).

        Functions jitted by numba, and C functions of doubles (`ctypes`, or numba's `cfunc`), run in the compiled loop.
        """
        function = getattr(function, "ctypes", function)  # of a cfunc: the machine code, not the Python function
        of = [of] if isinstance(of, str) else list(of)
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
        self._feed(drives, "a law")
        self._joins.append(Join("law", variables, tuple(of), function, jacobian))
        self._plan = None

    def map(self, source: str, target: str, mapping: FieldMapping, kind: str = "consistent") -> None:
        """Feed a field to an input on another mesh: `"consistent"` for displacements, `"conservative"` for loads.

        >>> import cosolve as cs
        >>> mapping = cs.barycentric(cs.Mesh.line([0.0, 1.0, 2.0]), cs.Mesh.line([0.0, 0.5, 1.5, 2.0]))
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
        """The general form: unknowns that drive inputs, and residual equations that determine them.

        `unknowns` maps a name to the inputs it drives (a name, a list, or `{input: factor}`);
        `residual(*unknown values, *output values)` returns as many numbers as there are unknowns, zero when solved.
        At the start the unknowns are solved for, from `initial` (or 0) to the solution near it; those that the outputs
        at that instant do not determine keep it, and `check` names them (docs/theory.md, Start-up). That evaluates all
        outputs with direct feed-through twice per unknown and iteration; `solve_start=False` spares it, for costly
        solvers or to see an iteration begin at `initial`.

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
        """A rigid joint: multipliers that drive inputs so that a condition on positions holds.

        `levels(*outputs)` returns the condition and its time derivatives, `(g, g')` or `(g, g', g'')`, each with as
        many numbers as there are multipliers. `correction` names unknowns, one per multiplier, that drive inputs of the
        *position* equations (`x' = v + mu`); the stabilised index-2 method needs them, the others hold them at
        zero. How the levels determine the multipliers is chosen by the method: `SemiImplicit(constraints=Baumgarte())`.
        `jacobian(*outputs)` may return the derivatives, shape `(levels, multipliers, numbers in outputs)`. Multipliers
        start at `initial`, or where `g'' = 0` holds.

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
        function: object,
        of: Sequence[str] | str,
        initial: Mapping[str, Any] | None,
        added: int = 0,
    ) -> tuple[tuple[tuple[str, int | None, Mapping[str, float]], ...], tuple[str, ...]]:
        """Check unknowns and what determines them, and note that they feed their inputs."""
        of = [of] if isinstance(of, str) else list(of)
        for source in of:
            self.port(source, "output", where)
        self._callable(function, where)
        if not isinstance(unknowns, Mapping) or len(unknowns) <= added:
            raise SetupError(f"{where}: no unknowns given as {{name: inputs}}; nothing could satisfy the residual")
        variables = []
        for unknown, inputs in unknowns.items():
            if "." in unknown:
                raise SetupError(f"{where}: '{unknown}' is not a name for an unknown; use a name without a dot")
            drives = self._drives(inputs, where)
            variables.append((unknown, self._same_size(drives, where), drives))
        for key, given in (initial or {}).items():
            if key not in unknowns:
                raise SetupError(
                    f"{where}: initial value for '{key}', which is not among the unknowns {list(unknowns)}"
                )
            length = self._length(unknowns[key], where)
            try:
                value = np.broadcast_to(np.asarray(given, dtype=np.float64), (length,))
            except (TypeError, ValueError):
                value = np.array([np.nan])
            if not np.isfinite(value).all():
                raise SetupError(f"{where}: initial value of '{key}' must be {length} finite numbers, not {given!r}")
        self._feed([t for _, _, drives in variables for t in drives], f"the unknowns {', '.join(unknowns)}")
        return tuple(variables), tuple(of)

    def set(self, target: str, value: npt.ArrayLike) -> None:
        """Hold an input at a constant value.

        >>> import cosolve as cs
        >>> system = cs.System({"a": cs.Static(lambda t, u: u + t, inputs=["u"], outputs=["y"])})
        >>> system.set("a.u", 2.0)
        """
        port = self.port(target, "input", "set")
        try:
            constant = np.asarray(value, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError):
            constant = np.array([np.nan])
        if constant.size == 1:
            constant = np.full(port.length, constant[0])
        if constant.size != port.length or not np.isfinite(constant).all():
            many = "one finite number" if port.length == 1 else f"{port.length} finite numbers"
            raise SetupError(f"set: '{target}' takes {many}, not {value!r}")
        if target not in self._constants:
            self._feed([target], "a constant")
        self._constants[target] = constant
        self._plan = None

    # -- compiling -------------------------------------------------------------------------------------

    def plan(self) -> Plan:
        """The compiled system; refuses inputs that nothing feeds."""
        if self._plan is None:
            from cosolve.interface.compiling import compile_plan

            self._plan = compile_plan(self, self._joins, self._constants, self._fed)
        return self._plan

    # -- looking things up -----------------------------------------------------------------------------

    def port(self, address: str, kind: str, where: str) -> Port:
        """The port behind `subsystem.port`, or a sentence that says what exists."""
        if not isinstance(address, str) or address.count(".") != 1:
            raise SetupError(f"{where}: {address!r} is not an address of the form 'subsystem.port'")
        name, port = address.split(".")
        if name not in self.subsystems:
            if not self.subsystems:
                hint = "but this system has none; give subsystems to System first"
            else:
                hint = f"which does not exist; {_suggest(name, list(self.subsystems), 'there are')}"
            raise SetupError(f"{where}: '{address}' names the subsystem '{name}', {hint}")
        here, there = (self.inputs, self.outputs) if kind == "input" else (self.outputs, self.inputs)
        if port not in here[name]:
            if port in there[name]:
                other = "an output" if kind == "input" else "an input"
                raise SetupError(
                    f"{where}: '{address}' is {other}, but {'an' if kind[0] in 'io' else 'a'} {kind} is needed here"
                )
            raise SetupError(
                f"{where}: '{name}' has no {kind} '{port}'; {_suggest(port, here[name].names, f'its {kind}s are')}"
            )
        return here[name].by_name[port]

    def _drives(self, inputs: Drives, where: str) -> dict[str, float]:
        factors = (
            dict(inputs)
            if isinstance(inputs, Mapping)
            else dict.fromkeys([inputs] if isinstance(inputs, str) else inputs, 1.0)
        )
        if not factors:
            raise SetupError(f"{where}: no inputs given")
        if not isinstance(inputs, (Mapping, str)) and len(factors) < len(inputs):
            raise SetupError(f"{where}: {list(inputs)} names an input twice; each input takes one value")
        for target, factor in factors.items():
            self.port(target, "input", where)
            if not is_number(factor) or factor == 0:
                raise SetupError(
                    f"{where}: the factor of '{target}' must be a finite number other than 0, not {factor!r}"
                )
        return {target: float(factor) for target, factor in factors.items()}

    def _same_size(self, drives: Mapping[str, float], where: str) -> int | None:
        sizes = {target: self.port(target, "input", where).size for target in drives}
        if len(set(sizes.values())) > 1:
            raise SetupError(f"{where}: one value cannot drive inputs of different sizes {sizes}")
        return next(iter(sizes.values()))

    def _feed(self, targets: Iterable[str], by: str) -> None:
        """Note that `by` feeds these inputs; all or none, so that a refused call leaves no trace."""
        new: dict[str, str] = {}
        for target in targets:
            other = new.get(target, self._fed.get(target))
            if other is not None:
                raise SetupError(
                    f"input '{target}' is fed twice, by {other} and by {by}; remove one of them "
                    "(to add two contributions, use one law of both)"
                )
            new[target] = by
        self._fed.update(new)

    def _length(self, inputs: Drives, where: str) -> int:
        """How many numbers an unknown holds that drives these inputs."""
        return self.port(next(iter(self._drives(inputs, where))), "input", where).length

    @staticmethod
    def _callable(function: object, where: str) -> None:
        if not callable(function):
            raise SetupError(f"{where}: the function is a {type(function).__name__}, which cannot be called")

    def __str__(self) -> str:
        count = len(self.subsystems)
        lines = [f"System with {count} subsystem{'s' if count != 1 else ''}"]
        for name, subsystem in self.subsystems.items():
            into, out = ", ".join(self.inputs[name].names) or "-", ", ".join(self.outputs[name].names) or "-"
            lines.append(f"  {name} ({type(subsystem).__name__}): {into} -> {out}")
        for join in self._joins:
            driven = [
                ("" if f == 1 else "-" if f == -1 else f"{f:g} ") + t
                for _, _, d in join.variables
                for t, f in d.items()
            ]
            what = join.of[0] if join.kind == "connect" else f"{join.kind}({', '.join(join.of)})"
            unknowns = join.kind in ("equations", "constraint")
            named = [v for v, _, d in join.variables if unknowns or (join.kind == "law" and v not in d)]
            lines.append(f"  {', '.join(named) + ' = ' if named else ''}{what} -> {', '.join(driven)}")
        lines += [f"  {value.tolist()} -> {target}" for target, value in self._constants.items()]
        return "\n".join(lines)


def _suggest(word: str, known: Sequence[str], intro: str) -> str:
    close = get_close_matches(word, known, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    shown = ", ".join(f"'{k}'" for k in known[:8]) + (", ..." if len(known) > 8 else "")
    return f"{intro} {shown}" if known else "it has none"
