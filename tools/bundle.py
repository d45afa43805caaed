"""Whether the page of `cosolve view` was built from the sources beside it: `python tools/bundle.py`, in `make check`.

`make bundle` writes the digest of everything that the bundle is made from into its first line. That needs node; to
compare the digests needs nothing but Python.
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "frontend"
BUNDLE = ROOT / "src/cosolve/viewer/bundle"
FILES = ("viewer.js", "viewer.css", "scene.js")
MOST_BYTES = 1_000_000


def digest(folder: Path = SOURCES) -> str:
    """Of the sources, as frontend/build.mjs forms it."""
    found = hashlib.sha256()
    inside = sorted(path.name for path in (folder / "src").iterdir())
    for name in ("build.mjs", "package-lock.json", "package.json", *(f"src/{one}" for one in inside)):
        text = (folder / name).read_text(encoding="utf-8").replace("\r\n", "\n")
        found.update(f"{name}\n{text}".encode())
    return found.hexdigest()


def complaints(sources: Path = SOURCES, bundle: Path = BUNDLE) -> list[str]:
    """What is wrong with the bundle, in sentences."""
    wanted, found, size = digest(sources), [], 0
    for name in FILES:
        path = bundle / name
        if not path.is_file():
            found.append(f"{name} is missing; run make bundle")
            continue
        text = path.read_text(encoding="utf-8")
        size += len(text.encode())
        held = re.search(r"sources sha256:([0-9a-f]{64})", text[:1000])
        if held is None or held[1] != wanted:
            found.append(f"{name} was not made from the sources in frontend/; run make bundle")
    if size > MOST_BYTES:
        found.append(f"the bundle has {size} bytes, more than {MOST_BYTES}")
    return found


if __name__ == "__main__":
    said = complaints()
    print("\n".join(said) or "the bundle fits its sources")
    sys.exit(bool(said))
