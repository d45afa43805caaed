"""The coupling diagram: boxes never overlap, everything is named, large systems become an adjacency picture."""

import re
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest

from cosolve.drawing.diagram import _loop, diagram, edge_text
from cosolve.drawing.layout import place


def test_the_way_from_a_box_to_itself_moves_with_the_box():
    """And begins and ends at its edge, 23 above the centre."""
    here = _loop(np.zeros(2))
    assert here[[0, -1], 1].tolist() == [-23.0, -23.0]
    assert here[:, 1].min() < -45.0
    np.testing.assert_allclose(_loop(np.array([300.0, 200.0])) - [300.0, 200.0], here, atol=1e-9)


@pytest.mark.parametrize("count", [1, 4, 25, 26, 40])
def test_every_box_has_a_place_of_its_own(count):
    places = place(count, [(k, k + 1) for k in range(count - 1)])
    assert len({tuple(row) for row in places.tolist()}) == count
    assert places[:, 0].max() < 5


def chain(n):
    subsystems = [{"name": f"m{i}", "kind": "Linear", "inputs": ["f"], "outputs": ["x"]} for i in range(n)]
    edges = [
        {
            "kind": "law",
            "label": f"s{i}",
            "sources": [f"m{i}.x", f"m{i + 1}.x"],
            "targets": [f"m{i}.f", f"m{i + 1}.f"],
            "factors": [1.0, -1.0],
        }
        for i in range(n - 1)
    ]
    return {"subsystems": subsystems, "edges": edges}


def boxes(svg):
    root = ElementTree.fromstring(svg)
    found = [r for r in root.iter("rect") if r.get("class") == "box"]
    return [tuple(float(r.get(k)) for k in ("x", "y", "width", "height")) for r in found]


@pytest.mark.parametrize("n", [1, 2, 3, 6, 13, 20])
def test_boxes_do_not_overlap_and_stay_readable(n):
    svg, _ = diagram(chain(n))
    found = boxes(svg)
    assert len(found) == n
    for (x1, y1, w1, h1), (x2, y2, w2, h2) in combinations(found, 2):
        assert abs(x1 - x2) >= min(w1, w2) or abs(y1 - y2) >= min(h1, h2)
    for i in range(n):
        assert f">m{i}</text>" in svg
    width = float(re.search(r'viewBox="\S+ \S+ (\S+) ', svg)[1])
    assert width <= 1150  # so that 11 px letters are no smaller than 10 px on a page of 1040 px


def test_a_chain_of_twenty_is_laid_out_without_long_lines():
    places = place(20, [(i, i + 1) for i in range(19)])
    assert np.hypot(*(places[1:] - places[:-1]).T).max() == 1.0


def test_a_star_puts_the_centre_next_to_its_partners():
    places = place(6, [(0, i) for i in range(1, 6)])
    assert np.abs(places[1:] - places[0]).max() == 1.0


def test_hundreds_of_subsystems_become_an_adjacency_picture():
    svg, caption = diagram(chain(300))
    assert boxes(svg) == []
    # both ends of a spring feed both: 300 on the diagonal and 2 * 299 beside it
    assert "300 subsystems, 898 couplings" in caption
    assert svg.count("M") == 898
    assert len(svg) < 100_000


def test_connections_between_two_boxes_are_one_arrow_with_all_ports():
    names = [{"name": n, "kind": "Ode", "inputs": ["u", "w"], "outputs": ["x", "v"]} for n in ("a", "b")]
    edges = [
        {"kind": "connection", "label": f"a.{p}", "sources": [f"a.{p}"], "targets": [f"b.{q}"], "factors": [1.0]}
        for p, q in (("x", "u"), ("v", "w"))
    ]
    svg, _ = diagram({"subsystems": names, "edges": edges})
    assert svg.count('class="wire"') == 1
    assert ">x, v</text>" in svg
    assert "a → b: x, v" in svg


def test_names_with_markup_are_escaped():
    graph = chain(2)
    graph["subsystems"][0]["name"] = "<b>&"
    for edge in graph["edges"]:
        edge["sources"][0], edge["targets"][0] = "<b>&.x", "<b>&.f"
    svg, _ = diagram(graph)
    assert "<b>" not in svg
    ElementTree.fromstring(svg)


def test_a_law_onto_itself_and_a_law_of_three_are_drawn():
    graph = chain(3)
    of_three = {
        "kind": "equations",
        "label": "balance",
        "sources": ["m0.x", "m1.x", "m2.x"],
        "targets": ["m0.f"],
        "factors": [1.0],
    }
    own = {"kind": "connection", "label": "m2.x", "sources": ["m2.x"], "targets": ["m2.f"], "factors": [1.0]}
    graph["edges"] += [of_three, own]
    svg, _ = diagram(graph)
    assert ">balance</text>" in svg
    assert "m2 → m2: x" in svg


def test_factors_are_told():
    edge = {"kind": "law", "label": "s", "sources": ["a.x"], "targets": ["a.f", "b.f"], "factors": [-1.0, 2.5]}
    assert edge_text(edge) == "s = law(a.x) → −a.f, 2.5 b.f"
