"""`Remote`: a subsystem on another machine, which `cosolve serve` offers there, seen from the run like the subsystem.

Encrypted, and both sides prove that they have the key (`network.py`). What comes back is numbers and plain data
(`content.py`): nothing that the other machine sends is run here. See SECURITY.md for what is promised.
"""

from __future__ import annotations

import os
from typing import Any

from cosolve.basics.checks import positive
from cosolve.errors import SetupError, SubsystemError
from cosolve.process import message as m
from cosolve.process.channel import Disconnected, TimedOut
from cosolve.process.content import Content
from cosolve.process.data import Malformed
from cosolve.process.network import Connection, host_and_port
from cosolve.process.proxy import Proxy, told_as_setup
from cosolve.subsystem.port import Port, Ports

_LOADING = 60.0  # seconds beyond `timeout`
KEY = "COSOLVE_KEY"  # environment variable


class Remote(Proxy):
    """A subsystem on another machine, offered there by `cosolve serve FACTORY --port N`.

    Parameters
    ----------
    address : str
        "host:port".
    key : str or None, default None
        The key that the server prints. None: the environment variable COSOLVE_KEY.
    timeout : float or None, default None
        Longest time of a call in seconds. None waits as long as the server is alive.
    name : str, default ""
        Name for messages.

    Raises
    ------
    SetupError
        If the address is malformed or no key is given.
    SubsystemError
        During a run, if the server ends or the network fails for some seconds.

    Notes
    -----
    The connection is encrypted. Needs `pip install cosolve[network]`.

    Examples
    --------
    >>> import cosolve as cs
    >>> cs.remote.Remote("localhost:5555:1", key="x")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: Remote: an address is 'host:port', not 'localhost:5555:1'
    """

    _by_note = True

    def __init__(self, address: str, *, key: str | None = None, timeout: float | None = None, name: str = "") -> None:
        self._address = host_and_port(address, "Remote", least=1)
        if timeout is not None:
            positive("Remote", "timeout", timeout, " of seconds or None")
        secret = key if key is not None else os.environ.get(KEY)
        if not secret or not isinstance(secret, str):
            raise SetupError(f"Remote: give the key that the server at {address} prints, as key=... or in {KEY}")
        super().__init__(Content())
        self._arguments = (address, key, timeout, name)
        self._where, self._key = str(address), secret
        self._timeout, self._count = timeout, 0
        self._channel: Connection | None = self._connected()

    def __reduce__(self) -> Any:
        return _again, self._arguments

    def _connected(self) -> Connection:
        channel = Connection(*self._address, self._key)
        self._count += 1
        return channel

    def _loaded(self) -> dict[str, Any]:
        with told_as_setup(f"Remote {self._where}"):
            timeout = None if self._timeout is None else self._timeout + _LOADING
            return self._believed(self._read(self._exchange(m.write_request(m.LOAD), timeout)).value)

    def _believed(self, about: Any) -> dict[str, Any]:
        """What the server says about its subsystem, if it is of the kind that it must be."""
        if type(about) is dict:
            ports = [about.get("inputs"), about.get("outputs")]
            methods, flags = about.get("methods"), ("overshoots", "variable_step", "concurrent")
            if (
                all(type(some) is tuple and all(type(port) is Port for port in some) for some in ports)
                and type(methods) is frozenset
                and all(type(name) is str for name in methods)
                and all(type(about.get(flag)) is bool for flag in flags)
                and type(about.get("input_form")) is str
                and type(about.get("least_degree", 0)) is int
                and type(about.get("identity", "")) is str
            ):
                for some in ports:
                    Ports(some or ())
                return about
        raise self._unreadable(Malformed("a description of no subsystem"))

    def start(self, t0: float) -> Any:
        with self._lock:
            if self._channel is None:  # a new run after a failure gets a new connection
                self._begin_anew()
                self._channel = self._connected()
        return super().start(t0)

    def _holder(self) -> int:
        return self._count

    def _call_far(self, request: m.Parts) -> memoryview:
        return self._exchange(request, self._timeout)

    def _exchange(self, request: m.Parts, timeout: float | None) -> memoryview:
        self._refuse_closed()
        assert self._channel is not None
        try:
            self._channel.send(request)
            return self._channel.receive(timeout)
        except TimedOut:
            self.close()
            raise SubsystemError(
                f"the server at {self._where} gave no answer within {timeout:g} s; raise timeout if such a call "
                "may take that long"
            ) from None
        except Disconnected as gone:
            self.close()
            why = str(gone)
            raise SubsystemError(
                f"the server at {self._where} closed the connection: {why}"
                if why
                else f"the connection to the server at {self._where} broke: it was ended, or the network is gone"
            ) from None
        except BaseException:  # Ctrl-C: the answer to this request would be taken for that to the next
            self.close()
            raise

    def _refuse_closed(self) -> None:
        if self._channel is None:
            raise SubsystemError(f"the connection to {self._where} is closed; start a new run")

    def _unreadable(self, error: Malformed) -> SubsystemError:
        self.close()
        return SubsystemError(f"the server at {self._where} sent {error}; the connection was closed")

    def close(self) -> None:
        """End the connection; `start` makes a new one."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None


def _again(address: str, key: str | None, timeout: float | None, name: str) -> Remote:
    """A copy has a connection of its own."""
    return Remote(address, key=key, timeout=timeout, name=name)
