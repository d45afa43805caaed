"""The order of serial sweeps: names of subsystems as users give them, and their indices."""

from __future__ import annotations

from collections.abc import Sequence

from cosolve.basics.wording import listed
from cosolve.errors import SetupError
from cosolve.interface.plan import Plan


def in_order(plan: Plan, names: Sequence[str]) -> list[int]:
    """Indices of the named subsystems, then of all others in the order of the system."""
    place = {name: i for i, name in enumerate(plan.names)}
    return [place[name] for name in dict.fromkeys((*names, *place))]


def checked_order(method: str, order: Sequence[str]) -> tuple[str, ...]:
    """`order` as a tuple of distinct names."""
    if isinstance(order, str):
        raise SetupError(f"{method}: order is a list of subsystem names; write order=[{order!r}]")
    if len(set(order)) != len(order):
        raise SetupError(f"{method}: order {list(order)} names a subsystem twice")
    return tuple(order)


def unknown_in_order(method: str, order: Sequence[str], plan: Plan) -> list[str]:
    """A sentence for every name in `order` that is no subsystem."""
    known = set(plan.names)
    unknown = [name for name in order if name not in known]
    return [f"{method}: order names {name!r}, but the subsystems are {listed(plan.names)}" for name in unknown]
