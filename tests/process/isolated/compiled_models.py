"""Subsystems that compiled code advances in other processes; apart from `models.py`, since they load the compiler."""

from __future__ import annotations

import ctypes
from functools import cache

import numba
import numpy as np

import cosolve as cs
from cosolve.jit import ADVANCE_CALL, called, double_at, put_double_at, raising_address
from cosolve.process import shared_memory
from cosolve.subsystem.native import Native

_LIBRARY = ctypes.CDLL(None)
raise_signal, sleep_microseconds, make_folder = _LIBRARY["raise"], _LIBRARY.usleep, _LIBRARY.mkdir
raise_signal.argtypes, raise_signal.restype = [ctypes.c_int], ctypes.c_int
sleep_microseconds.argtypes, sleep_microseconds.restype = [ctypes.c_uint], ctypes.c_int
make_folder.argtypes, make_folder.restype = [ctypes.c_size_t, ctypes.c_uint], ctypes.c_int


@numba.njit
def swing(t, x, u):
    return np.array([x[1], -np.sin(x[0]) - 0.1 * x[1] + u[0]])


@numba.njit
def turn_stiff(t, x, u):
    rate = 1.0 if t < 0.05 else 1e8
    return np.array([x[1], -rate * (x[1] - np.cos(t)) + u[0]])


@numba.njit
def motion(t, x, u):
    return x


@numba.njit
def spring(a, va, b, vb):
    return 20.0 * (b - a) + 0.5 * (vb - va)


def jitted(rhs=swing, solver: str = "ode4", x: float = 1.0) -> cs.Ode:
    h = 5e-4 if solver == "ode4" else None
    return cs.Ode(rhs, motion, x0=[x, 0.0], inputs=["f"], outputs=["x", "v"], integrator=solver, internal_step=h)


def linear(x: float = 0.3) -> cs.Linear:
    return cs.Linear([[0, 1], [-40, -1]], [[0], [1]], np.eye(2), x0=[x, 0], inputs=["f"], outputs=["x", "v"])


DEEDS = ("", "kill", "hang", "work")


@cache
def _mass_cross(deed: int, sign: int):
    """Machine code for `Mass`; it does its deed in the step that begins at t = 0.05 (work: in every step).

    From there on it makes a folder, as a sign that it has come so far, where `sign` is the address of a path.
    """

    @called(ADVANCE_CALL, cache=False)
    def advance(data, mode, t0, t1, H, n, coefficients, outputs):
        if sign != 0 and t0 > 0.0495:
            make_folder(sign, 0o700)
        if deed == 1 and t0 > 0.0495:
            raise_signal(9)
        while deed == 2 and t0 > 0.0495:
            sleep_microseconds(10_000)
        if deed == 3:
            sleep_microseconds(5000)
        x, v = double_at(data, 0), double_at(data, 1)
        put_double_at(data, 0, x + H * v)
        put_double_at(data, 1, v + H * (double_at(coefficients, 0) - x))
        put_double_at(outputs, 0, x + H * v)
        put_double_at(outputs, 1, v + H * (double_at(coefficients, 0) - x))
        return 0

    return advance


class Mass(cs.Subsystem):
    """On a spring, by explicit Euler; its machine code compiles in no time and may do something bad."""

    inputs, outputs = ("f",), ("x", "v")

    def __init__(self, deed: str = "", x: float = 1.0, watching: bool = True, sign: str = "") -> None:
        self.deed, self.first = deed, x
        self.sign = ctypes.create_string_buffer(sign.encode()) if sign else None
        if not watching:
            shared_memory._SPINS = 0  # in the process that this is made in

    def start(self, t0):
        self.state = np.array([self.first, 0.0])
        return self.state.copy()

    def advance(self, t0, t1, u):
        x, v = self.state
        self.state = np.array([x + u.H * v, v + u.H * (u.coefficients[0, 0] - x)])
        return self.state.copy()

    def save(self):
        return self.state

    def restore(self, state):
        self.state = state

    def get_state(self):
        return self.state

    def set_state(self, x):
        self.state = x

    def native(self, H, degree):
        data = np.zeros(2)

        def enter():
            data[:] = self.state

        def leave():
            self.state = data.copy()

        sign = ctypes.addressof(self.sign) if self.sign is not None else 0
        address = raising_address(_mass_cross(DEEDS.index(self.deed), sign))
        return Native(address, data.ctypes.data, data, enter=enter, leave=leave, any_step=True, keep=(data,))
