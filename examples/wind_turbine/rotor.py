"""The structural side of the rotor: bending blades on a turning hub, as a solver's own time step.

Deflections `q = (q_w, q_v)` of a blade out of and in the plane of rotation, speed of the hub `Omega`:

    M q'' + C q' + (K(psi) + Omega^2 G) q + (0, m_c) Omega' = loads,
    (Omega (J - sum q^T G q) + sum m_c^T q_v')' = torque of the loads - generator,

with `G = diag(G, G - M)` and flap and edge axes turned by the pitch `psi`. Loads come in as forces at the nodes of a
blade, so that their work is that of the loads they were mapped from.

Two rules. `"bdf2"` has backward differences for everything (of order one in the first step) and gives the values at the
end of the step. `"energy"` is a discrete gradient: with `q'` as the mean of both ends, the forces at the mean
deflection, and `Omega_0 Omega_1` for the square of the speed, the energy changes by exactly the work of what is
exchanged, loads and torques times the *mean* rates and speed of the step, which it gives to the others.

Blades may share a subsystem with the hub (`rotor`), or have one each (`one_blade`) and the hub its own (`hub`): then
the hub has the inertia of the stiff rotor and a blade gives the torque of its loads less that of its elastic motion.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Literal

import numpy as np
from numba import njit

import cosolve as cs
from examples.wind_turbine.blade import Blade, blade

_jitted = njit(cache="." in __name__)

Rule = Literal["bdf2", "energy"]

#: Places in the state: length of the last step, pitch, speed, momentum, both one step earlier; then every blade has its
#: deflections, rates, and both one step earlier.
BEFORE, PITCH, SPEED, MOMENTUM, SPEED_OLD, MOMENTUM_OLD, HEAD = 0, 1, 2, 3, 4, 5, 6

#: Status of a step: the speed did not converge, or (from DEFLECTED on) the blade that went too far.
NO_SPEED, DEFLECTED = 1, 10

_NOMINAL = {"load": 100.0, "torque": 1000.0}


@_jitted
def _weights(energy, H, before):
    """Lead, and weights of the values at the beginning of the step and one before, of a rate of change times `H`."""
    if energy or before <= 0.0:
        return 1.0, 1.0, 0.0
    ratio = H / before
    return (1 + 2 * ratio) / (1 + ratio), 1 + ratio, ratio * ratio / (1 + ratio)


@_jitted
def _axes(pitch, derivative):
    """Weights of the three parts of a turned matrix; or their derivatives by the pitch."""
    cos, sin = np.cos(pitch), np.sin(pitch)
    if derivative:
        return -2 * cos * sin, cos * cos - sin * sin, 2 * cos * sin
    return cos * cos, cos * sin, sin * sin


@_jitted
def _add_turned(A, parts, weights, factor):
    """Add `factor` times a turned matrix."""
    for i in range(len(A)):
        for j in range(len(A)):
            turned = weights[0] * parts[0, i, j] + weights[1] * parts[1, i, j] + weights[2] * parts[2, i, j]
            A[i, j] += factor * turned


@_jitted
def _times(A, x, y, factor):
    """Add `factor A x` to `y`."""
    for i in range(A.shape[0]):
        total = 0.0
        for j in range(A.shape[1]):
            total += A[i, j] * x[j]
        y[i] += factor * total


@_jitted
def _dot(x, y):
    total = 0.0
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


@_jitted
def _solve(A, B):
    """`A X = B` by elimination with pivots, the solution in the place of `B`."""
    n, m = B.shape
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[p, k]):
                p = i
        for j in range(n):
            A[k, j], A[p, j] = A[p, j], A[k, j]
        for j in range(m):
            B[k, j], B[p, j] = B[p, j], B[k, j]
        for i in range(k + 1, n):
            factor = A[i, k] / A[k, k]
            if factor != 0.0:
                for j in range(k + 1, n):
                    A[i, j] -= factor * A[k, j]
                for j in range(m):
                    B[i, j] -= factor * B[k, j]
    for k in range(n - 1, -1, -1):
        for j in range(m):
            total = B[k, j]
            for i in range(k + 1, n):
                total -= A[k, i] * B[i, j]
            B[k, j] = total / A[k, k]


@_jitted
def _stiffness(b, energy, old_pitch, pitch, K, C):
    """Stiffness and damping that act in the step: at its end, or the mean of both ends."""
    K[:], C[:] = 0.0, 0.0
    share = 0.5 if energy else 1.0
    _add_turned(K, b.stiffness, _axes(pitch, False), share)
    _add_turned(C, b.damping, _axes(pitch, False), share)
    if energy:
        _add_turned(K, b.stiffness, _axes(old_pitch, False), share)
        _add_turned(C, b.damping, _axes(old_pitch, False), share)


@_jitted
def _bend(b, energy, H, x, w, K, C, own, loads, pitch, speed, past, columns):
    """Deflections of a blade at the end of a step at whose end the hub has `speed`, and their derivatives.

    `own` is the state of the blade, `w` are the weights of the past. `columns` gets the deflections, their derivatives
    by the speed and, where it has room, by all loads and by the pitch; `past` what is known of the rates.
    """
    n = len(b.pull)
    a, w0, w1 = w
    rate = a / H
    inertial = 2 / H**2 if energy else rate * rate
    share = 0.5 if energy else 1.0
    square, by_square = (x[SPEED] * speed, x[SPEED]) if energy else (speed * speed, 2 * speed)
    acceleration = (a * speed - w0 * x[SPEED] + w1 * x[SPEED_OLD]) / H
    A = np.empty((n, n))
    right, carried, acting = np.zeros(n), np.empty(n), np.empty(n)
    for i in range(n):
        past[i] = (w0 * own[i] - w1 * own[2 * n + i]) / H
        if energy:
            carried[i] = 2 / H**2 * own[i] + 2 / H * own[n + i]
        else:
            carried[i] = rate * past[i] + (w0 * own[n + i] - w1 * own[3 * n + i]) / H
        for j in range(n):
            A[i, j] = inertial * b.mass[i, j] + rate * C[i, j] + share * (K[i, j] + square * b.tightening[i, j])
    for k in range(len(loads)):
        for i in range(n):
            right[i] += b.shapes[k, i] * loads[k]
    _times(b.mass, carried, right, 1.0)
    _times(C, past, right, 1.0)
    if energy:
        _times(K, own[:n], right, -0.5)
        _times(b.tightening, own[:n], right, -0.5 * square)
    for i in range(n):
        columns[i, 0] = right[i] - b.pull[i] * acceleration
    many = columns.shape[1]
    for k in range(2, many - 1):
        for i in range(n):
            columns[i, k] = b.shapes[k - 2, i]
    once = np.empty((n, 1))
    for i in range(n):
        once[i, 0] = columns[i, 0]
    _solve(A.copy(), once)
    q, v, push = once[:, 0].copy(), np.empty(n), np.zeros(n)
    for i in range(n):
        acting[i] = share * q[i] + (1 - share) * own[i]
        v[i] = rate * q[i] - past[i]
        push[i] = -b.pull[i] * rate
    _times(b.tightening, acting, push, -by_square)
    for i in range(n):
        columns[i, 1] = push[i]
    if many > 2:
        turning, turned = np.zeros((n, n)), np.zeros(n)
        _add_turned(turning, b.stiffness, _axes(pitch, True), share)
        _times(turning, acting, turned, -1.0)
        turning[:] = 0.0
        _add_turned(turning, b.damping, _axes(pitch, True), share)
        _times(turning, v, turned, -1.0)
        for i in range(n):
            columns[i, many - 1] = turned[i]
    _solve(A, columns)
    for i in range(n):
        columns[i, 0] = q[i]


@_jitted
def _momentum(b, energy, H, a, own, past, columns, speed, by_q):
    """Momentum of the elastic motion at the end of the step, and by the speed; `by_q` gets it by the deflections."""
    n = len(b.pull)
    rate = a / H
    tight, total, slope = np.zeros(n), 0.0, 0.0
    _times(b.tightening, columns[:, 0], tight, 1.0)
    for i in range(n):
        v = rate * columns[i, 0] - past[i]
        if energy:
            v = 2 * v - own[n + i]
        total += b.pull[i] * v - speed * columns[i, 0] * tight[i]
        by_q[i] = (2 * rate if energy else rate) * b.pull[i] - 2 * speed * tight[i]
        slope += by_q[i] * columns[i, 1] - columns[i, 0] * tight[i]
    return total, slope


@_jitted
def _rotor_step(b, inertia, alike, sets, energy, H, x, u, new, y, D):
    """One step of the hub with `sets` blades, each standing for `alike` of them; and `dy/du` where `D` has room."""
    n, loads = len(b.pull), len(b.arm)
    w = _weights(energy, H, x[BEFORE])
    a, w0, w1 = w
    generator, pitch = u[loads * sets], u[loads * sets + 1]
    K, C = np.empty((n, n)), np.empty((n, n))
    _stiffness(b, energy, x[PITCH], pitch, K, C)
    torque = 0.0
    for s in range(sets):
        torque += alike * _dot(b.arm, u[loads * s : loads * (s + 1)])
    speed = x[SPEED] if x[BEFORE] == 0 else 2 * x[SPEED] - x[SPEED_OLD]
    columns = np.empty((sets, n, 2))
    past, by_q = np.empty((sets, n)), np.empty((sets, n))
    momentum, slope, last, good = 0.0, 0.0, np.inf, False
    # a quadratically convergent iteration for one number; it ends where rounding ends it
    for _ in range(30):
        momentum, slope = inertia * speed, inertia
        for s in range(sets):
            own = x[HEAD + 4 * n * s : HEAD + 4 * n * (s + 1)]
            mine = u[loads * s : loads * (s + 1)]
            _bend(b, energy, H, x, w, K, C, own, mine, pitch, speed, past[s], columns[s])
            added, steeper = _momentum(b, energy, H, a, own, past[s], columns[s], speed, by_q[s])
            momentum += alike * added
            slope += alike * steeper
        excess = (a * momentum - w0 * x[MOMENTUM] + w1 * x[MOMENTUM_OLD]) / H - torque + generator
        change = -excess * H / (a * slope)
        if not np.isfinite(change):
            return NO_SPEED
        if abs(change) <= 2e-16 * max(1.0, abs(speed)) or (abs(change) < 1e-11 and abs(change) >= 0.5 * last):
            good = True
            break
        last = abs(change)
        speed += change
    if not good:
        return NO_SPEED
    y[0] = 0.5 * (x[SPEED] + speed) if energy else speed
    new[BEFORE], new[PITCH], new[SPEED], new[MOMENTUM] = H, pitch, speed, momentum
    new[SPEED_OLD], new[MOMENTUM_OLD] = x[SPEED], x[MOMENTUM]
    for s in range(sets):
        at, to = HEAD + 4 * n * s, 1 + (loads + 2) * s
        _moved(b, energy, a / H, x[at : at + 4 * n], columns[s], past[s], new[at : at + 4 * n], y[to : to + loads + 2])
        if not max(abs(y[to + loads]), abs(y[to + loads + 1])) <= b.largest:
            return DEFLECTED + s
    if len(D):
        _rotor_partials(b, alike, sets, energy, H, x, u, w, K, C, speed, slope, columns, past, by_q, D)
    return 0


@_jitted
def _rotor_partials(b, alike, sets, energy, H, x, u, w, K, C, speed, slope, columns, past, by_q, D):
    """`dy/du` of a step that has been found."""
    n, loads = len(b.pull), len(b.arm)
    inputs, rate, share = loads * sets + 2, w[0] / H, 0.5 if energy else 1.0
    every, speeds = np.empty((sets, n, loads + 3)), np.zeros(inputs)
    for s in range(sets):
        own, mine = x[HEAD + 4 * n * s : HEAD + 4 * n * (s + 1)], u[loads * s : loads * (s + 1)]
        _bend(b, energy, H, x, w, K, C, own, mine, u[inputs - 1], speed, past[s], every[s])
        for k in range(loads):
            speeds[loads * s + k] = alike * (rate * _dot(by_q[s], every[s, :, 2 + k]) - b.arm[k])
        speeds[inputs - 1] += alike * rate * _dot(by_q[s], every[s, :, loads + 2])
    speeds[inputs - 2] = 1.0
    for k in range(inputs):
        speeds[k] *= -1 / (rate * slope)
        D[0, k] = share * speeds[k]
    moved = np.empty(n)
    for s in range(sets):
        to = 1 + (loads + 2) * s
        for k in range(inputs):
            mine = k - loads * s
            for i in range(n):
                moved[i] = columns[s, i, 1] * speeds[k]
                if 0 <= mine < loads:
                    moved[i] += every[s, i, 2 + mine]
                if k == inputs - 1:
                    moved[i] += every[s, i, loads + 2]
            _seen(b, moved, rate, D, to, k)


@_jitted
def _seen(b, moved, rate, D, to, k):
    """What is seen of a change of the deflections: rates at the nodes and the tip, into column `k` of `D`."""
    loads = len(b.arm)
    for j in range(loads):
        D[to + j, k] = rate * _dot(b.shapes[j], moved)
    for j in range(2):
        D[to + loads + j, k] = _dot(b.tip[j], moved)


@_jitted
def _moved(b, energy, rate, own, columns, past, new, y):
    """The state of a blade after the step, and what it shows of its motion."""
    n, loads = len(b.pull), len(b.arm)
    q, v = columns[:, 0], np.empty(n)
    for i in range(n):
        v[i] = rate * q[i] - past[i]
        new[i] = q[i]
        new[n + i] = 2 * v[i] - own[n + i] if energy else v[i]
        new[2 * n + i], new[3 * n + i] = own[i], own[n + i]
    for k in range(loads):
        y[k] = _dot(b.shapes[k], v)
    y[loads], y[loads + 1] = _dot(b.tip[0], q), _dot(b.tip[1], q)


def _too_far(blade: Blade, status: int, t: float, H: float) -> str:
    if status == NO_SPEED:
        return f"the speed of the hub was not found in the step to {t + H:.6g} s; take a smaller step"
    return (
        f"the tip of blade {status - DEFLECTED + 1} is deflected by more than {blade.largest:.3g} m at {t + H:.6g} s, "
        "where a beam of small deflections says nothing: the blade is too soft for its loads, or the coupling "
        "iteration diverges"
    )


def _refuse_rule(rule: Rule) -> None:
    if rule not in ("bdf2", "energy"):
        raise cs.errors.SetupError(f"the rule of a rotor is 'bdf2' or 'energy', not {rule!r}")


def _load_ports(k: str, nodes: int) -> list[cs.Port]:
    return [cs.Port(f"{way}_load{k}", nodes, "N", nominal=_NOMINAL["load"]) for way in ("flap", "edge")]


def _motion_ports(k: str, nodes: int) -> list[cs.Port]:
    return [*(cs.Port(f"{way}_rate{k}", nodes, "m/s") for way in ("flap", "edge")), cs.Port(f"tip{k}", 2, "m")]


def rotor(
    structure: Blade | None = None,
    *,
    blades: int = 2,
    alike: bool = True,
    hub_inertia: float = 0.0,
    speed: float = 0.0,
    pitch: float = 0.0,
    rule: Rule = "bdf2",
) -> cs.OneStep:
    """All blades and the hub in one subsystem.

    Forces at the nodes of a blade (N), `generator` torque (Nm, what the generator takes) and `pitch` (rad) in; `speed`
    (rad/s), rates of deflection at the nodes and the deflections of the `tip` (flap, edge) out. With `alike` one
    blade stands for all; otherwise ports are numbered, `flap_load1`, `tip2`.

    >>> [port.name for port in rotor().outputs]
    ['speed', 'flap_rate', 'edge_rate', 'tip']
    >>> len(rotor(blades=3, alike=False).inputs)
    8
    """
    _refuse_rule(rule)
    if isinstance(blades, bool) or not isinstance(blades, int) or blades < 1:
        raise cs.errors.SetupError(f"a rotor has a whole number of blades of at least 1, not {blades!r}")
    if not (np.isfinite(hub_inertia) and hub_inertia >= 0):
        raise cs.errors.SetupError(f"the inertia of a hub must not be negative, not {hub_inertia!r}")
    p = blade() if structure is None else structure
    sets, many = (1, float(blades)) if alike else (blades, 1.0)
    inertia = hub_inertia + blades * p.inertia
    energy, nodes = rule == "energy", len(p.nodes)
    names = [""] if alike else [str(k + 1) for k in range(blades)]

    def step(t, H, x, u, new, y):
        return _rotor_step(p, inertia, many, sets, energy, H, x, u, new, y, np.empty((0, 0)))

    def jacobian(t, H, x, u, D):
        _rotor_step(p, inertia, many, sets, energy, H, x, u, np.empty(len(x)), np.empty(len(D)), D)

    x0 = np.zeros(HEAD + 4 * len(p.pull) * sets)
    x0[[PITCH, SPEED, SPEED_OLD]] = pitch, speed, speed
    x0[[MOMENTUM, MOMENTUM_OLD]] = inertia * speed
    return cs.OneStep(
        step,
        x0=x0,
        y0=np.concatenate([[speed], np.zeros((2 * nodes + 2) * sets)]),
        inputs=[
            *(port for k in names for port in _load_ports(k, nodes)),
            cs.Port("generator", unit="N.m", nominal=_NOMINAL["torque"]),
            cs.Port("pitch", unit="rad"),
        ],
        outputs=[cs.Port("speed", unit="rad/s"), *(port for k in names for port in _motion_ports(k, nodes))],
        jacobian=jacobian,
        failure=lambda status, t, H, x, u: _too_far(p, status, t, H),
        noise=1e-14,
    )


# -- blades and hub apart --------------------------------------------------------------------------------------------


@_jitted
def _blade_step(b, energy, H, x, u, new, y, D):
    """One step of a blade on a hub whose speed comes in; out comes its torque without that of its stiff inertia."""
    n, loads = len(b.pull), len(b.arm)
    w = _weights(energy, H, x[BEFORE])
    a, w0, w1 = w
    rate, share = a / H, 0.5 if energy else 1.0
    pitch, own, mine = u[loads + 1], x[HEAD:], u[:loads]
    speed = 2 * u[loads] - x[SPEED] if energy else u[loads]
    K, C = np.empty((n, n)), np.empty((n, n))
    _stiffness(b, energy, x[PITCH], pitch, K, C)
    columns, past, by_q = np.empty((n, loads + 3 if len(D) else 2)), np.empty(n), np.empty(n)
    _bend(b, energy, H, x, w, K, C, own, mine, pitch, speed, past, columns)
    momentum, slope = _momentum(b, energy, H, a, own, past, columns, speed, by_q)
    y[0] = _dot(b.arm, mine) - (a * momentum - w0 * x[MOMENTUM] + w1 * x[MOMENTUM_OLD]) / H
    new[BEFORE], new[PITCH], new[SPEED], new[MOMENTUM] = H, pitch, speed, momentum
    new[SPEED_OLD], new[MOMENTUM_OLD] = x[SPEED], x[MOMENTUM]
    _moved(b, energy, rate, own, columns, past, new[HEAD:], y[1:])
    if not max(abs(y[1 + loads]), abs(y[2 + loads])) <= b.largest:
        return DEFLECTED
    if len(D):
        moved = np.empty(n)
        for k in range(loads + 2):
            column = 2 + k if k < loads else (1 if k == loads else loads + 2)
            for i in range(n):
                moved[i] = columns[i, column] / (share if k == loads else 1.0)
            _seen(b, moved, rate, D, 1, k)
            D[0, k] = -rate * (slope / share if k == loads else _dot(by_q, moved))
            if k < loads:
                D[0, k] += b.arm[k]
    return 0


def one_blade(
    structure: Blade | None = None, *, speed: float = 0.0, pitch: float = 0.0, rule: Rule = "bdf2", name: str = "1"
) -> cs.OneStep:
    """A blade by itself: loads at its nodes, `speed` of the hub and `pitch` in; `torque` on the hub and motion out.

    The torque is that of its loads less the rate of change of the momentum of its elastic motion; the inertia of the
    stiff blade belongs to the hub. `speed` and `pitch` are those at the start, `name` appears in messages.

    >>> [port.name for port in one_blade().inputs]
    ['flap_load', 'edge_load', 'speed', 'pitch']
    """
    _refuse_rule(rule)
    p = blade() if structure is None else structure
    energy, nodes = rule == "energy", len(p.nodes)

    def step(t, H, x, u, new, y):
        return _blade_step(p, energy, H, x, u, new, y, np.empty((0, 0)))

    def jacobian(t, H, x, u, D):
        _blade_step(p, energy, H, x, u, np.empty(len(x)), np.empty(len(D)), D)

    x0 = np.zeros(HEAD + 4 * len(p.pull))
    x0[[PITCH, SPEED, SPEED_OLD]] = pitch, speed, speed
    return cs.OneStep(
        step,
        x0=x0,
        y0=np.zeros(3 + 2 * nodes),
        inputs=[*_load_ports("", nodes), cs.Port("speed", unit="rad/s"), cs.Port("pitch", unit="rad")],
        outputs=[cs.Port("torque", unit="N.m", nominal=_NOMINAL["torque"]), *_motion_ports("", nodes)],
        jacobian=jacobian,
        failure=lambda status, t, H, x, u: _too_far(p, status, t, H).replace("blade 1", f"blade {name}"),
    )


@_jitted
def _hub_step(inertia, energy, H, x, total, new):
    """Length of the last step, speed, speed before; returns the speed that is exchanged, and by the torque."""
    a, w0, w1 = _weights(energy, H, x[0])
    speed = (w0 * x[1] - w1 * x[2] + H * total / inertia) / a
    new[0], new[1], new[2] = H, speed, x[1]
    return (0.5 * (x[1] + speed), 0.5 * H / inertia) if energy else (speed, H / (a * inertia))


def hub(inertia: float, *, blades: int = 2, speed: float = 0.0, rule: Rule = "bdf2", before: float = 0.0) -> cs.OneStep:
    """A stiff rotor: torques of the blades (`torque1`, `torque2`, ...) and what the `generator` takes in, `speed` out.

    With `before` (s) it had that speed a step of this length before the start, and BDF2 begins at once.

    >>> [port.name for port in hub(805.1).inputs]
    ['torque1', 'torque2', 'generator']
    """
    _refuse_rule(rule)
    if not (np.isfinite(inertia) and inertia > 0):
        raise cs.errors.SetupError(f"the inertia of a hub must be positive, not {inertia!r}")
    energy, count, J = rule == "energy", int(blades), float(inertia)

    def step(t, H, x, u, new, y):
        y[0] = _hub_step(J, energy, H, x, u[:count].sum() - u[count], new)[0]

    def jacobian(t, H, x, u, D):
        slope = _hub_step(J, energy, H, x, 0.0, np.empty(3))[1]
        D[0, :count], D[0, count] = slope, -slope

    torques = [cs.Port(name, unit="N.m", nominal=_NOMINAL["torque"]) for name in
               (*(f"torque{k + 1}" for k in range(count)), "generator")]  # fmt: skip
    return cs.OneStep(
        step, x0=[before, speed, speed], y0=[speed], inputs=torques, outputs=[cs.Port("speed", unit="rad/s")],
        jacobian=jacobian,
    )  # fmt: skip


# -- energy ----------------------------------------------------------------------------------------------------------


def turned(parts: np.ndarray, pitch: float) -> np.ndarray:
    """Stiffness or damping of a blade at a pitch."""
    A = np.zeros(parts.shape[1:])
    _add_turned(A, parts, _axes(pitch, False), 1.0)
    return A


def energy_of(structure: Blade, x: np.ndarray, inertia: float, alike: float = 2.0) -> float:
    """Kinetic and strain energy of the rotor in the state `x` of a `rotor` (all its blades and the hub)."""
    b, n, speed = structure, len(structure.pull), x[SPEED]
    total = 0.5 * inertia * speed**2
    for own in x[HEAD:].reshape(-1, 4 * n):
        q, v = own[:n], own[n : 2 * n]
        K = turned(b.stiffness, x[PITCH]) - speed**2 * b.tightening
        total += alike * (0.5 * v @ b.mass @ v + 0.5 * q @ K @ q + speed * b.pull @ v)
    return float(total)
