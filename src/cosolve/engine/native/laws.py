"""Where the machine code of a law is (`interface/law_partials.py`)."""

from __future__ import annotations

from cosolve.interface.law_partials import compiled_law, compiled_partials
from cosolve.interface.plan import Block


def law_addresses(block: Block, partials: bool) -> tuple[int, int]:
    """Of `law(arguments, values)` and `partials(arguments, nominal, values, slopes)`; 0 for what is not wanted."""
    from cosolve.jit import raising_address

    how = block.function, block.takes, block.gives
    return raising_address(compiled_law(*how)), raising_address(compiled_partials(*how)) if partials else 0
