"""Rules of Python and numpy that a trace could miss: kinds of numbers, signs of zeros, views, what is caught, state.

Arguments are a time, three states and two inputs. All of them are either refused, or give the bits of Python.
"""

import enum
import math
import random
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

CASES = []


def case(f):
    CASES.append(f)
    return f


K32 = np.float32(0.1)
A32 = np.array([0.1, 0.2, 0.3], dtype=np.float32)
L80 = np.longdouble("0.1")


@case
def f32_scalar(t, x, u):
    return -x * (K32 * 0.3)


@case
def f32_time(t, x, u):
    return -x * (K32 * t)


@case
def f32_array(t, x, u):
    return -x * (A32 * 0.3)


@case
def f32_array_t(t, x, u):
    return -x + (A32 * t)


@case
def long_scalar(t, x, u):
    return -x * float(L80 * 3)


@case
def bool_plus(t, x, u):
    return -x * ((x[0] > 0) + (x[1] > 0))


@case
def bool_plus_arrays(t, x, u):
    return -x * ((x > 0) + (x > 0.5))


@case
def bool_minus(t, x, u):
    return -x * ((t > 1) - (t > 2))


@case
def bool_invert_py(t, x, u):
    return -x * (~(t > 1.0))


@case
def bool_invert_np(t, x, u):
    return -x * (~(x[0] > 0))


@case
def bool_times_minus(t, x, u):
    return [math.copysign(1.0, float(-1 * (x[0] > 0))), x[1], x[2]]


@case
def is_same(t, x, u):
    return -x * (2.0 if x[0] is x[0] else 1.0)


@case
def is_time(t, x, u):
    a = t
    return -x * (2.0 if a is t else 1.0)


@case
def array_copy_false(t, x, u):
    y = np.array(x, copy=False)
    y[0] = 5.0
    return -x


@case
def array_ndmin(t, x, u):
    return np.array(x, ndmin=2)[0] * 2


@case
def asarray_f32(t, x, u):
    return np.asarray(x, dtype=np.float32) * 1.0


@case
def asarray_int(t, x, u):
    return np.asarray(x, dtype=int) * 1.0


@case
def full_int(t, x, u):
    y = np.full(3, 1)
    y[0] = x[0]
    return -y


@case
def zeros_like_int(t, x, u):
    y = np.zeros_like(np.array([1, 2, 3]))
    y[0] = x[0]
    return -y * 1.0


@case
def zeros_like_list(t, x, u):
    y = np.zeros_like([0, 0, 0])
    y[0] = x[0]
    return -y * 1.0


@case
def zeros_like_shape(t, x, u):
    return np.zeros_like(x, shape=2).sum() + x


@case
def where_int_write(t, x, u):
    y = np.where(x > 0, 1, 0)
    y[0] = x[0]
    return -y * 1.0


@case
def where_neg(t, x, u):
    return np.arctan2(-np.where(x > 0, 1, 0), -1.0)


@case
def bool_write(t, x, u):
    y = x > 0
    y[0] = 0.5
    return -y * 1.0


@case
def max_int_neg(t, x, u):
    return [math.atan2(-max(0, float(x[0])), -1.0), x[1], math.atan2(-3 * max(0, x[2]), -1.0)]


@case
def min_int(t, x, u):
    return [math.atan2(min(0, float(x[0])) * -1, -1.0), x[1], x[2]]


@case
def maximum_nan(t, x, u):
    big = x * 1e308 * 10
    return np.maximum(big - big, 1.0)


@case
def fmax_nan(t, x, u):
    return np.fmax(np.nan, x)


@case
def fmax_nan2(t, x, u):
    return np.fmax(x, np.nan)


@case
def fmin_nan2(t, x, u):
    return np.fmin(x, np.nan)


@case
def max_zero(t, x, u):
    return np.arctan2(np.maximum(x * 0.0, 0.0), -1.0)


@case
def max_zero2(t, x, u):
    return np.arctan2(np.maximum(0.0, x * 0.0), -1.0)


@case
def min_zero(t, x, u):
    return np.arctan2(np.minimum(x * 0.0, 0.0), -1.0)


@case
def min_zero2(t, x, u):
    return np.arctan2(np.minimum(-0.0, x * 0.0), -1.0)


@case
def max_zero_s(t, x, u):
    return [np.arctan2(np.maximum(v * 0.0, 0.0), -1.0) for v in x]


@case
def min_zero_s(t, x, u):
    return [np.arctan2(np.minimum(v * 0.0, 0.0), -1.0) for v in x]


@case
def sign_zero(t, x, u):
    return np.arctan2(np.sign(x * 0.0), -1.0)


@case
def sign_zero_s(t, x, u):
    return [np.arctan2(np.sign(v * 0.0), -1.0) for v in x]


@case
def clip_zero(t, x, u):
    return np.arctan2(np.clip(x * 0.0, 0.0, 1.0), -1.0)


@case
def clip_zero_s(t, x, u):
    return [np.arctan2(np.clip(v * 0.0, 0.0, 1.0), -1.0) for v in x]


@case
def clip_inverted(t, x, u):
    return np.clip(x, 1.0, -1.0)


@case
def npmax_zero(t, x, u):
    return np.arctan2([np.max(x * 0.0), np.min(x * 0.0), -np.max(x * 0.0)], -1.0)


@case
def sum_zero(t, x, u):
    return np.arctan2([np.sum(x * 0.0), (x * 0.0).sum(), sum(x * 0.0)], -1.0)


@case
def add_out(t, x, u):
    y = np.zeros(3)
    np.add(x, 1.0, y)
    return y


@case
def inner2(t, x, u):
    A = np.outer(x, [1.0, 2.0, 3.0])
    return np.inner(x, A) + np.inner(A, A)[0]


@case
def scalar0d(t, x, u):
    k = np.array(2.0)
    a = k * x[0]
    b = a
    b += 1.0
    return [a, x[1], x[2]]


C0 = np.array(2.0)


@case
def scalar0d_captured(t, x, u):
    a = C0 * x[0]
    b = a
    b += 1.0
    return [a, x[1], x[2]]


ZERO = 0.0
NEG = -1.0


@case
def fixed_division(t, x, u):
    try:
        a = 1.0 / ZERO
    except ZeroDivisionError:
        a = -1.0
    return -x * min(a, 3.0)


@case
def fixed_sqrt(t, x, u):
    try:
        a = math.sqrt(NEG)
    except ValueError:
        a = -1.0
    return -x * (a if a < 0 else 2.0)


@case
def attr_error(t, x, u):
    try:
        a = 1.0 if x[0].is_integer() else 0.5
    except AttributeError:
        a = 2.0
    return -x * a


@case
def attr_error_t(t, x, u):
    try:
        b = 1.0 if t.shape == () else 3.0
    except AttributeError:
        b = 2.0
    return -x * b


@case
def attr_error_item(t, x, u):
    try:
        b = t.item()
    except AttributeError:
        b = 2.0
    return -x * b


@case
def type_error_len(t, x, u):
    try:
        b = len(x[0])
    except TypeError:
        b = 2.0
    return -x * b


@case
def type_error_complex(t, x, u):
    try:
        b = (x[0] * 1j).imag
    except TypeError:
        b = 2.0
    return -x * b


@case
def hash_error(t, x, u):
    try:
        b = {x[0]: 1.0}[x[0]]
    except TypeError:
        b = 2.0
    return -x * b


@case
def dunder_class(t, x, u):
    return -x * (1.0 if x[0].__class__ is np.float64 else 2.0)


@case
def broadcast_write(t, x, u):
    try:
        y = np.broadcast_to(x[0], (3,))
        y[0] = 1.0
    except ValueError:
        return -x
    return y


@case
def concat_int(t, x, u):
    y = np.concatenate([x[:2], [0]])
    return [math.atan2(-y[2], -1.0), x[1], x[2]]


@case
def append_int(t, x, u):
    y = np.append(x[:2], 0)
    return [math.atan2(-y[2], -1.0), x[1], x[2]]


@case
def tile_int(t, x, u):
    y = np.tile(0, 3)
    y[0] = x[0]
    return -y * 1.0


@case
def contiguous(t, x, u):
    y = np.ascontiguousarray(x[::2])
    y[0] = 5.0
    return -x


@case
def reversed_sum(t, x, u):
    y = np.concatenate([x, u, x * 1.1, u * 1.3, x * 0.7])
    return [y[::-1].sum(), np.sum(y[::2]), np.prod(y[::-1])]


@case
def axis_sum(t, x, u):
    y = np.concatenate([x, u, x * 1.1, u * 1.3, x * 0.7, u]).reshape(-1, 1)
    z = np.concatenate([y, y + 0.1], axis=1)
    return [y.sum(axis=0)[0], z.sum(axis=0)[1], z.T.sum(axis=1)[0]]


@case
def axis_sum2(t, x, u):
    y = np.concatenate([x, u, x * 1.1, u * 1.3, x * 0.7, u])
    z = np.outer(y, y)
    return [z.sum(axis=0)[1], z.T.sum(axis=0)[1], z[:, :9].sum(axis=1)[2]]


@case
def prod_t(t, x, u):
    z = np.outer(x, [1.1, 0.3, 0.7]) + np.outer(u[0] * x, [0.3, 1.2, 0.1])
    return [z.T.prod(), np.prod(z), z.T.max()]


@case
def norm_t(t, x, u):
    z = np.outer(x, [1.1, 0.3, 0.7, 0.2]) + np.outer(u[0] * x, [0.3, 1.2, 0.1, 0.9])
    return [np.linalg.norm(z.T), np.linalg.norm(z), np.linalg.norm(x)]


@case
def syrk(t, x, u):
    z = np.outer(np.sin(x), [1.1, 0.3, 0.7]) + np.outer(u[0] * x, [0.3, 1.2, 0.1])
    return (z.T @ z)[0]


@case
def np_power2(t, x, u):
    return np.power(x, 2) + np.power(x[0], 2) + np.power(np.sin(x), 2.0)


TWO = 2.0
HALF = 0.5


@case
def power_captured(t, x, u):
    return np.sin(x) ** TWO + np.abs(x) ** HALF + np.sin(x[0]) ** TWO


@case
def interp_unsorted(t, x, u):
    return [np.interp(v, [0.0, 2.0, 1.0, 3.0], [0.0, 1.0, 5.0, 2.0]) for v in x]


TT = [0.0, 0.5, 1.0, 2.0]
YY = [1.0, -1.0, 2.0, 0.0]


@case
def interp_table(t, x, u):
    return -x * np.interp(t, TT, YY)


@case
def interp_nan(t, x, u):
    big = x[0] * 1e308 * 10
    return -x + np.interp(big - big, [0.0, 1.0], [1.0, 2.0])


@case
def floordiv(t, x, u):
    return [x[0] // 0.3, t // 0.1, (-x[1]) % 1.0]


@case
def mod_neg(t, x, u):
    return [x[0] % -0.3, -t % 0.1, np.fmod(x[1], 0.3)]


@case
def pow_neg(t, x, u):
    return [(abs(x[0]) + 0.1) ** -1.5, 2 ** x[1], 2.0**t]


@case
def complex_power(t, x, u):
    v = float(x[0]) ** 0.5
    return [v.real, x[1], x[2]]


@case
def matmul_scalar(t, x, u):
    try:
        return x @ 2.0
    except ValueError:
        return -x


@case
def float_and(t, x, u):
    try:
        return x & x
    except TypeError:
        return -x


@case
def float_invert(t, x, u):
    try:
        return ~x
    except TypeError:
        return -x


class Named:
    def __init__(self):
        self._name = "left"
        self._value = 2.0
        self._sandbox = 3.0

    def rhs(self, t, x, u):
        return -x * (1.0 if self._name == "left" else 2.0)

    def rhs2(self, t, x, u):
        return -x * self._value


NAMED = Named()
CASES.append(NAMED.rhs)
CASES.append(NAMED.rhs2)


class Mode(enum.IntEnum):
    A = 1
    B = 2


MODE = Mode.B


@case
def intenum(t, x, u):
    return -x * (1.0 if MODE == Mode.B else 2.0)


class PMode(enum.Enum):
    A = 1
    B = 2


PM = PMode.B


@case
def plainenum(t, x, u):
    return -x * (1.0 if PM == PMode.B else 2.0)


@dataclass
class Setting:
    k: float = 1.0


S1, S2 = Setting(), Setting()


@case
def dataclass_eq(t, x, u):
    return -x * (1.0 if S1 == S2 else 2.0)


class Falsy:
    def __init__(self):
        self.k = 1.0

    def __bool__(self):
        return False


FALSY = Falsy()


@case
def falsy(t, x, u):
    return -x * (1.0 if FALSY else 2.0)


class Sized:
    def __init__(self):
        self.k = 1.0

    def __len__(self):
        return 0


SIZED = Sized()


@case
def sized(t, x, u):
    return -x * (1.0 if SIZED else 2.0)


class Units(float):
    def __mul__(self, o):
        return 10.0 * float(self) * o

    __rmul__ = __mul__


UN = Units(2.0)


@case
def float_subclass(t, x, u):
    return [UN * float(x[0]), UN * t, x[2]]


class Pair(NamedTuple):
    k: float

    def force(self, x):
        return self.k * x * random.random()


PAIR = Pair(2.0)


@case
def namedtuple_method(t, x, u):
    return -PAIR.force(x)


with warnings.catch_warnings(action="ignore"):  # numpy discourages it
    M = np.matrix([[1.0, 2.0, 3.0], [0.0, 1.0, 0.5], [1, 1, 1]])


@case
def matrix(t, x, u):
    return np.asarray(M * x.reshape(3, 1)).ravel()


MA = np.ma.array([1.0, 2.0, 3.0], mask=[True, False, False])


@case
def masked(t, x, u):
    return x * MA.sum()


SEEN = set()


@case
def set_add(t, x, u):
    SEEN.add(len(SEEN))
    return -x * len(SEEN)


TOGGLE = [0]


@case
def toggle(t, x, u):
    TOGGLE[0] = 1 - TOGGLE[0]
    a = 1.0 if x[0] > 0 else 2.0
    return -x * (a + TOGGLE[0])


FLAG = {"on": True}


@case
def toggle2(t, x, u):
    FLAG["on"] = not FLAG["on"]
    return -x * (1.0 if FLAG["on"] else 2.0) if x[0] > 0 else -x * (3.0 if FLAG["on"] else 4.0)


STACK = [1]


@case
def pushpop(t, x, u):
    if x[0] > 0:
        STACK.append(1)
    elif len(STACK) > 1:
        STACK.pop()
    return -x * len(STACK)


FPF = np.frompyfunc(lambda a: random.random(), 1, 1)


@case
def frompyfunc(t, x, u):
    return -x * float(FPF(1))


class DataDesc:
    def __init__(self):
        self.__dict__["k"] = 1.0

    @property
    def k(self):
        return 5.0


DD = DataDesc()


@case
def data_descriptor(t, x, u):
    return -x * DD.k


@case
def np_sum_int(t, x, u):
    return [math.atan2(-np.sum([0, 0]), -1.0), x[1], x[2]]


@case
def count_neg(t, x, u):
    return [math.atan2(-(x > 100).sum(), -1.0), x[1], x[2]]


@case
def nested_closure(t, x, u):
    n = 0.0

    def add(v):
        nonlocal n
        n += v
        return n

    add(x[0])
    add(x[1])
    return [n, add(x[2]), n]


@case
def generator_expr(t, x, u):
    return [sum(v * v for v in x), max(v for v in x), min(x)]


@case
def inner_generator(t, x, u):
    def g():
        for v in x:
            yield v * 2

    return list(g())


def fact(n, v):
    return v if n == 0 else fact(n - 1, v * 0.5 + 1)


@case
def recursion(t, x, u):
    return [fact(5, v) for v in x]


@case
def sorts(t, x, u):
    return sorted(x)


@case
def in_list(t, x, u):
    return -x * (1.0 if x[0] in (0.0, 1.0) else 2.0)


@case
def nan_compare(t, x, u):
    big = x[0] * 1e308 * 10
    d = big - big
    return [1.0 if d == d else 2.0, 1.0 if d < 1 else 2.0, 1.0 if not d >= 1 else 2.0]


@case
def nan_select(t, x, u):
    big = x * 1e308 * 10
    d = big - big
    return np.where(d > 0, 1.0, np.where(d != d, 2.0, 3.0))


@case
def nan_max_py(t, x, u):
    big = x[0] * 1e308 * 10
    d = big - big
    return [max(d, 1.0), max(1.0, d), min(d, 1.0)]


@case
def neg_zero(t, x, u):
    return [math.copysign(1.0, 0.0 * x[0]), math.atan2(-0.0 + 0.0 * x[1], -1.0), math.copysign(1.0, -(x[2] * 0))]


@case
def hidden_inf(t, x, u):
    return [1.0 / (1.0 + math.exp(-1000 * float(x[0]))), x[1], x[2]]


@case
def try_math(t, x, u):
    try:
        return [math.sqrt(x[0]), math.log(x[1]), 1.0 / float(x[2])]
    except (ValueError, ZeroDivisionError):
        return [0.0, 0.0, 0.0]


@case
def try_else_finally(t, x, u):
    n = 0
    try:
        if x[0] > 0:
            raise KeyError
    except KeyError:
        n = 1
    else:
        n = 2
    finally:
        n += 0.5
    return -x * n


@case
def views2(t, x, u):
    a = np.zeros((2, 3))
    a[0] = x
    b = a.T
    b[:, 1] = u[0]
    c = a.ravel()
    c[0] += 1
    d = a.reshape(3, 2)
    d[2, 1] *= 2
    return a[0] + a[1]


@case
def roll_alias(t, x, u):
    y = np.roll(x, 1)
    y[0] = 9.0
    x[1:] = x[:-1]
    return x + y


@case
def shift_in_place(t, x, u):
    x[1:] += x[:-1]
    return x


@case
def fancy(t, x, u):
    y = x[[0, 1, 1]]
    y[0] = 7
    x[[0, 2]] = x[[2, 0]]
    return x + y


@case
def transposes(t, x, u):
    A = np.array([[1.0, 2.0, 3.0], [0.5, 0.1, 0.2], [0.3, 0.4, 0.9]])
    return A.T @ x + x @ A


@case
def dict_order(t, x, u):
    d = {"b": x[0], "a": x[1]}
    d["c"] = x[2]
    d["b"] = x[0] * 2
    return list(d.values())


@case
def unpack(t, x, u):
    a, *b = x
    return [a, *b]


@case
def walrus(t, x, u):
    return [y := x[0] * 2, y + 1, y if (z := x[1]) > 0 else z]


@case
def starargs(*a):
    return -a[1] * a[2][0]


@case
def bigint(t, x, u):
    return x * (2**60 + 1) + 10**20 * t


@case
def numpy_int(t, x, u):
    return x * np.int64(3) / np.arange(1, 4)
