"""Saved states of runs: in memory, in files, beside the results of long runs."""
