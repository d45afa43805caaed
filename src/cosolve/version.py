"""The version of cosolve, the same as in pyproject.toml."""

VERSION = "0.1.0"
