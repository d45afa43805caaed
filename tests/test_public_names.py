"""What a person sees of the package in a shell: names to complete, help, signatures."""

import inspect
import os
import pkgutil
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests import processes

import cosolve as cs

SPACES = sorted(name for name in cs.__all__ if inspect.ismodule(getattr(cs, name)))


def public() -> dict[str, object]:
    """Every public name as a user writes it after `cs.`, and what it is."""
    found = {name: getattr(cs, name) for name in cs.__all__ if name not in SPACES}
    for space in SPACES:
        module = getattr(cs, space)
        found |= {f"{space}.{name}": getattr(module, name) for name in module.__all__}
    return found


def test_completion_shows_every_public_name_and_nothing_else():
    shown = dir(cs)
    assert {name for name in shown if not name.startswith("__")} == set(cs.__all__)
    assert shown == sorted(set(shown))
    for name in ("load_fmu", "System", "simulate", "sweep", "fmi", "mapping"):
        assert name in shown
    assert "__version__" in shown
    assert len(cs.__all__) < 95, "a new name at the top should be one that most users need"
    for space in ("fields", "fmi", "multibody", "plot", "remote"):  # nothing but names for users
        module = getattr(cs, space)
        assert [name for name in dir(module) if not name.startswith("__")] == sorted(module.__all__)


def test_every_public_name_is_there_and_says_what_it_is():
    for name, value in public().items():
        documented = inspect.getdoc(value) or not callable(value)
        assert documented, name
        assert getattr(value, "__module__", "cosolve").startswith("cosolve"), name
    assert all(inspect.getdoc(getattr(cs, space)) for space in SPACES)


def test_no_class_or_function_has_two_public_names():
    names: dict[int, list[str]] = {}
    for name, value in public().items():
        if callable(value):
            names.setdefault(id(value), []).append(name)
    assert [each for each in names.values() if len(each) > 1] == [["CosolveError", "errors.CosolveError"]]


def test_names_that_the_overview_advertises_are_there():
    table = cs.__doc__.partition("models  ")[2].partition("`help(")[0]
    head, _, spaces = table.partition("More in namespaces")
    classes = set(re.findall(r"\b[A-Z]\w+", head)) - {"FMUs", "TOML", "Dataset", "More"}
    assert len(classes) > 40
    assert classes <= set(cs.__all__)
    assert set(re.findall(r"^cs\.(\w+)", spaces, flags=re.MULTILINE)) == set(SPACES)


@pytest.mark.slow  # mypy reads the whole package
def test_type_checkers_know_every_public_name(tmp_path):
    """`mypy --strict` on a script of a user that mentions every name once; a name that is not there is an error."""
    script = tmp_path / "script.py"
    lines = [f"cs.{name}" for name in sorted([*public(), "__version__"])]
    script.write_text("import cosolve as cs\n\n" + "\n".join(lines) + "\nreveal_type(cs.simulate)\ncs.simulat\n")
    options = ["--strict", "--no-error-summary", "--cache-dir", str(tmp_path), "--follow-imports=silent"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(script)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "MYPYPATH": str(Path(cs.__file__).parents[1])},
    )
    told = [line.split(": ", 1)[1] for line in done.stdout.splitlines()]
    assert len(told) == 2, done.stdout + done.stderr
    assert told[0].startswith('note: Revealed type is "def (')
    assert "-> cosolve.result.result.Result" in told[0]
    assert told[1].startswith('error: Module has no attribute "simulat"')


def test_no_public_name_is_hidden_by_a_package_whatever_is_imported_first():
    """Importing `cosolve.x` puts the module `x` into the package, where it would hide a function of that name."""
    packages = {module.name for module in pkgutil.iter_modules(cs.__path__)}
    assert packages & set(cs.__all__) == set(SPACES)
    script = (
        "import importlib, sys, types\n"
        "import numba, scipy, numpy\n"  # stay loaded
        f"for package in {sorted(packages - {'__main__'})}:\n"
        "    for name in [n for n in sys.modules if n.partition('.')[0] == 'cosolve']:\n"
        "        del sys.modules[name]\n"
        "    importlib.import_module(f'cosolve.{package}')\n"  # also: no package needs another one to be there first
        "    cs = sys.modules['cosolve']\n"
        f"    for name in set(cs.__all__) - {set(SPACES)}:\n"
        "        assert not isinstance(vars(cs).get(name), types.ModuleType), (package, name)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)


def test_import_is_light():
    """Nothing heavy is loaded before it is needed; what is needed then comes by itself."""
    script = (
        "import sys, cosolve as cs\n"
        "heavy = {'numpy', 'scipy', 'numba', 'pandas', 'matplotlib', 'xarray', 'h5py', 'jax'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "assert cs.__version__ and 'simulate' in dir(cs)\n"
        "assert cs.simulate is cs.simulate\n"
        "cs.simulat\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    told = "AttributeError: module 'cosolve' has no attribute 'simulat'. Did you mean: 'simulate'?"
    assert done.stderr.splitlines()[-1] == told


def test_help_gives_an_overview_with_the_names():
    text = pydoc.plain(pydoc.render_doc(cs))
    head = text.partition("PACKAGE CONTENTS")[0]
    for name in ("load_fmu", "SemiImplicit", "sweep", "check", "cs.fmi", "cs.multibody"):
        assert name in head
    assert "class OneStep" in text  # of a module that is imported when asked for


def test_help_of_fmu_shows_and_explains_every_option_of_both_kinds():
    shown = inspect.signature(cs.load_fmu).parameters
    assert not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in shown.values())
    kinds = [inspect.signature(kind).parameters for kind in (cs.fmi.CoSimulationFmu, cs.fmi.ModelExchangeFmu)]
    for name, parameter in [each for kind in kinds for each in kind.items()]:
        assert shown[name].default == parameter.default, name
        assert shown[name].annotation == parameter.annotation, name
    assert set(shown) - {"kind", "isolated", "timeout"} == {name for kind in kinds for name in kind}
    text = inspect.getdoc(cs.load_fmu)
    for name in shown:
        assert f"\n{name} : " in text, name
    assert "max_events: 'int' = 1000" in pydoc.plain(pydoc.render_doc(cs.load_fmu))
    with pytest.raises(cs.errors.SetupError, match="there is no file"):
        cs.load_fmu("missing.fmu", integrator="rodas4")


def test_help_and_completion_do_without_optional_packages():
    script = (
        "import sys; sys.modules.update(jax=None, exudyn=None, pythonfmu=None, pythonfmu3=None)\n"
        "import cosolve as cs, pydoc\n"
        "[getattr(cs, name) for name in dir(cs)]\n"
        "print(len(pydoc.render_doc(cs)) > 10000)\n"
    )
    done = processes.run([sys.executable, "-c", script])
    assert done.stdout.strip() == "True", done.stderr
