"""The optional methods of the contract are documented on the base class, and no object has them by that."""

import inspect
import pydoc

import pytest

import cosolve as cs
from cosolve.subsystem.base import CAPABILITIES
from cosolve.subsystem.optional import OptionalMethod

OPTIONAL = sorted(name for name, value in vars(cs.Subsystem).items() if isinstance(value, OptionalMethod))


class Plain(cs.Subsystem):
    def start(self, t0):
        return None

    def advance(self, t0, t1, u):
        return None


def test_every_method_of_a_capability_is_an_optional_method():
    assert {name for methods, _ in CAPABILITIES.values() for name in methods} <= set(OPTIONAL)


@pytest.mark.parametrize("name", OPTIONAL)
def test_help_shows_signature_and_text(name):
    shown = pydoc.plain(pydoc.render_doc(cs.Subsystem))
    function = getattr(cs.Subsystem, name)
    arguments = ", ".join(inspect.signature(function).parameters)
    assert f"  {name}(" in shown
    assert function.__doc__.splitlines()[0] in shown
    assert arguments.startswith("self")


@pytest.mark.parametrize("name", OPTIONAL)
def test_an_object_has_an_optional_method_only_where_its_class_defines_it(name):
    assert not hasattr(Plain(), name)
    defined = type("Defined", (Plain,), {name: lambda self: 1})
    assert getattr(defined(), name)() == 1
    with pytest.raises(AttributeError, match=f"does not define the optional method {name}$"):
        getattr(Plain(), name)


def test_subsystems_elsewhere_begin_before_any_is_waited_for():
    said = []

    class Elsewhere(cs.Subsystem):
        inputs, outputs = ("u",), ("x",)

        def __init__(self, name):
            self.name = name

        def start(self, t0):
            return 0.0

        def post_advance(self, t0, t1, u):
            said.append(("sets out", self.name, t0, t1, u(t1).tolist()))

        def advance(self, t0, t1, u):
            said.append(("arrives", self.name, t0, t1, u(t1).tolist()))
            return t1

    system = cs.System({"one": Elsewhere("one"), "two": Elsewhere("two")})
    system.connect("one.x", "two.u")
    system.connect("two.x", "one.u")
    cs.simulate(system, t_end=1.0, method=cs.Jacobi(0), step=0.5)
    assert said == [
        (what, name, t, t + 0.5, [t]) for t in (0.0, 0.5) for what in ("sets out", "arrives") for name in ("one", "two")
    ]


def test_super_does_not_find_the_description():
    class Saving(Plain):
        def save(self):
            return super().save()

    with pytest.raises(AttributeError, match="save"):
        Saving().save()


def test_a_wrapper_forwards_what_it_does_not_define():
    class Wrapper(Plain):
        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            if name == "inner":
                raise AttributeError(name)
            return getattr(self.inner, name)

    class Saving(Plain):
        def save(self):
            return "state"

        def restore(self, state):
            pass

    assert Wrapper(Saving()).save() == "state"
    assert cs.capabilities(Wrapper(Saving())) == {"rollback"}
    assert cs.capabilities(Wrapper(Plain())) == frozenset()
