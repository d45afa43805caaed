"""The claims of an FMU, one function each: what is tried and what is said. Runs in the process of a trial.

Each function gets a `Bench`, which makes instances and steps them, and answers with a verdict and a sentence. To try
something new, write a function and list it in `CLAIMS`.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from cosolve.basics.processes import end_with
from cosolve.basics.wording import listed
from cosolve.errors import CosolveError, EndOfSimulation, SubsystemError
from cosolve.fmu.bench import STEPS, Bench
from cosolve.fmu.description import CO_SIMULATION, Variable
from cosolve.fmu.findings import Finding
from cosolve.fmu.step_trial import FOLLOWS, StepTrial
from cosolve.signal.polynomial import Polynomial

_WRONG = 0.05  # of the largest entry: what derivatives may differ by from difference quotients
_MANY = 20  # parameters tried
_EXPERIMENT, _PATIENCE = 2000, 10.0  # steps of a whole experiment, and seconds for one pass through it
_LEAK = 16 * 1024  # bytes per instance that count as a leak ...
_NOISE = 1024 * 1024  # ... when they add up to more than Python itself takes now and then

Answer = tuple[str, str]


def runs(bench: Bench) -> Answer:
    """Instantiate, initialise, step, finite numbers."""
    fmu, u = bench.begun()
    y = bench.march(fmu, u, STEPS, move=0.0)
    if not np.isfinite(y).all():
        j = int(np.flatnonzero(~np.isfinite(y).all(axis=0))[0])
        return "fails", f"'{bench.names(fmu)[j]}' is not a number"
    return "holds", f"{STEPS} steps of {bench.H:g} s, {len(u)} inputs, {y.shape[1]} outputs"


def moves(bench: Bench) -> Answer:
    """Some output changes, by itself or with the inputs."""
    expected = bench.reference
    fmu, _ = bench.begun()
    y = np.vstack([bench.outputs(fmu), expected])
    still = [name for name, column in zip(bench.names(fmu), y.T, strict=True) if (column == column[0]).all()]
    if y.shape[1] and len(still) == y.shape[1]:
        return (
            "cannot tell",
            f"no output changed in {STEPS} steps, with inputs moved by 1 %; is it meant to stand still?",
        )
    return "holds", "every output changes" if not still else f"constant so far: {listed(still, 3)}"


def runs_again(bench: Bench) -> Answer:
    """A new instance gives the same bits."""
    expected = bench.reference
    fmu, u = bench.begun()
    same, text = bench.compared(fmu, bench.march(fmu, u, STEPS), expected)
    return ("holds" if same else "fails"), text if same else f"a second instance differs: {text}"


def next_to_itself(bench: Bench) -> Answer:
    """Two instances at the same time do not disturb each other."""
    bench.make().close()
    if bench.alone:
        return "not claimed", "it says that only one instance fits into a process"
    expected = bench.reference
    (one, u), (two, v) = bench.begun(), bench.begun()
    rows = []
    for k in range(STEPS):
        rows.append(bench.march(one, u, 1, k)[0])
        bench.march(two, v, 1, k, move=0.02)
    same, text = bench.compared(one, np.array(rows), expected)
    return ("holds" if same else "fails"), text if same else f"a second instance disturbs the first: {text}"


def resets(bench: Bench) -> Answer:
    """`reset` leads back to a new start; no run relies on it."""
    fmu, u = bench.begun()
    if bench.kind != CO_SIMULATION and fmu.description.version.startswith("1"):
        return "not claimed", "FMI 1.0 has no reset for model exchange"
    expected = bench.reference
    bench.march(fmu, u, STEPS, move=0.02)
    fmu._instance.call("Reset")
    fmu._instance.body.used = fmu._instance.body.stepping = False  # so that the next start takes it as a new one
    u = bench.begin(fmu)
    same, text = bench.compared(fmu, bench.march(fmu, u, STEPS), expected)
    return ("holds" if same else "fails"), text if same else f"{text}; runs do not rely on it"


def first_outputs(bench: Bench) -> Answer:
    """Outputs before, at and after the end of initialisation."""
    fmu = bench.make()
    fmu.start(bench.t0)
    during = bench.outputs(fmu)
    u = bench.inputs(fmu)
    after = fmu.begin(bench.t0, u)
    names, said = bench.names(fmu), []
    late = np.flatnonzero(during != after)
    if len(late):
        j = late[0]
        said.append(
            f"only after initialisation ('{names[j]}' is {during[j]:.6g} during it and {after[j]:.6g} after it)"
        )
    if bench.kind != CO_SIMULATION or not fmu._communication.variable:
        return "holds", "; ".join(said) or "the same during and after initialisation"
    tiny = 1e-6 * bench.H
    first = fmu.advance(bench.t0, bench.t0 + tiny, bench.signal(fmu, u, 0, bench.t0, tiny, 0.0))
    t = bench.t0 + tiny
    second = fmu.advance(t, t + tiny, bench.signal(fmu, u, 0, t, tiny, 0.0))
    size = np.abs(first) + np.abs(after) + 1e-300
    jumps = np.flatnonzero((np.abs(first - after) > 0.1 * size) & (np.abs(second - first) < 1e-3 * size))
    other, u = bench.begun()
    whole = bench.march(other, u, 1, move=0.0)[0]
    if len(jumps) and np.allclose(first, whole, rtol=1e-6, atol=0.0):
        said.append(f"its own steps are long: a step of {tiny:.1g} s moves it as far as one of {bench.H:g} s")
    elif len(jumps):
        j = jumps[0]
        text = f"'{names[j]}' is {after[j]:.6g} until the first step and then {first[j]:.6g}"
        return "fails", f"{text}; others see the wrong value at the start: give the run a short first step"
    return "holds", "; ".join(said) or "the same during and after initialisation"


def takes_parameters(bench: Bench) -> Answer:
    """Parameters that are set can be read back; which of them change an output."""
    description = bench.make().description
    settable = [
        v
        for v in description.of("parameter")
        if v.variability in ("fixed", "tunable") and v.start is not None and v.length == 1 and v.type != "String"
    ]
    if not settable:
        return "not claimed", "it has no numeric parameters with a start value"
    expected, forgotten, refused, idle = bench.reference, [], [], []
    for variable in settable[:_MANY]:
        value = _another(variable)
        try:
            fmu, u = bench.begun(parameters={**bench.parameters, variable.name: value}, read_back=False)
            told = fmu.get(variable.name)
            if not np.isclose(float(told), float(value), rtol=1e-6, atol=0.0):
                forgotten.append(f"'{variable.name}' = {value:.6g} reads back as {float(told):.6g}")
            elif np.array_equal(bench.march(fmu, u, STEPS), expected):
                idle.append(variable.name)
        except CosolveError:
            refused.append(variable.name)
    tried = len(settable[:_MANY])
    text = f"{tried - len(forgotten) - len(refused)} of {tried} tried are taken"
    if refused:
        text += f"; it refuses a slightly changed '{refused[0]}'" + _and_more(refused)
    if idle:
        text += f"; '{idle[0]}'{_and_more(idle)} changed no output in {STEPS} steps"
    if forgotten:
        return "fails", f"{forgotten[0]}{_and_more(forgotten)}; {text}"
    return "holds", text


def _another(variable: Variable) -> float:
    """A value close to the start value."""
    text = (variable.start or "0").strip()
    if variable.type == "Boolean":
        return 0.0 if text in ("true", "1") else 1.0
    start = float(text)
    if not variable.is_float:
        return start + 1.0
    return start * 1.001 if start else 1e-3 * variable.nominal


def _and_more(names: list[str]) -> str:
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""


def saves_state(bench: Bench) -> Answer:
    """From a saved state the same steps give the same outputs, whatever was done in between."""
    fmu, u = bench.begun()
    if not hasattr(fmu, "save"):
        return "not claimed", "it cannot go back to the start of a step (canGetAndSetFMUState)"
    bench.march(fmu, u, 5)
    state = fmu.save()
    expected = bench.march(fmu, u, STEPS, 5)
    for move in (0.01, 0.02):
        fmu.restore(state)
        same, text = bench.compared(fmu, bench.march(fmu, u, STEPS, 5, move), expected)
        if move == 0.01 and not same:
            return "fails", f"after going back, {text}"
    fmu.restore(state)
    same, text = bench.compared(fmu, bench.march(fmu, u, STEPS, 5), expected)
    if not same:
        return "fails", f"after going back from another path, {text}"
    found = _experiment_with_returns(bench)
    return ("fails", found) if found else ("holds", text)


def _experiment_with_returns(bench: Bench) -> str:
    """The whole default experiment, with its events: once straight ahead, and once going back in every step."""
    count = int(min(_EXPERIMENT, max(STEPS, round((bench.t1 - bench.t0) / bench.H))))
    fmu, u = bench.begun()
    straight, until = [], monotonic() + _PATIENCE
    with suppress(SubsystemError, EndOfSimulation):  # it may not like these inputs
        for k in range(count):
            straight.append(fmu.advance(*bench.ends(k), bench.moved(fmu, u, k, count)))
            if monotonic() > until:
                break
    fmu, u = bench.begun()
    until = monotonic() + 3.0 * _PATIENCE
    rows = []
    for k in range(len(straight)):
        state = fmu.save()
        with suppress(SubsystemError, EndOfSimulation):
            fmu.advance(*bench.ends(k), bench.signal(fmu, u, k, bench.t0 + k * bench.H, bench.H, 0.01))
        fmu.restore(state)
        rows.append(fmu.advance(*bench.ends(k), bench.moved(fmu, u, k, count)))
        if monotonic() > until:
            break
    if not rows:
        return ""
    expected, found = np.array(straight[: len(rows)]), np.array(rows)
    off = np.abs(found - expected) - fmu.repeats_to * np.abs(expected).max(axis=0)
    if not (off > 0.0).any():
        return ""
    k, j = (int(n) for n in np.argwhere(off > 0.0)[0])
    return (
        f"going back in every step of its default experiment, '{bench.names(fmu)[j]}' is {found[k, j]:.6g} instead of "
        f"{expected[k, j]:.6g} at t = {bench.ends(k)[1]:.6g}"
    )


def writes_state(bench: Bench) -> Answer:
    """A state written to bytes goes on in another instance."""
    fmu, u = bench.begun()
    if not hasattr(fmu, "serialise"):
        return "not claimed", "its state cannot be written to a file (canSerializeFMUState)"
    bench.march(fmu, u, 5)
    data = fmu.serialise()
    expected = bench.march(fmu, u, STEPS, 5)
    other, u = bench.begun()
    other.deserialise(data)
    same, text = bench.compared(other, bench.march(other, u, STEPS, 5), expected)
    return ("holds" if same else "fails"), f"{len(data)} bytes; {text}"


def gives_derivatives(bench: Bench) -> Answer:
    """The Jacobian over a step agrees with difference quotients of that step."""
    fmu, u = bench.begun()
    flags = fmu._instance.flags
    if not (flags.has("providesDirectionalDerivatives") or flags.has("providesAdjointDerivatives")):
        return "not claimed", "it gives no derivatives (providesDirectionalDerivatives)"
    if not hasattr(fmu, "jacobian"):
        return "cannot tell", "it does not show its states or cannot repeat a step, so its derivatives are not used"
    state, weight, t, H = fmu.save(), np.ones(1), bench.t0, bench.H
    signal = bench.signal(fmu, u, 0, t, H, 0.0)
    given = np.asarray(fmu.jacobian(t, t + H, signal, weight))
    found = np.zeros_like(given)
    for k in range(len(u)):
        increment = 1e-4 * max(1.0, abs(float(u[k])))
        ends = []
        for sign in (1.0, -1.0):
            moved = signal.coefficients.copy()
            moved[0, k] += sign * increment
            fmu.restore(state)
            ends.append(fmu.advance(t, t + H, Polynomial(t, H, moved)))
        found[:, k] = (ends[0] - ends[1]) / (2.0 * increment)
    size, apart = np.abs(found).max(initial=0.0), np.abs(given - found)
    if apart.size and apart.max() > _WRONG * size + 1e-9:
        i, j = np.unravel_index(int(np.argmax(apart)), apart.shape)
        return "fails", (
            f"'{bench.names(fmu)[i]}' by input {j} over a step is {given[i, j]:.6g} by them and {found[i, j]:.6g} by "
            "difference quotients; those are used instead"
        )
    return "holds", f"the Jacobian over a step agrees with difference quotients to {apart.max(initial=0.0):.1e}"


def follows_inputs(bench: Bench) -> Answer:
    """Inputs that change inside a step count as they do in shorter ones."""
    fmu, u = bench.begun()
    if bench.kind != CO_SIMULATION or fmu._communication.holds:
        return "not claimed", "its inputs are held over a step"
    if not hasattr(os, "fork"):
        return "cannot tell", "there are no copies of processes here"
    ignored = StepTrial(fmu, bench.t0, bench.H, np.asarray(u, dtype=float)).ignored()
    return ("fails", f"{ignored}; runs hold its inputs") if ignored else ("holds", "a ramp counts as its pieces do")


def any_step(bench: Bench) -> Answer:
    """Shorter, longer and changing steps come to about the same outputs."""
    fmu, _ = bench.begun()
    if not fmu._instance.flags.has("canHandleVariableCommunicationStepSize") and bench.kind == CO_SIMULATION:
        return "not claimed", "it takes steps of one length only (canHandleVariableCommunicationStepSize)"
    one, u = bench.begun()
    start = bench.outputs(one)
    expected = bench.march(one, u, STEPS, move=0.0)
    change = np.abs(np.vstack([start, expected]) - start).max(axis=0) + 1e-6 * np.abs(expected).max(axis=0)
    worst, where = 0.0, ""
    for what, lengths in (
        ("half as long", [0.5] * (2 * STEPS)),
        ("twice as long", [2.0] * (STEPS // 2)),
        ("of changing length", [0.3, 0.7, 1.0, 1.5, 0.5] * (STEPS // 4)),
    ):
        fmu, u = bench.begun()
        done, y = 0.0, start
        try:
            for length in lengths:
                t = bench.t0 + done * bench.H
                done += length
                y = fmu.advance(t, bench.t0 + done * bench.H, bench.signal(fmu, u, 0, t, length * bench.H, 0.0))
        except SubsystemError as error:
            return "fails", f"steps {what} than {bench.H:g} s: {error}"
        apart = np.abs(y - expected[-1]) / (change + 1e-300)
        if len(apart) and apart.max() > worst:
            worst, where = float(apart.max()), f"'{bench.names(fmu)[int(np.argmax(apart))]}' with steps {what}"
    if worst > 0.5:
        return "fails", f"{where} ends elsewhere, by {100 * worst:.0f} % of what it moved: it keeps a grid of its own"
    return "holds", f"the same up to {100 * worst:.2g} % of what the outputs moved" + (f" ({where})" if where else "")


def heeds_no_return(bench: Bench) -> Answer:
    """`noSetFMUStatePriorToCurrentPoint` false (rollback is possible) changes nothing."""
    if bench.kind != CO_SIMULATION:
        return "not claimed", "it belongs to co-simulation"
    if bench.make().description.version.startswith("1"):
        return "not claimed", "FMI 1.0 has no rollback"
    expected = bench.reference
    fmu, u = bench.begun()
    fmu._communication.no_return = False
    same, text = bench.compared(fmu, bench.march(fmu, u, STEPS), expected)
    if same:
        return "holds", text
    return "fails", f"told that a rollback is possible, {text}; runs never tell it so"


def frees_memory(bench: Bench) -> Answer:
    """Instances that are made, stepped and freed leave no memory and no open files behind."""
    if not bench.instances:
        return "cannot tell", "no instances were tried"
    if not Path("/proc/self/statm").exists():
        return "cannot tell", "memory is not counted on this platform"
    warm = bench.instances // 2
    for _ in range(warm):
        _one_life(bench)
    memory, files = _memory(), _files()
    for _ in range(bench.instances - warm):
        _one_life(bench)
    count = max(bench.instances - warm, 1)
    leak, left = (_memory() - memory) / count, (_files() - files) / count
    text = f"{leak / 1024:.1f} kB and {left:.2g} files per instance, over {bench.instances} instances"
    leaks = leak > _LEAK and leak * count > _NOISE
    return ("fails" if leaks or left > 0.1 else "holds"), text


def _one_life(bench: Bench) -> None:
    fmu, u = bench.begun()
    bench.march(fmu, u, 1)
    if hasattr(fmu, "save"):
        fmu.save()
    bench.clear()


def _memory() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def is_quiet(bench: Bench) -> Answer:
    """Nothing goes to standard output, where other programs read."""
    sys.stdout.flush()
    before = os.fstat(1).st_size
    fmu, u = bench.begun()
    bench.march(fmu, u, STEPS)
    bench.clear()
    with suppress(OSError):
        import ctypes

        ctypes.CDLL(None).fflush(None)  # what C still holds back
    written = os.fstat(1).st_size - before
    if written:
        return "fails", f"it writes {written} bytes to standard output in a run of {STEPS} steps"
    return "holds", "it writes nothing to standard output"


@dataclass(frozen=True)
class Claim:
    """Its name, as a sentence that begins with "it", and how it is tried."""

    name: str
    tried: Callable[[Bench], Answer]


CLAIMS = (
    Claim("runs", runs),
    Claim("changes its outputs", moves),
    Claim("runs again", runs_again),
    Claim("runs next to itself", next_to_itself),
    Claim("resets", resets),
    Claim("shows its outputs at the start", first_outputs),
    Claim("takes its parameters", takes_parameters),
    Claim("saves its state", saves_state),
    Claim("writes its state", writes_state),
    Claim("gives derivatives", gives_derivatives),
    Claim(FOLLOWS, follows_inputs),
    Claim("takes steps of any length", any_step),
    Claim("advances when a rollback is possible", heeds_no_return),
    Claim("frees its memory", frees_memory),
    Claim("is quiet", is_quiet),
)


def main(order: dict[str, Any]) -> None:
    """Answer from claim `first` on, one line of JSON each."""
    end_with(order["parent"])
    bench = Bench(order)
    with Path(order["answers"]).open("a", encoding="utf-8") as answers:
        for claim in CLAIMS[order["first"] :]:
            try:
                try:
                    verdict, text = claim.tried(bench)
                finally:
                    bench.clear()
            except CosolveError as error:
                verdict, text = "fails", str(error)
            except Exception as error:  # ours, not the FMU's: said, and on to the next claim
                verdict, text = "cannot tell", f"the trial itself failed: {error} ({type(error).__name__})"
            answers.write(json.dumps(asdict(Finding(claim.name, verdict, text))) + "\n")
            answers.flush()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
