"""Small system structures as text, and components that need no FMU."""

import zipfile
from pathlib import Path

import cosolve as cs

NAMESPACES = (
    'xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription" '
    'xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon" '
    'xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues" '
    'xmlns:ssm="http://ssp-standard.org/SSP1/SystemStructureParameterMapping"'
)
UNITS = """
<ssd:Units>
  <ssc:Unit name="m"><ssc:BaseUnit m="1"/></ssc:Unit>
  <ssc:Unit name="mm"><ssc:BaseUnit m="1" factor="0.001"/></ssc:Unit>
  <ssc:Unit name="K"><ssc:BaseUnit K="1"/></ssc:Unit>
  <ssc:Unit name="degC"><ssc:BaseUnit K="1" offset="273.15"/></ssc:Unit>
</ssd:Units>
"""


def description(system: str, rest: str = "", version: str = "1.0") -> str:
    """A whole .ssd around a system."""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<ssd:SystemStructureDescription {NAMESPACES} version="{version}" '
        f'name="test">\n{system}\n{rest}\n</ssd:SystemStructureDescription>\n'
    )


def component(name: str, inputs: dict, outputs: dict, inside: str = "", source: str = "box.fmu", parameters=()) -> str:
    """A component with connectors `{name: unit}` and parameter connectors."""
    ports = [(n, "input", u) for n, u in inputs.items()] + [(n, "output", u) for n, u in outputs.items()]
    ports += [(n, "parameter", "") for n in parameters]
    connectors = "".join(
        f'<ssd:Connector name="{n}" kind="{kind}"><ssc:Real{f" unit={u!r}" if u else ""}/></ssd:Connector>'
        for n, kind, u in ports
    )
    return (
        f'<ssd:Component name="{name}" type="application/x-fmu-sharedlibrary" source="{source}">'
        f"<ssd:Connectors>{connectors}</ssd:Connectors>{inside}</ssd:Component>"
    )


def connection(start, end, inside: str = "", **attributes: str) -> str:
    """`element.connector`, `connector` (of the system itself), or `(element, connector)` on both sides."""
    found = dict(attributes)
    for side, address in (("start", start), ("end", end)):
        element, connector = address if isinstance(address, tuple) else address.rpartition(".")[::2]
        found[f"{side}Connector"] = connector
        if element:
            found[f"{side}Element"] = element
    text = " ".join(f'{key}="{value}"' for key, value in found.items())
    return f"<ssd:Connection {text}>{inside}</ssd:Connection>"


def bound(values: str, **attributes: str) -> str:
    """Inline parameter values; `values` holds ssv:Parameter elements."""
    text = " ".join(f'{key}="{value}"' for key, value in attributes.items())
    return (
        f"<ssd:ParameterBindings><ssd:ParameterBinding {text}><ssd:ParameterValues>"
        f'<ssv:ParameterSet version="1.0" name="p"><ssv:Parameters>{values}</ssv:Parameters></ssv:ParameterSet>'
        "</ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings>"
    )


def real(name: str, value: float, unit: str = "") -> str:
    return (
        f'<ssv:Parameter name="{name}"><ssv:Real value="{value}"{f" unit={unit!r}" if unit else ""}/></ssv:Parameter>'
    )


def archive(path: Path, text: str, **files: bytes) -> Path:
    """A .ssp with the description and files by name (`__` stands for a dot)."""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("SystemStructure.ssd", text)
        for name, data in {"box__fmu": b"", **files}.items():
            file.writestr(name.replace("__", "."), data)
    return path


class Boxes:
    """A component factory: `y = sum of the inputs`, or the constant `k` without any; remembers its parameters."""

    def __init__(self, ports: dict[str, tuple[list, list]]) -> None:
        self.ports, self.parameters = ports, {}

    def __call__(self, source, name, parameters):
        self.parameters[name] = dict(parameters)
        inputs, outputs = self.ports[name]
        if inputs:
            return cs.Static(lambda t, u: [u.sum()] * len(outputs), inputs=inputs, outputs=outputs)
        return cs.Static(lambda t, u: [parameters.get("k", 0.0)] * len(outputs), inputs=[], outputs=outputs)
