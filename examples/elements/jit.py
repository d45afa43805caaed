"""How the parts are compiled: kept on disk, a division by zero gives an infinity as in numpy, other threads run on."""

from typing import TypeAlias

import numpy.typing as npt
from numba import njit

compiled = njit(cache=True, error_model="numpy", nogil=True)
Array: TypeAlias = npt.NDArray
