"""Engines: how macro steps are advanced. `readable` in Python, `native` in machine code, `blocks` for many variants."""
