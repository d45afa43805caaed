"""For the tests and for the examples in docstrings alike: limits, which cases are quick, skips, order, a tidy heap."""

pytest_plugins = ["tests.heap", "tests.limits", "tests.order", "tests.sampling", "tests.skips"]
