"""The subsystem contract: what a solver must offer to be coupled, and what it may offer beyond that.

`Subsystem` states the contract: the required methods, the order of calls, and the optional methods with their
signatures. Coupling methods ask which optional methods an object has, never of which class it is;
`capabilities(subsystem)` lists what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FunctionType, MappingProxyType
from typing import Any

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.digest import digest
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.optional import optional_method
from cosolve.subsystem.port import PortLike, Ports


class Subsystem:
    """Base class of everything that can be coupled. Subclass it to bring your own solver.

    A subclass declares `inputs` and `outputs` and defines `start` and `advance`. All other methods are optional; an
    object has one only if its class defines it (`hasattr` is False otherwise). A coupling method that needs an optional
    method refuses a subsystem without it before the run starts.

    Attributes
    ----------
    inputs, outputs : sequence of str, (str, int) or Port
        The ports, in the order in which flat arrays hold their values. A pair gives name and number of values.
    noise : float, default 0.0
        Relative accuracy of the outputs. Difference quotients choose their increments above it.
    repeats_to : float, default 1e-6
        Relative difference that is accepted between the outputs of a step and of the same step repeated after
        `restore`. The check of rollback uses it.
    foreign : bool
        True if rollback is not known to work, so that it is checked in the first macro step. True for classes defined
        outside cosolve and for FMUs.
    overshoots : bool, default False
        True if the solver ends its internal step after `t1` and `advance` interpolates back to `t1`.
    variable_step : bool, default True
        True if a macro step may be split into several `advance` calls where a driven input has a kink or a jump. False
        if `advance` must span whole macro steps.
    input_form : {"any", "cubic", "mean"}, default "any"
        How inputs that follow a function of time are passed: as polynomials of any degree, of degree 3 at most, or as
        a value held over the step, for which the mean is taken.
    least_degree : int, default 0
        Least degree of input polynomials for methods that use the values at the end of the step. A subsystem that
        starts from the inputs at `t0` needs 1.
    fixed_step : float or None, default None
        The only step length in seconds that the subsystem can take; NaN if there is one that it does not state. None if
        any length is possible.
    concurrent : bool, default False
        True if copies of the object may run in several threads at once (perturbed calls of static subsystems).
    settings : tuple of str, default ()
        Names of attributes that hold its parameters. A saved run is not continued if one of them has changed.
    runs_on : str, default ""
        Where it runs if that is another rank, for messages, as in "rank 2".
    known_variables : mapping or None, default None
        Parameters and variables by name, if it can list them, as an FMU does: objects with `name`, `variability` and
        `start`. None if it does not list them.
    given_values : mapping, default {}
        Values of parameters and start values that the user has given, by name.
    model_file : Path or None, default None
        File that it was loaded from.
    internal_residual : float
        Residual of its own equations after the last `resolve`. Only for subsystems with `resolve`.

    See Also
    --------
    capabilities : The optional methods of an object, by purpose.
    Ode, Linear, Static : Kinds that are there already.

    Notes
    -----
    1. `start(t0)` is called once per run, and again for every new run: it must reset the subsystem completely.
    2. After `start`, `output` (or `initial_output`) may be called any number of times, with other inputs each time,
       until the outputs of all subsystems are consistent. Then `begin` is called once.
    3. In each macro step, `advance`, `replay`, `resolve` or `jacobian` is called any number of times. Each call but the
       first is preceded by `restore` to the state saved at the start of the step. The last `advance` is the accepted
       one.
    4. `output` may be called after `start` and after any `advance`. It must not change the state.
    5. `restore` must give back the state exactly: the same `advance` must then return the same outputs bit for bit, or
       to `repeats_to` for solvers that cannot. A saved state stays usable for several `restore` calls.
    6. `t0` and `t1` are the ends of the macro step. The next step starts where the last accepted one ended. The input
       signal `u` is a polynomial valid over the whole step; `u(t)` gives all inputs as a flat array in port order.
    7. Outputs are returned at `t1`, as a flat array, a number, a list with one value per port, or a dict by port name.
       `start` may return `None` if there is an `output` method; both may if there are no outputs.
    8. A failed step raises an exception. A finished simulation raises `EndOfSimulation`.
    9. A subsystem never sees the other subsystems, the coupling method or the macro-step controller.

    | optional methods | used for |
    |---|---|
    | `save`, `restore` | rollback: repeating a macro step |
    | `output` | direct feedthrough: outputs for new inputs at the same time |
    | `feedthrough` | which outputs depend on which inputs at the same time |
    | `initial_output`, `initial_dependence`, `begin` | consistent initial values |
    | `jacobian` | interface Jacobian from formulas |
    | `replay` | difference quotients without step-size noise |
    | `resolve` | one inner iteration per interface iteration |
    | `output_jacobian` | derivatives of static subsystems |
    | `step` | leading a `LeaderFollower` run with internal steps |
    | `advance_to_event`, `handle_event` | ending macro steps at events |
    | `get_state`, `set_state`, `equations` | stability analysis, joint integration |
    | `get`, `set_parameters` | parameters that change during a run |
    | `serialise`, `deserialise` | saving a run whose states are not plain values |
    | `prove_rollback`, `rollback_failed`, `rollback_held`, `trusts_rollback` | checks of their own rollback |
    | `look_at_steps` | one sentence where the length of steps matters |
    | `post_advance` | running in another process at the same time |
    | `native` | compiled macro loop |
    | `state_of` | approximate interface Jacobians of rigid bodies |
    | `will_end`, `retried_steps`, `inner_work`, `snapshot`, `body_shapes` | end of the run, reports, pictures |

    Examples
    --------
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
    noise: float = 0.0
    foreign: bool = True
    repeats_to: float = 1e-6
    overshoots: bool = False
    variable_step: bool = True
    input_form: str = "any"
    least_degree: int = 0
    fixed_step: float | None = None
    concurrent: bool = False
    settings: tuple[str, ...] = ()
    runs_on: str = ""
    known_variables: Mapping[str, Any] | None = None
    given_values: Mapping[str, Any] = MappingProxyType({})
    model_file: Path | None = None
    internal_residual: float

    # -- required -------------------------------------------------------------------------------------

    def start(self, t0: float) -> Any:
        """Go to the initial state and return the outputs there. Required.

        Parameters
        ----------
        t0 : float
            Start time in seconds.

        Returns
        -------
        array_like, dict or None
            Outputs at `t0`. None if they depend on the inputs; they are then asked for by `output`.
        """
        raise NotImplementedError(f"{type(self).__name__} must define start(t0)")

    def advance(self, t0: float, t1: float, u: InputSignal) -> Any:
        """Integrate over one macro step and return the outputs at its end. Required.

        Parameters
        ----------
        t0, t1 : float
            Start and end of the step in seconds.
        u : InputSignal
            Inputs as a function of time: `u(t)` is a flat array, `u.coefficients` the polynomial behind it.

        Returns
        -------
        array_like, dict or None
            Outputs at `t1`. None only if there are no outputs.
        """
        raise NotImplementedError(f"{type(self).__name__} must define advance(t0, t1, u)")

    # -- with a default ---------------------------------------------------------------------------------

    def by_callback(self, H: float, degree: int) -> Any:
        """Implement `native` for a class written in Python.

        The compiled macro loop then calls `advance` as a callback; everything around it is machine code. The results
        have the bits of the Python engine. A class asks for it in one line, `native = cs.Subsystem.by_callback`.

        Parameters
        ----------
        H : float
            Length of the macro step in seconds. Not used.
        degree : int
            Degree of the input polynomials.

        Returns
        -------
        Native or str
            The machine code and its memory, or the reason why there is none.

        Examples
        --------
        >>> import cosolve as cs
        >>> class Tank(cs.Subsystem):
        ...     inputs, outputs = ["inflow"], ["level"]
        ...     native = cs.Subsystem.by_callback
        >>> sorted(cs.capabilities(Tank()))
        ['compiled step']
        """
        from cosolve.subsystem.native_callback import callback_native

        return callback_native(self, degree)

    def remedy(self, capability: str) -> str:
        """Say what would add a missing capability, for error messages.

        Parameters
        ----------
        capability : str
            A key of `CAPABILITIES`, as in "rollback".

        Returns
        -------
        str
            An imperative without a period, as in "define save and restore there".
        """
        return f"define {' and '.join(CAPABILITIES[capability][0])} there"

    def identity(self) -> str:
        """Return a digest of what determines how the subsystem goes on from a saved state.

        It holds the functions, the class, the `settings` and the ports. A saved run goes on only where it is the same.

        Returns
        -------
        str
            The digest.
        """
        own = vars(self) if hasattr(self, "__dict__") else {}
        functions = {name: f for name, f in own.items() if callable(f) and not name.startswith("_")}
        kinds = [
            kind for kind in type(self).__mro__ if kind.__module__.partition(".")[0] not in ("cosolve", "builtins")
        ]
        methods = [{name: f for name, f in vars(kind).items() if isinstance(f, FunctionType)} for kind in kinds]
        settings = {name: getattr(self, name) for name in type(self).settings}
        ports = [[(p.name, p.unit, p.size) for p in some] for some in (Ports(self.inputs), Ports(self.outputs))]
        return digest(type(self), functions, methods, settings, ports)

    def portable_state(self) -> Any:
        """Return the state as plain values and arrays, for a file or another process.

        Defaults to `save()`. Override it where `save` returns a handle, as an FMU does.

        Returns
        -------
        object
            What `set_portable_state` accepts.
        """
        return self.save()

    def set_portable_state(self, state: Any) -> None:
        """Go to a state that `portable_state` returned, perhaps in another process.

        Defaults to `restore(state)`.

        Parameters
        ----------
        state : object
            The state.
        """
        self.restore(state)

    # -- optional: an object has those that its class defines ---------------------------------------------

    @optional_method
    def save(self) -> Any:
        """Return the state: everything needed to continue from here bit for bit. Optional.

        Returns
        -------
        object
            The state. Later calls must not change it.
        """

    @optional_method
    def restore(self, state: Any) -> None:
        """Go back to a saved state. Optional, with `save`.

        Parameters
        ----------
        state : object
            What `save` returned. It must stay usable, since a step may be repeated several times.
        """

    @optional_method
    def output(self, t: float, u: Vector) -> Any:
        """Return the outputs of the current state for given inputs (direct feedthrough). Optional.

        It must not change the state. Inputs may be NaN at the start of a run, while they are unknown.

        Parameters
        ----------
        t : float
            The current time in seconds.
        u : ndarray
            Values of all inputs at `t`, flat, in port order.

        Returns
        -------
        array_like or dict
            Outputs at `t`.
        """

    @optional_method
    def feedthrough(self) -> Any:
        """Say which outputs depend directly on which inputs. Optional.

        If it is not defined, the dependences are found by calling `output` with perturbed inputs.

        Returns
        -------
        array_like of bool
            Shape (outputs, inputs), with vectors expanded.
        """

    @optional_method
    def initial_output(self, t: float, u: Vector) -> Any:
        """Return the outputs for given inputs during initialisation, before `begin`. Optional.

        Called in place of `output`, for subsystems whose initial state depends on their inputs.

        Parameters
        ----------
        t : float
            Start time in seconds.
        u : ndarray
            Values of all inputs then, flat, in port order.

        Returns
        -------
        array_like or dict
            Outputs at the start.
        """

    @optional_method
    def initial_dependence(self) -> Any:
        """Say on which inputs the initial state is known to depend. Optional.

        Used for a warning only, if inputs change after `begin`.

        Returns
        -------
        array_like of bool
            One value per input, with vectors expanded.
        """

    @optional_method
    def begin(self, t0: float, u: Vector) -> Any:
        """End the initialisation with the inputs that were found for the start. Optional.

        Called once per run, before the first macro step.

        Parameters
        ----------
        t0 : float
            Start time in seconds.
        u : ndarray
            Values of all inputs at `t0`, flat, in port order.

        Returns
        -------
        array_like or dict
            Outputs at `t0`; they may differ from those before.
        """

    @optional_method
    def jacobian(self, t0: float, t1: float, u: InputSignal, weight: Vector) -> Matrix:
        """Return the derivatives of the outputs at `t1` with respect to a change of each input signal. Optional.

        Called with the subsystem in its state at `t0`, which the caller restores afterwards.

        Parameters
        ----------
        t0, t1 : float
            Start and end of the step in seconds.
        u : InputSignal
            The inputs at which the derivative is taken.
        weight : ndarray
            Coefficients of the change of an input, a polynomial in `s = (t - t0) / (t1 - t0)`: input `k` becomes
            `u_k(t) + eps_k * sum_j weight[j] s**j`.

        Returns
        -------
        ndarray or sparse matrix
            `d outputs(t1) / d eps`, shape (outputs, inputs).
        """
        raise NotImplementedError

    @optional_method
    def replay(self, t0: float, t1: float, u: InputSignal) -> Any:
        """Advance with the internal step sizes of the last `advance`. Optional.

        Difference quotients of interface Jacobians use it: step-size control does not add noise.

        Parameters
        ----------
        t0, t1 : float
            Start and end of the step in seconds, as in the last `advance`.
        u : InputSignal
            Perturbed inputs.

        Returns
        -------
        array_like or dict
            Outputs at `t1`.
        """

    @optional_method
    def resolve(self, t0: float, t1: float, u: InputSignal, *, output_equation: bool = False) -> Any:
        """Advance approximately: one correction of its own equations, starting from its last solution. Optional.

        `Implicit(local="one_step")` uses it to converge inner and interface iterations together. It sets
        `internal_residual`.

        Parameters
        ----------
        t0, t1 : float
            Start and end of the step in seconds.
        u : InputSignal
            The inputs.
        output_equation : bool, default False
            True to keep the state and evaluate the outputs for the new inputs only.

        Returns
        -------
        array_like or dict
            Outputs at `t1`.
        """

    @optional_method
    def step(self, t0: float, t_max: float, u: InputSignal) -> tuple[float, Any]:
        """Take exactly one internal step of the subsystem's own size. Optional.

        Parameters
        ----------
        t0 : float
            Start of the step in seconds.
        t_max : float
            Latest end of the step in seconds.
        u : InputSignal
            The inputs.

        Returns
        -------
        tuple of (float, array_like or dict)
            Time that was reached, at most `t_max`, and the outputs there.
        """
        raise NotImplementedError

    @optional_method
    def advance_to_event(self, t0: float, t1: float, u: InputSignal) -> tuple[float, Any, bool]:
        """Advance to `t1`, or to the first event after `t0` if there is one before. Optional.

        At an event the subsystem is left in the state just before it.

        Parameters
        ----------
        t0, t1 : float
            Start and latest end of the step in seconds.
        u : InputSignal
            The inputs.

        Returns
        -------
        tuple of (float, array_like or dict, bool)
            Time that was reached, outputs there (before the event), and True if there is an event at that time.
        """
        raise NotImplementedError

    @optional_method
    def handle_event(self, t: float, u: Vector) -> Any:
        """Process the event at the current time. Optional, with `advance_to_event`.

        Called after `advance_to_event` has returned True, with all subsystems at `t`; also if an event of another
        subsystem makes inputs jump.

        Parameters
        ----------
        t : float
            The current time in seconds.
        u : ndarray
            Values of all inputs at `t`, flat, in port order.

        Returns
        -------
        array_like or dict
            Outputs after the event.
        """

    @optional_method
    def get_state(self) -> Vector:
        """Return the continuous state as a flat array. Optional.

        The stability analysis uses it to linearise a macro step.

        Returns
        -------
        ndarray
            The state.
        """
        raise NotImplementedError

    @optional_method
    def set_state(self, x: Vector) -> None:
        """Set the continuous state. Optional, with `get_state`.

        Parameters
        ----------
        x : ndarray
            The state, as `get_state` returns it.
        """

    @optional_method
    def equations(self) -> tuple[Callable[..., Any], Callable[..., Any], Matrix | None]:
        """Return the equations `E x' = rhs(t, x, u)`, `y = output(t, x, u)`. Optional.

        `DynamicStatic` integrates them together with static subsystems.

        Returns
        -------
        tuple of (callable, callable, ndarray or None)
            `rhs`, `output` and the mass matrix `E`, where None is the identity.
        """
        raise NotImplementedError

    @optional_method
    def output_jacobian(self, t: float, u: Vector) -> Any:
        """Return the derivatives of the outputs of a static subsystem with respect to its inputs. Optional.

        Parameters
        ----------
        t : float
            Time in seconds.
        u : ndarray
            Values of all inputs, flat, in port order.

        Returns
        -------
        array_like
            `d outputs / d inputs`, shape (outputs, inputs).
        """

    @optional_method
    def get(self, name: str) -> Any:
        """Return the value of a parameter or variable. Optional.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        object
            The value now.
        """

    @optional_method
    def set_parameters(self, values: Mapping[str, Any]) -> None:
        """Change parameters between two macro steps. Optional; `System.at` needs it.

        With `get` defined as well, the next run starts with the values from before.

        Parameters
        ----------
        values : mapping
            New values by name.
        """

    @optional_method
    def serialise(self) -> bytes:
        """Return the state as bytes. Optional.

        Saved runs use it if `save` returns more than plain values and arrays.

        Returns
        -------
        bytes
            What `deserialise` accepts.
        """
        raise NotImplementedError

    @optional_method
    def deserialise(self, data: bytes) -> None:
        """Go to a state that another process serialised. Optional, with `serialise`; called after `start`.

        Parameters
        ----------
        data : bytes
            What `serialise` returned.
        """

    @optional_method
    def look_at_steps(self, t0: float, H: float, u: Vector) -> str:
        """Say whether what the subsystem comes to depends on the length of its steps. Optional.

        Called at the start of every run.

        Parameters
        ----------
        t0 : float
            Start of the first macro step in seconds.
        H : float
            Length of that step in seconds.
        u : ndarray
            Values of all inputs at `t0`, flat, in port order.

        Returns
        -------
        str
            One sentence for the notes of the run, or nothing.
        """
        raise NotImplementedError

    @optional_method
    def prove_rollback(self, t0: float, H: float, u: Vector) -> None:
        """Check that `restore` works, and raise an exception if not. Optional.

        Called before the first macro step that may be repeated, in place of the check of the run.

        Parameters
        ----------
        t0 : float
            Start of the step in seconds.
        H : float
            Length of the step in seconds.
        u : ndarray
            Values of all inputs at `t0`, flat, in port order.
        """

    @optional_method
    def rollback_failed(self, text: str) -> None:
        """Take note that a check after the run found that `restore` did not work. Optional.

        Parameters
        ----------
        text : str
            What was found.
        """

    @optional_method
    def rollback_held(self, t0: float, t1: float) -> None:
        """Take note that a check after a run from `t0` to `t1` found that `restore` worked. Optional.

        Parameters
        ----------
        t0, t1 : float
            Start and end of the run in seconds.
        """

    @optional_method
    def trusts_rollback(self, t0: float, t1: float) -> bool:
        """Return whether a run from `t0` to `t1` without an error bar needs no check after it. Optional.

        Parameters
        ----------
        t0, t1 : float
            Start and end of the run in seconds.

        Returns
        -------
        bool
            Whether an earlier check covers it.
        """
        return False

    @optional_method
    def post_advance(self, t0: float, t1: float, u: InputSignal) -> None:
        """Begin a step elsewhere without waiting; `advance` with the same arguments then waits for it. Optional.

        Parameters
        ----------
        t0, t1 : float
            Start and end of the step in seconds.
        u : InputSignal
            The inputs.
        """

    @optional_method
    def native(self, H: float, degree: int) -> Any:
        """Return machine code that does what `advance` does, for the compiled macro loop. Optional.

        Parameters
        ----------
        H : float
            Length of the macro step in seconds.
        degree : int
            Degree of the input polynomials.

        Returns
        -------
        Native or str
            Address of a function and its memory (`cosolve.subsystem.native`), or the reason why there is none.
        """

    @optional_method
    def will_end(self, t_end: float) -> None:
        """Learn when the run ends. Optional; called before `start`.

        Parameters
        ----------
        t_end : float
            End of the run in seconds; infinite if it is not known.
        """

    @optional_method
    def retried_steps(self) -> int:
        """Return how many failed steps of this run were repeated in smaller pieces. Optional.

        Returns
        -------
        int
            The number, for the report of the run.
        """
        raise NotImplementedError

    @optional_method
    def inner_work(self) -> str:
        """Say what a run took inside, for the notes of the run. Optional.

        Returns
        -------
        str
            What follows "'name' took", without a period.
        """
        raise NotImplementedError

    @optional_method
    def snapshot(self) -> Any:
        """Return the fields of the current state. Optional; `simulate(fields=FieldFile(...))` needs it.

        Returns
        -------
        FieldSnapshot
            Meshes and values.
        """

    @optional_method
    def state_of(self, body: str) -> Vector:
        """Return the present motion of a rigid body. Optional; `assemble(jacobian="approximate")` needs it.

        Parameters
        ----------
        body : str
            Its name.

        Returns
        -------
        ndarray
            `(r, q, v, omega)`, 13 numbers: position, Euler parameters, velocity, angular velocity in the body frame.
        """
        raise NotImplementedError

    @optional_method
    def body_shapes(self) -> Any:
        """Return the geometry of moving bodies, for pictures. Optional; the result keeps it.

        Returns
        -------
        dict
            For each port that is a frame: name of the body, centre and points, seen from the port.
        """


#: capability -> the methods that make it up, and what it is good for.
CAPABILITIES: dict[str, tuple[tuple[str, ...], str]] = {
    "rollback": (("save", "restore"), "repeating a macro step"),
    "serialised state": (("serialise", "deserialise"), "saving a run to a file and continuing it elsewhere"),
    "output": (("output",), "re-evaluating outputs for new inputs at the same time"),
    "initialisation": (("begin",), "first outputs that depend on how initialisation ends"),
    "jacobian": (("jacobian",), "exact output Jacobians over the macro step"),
    "replay": (("replay",), "noise-free difference quotients"),
    "approximate step": (("resolve",), "converging inner and interface iterations together"),
    "own steps": (("step",), "leading a master/slave run with its internal steps"),
    "events": (("advance_to_event", "handle_event"), "ending a macro step at an event, for the others to see"),
    "state": (("get_state", "set_state"), "stability analysis before the run"),
    "equations": (("equations",), "integrating it together with static subsystems"),
    "parallel steps": (("post_advance",), "advancing over a macro step elsewhere, while the others advance it here"),
    "compiled step": (("native",), "running the whole loop over macro steps compiled"),
    "output jacobian": (("output_jacobian",), "derivatives of a static subsystem without perturbed calls"),
}


def has_capability(subsystem: Subsystem, capability: str) -> bool:
    """Return True if a subsystem has all methods of a capability.

    Parameters
    ----------
    subsystem : Subsystem
        The subsystem.
    capability : str
        A key of `CAPABILITIES`.

    Returns
    -------
    bool
        Whether it has.
    """
    for name in CAPABILITIES[capability][0]:  # noqa: SIM110  # a generator would take twice the time, in every step
        if not callable(getattr(subsystem, name, None)):
            return False
    return True


def capabilities(subsystem: Subsystem) -> frozenset[str]:
    """List the capabilities that a subsystem has beyond `start` and `advance`.

    Parameters
    ----------
    subsystem : Subsystem
        The subsystem.

    Returns
    -------
    frozenset of str
        Keys of `cosolve.subsystem.base.CAPABILITIES`, as in "rollback".

    Examples
    --------
    >>> import cosolve as cs
    >>> sorted(cs.capabilities(cs.Static(lambda t, u: 2 * u, inputs=["u"], outputs=["y"])))
    ['output', 'rollback', 'state']
    """
    return frozenset(name for name in CAPABILITIES if has_capability(subsystem, name))
