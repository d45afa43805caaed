"""Settings for the whole suite: plots without a display, reproducible property tests, one thread for linear algebra."""

import os
import tempfile

# Our matrices are small: BLAS threads only wait for each other (a 14 x 14 matrix exponential takes 7 ms instead of
# 0.1 ms when two test workers share two cores). Must be set before numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# What one test finds out about an FMU must not reach another, nor the user's next run.
os.environ["COSOLVE_FINDINGS"] = os.devnull
os.environ["XDG_STATE_HOME"] = os.path.join(
    tempfile.gettempdir(), "cosolve-tests"
)  # the key of states is not that of the user
os.environ["COSOLVE_PROGRESS_SECONDS"] = "inf"  # no lines of progress in what slow machines print

import matplotlib
from hypothesis import settings

matplotlib.use("Agg")
settings.register_profile("cosolve", deadline=None, derandomize=True)
settings.load_profile("cosolve")
