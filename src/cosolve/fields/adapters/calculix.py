"""CalculiX as a subsystem: forces on the nodes of a set go in, their displacements come out.

The deck is the user's: a model and one `*STEP` with `*DYNAMIC` or `*STATIC` in it. A dynamic step begins again from the
restart file of the last macro point (`*RESTART`), so that rollback is another run from the same file. A static one has
no memory and is solved from rest every time. Of the deck nodes, elements, node sets and the step are read; everything
else goes to CalculiX as it is.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.checks import as_path, positive
from cosolve.errors import SetupError, SubsystemError
from cosolve.fields.adapters.program import StoredState, WorkingFolder, field_ports, find_program, run_program
from cosolve.fields.adapters.sides import SHAPES, outer_sides, quadratic_edges
from cosolve.fields.field_subsystem import FieldSnapshot, FieldSubsystem
from cosolve.fields.quadratic_triangle import quadratic_trace
from cosolve.mapping.mapping import FieldMapping
from cosolve.mapping.mesh import Mesh
from cosolve.signal.polynomial import InputSignal

_REMEDY = "install CalculiX (Debian and Ubuntu: apt install calculix-ccx), or name it by program='/path/to/ccx'"
_JOB = "job"  # name of the files of ccx in the working folder
ALL_NODES = "COSOLVE_ALL"  # our set of all nodes
#: Element types of CalculiX -> nodes and dimension; R and I behind them ask for other integration.
_TYPES = {f"CP{s}{n}": (n, 2) for s in "ES" for n in (3, 4, 6, 8)} | {f"C3D{n}": (n, 3) for n in (4, 8, 10, 20)}


class CalculiX(FieldSubsystem):
    """A solid computed by CalculiX, the program `ccx`.

    Parameters
    ----------
    deck : str or Path
        Input deck with a model and one `*STEP` with `*DYNAMIC` or `*STATIC`.
    nodes : str
        Node set that is coupled.
    nominal : mapping of str to float or None, default None
        Nominal value of each port, for tolerances.
    program : str or Path, default "ccx"
        The program.
    timeout : float or None, default None
        Longest time of a program in seconds.
    keep : str, Path or None, default None
        Folder for the working files. None removes them.

    Raises
    ------
    SetupError
        If the deck or the program cannot be used.

    Notes
    -----
    Ports: `force` in (N), `displacement` out (m), node by node in the order of the set, two values per node if the
    elements are plane, else three. Forces of plane elements are for the thickness of their `*SOLID SECTION`. Element
    sides whose nodes are all in the set are the cells of the mesh of both ports.

    Within a macro step forces change linearly, and so does every other load (`AMPLITUDE=RAMP`) unless it has an
    `*AMPLITUDE` of its own. Times of amplitudes count from the start of each macro step unless they say `TIME=TOTAL
    TIME`. With `DIRECT` the increment is shortened to a whole fraction of the macro step. Rollback is another run from
    the same restart file. CalculiX prints seven digits.

    Examples
    --------
    >>> import cosolve as cs
    >>> def coupled(fluid):
    ...     flag = cs.fields.CalculiX("flag.inp", nodes="WET", timeout=60.0)
    ...     return cs.System({"fluid": fluid, "flag": flag})
    """

    noise = 1e-6
    variable_step = False

    def __init__(
        self,
        deck: str | os.PathLike[str],
        nodes: str,
        *,
        nominal: Mapping[str, float] | None = None,
        program: str | os.PathLike[str] = "ccx",
        timeout: float | None = None,
        keep: str | os.PathLike[str] | None = None,
    ) -> None:
        self._deck = read_deck(as_path("CalculiX", deck))
        self._timeout = None if timeout is None else positive("CalculiX", "timeout", timeout)
        self._program = find_program(program, _REMEDY)
        self._dim = self._deck.dimension
        ours = self._deck.node_set(nodes)
        self._labels = np.array(sorted(self._deck.nodes))
        self._ours = np.searchsorted(self._labels, ours)  # rows of the coupled nodes among all
        self._points = np.array([self._deck.nodes[label] for label in self._labels.tolist()])
        mesh = self._deck.sides_of(ours, nodes)
        size = self._dim * len(ours)
        self.inputs, self.outputs = field_ports("CalculiX", {"force": size}, {"displacement": size}, nominal)
        self.meshes = {"force": mesh, "displacement": mesh}
        self._keep = keep
        self._folder: WorkingFolder | None = None

    # -- the contract -------------------------------------------------------------------------------------------------

    def start(self, t0: float) -> Any:
        if self._folder is None:
            self._folder = WorkingFolder("calculix", self._keep)
        self._t0 = t0  # CalculiX counts from 0
        self._restart: StoredState | None = None
        self._u = np.zeros((len(self._labels), self._dim))
        return self._u[self._ours].ravel()

    def advance(self, t0: float, t1: float, u: InputSignal) -> Any:
        assert self._folder is not None
        folder = self._folder.path
        self._clear(folder)
        begun = self._restart is not None
        (folder / f"{_JOB}.inp").write_text(self._deck.job(begun, t1 - t0, self._loads(u(t1))))
        if self._restart is not None:
            shutil.copyfile(self._restart.path, folder / f"{_JOB}.rin")
        run_program([self._program, _JOB], folder, folder / "log.ccx", self._timeout)
        self._u = self._displacements(folder / f"{_JOB}.dat", t1 - t0 if self._deck.static else t1 - self._t0)
        if not self._deck.static:
            written = folder / f"{_JOB}.rout"
            if not written.exists():
                raise SubsystemError(f"ccx wrote no restart file {written.name}, from which the next step would begin")
            self._restart = self._folder.store(written)
        return self._u[self._ours].ravel()

    def save(self) -> Any:
        return self._restart, self._u

    def restore(self, state: Any) -> None:
        self._restart, self._u = state

    def portable_state(self) -> Any:
        return None if self._restart is None else self._restart.packed(), self._u

    def set_portable_state(self, state: Any) -> None:
        assert self._folder is not None
        packed, self._u = state
        self._restart = None if packed is None else self._folder.unpack(packed)

    def snapshot(self) -> FieldSnapshot:
        """All nodes where they are now, with their displacements; elements by their corners where they have more."""
        cells: dict[str, list[npt.NDArray[np.int64]]] = {}
        for element in self._deck.elements:
            shape = SHAPES[len(element.nodes), self._dim]
            rows = np.searchsorted(self._labels, element.nodes[: shape.points])
            cells.setdefault(shape.kind, []).append(rows)
        points = self._points[:, : self._dim] + self._u
        return FieldSnapshot(points, {k: np.array(c) for k, c in cells.items()}, {"displacement": self._u.copy()})

    def trace_to(self, target: Mesh) -> FieldMapping:
        """Make the mapping of displacements to another mesh of the surface, along the parabolas of the element sides.

        Parameters
        ----------
        target : Mesh
            The other mesh.

        Returns
        -------
        FieldMapping
            The mapping. Its transpose maps forces back.

        Raises
        ------
        SetupError
            If the elements are not plane with midside nodes; `barycentric` is for all.
        """
        labels = self._labels[self._ours].tolist()
        elements = [element.nodes for element in self._deck.elements]
        edges = quadratic_edges(elements, labels) if self._dim == 2 else None
        if edges is None:
            raise SetupError(
                f"trace_to follows sides of plane elements with midside nodes; the coupled set in {self._deck.name} "
                "has others, or none: cs.mapping.barycentric(solid.meshes['displacement'], mesh) is for all"
            )
        return quadratic_trace(self.meshes["displacement"], edges, target)

    def close(self) -> None:
        """Remove the working folder now; otherwise it goes with this object."""
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    # -- files of CalculiX --------------------------------------------------------------------------------------------

    def _loads(self, force: npt.NDArray[np.float64]) -> str:
        """Data lines of `*CLOAD`: every component of every node, so that none is left over from the last step."""
        labels = self._labels[self._ours]
        rows = force.reshape(-1, self._dim)
        return "\n".join(
            f"{label}, {axis + 1}, {value:.12e}"
            for label, row in zip(labels.tolist(), rows.tolist(), strict=True)
            for axis, value in enumerate(row)
        )

    def _displacements(self, path: Path, time: float) -> npt.NDArray[np.float64]:
        """The last displacements of all nodes in a `.dat` file."""
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        _, found, rest = text.rpartition(f"for set {ALL_NODES} and time")
        if not found:
            raise SubsystemError(f"ccx ended well but wrote no displacements into {path.name}")
        try:
            reached, _, body = rest.partition("\n")
            rows = np.array([line.split()[: 1 + self._dim] for line in body.splitlines() if line.strip()], dtype=float)
            complete = rows.shape == (len(self._labels), 1 + self._dim) and bool((rows[:, 0] == self._labels).all())
            on_time = math.isclose(float(reached), time, rel_tol=1e-5)
        except ValueError:  # not numbers, lines of different lengths
            complete, on_time = False, True
        if not complete:
            raise SubsystemError(f"{path.name} of ccx ends in the middle or holds something else than displacements")
        if not on_time:
            raise SubsystemError(f"ccx stopped at {reached.strip()} s of its own time instead of {time:.7g} s")
        return rows[:, 1:]

    @staticmethod
    def _clear(folder: Path) -> None:
        for path in folder.glob(f"{_JOB}.*"):
            path.unlink()


# -- input decks -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Element:
    label: int
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class InputDeck:
    """What an adapter has to know of an input deck: nodes, elements, node sets, and the text before and of the step."""

    name: str
    model: str
    step: tuple[str, ...]  # cards of the step with their data, without procedure and *END STEP
    procedure: tuple[str, str]  # card and its data line
    nodes: dict[int, tuple[float, ...]]
    elements: tuple[_Element, ...]
    sets: dict[str, list[int]]
    dimension: int

    @property
    def static(self) -> bool:
        """True where the step has no inertia and nothing to remember."""
        return self.procedure[0].upper().startswith("*STATIC")

    def node_set(self, name: str) -> npt.NDArray[np.int64]:
        """Labels of a set in its order."""
        found = list(dict.fromkeys(self.sets.get(name.upper(), [])))
        if not found:
            known = ", ".join(self.sets) or "none"
            raise SetupError(f"{self.name} has no node set '{name}' with nodes in it; it has {known}")
        return np.array(found)

    def job(self, begun: bool, H: float, loads: str) -> str:
        """The deck of one subsystem step: the model or the restart file, then a step of length `H` with these loads."""
        model = "*RESTART, READ\n" if begun else f"{self.model}*NSET, NSET={ALL_NODES}\n{_lines(self.nodes)}\n"
        card, data = self.procedure
        if not self.static:
            first = float(data.split(",")[0] or H)
            first = H / math.ceil(H / first * (1 - 1e-9)) if "DIRECT" in card.upper() else min(first, H)
            rest = data.split(",")[2:]  # bounds of automatic increments
            data = ", ".join([f"{first:.15g}", f"{H:.15g}", *rest])
        step, *others = self.step
        if "AMPLITUDE" not in step.upper() and not self.static:
            step = step.rstrip() + ", AMPLITUDE=RAMP"
        restart = [] if self.static else ["*RESTART, WRITE, FREQUENCY=1, OVERLAY"]
        forces = ["*CLOAD", loads]
        prints = [f"*NODE PRINT, NSET={ALL_NODES}", "U", "*END STEP", ""]
        return model + "\n".join([step, card, data, *restart, *others, *forces, *prints])

    def sides_of(self, labels: npt.NDArray[np.int64], name: str) -> Mesh:
        """The outer sides of elements whose nodes are all in a set, as a mesh whose points are the set in its order."""
        points = np.array([self.nodes[label] for label in labels.tolist()])[:, : self.dimension]
        return outer_sides([element.nodes for element in self.elements], labels.tolist(), points, name)


def read_deck(path: Path) -> InputDeck:
    """Read an input deck with the files it includes.

    >>> import tempfile
    >>> text = '''*NODE, NSET=ALL
    ... 1, 0, 0
    ... 2, 1, 0
    ... 3, 0, 1
    ... *ELEMENT, TYPE=CPE3, ELSET=E
    ... 1, 1, 2, 3
    ... *STEP
    ... *DYNAMIC, DIRECT
    ... 0.01, 1.0
    ... *END STEP'''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "one.inp")
    ...     _ = file.write_text(text)
    ...     deck = read_deck(file)
    >>> deck.dimension, deck.sets, deck.static
    (2, {'ALL': [1, 2, 3]}, False)
    """
    cards = _cards(path)
    starts = [k for k, card in enumerate(cards) if card.keyword == "STEP"]
    if len(starts) != 1:
        raise SetupError(f"{path.name} has {len(starts)} *STEP cards; a deck to couple has one, for every macro step")
    model, step = cards[: starts[0]], cards[starts[0] :]
    procedures = [card for card in step if card.keyword in ("DYNAMIC", "STATIC")]
    if len(procedures) != 1:
        raise SetupError(f"the step of {path.name} must have one *DYNAMIC or *STATIC card, not {len(procedures)}")
    procedure = procedures[0]
    others = [card for card in step if card is not procedure and card.keyword not in ("END STEP", "RESTART")]
    nodes: dict[int, tuple[float, ...]] = {}
    elements: list[_Element] = []
    sets: dict[str, list[int]] = {}
    dimensions = set()
    try:
        for card in model:
            if card.keyword == "NODE":
                for row in card.rows():
                    nodes[int(row[0])] = tuple(float(v or "0") for v in (*row[1:4], "0", "0")[:3])
                    if "NSET" in card.options:
                        sets.setdefault(card.options["NSET"].upper(), []).append(int(row[0]))
            elif card.keyword == "ELEMENT":
                kind = card.options.get("TYPE", "").upper()
                if kind.rstrip("RI") not in _TYPES:
                    known = ", ".join(_TYPES)
                    raise SetupError(f"{path.name} has elements of type {kind}; CalculiX(...) knows {known}")
                n, dimension = _TYPES[kind.rstrip("RI")]
                dimensions.add(dimension)
                numbers = [int(v) for row in card.rows() for v in row if v]
                for k in range(0, len(numbers), n + 1):
                    elements.append(_Element(numbers[k], tuple(numbers[k + 1 : k + n + 1])))
            elif card.keyword == "NSET":
                found = sets.setdefault(card.options.get("NSET", "").upper(), [])
                for row in card.rows():
                    if "GENERATE" in card.options:
                        first, last, by = (*map(int, filter(None, row)), 1)[:3]
                        found += range(first, last + 1, by)
                    else:
                        for entry in filter(None, row):
                            found += [int(entry)] if entry.isdigit() else sets[entry.upper()]
    except (ValueError, KeyError) as error:
        raise SetupError(f"{path.name}: cannot read the card '{card.text.splitlines()[0]}': {error}") from None
    if len(dimensions) != 1:
        raise SetupError(f"{path.name} needs elements, all plane or all solid")
    return InputDeck(
        name=path.name,
        model="".join(card.text + "\n" for card in model),
        step=tuple(card.text for card in others),
        procedure=(procedure.head, procedure.data[0] if procedure.data else ""),
        nodes=nodes,
        elements=tuple(elements),
        sets=sets,
        dimension=dimensions.pop(),
    )


@dataclass(frozen=True)
class _Card:
    """`*KEYWORD, OPTION=value` with its data lines."""

    head: str
    data: list[str]

    @property
    def keyword(self) -> str:
        return " ".join(self.head.split(",")[0].lstrip("*").upper().split())

    @property
    def options(self) -> dict[str, str]:
        pairs = (option.partition("=") for option in self.head.split(",")[1:])
        return {name.strip().upper(): value.strip() for name, _, value in pairs}

    @property
    def text(self) -> str:
        return "\n".join([self.head, *self.data])

    def rows(self) -> list[list[str]]:
        return [[entry.strip() for entry in line.split(",")] for line in self.data]


def _cards(path: Path) -> list[_Card]:
    """The cards of a deck and of the files that it includes, without comments."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"the deck {path} cannot be read: {error}") from None
    cards: list[_Card] = []
    for line in lines:
        if line.startswith("**") or not line.strip():
            continue
        if line.startswith("*"):
            card = _Card(line.rstrip(), [])
            if card.keyword == "INCLUDE":
                cards += _cards(path.parent / card.options.get("INPUT", ""))
            else:
                cards.append(card)
        elif cards:
            cards[-1].data.append(line.rstrip())
    return cards


def _lines(labels: Any, per_line: int = 12) -> str:
    every = [str(label) for label in labels]
    return ",\n".join(", ".join(every[k : k + per_line]) for k in range(0, len(every), per_line)) + ","
