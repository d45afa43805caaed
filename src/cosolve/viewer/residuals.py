"""What every macro step had to correct, coupling variable by coupling variable, from what a run has recorded.

A macro step begins with extrapolated coupling variables; where they are afterwards is recorded. The difference is the
residual before any correction: methods that iterate remove it, explicit ones leave it behind as their coupling error.
It is computed from the recorded values and times when it is displayed, so that runs pay nothing for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector

_SAME_STEP = 1e-6  # relative: a row that was recorded after several steps has no residual


def degree(meta: Mapping[str, Any]) -> int:
    """The degree of the extrapolation of a run, which its method says.

    >>> degree({"method": "Jacobi(degree=2, outputs='as_used')"}), degree({})
    (2, 0)
    """
    found = re.search(r"\bdegree=(\d)\b", str(meta.get("method", "")))
    return int(found[1]) if found else 0


def before_correction(t: Vector, z: Matrix, H: Vector, degree: int) -> Matrix:
    """`z` minus its extrapolation from the rows before, for all rows but the first `degree + 1`.

    NaN where a row was recorded after several steps, and where two of the rows are at the same time.

    >>> t = np.arange(5.0)
    >>> before_correction(t, t[:, np.newaxis] ** 2, np.ones(5), 1).ravel()      # second differences
    array([2., 2., 2.])
    """
    count = len(t) - degree - 1
    if count <= 0:
        return np.full((0, z.shape[1]), np.nan)
    now = t[degree + 1 :]
    past = [slice(degree - k, degree - k + count) for k in range(degree + 1)]
    found = np.array(z[degree + 1 :], np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        for rows in past:
            weight = np.ones(count)
            for others in past:
                if others != rows:
                    weight *= (now - t[others]) / (t[rows] - t[others])
            found -= weight[:, np.newaxis] * z[rows]
        whole = np.abs(np.diff(t)[degree:] - H[degree + 1 :]) <= _SAME_STEP * H[degree + 1 :]
    found[~whole | ~np.isfinite(found).all(axis=1)] = np.nan
    return found
