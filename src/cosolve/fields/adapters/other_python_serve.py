"""The other side of `other_python.py`: answers calls in a Python that need not know cosolve (3.9 or later, with numpy).

    python other_python_serve.py FUNCTIONS.py PARENT

Functions of the file are called by name, one call at a time. A message has a head in JSON and the bytes of its arrays,
see `pack`. This process ends when no call can come any more: when its input is closed, or the process PARENT is gone.
"""

from __future__ import annotations

import json
import os
import runpy
import struct
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

LENGTH = struct.Struct("<q")


def pack(name: str, values: Mapping[str, Any]) -> bytes:
    """A name with values (arrays, numbers, text, None) as bytes.

    >>> unpack(pack("solve", {"h": 0.5, "load": np.arange(2.0)}))
    ('solve', {'h': 0.5, 'load': array([0., 1.])})
    """
    arrays = {key: np.ascontiguousarray(value) for key, value in values.items() if isinstance(value, np.ndarray)}
    plain = {key: value for key, value in values.items() if key not in arrays}
    shapes = [[key, array.dtype.str, array.shape] for key, array in arrays.items()]
    head = json.dumps({"name": name, "values": plain, "arrays": shapes}, default=_number).encode()
    return b"".join([LENGTH.pack(len(head)), head, *(array.tobytes() for array in arrays.values())])


def _number(value: Any) -> Any:
    """A number of numpy as one of Python."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"numbers, text, None and arrays go to another Python, but not {type(value).__name__}")


def unpack(message: bytes | memoryview) -> tuple[str, dict[str, Any]]:
    """What `pack` was given."""
    at = LENGTH.size + LENGTH.unpack(message[: LENGTH.size])[0]
    head = json.loads(bytes(message[LENGTH.size : at]))
    values = dict(head["values"])
    for key, kind, shape in head["arrays"]:
        count = int(np.prod(shape, dtype=np.int64))
        array = np.frombuffer(message, np.dtype(kind), count, at).reshape(shape).copy()
        values[key], at = array, at + array.nbytes
    return head["name"], values


def _answer(functions: Mapping[str, Any], message: bytes) -> bytes:
    try:
        name, values = unpack(message)
        return pack("done", functions[name](**values))
    except Exception as error:
        import traceback

        traceback.print_exc()  # to the log
        return pack("failed", {"kind": type(error).__name__, "text": str(error)})


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def main() -> None:
    """Answer until the input is closed."""
    path, parent = sys.argv[1], int(sys.argv[2])
    if os.name != "nt":
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    calls, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed, also by compiled code, goes to the log
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]
    functions = runpy.run_path(path)
    while len(head := calls.read(LENGTH.size)) == LENGTH.size:
        answer = _answer(functions, calls.read(LENGTH.unpack(head)[0]))
        answers.write(LENGTH.pack(len(answer)) + answer)
        answers.flush()


if __name__ == "__main__":
    main()
