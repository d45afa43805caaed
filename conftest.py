"""For the tests and for the examples in docstrings alike: hard limits, which cases are quick, a tidy heap."""

pytest_plugins = ["tests.heap", "tests.limits", "tests.sampling"]
