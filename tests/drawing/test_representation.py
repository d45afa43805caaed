"""How systems and results show themselves: in a line, in a terminal and in a notebook."""

import io
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console

import cosolve as cs
from cosolve.drawing.sparkline import blocks, line


class Tags(HTMLParser):
    """Texts by tag; refuses tags that are not closed in order."""

    VOID = frozenset({"path", "rect"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.setdefault(self.open[-1], []).append(data)


def mass(x0: float) -> cs.Linear:
    outputs = [cs.Port("x", unit="m"), cs.Port("v", unit="m/s")]
    return cs.Linear([[0, 1], [-40, -0.4]], [[0], [1]], np.eye(2), x0=[x0, 0], inputs=["f"], outputs=outputs)


@pytest.fixture
def system() -> cs.System:
    pair = cs.Static(lambda t, u: np.array([u[0], t]), inputs=["u"], outputs=[cs.Port("y", size=2)])
    made = cs.System({"left <1>": mass(1.0), "right": mass(0.0), "pair": pair})
    spring = {"left <1>.f": 1, "right.f": -1}
    made.law(spring, lambda a, b: 30 * (b - a), of=["left <1>.x", "right.x"], name="spring")
    made.connect("right.x", "pair.u")
    return made


@pytest.fixture
def result(system) -> cs.Result:
    return cs.simulate(system, t_end=1.0, method=cs.Jacobi(1), step=0.01)


def printed(what: object) -> str:
    """What rich writes on a terminal of 120 columns."""
    out = io.StringIO()
    Console(file=out, width=120, force_terminal=False).print(what)
    return out.getvalue()


def test_a_system_in_a_line(system) -> None:
    assert repr(system) == "<System of 3 subsystems (left <1>, right, pair), 1 law, 1 connection>"
    one = cs.System({"one": mass(1.0)})
    one.set("one.f", lambda t: t)
    assert repr(one) == "<System of 1 subsystem (one), 1 driven input>"
    assert repr(cs.System({})) == "<System of 0 subsystems>"
    assert "System of 0 subsystems" in cs.System({})._repr_html_()


def test_a_line_has_room_for_six_names() -> None:
    def named(count: int) -> str:
        parts = {f"p{k}": cs.Static(lambda t, u: t, inputs=[], outputs=["y"]) for k in range(count)}
        return repr(cs.System(parts))

    assert "(p0, p1, p2, p3, p4, p5)" in named(6)
    assert "(p0, p1, p2, p3, p4, p5, ...)" in named(7)


def test_a_system_in_a_terminal(system) -> None:
    lines = [line.rstrip() for line in printed(system).splitlines()]
    assert lines[0] == "System of 3 subsystems (left <1>, right, pair), 1 law, 1 connection"
    assert lines[2].split() == ["left", "<1>", "Linear", "f", "x", "(m),", "v", "(m/s)"]
    assert lines[4].split() == ["pair", "Static", "u", "y[2]"]
    assert lines[5:] == ["  spring = law(left <1>.x, right.x) → left <1>.f, −right.f", "  right.x → pair.u"]


def test_a_system_in_a_notebook_draws_its_coupling(system) -> None:
    """Boxes with names, the law as a pill, the connection as an arrow with its port; names are escaped."""
    found = Tags(system._repr_html_())
    assert found.texts["text"] == ["spring", "x", "left <1>", "Linear", "right", "Linear", "pair", "Static"]
    assert "x (m), v (m/s)" in found.texts["td"]
    assert found.texts["li"] == ["spring = law(left <1>.x, right.x) → left <1>.f, −right.f", "right.x → pair.u"]


def test_a_large_system_in_a_notebook_is_an_adjacency_picture() -> None:
    tank = lambda: cs.Linear([[-1]], [[1]], [[1]], x0=[1], inputs=["q"], outputs=["h"])  # noqa: E731
    large = cs.System({f"t{k}": tank() for k in range(30)})
    for k in range(29):
        large.connect(f"t{k}.h", f"t{k + 1}.q")
    assert "30 subsystems, 29 couplings: a filled cell means" in large._repr_html_()


def test_a_result_in_a_terminal(result) -> None:
    for text in (str(result), printed(result)):
        lines = text.splitlines()
        assert lines[0] == repr(result)
        rows = {row.split("  ")[0].strip(): row for row in lines[2:]}
        assert rows["left <1>.x"].split()[2:5] == ["m", "1", f"{result['left <1>.x'][-1]:.4g}"]
        assert len(rows["left <1>.x"].split()[-1]) == 24
        assert "pair.y[2]" in rows
        assert "100 macro steps, 0 rejected" in text


def test_a_result_in_a_notebook(result) -> None:
    html = result._repr_html_()
    found = Tags(html)
    cells = found.texts["td"]
    place = cells.index("right.x")
    x = result["right.x"]
    assert cells[place + 1 : place + 6] == ["m", "0", *(f"{v:.4g}" for v in (x[-1], x.min(), x.max()))]
    assert html.count('class="spark"') == 8  # every scalar
    assert "left <1>" in found.texts["text"]  # the coupling diagram


def test_a_run_that_failed_says_why_and_one_that_grew_too() -> None:
    breaks = cs.Static(lambda t, u: t if t < 0.5 else np.inf, inputs=[], outputs=["x"])
    with pytest.raises(cs.errors.SimulationError) as stopped:
        cs.simulate(cs.System({"a": breaks}), t_end=1.0, method=cs.Jacobi(0), step=0.1)
    result = stopped.value.result
    result.stats.add(cs.Note("growth", "values grow without bound", "error"))
    for text in (str(result), printed(result), result._repr_html_()):
        assert "stopped: 'a' returned inf" in unescape(text)
        assert "ERROR: values grow without bound" in text


def test_many_quantities_are_cut_off() -> None:
    many = cs.Static(lambda t, u: np.full(20, t), inputs=[], outputs=[f"y{k}" for k in range(20)])
    result = cs.simulate(cs.System({"a": many}), t_end=0.2, method=cs.Jacobi(0), step=0.1)
    assert "and 8 more: a.y12, a.y13, a.y14, a.y15, ..." in str(result)
    assert result._repr_html_().count('class="spark"') == 12


def test_a_loaded_result_shows_the_same(result, tmp_path) -> None:
    assert cs.load_result(result.save(tmp_path / "run.h5"))._repr_html_() == result._repr_html_()


def test_sparklines_of_odd_series() -> None:
    t = np.array([0.0, 1.0, 2.0])
    assert blocks(t, np.array([0.0, np.nan, 1.0]), 3) == "▁ █"
    assert blocks(t, np.full(3, np.nan), 3) == "   "
    assert blocks(t, np.array([-1e308, 0.0, 1e308]), 3) == "▁▁▁"  # the span is beyond all numbers
    assert 'd=""' in line(t, np.full(3, np.nan))
    assert line(t, np.array([-1e308, 0.0, 1e308])).count("24.0") == 3
    assert "M2.0 24.0L148.0 2.0" in line(t, np.array([0.0, np.nan, 1.0]))


def test_a_sparkline_keeps_a_peak_of_one_row() -> None:
    """One row of 1501 between two of the 24 times, and a value at rest in the middle of the range."""
    t = np.linspace(0.0, 1.5, 1501)
    values = np.where(np.arange(1501) == 31, -5280.0, 400.0 * t)
    assert blocks(t, values).index("▁") == 0  # 31 of 1501 rows belong to the first of 24 blocks
    assert blocks(t, values)[-1] == "█"
    rest = np.zeros(1501)
    rest[200], rest[400] = -0.8, 2.4  # where nothing moves the block is 0.25 of the way up
    spark = blocks(t, rest)
    assert spark[0] == "▃"
    assert sorted(spark.replace("▃", "")) == ["▁", "█"]
