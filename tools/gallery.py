"""The gallery of the documentation: every example with a picture, a sentence, its time and its code.

    python -m tools.gallery                    write docs/gallery/index.md from docs/gallery/entries.toml and examples/
    python -m tools.gallery --run NAME ...     first run these examples: small pictures and times go to docs/gallery/
    python -m tools.gallery --run all          all of them (minutes)
    python -m tools.gallery --check            say what is missing or stale; exit code 1 if anything is

An entry chooses the picture (a name of what the example writes) and the group it is shown in; an example without an
entry gets the first animation or picture that it writes, in the last group. Sentences are those of the examples
themselves, so that `cosolve demo --list` and the gallery say the same. Times are processor seconds of one run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosolve.gallery import about

if TYPE_CHECKING:
    from PIL.Image import Image

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES, GALLERY = ROOT / "examples", ROOT / "docs" / "gallery"
ENTRIES, TIMES, PAGE = GALLERY / "entries.toml", GALLERY / "times.json", GALLERY / "index.md"
_WIDTH, _ANIMATED_WIDTH = 720, 400  # pixels: sharp at the size they are shown, and small in the repository
_FRAMES, _COLOURS, _ANIMATED_COLOURS = 60, 64, 32
_OTHER = "More examples"


@dataclass(frozen=True)
class Entry:
    """How one example is shown."""

    name: str
    group: str
    picture: str | None
    arguments: tuple[str, ...]

    @property
    def script(self) -> Path:
        """What is run."""
        return EXAMPLES / self.name / "run.py"

    @property
    def sentence(self) -> str:
        """What the example says about itself."""
        return about(self.script).rstrip(".")

    @property
    def shown(self) -> Path | None:
        """Its picture in the gallery, where there is one."""
        found = [path for path in (GALLERY / f"{self.name}.gif", GALLERY / f"{self.name}.png") if path.exists()]
        return found[0] if found else None


def entries() -> list[Entry]:
    """One for every example that can be run, in the order of the page.

    >>> "two_mass" in [entry.name for entry in entries()]
    True
    """
    given: dict[str, Any] = tomllib.loads(ENTRIES.read_text(encoding="utf-8"))
    groups: list[str] = [*given.pop("groups"), _OTHER]
    found = []
    for script in sorted(EXAMPLES.glob("*/run.py")):
        said = given.get(script.parent.name, {})
        arguments = tuple(said.get("arguments", ()))
        found.append(Entry(script.parent.name, said.get("group", _OTHER), said.get("picture"), arguments))
    return sorted(found, key=lambda entry: (groups.index(entry.group), entry.name))


def page(shown: Sequence[Entry], times: dict[str, Any]) -> str:
    """The gallery as Markdown, readable on a code host and on the site."""
    lines = [
        "# Gallery",
        "",
        "Every example of the package. Each runs from any folder with the command under its picture, and says where it",
        "writes its pictures (`--out` chooses the place). Times are those of one processor core; the first run on a",
        "machine also compiles, which takes some seconds more. Those with a notebook can be read and run cell by cell.",
    ]
    group = ""
    for entry in shown:
        if entry.group != group:
            group = entry.group
            lines += ["", f"## {group}"]
        lines += ["", f"### {entry.name}", ""]
        if entry.shown is not None:
            lines += [f"![{entry.sentence}]({entry.shown.name})", ""]
        command = " ".join(["cosolve demo", entry.name, *entry.arguments])
        links = [f"[code](../../examples/{entry.name}/run.py)"]
        if (ROOT / "docs" / "notebooks" / f"{entry.name}.ipynb").exists():
            links.append(f"[notebook](../notebooks/{entry.name}.ipynb)")
        time = f", {_spoken(times[entry.name]['seconds'])}" if entry.name in times else ""
        lines.append(f"{entry.sentence}. `{command}`{time}.")
        lines.append(" · ".join(links))
    return "\n".join(lines) + "\n"


def _spoken(seconds: float) -> str:
    """A time as one says it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min"


def run(entry: Entry) -> dict[str, Any]:
    """Run an example once, put its picture into the gallery; what it took."""
    out = ROOT / "build" / "gallery" / entry.name
    out.mkdir(parents=True, exist_ok=True)
    before = _processor_seconds()
    command = [sys.executable, str(entry.script), *entry.arguments, "--out", str(out)]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": path, "MPLBACKEND": "agg"})
    seconds = _processor_seconds() - before
    written = [*sorted(out.rglob("*.gif")), *sorted(out.rglob("*.png"))]
    chosen = [path for path in written if entry.picture is None or path.name == entry.picture]
    if not chosen:
        raise SystemExit(f"{entry.name} wrote no '{entry.picture or 'picture'}' but {[path.name for path in written]}")
    for old in (GALLERY / f"{entry.name}.gif", GALLERY / f"{entry.name}.png"):
        old.unlink(missing_ok=True)
    shrink(chosen[0], GALLERY / f"{entry.name}{chosen[0].suffix}")
    return {"seconds": float(f"{seconds:.2g}"), "measured": datetime.now(UTC).date().isoformat()}


def _processor_seconds() -> float:
    import resource  # where there is one: times are taken on Unix

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def shrink(source: Path, target: Path) -> None:
    """A picture or an animation at the size of the gallery, with few colours."""
    from PIL import Image, ImageSequence

    with Image.open(source) as picture:
        if target.suffix == ".png":
            _narrow(picture.convert("RGB"), _WIDTH).quantize(_COLOURS).save(target, optimize=True)
            return
        frames = [frame.convert("RGB") for frame in ImageSequence.Iterator(picture)]
        every = -(-len(frames) // _FRAMES)
        duration = every * int(picture.info.get("duration", 50))
    small = [_narrow(frame, _ANIMATED_WIDTH).quantize(_ANIMATED_COLOURS) for frame in frames[::every]]
    small[0].save(target, save_all=True, append_images=small[1:], duration=duration, loop=0, optimize=True)


def _narrow(picture: Image, width: int) -> Image:
    if picture.width <= width:
        return picture
    return picture.resize((width, round(picture.height * width / picture.width)))


def faults() -> list[str]:
    """What is missing or stale, each with the command that mends it."""
    found = []
    times = read_times()
    shown = entries()
    for entry in shown:
        if entry.shown is None or entry.name not in times:
            found.append(f"{entry.name} has no picture or no time yet: python -m tools.gallery --run {entry.name}")
    known = {entry.name for entry in shown}
    for path in (*GALLERY.glob("*.png"), *GALLERY.glob("*.gif")):
        if path.stem not in known:
            found.append(f"{path.name} shows an example that is not there: remove it")
    if PAGE.read_text(encoding="utf-8") != page(shown, times):
        found.append("docs/gallery/index.md is not what the entries say: python -m tools.gallery")
    return found


def read_times() -> dict[str, Any]:
    """What was measured, by example."""
    return json.loads(TIMES.read_text(encoding="utf-8")) if TIMES.exists() else {}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    if options.check:
        missing = faults()
        print("\n".join(missing) or "the gallery is complete")
        return 1 if missing else 0
    times = read_times()
    for entry in entries():
        if entry.name in options.run or "all" in options.run:
            print(f"--- {entry.name}", flush=True)
            times[entry.name] = run(entry)
            TIMES.write_text(json.dumps(dict(sorted(times.items())), indent=2) + "\n", encoding="utf-8")
    shown = entries()
    PAGE.write_text(page(shown, times), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
