"""A strict reader of the reports: well-formed, self-contained, accessible."""

import re
from html.parser import HTMLParser

import pytest

from cosolve.viewer.embedded import as_script, bundle

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Reader(HTMLParser):
    """Checks that every element is closed in order and collects text, attributes and table cells."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.words, self.elements, self.rows = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.words.append(data)
        if self.open and self.rows and {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))

    def row(self, first):
        """The cells of the first table row that begins like this."""
        return next(row for row in self.rows if row and row[0] == first)


@pytest.fixture(scope="session")
def read():
    """Parse a report and check what every report must satisfy."""
    return read_strictly


def read_strictly(path):
    text = path.read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == [], f"never closed: {reader.open}"
    assert text.startswith("<!doctype html>")
    held = text.replace(bundle("viewer.js"), "").replace(bundle("viewer.css"), "")  # names of XML, licences
    held = held.replace(as_script(bundle("scene.js")), "")  # where something moves
    assert "http:" not in held
    assert "https:" not in held
    assert "@import" not in text
    for tag, attributes in reader.elements:
        assert tag not in ("iframe", "link", "object")
        assert tag != "script" or attributes["type"] in ("module", "application/json")  # the viewer and its numbers
        for key in ("src", "href", "xlink:href", "srcset"):
            assert attributes.get(key, "#").startswith("#"), f"<{tag} {key}> points outside"
        if tag == "svg":
            assert attributes["role"] == "img"
            assert len(attributes["aria-label"]) > 10
    ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert path.stat().st_size < 2_000_000
    return reader
