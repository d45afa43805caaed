"""Names from entry points: whose they are, when metadata is read, and what is said of names and packages that fail."""

import subprocess
import sys
from pathlib import Path

import pytest

import cosolve as cs
from cosolve.basics import registry
from cosolve.method.named import as_method


@pytest.fixture
def install(tmp_path, monkeypatch):
    """`install(name, groups, module=text)`: a package with entry points, as pip would leave it."""

    def made(name: str, groups: dict[str, dict[str, str]], **modules: str) -> Path:
        folder = tmp_path / name
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"[cosolve.{g}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items()) for g, names in groups.items()]
        (info / "entry_points.txt").write_text("\n".join(lines))
        for module, text in modules.items():
            (folder / f"{module}.py").write_text(text)
        monkeypatch.syspath_prepend(str(folder))
        return folder

    return made


HELD = """
from dataclasses import dataclass
import cosolve as cs
from cosolve.operations import coupling_from_outputs, extrapolated, sweep

def held(m, o):
    sweep(m, extrapolated(m, 0))
    return coupling_from_outputs(m)

@dataclass(frozen=True)
class HeldInputs(cs.Method):
    explicit, lags, step_function = True, True, held
"""


def test_a_method_of_another_package_has_its_name(install):
    install("held_tools", {"methods": {"held": "held_tools_model:HeldInputs"}}, held_tools_model=HELD)
    assert as_method("held:2").label == "HeldInputs(2)"
    assert as_method("HeldInputs").label == as_method("held_inputs").label == "HeldInputs(1)"  # the name of the class
    assert as_method("held_tools_model:HeldInputs:3").degree == 3
    assert "held" in registry.names("methods")
    assert registry.name_of("methods", type(as_method("held"))) == "held"
    sys.modules.pop("held_tools_model")


def test_names_of_cosolve_cannot_be_taken(install):
    install("impostor", {"methods": {"jacobi": "nowhere:Jacobi"}})
    assert isinstance(as_method("jacobi"), cs.Jacobi)
    assert registry.names("methods").count("jacobi") == 1


def test_two_packages_with_one_name_are_told_apart_by_addresses(install):
    for name in ("first", "second"):
        install(f"{name}_pack", {"methods": {"held": f"{name}_model:HeldInputs"}}, **{f"{name}_model": HELD})
    with pytest.raises(
        cs.errors.SetupError, match=r"registered by the packages '.*_pack', '.*_pack'; write '.*_model:Held"
    ):
        as_method("held")
    assert as_method("first_model:HeldInputs").label == "HeldInputs(1)"
    for name in ("first", "second"):
        sys.modules.pop(f"{name}_model", None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import missing_library", "ModuleNotFoundError: No module named 'missing_library'"),
        ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("def broken(:", "SyntaxError"),
        ("", "AttributeError"),
    ],
)
def test_a_broken_package_is_named_and_disturbs_nothing_else(install, text, reason):
    install("broken_pack", {"methods": {"broken": "broken_model:Broken"}}, broken_model=text)
    with pytest.raises(
        cs.errors.SetupError, match="method 'broken' of the package 'broken_pack' cannot be used"
    ) as refused:
        as_method("broken")
    assert reason in str(refused.value)
    assert as_method("implicit:2").label == "Implicit(2)"
    assert "broken" in registry.names("methods")
    assert "broken" not in registry.usable("methods")
    sys.modules.pop("broken_model", None)


def test_unknown_names_get_the_nearest_ones(install):
    install("held_tools", {"methods": {"held": "held_tools_model:HeldInputs"}})
    with pytest.raises(
        cs.errors.SetupError, match=r"no method .hold.; did you mean .held.\? Others are written as module:C"
    ):
        as_method("hold")
    with pytest.raises(cs.errors.SetupError, match="there is no module 'nowhere' for 'nowhere:Held'"):
        as_method("nowhere:Held")
    with pytest.raises(cs.errors.SetupError, match=r"method .cosolve:Newton. makes a Newton, not a cosolve\.Method"):
        as_method("cosolve:Newton")


def test_other_packages_are_not_looked_at_for_a_name_of_cosolve(monkeypatch):
    registry._own.cache_clear()
    registry._others.cache_clear()

    def refuse(**given):
        raise AssertionError("the metadata of all packages was read")

    monkeypatch.setattr(registry.metadata, "entry_points", refuse)
    assert as_method({"name": "implicit", "corrector": {"name": "line-search", "corrector": "newton"}}).degree == 1


def test_without_metadata_there_is_a_sentence(monkeypatch):
    def gone(name):
        raise registry.metadata.PackageNotFoundError(name)

    registry._own.cache_clear()
    monkeypatch.setattr(registry.metadata, "distribution", gone)
    with pytest.raises(cs.errors.SetupError, match="metadata is missing or older than its source; install it again"):
        as_method("jacobi")
    registry._own.cache_clear()


def test_every_entry_point_of_cosolve_can_be_imported_and_names_the_defining_module():
    for group in registry.GROUPS:
        for entry in registry.entries(group):
            if registry.package(entry) == "cosolve":
                found = registry.load(group, entry)
                assert getattr(found, "__module__", entry.module) in (entry.module, "typer.main"), entry


def test_importing_cosolve_reads_no_metadata():
    code = "import sys, cosolve; assert not {'importlib.metadata', 'cosolve.basics.registry'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
