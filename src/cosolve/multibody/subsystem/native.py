"""The compiled step of a multibody model: the machine code that `advance` runs, called by address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cosolve.multibody.subsystem.kernels import advance_address, parts_of_step
from cosolve.subsystem.native import Native

if TYPE_CHECKING:
    from cosolve.multibody.subsystem.subsystem import MultibodySubsystem


def multibody_native(body: MultibodySubsystem) -> Native | str:
    """The subsystem step of `body`, or why there is none."""
    if body._outside.needed:
        return "it calls Python functions (loads, drives or laws of joint ends) at every stage"
    if body._monitors:
        return f"its monitors ({', '.join(body._monitors)}) are computed in Python; leave them out"
    stepping = body._stepping
    memory = stepping.memory
    memory.entries[:3] = parts_of_step(body.options.integrator)

    def enter() -> None:
        memory.x[:], memory.tail[0] = body.x, body._t

    def leave() -> None:
        body.x, body._t = memory.x.copy(), float(memory.tail[0])

    def explain(status: int) -> None:
        raise stepping.failed(status)

    found = Native(advance_address(), memory.address, memory.state, any_step=True, keep=(memory,))
    found.enter, found.leave, found.explain = enter, leave, explain
    return found
