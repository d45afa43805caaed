"""Is the linearised static model good enough? Variants B and C against A on the user's own model.

Schmoll (2015), 4.4.3, warns not to generalise from its examples and to verify semi-implicit runs against the fully
implicit one; `compare_linearisation` does that over a short window and says in plain words what it found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cosolve.errors import SetupError
from cosolve.interface import System
from cosolve.method import Method
from cosolve.result import Result
from cosolve.run.simulate import simulate

_INVISIBLE, _TOLERABLE = 1.3, 3.0  # error relative to that of the fully implicit run

Verdict = Literal["good enough", "visible", "too coarse"]


@dataclass(frozen=True)
class Linearisation:
    """What `compare_linearisation` found; `print` explains it.

    Parameters
    ----------
    method : str
        The method that was judged, as in "DynamicStatic(C)".
    verdict : {"good enough", "visible", "too coarse"}
        The answer.
    error : float
        Largest error of all outputs, relative to the range of each, against a run of variant A with a hundredth of the
        tolerance.
    error_implicit : float
        The same of variant A with the given tolerance.
    worst : str
        Output with the largest error.
    steps : tuple of (int, int)
        Steps of the variant and of variant A.
    calls : tuple of (int, int)
        Calls of all static subsystems together, likewise.
    """

    method: str
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
            f"{self.method} is {self.verdict}: {advice}.\n"
            f"  error {self.error:.2e} against {self.error_implicit:.2e} of variant A (largest in '{self.worst}')\n"
            f"  steps {self.steps[0]} against {self.steps[1]}, static calls {self.calls[0]} against {self.calls[1]}"
        )


def compare_linearisation(system: System, method: Method, *, t_end: float, **options: Any) -> Linearisation:
    """Judge the linearisation of a dynamic-static method by comparison with variant A.

    Parameters
    ----------
    system : System
        The coupled system.
    method : DynamicStatic
        A method of variant B or C.
    t_end : float
        End of the runs in seconds.
    **options : object
        Further arguments of `simulate`.

    Returns
    -------
    Linearisation
        Verdict ("good enough", "visible" or "too coarse"), errors, steps and calls of both variants.

    Examples
    --------
    >>> import cosolve as cs
    >>> mass = cs.Ode(lambda t, x, u: [x[1], u[0]], lambda t, x, u: x, x0=[1.0, 0.0],
    ...               inputs=["force"], outputs=["x", "v"])
    >>> spring = cs.Static(lambda t, u: -20 * u[0] ** 3 - 0.1 * u[1], inputs=["x", "v"], outputs=["force"])
    >>> system = cs.System({"mass": mass, "spring": spring})
    >>> for source, target in (("mass.x", "spring.x"), ("mass.v", "spring.v"), ("spring.force", "mass.force")):
    ...     system.connect(source, target)
    >>> compare_linearisation(system, cs.DynamicStatic("C", rtol=1e-5), t_end=2.0).verdict
    'good enough'
    >>> compare_linearisation(system, cs.DynamicStatic("B", rtol=1e-5), t_end=2.0).good
    False
    """
    references = method.references() if isinstance(method, Method) else None
    if references is None:
        raise SetupError(f"compare_linearisation judges DynamicStatic of variant B or C; {method!r} does not linearise")
    implicit, finer = references
    exact = simulate(system, t_end=t_end, method=finer, **options)
    runs = [simulate(system, t_end=t_end, method=m, **options) for m in (method, implicit)]
    (error, worst), (error_implicit, _) = (_distance(exact, run) for run in runs)
    floor = max(error_implicit, 1e-14)
    verdict: Verdict = "good enough" if error <= _INVISIBLE * floor else "too coarse"
    if _INVISIBLE * floor < error <= _TOLERABLE * floor:
        verdict = "visible"
    dynamic = {name for name, s in system.subsystems.items() if hasattr(s, "equations")}
    calls = [sum(n for name, n in run.stats.calls.items() if name not in dynamic) for run in runs]
    return Linearisation(
        method.label,
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
