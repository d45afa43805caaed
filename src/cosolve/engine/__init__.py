"""Engines: how macro steps are crossed. `readable` in Python, `native` in machine code, `blocks` for many variants."""
