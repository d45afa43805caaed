"""The coupling diagram: subsystems as boxes, connections as arrows, laws and equations as pills on their lines.

Drawn from the plain-data graph of `cosolve.interface.representation`, so also from a loaded result. Large or dense
systems are shown as an adjacency picture instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.drawing.layout import place
from cosolve.drawing.wording import count

_MOST_BOXES, _MOST_PAIRS = 26, 40
_BOX = np.array([118.0, 46.0])
_CELL = np.array([236.0, 128.0])
_SPREAD = 27.0  # between links of the same two boxes
_LETTER = 6.4  # width of a letter of 11 px
_SHARES = (0.5, 0.42, 0.58, 0.35, 0.65, 0.28, 0.72, 0.2, 0.8)  # where on its line a label may sit
_BOWS = (0.0, 40.0, -40.0, 60.0, -60.0, 85.0, -85.0, 120.0, -120.0)  # how far a line may swing out


@dataclass(frozen=True)
class _Link:
    """A line between two boxes; arrow heads at the ends that are driven."""

    a: int
    b: int
    label: str
    title: str
    head_a: bool
    head_b: bool
    pill: bool = False
    edges: tuple[int, ...] = ()  # of the graph


def diagram(graph: Mapping[str, Any]) -> tuple[str, str]:
    """The SVG of a coupling graph, and a caption that explains it."""
    names = [str(s["name"]) for s in graph["subsystems"]]
    boxes, links = _boxes_and_links(graph, names)
    groups = _grouped(links)
    if len(boxes) > _MOST_BOXES or len(groups) > _MOST_PAIRS:
        return _adjacency(graph, names)
    centres = place(len(boxes), list(groups)) * _CELL
    sizes = np.array([[_pill_width(text), 20.0] if hub else _BOX for text, _, hub in boxes])
    space = _LabelSpace([(centre, size) for centre, size in zip(centres, sizes, strict=True)])
    parts, curves = [], []
    for (a, b), group in groups.items():
        if a == b:
            parts += [_self_link(centres[a], link) for link in group]
            space.taken.append((centres[a] + [40, -_BOX[1] / 2 - 15], np.array([70.0, 30.0])))
        else:
            curves += _curves(centres, sizes, group)
    parts += [_wire(link, curve) for link, curve in curves]
    parts += [_label(link, space.find(link, k, curves)) for k, (link, _) in enumerate(curves) if link.label]
    for (text, kind, hub), centre, size in zip(boxes, centres, sizes, strict=True):
        parts.append(_pill(centre, text, kind) if hub else _box(centre, size, text, kind))
    describe = f"Coupling diagram of {count(len(names), 'subsystem')}: " + "; ".join(
        edge_text(edge) for edge in graph["edges"][:12]
    )
    caption = "Arrows carry outputs to inputs."
    if any(edge["kind"] in ("law", "equations", "constraint") for edge in graph["edges"]):
        caption += (
            " Pills are laws and equations, named after their coupling variables; arrow heads show what they drive."
        )
    return _svg(*space.extent([curve for _, curve in curves]), parts, describe), caption


def geometry(graph: Mapping[str, Any]) -> dict[str, Any] | None:
    """The same drawing as plain data, for other ways to draw it; None where there are too many boxes for one.

    Boxes stand in the order of the subsystems, then laws between several of them. A wire has the numbers of the
    graph's edges that it stands for, its corners, and what its label says and where (None where it has none).

    >>> parts = [{"name": name, "kind": "Ode", "inputs": ["u"], "outputs": ["y"]} for name in ("a", "b")]
    >>> wire = {"kind": "connection", "label": "z", "sources": ["a.y"], "targets": ["b.u"], "factors": [1.0]}
    >>> drawn = geometry({"subsystems": parts, "edges": [wire]})
    >>> drawn["boxes"][1]["name"], drawn["wires"][0]["edges"], drawn["wires"][0]["label"]
    ('b', [0], 'y')
    """
    names = [str(s["name"]) for s in graph["subsystems"]]
    boxes, links = _boxes_and_links(graph, names)
    groups = _grouped(links)
    if len(boxes) > _MOST_BOXES or len(groups) > _MOST_PAIRS:
        return None
    centres = place(len(boxes), list(groups)) * _CELL
    sizes = np.array([[_pill_width(text), 20.0] if hub else _BOX for text, _, hub in boxes]).reshape(-1, 2)
    space = _LabelSpace([(centre, size) for centre, size in zip(centres, sizes, strict=True)])
    loops: list[tuple[_Link, Matrix]] = []
    curves: list[tuple[_Link, Matrix]] = []
    for (a, b), group in groups.items():
        if a == b:
            loops += [(link, _loop(centres[a])) for link in group]
            space.taken.append((centres[a] + [40, -_BOX[1] / 2 - 15], np.array([70.0, 30.0])))
        else:
            curves += _curves(centres, sizes, group)
    spots = [space.find(link, k, curves) if link.label else None for k, (link, _) in enumerate(curves)]
    wires = [_as_wire(link, curve, spot) for (link, curve), spot in zip(curves, spots, strict=True)]
    wires += [_as_wire(link, curve, curve[len(curve) // 2] - [0.0, 9.0]) for link, curve in loops]
    first, last = space.extent([curve for _, curve in curves])
    return {
        "boxes": [
            {"name": text, "kind": kind, "hub": hub, "x": x, "y": y, "width": width, "height": height}
            for (text, kind, hub), (x, y), (width, height) in zip(boxes, centres.tolist(), sizes.tolist(), strict=True)
        ],
        "wires": wires,
        "extent": [*first.tolist(), *(last - first).tolist()],
    }


def _as_wire(link: _Link, curve: Matrix, spot: Vector | None) -> dict[str, Any]:
    thin = curve[:: max(1, len(curve) // 24)]
    return {
        "edges": list(link.edges),
        "title": link.title,
        "points": np.vstack([thin, curve[-1:]]).round(1).tolist(),
        "heads": [link.head_a, link.head_b],
        "label": _short(link.label) if link.label else None,
        "at": None if spot is None else spot.round(1).tolist(),
        "pill": link.pill,
    }


def _loop(centre: Vector) -> Matrix:
    """The way from a box back to itself, above it."""
    s = np.linspace(0.0, 1.0, 13)[:, np.newaxis]
    corners = centre + np.array([[20.0, -23.0], [8.0, -58.0], [72.0, -58.0], [50.0, -23.0]])
    a, b, c, d = corners
    return np.asarray((1 - s) ** 3 * a + 3 * s * (1 - s) ** 2 * b + 3 * s**2 * (1 - s) * c + s**3 * d)


def edge_text(edge: Mapping[str, Any]) -> str:
    """One connection, law, set of equations or constant in a line of text."""
    signs = {1.0: "", -1.0: "−"}
    targets = ", ".join(
        signs.get(factor, f"{factor:g} ") + target
        for target, factor in zip(edge["targets"], edge["factors"], strict=True)
    )
    sources = ", ".join(edge["sources"])
    if edge["kind"] == "connection":
        return f"{sources} → {targets}"
    if edge["kind"] in ("constant", "driven"):
        return f"{edge['label']} → {targets}"
    return f"{edge['label']} = {edge['kind']}({sources}) → {targets}"


# -- what is linked ----------------------------------------------------------------------------------------


def _boxes_and_links(graph: Mapping[str, Any], names: Sequence[str]) -> tuple[list[tuple[str, str, bool]], list[_Link]]:
    """Boxes as (text, second line or title, is a law between several), and the links between them."""
    boxes = [(str(s["name"]), str(s["kind"]), False) for s in graph["subsystems"]]
    number = {name: i for i, name in enumerate(names)}
    wires: dict[tuple[int, int], list[tuple[str, int]]] = {}
    links: list[_Link] = []
    for k, edge in enumerate(graph["edges"]):
        sources = sorted({number[_owner(port)] for port in edge["sources"]})
        targets = sorted({number[_owner(port)] for port in edge["targets"]})
        if edge["kind"] in ("constant", "driven"):
            continue
        if edge["kind"] == "connection":
            port = str(edge["sources"][0]).split(".", 1)[1]
            for target in targets:
                wires.setdefault((sources[0], target), []).append((port, k))
            continue
        title, label = edge_text(edge), str(edge["label"]) if "." not in edge["label"] else str(edge["kind"])
        partners = sorted({*sources, *targets})
        if len(partners) <= 2:
            a, b = partners[0], partners[-1]
            links.append(_Link(a, b, label, title, a in targets, b in targets, pill=True, edges=(k,)))
        else:
            hub = len(boxes)
            boxes.append((_short(label), title, True))
            links += [_Link(i, hub, "", title, i in targets, i in sources, edges=(k,)) for i in partners]
    for (a, b), carried in wires.items():
        ports = [port for port, _ in carried]
        title = f"{names[a]} → {names[b]}: {', '.join(ports)}"
        links.append(_Link(a, b, _ports(ports), title, False, True, edges=tuple(k for _, k in carried)))
    return boxes, links


def _grouped(links: Sequence[_Link]) -> dict[tuple[int, int], list[_Link]]:
    groups: dict[tuple[int, int], list[_Link]] = {}
    for link in links:
        groups.setdefault((min(link.a, link.b), max(link.a, link.b)), []).append(link)
    return groups


def _owner(port: str) -> str:
    return port.split(".", 1)[0]


def _ports(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3]) + (f" +{len(names) - 3}" if len(names) > 3 else "")
    return _short(shown) if len(names) <= 3 or len(shown) <= 18 else f"{_short(names[0])} +{len(names) - 1}"


def _short(text: str, most: int = 15) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


# -- drawing -----------------------------------------------------------------------------------------------


def _curves(centres: Matrix, sizes: Matrix, group: Sequence[_Link]) -> list[tuple[_Link, Matrix]]:
    """The links between two boxes next to each other, as points from border to border."""
    low, high = sorted((group[0].a, group[0].b))
    start, end = centres[low], centres[high]
    along = end - start
    normal = np.array([-along[1], along[0]]) / np.hypot(*along)
    s = np.linspace(0.0, 1.0, 201)[:, np.newaxis]

    def bowed(height: float) -> Matrix:
        bend = start + along / 2 + 2 * height * normal
        curve = (1 - s) ** 2 * start + 2 * s * (1 - s) * bend + s**2 * end
        outside: Matrix = curve[~(_inside(curve, start, sizes[low]) | _inside(curve, end, sizes[high]))]
        return outside

    beside = [_SPREAD * (k - (len(group) - 1) / 2) for k in range(len(group))]

    def behind(height: float) -> int:
        curve = np.concatenate([bowed(height + offset) for offset in beside])
        return sum(int(_inside(curve, c, size).sum()) for c, size in zip(centres, sizes, strict=True))

    around = min(_BOWS, key=behind)  # the flattest one that keeps clear of foreign boxes
    curves = []
    for link, offset in zip(group, beside, strict=True):
        curve = bowed(around + offset)
        curves.append((link, curve if link.a == low else curve[::-1]))
    return curves


class _LabelSpace:
    """Where labels may stand: boxes and labels must not overlap, and labels should keep off foreign lines."""

    def __init__(self, taken: list[tuple[Vector, Vector]]) -> None:
        self.taken = taken

    def find(self, link: _Link, k: int, curves: Sequence[tuple[_Link, Matrix]]) -> Vector:
        """The best place on curve `k` for its label, which is taken then."""
        own = curves[k][1]
        size = np.array([_pill_width(_short(link.label)), 18.0])
        others = np.concatenate([np.zeros((0, 2)), *(curve for i, (_, curve) in enumerate(curves) if i != k)])

        def cost(share: float) -> float:
            at = own[int(share * (len(own) - 1))]
            hit = sum(bool((np.abs(at - centre) < (size + other) / 2).all()) for centre, other in self.taken)
            return 100.0 * hit + float((np.abs(others - at) < size / 2).all(axis=1).sum()) + 20 * abs(share - 0.5)

        at: Vector = own[int(min(_SHARES, key=cost) * (len(own) - 1))]
        self.taken.append((at, size))
        return at

    def extent(self, curves: Sequence[Matrix]) -> tuple[Vector, Vector]:
        """Upper left and lower right corner of everything."""
        corners = [centre + sign * size / 2 for centre, size in self.taken for sign in (-1, 1)]
        points = np.concatenate([np.array(corners), *curves])
        return points.min(axis=0) - 4, points.max(axis=0) + 4


def _wire(link: _Link, curve: Matrix) -> str:
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in curve[:: max(1, len(curve) // 24)]) + _last(curve)
    heads = _head(curve[-1], curve[-1] - curve[-min(9, len(curve))]) if link.head_b else ""
    heads += _head(curve[0], curve[0] - curve[min(8, len(curve) - 1)]) if link.head_a else ""
    return f'<g><title>{escape(link.title)}</title><path class="wire" d="{path}"/>{heads}</g>'


def _label(link: _Link, at: Vector) -> str:
    if link.pill:
        return _pill(at, _short(link.label), link.title)
    width = 6 + _LETTER * len(link.label)
    return (
        f'<rect class="blank" x="{at[0] - width / 2:.1f}" y="{at[1] - 8:.1f}" width="{width:.1f}" height="16"/>'
        + _text(at[0], at[1] + 4, link.label, "tag", 11)
    )


def _inside(points: Matrix, centre: Vector, size: Vector) -> npt.NDArray[np.bool_]:
    return np.asarray((np.abs(points - centre) < size / 2 + 3).all(axis=1))


def _last(curve: Matrix) -> str:
    return f"L{curve[-1, 0]:.1f} {curve[-1, 1]:.1f}"


def _head(tip: Vector, direction: Vector) -> str:
    ahead = direction / (np.hypot(*direction) or 1.0)
    aside = np.array([-ahead[1], ahead[0]])
    corners = [tip, tip - 9 * ahead + 4 * aside, tip - 9 * ahead - 4 * aside]
    return '<path class="head" d="M' + "L".join(f"{x:.1f} {y:.1f}" for x, y in corners) + 'z"/>'


def _self_link(centre: Vector, link: _Link) -> str:
    x, y = centre[0] + 30, centre[1] - _BOX[1] / 2
    tip = _head(np.array([x + 22, y - 2]), np.array([-2.0, 9.0]))
    return (
        f'<g><title>{escape(link.title)}</title><path class="wire" d="M{x:.1f} {y:.1f}c-6 -26 34 -26 22 -4"/>{tip}'
        + _text(x + 10, y - 21, _short(link.label), "tag", 11)
        + "</g>"
    )


def _box(centre: Vector, size: Vector, name: str, kind: str) -> str:
    x, y = centre - size / 2
    return (
        f'<g><title>{escape(name)} ({escape(kind)})</title><rect class="box" x="{x:.1f}" y="{y:.1f}" '
        f'width="{size[0]:.0f}" height="{size[1]:.0f}" rx="6"/>'
        + _text(centre[0], centre[1] - 2, _short(name, 16), "name", 12.5)
        + _text(centre[0], centre[1] + 14, _short(kind, 18), "kind", 10.5)
        + "</g>"
    )


def _pill(centre: Vector, text: str, title: str) -> str:
    width = _pill_width(text)
    return (
        f'<g><title>{escape(title)}</title><rect class="pill" x="{centre[0] - width / 2:.1f}" '
        f'y="{centre[1] - 10:.1f}" width="{width:.1f}" height="20" rx="10"/>'
        + _text(centre[0], centre[1] + 4, text, "pilltext", 11)
        + "</g>"
    )


def _pill_width(text: str) -> float:
    return max(30.0, 16 + _LETTER * len(text))


def _text(x: float, y: float, text: str, kind: str, size: float, anchor: str = "middle") -> str:
    where = f'x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {where}>{escape(text)}</text>'


def _svg(first: Vector, last: Vector, parts: Sequence[str], describe: str) -> str:
    width, height = last - first
    return (
        f'<svg viewBox="{first[0]:.0f} {first[1]:.0f} {width:.0f} {height:.0f}" '
        f'style="max-width: {1.1 * width:.0f}px" role="img" '
        f'aria-label="{escape(describe)}">{"".join(parts)}</svg>'
    )


# -- many subsystems ---------------------------------------------------------------------------------------


def _adjacency(graph: Mapping[str, Any], names: Sequence[str]) -> tuple[str, str]:
    """Who feeds whom, as a matrix: row feeds column, directly or through a law."""
    number = {name: i for i, name in enumerate(names)}
    pairs = {
        (number[_owner(source)], number[_owner(target)])
        for edge in graph["edges"]
        for source in edge["sources"]
        for target in edge["targets"]
    }
    n = len(names)
    named = n <= 60
    cell = min(16.0, 640.0 / n)
    left = 14 + 6.2 * max(len(_short(name)) for name in names) if named else 44.0
    top = left if named else 26.0
    path = "".join(
        f"M{left + j * cell:.2f} {top + i * cell:.2f}h{0.9 * cell:.2f}v{0.9 * cell:.2f}h-{0.9 * cell:.2f}z"
        for i, j in sorted(pairs)
    )
    side = n * cell
    parts = [
        f'<rect class="frame" x="{left:.1f}" y="{top:.1f}" width="{side:.1f}" height="{side:.1f}"/>',
        f'<path class="cells" d="{path}"/>',
    ]
    ticks = range(n) if named else range(0, n, 10 ** max(1, len(str(n)) - 2) * (1 if n < 300 else 5))
    for i in ticks:
        middle = (i + 0.5) * cell
        text = _short(names[i]) if named else str(i + 1)
        size = min(11.0, 0.85 * cell) if named else 10.5
        parts.append(_text(left - 5, top + middle + 0.35 * size, text, "kind", size, "end"))
        if named:
            x, y = left + middle + 0.35 * size, top - 5
            parts.append(f'<g transform="rotate(-90 {x:.1f} {y:.1f})">{_text(x, y, text, "kind", size, "start")}</g>')
        else:
            parts.append(_text(left + middle, top - 7, text, "kind", size))
    describe = f"Adjacency picture of {n} subsystems with {len(pairs)} couplings"
    caption = (
        f"{count(n, 'subsystem')}, {count(len(pairs), 'coupling')}: a filled cell means that the subsystem of its row "
        "feeds the subsystem of its column, directly or through a law"
        + ("." if named else ". Subsystems are numbered in the order of the system.")
    )
    return _svg(np.zeros(2), np.array([left + side + 10, top + side + 10]), parts, describe), caption
