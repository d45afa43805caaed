"""For the tests and for the examples in docstrings alike: hard limits, which cases are quick, order, a tidy heap."""

pytest_plugins = ["tests.heap", "tests.limits", "tests.order", "tests.sampling"]
