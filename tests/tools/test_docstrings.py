"""The check of docstrings: nothing public is undocumented, and what is missing is found."""

import pytest

import cosolve as cs
from cosolve.subsystem.base import Subsystem
from tools import docstrings


def test_every_public_argument_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    assert docstrings.main([]) == 0, capsys.readouterr().out
    last = capsys.readouterr().out.splitlines()[-1]
    count, _, rest = last.partition(" public arguments, ")
    assert int(count) > 1500
    assert rest.startswith("0 without a description; 0 of ")


def test_the_names_of_the_package_and_its_methods_are_looked_at() -> None:
    found = {one.where for one in docstrings.public_objects()}
    assert {"cosolve.run.simulate:simulate", "cosolve.interface.system:System.connect"} <= found
    assert {"cosolve.subsystem.base:Subsystem.jacobian", "cosolve.mapping.mesh:Mesh.line"} <= found


def f(a: float, b: float) -> float:
    """Add two numbers.

    Parameters
    ----------
    a : float
        The first.
    b
        The second.
    """
    return a + b


def test_a_missing_type_a_missing_result_and_a_missing_example_are_found() -> None:
    codes = [fault[:4] for fault in docstrings.faults(docstrings.Public("here:f", f, top=True))]
    assert codes == ["PR04", "RT01", "EX01"]


class Tank(cs.Subsystem):
    def advance(self, t0, t1, u):
        return None

    def restore(self, state, twice):
        return None


def test_a_method_of_the_contract_needs_text_only_where_its_arguments_differ() -> None:
    same = docstrings.Public("here:advance", Tank.advance, Subsystem.advance)
    other = docstrings.Public("here:restore", Tank.restore, Subsystem.restore)
    assert docstrings.faults(same) == []
    assert docstrings.undocumented(other) == ["twice"]
    assert [fault[:4] for fault in docstrings.faults(other)] == ["PR01"]


def g() -> None:
    """Multiply `a . b`.

    Notes ----- Nothing.
    """


def test_what_the_reference_would_show_broken_is_found() -> None:
    faults = docstrings.faults(docstrings.Public("here:g", g))
    assert [fault[:4] for fault in faults] == ["GL06", "SS00"]
