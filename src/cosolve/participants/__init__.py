"""Solvers that own their time loop: the hub they connect to, their client, and how they are started.

`client.py` is a file of its own that solvers use without cosolve; `hub.py` is the event loop between them. What the hub
does with their data is a coupling: as a configuration file says (`cosolve.precice`), or by a cosolve method
(`subsystem.py`).
"""
