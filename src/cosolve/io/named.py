"""Methods, startups and step controls from the tables of a file: `{name = "semi-implicit", degree = 2}`.

Names and options are read as in Python (`method/named.py`); a file may also name functions of the user's own modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from cosolve.corrector import Secant
from cosolve.engine.measure import absolute_tolerances
from cosolve.interface import Plan
from cosolve.io.imports import import_callable
from cosolve.method import Method
from cosolve.method.named import Named, as_method, build, construct, kebab
from cosolve.run.known_past import KnownHistory, KnownRates
from cosolve.run.startup import GradedStart, LeaderFollowerStart, RisingDegree, Startup
from cosolve.stepsize import Adaptive

STARTUPS = {kebab(c.__name__): c for c in (GradedStart, RisingDegree, KnownHistory, KnownRates, LeaderFollowerStart)}


def method(given: Named, folder: Path = Path()) -> Method:
    """A coupling method from its name or table; modules are looked for in `folder` first.

    >>> method({"name": "semi-implicit", "degree": 2}).label
    'SemiImplicit(2)'
    """
    return as_method(given, partial(import_callable, folder=folder))


def open_method(given: Named | None, folder: Path = Path()) -> Method | None:
    """The same; None where it is left open.

    >>> open_method("auto") is None, open_method("jacobi").label
    (True, 'Jacobi(1)')
    """
    return None if given is None or given == "auto" else method(given, folder)


def refuse_unknown_variables(method: Method | None, plan: Plan) -> None:
    """Raise when the options of a method name coupling variables that the system does not have."""
    absolute_tolerances(plan, getattr(method, "atol", 0.0))
    corrector = getattr(method, "corrector", None)
    if isinstance(corrector, Secant):
        corrector.start_run(plan.z_labels)  # which finds its pairs there


def startup(given: Named, folder: Path = Path()) -> Startup:
    """A startup from its name or table; the path of a file with a known past is relative to `folder`.

    >>> startup({"name": "leader-follower-start", "leader": "one"}).leader
    'one'
    """
    if isinstance(given, Mapping) and isinstance(given.get("table"), str):
        given = {**given, "table": str(folder / given["table"])}
    return build("startup", given, STARTUPS, partial(import_callable, folder=folder))  # type: ignore[no-any-return]


def step_control(options: Mapping[str, Any], folder: Path = Path()) -> Adaptive:
    """Adaptive steps from a table.

    >>> step_control({"rtol": 1e-4}).rtol
    0.0001
    """
    return construct("step", Adaptive, options, partial(import_callable, folder=folder))  # type: ignore[no-any-return]
