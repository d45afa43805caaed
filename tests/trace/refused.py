"""Functions that change from call to call, read what is around them, or write to it, and some that only look so."""

import math
import random
import time
from types import SimpleNamespace

import numpy as np

CALLS = 0
LOG = []
GENERATOR = np.random.default_rng(7)
COUNTS = iter(range(10**9))
TABLE = {"k": 2.0}
BUFFER = np.zeros(2)
OBJECT = SimpleNamespace(k=1.0, calls=0)


def counts_globally(t, x, u):
    global CALLS
    CALLS += 1
    return -x * CALLS


def appends(t, x, u):
    LOG.append(1)
    return -x * (1 + len(LOG) % 3)


def writes_an_attribute(t, x, u):
    OBJECT.calls = OBJECT.calls + 1
    return -x * OBJECT.calls


def has_an_attribute(t, x, u):
    has_an_attribute.calls = getattr(has_an_attribute, "calls", 0) + 1
    return -x * has_an_attribute.calls


def writes_a_table(t, x, u):
    TABLE["k"] = TABLE["k"] + 0.5
    return -x * TABLE["k"]


def default_value(t, x, u, kept=[0]):  # noqa: B006
    kept[0] += 1
    return -x * kept[0]


def random_of_python(t, x, u):
    return -x * random.random()


def random_of_numpy(t, x, u):
    return -x * np.random.rand()  # noqa: NPY002


def generator(t, x, u):
    return -x * GENERATOR.normal()


def iterator(t, x, u):
    return -x * next(COUNTS)


def clock(t, x, u):
    return -x * time.perf_counter()


def prints(t, x, u):
    print(end="")
    return -x


def reads_a_file(t, x, u):
    with open(__file__) as file:
        return -x * len(file.readline())


def imports(t, x, u):
    import os

    return -x * os.getpid()


def swallows(t, x, u):
    try:
        return -x * random.random()
    except BaseException:
        return -x


def text(t, x, u):
    return -x * len(str(x[0]))


def whole_part(t, x, u):
    return -x * int(x[0])


def rounded(t, x, u):
    return -x * round(float(x[0]), 1)


def number_of_a_vector(t, x, u):
    return -x * float(x)


def truth_of_a_vector(t, x, u):
    return -x if x else x


def identity(t, x, u):
    return -x * (id(x) % 7)


def asks_for_a_type(t, x, u):
    return -x * (1.0 if isinstance(x[0], float) else 2.0)


def mask(t, x, u):
    y = -x
    y[x > 0.0] = 3.0
    return y


def evaluates(t, x, u):
    return eval("-x")


def loops_on_values(t, x, u):
    a = float(x[0])
    while abs(a) > 1e-12:
        a *= 0.9
    return -x * a


def closure(kept=None):
    calls = 0

    def counts(t, x, u):
        nonlocal calls
        calls += 1
        return -x * calls

    return counts


def in_place_of_a_captured_array():
    out = np.zeros(2)

    def writes(t, x, u):
        out[0] = out[0] + 1.0
        out[1] = 2.0
        return out.copy()

    return writes


class Stateful:
    def __init__(self):
        self.calls = 0

    def __call__(self, t, x, u):
        self.calls += 1
        return -x * self.calls


class Hidden:
    def __getattr__(self, name):
        return random.random()


HIDDEN = Hidden()


def hidden(t, x, u):
    return -x * HIDDEN.k


REFUSED = [
    *(counts_globally, appends, writes_an_attribute, has_an_attribute, writes_a_table, default_value, random_of_python),
    *(random_of_numpy, generator, iterator, clock, prints, reads_a_file, imports, swallows, text, whole_part, rounded),
    *(identity, asks_for_a_type, mask, evaluates, hidden, closure(), in_place_of_a_captured_array(), Stateful()),
    *(number_of_a_vector, truth_of_a_vector),
]


# -- functions that look alike and can be traced ---------------------------------------------------------------------


def whole_division(t, x, u):
    return np.array([x[0] // 0.3, x[1] % 0.7 + float(u[0]) % 2.0])


def writes_its_arguments(t, x, u):
    x[0] = x[0] + 1.0
    u[0] *= 2.0
    x += u[0]
    return x


def branches(t, x, u):
    if x[0] > 0.2:
        force = -3.0 * x[0]
    elif x[1] < 0.0:
        force = math.exp(x[1])
    else:
        force = 0.5
    return [x[1], force if u[0] > 0 else -force]


def raises(t, x, u):
    if x[0] > 1.0:
        raise ValueError("too far")
    return [x[1], -math.sqrt(x[0] + 0.5)]


def divides(t, x, u):
    return [1.0 / float(x[0]), -1.0 / x[1]]


def newton(t, x, u):
    a = 1.0
    for _ in range(5):
        a = a - (a * a - 2.0 - x[0] * x[0]) / (2.0 * a)
    return [x[1], -a]


def makes_lists(t, x, u):
    found = []
    for k, value in enumerate(x):
        found.append(value * (k + 1))
    return [sum(found), max(found)]


def views(t, x, u):
    slope = np.empty(2)
    part = slope[1:]
    slope[0] = x[1]
    part[0] = -x[0]
    return slope


def fraction(t, x, u):
    """A value in another way than the rest."""
    return np.where(x > 0.0, np.sqrt(np.abs(x)), -(x**2))


def chained(t, x, u):
    return [x[1], 1.0 if -0.5 < x[0] < 0.5 and not u[0] > 1.0 else -1.0]


TRACED = [
    whole_division,
    writes_its_arguments,
    branches,
    raises,
    divides,
    newton,
    makes_lists,
    views,
    fraction,
    chained,
]
