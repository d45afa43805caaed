"""From models and joints to a `System`: one call that builds subsystems with the right ports and joins them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import choice
from cosolve.basics.wording import did_you_mean
from cosolve.errors import SetupError
from cosolve.interface.system import System
from cosolve.multibody.coupling.approximate_jacobian import with_approximate_jacobian
from cosolve.multibody.coupling.ends import COPIES, Fitted, fit
from cosolve.multibody.coupling.host import JointHost, host_of
from cosolve.multibody.coupling.joint import Joint
from cosolve.multibody.coupling.laws import (
    WITH_ACCELERATIONS,
    WITH_RATES,
    force_law,
    force_law_jacobian,
    rigid_jacobian,
    rigid_levels,
    torque_vector_law,
)
from cosolve.multibody.coupling.start import Start
from cosolve.multibody.equations.coupling_loads import LAW, VECTOR, Attachment
from cosolve.multibody.model.model import MultibodyModel
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.held import HeldInputs


def assemble(
    models: Mapping[str, Any],
    joints: Sequence[Joint],
    *,
    correction: bool = True,
    jacobian: Literal["auto", "approximate"] = "auto",
    t_start: float = 0.0,
    tolerance: float = 1e-6,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    **common: Any,
) -> System:
    """Join multibody models by joints between their markers.

    Parameters
    ----------
    models : mapping
        `MultibodyModel`, `ExudynModel`, or ready subsystems without joints (controllers), by name.
    joints : sequence of Joint
        The joints.
    correction : bool, default True
        Give subsystems the inputs that `StabilisedIndex2` needs. False saves perturbed runs.
    jacobian : {"auto", "approximate"}, default "auto"
        "approximate" takes the responses of free coupling bodies from formulas (App. B of [1]_) instead of perturbed
        runs; less stable for strongly damped subsystems.
    t_start : float, default 0.0
        Time in seconds at which initial values are checked.
    tolerance : float, default 1e-6
        Largest violation of rigid joints at the start.
    options : mapping of str to mapping or None, default None
        Options of `MultibodySubsystem` by subsystem.
    **common : object
        Options of `MultibodySubsystem` for all of them.

    Returns
    -------
    System
        The coupled system. Rigid joints are constraints with the multipliers `<joint>_force` and `<joint>_torque`;
        `SemiImplicit(constraints=...)` chooses how they are found.

    Raises
    ------
    SetupError
        If initial values violate a joint, or joints over-constrain the mechanism.

    References
    ----------
    .. [1] D. Lu, Semi-implizite Co-Simulationsverfahren, dissertation, Technical University of Darmstadt, 2015.

    Examples
    --------
    >>> import cosolve as cs
    >>> def rod(x):
    ...     model = cs.multibody.MultibodyModel()
    ...     model.body("rod", mass=1.0, inertia=[0.01, 0.1, 0.1], position=[x, 0, 0])
    ...     model.marker("start", "rod", [-0.5, 0, 0])
    ...     model.marker("end", "rod", [0.5, 0, 0])
    ...     return model
    >>> first = rod(0.5)
    >>> first.joint("hook", "spherical", "start", "ground")
    >>> hinge = cs.multibody.Joint("revolute", "upper.end", "lower.start", axis=[0, 1, 0], name="hinge")
    >>> system = cs.multibody.assemble({"upper": first, "lower": rod(1.5)}, [hinge])
    >>> method = cs.SemiImplicit(degree=0, constraints=cs.StabilisedIndex2())
    >>> run = cs.simulate(system, t_end=0.05, step=0.01, method=method)
    >>> run["hinge_force"].shape                    # force on `upper` in the inertial frame, at all macro points
    (6, 3)
    >>> bool(abs(cs.multibody.constraint_residuals(system, run)["hinge"][:2]).max() < 1e-6)
    True
    """
    choice("assemble", "jacobian", jacobian, ("auto", "approximate"))
    joints = _checked_joints(models, joints)
    hosts = {name: host_of(name, model) for name, model in models.items() if not isinstance(model, Subsystem)}
    fitted = []
    for joint in joints:
        at_i, at_j = (_attach(models, hosts, address, joint) for address in (joint.first, joint.second))
        fitted.append(fit(joint, at_i, at_j, correction=correction))
    subsystems: dict[str, Subsystem] = {}
    for name, model in models.items():
        if isinstance(model, Subsystem):
            subsystems[name] = model
            continue
        ends = [e for f in fitted for owner, e in zip(f.joint.subsystems, f.ends, strict=True) if owner == name]
        given = dict(common) if isinstance(model, MultibodyModel) else {}
        subsystem = hosts[name].as_subsystem(ends, **{**given, **(options or {}).get(name, {})})
        if jacobian == "approximate" and ends:
            subsystem = with_approximate_jacobian(name, hosts[name], subsystem, ends)
        subsystems[name] = _holding(name, subsystem, fitted)
    start = Start(subsystems, fitted, t_start)
    start.refuse_inconsistent(tolerance)
    start.refuse_redundant()
    system = System(subsystems)
    for one in fitted:
        _join(system, one)
    return system


def _checked_joints(models: Mapping[str, Any], joints: Sequence[Joint]) -> list[Joint]:
    if not isinstance(models, Mapping):
        raise SetupError(f"assemble: models must be a dict of names and models, not a {type(models).__name__}")
    names: set[str] = set()
    for joint in joints:
        if not isinstance(joint, Joint):
            raise SetupError(f"assemble: joints must be Joint objects, not {joint!r}")
        if joint.name in names:
            raise SetupError(f"assemble: two joints are called '{joint.name}'; give one another name=...")
        names.add(joint.name)
    return list(joints)


def _attach(models: Mapping[str, Any], hosts: Mapping[str, JointHost], address: str, joint: Joint) -> Attachment:
    name, marker = address.split(".")
    if name not in models:
        raise SetupError(f"joint '{joint.name}': no model '{name}' for '{address}'; {did_you_mean(name, models)}")
    if name not in hosts:
        raise SetupError(
            f"joint '{joint.name}': '{name}' is a finished {type(models[name]).__name__}, which has no markers; give "
            "its MultibodyModel instead"
        )
    known = list(hosts[name].attachments())
    if isinstance(models[name], MultibodyModel) and marker in models[name].markers and marker not in known:
        raise SetupError(
            f"joint '{joint.name}': '{address}' belongs to the ground, which is the same in every model; put this "
            "joint into the model at its other end"
        )
    if marker not in known:
        raise SetupError(f"joint '{joint.name}': '{name}' has no marker '{marker}'; {did_you_mean(marker, known)}")
    return hosts[name].attach(marker)


def _holding(name: str, subsystem: Subsystem, fitted: Sequence[Fitted]) -> Subsystem:
    """The subsystem with held copies where a joint is simplified (App. D)."""
    held: dict[str, Vector] = {}
    for one in fitted:
        if one.joint.formulation != "simplified" or name not in one.joint.subsystems:
            continue
        side = one.joint.subsystems.index(name)
        for suffix, size, start in COPIES:
            if suffix in dict(one.ends[side].inputs):
                held[f"{one.joint.name}_{suffix}"] = one.start[1 - side][start : start + size]
    return HeldInputs(subsystem, held) if held else subsystem


def _join(system: System, fitted: Fitted) -> None:
    """Coupling variables and conditions of one joint."""
    joint = fitted.joint
    first, second = joint.subsystems
    for here, there, end in ((first, second, fitted.ends[0]), (second, first, fitted.ends[1])):
        for suffix, _, _ in COPIES:
            if suffix in dict(end.inputs):
                system.connect(f"{there}.{joint.name}_{suffix[6:]}", f"{here}.{joint.name}_{suffix}")
    forced = [name for name, end in zip((first, second), fitted.ends, strict=True) if end.kind != LAW]
    shapes = [(s, n) for s, n in (("force", fitted.n_force), ("torque", fitted.n_torque)) if n]

    def drives(suffix: str) -> dict[str, float]:
        return {f"{name}.{joint.name}_{suffix}": 1.0 for name in forced}

    if not joint.flexible:
        outputs = [f"{name}.{joint.name}_{s}" for name in (first, second) for s in WITH_ACCELERATIONS]
        corrected = f"mu_{shapes[0][0]}" in dict(fitted.ends[0].inputs)
        system.constraint(
            {f"{joint.name}_{s}": drives(s) for s, _ in shapes},
            rigid_levels(fitted),
            of=outputs,
            correction={f"{joint.name}_mu_{s}": drives(f"mu_{s}") for s, _ in shapes} if corrected else None,
            jacobian=rigid_jacobian(fitted),
        )
        return
    if not forced:
        return
    outputs = [f"{name}.{joint.name}_{s}" for name in (first, second) for s in WITH_RATES]
    at = 0
    for suffix, size in shapes:
        rows = slice(at, at + size)
        at += size
        if suffix == "torque" and fitted.ends[0].kind == VECTOR:
            system.law(drives(suffix), torque_vector_law(fitted), of=outputs, name=f"{joint.name}_torque")
            continue
        system.law(
            drives(suffix),
            force_law(fitted, rows),
            of=outputs,
            jacobian=force_law_jacobian(fitted, rows),
            name=f"{joint.name}_{suffix}",
        )
