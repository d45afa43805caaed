"""Multibody models as subsystems."""

from cosolve.multibody.subsystem.subsystem import MultibodySubsystem
