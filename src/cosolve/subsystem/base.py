"""The subsystem contract: what a solver must offer to be coupled, and what it may offer beyond that.

A subsystem implements two methods and declares its ports:

1. `inputs`, `outputs`: lists of port names (or `(name, size)`, or `Port`);
2. `start(t0)`: go to the initial state and give the outputs at `t0`;
3. `advance(t0, t1, u)`: cross the macro step with the input signal `u(t)` and give the outputs at `t1`.

Everything else is a capability: a method a subsystem *may* define. Coupling methods ask for capabilities, never
for kinds; `capabilities(subsystem)` lists what is there. Outputs are returned as a flat array, one value per
port, or a dict by port name.

A subsystem may be handed a macro step in parts where a driven input has a kink inside (`stops_inside`).

Guaranteed call order: `start` once per run (again for every new run: it must reset), `output` any number of times,
`begin` once with the inputs that were found for the start, then for each macro step
any number of `advance`/`replay`/`jacobian` calls, each but the first preceded by `restore` to the state saved at
the start of the step, the last `advance` being the accepted one. `output` may be called after `start` or `advance`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cosolve.basics.arrays import Matrix, Vector
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.port import PortLike


class Subsystem:
    """Base class of everything that can be coupled. Subclass it to bring your own solver.

    >>> import cosolve as cs
    >>> class Tank(cs.Subsystem):
    ...     inputs, outputs = ["inflow"], ["level"]
    ...     def start(self, t0):
    ...         self.level = 1.0
    ...         return self.level
    ...     def advance(self, t0, t1, u):
    ...         self.level += (t1 - t0) * (u(t0)[0] - 0.5 * self.level)
    ...         return self.level
    ...     def save(self):                 # optional: makes semi-implicit and implicit methods possible
    ...         return self.level
    ...     def restore(self, state):
    ...         self.level = state
    >>> sorted(cs.capabilities(Tank()))
    ['rollback']
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "foreign" not in cls.__dict__:
            inherited = any(base.__dict__.get("foreign", False) for base in cls.__mro__[1:] if base is not Subsystem)
            cls.foreign = inherited or not cls.__module__.startswith("cosolve.")

    inputs: Sequence[PortLike] = ()
    outputs: Sequence[PortLike] = ()

    #: Relative accuracy of the outputs; difference quotients choose their increments above it.
    noise: float = 0.0
    #: True for what is not known to come back to its saved states: other classes than those of this package, and FMUs.
    foreign: bool = True
    #: Relative: by so much outputs may differ that come from a restored state, where bits are too much to ask.
    repeats_to: float = 1e-6
    #: True when the solver ends a step where *it* wants, so that `advance` back-interpolates (see FreeRunning).
    overshoots: bool = False
    #: False when it cannot be stopped inside a macro step, where a driven input has a kink (or need not be).
    stops_inside: bool = True
    #: How it takes driven inputs: polynomials of "any" degree, at most a "cubic", or held, so that the "mean" counts.
    driven_as: str = "any"
    #: The least degree of input signals that it makes sense of where these end in values of the end of the step.
    least_degree: int = 0
    #: The one length of steps that it is made for (a sampled part, an FMU with fixed steps); NaN where it names none.
    fixed_step: float | None = None
    #: True when copies of it may run at the same time in threads (perturbed calls of static subsystems).
    concurrent: bool = False
    #: Attributes that hold what it is besides its functions: a saved run cannot go on when one of them has changed.
    settings: tuple[str, ...] = ()
    #: Where it runs when that is on another rank, for messages: "rank 2".
    runs_on: str = ""

    def start(self, t0: float) -> Any:
        """Go to the initial state at `t0` and return the outputs there."""
        raise NotImplementedError(f"{type(self).__name__} must define start(t0)")

    def advance(self, t0: float, t1: float, u: InputSignal) -> Any:
        """Integrate from `t0` to `t1` with inputs `u(t)` and return the outputs at `t1`."""
        raise NotImplementedError(f"{type(self).__name__} must define advance(t0, t1, u)")

    def by_callback(self, H: float, degree: int) -> Any:
        """A `native` for classes in Python: compiled loops call `advance`, and everything around it is machine code.

        One line of a class asks for it, `native = cs.Subsystem.by_callback`; the bits are those of the readable engine.

        >>> import cosolve as cs
        >>> class Tank(cs.Subsystem):
        ...     inputs, outputs = ["inflow"], ["level"]
        ...     native = cs.Subsystem.by_callback
        >>> sorted(cs.capabilities(Tank()))
        ['compiled crossing']
        """
        from cosolve.subsystem.native_callback import callback_native

        return callback_native(self, degree)

    def remedy(self, capability: str) -> str:
        """What would give it a capability that it lacks, as half a sentence to whoever owns it."""
        return f"define {' and '.join(CAPABILITIES[capability][0])} there"

    def portable_state(self) -> Any:
        """What `save` returns, for a file: whoever keeps states elsewhere than in plain values fetches them here."""
        return self.save()

    def set_portable_state(self, state: Any) -> None:
        """Go to a state that `portable_state` gave, perhaps in another process."""
        self.restore(state)

    # -- capabilities: a subclass defines those it has ------------------------------------------------

    save: Callable[[], Any]
    """save() -> state: everything needed to continue from here bit for bit."""
    restore: Callable[[Any], None]
    """restore(state): go back to a saved state, which must stay usable."""
    prove_rollback: Callable[[float, float, Vector], None]
    """prove_rollback(t0, H, u): before the first step that may be repeated; raises when `restore` does not work."""
    serialise: Callable[[], bytes]
    """serialise() -> the state now as bytes; for files where `save` returns more than plain values and arrays."""
    deserialise: Callable[[bytes], None]
    """deserialise(data): after `start`, go to a state that another process serialised."""
    output: Callable[[float, Vector], Any]
    """output(t, u) -> outputs of the current state when the inputs have the values `u` (direct feed-through)."""
    initial_output: Callable[[float, Vector], Any]
    """initial_output(t0, u) -> outputs for these inputs before `begin`; in place of `output`, where they differ."""
    initial_dependence: Callable[[], Any]
    """initial_dependence() -> a Boolean per input: whether the state at the start is known to depend on it."""
    begin: Callable[[float, Vector], Any]
    """begin(t0, u) -> outputs at t0: initialisation ends with the inputs `u`, and outputs may change by that."""
    feedthrough: Callable[[], Any]
    """feedthrough() -> Boolean matrix (outputs x inputs); found by probing `output` where it is not given."""
    jacobian: Callable[[float, float, InputSignal, Vector], Matrix]
    """jacobian(t0, t1, u, weight) -> d outputs(t1) / d eps for inputs u(t) + eps * weight(s), column by column.

    `weight` holds the coefficients of a polynomial in s; called with the subsystem at its state at `t0`, which the
    caller restores afterwards."""
    replay: Callable[[float, float, InputSignal], Any]
    """replay(t0, t1, u): like advance, on the internal time grid of the last advance (noise-free differences)."""
    resolve: Callable[..., Any]
    """resolve(t0, t1, u, output_equation=False): cross the step approximately, beginning at its last crossing.

    One correction of the solver's own equations instead of a converged solve; `internal_residual` says what is left of
    them. With `output_equation` only the outputs are solved for (see `Implicit`)."""
    internal_residual: float
    step: Callable[[float, float, InputSignal], tuple[float, Any]]
    """step(t0, t_max, u) -> (t1, outputs): exactly one accepted internal step of the subsystem's own size."""
    advance_to_event: Callable[[float, float, InputSignal], tuple[float, Any, bool]]
    """advance_to_event(t0, t1, u) -> (t, outputs, event): like advance, but only to the first event after `t0`.

    The subsystem stands just *before* the event then, with the outputs it has there; `event` is True where there is one
    at `t` (which may be `t1` itself), False where it came to `t1` without."""
    handle_event: Callable[[float, Vector], Any]
    """handle_event(t, u) -> outputs after the event: it happens now, with all subsystems at `t` and the inputs `u`.

    Called after `advance_to_event` has met one, and whenever the event of another subsystem makes inputs jump."""
    will_end: Callable[[float], None]
    """will_end(t_end): before `start`, when the run ends; infinite where that is not known."""
    get_state: Callable[[], Vector]
    """get_state() -> the state as a flat array; lets the analysis linearise the macro step."""
    set_state: Callable[[Vector], None]
    """set_state(x): put the subsystem into state `x`."""
    equations: Callable[[], tuple[Callable[..., Any], Callable[..., Any], Matrix | None]]
    """equations() -> (rhs, output, E) of `E x' = rhs(t, x, u)`, `y = output(t, x, u)`; E None is the identity."""
    post_advance: Callable[[float, float, InputSignal], None]
    """post_advance(t0, t1, u): begin to cross the step, elsewhere; the next `advance` with the same arguments waits."""
    native: Callable[[float, int], Any]
    """native(H, degree) -> how compiled code crosses a step of length `H`, or why it cannot (`native.py`)."""
    output_jacobian: Callable[[float, Vector], Any]
    """output_jacobian(t, u) -> d outputs / d inputs of a static subsystem; spares the perturbed calls."""


#: capability -> the methods that make it up, and what it is good for.
CAPABILITIES: dict[str, tuple[tuple[str, ...], str]] = {
    "rollback": (("save", "restore"), "repeating a macro step"),
    "serialised state": (("serialise", "deserialise"), "saving a run to a file and continuing it elsewhere"),
    "output": (("output",), "re-evaluating outputs for new inputs at the same time"),
    "initialisation": (("begin",), "first outputs that depend on how initialisation ends"),
    "jacobian": (("jacobian",), "exact output Jacobians over the macro step"),
    "replay": (("replay",), "noise-free difference quotients"),
    "approximate crossing": (("resolve",), "converging inner and interface iterations together"),
    "own steps": (("step",), "leading a master/slave run with its internal steps"),
    "events": (("advance_to_event", "handle_event"), "ending a macro step at an event, for the others to see"),
    "state": (("get_state", "set_state"), "stability analysis before the run"),
    "equations": (("equations",), "integrating it together with static subsystems"),
    "parallel crossing": (("post_advance",), "crossing a macro step elsewhere, while the others cross it here"),
    "compiled crossing": (("native",), "running the whole loop over macro steps compiled"),
    "output jacobian": (("output_jacobian",), "derivatives of a static subsystem without perturbed calls"),
}


def has_capability(subsystem: Subsystem, capability: str) -> bool:
    """True when `subsystem` defines all methods of `capability`."""
    return all(callable(getattr(subsystem, name, None)) for name in CAPABILITIES[capability][0])


def capabilities(subsystem: Subsystem) -> frozenset[str]:
    """The capabilities that a subsystem has beyond `start` and `advance`.

    >>> import cosolve as cs
    >>> sorted(cs.capabilities(cs.Static(lambda t, u: 2 * u, inputs=["u"], outputs=["y"])))
    ['output', 'rollback', 'state']
    """
    return frozenset(name for name in CAPABILITIES if has_capability(subsystem, name))
