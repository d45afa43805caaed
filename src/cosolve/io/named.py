"""Methods, startups and step controls from the tables of a file: `{name = "semi-implicit", degree = 2}`.

Names and options are read as in Python (`method/named.py`); a file may also name functions of the user's own modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cosolve.engine.measure import absolute_tolerances
from cosolve.interface import Plan
from cosolve.method import Method
from cosolve.method.named import Named, as_method, build, construct
from cosolve.run.startup import Startup
from cosolve.stepsize import Adaptive


def open_method(given: Named | None, folder: Path = Path()) -> Method | None:
    """A coupling method from its name or table, None where it is left open; modules are looked for in `folder` first.

    >>> open_method("auto") is None, open_method("jacobi").label
    (True, 'Jacobi(1)')
    """
    return None if given is None or given == "auto" else as_method(given, folder)


def refuse_unknown_variables(method: Method | None, plan: Plan) -> None:
    """Raise when the options of a method name coupling variables that the system does not have."""
    declaration = None if method is None else method.declaration
    if declaration is not None:
        absolute_tolerances(plan, declaration.atol)
        if declaration.corrector is not None:
            declaration.corrector.start_run(plan.z_labels)  # some find coupling variables there by name


def startup(given: Named, folder: Path = Path()) -> Startup:
    """A startup from its name or table; the path of a file with a known past is relative to `folder`.

    >>> startup({"name": "leader-follower-start", "leader": "one"}).leader
    'one'
    """
    if isinstance(given, Mapping) and isinstance(given.get("table"), str):
        given = {**given, "table": str(folder / given["table"])}
    return build("startups", given, Startup, folder)  # type: ignore[no-any-return]


def step_control(options: Mapping[str, Any], folder: Path = Path()) -> Adaptive:
    """Adaptive steps from a table.

    >>> step_control({"rtol": 1e-4}).rtol
    0.0001
    """
    return construct("step", Adaptive, options, folder)  # type: ignore[no-any-return]
