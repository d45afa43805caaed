"""The checklist table: markers are found wherever pytest accepts them, and mistakes do not pass."""

from pathlib import Path

import pytest

from tools import coverage

REPOSITORY = Path(__file__).resolve().parents[2]

CHECKLIST = """
[AA]
title = "First family"
[AA.items]
AA-1 = "one"
AA-2 = "two"
[BB]
title = "Second family"
[BB.items]
BB-1 = "three"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for folder in ("tools", "tests/sub", "docs"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "tools" / "checklist.toml").write_text(CHECKLIST)
    return tmp_path


def marked(project: Path, source: str) -> dict[str, list[str]]:
    """Return the coverage of a project whose only test file holds ``source``."""
    (project / "tests" / "sub" / "test_a.py").write_text(source)
    families = coverage.read_checklist(project / "tools" / "checklist.toml")
    return coverage.collect(project / "tests", families, project)


def test_function_marker_names_the_test(project: Path) -> None:
    covered = marked(project, "@pytest.mark.covers('AA-1', 'BB-1')\ndef test_x(): pass\n")
    test = "tests/sub/test_a.py::test_x"
    assert covered == {"AA-1": [test], "AA-2": [], "BB-1": [test]}


def test_class_and_method_markers(project: Path) -> None:
    covered = marked(
        project,
        "@pytest.mark.covers('AA-1')\n"
        "class TestX:\n"
        "    @pytest.mark.slow\n"
        "    @pytest.mark.covers('AA-2')\n"
        "    def test_y(self): pass\n",
    )
    assert covered["AA-1"] == ["tests/sub/test_a.py::TestX"]
    assert covered["AA-2"] == ["tests/sub/test_a.py::TestX::test_y"]


@pytest.mark.parametrize(
    "assignment",
    [
        "pytestmark = pytest.mark.covers('BB-1')",
        "pytestmark = [pytest.mark.slow, pytest.mark.covers('BB-1')]",
        "pytestmark: object = pytest.mark.covers('BB-1')",
    ],
)
def test_module_marker_names_the_file(project: Path, assignment: str) -> None:
    assert marked(project, assignment)["BB-1"] == ["tests/sub/test_a.py"]


def test_marker_on_one_parametrized_case_is_counted(project: Path) -> None:
    source = (
        "@pytest.mark.parametrize('k', [0, pytest.param(1, marks=pytest.mark.covers('AA-2'))])\ndef test_x(k): pass\n"
    )
    assert marked(project, source)["AA-2"] == ["tests/sub/test_a.py::test_x"]


def test_text_that_only_looks_like_a_marker_is_ignored(project: Path) -> None:
    covered = marked(project, "# @pytest.mark.covers('AA-1')\nS = \"@pytest.mark.covers('AA-1')\"\n")
    assert not any(covered.values())


def test_unknown_id_is_an_error_that_names_it(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "tests" / "test_b.py").write_text("@pytest.mark.covers('AA-9')\ndef test_x(): pass\n")
    assert coverage.main([], root=project) == 2
    message = capsys.readouterr().err
    assert "AA-9" in message
    assert "tests/test_b.py::test_x" in message
    assert not (project / "docs" / "validation" / "coverage.md").exists()


def test_computed_id_is_an_error(project: Path) -> None:
    with pytest.raises(coverage.CoverageError, match="plain strings"):
        marked(project, "@pytest.mark.covers(NAME)\ndef test_x(): pass\n")


def test_id_in_the_wrong_family_is_an_error(project: Path) -> None:
    path = project / "tools" / "checklist.toml"
    path.write_text('[AA]\ntitle = "t"\n[AA.items]\nBB-1 = "x"\n')
    with pytest.raises(coverage.CoverageError, match="BB-1"):
        coverage.read_checklist(path)


def test_page_lists_counts_tests_and_open_ids(project: Path) -> None:
    (project / "tests" / "test_b.py").write_text("@pytest.mark.covers('AA-1')\ndef test_x(): pass\n")
    assert coverage.main([], root=project) == 0
    page = (project / "docs" / "validation" / "coverage.md").read_text()
    assert "1 of 3 capabilities" in page
    assert "| [First family](#first-family) |  | 1 | 2 |" in page
    assert "| one | `tests/test_b.py`: `test_x` | AA-1 |" in page
    assert "| two | open | AA-2 |" in page


def test_what_is_shown_elsewhere_is_said_for_a_family_or_for_an_id(project: Path) -> None:
    path = project / "tools" / "checklist.toml"
    path.write_text(CHECKLIST + '[AA.elsewhere]\nAA-1 = "in part"\nAA-2 = "measured"\n')
    marked(project, "@pytest.mark.covers('AA-1')\ndef test_x(): pass\n")
    coverage.main([], root=project)
    page = (project / "docs" / "validation" / "coverage.md").read_text()
    assert "| one | `tests/sub/test_a.py`: `test_x`<br>in part | AA-1 |" in page
    assert "| two | measured | AA-2 |" in page
    assert "| three | open | BB-1 |" in page
    path.write_text(CHECKLIST.replace("[BB.items]", 'elsewhere = "weighed"\n[BB.items]'))
    assert coverage.read_checklist(path)[1].elsewhere == {"BB-1": "weighed"}
    path.write_text(CHECKLIST + '[BB.elsewhere]\nAA-2 = "measured"\n')
    with pytest.raises(coverage.CoverageError, match="AA-2"):
        coverage.read_checklist(path)


def test_check_accepts_a_fresh_page_and_refuses_a_stale_one(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert coverage.main(["--check"], root=project) == 1
    coverage.main([], root=project)
    assert coverage.main(["--check"], root=project) == 0
    (project / "tests" / "test_b.py").write_text("@pytest.mark.covers('AA-1')\ndef test_x(): pass\n")
    capsys.readouterr()
    assert coverage.main(["--check"], root=project) == 1
    assert "make docs-coverage" in capsys.readouterr().err


def test_real_checklist_is_complete() -> None:
    families = coverage.read_checklist(REPOSITORY / "tools" / "checklist.toml")
    sizes = {family.prefix: len(family.items) for family in families}
    assert sizes == {
        "SC": 48,
        "SL": 22,
        "DR": 8,
        "LU": 46,
        "IJ": 45,
        "AP": 46,
        "TR": 14,
        "PX": 21,
        "PF": 9,
        "FS": 20,
        "ST": 20,
    }
