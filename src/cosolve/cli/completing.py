"""What the shell may offer after an option: names of methods, examples and templates, when TAB is pressed.

The commands and options themselves are completed from the parser; files by the shell.
"""

from __future__ import annotations


def methods(incomplete: str) -> list[str]:
    """Methods by name, for `--method`.

    >>> methods("semi")
    ['semi-implicit', 'semi-implicit:0', 'semi-implicit:1', 'semi-implicit:2']
    """
    from cosolve.basics.registry import names

    degrees = [f"{name}{degree}" for name in names("methods") for degree in ("", ":0", ":1", ":2")]
    return [name for name in ["auto", *degrees] if name.startswith(incomplete)]


def examples(incomplete: str) -> list[tuple[str, str]]:
    """Examples by name, each with what it says of itself, for `cosolve demo`.

    >>> [name for name, _ in examples("two_mass")]
    ['two_mass', 'two_mass_rigid', 'two_mass_semi_implicit']
    """
    from cosolve.gallery import about
    from cosolve.gallery import examples as known

    return [(name, about(path)) for name, path in known().items() if name.startswith(incomplete)]


def templates(incomplete: str) -> list[tuple[str, str]]:
    """Templates by name, for `cosolve new`."""
    from cosolve.cli.templates import TEMPLATES

    return [(name, template.about) for name, template in TEMPLATES.items() if name.startswith(incomplete)]


def pages(incomplete: str) -> list[tuple[str, str]]:
    """Pages of the documentation by name, each with its title, for `cosolve docs`.

    >>> pages("getting")
    [('getting-started', 'Getting started in five minutes')]
    """
    from cosolve.cli.docs import home, names, title

    folder = home()
    return [(name, title(folder / f"{name}.md")) for name in names(folder) if name.startswith(incomplete)]
