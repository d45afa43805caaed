"""The options of a run, each stated once: name, type, default, help, check, and where else it may be given.

The arguments of `simulate` and `Stepper` with their documentation, the keys of system files (`io/schema.py`), the flags
of the command line (`cli/flags.py`) and what a state keeps for `resume` are made from these two classes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from difflib import get_close_matches
from functools import wraps
from textwrap import fill
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Generic, Literal, ParamSpec, TypeVar, overload

from cosolve.basics.checks import refuse_no_function, whole
from cosolve.basics.wording import shortened
from cosolve.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from cosolve.engine.observer import ObserverLike
    from cosolve.method.named import MethodLike
    from cosolve.run.pace import Pace
    from cosolve.run.startup import Startup
    from cosolve.state.snapshot import Snapshot
    from cosolve.state.state_writer import Keep
    from cosolve.stepsize import Adaptive

P = ParamSpec("P")
A = TypeVar("A")
B = TypeVar("B")
O = TypeVar("O")  # noqa: E741
R = TypeVar("R")

_WIDTH = 120


@dataclass(frozen=True)
class OptionInfo:
    """What is known of an option beside its name, type and default.

    `least` is its smallest whole number; `check(who, value)` raises a `SetupError`. `table` and `key` say where it
    stands in a system file, `flag` whether the command line has it, `kept` whether a state of the run keeps it.
    """

    help: str
    least: int | None = None
    check: Callable[[str, Any], object] | None = None
    table: str | None = "simulation"
    key: str | None = None
    flag: bool = True
    kept: bool = True


def about(help: str, **where: Any) -> dict[str, OptionInfo]:
    """The metadata of a field."""
    return {"about": OptionInfo(help, **where)}


def _refuse_no_end(who: str, t_end: Any) -> None:
    if t_end is None and who == "simulate":
        raise SetupError("simulate: t_end must be a finite number, not None; a Stepper runs without an end")


def _refuse_no_error_bar(who: str, wanted: Any) -> None:
    if not isinstance(wanted, bool) and not (isinstance(wanted, str) and wanted == "sure"):
        raise SetupError(f"{who}: error_bar must be True, False or 'sure', not {shortened(wanted)}")


def _refuse_no_progress(who: str, progress: Any) -> None:
    refuse_no_function(who, "(fraction)", progress=progress)


@dataclass(frozen=True, kw_only=True)
class StepperOptions:
    """Options of a run that is stepped by hand."""

    who: ClassVar[str] = "Stepper"

    t_end: float | None = field(
        default=None, metadata=about("End of the run in seconds; None has no end.", check=_refuse_no_end)
    )
    method: MethodLike = field(
        metadata=about(
            'Coupling method; its name, as in "semi-implicit" or "semi-implicit:2" (degree 2); `module:Class`; or a '
            "dict with its name and options, as in a system file."
        )
    )
    step: float | Adaptive | None = field(
        default=None,
        metadata=about(
            "Macro step in seconds, or error control. A method that chooses its own steps (`LeaderFollower`, "
            "`DynamicStatic`) needs none; `step` then limits them."
        ),
    )
    t_start: float = field(default=0.0, metadata=about("Start of the run in seconds."))
    startup: Startup | None = field(
        default=None,
        metadata=about(
            "How the run gets its first support points. None is `GradedStart()` for degrees that gain by it, else "
            "`RisingDegree()`."
        ),
    )
    workers: int = field(
        default=1,
        metadata=about(
            "Number of threads for the subsystems of a parallel sweep. The bits stay the same; it is faster if "
            "subsystems release the interpreter lock.",
            least=1,
        ),
    )
    save: str | Path | None = field(
        default=None,
        metadata=about(
            "HDF5 file to stream the result to, instead of holding it in memory.",
            table="output",
            key="file",
            flag=False,
            kept=False,
        ),
    )
    record: bool | Sequence[str] = field(
        default=False,
        metadata=about(
            "Keep the macro points for `result`: all quantities, or those named.", table="output", flag=False
        ),
    )
    pace: float | Pace | None = field(
        default=None,
        metadata=about(
            "Model seconds per second of the wall clock, for real time. Points that are reached late are counted.",
            kept=False,
        ),
    )
    stop_at_events: bool = field(
        default=False,
        metadata=about(
            'End a macro step at an event of a subsystem (capability "events"), so that all others see it at once. '
            "Subsystems that have advanced beyond it need rollback."
        ),
    )
    max_steps: int | None = field(
        default=None, metadata=about("Largest number of macro steps; one more raises `StepSizeError`.", least=1)
    )
    observers: Sequence[ObserverLike] = field(
        default=(),
        metadata=about(
            "What follows the run: `Observer` objects such as `Live` and `FieldFile`, their registered names, or dicts "
            "with name and options.",
            flag=False,
            kept=False,
        ),
    )

    def __post_init__(self) -> None:
        for name, known in known_options(type(self)).items():
            value = getattr(self, name)
            if known.about.least is not None and value is not None:
                whole(self.who, name, value, known.about.least)
            if known.about.check is not None:
                known.about.check(self.who, value)


@dataclass(frozen=True, kw_only=True)
class RunOptions(StepperOptions):
    """Options of a run, as `simulate` takes them."""

    who: ClassVar[str] = "simulate"

    t_end: float = field(metadata=about("End of the run in seconds.", check=_refuse_no_end))
    method: MethodLike | None = field(  # type: ignore[assignment]
        default=None,
        metadata=about(
            'Coupling method; its name, as in "semi-implicit" or "semi-implicit:2" (degree 2); `module:Class`; or a '
            'dict with its name and options, as in a system file. "auto" chooses it, with `rtol=1e-4` unless given. '
            "None chooses it from `rtol`."
        ),
    )
    step: float | Adaptive | None = field(
        default=None,
        metadata=about(
            "Macro step in seconds, or error control. None chooses it from `rtol`. A method that chooses its own steps "
            "(`LeaderFollower`, `DynamicStatic`) needs none; `step` then limits them."
        ),
    )
    record: Sequence[str] | None = field(  # type: ignore[assignment]
        default=None, metadata=about("Names of the quantities to record. None: all.", table="output", flag=False)
    )
    rtol: float | None = field(
        default=None,
        metadata=about(
            "Wanted coupling error, as a fraction of each output's largest value. For choosing method or step only; "
            'refused if both are given. `result.meta["choice"]` says what was chosen and why. Subsystems start several '
            "times for the pilot runs, see `choose`.",
            kept=False,
        ),
    )
    every: int = field(
        default=1, metadata=about("Record every n-th macro point, and the last one.", least=1, table="output")
    )
    progress: Callable[[float], None] | None = field(
        default=None,
        metadata=about(
            "`progress(fraction)` is called about ten times a second.",
            check=_refuse_no_progress,
            table=None,
            flag=False,
            kept=False,
        ),
    )
    compiled: bool | None = field(
        default=None,
        metadata=about(
            "Run the loop over macro steps as machine code, with the same bits. None: if that is possible and repays "
            "its loading. True raises an error if it is not possible."
        ),
    )
    resume: str | Path | Snapshot | None = field(
        default=None,
        metadata=about(
            "State to continue from, of a `Stepper` or of a run with `save_state`. `t_start` is ignored then. With the "
            "same `t_end` and `step` the bits are those of an uninterrupted run.",
            table=None,
            kept=False,
        ),
    )
    save_state: str | Path | None = field(
        default=None, metadata=about("File to write the state at the end of the run to.", table=None, kept=False)
    )
    error_bar: bool | Literal["sure"] = field(
        default=False,
        metadata=about(
            'Estimate the coupling error after the run, see `error_bar`. "sure" takes a second grid of steps.',
            check=_refuse_no_error_bar,
        ),
    )
    meta: Mapping[str, Any] | None = field(
        default=None,
        metadata=about(
            "What `result.meta` says about the run besides, for example who made it; plain values.",
            table=None,
            flag=False,
            kept=False,
        ),
    )
    costs: Mapping[str, float] | None = field(
        default=None,
        metadata=about(
            "Relative cost of a subsystem step by subsystem, for choosing a method, see `choose`.",
            table=None,
            flag=False,
            kept=False,
        ),
    )
    state_every: int | str | Keep | None = field(
        default=None,
        metadata=about(
            "Write the state of the run to a file beside `save` every so many macro steps, or after a time on the wall "
            'clock ("30 s", "5 min", "1 h"), so that `resume` can continue it after a kill.',
            table="output",
            kept=False,
        ),
    )


# -- what is made from them ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KnownOption:
    """One option: its name, its type as it stands in the class, its default, and what is known of it."""

    name: str
    type: str
    default: Any
    about: OptionInfo

    @staticmethod
    def of(one: Field[Any]) -> KnownOption:
        """From a field of a class of options."""
        default = inspect.Parameter.empty if one.default is MISSING else one.default
        return KnownOption(one.name, str(one.type), default, one.metadata["about"])

    @property
    def words(self) -> str:
        """The type as numpydoc writes it, with the default.

        >>> known_options(RunOptions)["record"].words, known_options(RunOptions)["t_end"].words
        ('sequence of str or None, default None', 'float')
        """
        text = re.sub(r"Callable\[.*?\], \w+\]", "callable", self.type).replace("MethodLike", "Method | str | dict")
        text = re.sub(r"Sequence\[(\w+)\]", r"sequence of \1", text).replace(" | Keep", "")
        text = re.sub(r"Mapping\[(\w+), (\w+)\]", r"mapping of \1 to \2", text)
        text = re.sub(r"Literal\[(.*)\]", r"\1", text).replace("ObserverLike", "Observer, str or dict")
        text = " or ".join(text.replace(" | ", ", ").rsplit(", ", 1))
        return text if self.default is inspect.Parameter.empty else f"{text}, default {self.default!r}"

    @property
    def flag(self) -> str:
        """Its name on the command line."""
        return "--" + self.name.replace("_", "-")


def known_options(kind: type[StepperOptions]) -> dict[str, KnownOption]:
    """The options of a class by name.

    >>> list(known_options(StepperOptions))[:3]
    ['t_end', 'method', 'step']
    """
    return {one.name: KnownOption.of(one) for one in fields(kind)}


def documented(text: str | None, kind: type[StepperOptions], indent: str) -> str:
    """A docstring whose line `{options}` becomes their descriptions."""
    lines = []
    for known in known_options(kind).values():
        lines.append(f"{indent}{known.name} : {known.words}")
        inner = f"{indent}    "
        lines.append(fill(known.about.help, _WIDTH, initial_indent=inner, subsequent_indent=inner))
    return (text or "").replace(f"{indent}{{options}}", "\n".join(lines))


class takes(Generic[P, O]):
    """Let a function whose last argument is a class of options take these options as keywords.

    Signature and docstring are made from the class. `example` is what a call without names is answered with.

    >>> @takes(StepperOptions, "show('a', method='jacobi')")
    ... def show(system, options): return options.method
    >>> show("a", method="jacobi"), str(inspect.signature(show))[:25]
    ('jacobi', "(system, *, t_end: 'float")
    >>> show("a", method="jacobi", stpe=0.1)
    Traceback (most recent call last):
    ...
    TypeError: Stepper() got an unexpected keyword argument 'stpe'; did you mean 'step'?
    """

    def __init__(self, kind: Callable[P, O], example: str) -> None:
        self._kind: Any = kind
        self._example = example

    @overload
    def __call__(self, function: Callable[[A, O], R]) -> Callable[Concatenate[A, P], R]: ...
    @overload
    def __call__(self, function: Callable[[A, B, O], R]) -> Callable[Concatenate[A, B, P], R]: ...
    def __call__(self, function: Callable[..., R]) -> Callable[..., R]:
        """Return the function that takes keywords."""
        kind, plain = self._kind, inspect.signature(function)
        first = list(plain.parameters.values())[:-1]
        keyword = inspect.Parameter.KEYWORD_ONLY
        options = [
            inspect.Parameter(known.name, keyword, default=known.default, annotation=known.type)
            for known in known_options(kind).values()
        ]
        signature = plain.replace(parameters=[*first, *options])
        name, example, known_names = kind.who, self._example, [one.name for one in (*first, *options)]

        @wraps(function)
        def called(*arguments: Any, **named: Any) -> R:
            if len(arguments) > len(first):
                raise SetupError(f"{name} takes only its first argument without a name; write {example}")
            try:
                signature.bind(*arguments, **named)
            except TypeError as error:
                unknown = [given for given in named if given not in known_names]
                near = get_close_matches(unknown[0], known_names, 1) if unknown else []
                raise TypeError(f"{name}() {error}" + (f"; did you mean '{near[0]}'?" if near else "")) from None
            leading = [*arguments, *(named.pop(one.name) for one in first[len(arguments) :])]
            return function(*leading, kind(**named))

        called.__signature__ = signature  # type: ignore[attr-defined]
        called.__doc__ = documented(function.__doc__, kind, "    ")
        return called
