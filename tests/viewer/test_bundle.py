"""The page that comes with the package is the one that its sources make."""

import re
import shutil

from tools.bundle import BUNDLE, FILES, SOURCES, complaints

#: A module whose text came with the page or from the kernel (`moduleOf` in frontend/src/sources.js).
BROUGHT_ALONG = r'(\w+)=URL\.createObjectURL\(new Blob\(\[\w+\],\{type:"text/javascript"\}\)\);return import\(\1\)'


def test_the_bundle_fits_its_sources():
    assert complaints() == []


def test_a_changed_source_is_noticed(tmp_path):
    copy = tmp_path / "frontend"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("node_modules"))
    (copy / "src/chart.js").write_text("// changed\n" + (copy / "src/chart.js").read_text())
    assert len(complaints(copy)) == len(FILES)


def test_nothing_is_loaded_from_elsewhere():
    """No address of another computer but names of XML and comments with licences."""
    for name in FILES:
        text = (BUNDLE / name).read_text()
        assert "import(" not in re.sub(BROUGHT_ALONG, "", text.replace('import("./scene.js")', ""))
        assert "innerHTML" not in text or name == "scene.js"
        assert "eval(" not in text
        assert "new Function" not in text
