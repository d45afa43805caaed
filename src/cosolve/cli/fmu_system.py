"""A system file around FMUs that are not coupled yet: connections where names say so, the rest to be filled in.

An input is fed by an output of another FMU that has the same name, or a name made of the FMU's and the output's
(`z_wheel` or `wheel.z` for `z` of `wheel`), where the units agree. What is left is held at its start value, with
the outputs that would fit by their unit in a comment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cosolve.basics.wording import counted
from cosolve.errors import SetupError
from cosolve.fmu.inspection import Inspection, inspect_fmu

_MANY = 8  # parameters or outputs named in a comment


class FmuSystem:
    """FMUs by the names that they get, and the file that couples them in `folder`."""

    def __init__(self, fmus: Sequence[Path], folder: Path) -> None:
        self.files = list(dict.fromkeys(fmus))
        self._found: dict[str, Inspection] = {}
        self._file_of: dict[str, str] = {}
        for file in fmus:
            if file.is_dir():
                raise SetupError(f"'{file}' is a folder; give the packed FMU")
            name = self._new_name(file.stem)
            self._found[name] = inspect_fmu(file)
            self._file_of[name] = file.name
        names = [file.name for file in self.files]
        if len(set(names)) < len(names):
            raise SetupError(f"two FMUs have the same file name in different folders: {', '.join(names)}; rename one")
        self.connections = self._connections()
        self.unconnected_inputs = [
            (name, port)
            for name, found in self._found.items()
            for port in found.inputs
            if (name, port["name"]) not in self.connections
        ]

    def _new_name(self, stem: str) -> str:
        """A subsystem's name from a file's, without dots, and new."""
        name = re.sub(r"\W+", "_", stem).strip("_") or "fmu"
        others = [other for other in self._found if re.fullmatch(rf"{re.escape(name)}(_\d+)?", other)]
        return f"{name}_{len(others) + 1}" if others else name

    def _connections(self) -> dict[tuple[str, str], tuple[str, str]]:
        """Where each input gets its values from."""
        found = {}
        for name, one in self._found.items():
            for port in one.inputs:
                named = [
                    (other, output["name"])
                    for other, two in self._found.items()
                    if other != name
                    for output in two.outputs
                    if _says(port["name"], other, output["name"]) and _fits(port, output)
                ]
                if len(named) == 1:
                    found[name, port["name"]] = named[0]
        return found

    @property
    def remark(self) -> str:
        """What is left to be said in the file."""
        if not self.unconnected_inputs:
            return ""
        named = ", ".join(f"{name}.{port['name']}" for name, port in self.unconnected_inputs[:3])
        more = ", ..." if len(self.unconnected_inputs) > 3 else ""
        return f"{counted(len(self.unconnected_inputs), 'input')} held at the start value: {named}{more}"

    def text(self) -> str:
        """The system file."""
        lines = ["# FMUs, coupled. Every key: cosolve docs system-files. Their ports: cosolve inspect NAME.fmu"]
        for name, found in self._found.items():
            lines += ["", f"[subsystems.{_key(name)}]", f"fmu = {_quoted(self._file_of[name])}"]
            shown = [f"{_key(p['name'])} = {_value(p)}" for p in found.parameters if _value(p) is not None][:_MANY]
            if shown:
                lines.append(f"# parameters = {{{', '.join(shown)}}}")
            lines.append(f"# outputs: {_list_of(found.outputs)}")
        for into, out_of in self.connections.items():
            origin, target = _quoted(".".join(out_of)), _quoted(".".join(into))
            lines += ["", "[[connections]]", f"from = {origin}", f"to = {target}"]
        if self.unconnected_inputs:
            lines += [
                "",
                "# held at their start values; to connect one, write it as [[connections]] and delete it here",
            ]
            lines.append("[constants]")
        for name, port in self.unconnected_inputs:
            fitting = [
                f"{other}.{output['name']}"
                for other, two in self._found.items()
                if other != name
                for output in two.outputs
                if _fits(port, output)
            ]
            hint = f"  # {port['unit'] or 'no unit'}" + (f"; would fit: {', '.join(fitting[:4])}" if fitting else "")
            lines.append(f"{_quoted(name + '.' + port['name'])} = {_value(port) or '0.0'}{hint}")
        return "\n".join([*lines, "", *self._simulation()]) + "\n"

    def _simulation(self) -> list[str]:
        experiments = [found.experiment for found in self._found.values()]
        t_end = min((e["stopTime"] for e in experiments if e.get("stopTime", 0.0) > 0), default=1.0)
        step = min((e["stepSize"] for e in experiments if e.get("stepSize", 0.0) > 0), default=t_end / 500)
        all_methods = [{v.method: v.possible for v in found.methods} for found in self._found.values()]
        goes_back = all(methods.get("SemiImplicit", False) for methods in all_methods)
        method = "semi-implicit" if goes_back else "jacobi"
        reason = "all can go back to the start of a step" if goes_back else "not all can go back to the start of a step"
        return [
            "[simulation]",
            f"t_end = {float(t_end)!r}",
            f'method = {{name = "{method}", degree = 1}}  # {reason}',
            f"step = {float(step)!r}",
            "",
            "[output]",
            'file = "result.h5"',
        ]


def _says(port: str, other: str, output: str) -> bool:
    """Whether the name of an input speaks of that output."""
    plain = re.sub(r"\W+", "_", port).strip("_").lower()
    ways = {output, f"{output}_{other}", f"{other}_{output}"}
    return plain in {re.sub(r"\W+", "_", way).strip("_").lower() for way in ways}


def _fits(port: dict[str, Any], output: dict[str, Any]) -> bool:
    same_unit = not port["unit"] or not output["unit"] or port["unit"] == output["unit"]
    return same_unit and str(port["size"]) == str(output["size"])


def _value(variable: dict[str, Any]) -> str | None:
    """A start value as TOML, None where it is no number."""
    words = str(variable["start"] or "").split()
    try:
        numbers = [repr(float({"true": 1, "false": 0}.get(word, word))) for word in words]
    except ValueError:
        return None
    if not numbers:
        return None
    return numbers[0] if len(numbers) == 1 else f"[{', '.join(numbers)}]"


def _list_of(ports: Sequence[dict[str, Any]]) -> str:
    shown = [port["name"] + (f" [{port['unit']}]" if port["unit"] else "") for port in ports[:_MANY]]
    return ", ".join(shown + (["..."] if len(ports) > _MANY else [])) or "none"


def _key(name: str) -> str:
    """A key of TOML, quoted where it must be."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _quoted(text: str) -> str:
    from json import dumps

    return dumps(text, ensure_ascii=False)
