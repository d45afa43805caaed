"""The choices of a multibody subsystem, checked: form of the equations, integrator, coordinates."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from cosolve.basics.checks import is_positive, not_negative, positive
from cosolve.errors import SetupError

#: Form of the equations -> how far the state is projected after each step (0 no, 1 positions, 2 velocities too).
FORMS = {"index_1": 0, "baumgarte": 0, "ggl": 0, "projection": 2, "position_projection": 1}
INTEGRATORS = ("auto", "rk4", "dopri5", "radau")
COORDINATES = ("euler_parameters", "euler_angles")

#: Largest product of `alpha` and step that RK4 takes (its limit is 2.78), and default `beta`.
MAX_ALPHA_H, BETA = 2.5, 10.0


@dataclass(frozen=True)
class Options:
    """How a multibody model is integrated."""

    form: str
    integrator: str
    internal_step: float | None
    rtol: float
    atol: float
    alpha: float
    beta: float
    stages: int
    coordinates: str

    @property
    def level(self) -> int:
        """What the projection after each step covers."""
        return FORMS[self.form]

    @property
    def ggl(self) -> bool:
        """Whether the form is the stabilised index-2 one."""
        return self.form == "ggl"


def checked(
    form: str,
    integrator: str,
    internal_step: float | None,
    rtol: float,
    atol: float,
    alpha: float | None,
    beta: float | None,
    stages: int,
    coordinates: str,
) -> Options:
    """Options that fit together; Baumgarte's `alpha` is `beta` unless given (critical damping).

    >>> checked("projection", "auto", None, 1e-8, 1e-10, None, None, 3, "euler_parameters").integrator
    'dopri5'
    """
    for what, value, known in (
        ("form", form, tuple(FORMS)),
        ("integrator", integrator, INTEGRATORS),
        ("coordinates", coordinates, COORDINATES),
    ):
        if not isinstance(value, str) or value not in known:
            raise SetupError(f"MultibodySubsystem: unknown {what} {value!r}; choose one of {', '.join(known)}")
    if integrator == "auto":
        integrator = "radau" if form == "ggl" else "dopri5"
    if form == "ggl" and integrator != "radau":
        raise SetupError(
            f"MultibodySubsystem: the form 'ggl' is of index 2 and needs integrator='radau', not {integrator!r}"
        )
    if integrator == "dopri5":
        if internal_step is not None:
            raise SetupError(
                "MultibodySubsystem: internal_step belongs to 'rk4' and 'radau'; 'dopri5' chooses its own (rtol, atol)"
            )
    elif internal_step is None or not is_positive(internal_step):
        raise SetupError(
            f"MultibodySubsystem: integrator '{integrator}' takes fixed steps and needs internal_step > 0; "
            f"got {internal_step!r}"
        )
    for what, tolerance in (("rtol", rtol), ("atol", atol)):
        positive("MultibodySubsystem", what, tolerance)
    if stages not in (2, 3):
        raise SetupError(f"MultibodySubsystem: stages of Radau IIA must be 2 or 3, not {stages!r}")
    if form != "baumgarte":
        if alpha is not None or beta is not None:
            raise SetupError(f"MultibodySubsystem: alpha and beta belong to form='baumgarte', not to {form!r}")
        return Options(form, integrator, internal_step, rtol, atol, 0.0, 0.0, stages, coordinates)
    for what, number in (("alpha", alpha), ("beta", beta)):
        if number is not None:
            not_negative("MultibodySubsystem", what, number)
    beta = (BETA if alpha is None else alpha) if beta is None else beta
    alpha = beta if alpha is None else alpha
    if integrator == "rk4" and internal_step is not None and alpha * internal_step > MAX_ALPHA_H:
        warnings.warn(
            f"Baumgarte's alpha = {alpha:g} with steps of {internal_step:g} gives alpha h = "
            f"{alpha * internal_step:.3g}; RK4 is unstable above 2.78: take alpha below "
            f"{MAX_ALPHA_H / internal_step:.3g} or smaller steps",
            stacklevel=3,
        )
    return Options(form, integrator, internal_step, rtol, atol, float(alpha), float(beta), stages, coordinates)
