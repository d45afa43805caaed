"""Blade elements of rotors: profile polars, tip loss, induction with high loading, dynamic inflow, stall delay.

Blade-element momentum theory takes every annulus of a rotor for itself: the forces of the profiles there slow the flow
down. The formulas are compiled and give their derivatives as well, so that an implicit step that uses them has
Newton's method and exact sensitivities. Angles are in radians here but for the tables of polars, which are in degrees.
"""

from __future__ import annotations

from math import acos, atan2, exp, pi, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.interpolate import PchipInterpolator

import cosolve as cs
from examples.elements.jit import Array, compiled

_DEGREES = 180.0 / pi


class Polar(NamedTuple):
    """Lift and drag of a profile by its angle of attack, monotone cubics between given points (PCHIP).

    Parameters
    ----------
    angles : ndarray
        Angles of attack in degrees.
    lift : ndarray
        Coefficients of the cubic of each interval in a row, highest power first, in degrees from its left end.
    drag : ndarray
        The same of the drag coefficient.

    Examples
    --------
    >>> polar([[-10, -1, 0.02], [0, 0, 0.01], [10, 1, 0.02]]).angles
    array([-10.,   0.,  10.])
    """

    angles: Array
    lift: Array
    drag: Array

    @property
    def rows(self) -> Array:
        """The points: angle in degrees, lift coefficient, drag coefficient."""
        ends = [polar_values(a / _DEGREES, self.angles, self.lift, self.drag)[:2] for a in self.angles]
        return np.column_stack([self.angles, np.array(ends)])


def polar(rows: npt.ArrayLike) -> Polar:
    """Make a polar from points.

    Parameters
    ----------
    rows : array_like
        Rows of angle in degrees, lift and drag coefficient; angles grow.

    Returns
    -------
    Polar
        The polar.

    Raises
    ------
    SetupError
        If angles do not grow or a drag coefficient is negative.

    Examples
    --------
    >>> flat = polar([[-10, -1, 0.02], [0, 0, 0.01], [10, 1, 0.02]])
    >>> polar_values(np.radians(5.0), *flat)[0]
    0.5
    """
    table = np.array(rows, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != 3 or len(table) < 2 or not np.isfinite(table).all():
        raise cs.errors.SetupError("a polar is given as rows of angle, lift and drag coefficient, at least two of them")
    if (np.diff(table[:, 0]) <= 0).any():
        k = int(np.argmax(np.diff(table[:, 0]) <= 0)) + 1
        raise cs.errors.SetupError(
            f"the angles of a polar must grow: row {k} has {table[k, 0]:g} after {table[k - 1, 0]:g} degrees"
        )
    if (table[:, 2] < 0).any():
        k = int(np.argmax(table[:, 2] < 0))
        raise cs.errors.SetupError(
            f"drag cannot push: the polar has a drag coefficient of {table[k, 2]:g} at {table[k, 0]:g} degrees"
        )
    lift, drag = (np.ascontiguousarray(PchipInterpolator(table[:, 0], table[:, k]).c.T) for k in (1, 2))
    return Polar(np.ascontiguousarray(table[:, 0]), lift, drag)


def closed_polar(measured: npt.ArrayLike, deep_stall: npt.ArrayLike, mirrored: float = 0.7) -> Polar:
    """Continue a measured polar to all angles from -180 to 180 degrees.

    Parameters
    ----------
    measured : array_like
        Rows of angle in degrees, lift and drag coefficient.
    deep_stall : array_like
        Rows beyond the measured ones, up to 90 degrees. They are mirrored to flow from behind and to negative angles;
        towards 180 degrees the profile becomes a thin plate.
    mirrored : float, default 0.7
        Factor on the lift where it is mirrored.

    Returns
    -------
    Polar
        The polar.

    Examples
    --------
    >>> closed = closed_polar([[-10, -0.8, 0.02], [0, 0.1, 0.01], [10, 0.9, 0.02]], [[30, 0.9, 0.6], [90, 0.1, 2.2]])
    >>> [float(round(number, 3)) for number in polar_values(np.radians(150.0), *closed)[:2]]
    [-0.63, 0.6]
    """
    stall = np.array(deep_stall, dtype=np.float64)
    below = stall[stall[:, 0] < 90]
    signs = np.array([-1.0, -mirrored, 1.0])
    behind = below * [-1.0, -mirrored, 1.0] + [180.0, 0.0, 0.0]
    negative_behind = below * [1.0, mirrored, 1.0] - [180.0, 0.0, 0.0]
    ends = [[170.0, -0.4, 0.2], [180.0, 0.0, 0.03], [-170.0, 0.4, 0.2], [-180.0, 0.0, 0.03]]
    rows = np.concatenate([np.array(measured, dtype=np.float64), stall, behind, negative_behind, stall * signs, ends])
    return polar(rows[np.argsort(rows[:, 0])])


def stall_delay(rows: npt.ArrayLike, ratio: float, stalled: tuple[float, float] = (18.0, 26.0)) -> Array:
    """Increase the lift of a polar in stall, for a section of a turning blade.

    Parameters
    ----------
    rows : array_like
        Rows of angle in degrees, lift and drag coefficient.
    ratio : float
        Ratio of chord to radius.
    stalled : tuple of (float, float), default (18.0, 26.0)
        Angles in degrees from which the correction starts and is full. It decreases from 30 to 60 degrees.

    Returns
    -------
    ndarray
        The corrected rows; drag is not changed.

    Notes
    -----
    Lift moves towards that of attached flow, `2 pi sin(alpha - alpha_0)`, by `tanh(3 ratio^2)`.

    References
    ----------
    .. [1] H. Snel, R. Houwink, J. Bosschers, Sectional prediction of lift coefficients on rotating wind turbine blades
       in stall, ECN-C-93-052, 1994.

    Examples
    --------
    >>> rows = [[-4, -0.4, 0.01], [0, 0.1, 0.01], [8, 0.9, 0.02], [26, 0.7, 0.3], [90, 0.1, 2.2]]
    >>> stall_delay(rows, 0.5)[:, 1].round(3).tolist()
    [-0.4, 0.1, 0.9, 2.055, 0.1]
    """
    table = np.array(rows, dtype=np.float64)
    angle, lift, drag = table.T
    near = (angle >= -10) & (angle <= 8)
    no_lift = float(np.interp(0.0, lift[near], angle[near]))
    attached = 2 * pi * np.sin(np.radians(angle - no_lift))
    share = np.tanh(3 * ratio**2) * np.interp(angle, [*stalled, 30.0, 60.0], [0.0, 1.0, 1.0, 0.0])
    return np.column_stack([angle, lift + share * np.maximum(attached - lift, 0.0), drag])


@compiled
def polar_values(angle: float, angles: Array, lift: Array, drag: Array) -> tuple[float, float, float, float]:
    """Evaluate a polar.

    Parameters
    ----------
    angle : float
        Angle of attack in rad; beyond its ends a polar is constant.
    angles : ndarray
        Angles of the polar.
    lift : ndarray
        Lift of the polar.
    drag : ndarray
        Drag of the polar.

    Returns
    -------
    tuple of (float, float, float, float)
        Lift and drag coefficient and their derivatives per rad.

    Examples
    --------
    >>> flat = polar([[-10, -1, 0.02], [0, 0, 0.01], [10, 1, 0.02]])
    >>> polar_values(0.5, *flat)
    (1.0, 0.02, 0.0, 0.0)
    """
    x, last = angle * _DEGREES, len(angles) - 1
    if x <= angles[0]:
        return lift[0, 3], drag[0, 3], 0.0, 0.0
    if x >= angles[last]:
        s = angles[last] - angles[last - 1]
        a, b = lift[last - 1], drag[last - 1]
        return ((a[0] * s + a[1]) * s + a[2]) * s + a[3], ((b[0] * s + b[1]) * s + b[2]) * s + b[3], 0.0, 0.0
    k, above = 0, last
    while above - k > 1:
        middle = (k + above) // 2
        if x < angles[middle]:
            above = middle
        else:
            k = middle
    s = x - angles[k]
    a, b = lift[k], drag[k]
    return (
        ((a[0] * s + a[1]) * s + a[2]) * s + a[3],
        ((b[0] * s + b[1]) * s + b[2]) * s + b[3],
        ((3 * a[0] * s + 2 * a[1]) * s + a[2]) * _DEGREES,
        ((3 * b[0] * s + 2 * b[1]) * s + b[2]) * _DEGREES,
    )


@compiled
def _edge_loss(gap: float, blades: float, phi: float) -> tuple[float, float]:
    """Prandtl's factor at a distance `gap` from an end of the blade, by the radius, and its slope over `phi`."""
    sine = np.sin(phi)
    s, slope = abs(sine), np.cos(phi) if sine > 0 else -np.cos(phi)
    if s < 1e-3:
        s, slope = 1e-3, 0.0
    f = 0.5 * blades * gap / s
    e = exp(-f)
    factor = 2.0 / pi * acos(min(e, 1.0))
    if factor < 0.02:
        return 0.02, 0.0
    return factor, -2.0 / pi * e * f / (s * sqrt(1.0 - e * e)) * slope


@compiled
def tip_loss(r: float, tip: float, blades: float, phi: float) -> tuple[float, float]:
    """Compute Prandtl's factor for the flow around the tips.

    Parameters
    ----------
    r : float
        Radius of the element in m.
    tip : float
        Radius of the tip in m.
    blades : float
        Number of blades.
    phi : float
        Inflow angle in rad.

    Returns
    -------
    tuple of (float, float)
        The factor, at least 0.02, and its derivative with respect to `phi`.

    Examples
    --------
    >>> round(tip_loss(4.5, 5.0, 2, 0.1)[0], 4), tip_loss(5.0, 5.0, 2, 0.1)
    (0.7869, (0.02, 0.0))
    """
    return _edge_loss((tip - r) / r, blades, phi)


@compiled
def hub_loss(r: float, hub: float, blades: float, phi: float) -> tuple[float, float]:
    """Compute Prandtl's factor for the flow around the roots of the blades.

    Parameters
    ----------
    r : float
        Radius of the element in m.
    hub : float
        Radius in m at which the blades start; 0 for no loss.
    blades : float
        Number of blades.
    phi : float
        Inflow angle in rad.

    Returns
    -------
    tuple of (float, float)
        The factor and its derivative with respect to `phi`.

    Examples
    --------
    >>> round(hub_loss(0.6, 0.5, 2, 0.5)[0], 4), hub_loss(0.6, 0.0, 2, 0.5)
    (0.542, (1.0, 0.0))
    """
    if hub <= 0.0:
        return 1.0, 0.0
    return _edge_loss((r - hub) / hub, blades, phi)


@compiled
def momentum_speed(w: float, wind: float) -> tuple[float, float]:
    """Compute the speed at which momentum leaves an annulus, `|U - fg w|`.

    Parameters
    ----------
    w : float
        Axial induced velocity in m/s.
    wind : float
        Wind speed `U` in m/s.

    Returns
    -------
    tuple of (float, float)
        The speed, at least 5 % of the wind, and its derivative with respect to `w`.

    Notes
    -----
    Glauert's correction: beyond an induction `a = w / U` of a third `fg = (5 - 3 a) / 4`, else 1.

    Examples
    --------
    >>> momentum_speed(2.0, 10.0), momentum_speed(5.0, 10.0)      # without and with the correction
    ((8.0, -1.0), (5.625, -0.5))
    """
    a = w / wind
    if a <= 1.0 / 3.0:
        left, slope = wind - w, -1.0
    else:
        left, slope = wind - 0.25 * (5.0 - 3.0 * a) * w, -0.25 * (5.0 - 6.0 * a)
    if abs(left) < 0.05 * wind:
        return 0.05 * wind, 0.0
    return (left, slope) if left > 0 else (-left, -slope)


@compiled
def inflow_times(w: float, wind: float, r: float, tip: float) -> tuple[float, float, float]:
    """Compute the time constants of dynamic inflow.

    Parameters
    ----------
    w : float
        Axial induced velocity in m/s.
    wind : float
        Wind speed `U` in m/s.
    r : float
        Radius of the element in m.
    tip : float
        Radius of the tip in m.

    Returns
    -------
    tuple of (float, float, float)
        `tau_1` and `tau_2` in s, and the derivative of `tau_1` with respect to `w`.

    Notes
    -----
    `tau_1 = 1.1 / (1 - 1.3 a) R / U` with `a = w / U` from 0 to 0.5, `tau_2 = (0.39 - 0.26 (r / R)^2) tau_1` (Øye).

    References
    ----------
    .. [1] H. Snel, J. G. Schepers, Joint investigation of dynamic inflow effects and implementation of an engineering
       method, ECN-C-94-107, 1995.

    Examples
    --------
    >>> [round(number, 4) for number in inflow_times(0.0, 7.0, 2.5, 5.0)]
    [0.7857, 0.2554, 0.1459]
    """
    a = w / wind
    inside = 0.0 <= a < 0.5
    rest = 1.0 - 1.3 * min(max(a, 0.0), 0.5)
    first = 1.1 / rest * tip / wind
    return first, (0.39 - 0.26 * (r / tip) ** 2) * first, 1.3 * first / rest / wind if inside else 0.0


@compiled
def filtered_inflow(
    forced: float, first: float, second: float, rate: float, past_y: float, past_w: float
) -> tuple[float, float]:
    """Advance the filters of dynamic inflow by one step, for one component.

    Parameters
    ----------
    forced : float
        Quasi-steady induced velocity `w_qs` at the end of the step in m/s.
    first : float
        `tau_1` in s.
    second : float
        `tau_2` in s.
    rate : float
        Coefficient of the derivative, `y' = rate * y + past_y` (BDF), in 1/s.
    past_y : float
        Past part of the derivative of `y`.
    past_w : float
        Past part of the derivative of `w`.

    Returns
    -------
    tuple of (float, float)
        Intermediate velocity `y` and induced velocity `w` at the end of the step.

    Notes
    -----
    `tau_1 y' + y = 0.4 w_qs`, `tau_2 w' + w = y + 0.6 w_qs`.

    References
    ----------
    .. [1] H. Snel, J. G. Schepers, Joint investigation of dynamic inflow effects and implementation of an engineering
       method, ECN-C-94-107, 1995.

    Examples
    --------
    >>> filtered_inflow(2.0, 0.8, 0.2, 0.0, 0.0, 0.0)      # no change any more: all of it
    (0.8, 2.0)
    """
    y = (0.4 * forced - first * past_y) / (1.0 + first * rate)
    return y, (y + 0.6 * forced - second * past_w) / (1.0 + second * rate)


class ElementFlow(NamedTuple):
    """Flow and forces at a blade element.

    Parameters
    ----------
    alpha : float
        Angle of attack in rad.
    normal : float
        Force per length out of the plane of rotation in N/m.
    tangential : float
        Force per length in the plane of rotation in N/m.
    axial : float
        Quasi-steady axial induced velocity in m/s.
    swirl : float
        Quasi-steady tangential induced velocity in m/s.
    normal_by : tuple of (float, float, float)
        Derivatives of `normal` with respect to Vn, Vt and the pitch of the section.
    tangential_by : tuple of (float, float, float)
        The same of `tangential`.
    axial_by : tuple of (float, float, float)
        The same of `axial`.
    swirl_by : tuple of (float, float, float)
        The same of `swirl`.
    axial_by_w : float
        Derivative of `axial` with respect to `w`.
    swirl_by_w : float
        Derivative of `swirl` with respect to `w`.

    Examples
    --------
    >>> flat = polar([[-10, -1, 0.02], [0, 0, 0.01], [10, 1, 0.02]])
    >>> round(element_flow(5.0, 30.0, 0.1, 2.0, 0.5, 4.0, 5.0, 2, 1.23, 7.0, *flat).axial, 4)
    0.7881
    """

    alpha: float
    normal: float
    tangential: float
    axial: float
    swirl: float
    normal_by: tuple[float, float, float]
    tangential_by: tuple[float, float, float]
    axial_by: tuple[float, float, float]
    swirl_by: tuple[float, float, float]
    axial_by_w: float
    swirl_by_w: float


@compiled
def element_flow(
    Vn: float,
    Vt: float,
    beta: float,
    w: float,
    chord: float,
    r: float,
    tip: float,
    blades: float,
    density: float,
    wind: float,
    angles: Array,
    lift: Array,
    drag: Array,
    hub: float = 0.0,
) -> ElementFlow:
    """Compute forces and quasi-steady induction at a blade element, with derivatives.

    Parameters
    ----------
    Vn : float
        Velocity through the plane of rotation in m/s, induction included.
    Vt : float
        Velocity in the plane of rotation in m/s, induction included.
    beta : float
        Pitch of the section in rad.
    w : float
        Axial induced velocity that `Vn` contains in m/s; it enters the momentum of the annulus only.
    chord : float
        Chord in m.
    r : float
        Radius of the element in m.
    tip : float
        Radius of the tip in m.
    blades : float
        Number of blades.
    density : float
        Density of the air in kg/m^3.
    wind : float
        Wind speed `U` in m/s.
    angles : ndarray
        Angles of the polar.
    lift : ndarray
        Lift of the polar.
    drag : ndarray
        Drag of the polar.
    hub : float, default 0.0
        Radius in m at which the blades start; 0 for no loss at their roots.

    Returns
    -------
    ElementFlow
        Flow, forces and derivatives.

    Notes
    -----
    `alpha = atan2(Vn, Vt) - beta`, forces `rho/2 V^2 c (cl, cd)`, induction `w_qs = B L cos(phi) / (4 pi rho r F |U -
    fg w|)` and `w_qs tan(phi)` in the plane.

    Examples
    --------
    >>> flat = polar([[-10, -1, 0.02], [0, 0, 0.01], [10, 1, 0.02]])
    >>> flow = element_flow(5.0, 30.0, 0.1, 2.0, 0.5, 4.0, 5.0, 2, 1.23, 7.0, *flat)
    >>> round(flow.alpha * 180 / pi, 3), round(flow.axial, 4), round(flow.tangential, 3)
    (3.733, 0.7881, 14.258)
    """
    W2 = max(Vn * Vn + Vt * Vt, 1e-30)
    W = sqrt(W2)
    phi = atan2(Vn, Vt)
    alpha = phi - beta
    alpha -= 2.0 * pi * np.floor((alpha + pi) / (2.0 * pi))
    cl, cd, cl_slope, cd_slope = polar_values(alpha, angles, lift, drag)
    q = 0.5 * density * chord
    outer, outer_slope = tip_loss(r, tip, blades, phi)
    inner, inner_slope = hub_loss(r, hub, blades, phi)
    F, F_slope = outer * inner, outer_slope * inner + outer * inner_slope
    left, left_slope = momentum_speed(w, wind)
    share = blades / (4.0 * pi * density * r * F * left)
    normal, tangential = Vt * cl + Vn * cd, Vn * cl - Vt * cd
    axial, swirl = share * q * W * Vt * cl, share * q * W * Vn * cl
    # by Vn, by Vt, by beta: how the angle, the speed and the two components change
    by_phi_n, by_phi_t = Vt / W2, -Vn / W2
    W_n, W_t = Vn / W, Vt / W
    lift_n, lift_t, drag_n, drag_t = cl_slope * by_phi_n, cl_slope * by_phi_t, cd_slope * by_phi_n, cd_slope * by_phi_t
    loss_n, loss_t = F_slope * by_phi_n / F, F_slope * by_phi_t / F
    return ElementFlow(
        alpha,
        q * W * normal,
        q * W * tangential,
        axial,
        swirl,
        (
            q * (W_n * normal + W * (Vt * lift_n + cd + Vn * drag_n)),
            q * (W_t * normal + W * (cl + Vt * lift_t + Vn * drag_t)),
            -q * W * (Vt * cl_slope + Vn * cd_slope),
        ),
        (
            q * (W_n * tangential + W * (cl + Vn * lift_n - Vt * drag_n)),
            q * (W_t * tangential + W * (Vn * lift_t - cd - Vt * drag_t)),
            -q * W * (Vn * cl_slope - Vt * cd_slope),
        ),
        (
            share * q * (W_n * Vt * cl + W * Vt * lift_n) - axial * loss_n,
            share * q * (W_t * Vt * cl + W * (cl + Vt * lift_t)) - axial * loss_t,
            -share * q * W * Vt * cl_slope,
        ),
        (
            share * q * (W_n * Vn * cl + W * (cl + Vn * lift_n)) - swirl * loss_n,
            share * q * (W_t * Vn * cl + W * Vn * lift_t) - swirl * loss_t,
            -share * q * W * Vn * cl_slope,
        ),
        -axial * left_slope / left,
        -swirl * left_slope / left,
    )


@compiled
def steady_element(
    wind_speed: float,
    turning: float,
    beta: float,
    chord: float,
    r: float,
    tip: float,
    blades: float,
    density: float,
    wind: float,
    angles: Array,
    lift: Array,
    drag: Array,
    hub: float = 0.0,
) -> tuple[bool, float, float]:
    """Compute the steady induced velocities at a blade element.

    Parameters
    ----------
    wind_speed : float
        Wind through the plane of rotation without induction in m/s.
    turning : float
        Velocity in the plane of rotation without induction in m/s.
    beta : float
        Pitch of the section in rad.
    chord : float
        Chord in m.
    r : float
        Radius of the element in m.
    tip : float
        Radius of the tip in m.
    blades : float
        Number of blades.
    density : float
        Density of the air in kg/m^3.
    wind : float
        Wind speed `U` in m/s.
    angles : ndarray
        Angles of the polar.
    lift : ndarray
        Lift of the polar.
    drag : ndarray
        Drag of the polar.
    hub : float, default 0.0
        Radius in m at which the blades start; 0 for no loss at their roots.

    Returns
    -------
    tuple of (bool, float, float)
        Whether they were found, and the axial and tangential induced velocity in m/s.

    Notes
    -----
    Fixed-point iteration with relaxation, then Newton's method.

    Examples
    --------
    >>> flat = polar([[-10, -1, 0.02], [0, 0, 0.01], [10, 1, 0.02]])
    >>> found, w, wt = steady_element(7.0, 30.0, 0.1, 0.5, 4.0, 5.0, 2, 1.23, 7.0, *flat)
    >>> found, round(w, 4), round(wt, 4)
    (True, 1.0276, 0.2032)
    """
    scale = wind + abs(wind_speed)
    for relaxation in (0.3, 0.1, 0.03):
        w, wt = 0.0, 0.0
        for _ in range(int(60 / relaxation)):
            f = element_flow(
                wind_speed - w, turning + wt, beta, w, chord, r, tip, blades, density, wind, angles, lift, drag, hub
            )
            dw, dt = f.axial - w, f.swirl - wt
            if abs(dw) + abs(dt) < 1e-6 * scale:
                break
            w, wt = w + relaxation * dw, wt + relaxation * dt
        best = 1e300
        for _ in range(12):
            f = element_flow(
                wind_speed - w, turning + wt, beta, w, chord, r, tip, blades, density, wind, angles, lift, drag, hub
            )
            dw, dt = f.axial - w, f.swirl - wt
            size = abs(dw) + abs(dt)
            if size >= best:
                break
            best = size
            a, b = 1.0 + f.axial_by[0] - f.axial_by_w, -f.axial_by[1]
            c, d = f.swirl_by[0] - f.swirl_by_w, 1.0 - f.swirl_by[1]
            determinant = a * d - b * c
            w, wt = w + (d * dw - b * dt) / determinant, wt + (a * dt - c * dw) / determinant
        if best < 1e-11 * scale:
            return True, w, wt
    return False, w, wt
