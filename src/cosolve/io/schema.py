"""What may stand in a system file, table by table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler, create_model, model_validator
from pydantic_core import PydanticCustomError

from cosolve.options import RunOptions, known_options


class Table(BaseModel):
    """A table without other keys, whose numbers are numbers."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _by_address(value: Any, prefix: str = "") -> Any:
    """`{one = {f = 1}}`, which TOML makes of the unquoted key `one.f`, means `{"one.f" = 1}`."""
    if not isinstance(value, Mapping):
        return value
    flat: dict[str, Any] = {}
    for name, inside in value.items():
        flat.update(_by_address(inside, f"{prefix}{name}.") if isinstance(inside, Mapping) else {prefix + name: inside})
    return flat


class Unquoted:
    """A table by address, as editors see it: keys with dots and without quotes are tables inside tables there."""

    def __get_pydantic_json_schema__(self, core: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        found = dict(handler(core))
        value = found.get("additionalProperties", {})
        inside = {"type": "object", "additionalProperties": value}
        return {**found, "additionalProperties": {"anyOf": [value, inside]}}


Factors = Annotated[dict[str, float], BeforeValidator(_by_address), Unquoted()]
Drives = str | list[str] | Factors
Addresses = str | list[str]
Matrix = list[list[float]]
Numbers = float | list[float]
Quantity = Literal["field", "loads"]


class PortTable(Table):
    """A port with more than a name."""

    name: str
    size: int | None = None
    unit: str = ""
    nominal: float = 1.0


class FactoryTable(Table):
    """[subsystems.NAME] made by a function of the user."""

    factory: str
    parameters: dict[str, Any] = {}
    isolated: bool = False


class FmuTable(Table):
    """[subsystems.NAME] with `fmu`, the path of an FMU (relative to the system file), and options of `load_fmu`."""

    fmu: str
    parameters: dict[str, Any] = {}
    start: dict[str, Any] = {}
    inputs: list[str] | None = None
    outputs: list[str] | None = None
    options: dict[str, Any] = {}
    isolated: bool = False


class PlaceTable(Table):
    """A port of a structure: what is put in or measured at some degrees of freedom."""

    name: str
    dofs: int | list[int] | Matrix
    what: Literal["force", "displacement", "velocity", "acceleration", "reaction"]
    factor: float = 1.0
    unit: str = ""
    nominal: float = 1.0


class FilterTable(Table):
    """One of the `filters` of a connection: a single step from what comes in to what goes out."""

    scale: float | None = None
    offset: Numbers | None = None
    add: Factors | None = None
    map: Literal["mortar", "dual-mortar", "nearest-neighbour", "barycentric", "radial-basis"] | None = None
    options: dict[str, Any] = {}
    kind: Literal["consistent", "conservative"] | None = None
    to_loads: str | None = None
    to_field: str | None = None
    weak: float | None = None

    @model_validator(mode="after")
    def _one_way(self) -> FilterTable:
        steps = [name for name in type(self).model_fields if name not in ("options", "kind")]
        given = [name for name in steps if getattr(self, name) is not None]
        if len(given) != 1:
            raise PydanticCustomError(
                "filter", "a filter is one of {steps}; put several into the list, in order", {"steps": ", ".join(steps)}
            )
        if self.map is None and (self.options or self.kind is not None):
            raise PydanticCustomError("filter", "options and kind belong to a filter with map")
        return self


class ConnectionTable(Table):
    """[[connections]], straight or through `filters`."""

    source: str = Field(alias="from")
    to: Addresses
    filters: list[FilterTable] = []
    name: str | None = None

    @model_validator(mode="after")
    def _weak_last(self) -> ConnectionTable:
        if any(each.weak is not None for each in self.filters[:-1]):
            raise PydanticCustomError(
                "filter", "weak is the last filter of a connection, since it remembers what it sent"
            )
        if self.name is not None and not self.filters:
            raise PydanticCustomError(
                "filter", "a name belongs to a connection with filters; without, the output has one"
            )
        return self


class MeshTable(Table):
    """[meshes.NAME]: points and cells right here, points of a `line`, a `file`, or a `factory`."""

    points: list[float] | Matrix | None = None
    lines: list[list[int]] | None = None
    triangles: list[list[int]] | None = None
    quadrilaterals: list[list[int]] | None = None
    line: list[float] | Matrix | None = None
    closed: bool = False
    file: str | None = None
    group: str | None = None
    factory: str | None = None
    parameters: dict[str, Any] = {}

    @model_validator(mode="after")
    def _one_way(self) -> MeshTable:
        ways = {
            "points": ("lines", "triangles", "quadrilaterals"),
            "line": ("closed",),
            "file": ("group",),
            "factory": ("parameters",),
        }
        given = [way for way in ways if getattr(self, way) is not None]
        if len(given) != 1:
            raise PydanticCustomError("mesh", "a mesh needs exactly one of points, line, file and factory")
        for way, keys in ways.items():
            for key in keys:
                if way != given[0] and key in self.model_fields_set:
                    raise PydanticCustomError(
                        "mesh",
                        "{key} belongs to a mesh with {way}, not to one with {given}",
                        {"key": key, "way": way, "given": given[0]},
                    )
        return self


class FieldTable(Table):
    """One of the [fields]: a port whose numbers lie at the points of a mesh."""

    mesh: str
    components: Annotated[int, Field(ge=1)] = 1
    quantity: Quantity = "field"


class LawTable(Table):
    """[[laws]]: `function` (with parameters as keywords), `factory` (called with them), or `linear` coefficients."""

    inputs: Drives
    function: str | None = None
    factory: str | None = None
    linear: Factors | None = None
    parameters: dict[str, Any] = {}
    of: Addresses | None = None
    name: str | None = None

    @model_validator(mode="after")
    def _one_way(self) -> LawTable:
        given = [key for key in ("function", "factory", "linear") if getattr(self, key) is not None]
        if len(given) != 1:
            raise PydanticCustomError("law", "a law needs exactly one of function, factory and linear")
        if self.linear is None and self.of is None:
            raise PydanticCustomError("law", "a law needs 'of', the outputs that its function takes as arguments")
        if self.linear is not None and (self.of is not None or self.parameters):
            raise PydanticCustomError(
                "law", "a linear law names its outputs itself, so it takes no 'of' and no parameters"
            )
        return self


class EquationsTable(Table):
    """[[equations]]: a function `residual`, or `linear` coefficients of unknowns and outputs, a table per equation."""

    unknowns: dict[str, Drives]
    residual: str | None = None
    linear: list[Factors] | None = None
    parameters: dict[str, Any] = {}
    of: Addresses | None = None
    initial: dict[str, Numbers] = {}
    solve_start: bool = True

    @model_validator(mode="after")
    def _one_way(self) -> EquationsTable:
        if (self.residual is None) == (self.linear is None):
            raise PydanticCustomError("equations", "equations need exactly one of residual and linear")
        if self.residual is not None and self.of is None:
            raise PydanticCustomError("equations", "equations need 'of', the outputs that their residual takes")
        if self.linear is not None and (self.of is not None or self.parameters):
            raise PydanticCustomError(
                "equations", "linear equations name their outputs themselves, so they take no 'of' and no parameters"
            )
        return self


class ConstraintTable(Table):
    """[[constraints]]."""

    multipliers: dict[str, Drives]
    levels: str
    parameters: dict[str, Any] = {}
    of: Addresses
    correction: dict[str, Drives] = {}
    initial: dict[str, Numbers] = {}


class InputTable(Table):
    """One of the [inputs]: a CSV file (`table`, with `column` and `time`), points right here, or a `function`."""

    table: str | None = None
    column: str | list[str] | None = None
    time: str | None = None
    times: list[float] | None = None
    values: list[float] | list[list[float]] | None = None
    kind: Literal["linear", "step", "cubic"] = "linear"
    beyond: Literal["hold", "error"] = "hold"
    function: str | None = None
    parameters: dict[str, Any] = {}

    @model_validator(mode="after")
    def _one_way(self) -> InputTable:
        if sum(given is not None for given in (self.table, self.times, self.function)) != 1:
            raise PydanticCustomError("input", "an input needs exactly one of table, times (with values) and function")
        if (self.times is None) != (self.values is None):
            raise PydanticCustomError("input", "times and values belong together")
        return self


def _inputs_by_address(value: Any, prefix: str = "") -> Any:
    """As `_by_address`; a table that says what drives an input is left whole."""
    if not isinstance(value, Mapping):
        return value
    flat: dict[str, Any] = {}
    for name, inside in value.items():
        whole = not isinstance(inside, Mapping) or any(not isinstance(each, Mapping) for each in inside.values())
        flat.update({prefix + name: inside} if whole else _inputs_by_address(inside, f"{prefix}{name}."))
    return flat


class ChangeTable(Table):
    """[[changes]]: new values of parameters and constant inputs from the time `t` on."""

    t: float
    set: Annotated[dict[str, Any], BeforeValidator(_by_address), Unquoted()]


#: How the types of run options stand in files.
_IN_FILES: dict[str, Any] = {
    "Adaptive": dict[str, Any],
    "Keep": int,
    "Literal": Literal,
    "MethodLike": str | dict[str, Any],
    "ObserverLike": str | dict[str, Any],
    "Pace": float,
    "Path": str,
    "Sequence": list,
    "Startup": str | dict[str, Any],
}


def _with_options(name: str) -> Callable[[type[Table]], Any]:
    """Add the run options that stand in the table of this name."""
    fields: dict[str, Any] = {}
    for known in known_options(RunOptions).values():
        about, needed = known.about, known.default is Parameter.empty
        if about.table == name:
            hint = eval(known.type, _IN_FILES.copy())  # noqa: S307  an annotation of the package
            if about.least is not None:
                hint = Annotated[hint, Field(ge=about.least)]
            default = [] if known.default == () else known.default
            fields[about.key or known.name] = (hint, ... if needed else default)
    return lambda base: create_model(base.__name__, __base__=base, __doc__=base.__doc__, **fields)


@_with_options("simulation")
class SimulationTable(Table):
    """[simulation]; what `method` or `step` leave open follows from `rtol`."""

    ranks: dict[str, Annotated[int, Field(ge=0)]] = {}


@_with_options("output")
class OutputTable(Table):
    """[output]: `file` and the flags that put a CSV, a picture and a report next to it."""

    csv: bool = False
    plot: list[str] = []
    report: bool = False


class PartsTable(Table):
    """What a system consists of: subsystems, and what joins them."""

    meshes: dict[str, MeshTable] = {}
    subsystems: dict[str, dict[str, Any]]
    fields: Annotated[dict[str, FieldTable], BeforeValidator(_inputs_by_address), Unquoted()] = {}
    connections: list[ConnectionTable] = []
    laws: list[LawTable] = []
    equations: list[EquationsTable] = []
    constraints: list[ConstraintTable] = []
    constants: Annotated[dict[str, Numbers], BeforeValidator(_by_address), Unquoted()] = {}


class InnerTable(PartsTable):
    """[subsystems.NAME] with `kind = "system"`: a system of its own, in a `file` or right here, iterated inside."""

    kind: Literal["system"]
    file: str | None = None
    subsystems: dict[str, dict[str, Any]] = {}
    inputs: dict[str, Drives] | Addresses = []
    outputs: dict[str, str] | Addresses
    method: str | dict[str, Any] | None = None
    step: float | dict[str, Any] | None = None
    substeps: Annotated[int, Field(ge=1)] | None = None
    startup: str | dict[str, Any] | None = None
    workers: Annotated[int, Field(ge=1)] = 1

    @model_validator(mode="after")
    def _one_way(self) -> InnerTable:
        here = [name for name in PartsTable.model_fields if getattr(self, name)]
        if self.file is not None and here:
            raise PydanticCustomError("inner", "a system inside comes from a file or stands right here, not both")
        if self.file is None and not self.subsystems:
            raise PydanticCustomError("inner", "a system inside needs a file, or subsystems right here")
        if self.file is None and self.method is None:
            raise PydanticCustomError("inner", "a system inside needs a method, such as method = 'implicit'")
        return self


class SystemTable(PartsTable):
    """The whole file."""

    inputs: Annotated[dict[str, InputTable], BeforeValidator(_inputs_by_address), Unquoted()] = {}
    changes: list[ChangeTable] = []
    simulation: SimulationTable
    output: OutputTable = OutputTable()
