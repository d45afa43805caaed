"""For the tests and for docstring examples alike: limits, quick cases, skips, order, a tidy heap, hashes, Ctrl-C."""

pytest_plugins = [
    "tests.hashes",
    "tests.heap",
    "tests.interrupts",
    "tests.limits",
    "tests.order",
    "tests.sampling",
    "tests.skips",
]
