"""The plan: a `System` compiled once into flat arrays and integer index maps, on which all methods work.

Three flat vectors describe the exchange: `u` (all inputs of all subsystems), `y` (all outputs) and `z` (the coupling
variables). Inputs follow from `z` by an index map and factors, `u[k] = factor[k] * z[source[k]] + offset[k]`;
the interface equations `r(z, y) = 0` close the loop. A plain connection contributes `z - y_a`, a law `z - f(y)`,
user equations anything. Rows of `r` and entries of `z` correspond one to one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Index, Matrix, Vector, all_finite, finite_doubles, real_array
from cosolve.basics.differences import TWO_SIDED, central_differences
from cosolve.basics.scale import sizes_at
from cosolve.basics.wording import raised, shortened
from cosolve.errors import NonFiniteError, SetupError, SubsystemError
from cosolve.interface.changes import Changes
from cosolve.interface.constraint import Combination, Levels
from cosolve.interface.driven_inputs import Driven
from cosolve.interface.law_partials import exact_partials
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.port import Ports

#: Central differences of laws and equations: cube root of the rounding unit balances its two errors.
LAW_INCREMENT = TWO_SIDED

_Entries = tuple[Index, Index, Vector]

#: Laws of more numbers than this are fields.
_FIELD = 256


class Grid:
    """Rows and columns of a dense block, and those of each of its entries."""

    def __init__(self, rows: Index, columns: Index) -> None:
        self.rows, self.columns = rows, columns
        self.every_row, self.every_column = np.repeat(rows, len(columns)), np.tile(columns, len(rows))


@dataclass(frozen=True)
class Block:
    """A law or a set of user equations: rows of the residual, and the values its function is called with."""

    label: str
    rows: Index  # entries of z (and rows of r) that belong to it
    row_ports: Ports  # how the function's return value is laid out over those rows
    of: tuple[tuple[Index, bool], ...]  # per argument: entries of y, and whether it is a scalar
    function: Callable[..., Any]
    jacobian: Callable[..., Any] | None
    implicit: bool  # False: z = f(y); True: f(z, y) = 0
    z_size: Vector  # nominal values that were given for its unknowns and its arguments; 0: none was
    y_size: Vector
    levels: Levels | None = None  # a constraint, and how its levels are combined
    combination: Combination | None = None
    solve_start: bool = True  # whether its unknowns are solved for at the start

    @cached_property
    def y_index(self) -> Index:
        """All entries of y that it reads, argument by argument."""
        return np.concatenate([index for index, _ in self.of]) if self.of else np.zeros(0, dtype=np.intp)

    @cached_property
    def y_grid(self) -> Grid:
        """Where the derivatives by its arguments belong."""
        return Grid(self.rows, self.y_index)

    @cached_property
    def z_grid(self) -> Grid:
        """Where the derivatives by its unknowns belong."""
        return Grid(self.rows, self.rows)

    @cached_property
    def identity(self) -> _Entries:
        """The derivatives of its unknowns by themselves."""
        return self.rows, self.rows, np.ones(len(self.rows))

    def call(self, z_rows: Vector, y_read: Vector) -> Vector:
        """The function's value for its own unknowns `z_rows` and the flat arguments `y_read`."""
        if self.levels is not None:
            return self._constraint_rows(self.levels, z_rows, y_read)
        arguments = y_read.tolist() if self._scalars else self._arguments(y_read)
        if self.implicit:
            arguments = [*self._unknowns(z_rows), *arguments]
        try:
            returned = self.function(*arguments)
        except Exception as error:
            self._refuse("", error)
        try:
            value = finite_doubles(self.row_ports.listed(returned))
            packed = self.row_ports.pack(returned) if value is None else value
        except SubsystemError as error:
            raise SubsystemError(f"{self.label} {error}") from None
        if value is None and not all_finite(packed):
            self._refuse_non_finite(packed, y_read)
        return packed.copy() if isinstance(returned, np.ndarray) else packed  # which may be the same one in every call

    def _unknowns(self, z_rows: Vector) -> Iterator[Any]:
        """The values of its own unknowns, port by port."""
        for port in self.row_ports:
            part = z_rows[self.row_ports.slice(port.name)]
            yield float(part[0]) if port.size is None else part.copy()

    def _refuse_non_finite(self, value: Vector, y_read: Vector) -> NoReturn:
        k = int(np.flatnonzero(~np.isfinite(value))[0])
        bad = self.row_ports.labels()[k]
        given = np.array2string(y_read, threshold=8)
        raise NonFiniteError(
            f"{self.label} returned {value[k]} for '{bad}' from the outputs {given}; check its formula there, or "
            "take a smaller step if values grew before"
        )

    def _constraint_rows(self, levels: Levels, z_rows: Vector, y_read: Vector) -> Vector:
        if self.combination is None:
            raise SetupError(f"{self.label}: this method cannot solve constraints; use SemiImplicit or Implicit")
        mu = z_rows[levels.count :]
        value: Vector = self._guarded("", levels.rows, self.combination, mu, *self._arguments(y_read))
        if not np.isfinite(value).all():
            raise NonFiniteError(
                f"{self.label} returned a value that is not finite from the outputs "
                f"{np.array2string(y_read, threshold=8)}; take a smaller step if values grew before"
            )
        return value

    def constraint_levels(self, y: Vector) -> Matrix:
        """A constraint at all levels it is given at, for the outputs `y` of the system."""
        assert self.levels is not None
        found: Matrix = self._guarded("", self.levels.values, *self._arguments(y[self.y_index]))
        return found

    def _guarded(self, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call the user's function; one sentence about what it raises."""
        try:
            return function(*arguments)
        except Exception as error:
            self._refuse(what, error)

    def _refuse(self, what: str, error: Exception) -> NoReturn:
        if isinstance(error, SetupError):
            raise SetupError(f"{what}{self.label}: {error}") from None
        raise SubsystemError(f"{what}{self.label} failed: {raised(error)}") from error

    def partials(
        self, z_rows: Vector, y_read: Vector, z_seen: Vector | None = None, y_seen: Vector | None = None
    ) -> tuple[Matrix, Any]:
        """Derivatives of the function's value by its unknowns and by its arguments (sparse where the user says so).

        `z_seen` and `y_seen` are how large these have been so far.
        """
        if self.jacobian is not None and not self.implicit:
            given = self._guarded("the Jacobian of ", self.jacobian, *self._arguments(y_read))
            if hasattr(given, "tocoo") and given.shape == (len(z_rows), len(y_read)):
                return np.zeros((len(z_rows), 0)), given.tocoo()
            try:
                by_y = real_array(given).reshape(len(z_rows), len(y_read))
            except (TypeError, ValueError):
                by_y = np.full((1, 1), np.nan)
            if not np.isfinite(by_y).all():
                raise SubsystemError(
                    f"the Jacobian of {self.label} returned {shortened(given)}; expected {len(z_rows)} x {len(y_read)} "
                    "finite numbers: values by arguments"
                )
            return np.zeros((len(z_rows), 0)), by_y
        y_size = sizes_at(y_read, self.y_size, y_seen)
        if self.levels is not None:
            return self._constraint_partials(self.levels, z_rows, y_read, y_size)
        if not self.implicit:
            return np.zeros((len(z_rows), 0)), self._law_partials(z_rows, y_read, y_size)
        by_y = central_differences(partial(self.call, z_rows), y_read, y_size)
        z_size = sizes_at(z_rows, self.z_size, z_seen)
        return central_differences(lambda z: self.call(z, y_read), z_rows, z_size), by_y

    def _law_partials(self, z_rows: Vector, y_read: Vector, y_size: Vector) -> Matrix:
        """Exact where the law is jitted."""
        partials = self._exact_partials
        if partials is None:
            return central_differences(partial(self.call, z_rows), y_read, y_size)
        arguments, slopes = np.array(y_read, dtype=np.float64), np.empty((len(y_read), len(z_rows)))
        memory = arguments, y_size, np.empty(2 * len(z_rows)), slopes
        self._guarded("a derivative of ", partials, *(array.ctypes.data for array in memory))
        if not all_finite(slopes.ravel()):
            given = np.array2string(y_read, threshold=8)
            raise NonFiniteError(
                f"{self.label} has a derivative that is not finite at the outputs {given}; "
                "check its formula there, or take a smaller step if values grew before"
            )
        return slopes.T

    @cached_property
    def _exact_partials(self) -> Any:
        return exact_partials(self.function, self.takes, self.gives)

    @cached_property
    def takes(self) -> tuple[int | None, ...]:
        """The lengths of its arguments; None for single numbers."""
        return tuple(None if scalar else len(index) for index, scalar in self.of)

    @cached_property
    def gives(self) -> tuple[int | None, ...]:
        """And of its values."""
        return tuple(port.size for port in self.row_ports)

    def _constraint_partials(
        self, levels: Levels, z_rows: Vector, y_read: Vector, y_size: Vector
    ) -> tuple[Matrix, Matrix]:
        combination = self.combination or Combination()
        by_z = np.zeros((len(z_rows), len(z_rows)))
        if levels.corrections and not combination.corrected:  # mu = 0
            by_z[levels.count :, levels.count :] = np.eye(levels.corrections)
        by_y = self._guarded("", levels.row_jacobian, combination, len(y_read), *self._arguments(y_read))
        if by_y is None:
            by_y = central_differences(partial(self.call, z_rows), y_read, y_size)
        return by_z, by_y

    @cached_property
    def _scalars(self) -> bool:
        """True when every argument is one number."""
        return all(scalar for _, scalar in self.of)

    def _arguments(self, y_read: Vector) -> list[Any]:
        if self._scalars:
            numbers: list[float] = y_read.tolist()
            return numbers
        values, start = [], 0
        for index, scalar in self.of:
            part = y_read[start : start + len(index)]
            values.append(float(part[0]) if scalar else part.copy())  # the function may write into it
            start += len(index)
        return values


@dataclass(frozen=True)
class Plan:
    """Everything a method needs to know about a coupled system, as plain arrays."""

    names: tuple[str, ...]
    subsystems: tuple[Subsystem, ...]
    input_ports: tuple[Ports, ...]
    output_ports: tuple[Ports, ...]
    u_slices: tuple[slice, ...]
    y_slices: tuple[slice, ...]
    n_u: int
    n_y: int
    n_z: int
    z_labels: tuple[str, ...]
    z_nominal: Vector
    z_initial: Vector
    z_given: npt.NDArray[np.bool_]  # initial values that the user chose
    z_ports: dict[str, tuple[slice, bool]]  # named coupling variables: entries, scalar?
    u_source: Index  # n_u: entry of z that feeds each input (-1: constant)
    u_factor: Vector
    u_offset: Vector
    copy_rows: Index  # plain connections: z[copy_rows] = y[copy_from]
    copy_from: Index
    blocks: tuple[Block, ...]
    y_owner: Index  # n_y: subsystem that owns each output
    driven: tuple[Driven, ...] = ()  # inputs that functions of time or tables drive; their offsets follow the time
    changes: Changes = field(default_factory=Changes)  # parameters that change at macro points
    #: variables whose ports have no nominal value
    z_open: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))
    _reads: tuple[Index, ...] = field(default=())

    @cached_property
    def identity(self) -> Matrix:
        """One on the diagonal, for every coupling variable."""
        return np.eye(self.n_z)

    @cached_property
    def n_subsystems(self) -> int:
        """Number of subsystems."""
        return len(self.subsystems)

    @cached_property
    def explicit(self) -> bool:
        """True when every coupling variable is an explicit function of outputs."""
        return not any(block.implicit for block in self.blocks)

    @cached_property
    def y_given(self) -> Vector:
        """Nominal values that were given for outputs; 0 where none was."""
        listed = [port for ports in self.output_ports for port in ports for _ in range(port.length)]
        return np.array([0.0 if port.nominal == 1.0 else port.nominal for port in listed])

    @cached_property
    def u_driven(self) -> Index:
        """The inputs that functions of time or tables drive, in the order in which they are recorded."""
        return np.concatenate([np.zeros(0, dtype=np.intp), *(one.entries for one in self.driven)])

    @property
    def constraints(self) -> tuple[Block, ...]:
        """The constraints with multipliers."""
        return tuple(block for block in self.blocks if block.levels is not None)

    def combined(self, combination: Combination) -> Plan:
        """The plan whose constraints contribute this combination of their levels."""
        blocks = [b if b.levels is None else replace(b, combination=combination) for b in self.blocks]
        return replace(self, blocks=tuple(blocks))

    def reads(self, i: int) -> Index:
        """The distinct coupling variables that subsystem `i` reads."""
        return self._reads[i]

    def by_variables(self, i: int, by_input: Matrix) -> Matrix:
        """Derivatives by the coupling variables that subsystem `i` reads, of such by its inputs; added up in order."""
        fed, columns, factors = self._fed_inputs[i]
        if len(fed) == len(self._reads[i]):  # one input for each
            return by_input[..., fed] * factors + 0.0
        by_z, last_first = np.zeros((*by_input.shape[:-1], len(self._reads[i]))), (-1, *range(by_input.ndim - 1))
        np.add.at(by_z.transpose(last_first), columns, (by_input[..., fed] * factors).transpose(last_first))
        return by_z

    @cached_property
    def _fed_inputs(self) -> list[tuple[Index, Index, Vector]]:
        """Per subsystem: inputs that read a coupling variable, the place of that among `reads`, and the factor.

        In the order of these places.
        """
        found = []
        for i, part in enumerate(self.u_slices):
            fed = np.flatnonzero(self.u_source[part] >= 0)
            columns = np.searchsorted(self.reads(i), self.u_source[part][fed])
            order = np.argsort(columns, kind="stable")
            fed, columns = fed[order], columns[order]
            found.append((fed, columns, self.u_factor[part][fed]))
        return found

    def inputs(self, z: Vector, i: int | None = None) -> Vector:
        """The inputs (of subsystem `i`, or all) for coupling variables `z`; rows of a matrix are points in time."""
        part = slice(None) if i is None else self.u_slices[i]
        source = self.u_source[part]
        u = np.empty((*z.shape[:-1], len(source)))
        u[...] = self.u_offset[part]
        fed = source >= 0
        u[..., fed] = z[..., source[fed]] * self.u_factor[part][fed]
        if self._shifted is not None:
            u[..., fed] += self._shifted[part][fed]
        return u

    @cached_property
    def _shifted(self) -> Vector | None:
        """Offsets of inputs that a coupling variable feeds, from units with another zero; None without any."""
        offsets: Vector = np.where(self.u_source >= 0, self.u_offset, 0.0)
        return offsets if offsets.any() else None

    def evaluate(self, y: Vector, z: Vector) -> Vector:
        """The coupling variables that the outputs ask for; implicit unknowns keep their value in `z`."""
        if self._all_copied:
            return y[self.copy_from]
        new = z.copy()
        new[self.copy_rows] = y[self.copy_from]
        for block in self.blocks:
            if not block.implicit:
                new[block.rows] = block.call(z[block.rows], y[block.y_index])
        return new

    @cached_property
    def _all_copied(self) -> bool:
        """True when every coupling variable, in order, is a plain connection."""
        return np.array_equal(self.copy_rows, np.arange(self.n_z))

    def residual(self, z: Vector, y: Vector) -> Vector:
        """`r(z, y)`: `z - f(y)` for connections and laws, the user's function for equations."""
        r = np.empty(self.n_z)
        r[self.copy_rows] = z[self.copy_rows] - y[self.copy_from]
        for block in self.blocks:
            value = block.call(z[block.rows], y[block.y_index])
            r[block.rows] = value if block.implicit else z[block.rows] - value
        return r

    @cached_property
    def _copied_partials(self) -> tuple[_Entries, _Entries]:
        """The derivatives of plain connections by coupling variables and by outputs."""
        ones = np.ones(len(self.copy_rows))
        return (self.copy_rows, self.copy_rows, ones), (self.copy_rows, self.copy_from, -ones)

    def partials(
        self, z: Vector, y: Vector, seen: tuple[Vector, Vector] | None = None
    ) -> tuple[list[_Entries], list[_Entries]]:
        """Non-zero blocks of `dr/dz` and `dr/dy` as (rows, columns, dense values).

        `seen` are how large coupling variables and outputs have been so far.
        """
        by_z, by_y = [self._copied_partials[0]], [self._copied_partials[1]]
        for block in self.blocks:
            index = block.y_index
            sizes = () if seen is None else (seen[0][block.rows], seen[1][index])
            dz, dy = block.partials(z[block.rows], y[index], *sizes)
            if block.implicit:
                by_z.append(_coordinates(block.z_grid, dz))
                by_y.append(_coordinates(block.y_grid, dy))
            else:
                by_z.append(block.identity)
                by_y.append(_coordinates(block.y_grid, -dy))
        return by_z, by_y

    def rounding(self, z: Vector, y: Vector, terms: Vector | None = None) -> Vector:
        """One rounding error of each row of `r(z, y)`, from the sizes of what is added up in it.

        `terms` are the sizes of what is added up in the outputs, where they are known. Laws of whole fields are not
        differenced for that: the size of their value has to do.
        """
        size, of_y = np.abs(z), np.abs(y) if terms is None else np.maximum(np.abs(y), terms)
        size[self.copy_rows] += of_y[self.copy_from]
        for block in self.blocks:
            z_rows, y_read = z[block.rows], y[block.y_index]
            if block.implicit and block.levels is None:  # whose rows are no differences to their unknowns
                size[block.rows] = 0.0
            if len(y_read) > _FIELD:
                size[block.rows] += np.abs(block.call(z_rows, y_read))
                continue
            by_z, by_y = block.partials(z_rows, y_read)
            size[block.rows] += abs(by_y) @ of_y[block.y_index]
            if block.implicit:
                size[block.rows] += np.abs(by_z) @ np.abs(z_rows)
        rounded: Vector = np.finfo(np.float64).eps * size
        return rounded

    def terms(self, z: Vector, y: Vector, seen: tuple[Vector, Vector]) -> Vector:
        """What is added up in each row of user equations, for the slopes at `z`, `y` and sizes `seen` of both.

        0 in other rows; constants do not count.
        """
        size = np.zeros(self.n_z)
        for block in self.blocks:
            if block.implicit and block.levels is None:
                z_rows, y_read = z[block.rows], y[block.y_index]
                z_size, y_size = seen[0][block.rows], seen[1][block.y_index]
                by_z, by_y = block.partials(z_rows, y_read, z_size, y_size)
                size[block.rows] = abs(by_y) @ y_size + np.abs(by_z) @ z_size
        return size

    def next_knot(self, t: float) -> float:
        """The first time after `t` where a driven input is known not to be smooth."""
        return min((one.drive.next_knot(t) for one in self.driven), default=np.inf)

    def owners(self, block: Block) -> set[int]:
        """The subsystems whose outputs a block reads."""
        return {int(i) for i in self.y_owner[block.y_index]}

    def u_label(self, k: int) -> str:
        """`subsystem.port` of flat input `k`."""
        return self._label(k, self.u_slices, self.input_ports)

    def y_label(self, k: int) -> str:
        """`subsystem.port` of flat output `k`."""
        return self._label(k, self.y_slices, self.output_ports)

    def _label(self, k: int, slices: tuple[slice, ...], ports: tuple[Ports, ...]) -> str:
        for name, part, group in zip(self.names, slices, ports, strict=True):
            if part.start <= k < part.stop:
                return f"{name}.{group.labels()[k - part.start]}"
        raise IndexError(k)


def _coordinates(grid: Grid, values: Any) -> _Entries:
    """Coordinates of a dense or sparse block."""
    if isinstance(values, np.ndarray):
        return grid.every_row, grid.every_column, values.ravel()
    return grid.rows[values.row], grid.columns[values.col], values.data
