"""What a person sees of the package in a shell: names to complete, help, signatures."""

import inspect
import pydoc
import sys

import pytest
from tests import processes

import cosolve as cs


def test_completion_shows_every_public_name_and_nothing_else():
    shown = dir(cs)
    assert {name for name in shown if not name.startswith("__")} == set(cs.__all__)
    assert shown == sorted(set(shown))
    for name in ("Fmu", "Multibody", "export_fmu", "inspect_fmu", "read_ssp", "sweep"):
        assert name in shown
    assert "__version__" in shown


def test_every_public_name_is_there_and_says_what_it_is():
    for name in cs.__all__:
        value = getattr(cs, name)
        assert inspect.getdoc(value), name
        assert getattr(value, "__module__", "cosolve").startswith("cosolve"), name


def test_type_checkers_see_what_is_imported_later():
    """Names imported when first asked for are imported for type checkers in the same file."""
    source = inspect.getsource(cs)
    checked = source.partition("if TYPE_CHECKING:")[2].partition("__version__")[0]
    for names in cs._LATER.values():
        for name in names:
            assert name in checked.replace(",", " ").replace("(", " ").split(), name


def test_help_gives_an_overview_with_the_names():
    text = pydoc.plain(pydoc.render_doc(cs))
    head = text.partition("PACKAGE CONTENTS")[0]
    for name in ("Fmu", "Multibody", "SemiImplicit", "sweep", "export_fmu", "check"):
        assert name in head
    assert "class SecondOrder" in text  # of a module that is imported when asked for


def test_help_of_fmu_shows_and_explains_every_option_of_both_kinds():
    from cosolve.fmu.model_exchange import ModelExchange

    shown = inspect.signature(cs.Fmu).parameters
    assert not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in shown.values())
    of_model_exchange = inspect.signature(ModelExchange).parameters
    for name, parameter in of_model_exchange.items():
        assert shown[name].default == parameter.default, name
    text = inspect.getdoc(cs.Fmu)
    for name in shown:
        assert name == "file" or f"`{name}" in text, name
    assert "max_events: 'int' = 1000" in pydoc.plain(pydoc.render_doc(cs.Fmu))
    with pytest.raises(cs.SetupError, match="there is no file"):
        cs.Fmu("missing.fmu", solver="rodas4")


def test_help_and_completion_do_without_optional_packages():
    script = (
        "import sys; sys.modules.update(jax=None, exudyn=None, pythonfmu=None, pythonfmu3=None)\n"
        "import cosolve as cs, pydoc\n"
        "[getattr(cs, name) for name in dir(cs)]\n"
        "print(len(pydoc.render_doc(cs)) > 10000)\n"
    )
    done = processes.run([sys.executable, "-c", script])
    assert done.stdout.strip() == "True", done.stderr
