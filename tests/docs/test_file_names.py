"""Files that texts name are there: a module that is renamed is renamed in what is written about it."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = {"mylab.py", "functions.py"}  # of the reader


def test_every_module_that_a_text_names_exists():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    ends = {"/".join(file.split("/")[k:]) for file in listed for k in range(file.count("/") + 1)}
    texts = [file for file in listed if re.fullmatch(r"(src/.*\.py|docs/(?!validation/mutants).*\.md|[^/]*\.md)", file)]
    lost = {
        f"{file}: {name}"
        for file in texts
        if file != "CHANGELOG.md"
        for name in re.findall(r"`([\w./-]+\.py)(?:::\w+)?`", (ROOT / file).read_text(encoding="utf-8"))
        if name not in ends | EXAMPLES
    }
    assert not lost
