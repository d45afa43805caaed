"""`python -m campaigns NAME...`: run campaigns, print their figures, write them into the docs.

`--quick` takes a small sample and writes nothing. The exit status is 1 when something is not as it should be.
"""

from __future__ import annotations

import sys
from importlib import import_module
from time import perf_counter

from campaigns import page

NAMES = (
    *("protocol", "hostile", "concurrency", "load", "faults", "disks", "power", "floods", "fuzz", "guided", "soak"),
    "kills",
)


def main(arguments: list[str]) -> int:
    """Run what is named, or all."""
    quick = "--quick" in arguments
    names = [name for name in arguments if not name.startswith("--")] or list(NAMES)
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        print(f"there is no campaign {unknown[0]!r}; there are {', '.join(NAMES)}")
        return 2
    good = True
    for name in names:
        began = perf_counter()
        outcome = import_module(f"campaigns.{name}").run(quick)
        print(f"\n{name} ({perf_counter() - began:.0f} s)\n\n{outcome.table()}\n")
        print("\n".join(outcome.notes))
        good = good and outcome.good
        if not quick:
            page.write(name, f"make campaign NAME={name}", outcome)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
