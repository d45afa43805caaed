"""FMUs as subsystems: archives, descriptions, the C interface, co-simulation and model exchange."""
