"""Coupled systems described in files: TOML for people, validated before anything is built."""

from cosolve.io.system_file import Description, Output, load_system

__all__ = ["Description", "Output", "load_system"]
