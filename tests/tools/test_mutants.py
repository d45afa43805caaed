"""Mistakes on purpose: found in sources, made in a copy, noticed or not; and every room has tests that are there."""

import ast
from datetime import date
from pathlib import Path

import pytest
from tools.mutations import mutations

from tools import mutants

REPOSITORY = Path(__file__).resolve().parents[2]

SOURCE = b'''"""Not here: 1 + 2."""

def area(a: float, b: float = 1.0) -> float:
    """Nor here: 3 * 4."""
    if a < 0 and b < 0:
        raise ValueError(f"{a + b}")
    if not a:
        return 0.0
    return a * b

def forever(n):
    while n > 0:
        n = n - 1
    return n
'''


def what(source: bytes) -> list[str]:
    return [found.what for found in mutations(source, "a.py")]


def test_one_mistake_at_a_time_and_only_in_formulas():
    assert what(SOURCE) == [
        "1.0 -> 2.0", "not a -> (a)", "0.0 -> 1.0", "a * b -> -(a * b)", "* -> /",
        "> -> <=", "> -> >=", "0 -> 1", "- -> +", "1 -> 2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (b"x = (a) <= (b)  # < not this one", ["<= -> <", "<= -> >"]),
        (b"x = a is not b", ["is not -> is"]),
        (b"x = a if b else c", ["b -> not b"]),
        (b"x = max(a, -b)", ["max -> min", "-b -> (b)"]),
        (b"x[0] += y", ["0 -> 1", "+= -> -="]),
        ("é = 2 + é".encode(), ["2 -> 3", "+ -> -"]),
        (b"x = 1e-12; y = 'a' + b", []),
        (b"def refuse_bad(x):\n    return x + 1", []),
        (b"self.a = b", ["self.a = b -> pass"]),
        (b"f(x)", ["f(x) -> pass"]),
    ],
)
def test_kinds_of_mistakes(source, expected):
    assert what(source) == expected


def test_every_mistake_is_python_that_differs():
    path = REPOSITORY / "src" / "cosolve" / "stepsize" / "control.py"
    source = path.read_bytes()
    found = mutations(source, "control.py")
    assert len(found) > 60
    assert len({mutation.key for mutation in found}) == len(found)
    for mutation in found:
        assert ast.dump(ast.parse(mutation.applied(source))) != ast.dump(ast.parse(source))


@pytest.fixture
def tree(tmp_path):
    for folder in ("tree/src/cosolve", "tree/tests"):
        (tmp_path / folder).mkdir(parents=True)
    root = tmp_path / "tree"
    (root / "src" / "cosolve" / "__init__.py").touch()
    (root / "src" / "cosolve" / "area.py").write_bytes(SOURCE)
    (root / "tests" / "test_area.py").write_text(
        "from cosolve.area import area, forever\ndef test_a(): assert area(2.0, 3.0) == 6.0 and forever(3) == 0\n"
    )
    (root / "conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--limit')\n    parser.addoption('--grace')\n"
    )
    return root


@pytest.mark.slow
def test_mistakes_are_noticed_survive_or_never_end(tree, tmp_path):
    """In copies of a tree, which itself is left as it is."""
    room = mutants.Room("room", ("*.py",), ("test_area.py",))
    chosen = {mutation.what: mutation for _, mutation in mutants.drawn([room], tree, 0, seed=3)}
    assert len(chosen) == 10
    bench = mutants.Bench.of(tree, tmp_path / "bench", {})
    tests = (("tests/test_area.py",),)
    assert bench.try_out(chosen["* -> /"], tests) == "tests/test_area.py::test_a"
    assert bench.try_out(chosen["1.0 -> 2.0"], tests) == ""  # a default that the test does not use
    bench.limits[tests[0]] = 3.0
    assert bench.try_out(chosen["- -> +"], tests) == "no end within 3 s"
    assert (tree / "src" / "cosolve" / "area.py").read_bytes() == SOURCE
    (tree / "tests" / "test_area.py").write_text("def test_a(): assert False\n")
    with pytest.raises(SystemExit, match="test_a fails without any mistake"):
        mutants.Bench.of(tree, tmp_path / "other", {}).limit(tests[0])


def test_a_sample_can_be_drawn_again_and_takes_from_all_rooms():
    rooms = mutants.ROOMS[:2]
    first, again, other = (mutants.drawn(rooms, REPOSITORY, 10, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert [room.name for room, _ in first] == 5 * [room.name for room in rooms]


@pytest.mark.parametrize("room", mutants.ROOMS, ids=lambda room: room.name)
def test_rooms_have_sources_and_tests(room):
    assert room.files(REPOSITORY)
    for file in (*room.quick, *room.more):
        assert (REPOSITORY / "tests" / file).is_file()


def test_the_page_counts_and_judges(tree):
    room = mutants.Room("room", ("*.py",), ("test_area.py",))
    found = [mutation for _, mutation in mutants.drawn([room], tree, 4, seed=1)]
    fates = [mutants.Fate(m, "room", noticed, 1.0) for m, noticed in zip(found, ("t", "t", "", ""), strict=True)]
    same = mutants.Judged(found[2].key, equivalent="it is the same")
    text = mutants.page(fates, {same.mistake: same}, 1, date(2026, 1, 2))
    assert "| room | 4 | 2 | 1 | 1 | 67% |" in text
    assert "it is the same" in text
    assert "02 January 2026" in text


def test_verdicts_have_a_reason_or_a_test_that_is_there():
    for judged in mutants.read_verdicts(mutants.VERDICTS).values():
        assert bool(judged.equivalent) != bool(judged.test), judged.mistake
        if judged.test:
            file, _, name = judged.test.partition("::")
            assert f"def {name.partition('[')[0]}(" in (REPOSITORY / file).read_text(encoding="utf-8")
