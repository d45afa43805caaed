"""For the tests and for the examples in docstrings alike: a hard limit each, see tests/limits.py."""

pytest_plugins = ["tests.limits"]
