"""Subsystems in a process of their own (`Isolated`), on another machine (`Remote`), on ranks of MPI (`on_ranks`).

`proxy.py` is the side of the run, `server.py` the side of the subsystem; `message.py` says what travels, `channel.py`
and `shared_memory.py` how on one machine, `network.py` between two. What another machine sends is plain data and runs
nothing (`data.py`, `content.py`); pickles stay between a run and its own processes (`pickles.py`). Compiled runs go
another way: `exchange.py` is machine code for both sides, `native_exchange.py` leads into it and out again. A crash, a
hang or a leak on the far side cannot take the run along.
"""

from cosolve.process.isolated import Isolated
from cosolve.process.ranks import Ranks, on_ranks
from cosolve.process.remote import Remote
