"""What a traced function has captured is watched: every change that Python would follow is noticed."""

import types
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from cosolve.trace import trace


class Spring:
    k = 1.0

    def force(self, x):
        return self.k * x

    @property
    def twice(self):
        return 2.0 * self.k

    @staticmethod
    def same(x):
        return x

    def rhs(self, t, x, u):
        return -self.force(x)


def helper(x, k=2.0, *, c=1.0):
    return k * x * c


def of(kind: type = Spring) -> type:
    """A class of its own, so that a change stays here."""
    return type("Part", (kind,), {})


def instance_hides():
    part = of()()
    return lambda t, x, u: -x * part.k, lambda: setattr(part, "k", 2.0)


def subclass_hides():
    kind = of()
    part = kind()
    return lambda t, x, u: -x * part.k, lambda: setattr(kind, "k", 2.0)


def method_of_the_instance():
    part = of()()
    return lambda t, x, u: -part.force(x), lambda: setattr(part, "force", lambda x: 5.0 * x)


def method_of_the_class():
    kind = of()
    part = kind()
    return lambda t, x, u: -part.force(x), lambda: setattr(kind, "force", lambda self, x: 5.0 * x)


def static_method():
    kind = of()
    part = kind()
    return lambda t, x, u: -part.same(x), lambda: setattr(kind, "same", staticmethod(lambda x: 5.0 * x))


def property_replaced():
    kind = of()
    part = kind()
    return lambda t, x, u: -x * part.twice, lambda: setattr(kind, "twice", 3.0)


def class_of_the_instance():
    part = of()()
    return lambda t, x, u: -x * part.k, lambda: setattr(part, "__class__", type("Other", (Spring,), {"k": 8.0}))


def bound_method():
    part = of()()
    return part.rhs, lambda: setattr(part, "k", 2.0)


def copy_of_helper():
    return types.FunctionType(helper.__code__, globals(), "helper", helper.__defaults__), helper.__kwdefaults__


def defaults():
    function, named = copy_of_helper()
    function.__kwdefaults__ = dict(named)
    return lambda t, x, u: -function(x), lambda: setattr(function, "__defaults__", (3.0,))


def named_defaults():
    function, named = copy_of_helper()
    function.__kwdefaults__ = dict(named)
    return lambda t, x, u: -function(x), lambda: function.__kwdefaults__.update(c=3.0)


def code():
    function, named = copy_of_helper()
    function.__kwdefaults__ = dict(named)
    return lambda t, x, u: -function(x), lambda: setattr(function, "__code__", (lambda x, k=1.0, *, c=1.0: c).__code__)


def set_grows():
    held = {1, 2}
    return lambda t, x, u: -x * len(held), lambda: held.add(3)


def sign_of_zero():
    held = [0.0]
    return lambda t, x, u: -x * held[0], lambda: held.__setitem__(0, -0.0)


def nested():
    held = ([{"k": 1.0}], 2.0)
    return lambda t, x, u: -x * held[0][0]["k"], lambda: held[0][0].update(k=3.0)


def key_appears():
    held: dict[str, float] = {}
    return lambda t, x, u: -x * held.get("k", 1.0), lambda: held.update(k=3.0)


def attribute_appears():
    held = SimpleNamespace()

    def rhs(t, x, u):
        try:
            return -x * held.k
        except AttributeError:
            return -x

    return rhs, lambda: setattr(held, "k", 4.0)


def base_of_a_view():
    base = np.ones(4)
    view = base[:2]
    return lambda t, x, u: -x * view, lambda: base.__setitem__(0, 5.0)


def whole_numbers():
    held = np.array([1, 2])
    return lambda t, x, u: -x * held, lambda: held.__setitem__(0, 5)


def module_attribute():
    held = types.ModuleType("held")
    held.k = 1.0
    return lambda t, x, u: -x * held.k, lambda: setattr(held, "k", 2.0)


def arguments_of_partial():
    held = partial(lambda k, t, x, u: -x * k[0], [2.0])
    return held, lambda: held.args[0].append(1.0)


def keywords_of_partial():
    held = partial(lambda t, x, u, k=1.0: -x * k, k=2.0)
    return held, lambda: held.keywords.update(k=5.0)


def cell():
    k = 1.0

    def change():
        nonlocal k
        k = 2.0

    return lambda t, x, u: -x * k, change


def global_name_appears():
    space = {}
    exec("def rhs(t, x, u):\n    try:\n        return -x * k\n    except NameError:\n        return -x", space)
    return space["rhs"], lambda: space.update(k=5.0)


def builtin_name_is_hidden():
    space = {}
    exec("def rhs(t, x, u):\n    return -x * max(1.0, 2.0)", space)
    return space["rhs"], lambda: space.update(max=min)


CHANGES = [
    *(instance_hides, subclass_hides, method_of_the_instance, method_of_the_class, static_method, property_replaced),
    *(class_of_the_instance, bound_method, defaults, named_defaults, code, set_grows, sign_of_zero, nested, cell),
    *(key_appears, attribute_appears, base_of_a_view, whole_numbers, module_attribute, arguments_of_partial),
    *(keywords_of_partial, global_name_appears, builtin_name_is_hidden),
]


@pytest.mark.parametrize("made", CHANGES, ids=lambda f: f.__name__)
def test_a_change_is_noticed(made) -> None:
    function, change = made()
    found = trace(function, [("t", None), ("x", 2), ("u", 1)], 2)
    assert not isinstance(found, str), found
    assert found.unchanged()
    change()
    assert not found.unchanged()
