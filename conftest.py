"""For the tests and for the examples in docstrings alike: a hard limit each, and which cases are the quick ones."""

pytest_plugins = ["tests.limits", "tests.sampling"]
