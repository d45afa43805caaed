"""Write docs/validation/coverage.md: what the package is meant to do, in words, and which tests show it.

A test names the capabilities it covers with ``@pytest.mark.covers("SC-04", "SL-03")`` on a function or class,
or with a module-level ``pytestmark``. The test files are parsed, never imported, so this runs without the
package installed. The list of capabilities is tools/checklist.toml.

    python tools/coverage.py            rewrite the page
    python tools/coverage.py --check    exit 1 if the page is out of date
"""

import argparse
import ast
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


class CoverageError(Exception):
    """A marker or the checklist is wrong; the message says where."""


@dataclass(frozen=True)
class Family:
    """A group of capabilities with a common id prefix; ``items`` maps id to title.

    ``source`` is markdown that says where the group comes from, ``elsewhere`` markdown by id that says what shows a
    capability, or a part of it, that no test does; in the file one text may stand for all.
    """

    prefix: str
    title: str
    items: dict[str, str]
    source: str = ""
    elsewhere: dict[str, str] = field(default_factory=dict)


def read_checklist(path: Path) -> list[Family]:
    """Read the families in the order in which the file lists them."""
    with path.open("rb") as file:
        data = tomllib.load(file)
    families = [
        Family(prefix, table["title"], table["items"], table.get("source", ""), _elsewhere(path, table))
        for prefix, table in data.items()
    ]
    for family in families:
        for name in family.items:
            if not name.startswith(f"{family.prefix}-"):
                raise CoverageError(f"{path.name}: id {name} stands in family {family.prefix}")
    return families


def _elsewhere(path: Path, table: dict[str, Any]) -> dict[str, str]:
    found = table.get("elsewhere", {})
    if isinstance(found, str):
        return dict.fromkeys(table["items"], found)
    for name in found:
        if name not in table["items"]:
            raise CoverageError(f"{path.name}: elsewhere names {name}, which is no item of its family")
    return dict(found)


def _is_covers(node: ast.expr) -> bool:
    """Whether ``node`` reads ``pytest.mark.covers`` (or ``mark.covers``)."""
    if not (isinstance(node, ast.Attribute) and node.attr == "covers"):
        return False
    mark = node.value
    return (isinstance(mark, ast.Attribute) and mark.attr == "mark") or (
        isinstance(mark, ast.Name) and mark.id == "mark"
    )


def _marked_ids(expression: ast.expr, path: Path) -> Iterator[str]:
    """Yield the ids of every ``pytest.mark.covers(...)`` call inside ``expression``."""
    for node in ast.walk(expression):
        if not (isinstance(node, ast.Call) and _is_covers(node.func)):
            continue
        for argument in node.args:
            if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                raise CoverageError(
                    f"{path}:{node.lineno}: write the ids of the covers marker as plain strings, "
                    'for example covers("SC-04", "SL-03")'
                )
            yield argument.value


def _module_marks(module: ast.Module, path: Path) -> list[str]:
    """Return the ids named by a module-level ``pytestmark``."""
    ids: list[str] = []
    for node in module.body:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        if any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in targets):
            ids.extend(_marked_ids(value, path))
    return ids


def marks_of_file(path: Path, root: Path) -> Iterator[tuple[str, str]]:
    """Yield (id, test node id) for every marker in one test file.

    A mark on a class or module is reported once, with the node id of that class or module.
    """
    label = path.relative_to(root).as_posix()
    module = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    for name in _module_marks(module, path):
        yield name, label
    yield from _marks_of_body(module.body, label, path)


def _marks_of_body(body: list[ast.stmt], label: str, path: Path) -> Iterator[tuple[str, str]]:
    """Yield (id, node id) for the decorated functions and classes in ``body``, nested classes included."""
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        node_id = f"{label}::{node.name}"
        for decorator in node.decorator_list:
            for name in _marked_ids(decorator, path):
                yield name, node_id
        if isinstance(node, ast.ClassDef):
            yield from _marks_of_body(node.body, node_id, path)


def collect(tests: Path, families: list[Family], root: Path) -> dict[str, list[str]]:
    """Map every checklist id to the sorted node ids of the tests that name it."""
    covered: dict[str, set[str]] = {name: set() for family in families for name in family.items}
    for path in sorted(tests.rglob("*.py")):
        for name, node_id in marks_of_file(path, root):
            if name not in covered:
                raise CoverageError(f"{node_id} covers {name!r}, which tools/checklist.toml does not list")
            covered[name].add(node_id)
    return {name: sorted(nodes) for name, nodes in covered.items()}


def _named(nodes: list[str]) -> str:
    """Tests by file: the file once, then the names in it."""
    files: dict[str, list[str]] = {}
    for node in nodes:
        path, _, name = node.partition("::")
        files.setdefault(path, []).extend([name] if name else [])
    return "<br>".join(
        f"`{path}`" + (": " + ", ".join(f"`{name}`" for name in names) if names else "")
        for path, names in files.items()
    )


def render(families: list[Family], covered: dict[str, list[str]]) -> str:
    """Return the markdown page."""
    done = sum(1 for nodes in covered.values() if nodes)
    lines = [
        "# What is shown by which test",
        "",
        "<!-- Generated by tools/coverage.py (make docs-coverage); do not edit by hand. -->",
        "",
        "One row per capability that the package is meant to have. A test that shows one carries its id in a marker,",
        '`@pytest.mark.covers("...")`; what no test shows yet is "open".',
        "",
        f"{done} of {len(covered)} capabilities are shown by at least one test.",
        "",
        "| subject | source | shown | of |",
        "|---|---|---:|---:|",
    ]
    for family in families:
        count = sum(1 for name in family.items if covered[name])
        anchor = "".join(c for c in family.title.lower().replace(" ", "-") if c.isalnum() or c == "-")
        lines.append(f"| [{family.title}](#{anchor}) | {family.source} | {count} | {len(family.items)} |")
    for family in families:
        lines += ["", f"## {family.title}", "", "| capability | shown by | id |", "|---|---|---|"]
        for name, title in family.items.items():
            shown = "<br>".join(filter(None, [_named(covered[name]), family.elsewhere.get(name, "")]))
            lines.append(f"| {title} | {shown or 'open'} | {name} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Write the page, or with ``--check`` compare it with what is on disk."""
    parser = argparse.ArgumentParser(description="Write docs/validation/coverage.md from the covers markers in tests/.")
    parser.add_argument("--check", action="store_true", help="only check that the page is up to date")
    options = parser.parse_args(arguments)
    page = root / "docs" / "validation" / "coverage.md"
    try:
        families = read_checklist(root / "tools" / "checklist.toml")
        text = render(families, collect(root / "tests", families, root))
    except CoverageError as error:
        print(f"coverage: {error}", file=sys.stderr)
        return 2
    if not options.check:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
        return 0
    if not page.is_file() or page.read_text(encoding="utf-8") != text:
        print(
            "docs/validation/coverage.md is out of date; run `make docs-coverage`.",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
