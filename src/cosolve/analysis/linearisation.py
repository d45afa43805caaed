"""Is the linearised static model good enough? Variants B and C against A on the user's own model.

Schmoll (2015), 4.4.3, warns not to generalise from its examples and to verify semi-implicit runs against the fully
implicit one; `compare_linearisation` does that over a short window and says in plain words what it found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from cosolve.errors import SetupError
from cosolve.interface import System
from cosolve.method.dynamic_static import DynamicStatic
from cosolve.result import Result
from cosolve.run.simulate import simulate

_TIGHTER = 0.01  # tolerance of the reference run
_INVISIBLE, _TOLERABLE = 1.3, 3.0  # error relative to that of the fully implicit run

Verdict = Literal["good enough", "visible", "too coarse"]


@dataclass(frozen=True)
class Linearisation:
    """What `compare_linearisation` found; `print` it.

    Errors are the largest over all outputs, relative to each output's range, against a fully implicit run with a
    hundredth of the tolerance. `calls` are static calls of all static subsystems together.
    """

    variant: str
    verdict: Verdict
    error: float
    error_implicit: float
    worst: str
    steps: tuple[int, int]
    calls: tuple[int, int]

    @property
    def good(self) -> bool:
        """True when the linearisation adds nothing that matters."""
        return self.verdict == "good enough"

    def __str__(self) -> str:
        advice = {
            "good enough": "its error is that of the integrator",
            "visible": "it adds to the error of the integrator; tighten rtol, or use variant C or A",
            "too coarse": "its error dominates; use variant C or A, or a much smaller rtol",
        }[self.verdict]
        return (
            f"Variant {self.variant} is {self.verdict}: {advice}.\n"
            f"  error {self.error:.2e} against {self.error_implicit:.2e} of variant A (largest in '{self.worst}')\n"
            f"  steps {self.steps[0]} against {self.steps[1]}, static calls {self.calls[0]} against {self.calls[1]}"
        )


def compare_linearisation(system: System, method: DynamicStatic, *, t_end: float, **options: Any) -> Linearisation:
    """Run variant B or C and variant A over a short window and judge the linearisation; options go to `simulate`.

    >>> import cosolve as cs
    >>> mass = cs.Ode(lambda t, x, u: [x[1], u[0]], lambda t, x, u: x, x0=[1.0, 0.0],
    ...               inputs=["force"], outputs=["x", "v"])
    >>> spring = cs.Static(lambda t, u: -20 * u[0] ** 3 - 0.1 * u[1], inputs=["x", "v"], outputs=["force"])
    >>> system = cs.System({"mass": mass, "spring": spring})
    >>> for source, target in (("mass.x", "spring.x"), ("mass.v", "spring.v"), ("spring.force", "mass.force")):
    ...     system.connect(source, target)
    >>> compare_linearisation(system, DynamicStatic("C", rtol=1e-5), t_end=2.0).verdict
    'good enough'
    >>> compare_linearisation(system, DynamicStatic("B", rtol=1e-5), t_end=2.0).good
    False
    """
    if not isinstance(method, DynamicStatic):
        raise SetupError(f"compare_linearisation judges a DynamicStatic method, not {method!r}")
    if method.variant == "A":
        raise SetupError("compare_linearisation: variant A does not linearise; give variant B or C")
    implicit = replace(method, variant="A")
    finer: dict[str, Any] = {"rtol": method.rtol * _TIGHTER}
    if method.step is not None:
        finer["step"] = method.step / 4
    elif method.atol is not None:
        tighter = np.asarray(method.atol) * _TIGHTER
        finer["atol"] = tuple(tighter.tolist()) if tighter.ndim else float(tighter)
    exact = simulate(system, t_end=t_end, method=replace(implicit, **finer), **options)
    runs = [simulate(system, t_end=t_end, method=m, **options) for m in (method, implicit)]
    (error, worst), (error_implicit, _) = (_distance(exact, run) for run in runs)
    floor = max(error_implicit, 1e-14)
    verdict: Verdict = "good enough" if error <= _INVISIBLE * floor else "too coarse"
    if _INVISIBLE * floor < error <= _TOLERABLE * floor:
        verdict = "visible"
    dynamic = {name for name, s in system.subsystems.items() if hasattr(s, "equations")}
    calls = [sum(n for name, n in run.stats.calls.items() if name not in dynamic) for run in runs]
    return Linearisation(
        method.variant,
        verdict,
        error,
        error_implicit,
        worst,
        (runs[0].stats.steps, runs[1].stats.steps),
        (calls[0], calls[1]),
    )


def _distance(exact: Result, result: Result) -> tuple[float, str]:
    """The largest root mean square error over all outputs in units of the output's range, and the output's name."""
    from scipy.interpolate import CubicSpline

    found = {}
    for name, channel in result.channels.items():
        if channel.column != "y":
            continue
        reference = CubicSpline(exact.t, exact[name])(result.t)
        spread = float(np.ptp(exact[name]))
        found[name] = float(np.sqrt(np.mean((result[name] - reference) ** 2))) / (spread or 1.0)
    worst = max(found, key=lambda name: found[name])
    return found[worst], worst
