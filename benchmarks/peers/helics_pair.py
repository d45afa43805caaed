"""HELICS: two federates in two processes; the core type is a parameter ("ipc", "zmq", "tcp_ss" ...).

A federate that is granted the end of a step sees what was published at its beginning: the Jacobi scheme.
"""

from __future__ import annotations

import os
import subprocess
import sys
from time import perf_counter
from typing import Any

import helics as h

if __name__ == "__main__":
    from serve import serve
from problems.oscillator import Mass


def _federate(name: str, core: str, broker: str, H: float, own: tuple[str, ...], other: tuple[str, ...]) -> Any:
    info = h.helicsCreateFederateInfo()
    h.helicsFederateInfoSetCoreTypeFromString(info, core)
    where = f"--broker_address={broker}" if core == "ipc" else f"--broker={broker}"  # ipc finds its queue by address
    h.helicsFederateInfoSetCoreInitString(info, f"--federates=1 {where} --timeout=10s")
    h.helicsFederateInfoSetTimeProperty(info, h.HELICS_PROPERTY_TIME_PERIOD, H)
    h.helicsFederateInfoSetFlagOption(info, h.HELICS_FLAG_UNINTERRUPTIBLE, True)
    federate = h.helicsCreateValueFederate(name, info)
    out = [h.helicsFederateRegisterGlobalPublication(federate, p, h.HELICS_DATA_TYPE_DOUBLE, "") for p in own]
    into = [h.helicsFederateRegisterSubscription(federate, p, "") for p in other]
    return federate, out, into


def _advance(side: str, core: str, broker: str, steps: int, H: float) -> tuple[float, Mass]:
    owns_spring = side == "two"
    mass = Mass(owns_spring, H)
    names = (("F",), ("x1", "v1")) if owns_spring else (("x1", "v1"), ("F",))
    federate, out, into = _federate(side, core, broker, H, *names)
    h.helicsFederateEnterExecutingMode(federate)
    values = (mass.spring(0.0, 0.0),) if owns_spring else (mass.x, mass.v)
    began = perf_counter()
    for k in range(steps):
        for port, value in zip(out, values, strict=True):
            h.helicsPublicationPublishDouble(port, value)
        h.helicsFederateRequestTime(federate, (k + 1) * H)
        given = [h.helicsInputGetDouble(port) for port in into]
        if owns_spring:
            mass.pulled(*given)
            values = (mass.spring(*given),)
        else:
            mass.step(*given)
            values = mass.x, mass.v
    seconds = perf_counter() - began
    h.helicsFederateDisconnect(federate)
    h.helicsFederateFree(federate)
    return seconds / steps, mass


_RUNS = 0


def apart(steps: int, H: float, core: str) -> dict[str, Any]:
    """Federate one and the broker here, federate two in a process of its own."""
    global _RUNS
    _RUNS += 1
    name = f"bench{os.getpid()}x{_RUNS}"
    where = f"--local_interface={name}" if core == "ipc" else ""
    broker = h.helicsCreateBroker(core, name, f"--federates=2 {where}")
    if not h.helicsBrokerIsConnected(broker):
        raise RuntimeError(f"the {core} broker does not connect")
    order = [sys.executable, __file__, core, name, str(steps), repr(H)]
    other = subprocess.Popen(order, stdout=subprocess.PIPE, text=True)
    try:
        seconds, mass = _advance("one", core, name, steps, H)
        x2, v2 = (float(v) for v in other.communicate(timeout=60)[0].split())
    finally:
        if other.poll() is None:
            other.kill()
    h.helicsBrokerWaitForDisconnect(broker, 5000)
    h.helicsBrokerFree(broker)
    return {"seconds": seconds, "answer": [mass.x, mass.v, x2, v2]}


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _, core, broker, steps, H = sys.argv
        _, mass = _advance("two", core, broker, int(steps), float(H))
        print(repr(mass.x), repr(mass.v))
    else:
        serve({"apart": apart}, "helics")
