"""System Structure and Parameterization (SSP 1.0 and 2.0): systems of FMUs, read and written."""

from cosolve.io.ssp.read import read_ssp
from cosolve.io.ssp.write import write_ssp
