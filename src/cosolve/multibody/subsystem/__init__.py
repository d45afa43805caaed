"""Multibody models as subsystems."""

from cosolve.multibody.subsystem.subsystem import Multibody

__all__ = ["Multibody"]
