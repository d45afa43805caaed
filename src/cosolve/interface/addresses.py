"""Subsystems by name, their ports by address (`subsystem.port`), and what feeds which input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cosolve.basics.checks import as_list, is_number
from cosolve.basics.error_location import complaints_about
from cosolve.basics.wording import article, did_you_mean
from cosolve.errors import SetupError
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.port import Port, Ports

Drives = Mapping[str, float] | Sequence[str] | str


class Addresses:
    """The part of a `System` that knows what there is, and who feeds it."""

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
                way = getattr(subsystem, "way_to_subsystem", "(Linear, Ode, Static, or your own subclass)")
                raise SetupError(f"subsystem '{name}' is a {type(subsystem).__name__}; give a cosolve.Subsystem {way}")
            with complaints_about(f"subsystem '{name}'"):
                self.inputs[name], self.outputs[name] = Ports(subsystem.inputs), Ports(subsystem.outputs)
            both = set(self.inputs[name].slices) & set(self.outputs[name].slices)
            if both:
                raise SetupError(
                    f"subsystem '{name}': {sorted(both)} named both as input and as output; rename one of them"
                )
        seen: dict[int, str] = {}
        for name, subsystem in self.subsystems.items():
            inside = [held for held in getattr(subsystem, "__dict__", {}).values() if isinstance(held, Subsystem)]
            for one in (subsystem, *inside):  # of a wrapper
                other = seen.setdefault(id(one), name)
                if other != name:
                    raise SetupError(
                        f"'{other}' and '{name}' are the same object, so they would share one state; build two objects"
                    )
        self._fed: dict[tuple[str, int], str] = {}  # by subsystem and entry of its inputs

    def port(self, address: str, kind: str, where: str) -> Port:
        """Look up a port.

        Parameters
        ----------
        address : str
            Address of the form "subsystem.port".
        kind : {"input", "output"}
            Which kind of port.
        where : str
            Name of the calling function, for the message.

        Returns
        -------
        Port
            The port, or an element of a vector port as a scalar port.

        Raises
        ------
        SetupError
            If there is none.
        """
        if not isinstance(address, str) or "." not in address:
            raise SetupError(f"{where}: {address!r} is not an address of the form 'subsystem.port'")
        name, port = address.split(".", 1)  # names of ports may hold dots
        if name not in self.subsystems:
            if not self.subsystems:
                hint = "but this system has none; give subsystems to System first"
            else:
                hint = f"which does not exist; {did_you_mean(name, self.subsystems)}"
            raise SetupError(f"{where}: '{address}' names the subsystem '{name}', {hint}")
        here, there = (self.inputs, self.outputs) if kind == "input" else (self.outputs, self.inputs)
        with complaints_about(f"{where}: '{address}'"):
            found, other_way = here[name].find(port), there[name].find(port)
        if found is None:
            if other_way is not None:
                other = "an output" if kind == "input" else "an input"
                raise SetupError(f"{where}: '{address}' is {other}, but {article(kind)} is needed here")
            hint = did_you_mean(port, here[name].names, intro=f"its {kind}s are")
            raise SetupError(f"{where}: '{name}' has no {kind} '{port}'; {hint}")
        return found

    def _drives(self, inputs: Drives, where: str) -> dict[str, float]:
        if not isinstance(inputs, Mapping):
            names = as_list(where, "the inputs", inputs)
            for target in names:
                self.port(target, "input", where)
            inputs = names
        factors = dict(inputs) if isinstance(inputs, Mapping) else dict.fromkeys(inputs, 1.0)
        if not factors:
            raise SetupError(f"{where}: no inputs given")
        if not isinstance(inputs, Mapping) and len(factors) < len(inputs):
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
        new: dict[tuple[str, int], str] = {}
        for target in targets:
            for entry in self._entries(target):
                other = new.get(entry, self._fed.get(entry))
                if other is not None:
                    raise SetupError(
                        f"input '{target}' is fed twice, by {other} and by {by}; remove one of them "
                        "(to add two contributions, use one law of both)"
                    )
                new[entry] = by
        self._fed.update(new)

    def _entries(self, target: str) -> list[tuple[str, int]]:
        """The numbers of an input, each by its subsystem and its place among all inputs there."""
        name, port = target.split(".", 1)
        part = self.inputs[name].slice(port)
        return [(name, k) for k in range(part.start, part.stop)]

    def unconnected_inputs(self) -> list[str]:
        """List the inputs that nothing feeds.

        Returns
        -------
        list of str
            Addresses of whole ports, or of elements.

        Examples
        --------
        >>> import cosolve as cs
        >>> system = cs.System({"a": cs.Static(lambda t, u: u[0], inputs=["u", ("v", 2)], outputs=["y"])})
        >>> system.set("a.v[0]", 1.0)
        >>> system.unconnected_inputs()
        ['a.u', 'a.v[1]']
        """
        found = []
        for name, ports in self.inputs.items():
            for port in ports:
                part = ports.slice(port.name)
                missing = [k - part.start for k in range(part.start, part.stop) if (name, k) not in self._fed]
                if len(missing) == port.length:
                    found.append(f"{name}.{port.name}")
                else:
                    found += [f"{name}.{port.name}[{k}]" for k in missing]
        return found
