"""Settings for the whole suite: plots without a display, reproducible property tests."""

import matplotlib
from hypothesis import settings

matplotlib.use("Agg")
settings.register_profile("cosolve", deadline=None, derandomize=True)
settings.load_profile("cosolve")
