"""What may stand in a system file, table by table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError


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


Factors = Annotated[dict[str, float], BeforeValidator(_by_address)]
Drives = str | list[str] | Factors
Addresses = str | list[str]


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


class FmuTable(Table):
    """[subsystems.NAME] with `fmu`, the path of an FMU (relative to the system file), and options of `load_fmu`."""

    fmu: str
    parameters: dict[str, Any] = {}
    start: dict[str, Any] = {}
    inputs: list[str] | None = None
    outputs: list[str] | None = None
    options: dict[str, Any] = {}
    isolated: bool = False


class LinearTable(Table):
    """[subsystems.NAME] with `kind = "linear"`."""

    kind: Literal["linear"]
    A: list[list[float]]
    B: list[list[float]]
    C: list[list[float]]
    D: list[list[float]] | None = None
    x0: list[float]
    inputs: list[str | PortTable]
    outputs: list[str | PortTable]


class ConnectionTable(Table):
    """[[connections]]."""

    source: str = Field(alias="from")
    to: Addresses


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
    """[[equations]]."""

    unknowns: dict[str, Drives]
    residual: str
    parameters: dict[str, Any] = {}
    of: Addresses
    initial: dict[str, float | list[float]] = {}


class ConstraintTable(Table):
    """[[constraints]]."""

    multipliers: dict[str, Drives]
    levels: str
    parameters: dict[str, Any] = {}
    of: Addresses
    correction: dict[str, Drives] = {}
    initial: dict[str, float | list[float]] = {}


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
    set: Annotated[dict[str, Any], BeforeValidator(_by_address)]


class SimulationTable(Table):
    """[simulation]; what `method` or `step` leave open follows from `rtol`."""

    t_end: float
    t_start: float = 0.0
    method: str | dict[str, Any] | None = None
    step: float | dict[str, Any] | None = None
    rtol: float | None = None
    startup: str | dict[str, Any] | None = None
    workers: Annotated[int, Field(ge=1)] = 1
    ranks: dict[str, Annotated[int, Field(ge=0)]] = {}
    error_bar: bool | Literal["sure"] = False
    max_steps: Annotated[int, Field(ge=1)] | None = None
    stop_at_events: bool = False


class OutputTable(Table):
    """[output]: `file` and the flags that put a CSV, a picture and a report next to it."""

    file: str | None = None
    csv: bool = False
    plot: list[str] = []
    report: bool = False
    every: Annotated[int, Field(ge=1)] = 1
    record: list[str] | None = None
    state_every: int | str | None = None


class SystemTable(Table):
    """The whole file."""

    subsystems: dict[str, dict[str, Any]]
    connections: list[ConnectionTable] = []
    laws: list[LawTable] = []
    equations: list[EquationsTable] = []
    constraints: list[ConstraintTable] = []
    constants: Annotated[dict[str, float | list[float]], BeforeValidator(_by_address)] = {}
    inputs: Annotated[dict[str, InputTable], BeforeValidator(_inputs_by_address)] = {}
    changes: list[ChangeTable] = []
    simulation: SimulationTable
    output: OutputTable = OutputTable()


#: which table a complaint below a top-level name is about
TABLES: dict[str, type[Table]] = {
    "connections": ConnectionTable,
    "laws": LawTable,
    "equations": EquationsTable,
    "constraints": ConstraintTable,
    "inputs": InputTable,
    "changes": ChangeTable,
    "simulation": SimulationTable,
    "output": OutputTable,
}
