"""Input decks of CalculiX as the adapter sees them: nodes, elements, node sets, and the step that it repeats.

Everything else of a deck goes to CalculiX as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.errors import SetupError
from cosolve.fields.adapters.sides import outer_sides
from cosolve.mapping.mesh import Mesh

ALL_NODES = "COSOLVE_ALL"  # our set of all nodes


#: Element types of CalculiX -> nodes and dimension; R and I behind them ask for other integration.
_TYPES = {f"CP{s}{n}": (n, 2) for s in "ES" for n in (3, 4, 6, 8)} | {f"C3D{n}": (n, 3) for n in (4, 8, 10, 20)}


@dataclass(frozen=True)
class _Element:
    label: int
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class Deck:
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
        """The deck of one crossing: the model or the restart file, then a step of length `H` with these loads."""
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


def read_deck(path: Path) -> Deck:
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
    return Deck(
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
        lines = path.read_text().splitlines()
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
