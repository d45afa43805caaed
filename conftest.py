"""For the tests and for the examples in docstrings alike: limits, quick cases, skips, order, a tidy heap, hashes."""

pytest_plugins = ["tests.hashes", "tests.heap", "tests.limits", "tests.order", "tests.sampling", "tests.skips"]
