"""A coupled system without its coupling: all equations in one ODE, solved to near rounding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from scipy.integrate import solve_ivp

import cosolve as cs

Values = Mapping[str, np.ndarray]


class Monolithic:
    """The undivided system from 0 to `t_end`; `whole(times)` gives each output at these times, one row each.

    Static subsystems and those that tell their equations can be undivided. `kinks` are functions of time and outputs
    whose zeros the solver must not step over, `jumps` times at which something jumps: a new piece begins there, since
    neither a step nor an interpolation across them could be trusted to twelve digits.
    """

    def __init__(
        self,
        system: cs.System,
        t_end: float,
        kinks: Sequence[Callable[[float, Values], float]] = (),
        jumps: Sequence[float] = (),
        *,
        rtol: float = 1e-12,
    ) -> None:
        self._plan = system.plan()
        self._slopes, self._outputs, starts = [], [], []
        for part in self._plan.subsystems:
            if "equations" in cs.capabilities(part):
                slope, output, mass = part.equations()
                assert mass is None, "only plain differential equations are put together here"
                starts.append(np.asarray(part.x0, dtype=float))
                self._slopes.append(slope)
                self._outputs.append(output)
            else:
                starts.append(np.zeros(0))
                self._slopes.append(None)
                self._outputs.append(_of_static(part))
        ends = np.cumsum([0, *(len(x) for x in starts)])
        self._parts = [slice(a, b) for a, b in pairwise(ends)]
        self._pieces, self._begins = [], []
        x = np.concatenate(starts)
        watched = [_Zero(self, kink, x) for kink in kinks]
        for begin, end in zip([0.0, *jumps], [*jumps, t_end], strict=True):
            x = self._solve(begin, end, x, watched, rtol)

    def __call__(self, times: np.ndarray) -> Values:
        times = np.atleast_1d(times)
        which = np.clip(np.searchsorted(self._begins, times, side="right") - 1, 0, None)
        rows = np.array([self.outputs(t, self._pieces[k](t)) for k, t in zip(which, times, strict=True)])
        return {
            f"{name}.{port.name}": rows[:, part][:, ports.slice(port.name)]
            for name, ports, part in zip(self._plan.names, self._plan.output_ports, self._plan.y_slices, strict=True)
            for port in ports
        }

    def outputs(self, t: float, x: np.ndarray) -> np.ndarray:
        """All outputs for the states of all subsystems."""
        return self._exchanged(t, x)[0]

    def named(self, t: float, x: np.ndarray) -> Values:
        """The same by name, for kinks."""
        y, plan = self.outputs(t, x), self._plan
        return {
            f"{name}.{port.name}": y[part][ports.slice(port.name)]
            for name, ports, part in zip(plan.names, plan.output_ports, plan.y_slices, strict=True)
            for port in ports
        }

    def _exchanged(self, t: float, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Outputs and coupling variables, exchanged until outputs that follow inputs at once have settled."""
        plan = self._plan
        y, z = np.zeros(plan.n_y), plan.z_initial.copy()
        for _ in range(plan.n_subsystems + 2):
            z, before = plan.evaluate(y, z), y.copy()
            for i, output in enumerate(self._outputs):
                value = output(t, x[self._parts[i]].copy(), plan.inputs(z, i))
                y[plan.y_slices[i]] = plan.output_ports[i].pack(value)
            if np.array_equal(y, before):
                return y, z
        raise AssertionError("the outputs form an algebraic loop")

    def _slope(self, t: float, x: np.ndarray) -> np.ndarray:
        z, found = self._exchanged(t, x)[1], np.zeros_like(x)
        for i, slope in enumerate(self._slopes):
            if slope is not None:
                found[self._parts[i]] = slope(t, x[self._parts[i]].copy(), self._plan.inputs(z, i))
        return found

    def _solve(self, t: float, end: float, x: np.ndarray, watched: list[_Zero], rtol: float) -> np.ndarray:
        while t < end:
            piece = solve_ivp(
                self._slope,
                (t, end),
                x,
                "DOP853",
                rtol=rtol,
                atol=0.1 * rtol,
                dense_output=True,
                events=watched or None,
            )
            assert piece.success, piece.message
            self._begins.append(t)
            self._pieces.append(piece.sol)
            t, x = float(piece.t[-1]), piece.y[:, -1]
            for one, found in zip(watched, piece.t_events or (), strict=False):
                if len(found):
                    one.direction *= -1
        return x


class _Zero:
    """A kink as an event of the solver: its zeros are passed up and down in turn."""

    terminal = True

    def __init__(self, whole: Monolithic, kink: Callable[[float, Values], float], x0: np.ndarray) -> None:
        self._value = lambda t, x: float(kink(t, whole.named(t, x)))
        self.direction = -np.sign(self._value(0.0, x0))

    def __call__(self, t: float, x: np.ndarray) -> float:
        return self._value(t, x)


def _of_static(part: cs.Subsystem) -> Callable[[float, np.ndarray, np.ndarray], object]:
    return lambda t, x, u: part.output(t, u)
