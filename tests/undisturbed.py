"""Claims about time on a machine that others use too: disturbances only cost time, so one undisturbed run is enough."""

from collections.abc import Callable

TRIES = 20


def undisturbed(check: Callable[[], None]) -> None:
    """Repeat a check of measured times until it holds; what is wrong at every try is wrong."""
    for _ in range(TRIES - 1):
        try:
            check()
        except AssertionError:
            continue
        return
    check()
