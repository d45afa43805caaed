"""Contents of rare calls as pickles: for processes that the run starts itself, never for what another machine sent.

Factories, states and exceptions of any class travel this way. A pickle runs code when it is read, so no module that
reads what another machine sent may import this one; tests/process/isolated/test_attacks.py looks.
"""

from __future__ import annotations

import pickle
import traceback
from contextlib import suppress
from typing import Any

from cosolve.basics.wording import text_of
from cosolve.errors import SubsystemError


class Pickles:
    """The `Format` between a run and its own processes.

    >>> Pickles().unpack(Pickles().pack({"a": (1, 2)}))
    {'a': (1, 2)}
    """

    def pack(self, value: Any) -> bytes:
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)

    def unpack(self, data: bytes | memoryview) -> Any:
        return pickle.loads(data)  # noqa: S301  of a process that the run has started

    def pack_error(self, error: Exception) -> bytes:
        """The exception itself where it can travel, its type and text, and where it came from."""
        where = "".join(traceback.format_exception(error))
        try:
            packed: bytes | None = pickle.dumps(error.with_traceback(None))
            pickle.loads(packed or b"")  # noqa: S301  what was packed a moment ago
        except Exception:  # exceptions with arguments of their own often cannot be rebuilt
            packed = None
        return self.pack((packed, type(error).__name__, text_of(error), where))

    def unpack_error(self, data: bytes | memoryview) -> Exception:
        """The exception that was raised over there, with its traceback as a note."""
        packed, kind, text, where = self.unpack(data)
        error: Exception | None = None
        if packed is not None:
            with suppress(Exception):  # a type that cannot be imported here
                error = pickle.loads(packed)  # noqa: S301  as above
        if error is None:
            error = SubsystemError(f"{text} ({kind})")
        error.add_note("In the process of the subsystem:\n" + where)
        return error
