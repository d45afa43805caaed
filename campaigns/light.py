"""A subsystem in a module that imports little, for processes that are started by the thousand."""

import cosolve as cs


class Held(cs.Subsystem):
    """Holds what it was given last."""

    inputs, outputs = ("u",), ("y",)

    def start(self, t0: float) -> list[float]:
        self.y = 1.0
        return [self.y]

    def advance(self, t0: float, t1: float, u: cs.InputSignal) -> list[float]:
        self.y = float(u(t1)[0])
        return [self.y]
