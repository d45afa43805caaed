"""mosaik: both masses as Python simulators, in its own process or in two further ones over sockets."""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any, ClassVar

if __name__ == "__main__":
    from serve import serve
import mosaik_api_v3
from problems.oscillator import Mass

META = {
    "api_version": "3.0",
    "type": "time-based",
    "models": {"Mass": {"public": True, "params": ["owns_spring", "h"], "attrs": ["x", "v", "F", "x1", "v1", "f"]}},
}


class Simulator(mosaik_api_v3.Simulator):
    """One mass; a step of mosaik's clock is a macro step."""

    def __init__(self) -> None:
        super().__init__(META)
        self.mass: Mass | None = None
        self.force = 0.0

    def create(self, num: int, model: str, owns_spring: bool, h: float) -> Any:
        self.mass = Mass(owns_spring, h)
        return [{"eid": "mass", "type": model}]

    def step(self, time: int, inputs: Any, max_advance: int) -> int:
        given = {name: sum(values.values()) for name, values in inputs["mass"].items()}
        assert self.mass is not None
        if self.mass.owns_spring:
            self.mass.pulled(given["x1"], given["v1"])
            self.force = self.mass.spring(given["x1"], given["v1"])
        else:
            self.mass.step(given["f"])
        return time + 1

    def get_data(self, outputs: Any) -> Any:
        assert self.mass is not None
        values = {"x": self.mass.x, "v": self.mass.v, "F": self.force}
        return {"mass": {name: values[name] for name in outputs["mass"]}}


class Collector(mosaik_api_v3.Simulator):
    """Keeps the last values."""

    last: ClassVar[dict[str, float]] = {}

    def __init__(self) -> None:
        super().__init__({**META, "models": {"End": {"public": True, "params": [], "attrs": ["x1", "v1", "x2", "v2"]}}})

    def create(self, num: int, model: str) -> Any:
        return [{"eid": "end", "type": model}]

    def step(self, time: int, inputs: Any, max_advance: int) -> int:
        Collector.last = {name: next(iter(values.values())) for name, values in inputs.get("end", {}).items()}
        return time + 1

    def get_data(self, outputs: Any) -> Any:
        return {}


def _run(steps: int, H: float, apart: bool) -> dict[str, Any]:
    import mosaik
    from loguru import logger

    logger.remove()
    how = {"cmd": f"{sys.executable} {__file__} %(addr)s"} if apart else {"python": "__main__:Simulator"}
    world = mosaik.World({"Mass": how, "End": {"python": "__main__:Collector"}})
    one = world.start("Mass").Mass(owns_spring=False, h=H)
    two = world.start("Mass").Mass(owns_spring=True, h=H)
    first = Mass(True, H).spring(0.0, 0.0)
    world.connect(one, two, ("x", "x1"), ("v", "v1"), time_shifted=True, initial_data={"x": 0.0, "v": 0.0})
    world.connect(two, one, ("F", "f"), time_shifted=True, initial_data={"F": first})
    end = world.start("End").End()
    world.connect(one, end, ("x", "x1"), ("v", "v1"))
    world.connect(two, end, ("x", "x2"), ("v", "v2"))
    began = perf_counter()
    world.run(until=steps, print_progress=False)
    seconds = (perf_counter() - began) / steps
    return {"seconds": seconds, "answer": [Collector.last[name] for name in ("x1", "v1", "x2", "v2")]}


if __name__ == "__main__":
    if len(sys.argv) > 1:  # started by mosaik as a simulator
        mosaik_api_v3.start_simulation(Simulator())
    else:
        serve(
            {
                "jacobi": lambda steps, H, **_: _run(steps, H, False),
                "apart": lambda steps, H, **_: _run(steps, H, True),
            },
            "mosaik",
        )
