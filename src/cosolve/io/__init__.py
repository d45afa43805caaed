"""Coupled systems in files: system files (TOML), SSP, export as FMU, and the cross-check against other tools."""

from cosolve.io.system_file import Description, Output, load_system
