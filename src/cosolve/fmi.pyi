"""FMI and SSP: FMUs and system structures of other tools, read, tried, checked and written."""

from .fmu.co_simulation import CoSimulationFmu as CoSimulationFmu
from .fmu.inspection import Inspection as Inspection, inspect_fmu as inspect_fmu
from .fmu.model_exchange import ModelExchangeFmu as ModelExchangeFmu
from .fmu.trial import try_fmu as try_fmu
from .io.fmu_export import export_fmu as export_fmu
from .io.ssp import read_ssp as read_ssp, write_ssp as write_ssp
