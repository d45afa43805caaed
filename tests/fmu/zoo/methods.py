"""The method families that run over the zoo, and the well-behaved twin of each animal."""

from __future__ import annotations

from typing import Any

import cosolve as cs

#: method and step by a name; `Adaptive` stands for error-controlled steps
METHODS: dict[str, tuple[Any, Any]] = {
    "Jacobi(0)": (cs.Jacobi(0), 0.05),
    "Jacobi(1)": (cs.Jacobi(1), 0.05),
    "Jacobi(2)": (cs.Jacobi(2), 0.05),
    "GaussSeidel(0)": (cs.GaussSeidel(0), 0.05),
    "GaussSeidel(1)": (cs.GaussSeidel(1), 0.05),
    "GaussSeidel(1), b first": (cs.GaussSeidel(1, order=["b", "a"]), 0.05),
    "SemiImplicit(1)": (cs.SemiImplicit(1), 0.05),
    "SemiImplicit(1), differences": (cs.SemiImplicit(1, jacobian="difference"), 0.05),
    "Implicit(1)": (cs.Implicit(1), 0.05),
    "Implicit(1), Broyden": (cs.Implicit(1, corrector=cs.Broyden()), 0.05),
    "Implicit(0), IQN-ILS": (cs.Implicit(0, corrector=cs.IqnIls()), 0.05),
    "Implicit(1), Gauss-Seidel sweep": (cs.Implicit(1, corrector=cs.Aitken(), sweep="gauss-seidel"), 0.05),
    "Jacobi(1), adaptive": (cs.Jacobi(1), cs.Adaptive(rtol=1e-3, first_step=0.02)),
    "SemiImplicit(1), adaptive": (cs.SemiImplicit(1), cs.Adaptive(rtol=1e-3, first_step=0.02)),
    "LeaderFollower(1)": (cs.LeaderFollower(1, leader="b"), 0.05),
}
ROLLBACK = tuple(name for name in METHODS if "mplicit" in name)
#: those that the compiled engine has; the rest is for the readable one
COMPILED = (
    *("Jacobi(0)", "Jacobi(1)", "Jacobi(2)", "GaussSeidel(0)", "GaussSeidel(1)", "GaussSeidel(1), b first"),
    *("SemiImplicit(1)", "SemiImplicit(1), differences", "Implicit(1)", "Jacobi(1), adaptive"),
)
#: animal -> the well-behaved FMU with the same claims; its numbers are the right ones
TWINS = {
    **dict.fromkeys(("goes_back", "reset_errors", "serial_lies"), "plain"),
    **dict.fromkeys(("forgets_early", "reset_freezes", "reset_garbage", "reset_crashes", "outputs_late"), "black"),
    **dict.fromkeys(("warns", "chatty", "formats", "leaks", "once", "shared", "aliases", "alias_names"), "black"),
    **dict.fromkeys(("resources", "working_folder", "names"), "black"),
    "outputs_late_poor": "poor",
}
#: the rate that an animal finds in its file
FOUND_RATE = {"resources": 5.0, "working_folder": 4.0}


def leads(rate: float = 2.0, gain: float = 0.5) -> cs.Ode:
    """The partner `b` as a subsystem with internal steps, which can lead."""
    return cs.Ode(
        lambda t, x, u: rate * (gain * u - x),
        lambda t, x, u: 2.0 * x,
        x0=[1.0],
        inputs=["u"],
        outputs=["y"],
        integrator="ode4",
        internal_step=0.01,
    )
