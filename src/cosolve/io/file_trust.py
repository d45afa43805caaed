"""Whether a saved state was written by this user: only then the program that it names is run without a question.

The key is 32 random bytes in a file that only this user can read.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Mapping
from pathlib import Path
from secrets import token_bytes
from typing import Any


def seal(content: Mapping[str, Any]) -> str:
    """Of plain values; empty where no key can be kept.

    >>> seal({"file": "a.toml"}) == seal({"file": "b.toml"})
    False
    """
    key = _key()
    text = json.dumps(content, sort_keys=True, default=str).encode()
    return hmac.new(key, text, "sha256").hexdigest() if key else ""


def is_sealed(content: Mapping[str, Any], mark: object) -> bool:
    """True for the seal of this user."""
    made = seal(content)
    return bool(made) and isinstance(mark, str) and hmac.compare_digest(made.encode(), mark.encode())


def _key() -> bytes:
    try:
        folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state", "cosolve")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "seal"
        if not path.exists():
            draft = folder / f"seal.{os.getpid()}"
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(token_bytes(32))
            if path.exists():
                draft.unlink()
            else:
                os.replace(draft, path)
        key = path.read_bytes()
    except (OSError, RuntimeError):  # no home
        return b""
    return key if len(key) == 32 else b""
