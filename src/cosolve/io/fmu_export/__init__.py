"""A coupled system, or one Python subsystem, as a co-simulation FMU."""

from cosolve.io.fmu_export.export import export_fmu, packed_files
