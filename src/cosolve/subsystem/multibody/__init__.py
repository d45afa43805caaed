"""Multibody models as subsystems."""

from cosolve.subsystem.multibody.subsystem import Multibody

__all__ = ["Multibody"]
