"""How every peer answers: one line of JSON per request on standard input, one per answer on standard output.

A peer gives a table of cases: functions of keyword arguments that return a dictionary with `seconds` (what is measured)
and `answer` (numbers that can be compared). Standard library only. What libraries print goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # problems


def versions(*packages: str) -> dict[str, str]:
    """What is installed here."""
    from importlib.metadata import version

    return {name: version(name) for name in packages}


def serve(cases: dict[str, Callable[..., dict[str, Any]]], *packages: str) -> None:
    """Answer requests until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        case = request.pop("case")
        try:
            if case == "about":
                found: dict[str, Any] = {"versions": versions(*packages), "cases": sorted(cases)}
            else:
                found = cases[case](**request)
        except Exception as error:
            traceback.print_exc()
            found = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(found) + "\n")
        answers.flush()
