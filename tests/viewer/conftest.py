import numpy as np
import pytest
from tests.viewer.browsing import CHROMIUM, FLAGS, Tabs

import cosolve as cs


def make_masses(name: str = "one") -> cs.System:
    def mass(m, x):
        return cs.Linear(
            [[0, 1], [-1 / m, -0.1]], [[0], [1 / m]], np.eye(2), x0=[x, 0], inputs=["f"], outputs=["x", "v"]
        )

    system = cs.System({name: mass(1.0, 0.0), "two": mass(2.0, 1.0)})
    system.law({f"{name}.f": 1, "two.f": -1}, lambda a, b: 9 * (b - a), of=[f"{name}.x", "two.x"], name="spring")
    return system


@pytest.fixture
def masses():
    return make_masses()


@pytest.fixture(scope="session")
def result():
    return cs.simulate(make_masses(), t_end=2.0, method=cs.SemiImplicit(degree=1), step=0.01)


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def tab(browser):
    """Opens pages; any error in their scripts, and any dialog, fails the test."""
    tabs = Tabs(browser)
    yield tabs
    tabs.close()
