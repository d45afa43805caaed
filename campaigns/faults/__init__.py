"""Failures forced on purpose: every kind of subsystem, both engines, all methods and correctors.

`cases.py` lists what is tried, `kinds.py` builds the systems, `deeds.py` does the bad things, `judge.py` compares what
came of it with the undisturbed run.
"""

from campaigns.faults.campaign import run

__all__ = ["run"]
