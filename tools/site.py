"""Build the documentation site and look through it: `make docs`, without a network.

    python -m tools.site                 build into build/site, any warning is an error, then check the pages
    python -m tools.site --check FOLDER  only check built pages

Checked are: links between pages lead to a page and an anchor that exist; nothing is loaded from elsewhere (scripts,
styles, fonts, pictures), so that the site works from a folder; there is an index to search in.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "build" / "site"
#: Beginnings of addresses that are not files of the site.
_OUTSIDE = ("http:", "https:", "//")
_FIRST = '<!doctype html><meta charset="utf-8"><title>cosolve</title><meta http-equiv="refresh" content="0; url={0}">'
_FIRST += '<a href="{0}">cosolve</a>\n'


class Page(HTMLParser):
    """What a page names, loads and links to.

    >>> page = Page('<h2 id="a">A</h2><script src="https://x.org/y.js"></script><a href="b.html#c">B</a>')
    >>> page.anchors, page.loads, page.links
    ({'a'}, ['https://x.org/y.js'], ['b.html#c'])
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel", "") not in ("canonical", "search", "author"):
            self.loads.append(given.get("href", ""))
        elif "src" in given:
            self.loads.append(given["src"])


def faults(folder: Path) -> Iterator[str]:
    """What is wrong with the built pages, a sentence each."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    if not pages:
        yield f"there are no pages in {folder}: run make docs"
        return
    for path, page in pages.items():
        name = path.relative_to(folder)
        for address in page.loads:
            if address.startswith(_OUTSIDE):
                yield f"{name} loads {address} from elsewhere"
            elif not address.startswith("data:") and _target(path, address, folder) is None:
                yield f"{name} loads {address}, which is not there"
        for address in page.links:
            if address.startswith((*_OUTSIDE, "mailto:", "javascript:")):
                continue
            target = _target(path, address, folder)
            anchor = unquote(urlsplit(address).fragment)
            if target is None:
                yield f"{name} links to {address}, which is not there"
            elif anchor and target in pages and anchor not in pages[target].anchors:
                yield f"{name} links to {address}: there is no such anchor"
    for style in folder.rglob("*.css"):
        for address in re.findall(
            r"(?:@import|url\()\s*['\"]?(?:https?:)?//[^'\")\s]+", style.read_text(encoding="utf-8")
        ):
            yield f"{style.relative_to(folder)} loads {address} from elsewhere"
    if not (folder / "searchindex.js").exists():
        yield "there is no index to search in"


def _target(page: Path, address: str, folder: Path) -> Path | None:
    """The file that an address leads to, None where there is none in the site."""
    path = unquote(urlsplit(address).path)
    found = page if not path else (folder / path[1:] if path.startswith("/") else page.parent / path).resolve()
    return found if found.is_file() and found.is_relative_to(folder.resolve()) else None


def build() -> None:
    """Sphinx, with every warning an error; `index.html` leads to the first page."""
    command = [sys.executable, "-m", "sphinx", "-c", str(ROOT / "docs"), "-b", "html", "-W", "--keep-going", "-q"]
    subprocess.run([*command, "-d", str(ROOT / "build" / "doctrees"), str(ROOT), str(SITE)], check=True, cwd=ROOT)
    (SITE / "index.html").write_text(_FIRST.format("docs/index.html"), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", type=Path, metavar="FOLDER")
    options = parser.parse_args(arguments)
    if options.check is None:
        try:
            build()
        except subprocess.CalledProcessError as error:
            return error.returncode
    folder = (options.check or SITE).resolve()
    found = list(faults(folder))
    print("\n".join(found) if found else f"the site is in {folder}: open index.html")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
